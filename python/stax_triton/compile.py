"""Compiles generated kernels for a named architecture, with no GPU present."""

import inspect

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def compile_kernel(kernel, capability, blocks, warps, stages=1, wide=False, divisible=()):
    """The compiled kernel for sm_`capability`: attributes asm["cubin"] and metadata.

    `blocks` gives the block parameters their values; `divisible` names the arguments that are multiples of 16."""
    names = list(inspect.signature(kernel.fn.fn).parameters)
    signature, constants, attributes = {}, {}, {}
    for position, name in enumerate(names):
        if name in blocks:
            signature[name] = "constexpr"
            constants[(position,)] = blocks[name]
        else:
            signature[name] = kernel.signature.get(name, "i64" if wide else "i32")
        if name in divisible:
            attributes[(position,)] = [["tt.divisibility", 16]]
    source = ASTSource(fn=kernel.fn, signature=signature, constexprs=constants, attrs=attributes)
    options = {"num_warps": warps, "num_stages": stages, "enable_fp_fusion": False}
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)
