// Collective block kernels for the compiler's default instruction set; see the included file.
#define STAX_LEVEL_FUNCTION fill_collective_baseline
#include "reference/collective.inc"
