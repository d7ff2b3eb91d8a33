// The program under construction, and what the families of operators choose from.
#pragma once

#include <functional>

#include "fuzz/program.h"
#include "fuzz/random.h"

namespace stax::fuzz {

/// Kinds of dtype that an operator takes, as a set.
enum Kinds : uint8_t { kFloats = 1, kIntegers = 2, kBools = 4, kAny = 7, kNumbers = 3, kDiscrete = 6 };

/// What the elements of a program's inputs are like.
enum class Style : uint8_t {
  exact,  // small multiples of 1/4, so that most arithmetic is exact
  real,   // in [-3, 3)
  wide,   // of any magnitude
};

struct Traits {
  bool approximate = false;
  bool combines = false;
};

class Generator {
 public:
  explicit Generator(uint64_t seed);

  Random& random() { return random_; }
  graph::Builder& builder() { return builder_; }

  /// A value of these kinds; with `exact`, one that no approximate step leads to. With `accept`, one that it
  /// accepts. Nothing when there is none.
  std::optional<Ref> pick(uint8_t kinds, bool exact = false,
                          const std::function<bool(const graph::Var&)>& accept = {});
  graph::Var var(Ref ref) const { return values_.at(ref); }
  std::vector<int64_t> sizes(Ref ref) const;
  DType dtype(Ref ref) const { return var(ref).dtype(); }
  bool is_approximate(Ref ref) const;

  /// A new input with random data.
  Ref input(DType dtype, const std::vector<int64_t>& sizes);
  /// A new int64 input with elements in [low, high).
  Ref indices(const std::vector<int64_t>& sizes, int64_t low, int64_t high);
  /// An operand that broadcasts with `like`: a value, a new input or (where `numbers`) a number.
  RefArg operand_for(Ref like, uint8_t kinds, bool exact, bool numbers);
  RefArg number(uint8_t kinds);
  DType random_dtype(uint8_t kinds);
  std::vector<int64_t> random_sizes();
  /// A dimension of a tensor of `rank` > 0, counted from either end.
  int64_t random_dim(int64_t rank);
  /// A subset of the dimensions, in any order.
  std::vector<Expr> random_dims(int64_t rank);

  /// Appends the call unless the operator refuses it, or its results are too large.
  bool call(const std::string& op, std::vector<RefArg> args, Traits traits = {});

  Program take() { return std::move(program_); }
  Program& program() { return program_; }
  size_t value_count() const { return values_.inputs.size() + values_.results.size(); }

 private:
  Array random_array(DType dtype, const std::vector<int64_t>& sizes);
  std::vector<int64_t> random_strides(const std::vector<int64_t>& sizes);
  double random_element(DType dtype);
  double special_element(DType dtype);
  Ref add_input(Array array);

  Random random_;
  Style style_;
  bool specials_;
  int64_t max_elements_;
  ShapeEnv env_;
  graph::Graph graph_;
  graph::Builder builder_;
  Values values_;
  std::vector<char> approximate_;  // parallel to values_.results
  Program program_;
};

/// Appends a call of one family; false where nothing fits.
using Family = bool (*)(Generator& g);
bool add_unary(Generator& g);
bool add_binary(Generator& g);
bool add_ternary(Generator& g);
bool add_cast(Generator& g);
bool add_reduction(Generator& g);
bool add_scan(Generator& g);
bool add_normalization(Generator& g);
bool add_view(Generator& g);
bool add_rearrangement(Generator& g);
bool add_joining(Generator& g);
bool add_indexing(Generator& g);
bool add_scatter(Generator& g);
bool add_product(Generator& g);
bool add_factory(Generator& g);
bool add_random(Generator& g);

}  // namespace stax::fuzz
