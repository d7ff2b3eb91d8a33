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

# fused_sum_0
@triton_heuristics.persistent_reduction(size_hints={'x': 64, 'r0_': 128}, reduction_hint=ReductionHint.INNER, signature={'in_ptr0': '*fp32', 'in_ptr1': '*fp32', 'out_ptr0': '*fp32'}, grid='Grid1D', elements={'in_ptr0': 8192, 'in_ptr1': 8192, 'out_ptr0': 64}, numels={'x': 64, 'r0_': 128}, config={'XBLOCK': 8, 'num_warps': 2, 'num_stages': 1})
@triton.jit
def triton_per_fused_0(in_ptr0, in_ptr1, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr):
    xnumel = 64
    r0_numel = 128
    R0_BLOCK: tl.constexpr = 128
    rnumel = r0_numel
    RBLOCK: tl.constexpr = R0_BLOCK
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r0_index = tl.arange(0, R0_BLOCK)[None, :]
    r0_offset = 0
    r0_mask = tl.full([R0_BLOCK], True, tl.int1)[None, :]
    roffset = r0_offset
    rindex = r0_index
    r0_1 = r0_index
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (r0_1 + 128*x0), xmask, eviction_policy='evict_first', other=0.0)
    tmp1 = tl.load(in_ptr1 + (r0_1 + 128*x0), xmask, eviction_policy='evict_first', other=0.0)
    tmp2 = (tmp0 + tmp1)
    tmp3 = tl.full([1, 1], 0, tl.int32)
    tmp4 = tl.maximum(tmp3, tmp2, tl.PropagateNan.ALL)
    tmp5 = tl.full([1, 1], 2.0, tl.float32)
    tmp6 = (tmp4 * tmp5)
    tmp7 = tl.broadcast_to(tmp6, [XBLOCK, R0_BLOCK])
    tmp8 = tl.where(xmask, tmp7, 0)
    tmp9 = tl.sum(tmp8, 1)[:, None].to(tl.float32)
    tl.store(out_ptr0 + (x0), tmp9, xmask)


import numpy as np
from stax_triton import plain

# What the kernels have to compute, from the loops that they were made from. Arguments are flat arrays, each axis
# of np.ogrid is a loop.
def plain_0(in_ptr0: "in0", in_ptr1: "in1", out_ptr0: "out0"):
    i0, r0 = np.ogrid[:64, :128]
    tmp0 = in_ptr0[128*i0 + r0]
    tmp1 = in_ptr1[128*i0 + r0]
    tmp2 = tmp0 + tmp1
    tmp3 = np.maximum(tmp2, 0)
    tmp4 = tmp3 * 2.0
    tmp5 = plain.total(tmp4)
    out_ptr0[i0] = tmp5


if __name__ == "__main__":
    from stax_triton import standalone

    standalone.main(
        (triton_per_fused_0, plain_0),
    )
