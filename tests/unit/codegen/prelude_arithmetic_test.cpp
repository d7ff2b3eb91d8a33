// Memory access, integer arithmetic, conversions and reductions of the prelude, against scalar C++ written
// out here.
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "stax/error.h"
#include "unit/codegen/prelude_harness.h"

namespace stax::codegen {
namespace {

class Prelude : public PreludeTest {};

template <class T>
constexpr const char* kToken = nullptr;
template <>
constexpr const char* kToken<uint8_t> = "u8";
template <>
constexpr const char* kToken<int8_t> = "i8";
template <>
constexpr const char* kToken<int16_t> = "i16";
template <>
constexpr const char* kToken<int32_t> = "i32";
template <>
constexpr const char* kToken<int64_t> = "i64";
template <>
constexpr const char* kToken<float> = "f32";
template <>
constexpr const char* kToken<double> = "f64";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// A kernel over arrays of any length in steps of N lanes, partial at the end: `call` uses x and z.
std::string kernel(const std::string& name, const std::string& in, const std::string& out,
                   const std::string& call) {
  return replaced(
      replaced(
          replaced(
              replaced(
                  "STAX_EXPORT void NAME(const IN* p, const IN* q, OUT* y, long n) { const long N = "
                  "(long)sizeof(vu8);"
                  " for (long i = 0; i < n; i += N) { int m = n - i < N ? n - i : N;"
                  " auto x = loadn_IN(p + i, m), z = loadn_IN(q + i, m); storen_OUT(y + i, CALL, m); } }\n",
                  "NAME", name),
              "IN", in),
          "OUT", out),
      "CALL", call);
}

template <class Out, class In>
std::vector<Out> run(const runtime::Module& module, const std::string& name, const std::vector<In>& x,
                     const std::vector<In>& z) {
  std::vector<Out> y(x.size());
  reinterpret_cast<void (*)(const In*, const In*, Out*, long)>(module.symbol(name))(
      x.data(), z.data(), y.data(), static_cast<long>(x.size()));
  return y;
}

template <class T>
std::vector<T> integers() {
  std::vector<T> values = {0,
                           1,
                           2,
                           3,
                           7,
                           5,
                           13,
                           63,
                           64,
                           65,
                           70,
                           100,
                           127,
                           static_cast<T>(-1),
                           static_cast<T>(-2),
                           static_cast<T>(-3),
                           static_cast<T>(-7),
                           static_cast<T>(-100),
                           std::numeric_limits<T>::min(),
                           std::numeric_limits<T>::max(),
                           static_cast<T>(std::numeric_limits<T>::min() + 1),
                           static_cast<T>(8),
                           static_cast<T>(31),
                           static_cast<T>(32)};
  return values;
}

template <class T>
struct Pairs {
  std::vector<T> x, z;
  explicit Pairs(const std::vector<T>& values) {
    for (T a : values)
      for (T b : values) x.push_back(a), z.push_back(b);
  }
};

using Wide = __int128;

template <class T>
void check_integers(const runtime::Module& module) {
  constexpr int bits = sizeof(T) * 8;
  const std::string t = kToken<T>;
  const Pairs<T> pairs(integers<T>());
  struct Row {
    const char* name;
    Wide (*reference)(Wide, Wide);
  };
  const Row rows[] = {
      {"add", [](Wide a, Wide b) { return a + b; }},
      {"sub", [](Wide a, Wide b) { return a - b; }},
      {"mul", [](Wide a, Wide b) { return a * b; }},
      {"min", [](Wide a, Wide b) { return a < b ? a : b; }},
      {"max", [](Wide a, Wide b) { return a > b ? a : b; }},
      {"and", [](Wide a, Wide b) { return a & b; }},
      {"or", [](Wide a, Wide b) { return a | b; }},
      {"xor", [](Wide a, Wide b) { return a ^ b; }},
      {"truncdiv", [](Wide a, Wide b) { return b == 0 ? Wide(0) : a / b; }},
      {"rem", [](Wide a, Wide b) { return b == 0 ? a : a % b; }},
      {"floordiv",
       [](Wide a, Wide b) {
         return b == 0 ? Wide(0) : a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
       }},
      {"mod",
       [](Wide a, Wide b) {
         return b == 0 ? a : (a % b != 0 && (a % b < 0) != (b < 0)) ? a % b + b : a % b;
       }},
      {"shl", [](Wide a, Wide b) { return b < 0 || b >= bits ? Wide(0) : a * (Wide(1) << int(b)); }},
      {"shr", [](Wide a, Wide b) { return b < 0 || b >= bits ? Wide(a < 0 ? -1 : 0) : a >> int(b); }}};
  for (const Row& row : rows) {
    const auto got = run<T>(module, std::string(row.name) + "_k_" + t, pairs.x, pairs.z);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(int64_t(got[i]), int64_t(static_cast<T>(row.reference(pairs.x[i], pairs.z[i]))))
          << row.name << "_" << t << "(" << int64_t(pairs.x[i]) << ", " << int64_t(pairs.z[i]) << ")";
  }
}

TEST_P(Prelude, IntegersWrapAndNeverTrap) {
  std::string body;
  for (const char* t : {"u8", "i8", "i16", "i32", "i64"})
    for (const char* name : {"add", "sub", "mul", "min", "max", "and", "or", "xor", "truncdiv", "rem",
                             "floordiv", "mod", "shl", "shr"})
      body += kernel(std::string(name) + "_k_" + t, t, t, std::string(name) + "_" + t + "(x, z)");
  auto module = compile(body);
  check_integers<uint8_t>(*module);
  check_integers<int8_t>(*module);
  check_integers<int16_t>(*module);
  check_integers<int32_t>(*module);
  check_integers<int64_t>(*module);
}

TEST_P(Prelude, ScalarFormsGiveWhatVectorsGive) {
  auto module = compile(
      "STAX_EXPORT float one(float a) { return s_exp_f32(a); }\n"
      "STAX_EXPORT int quotient(int a, int b) { return s_floordiv_i32(a, b); }\n"
      "STAX_EXPORT bool less(double a, double b) { return s_lt_f64(a, b); }\n"
      "STAX_EXPORT float pick(bool m, float a, float b) { return s_select_f32(m, a, b); }\n"
      "STAX_EXPORT float half(double a) { return s_cvt_f64_f16(a); }\n" +
      kernel("many", "f32", "f32", "exp_f32(x)"));
  std::vector<float> x;
  for (int i = 0; i < 77; ++i) x.push_back(static_cast<float>(i) * 0.37f - 9);
  const auto many = run<float>(*module, "many", x, x);
  auto one = reinterpret_cast<float (*)(float)>(module->symbol("one"));
  for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(one(x[i]), many[i]);
  EXPECT_EQ(reinterpret_cast<int (*)(int, int)>(module->symbol("quotient"))(-7, 2), -4);
  EXPECT_TRUE(reinterpret_cast<bool (*)(double, double)>(module->symbol("less"))(1, 2));
  EXPECT_FALSE(reinterpret_cast<bool (*)(double, double)>(module->symbol("less"))(2, 2));
  EXPECT_EQ(reinterpret_cast<float (*)(bool, float, float)>(module->symbol("pick"))(true, 3, 4), 3);
  EXPECT_EQ(reinterpret_cast<float (*)(double)>(module->symbol("half"))(2049.0), 2048);
}

/// The documented rule of float to integer: truncate, NaN is 0; int32 and int64 saturate; narrower types wrap
/// what int32 holds and are 0 for the rest.
template <class T>
T cast_reference(double value) {
  using Middle = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  if (std::isnan(value)) return 0;
  const double limit = std::ldexp(1.0, sizeof(Middle) * 8 - 1);
  if (sizeof(T) < sizeof(Middle) && std::abs(value) >= limit) return 0;
  const Middle middle = value >= limit   ? std::numeric_limits<Middle>::max()
                        : value < -limit ? std::numeric_limits<Middle>::min()
                                         : static_cast<Middle>(value);
  return static_cast<T>(middle);
}

template <class T, class F>
void check_cast(const runtime::Module& module) {
  std::vector<F> x = {F(-1.7),       F(0.5),          F(255.9),         F(300),           F(NAN),
                      F(INFINITY),   F(-INFINITY),    F(3e9),           F(-3e9),          F(-0.0),
                      F(2147483647), F(2147483648.0), F(-2147483648.0), F(-2147483904.0), F(9.3e18),
                      F(-9.3e18),    F(1e15),         F(-128.5),        F(127.99),        F(1e30),
                      F(70000.7),    F(-129)};
  const auto got = run<T>(module, std::string("cast_") + kToken<F> + kToken<T>, x, x);
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(int64_t(got[i]), int64_t(cast_reference<T>(x[i])))
        << kToken<F> << " " << x[i] << " to " << kToken<T>;
}

TEST_P(Prelude, FloatToIntegerSaturatesThenWraps) {
  std::string body;
  for (const char* f : {"f32", "f64"})
    for (const char* t : {"u8", "i8", "i16", "i32", "i64"})
      body += kernel(std::string("cast_") + f + t, f, t, std::string("cvt_") + f + "_" + t + "(x)");
  body += kernel("truth", "f32", "u8", "cvt_b8_u8(cvt_f32_b8(x))") +
          kernel("real", "i64", "f64", "cvt_i64_f64(x)") + kernel("sign", "i8", "i64", "cvt_i8_i64(x)") +
          kernel("zero", "u8", "i32", "cvt_u8_i32(x)");
  auto module = compile(body);
  check_cast<uint8_t, float>(*module);
  check_cast<int8_t, float>(*module);
  check_cast<int16_t, float>(*module);
  check_cast<int32_t, float>(*module);
  check_cast<int64_t, float>(*module);
  check_cast<uint8_t, double>(*module);
  check_cast<int8_t, double>(*module);
  check_cast<int16_t, double>(*module);
  check_cast<int32_t, double>(*module);
  check_cast<int64_t, double>(*module);
  const std::vector<float> x = {0.0f, -0.0f, 0.3f, NAN, -1};
  EXPECT_EQ(run<uint8_t>(*module, "truth", x, x), (std::vector<uint8_t>{0, 0, 1, 1, 1}));
  const std::vector<int64_t> big = {INT64_MAX, INT64_MIN, -1, (int64_t{1} << 53) + 1};
  EXPECT_EQ(run<double>(*module, "real", big, big), (std::vector<double>{0x1p63, -0x1p63, -1, 0x1p53}));
  const std::vector<int8_t> small = {-128, -1, 0, 127};
  EXPECT_EQ(run<int64_t>(*module, "sign", small, small), (std::vector<int64_t>{-128, -1, 0, 127}));
  const std::vector<uint8_t> bytes = {255, 128, 0};
  EXPECT_EQ(run<int32_t>(*module, "zero", bytes, bytes), (std::vector<int32_t>{255, 128, 0}));
}

/// Value of a binary float with the given widths of exponent and mantissa, by definition.
double decode(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1),
                 exponent = (bits >> mantissa_bits) & ((1u << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1 : 1;
  if (exponent == (1u << exponent_bits) - 1) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(double(mantissa), 1 - bias - mantissa_bits);
  return sign * std::ldexp(1 + std::ldexp(double(mantissa), -mantissa_bits), int(exponent) - bias);
}

TEST_P(Prelude, HalfTypesWidenExactlyAndRoundToNearestEven) {
  std::string body;
  for (const char* t : {"f16", "bf16"})
    body += replaced(
        "STAX_EXPORT void widen_@(const @* x, f32* y, long n) { const long N = (long)sizeof(vu8); for (long "
        "i = 0; i < n; i += N) store_f32(y + i, load_@(x + i)); }\n"
        "STAX_EXPORT void narrow_@(const f32* x, @* y, long n) { const long N = (long)sizeof(vu8); for (long "
        "i = 0; i < n; i += N) store_@(y + i, load_f32(x + i)); }\n"
        "STAX_EXPORT float scalar_@(const @* x) { return sload_@(x); }\nSTAX_EXPORT void put_@(@* x, float "
        "v) { sstore_@(x, v); }\n",
        "@", t);
  auto module = compile(body);
  for (const auto& [t, exponent_bits, mantissa_bits] : {std::tuple{"f16", 5, 10}, std::tuple{"bf16", 8, 7}}) {
    std::vector<uint16_t> all(65536);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    std::vector<float> wide(all.size());
    reinterpret_cast<void (*)(const uint16_t*, float*, long)>(module->symbol(std::string("widen_") + t))(
        all.data(), wide.data(), 65536);
    std::vector<float> x;
    for (size_t i = 0; i < all.size(); ++i) {
      const double want = decode(all[i], exponent_bits, mantissa_bits);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(wide[i])) << t << " " << i;
      } else {
        ASSERT_EQ(std::bit_cast<uint32_t>(wide[i]), std::bit_cast<uint32_t>(static_cast<float>(want)))
            << t << " " << i;
      }
      // Each value, the middle to the next one, and the floats beside the middle.
      const float middle = static_cast<float>((want + decode(all[i] + 1u, exponent_bits, mantissa_bits)) / 2);
      x.insert(x.end(),
               {wide[i], middle, std::nextafter(middle, INFINITY), std::nextafter(middle, -INFINITY)});
    }
    std::vector<uint16_t> narrow(x.size());
    reinterpret_cast<void (*)(const float*, uint16_t*, long)>(module->symbol(std::string("narrow_") + t))(
        x.data(), narrow.data(), static_cast<long>(x.size()));
    const uint16_t infinity = static_cast<uint16_t>(((1u << exponent_bits) - 1) << mantissa_bits);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        EXPECT_TRUE((narrow[i] & 0x7fff) > infinity) << t << " NaN became " << narrow[i];
        continue;
      }
      // The nearest of the neighbours in magnitude, even on a tie; past the largest number the next step is
      // infinity.
      const uint16_t sign = std::signbit(x[i]) ? 0x8000 : 0;
      const double magnitude = std::fabs(double(x[i]));
      uint16_t low = 0, high = infinity;
      while (high - low > 1) {
        const uint16_t mid = static_cast<uint16_t>((low + high) / 2);
        (decode(mid, exponent_bits, mantissa_bits) <= magnitude ? low : high) = mid;
      }
      const double below = decode(low, exponent_bits, mantissa_bits);
      const double above = high == infinity ? std::ldexp(1.0, 1 << (exponent_bits - 1))
                                            : decode(high, exponent_bits, mantissa_bits);
      const bool up =
          magnitude - below > above - magnitude || (magnitude - below == above - magnitude && (low & 1) != 0);
      ASSERT_EQ(narrow[i], (up ? high : low) | sign) << t << " " << std::hexfloat << x[i];
    }
    const uint16_t one = static_cast<uint16_t>(((1u << (exponent_bits - 1)) - 1) << mantissa_bits);
    EXPECT_EQ(reinterpret_cast<float (*)(const uint16_t*)>(module->symbol(std::string("scalar_") + t))(&one),
              1.0f);
    uint16_t stored = 0;
    reinterpret_cast<void (*)(uint16_t*, float)>(module->symbol(std::string("put_") + t))(&stored, 1.0f);
    EXPECT_EQ(stored, one);
  }
}

