// Calls by name with arguments that fit no operator: whatever comes, a call returns or raises a UserError.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>

#include "capture/dispatch.h"
#include "ops/table.h"
#include "stax/stax.h"

namespace stax {
namespace {

using graph::Param;
using graph::ParamType;
using Value = Argument<Tensor>;

constexpr DType kDTypes[] = {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64,
                             kInt32,   kInt16,   kInt8,    kUInt8,    kBool};

/// Draws arguments: mostly of the type that the parameter wants, with values and shapes at and past the
/// edges.
class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  size_t below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  template <class T, size_t N>
  T of(const T (&values)[N]) {
    return values[below(N)];
  }

  Tensor tensor() {
    std::vector<int64_t> sizes;
    for (size_t rank = below(10) < 8 ? below(4) : below(6); sizes.size() < rank;) sizes.push_back(of(kSizes));
    const DType dtype = of(kDTypes);
    int64_t count = 1;
    for (const int64_t size : sizes) count *= size;
    std::vector<double> values(static_cast<size_t>(count));
    for (double& v : values) v = chance(0.02) ? of(kOddNumbers) : static_cast<double>(below(4));
    Tensor t = stax::tensor(values, kFloat64).to(dtype).view(sizes);
    if (chance(0.2) && t.dim() >= 2) t = t.transpose(0, 1);
    if (chance(0.1) && t.dim() >= 1 && sizes.back() > 0) t = t.slice(-1, 0, INT64_MAX, 2);
    if (chance(0.05)) {
      std::vector<int64_t> wide = t.sizes().values();
      wide.insert(wide.begin(), 2);
      t = t.expand(wide);
    }
    return t;
  }

  Value integer() { return chance(0.8) ? of(kSmall) : of(kEdges); }

  Value integers() {
    std::vector<Expr> list;
    const bool tame = chance(0.7);
    for (size_t n = below(5); list.size() < n;)
      list.emplace_back(tame ? of(kSmall) : integer().integer().value());
    return list;
  }

  Value of_type(ParamType type) {
    switch (type) {
      case ParamType::tensor:
        return tensor();
      case ParamType::tensors: {
        Value::Tensors list;
        for (size_t n = below(4); list.size() < n;)
          list.push_back(chance(0.05) ? std::nullopt : std::optional<Tensor>(tensor()));
        return list;
      }
      case ParamType::scalar:
        return chance(0.5) ? integer() : chance(0.5) ? Value(of(kOddNumbers)) : Value(chance(0.5));
      case ParamType::integer:
        return integer();
      case ParamType::integers:
        return integers();
      case ParamType::floating:
        return chance(0.7) ? Value(of(kFractions)) : Value(of(kOddNumbers));
      case ParamType::floats: {
        std::vector<double> list(below(4));
        for (double& v : list) v = of(kOddNumbers);
        return list;
      }
      case ParamType::boolean:
        return chance(0.5);
      case ParamType::string:
        return std::string(of(kWords));
      case ParamType::dtype:
        return of(kDTypes);
    }
    return {};
  }

  Value argument(const Param& param) {
    if (chance(0.04)) return of_type(static_cast<ParamType>(below(10)));
    if (param.optional && chance(0.4)) return {};
    return of_type(param.type);
  }

