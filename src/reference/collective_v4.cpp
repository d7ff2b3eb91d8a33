// Collective block kernels for x86-64-v4 (AVX-512); see the included file.
#if defined(__x86_64__)
#define STAX_LEVEL_FUNCTION fill_collective_v4
#include "reference/collective.inc"
#endif
