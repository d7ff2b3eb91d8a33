// Matrix products on any machine; see the included file.
#define STAX_LEVEL_FUNCTION fill_multiply_baseline
#define STAX_VECTOR_BYTES 16
#include "kernels/multiply.inc"
