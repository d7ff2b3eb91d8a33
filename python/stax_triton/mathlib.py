"""libdevice: CUDA's functions when kernels are compiled, NumPy's when they are interpreted."""

import os

INTERPRETING = os.environ.get("TRITON_INTERPRET") == "1"

if INTERPRETING:
    from stax_triton import interpreted_math as libdevice
else:
    from triton.language.extra.cuda import libdevice  # noqa: F401
