"""libdevice: CUDA's functions when kernels are compiled, NumPy's when they are interpreted."""

import os

import triton
import triton.language as tl

INTERPRETING = os.environ.get("TRITON_INTERPRET") == "1"

if INTERPRETING:
    from stax_triton import interpreted_math as libdevice
    from stax_triton.interpreted_math import atomic_add  # noqa: F401
else:
    from triton.language.extra.cuda import libdevice  # noqa: F401

    @triton.jit
    def atomic_add(pointer, value, mask):
        tl.atomic_add(pointer, value, mask)
