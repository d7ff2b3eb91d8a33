#include "reference/block_kernels.h"

namespace stax::reference {

const BlockKernels& block_kernels() {
  static const BlockKernels kernels = [] {
    BlockKernels k;
    fill_math(k);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("x86-64-v4")) {
      fill_elementwise_v4(k);
      fill_collective_v4(k);
      return k;
    }
    if (__builtin_cpu_supports("x86-64-v3")) {
      fill_elementwise_v3(k);
      fill_collective_v3(k);
      return k;
    }
#endif
    fill_elementwise_baseline(k);
    fill_collective_baseline(k);
    return k;
  }();
  return kernels;
}

}  // namespace stax::reference
