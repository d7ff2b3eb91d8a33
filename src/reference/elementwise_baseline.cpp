// Elementwise block kernels for the compiler's default instruction set; see the included file.
#define STAX_LEVEL_FUNCTION fill_elementwise_baseline
#include "reference/elementwise.inc"