/// A page that may be used, followed by one that may not: accesses past the end are seen.
class GuardedPage {
 public:
  GuardedPage() : size_(static_cast<size_t>(sysconf(_SC_PAGESIZE))) {
    base_ = static_cast<char*>(
        mmap(nullptr, size_ * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base_ + size_, size_, PROT_NONE);
  }
  ~GuardedPage() { munmap(base_, size_ * 2); }
  char* end() { return base_ + size_; }

 private:
  size_t size_;
  char* base_;
};

TEST_P(Prelude, PartialAccessTouchesOnlyItsElements) {
  std::string body;
  const std::pair<const char*, int> tokens[] = {{"b8", 1},  {"u8", 1},  {"i8", 1},   {"i16", 2}, {"i32", 4},
                                                {"i64", 8}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}};
  for (const auto& [t, size] : tokens)
    body += replaced(
        "STAX_EXPORT void copy_@(const @* x, @* y, int n) { storen_@(y, loadn_@(x, n), n); }\n"
        "STAX_EXPORT void mask_@(const @* x, @* y, int n) { vm m = tail_b8(n); storem_@(y, loadm_@(x, m), "
        "m); "
        "}\n"
        "STAX_EXPORT void choose_@(const @* x, @* y, const u8* on) { vm m = load_b8(on); store_@(y, "
        "loadm_@(x, "
        "m)); storem_@(y + 64, load_@(x), m); }\n"
        "STAX_EXPORT void pad_@(const @* x, @* y, int n) { store_@(y, loadn_@(x, n)); }\n"
        "STAX_EXPORT void stride_@(const @* x, @* y, int n) { scattern_@(y, 2, gathern_@(x, 3, n), n); }\n"
        "STAX_EXPORT void strides_@(const @* x, @* y) { scatter_@(y, 2, gather_@(x, 3)); }\n"
        "STAX_EXPORT void stream_k_@(const @* x, @* y) { stream_@(y, load_@(x)); p_fence(); }\n"
        "STAX_EXPORT void pick_@(const @* x, @* y, const i32* at, int n) { vm m = tail_b8(n); vi32 i = "
        "loadn_i32(at, n);"
        " store_@(y, gatherm_@(x, i, m)); scatterm_@(y + 64, i, gatheri_@(x, i), m); scatteri_@(y + 192, "
        "iota_i32(), load_@(x)); }\n",
        "@", t);
  auto module = compile(body);
  GuardedPage source, target;
  for (const auto& [t, size] : tokens) {
    auto symbol = [&](const char* name) { return module->symbol(std::string(name) + "_" + t); };
    const auto element = static_cast<size_t>(size);
    for (int n = 0; n <= lanes(); ++n) {
      const size_t bytes = static_cast<size_t>(n) * element;
      char* x = source.end() - bytes;
      char* y = target.end() - bytes;
      for (size_t i = 0; i < bytes; ++i) x[i] = std::string(t) == "b8" ? 1 : static_cast<char>(i % 50 + 1);
      std::memset(target.end() - 600, 0x55, 600);
      reinterpret_cast<void (*)(const char*, char*, int)>(symbol("copy"))(x, y, n);
      EXPECT_EQ(std::memcmp(x, y, bytes), 0) << t << " " << n;
      EXPECT_TRUE(bytes == 600 || y[-1] == 0x55) << t << " " << n;
      std::memset(target.end() - 600, 0x55, 600);
      reinterpret_cast<void (*)(const char*, char*, int)>(symbol("mask"))(x, y, n);
      EXPECT_EQ(std::memcmp(x, y, bytes), 0) << t << " " << n;
      EXPECT_TRUE(bytes == 600 || y[-1] == 0x55) << t << " " << n;
      const size_t full = static_cast<size_t>(lanes()) * element;
      char* padded = target.end() - full;
      std::memset(padded, 0x55, full);
      reinterpret_cast<void (*)(const char*, char*, int)>(symbol("pad"))(x, padded, n);
      EXPECT_EQ(std::memcmp(x, padded, bytes), 0) << t << " " << n;
      for (size_t i = bytes; i < full; ++i) EXPECT_EQ(padded[i], 0) << t << " " << n;
    }
    // Strides 3 and 2; then indices.
    std::vector<char> in(element * 256), out(element * 256 + 64);
    for (size_t i = 0; i < in.size(); ++i)
      in[i] = std::string(t) == "b8" ? static_cast<char>((i * 7 / 3) % 2) : static_cast<char>((i * 37) % 101);
    char* aligned = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(out.data()) + 63) / 64 * 64);
    auto same = [&](int to, int from) {
      return std::memcmp(aligned + element * static_cast<size_t>(to),
                         in.data() + element * static_cast<size_t>(from), element) == 0;
    };
    reinterpret_cast<void (*)(const char*, char*)>(symbol("strides"))(in.data(), aligned);
    for (int i = 0; i < lanes(); ++i) EXPECT_TRUE(same(2 * i, 3 * i)) << t << " " << i;
    std::memset(aligned, 0, element * 200);
    reinterpret_cast<void (*)(const char*, char*, int)>(symbol("stride"))(in.data(), aligned, lanes() - 1);
    for (int i = 0; i < lanes() - 1; ++i) EXPECT_TRUE(same(2 * i, 3 * i)) << t << " " << i;
    reinterpret_cast<void (*)(const char*, char*)>(symbol("stream_k"))(in.data(), aligned);
    EXPECT_EQ(std::memcmp(aligned, in.data(), element * static_cast<size_t>(lanes())), 0) << t;
    std::vector<uint8_t> on(static_cast<size_t>(lanes()));
    for (size_t i = 0; i < on.size(); ++i) on[i] = i % 3 == 1;
    std::memset(aligned, 0, element * 200);
    reinterpret_cast<void (*)(const char*, char*, const uint8_t*)>(symbol("choose"))(in.data(), aligned,
                                                                                     on.data());
    const std::vector<char> zero(element);
    for (int i = 0; i < lanes(); ++i) {
      const bool chosen = on[static_cast<size_t>(i)] != 0;
      const char* kept = aligned + element * static_cast<size_t>(64 + i);
      EXPECT_TRUE(chosen ? same(i, i) : std::memcmp(kept - 64 * element, zero.data(), element) == 0) << t;
      EXPECT_TRUE(chosen ? same(64 + i, i) : std::memcmp(kept, zero.data(), element) == 0) << t << " " << i;
    }
    std::vector<int32_t> at(static_cast<size_t>(lanes()));
    for (size_t i = 0; i < at.size(); ++i) at[i] = static_cast<int32_t>((i * 11 + 5) % 64);
    reinterpret_cast<void (*)(const char*, char*, const int32_t*, int)>(symbol("pick"))(
        in.data(), aligned, at.data(), lanes() - 1);
    for (int i = 0; i + 1 < lanes(); ++i) {
      EXPECT_TRUE(same(i, at[static_cast<size_t>(i)])) << t << " " << i;
      EXPECT_TRUE(same(64 + at[static_cast<size_t>(i)], at[static_cast<size_t>(i)])) << t << " " << i;
      EXPECT_TRUE(same(192 + i, i)) << t << " " << i;
    }
  }
}

