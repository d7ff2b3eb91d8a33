#include "kernels/multiply.h"

namespace stax::kernels {

const MultiplyKernels& multiply_kernels() {
  static const MultiplyKernels kernels = [] {
    MultiplyKernels k;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("x86-64-v4")) {
      fill_multiply_v4(k);
      return k;
    }
    if (__builtin_cpu_supports("x86-64-v3")) {
      fill_multiply_v3(k);
      return k;
    }
#endif
    fill_multiply_baseline(k);
    return k;
  }();
  return kernels;
}

}  // namespace stax::kernels
