// Matrix products for x86-64-v3 (AVX2); see the included file.
#if defined(__x86_64__)
#pragma GCC target("arch=x86-64-v3")
#define STAX_LEVEL_FUNCTION fill_multiply_v3
#define STAX_VECTOR_BYTES 32
#include "kernels/multiply.inc"
#endif