TEST_P(Prelude, ReductionsOverLanes) {
  std::string body;
  for (const char* t : {"u8", "i32", "i64", "f32", "f64"})
    for (const char* name : {"hsum", "hprod", "hmax", "hmin"})
      body += replaced(replaced("STAX_EXPORT @ r_#_@(const @* x) { return #_@(load_@(x)); }\n", "#", name),
                       "@", t);
  body +=
      "STAX_EXPORT bool any(const u8* x) { return hany_b8(load_b8(x)); } STAX_EXPORT bool all(const u8* x) { "
      "return hall_b8(load_b8(x)); }\n";
  auto module = compile(body);
  std::vector<float> x(static_cast<size_t>(lanes()));
  auto reduce = [&](const char* name) {
    return reinterpret_cast<float (*)(const float*)>(module->symbol(name))(x.data());
  };
  for (int i = 0; i < lanes(); ++i) x[static_cast<size_t>(i)] = static_cast<float>(i % 3) + 1;
  float sum = 0, product = 1;
  for (float v : x) sum += v, product *= v;
  EXPECT_EQ(reduce("r_hsum_f32"), sum);
  EXPECT_EQ(reduce("r_hprod_f32"), product);
  for (size_t where = 0; where < x.size(); ++where) {
    std::vector<float> before = x;
    x[where] = 100;
    EXPECT_EQ(reduce("r_hmax_f32"), 100);
    x[where] = -100;
    EXPECT_EQ(reduce("r_hmin_f32"), -100);
    x[where] = NAN;
    EXPECT_TRUE(std::isnan(reduce("r_hmax_f32")) && std::isnan(reduce("r_hmin_f32"))) << where;
    x = before;
  }
  std::vector<uint8_t> bytes(static_cast<size_t>(lanes()), 200), flags(bytes.size(), 0);
  EXPECT_EQ(reinterpret_cast<uint8_t (*)(const uint8_t*)>(module->symbol("r_hsum_u8"))(bytes.data()),
            static_cast<uint8_t>(200 * lanes()));
  auto any = reinterpret_cast<bool (*)(const uint8_t*)>(module->symbol("any"));
  auto all = reinterpret_cast<bool (*)(const uint8_t*)>(module->symbol("all"));
  EXPECT_FALSE(any(flags.data()));
  for (size_t where = 0; where < flags.size(); ++where) {
    flags[where] = 1;
    EXPECT_TRUE(any(flags.data()));
    EXPECT_EQ(all(flags.data()), where + 1 == flags.size());
    if (where + 1 < flags.size()) flags[where] = 1;
  }
}

