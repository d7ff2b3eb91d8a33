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

# fused_amax_exp_sum_copy_0
@triton_heuristics.persistent_reduction(size_hints={'x': 256, 'r0_': 1024}, reduction_hint=ReductionHint.INNER, signature={'in_ptr0': '*fp32', 'out_ptr0': '*fp32'}, grid='Grid1D', elements={'in_ptr0': 256000, 'out_ptr0': 256000}, numels={'x': 256, 'r0_': 1000}, config={'XBLOCK': 1, 'num_warps': 2, 'num_stages': 1})
@triton.jit
def triton_per_fused_0(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr):
    xnumel = 256
    r0_numel = 1000
    R0_BLOCK: tl.constexpr = 1024
    rnumel = r0_numel
    RBLOCK: tl.constexpr = R0_BLOCK
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r0_index = tl.arange(0, R0_BLOCK)[None, :]
    r0_offset = 0
    r0_mask = r0_index < r0_numel
    roffset = r0_offset
    rindex = r0_index
    r0_1 = r0_index
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (r0_1 + 1000*x0), r0_mask & xmask, eviction_policy='evict_first', other=0.0)
    tmp1 = tl.broadcast_to(tmp0, [XBLOCK, R0_BLOCK])
    tmp2 = tl.where(r0_mask & xmask, tmp1, float("-inf"))
    tmp3 = triton_helpers.max2(tmp2, 1)[:, None].to(tl.float32)
    tmp4 = (tmp0 - tmp3)
    tmp5 = libdevice.exp(tmp4)
    tmp6 = tl.broadcast_to(tmp5, [XBLOCK, R0_BLOCK])
    tmp7 = tl.where(r0_mask & xmask, tmp6, 0)
    tmp8 = tl.sum(tmp7, 1)[:, None].to(tl.float32)
    tmp9 = (tmp5 / tmp8)
    tl.store(out_ptr0 + (r0_1 + 1000*x0), tmp9, r0_mask & xmask)


import numpy as np
from stax_triton import plain

# What the kernels have to compute, from the loops that they were made from. Arguments are flat arrays, each axis
# of np.ogrid is a loop.
def plain_0(in_ptr0: "in0", out_ptr0: "out0"):
    i0, r0 = np.ogrid[:256, :1000]
    tmp0 = in_ptr0[1000*i0 + r0]
    tmp1 = plain.largest(tmp0)
    tmp2 = tmp0 - tmp1
    tmp3 = np.exp(tmp2)
    tmp4 = plain.total(tmp3)
    tmp5 = tmp3 / tmp4
    out_ptr0[1000*i0 + r0] = tmp5


if __name__ == "__main__":
    from stax_triton import standalone

    standalone.main(
        (triton_per_fused_0, plain_0),
    )
