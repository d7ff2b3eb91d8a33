"""libdevice: CUDA's functions when kernels are compiled, NumPy's when they are interpreted. So with what takes a GPU's own
instructions."""

import os

import triton
import triton.language as tl

INTERPRETING = os.environ.get("TRITON_INTERPRET") == "1"

if INTERPRETING:
    from stax_triton import interpreted_math as libdevice
    from stax_triton.interpreted_math import atomic_add, exp2_flushed, reciprocal_flushed  # noqa: F401
else:
    from triton.language.extra.cuda import libdevice  # noqa: F401

    @triton.jit
    def atomic_add(pointer, value, mask):
        tl.atomic_add(pointer, value, mask)

    # By one instruction, to 2 units in the last place; subnormal numbers are 0.
    @triton.jit
    def exp2_flushed(x):
        return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)

    @triton.jit
    def reciprocal_flushed(x):
        return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