TEST_P(Prelude, FloatComparisonsMinMaxAndFloorDivision) {
  std::string body;
  for (const char* name : {"min", "max", "floordiv", "truncdiv"})
    body += kernel(std::string(name) + "_k", "f32", "f32", std::string(name) + "_f32(x, z)");
  for (const char* name : {"eq", "ne", "lt", "le", "gt", "ge"})
    body += kernel(std::string(name) + "_k", "f32", "u8", "cvt_b8_u8(" + std::string(name) + "_f32(x, z))");
  body += kernel("sign_k", "f32", "f32", "sign_f32(x)") + kernel("abs_k", "f32", "f32", "abs_f32(x)") +
          kernel("where_k", "f32", "f32", "select_f32(isnan_f32(x), z, x)");
  auto module = compile(body);
  const Pairs<float> pairs(
      {0.0f, -0.0f, 1, -1, 2.5f, -2.5f, 7, -7, INFINITY, -INFINITY, NAN, 1e-45f, 3e38f, 0.1f});
  struct Row {
    const char* name;
    bool (*reference)(float, float);
  };
  const Row rows[] = {
      {"eq", [](float a, float b) { return a == b; }}, {"ne", [](float a, float b) { return a != b; }},
      {"lt", [](float a, float b) { return a < b; }},  {"le", [](float a, float b) { return a <= b; }},
      {"gt", [](float a, float b) { return a > b; }},  {"ge", [](float a, float b) { return a >= b; }}};
  for (const Row& row : rows) {
    const auto got = run<uint8_t>(*module, std::string(row.name) + "_k", pairs.x, pairs.z);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_EQ(got[i], row.reference(pairs.x[i], pairs.z[i]))
          << row.name << " " << pairs.x[i] << " " << pairs.z[i];
  }
  const auto least = run<float>(*module, "min_k", pairs.x, pairs.z),
             most = run<float>(*module, "max_k", pairs.x, pairs.z);
  const auto where = run<float>(*module, "where_k", pairs.x, pairs.z);
  const auto magnitude = run<float>(*module, "abs_k", pairs.x, pairs.z),
             sign = run<float>(*module, "sign_k", pairs.x, pairs.z);
  for (size_t i = 0; i < least.size(); ++i) {
    const float a = pairs.x[i], b = pairs.z[i];
    if (std::isnan(a) || std::isnan(b)) {
      EXPECT_TRUE(std::isnan(least[i]) && std::isnan(most[i])) << a << " " << b;
    } else {
      EXPECT_TRUE(least[i] == std::fmin(a, b) && most[i] == std::fmax(a, b)) << a << " " << b;
    }
    EXPECT_TRUE(std::isnan(a) ? (where[i] == b || std::isnan(b)) : where[i] == a);
    EXPECT_EQ(sign[i], a > 0 ? 1 : a < 0 ? -1 : 0);
    EXPECT_TRUE(std::isnan(a) || magnitude[i] == std::fabs(a));
    EXPECT_FALSE(std::signbit(magnitude[i]) && !std::isnan(a));
  }
  // Floor of the exact quotient of the two floats: signs, zero, infinities.
  const std::vector<float> x = {7, -7, 7, -7, 1, -1, 0, INFINITY, 1, -1, 6, 0.6f},
                           y = {2, 2, -2, -2, 0, 0, 0, 2, INFINITY, INFINITY, 0.1f, 0.2f};
  const auto floors = run<float>(*module, "floordiv_k", x, y);
  const float want[] = {3, -4, -4, 3, INFINITY, -INFINITY, NAN, NAN, 0, -1, 59, 3};
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_TRUE(std::isnan(want[i]) ? std::isnan(floors[i]) : floors[i] == want[i])
        << x[i] << " // " << y[i] << " = " << floors[i];
}