 private:
  static constexpr int64_t kSizes[] = {0, 1, 1, 2, 2, 3, 3, 4, 5};
  static constexpr int64_t kSmall[] = {0, 0, 1, 1, 2, 3, -1, -2, 4};
  static constexpr int64_t kEdges[] = {INT64_MAX, INT64_MIN, INT32_MAX,        INT32_MIN,
                                       -5,        100,       int64_t{1} << 40, INT64_MIN + 1};
  static constexpr double kFractions[] = {0, 0.5, 1, 2, 0.1, 1e-5};
  static constexpr double kOddNumbers[] = {NAN, HUGE_VAL, -HUGE_VAL, -0.0, 1e300, -1.5, 1e-320, 9.3e18};
  static constexpr const char* kWords[] = {"mean",     "sum",      "none", "floor",  "trunc", "reflect",
                                           "constant", "circular", "tanh", "linear", "prod",  "ij->ji",
                                           "",         "ij,jk",    "\xff", "nearest"};
  std::mt19937_64 random_;
};

std::string describe(const Value& value) {
  if (value.is_none()) return "None";
  if (value.is_tensor()) {
    std::string text = fmt::format("{}[", name(value.tensor().dtype()));
    for (const SymInt& size : value.tensor().sizes()) text += size.str() + ",";
    return text + "]";
  }
  if (const auto* list = std::get_if<std::vector<Expr>>(&value.value)) {
    std::string text = "(";
    for (const Expr e : *list) text += e.str() + ",";
    return text + ")";
  }
  if (const auto* list = std::get_if<Value::Tensors>(&value.value)) {
    std::string text = "{";
    for (const auto& t : *list) text += (t ? describe(*t) : "None") + ",";
    return text + "}";
  }
  if (const auto* text = std::get_if<std::string>(&value.value)) return "'" + *text + "'";
  if (value.is_number())
    return value.number().is_float() ? fmt::format("{}", value.floating()) : value.number().integer.str();
  return "...";
}

/// Sizes that exist, but need gigabytes or minutes, are a matter of the machine and not of what is tested
/// here.
bool is_too_large(const capture::Arguments& arguments) {
  double elements = 1;
  bool large = false;
  const auto add = [&](double v) {
    large = large || (v > 1e6 && v < 1e15);
    elements *= std::max(1.0, std::abs(v));
  };
  for (const Value& value : arguments) {
    if (const auto* list = std::get_if<std::vector<Expr>>(&value.value)) {
      for (const Expr e : *list) add(static_cast<double>(e.value()));
    } else if (value.is_number() && !value.number().is_float()) {
      add(value.floating());
    }
  }
  return large || (elements > 1e6 && elements < 1e17);
}

TEST(CallFuzz, EveryRowReturnsOrRaisesAUserError) {
  constexpr int kCallsARow = 60;
  int returned = 0, refused = 0;
  for (const graph::Op& op : ops::table().rows()) {
    if (op.internal) continue;  // called by other rows only, which know what they pass
    Draw draw(std::hash<std::string_view>()(op.schema_text));
    for (int i = 0; i < kCallsARow; ++i) {
      capture::Arguments arguments;
      for (const Param& param : op.schema.params) {
        if (param.keyword_only) break;
        arguments.push_back(draw.argument(param));
      }
      std::vector<std::pair<std::string, Value>> named;
      for (const Param& param : op.schema.params) {
        if (param.keyword_only && draw.chance(0.5)) named.emplace_back(param.name, draw.argument(param));
      }
      if (draw.chance(0.02) && !arguments.empty()) arguments.pop_back();
      if (draw.chance(0.02)) named.emplace_back("nonsense", Value(int64_t{1}));
      capture::Arguments all = arguments;
      for (const auto& item : named) all.push_back(item.second);
      if (is_too_large(all)) continue;
      const bool in_place = op.in_place_variant && draw.chance(0.2);
      const std::string name = in_place ? op.schema.name + "_" : op.schema.full_name();
      std::string text = name + "(";
      for (const Value& value : arguments) text += describe(value) + ", ";
      for (const auto& [key, value] : named) text += key + "=" + describe(value) + ", ";
      if (std::getenv("STAX_TEST_TRACE") != nullptr) fmt::print(stderr, "{})\n", text);
      try {
        capture::call(name, arguments, named);
        ++returned;
      } catch (const UserError& error) {
        ++refused;
        EXPECT_NE(std::string(error.what()), "") << text;
      } catch (const RuntimeError& error) {  // sizes that exist, of which no machine has the memory
        EXPECT_NE(std::string(error.what()).find("memory"), std::string::npos)
            << text << "): " << error.what();
      } catch (const std::exception& error) {
        ADD_FAILURE() << text << "): " << error.what();
      }
    }
  }
  // Both kinds occur often, or the arguments drawn are not worth much.
  EXPECT_GT(returned, 3000);
  EXPECT_GT(refused, 3000);
}

}  // namespace
}  // namespace stax
