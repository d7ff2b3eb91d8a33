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
@triton_heuristics.pointwise(size_hints={'x': 2048}, signature={'in_ptr0': '*fp32', 'in_ptr1': '*fp32', 'out_ptr0': '*fp32'}, grid='Grid1D', elements={'in_ptr0': 1, 'in_ptr1': 2048, 'out_ptr0': 2048}, numels={'x': 2048}, config={'XBLOCK': 1024, 'num_warps': 4, 'num_stages': 1})
@triton.jit
def triton_poi_fused_0(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 2048
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (0))
    tmp1 = tl.broadcast_to(tmp0, [XBLOCK])
    tmp2 = tl.load(in_ptr1 + (x0), xmask)
    tmp3 = tl.full([1], 0.7071067811865476, tl.float32)
    tmp4 = (tmp2 * tmp3)
    tmp5 = libdevice.erf(tmp4)
    tmp6 = tl.full([1], 1.0, tl.float32)
    tmp7 = (tmp6 + tmp5)
    tmp8 = tl.full([1], 0.5, tl.float32)
    tmp9 = (tmp8 * tmp7)
    tmp10 = (tmp2 * tmp2)
    tmp11 = tl.full([1], -0.5, tl.float32)
    tmp12 = (tmp11 * tmp10)
    tmp13 = libdevice.exp(tmp12)
    tmp14 = tl.full([1], 0.3989422804014327, tl.float32)
    tmp15 = (tmp14 * tmp13)
    tmp16 = (tmp2 * tmp15)
    tmp17 = (tmp9 + tmp16)
    tmp18 = (tmp1 * tmp17)
    tl.store(out_ptr0 + (x0), tmp18, xmask)


import numpy as np
from stax_triton import plain

# What the kernels have to compute, from the loops that they were made from. Arguments are flat arrays, each axis
# of np.ogrid is a loop.
def plain_0(in_ptr0: "in0", in_ptr1: "in1", out_ptr0: "out0"):
    i0 = np.ogrid[:2048]
    tmp0 = in_ptr0[0]
    tmp1 = in_ptr1[i0]
    tmp2 = tmp1 * 0.7071067811865476
    tmp3 = plain.erf(tmp2)
    tmp4 = 1.0 + tmp3
    tmp5 = 0.5 * tmp4
    tmp6 = tmp1 * tmp1
    tmp7 = -0.5 * tmp6
    tmp8 = np.exp(tmp7)
    tmp9 = 0.3989422804014327 * tmp8
    tmp10 = tmp1 * tmp9
    tmp11 = tmp5 + tmp10
    tmp12 = tmp0 * tmp11
    out_ptr0[i0] = tmp12


if __name__ == "__main__":
    from stax_triton import standalone

    standalone.main(
        (triton_poi_fused_0, plain_0),
    )