TEST(PreludeText, NamesAreFoundAndClosedOver) {
  EXPECT_EQ(prelude_names("y = exp_f32(load_f32(p)) + exp_f32(q); // p_widen_f16"),
            (std::vector<std::string>{"exp_f32", "load_f32"}));
  const std::string text = prelude({64, 16, {"sigmoid_f32"}});
  EXPECT_NE(text.find("vf32 exp_f32(vf32 a)"), std::string::npos);
  EXPECT_LT(text.find("vf32 exp_f32(vf32 a)"), text.find("vf32 sigmoid_f32(vf32 a)"));
  EXPECT_EQ(text.find("#include"), std::string::npos);
  EXPECT_EQ(text.find("tanh"), std::string::npos);
  EXPECT_EQ(text, prelude({64, 16, {"sigmoid_f32", "exp_f32", "exp_f32"}}));
  EXPECT_THROW(prelude({64, 16, {"no_such_f32"}}), InternalError);
  EXPECT_THROW(prelude({64, 24, {}}), InternalError);
}

TEST_P(Prelude, EveryFunctionIsThereForEveryShape) {
  const std::string text = prelude({GetParam().vector_bytes, GetParam().lanes, all_prelude_names()});
  for (const std::string& name : all_prelude_names())
    EXPECT_NE(text.find(" " + name + "("), std::string::npos) << name;
  auto module = compile_text(
      GetParam(), text + "extern \"C\" __attribute__((visibility(\"default\"))) int ok() { return 1; }\n");
  EXPECT_EQ(reinterpret_cast<int (*)()>(module->symbol("ok"))(), 1);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Prelude, ::testing::ValuesIn(runnable_shapes()),
                         ::testing::PrintToStringParamName());

}  // namespace
}  // namespace stax::codegen
