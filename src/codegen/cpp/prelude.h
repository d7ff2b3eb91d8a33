// The text that a generated CPU kernel begins with: types, memory access, arithmetic, conversions and
// mathematics on vectors. It includes no header, because headers cost more to compile than the kernel does.
//
// Lanes. All vectors of one kernel have the same number of lanes N = vector_bytes / (size of the largest
// element the kernel computes with), half types counting 4. A kernel of float32 alone on AVX-512 has 16
// lanes; one that also touches int64 or float64 has 8, and its float32 vectors are half registers.
//
// Tokens. Every name ends in the token of a dtype: b8 (bool), u8, i8, i16, i32, i64, f16, bf16, f32, f64.
//   scalar types    f32, i64, ...; b8 is stored as a byte 0 or 1, f16 and bf16 as their 16 bits (unsigned
//   short) vector types    vu8 vi8 vi16 vi32 vi64 vf32 vf64 (and vu16 vu32 vu64 for bit tricks) bool in
//   registers a mask `vm`: lanes 0 or -1, as wide as the largest element f16, bf16       in registers always
//   vf32; an explicit cast is cvt_f32_f16, which rounds and stays vf32
// Below, T is a token, V the register type of T (vm for b8, vf32 for f16 and bf16), S the scalar type in
// memory. `*` marks a name that also has a scalar form: s_NAME takes and returns scalars (bool for masks,
// float for f16 and bf16) and computes with the vector form, so that a value never depends on the lane that
// computed it.
//
// Memory (p needs the alignment of an element only; n is an int in [0, N]; strides and indices count
// elements; I is vi32 or vi64):
//   V load_T(const S* p)
//   V loadn_T(const S* p, int n)         lanes >= n are zero, and not read
//   V loadm_T(const S* p, vm m)          lanes that are off are zero, and not read
//   V gather_T(const S* p, i64 stride)   V gathern_T(const S* p, i64 stride, int n)
//   V gatheri_T(const S* p, I index)     V gatherm_T(const S* p, I index, vm m)
//   void store_T(S* p, V v)              void storen_T(S* p, V v, int n)    void storem_T(S* p, V v, vm m)
//   void stream_T(S* p, V v)             non-temporal, p aligned to N elements; then p_fence() once
//   void scatter_T(S* p, i64 stride, V v)   void scattern_T(S* p, i64 stride, V v, int n)
//   void scatteri_T(S* p, I index, V v)     void scatterm_T(S* p, I index, V v, vm m)   in ascending order
//   V splat_T(s)                         float for f16 and bf16
//   V iota_T()                           0, 1, ... (numbers only)
//   vm tail_b8(int n)                    lanes < n are on
//   void prefetch(const void* p)
//   scalars of f16 and bf16 in memory: float sload_T(const S* p), void sstore_T(S* p, float v)
// Arithmetic (T = u8 i8 i16 i32 i64 f32 f64; integers wrap)
//   *add *sub *mul *neg *abs *sign *min *max (NaN propagates) *sq; *eq *ne *lt *le *gt *ge -> vm;
//   *select_T(vm, V, V) select_b8(vm, vm, vm); *and_b8 *or_b8 *xor_b8 *not_b8 integers: *floordiv *truncdiv
//   *mod (sign of the divisor) *rem (sign of the dividend): quotient by 0 is 0 and
//     remainder the dividend, MIN / -1 is MIN; *and *or *xor *not; *shl *shr: a count outside [0, bits) gives
//     0, or the sign for shr of a negative number
//   floats: *div *floordiv *truncdiv *mod *fmod (both exact) *relu *isnan *isinf *isfinite *signbit -> vm
// Conversion: *cvt_FROM_TO for all pairs of tokens (f16 and bf16 count as f32 when FROM). float -> integer
// truncates,
//   saturates for i32 and i64, narrower targets wrap what int32 holds and are 0 for the rest; x -> bool is x
//   != 0. bits_f32_i32, bits_i32_f32, bits_f64_i64, bits_i64_f64: the same bits.
// Reduction over lanes (a fixed tree): S hsum_T hprod_T hmax_T hmin_T (V), bool hany_b8(vm) hall_b8(vm)
// Mathematics (f32 and f64), all *:
//   unary   sqrt rsqrt recip exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan sinh cosh tanh
//   asinh
//           acosh atanh sigmoid erf erfc erfinv lgamma digamma cbrt floor ceil trunc round (half to even)
//   binary  pow atan2 hypot copysign nextafter
//   ternary fma (fused where the target has it, else two roundings; for polynomials, not for user arithmetic)
// Results of exp below the smallest normal number are flushed to zero.
// The text may stand inside a namespace, so that one module can hold kernels of several lane counts (kernels
// are extern "C"). Where it calls a library it says so in a line `// link: NAME`, which runtime::HostCompiler
// reads. Kernels compile with -ffp-contract=off -fno-math-errno -fno-trapping-math -fwrapv.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stax/dtype.h"

namespace stax::codegen {

/// What a prelude is asked for.
struct PreludeRequest {
  /// 64 (x86-64-v4), 32 (x86-64-v3) or 16 (no instruction beyond the compiler's own vectors).
  int vector_bytes = 16;
  /// Lanes of every vector: at least 2, at most vector_bytes.
  int lanes = 4;
  /// Names of functions that the kernel calls; what they call is added. Unknown names are an internal error.
  std::vector<std::string> names;
};

/// The prelude's text for `request`; equal requests give equal text, whatever the order of names.
std::string prelude(const PreludeRequest& request);

/// The names of prelude functions that occur as identifiers in `text`, sorted, each once.
std::vector<std::string> prelude_names(std::string_view text);

/// Every name that the prelude offers, sorted.
const std::vector<std::string>& all_prelude_names();

/// "b8", "u8", ..., "f64".
std::string_view token(DType dtype);
/// The token of the type that values of `dtype` have in registers: f32 for f16 and bf16, else its own.
std::string_view compute_token(DType dtype);

}  // namespace stax::codegen
