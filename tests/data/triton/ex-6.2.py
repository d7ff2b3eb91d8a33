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
@triton_heuristics.reduction(size_hints={'x': 128, 'r0_': 8192}, reduction_hint=ReductionHint.INNER, signature={'in_ptr0': '*fp32', 'out_ptr0': '*fp32'}, grid='Grid1D', elements={'in_ptr0': 1048576, 'out_ptr0': 128}, numels={'x': 128, 'r0_': 8192}, config={'XBLOCK': 1, 'R0_BLOCK': 4096, 'num_warps': 4, 'num_stages': 1})
@triton.jit
def triton_red_fused_0(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr, R0_BLOCK : tl.constexpr):
    xnumel = 128
    r0_numel = 8192
    rnumel = r0_numel
    RBLOCK: tl.constexpr = R0_BLOCK
    xoffset = tl.program_id(0) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r0_base = tl.arange(0, R0_BLOCK)[None, :]
    rbase = r0_base
    x0 = xindex
    _tmp0 = tl.full([XBLOCK, R0_BLOCK], 0, tl.float32)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + r0_base
        r0_mask = r0_index < r0_numel
        roffset = r0_offset
        rindex = r0_index
        r0_1 = r0_index
        tmp1 = tl.load(in_ptr0 + (r0_1 + 8192*x0), r0_mask & xmask, eviction_policy='evict_first', other=0.0)
        tmp2 = (tmp1 * tmp1)
        tmp3 = tl.broadcast_to(tmp2, [XBLOCK, R0_BLOCK])
        tmp4 = (_tmp0 + tmp3)
        _tmp0 = tl.where(r0_mask & xmask, tmp4, _tmp0)
    tmp5 = tl.sum(_tmp0, 1)[:, None]
    tl.store(out_ptr0 + (x0), tmp5, xmask)


import triton
import triton.language as tl
from stax_triton.runtime import ReductionHint, TileHint, libdevice, triton_helpers, triton_heuristics

# fused_sum_1
@triton_heuristics.persistent_reduction(size_hints={'x': 64, 'r0_': 2}, reduction_hint=ReductionHint.INNER, signature={'in_ptr0': '*fp32', 'out_ptr0': '*fp32'}, grid='Grid1D', elements={'in_ptr0': 128, 'out_ptr0': 64}, numels={'x': 64, 'r0_': 2}, config={'XBLOCK': 64, 'num_warps': 1, 'num_stages': 1})
@triton.jit
def triton_per_fused_1(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr):
    xnumel = 64
    r0_numel = 2
    R0_BLOCK: tl.constexpr = 2
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
    tmp0 = tl.load(in_ptr0 + (r0_1 + 2*x0), r0_mask & xmask, eviction_policy='evict_first', other=0.0)
    tmp1 = tl.broadcast_to(tmp0, [XBLOCK, R0_BLOCK])
    tmp2 = tl.where(r0_mask & xmask, tmp1, 0)
    tmp3 = tl.sum(tmp2, 1)[:, None].to(tl.float32)
    tl.store(out_ptr0 + (x0), tmp3, xmask)


import numpy as np
from stax_triton import plain

# What the kernels have to compute, from the loops that they were made from. Arguments are flat arrays, each axis
# of np.ogrid is a loop.
def plain_0(in_ptr0: "in0", out_ptr0: "buf1"):
    i0, r0 = np.ogrid[:128, :8192]
    tmp0 = in_ptr0[8192*i0 + r0]
    tmp1 = tmp0 * tmp0
    tmp2 = plain.total(tmp1)
    out_ptr0[i0] = tmp2


def plain_1(in_ptr0: "buf1", out_ptr0: "out0"):
    i0, r0 = np.ogrid[:64, :2]
    tmp0 = in_ptr0[2*i0 + r0]
    tmp1 = plain.total(tmp0)
    out_ptr0[i0] = tmp1


if __name__ == "__main__":
    from stax_triton import standalone

    standalone.main(
        (triton_red_fused_0, plain_0),
        (triton_per_fused_1, plain_1),
    )
