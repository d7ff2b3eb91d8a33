# Run by itself, this file checks its kernels and times them: PYTHONPATH=python python FILE [--help]
if __name__ == "__main__":
    try:
        from stax_triton import requirements
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"{error}: set PYTHONPATH to the folder python of Stax's sources (installed: share/stax/python)"
        ) from None
    requirements.check()

import triton
import triton.language as tl
from stax_triton.runtime import ReductionHint, TileHint, libdevice, triton_helpers, triton_heuristics

# fused_copy_0
@triton_heuristics.pointwise(size_hints={'y': 256, 'x': 512}, tile_hint=TileHint.DEFAULT, signature={'in_ptr0': '*fp32', 'in_ptr1': '*fp32', 'out_ptr0': '*fp32'}, grid='Grid2D', elements={'in_ptr0': 131072, 'in_ptr1': 131072, 'out_ptr0': 131072}, numels={'y': 256, 'x': 512}, config={'YBLOCK': 32, 'XBLOCK': 32, 'num_warps': 4, 'num_stages': 1})
@triton.jit
def triton_poi_fused_0(in_ptr0, in_ptr1, out_ptr0, ynumel, xnumel, YBLOCK : tl.constexpr, XBLOCK : tl.constexpr):
    ynumel = 256
    xnumel = 512
    yoffset = tl.program_id(1) * YBLOCK
    yindex = yoffset + tl.arange(0, YBLOCK)[:, None]
    ymask = yindex < ynumel
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[None, :]
    xmask = xindex < xnumel
    x1 = xindex
    y0 = yindex
    tmp0 = tl.load(in_ptr0 + (256*x1 + y0), xmask & ymask)
    tmp1 = tl.load(in_ptr1 + (x1 + 512*y0), xmask & ymask)
    tmp2 = (tmp0 + tmp1)
    tl.store(out_ptr0 + (x1 + 512*y0), tmp2, xmask & ymask)


import numpy as np
from stax_triton import plain

# What the kernels have to compute, from the loops that they were made from. Arguments are flat arrays, each axis
# of np.ogrid is a loop.
def plain_0(in_ptr0: "in0", in_ptr1: "in1", out_ptr0: "out0"):
    i0, i1 = np.ogrid[:256, :512]
    tmp0 = in_ptr0[i0 + 256*i1]
    tmp1 = in_ptr1[512*i0 + i1]
    tmp2 = tmp0 + tmp1
    out_ptr0[512*i0 + i1] = tmp2


if __name__ == "__main__":
    from stax_triton import standalone

    standalone.main(
        (triton_poi_fused_0, plain_0),
    )
