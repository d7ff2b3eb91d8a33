// Matrix products for x86-64-v4 (AVX-512); see the included file.
#if defined(__x86_64__)
#pragma GCC target("arch=x86-64-v4")
#define STAX_LEVEL_FUNCTION fill_multiply_v4
#define STAX_VECTOR_BYTES 64
#include "kernels/multiply.inc"
#endif
