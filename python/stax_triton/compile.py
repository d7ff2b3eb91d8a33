"""Compiles generated kernels for a named architecture, with no GPU present."""

import contextlib
import importlib.util
import inspect
import io
import re
import sys

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from stax_triton.heuristics import Kernel

# What a launch passes after the kernel's own arguments: global scratch memory and profile scratch memory.
SCRATCH_POINTERS = 2


def load_kernel(path, name):
    """The kernel `name` of a generated file."""
    spec = importlib.util.spec_from_file_location("stax_generated", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where Triton looks the globals of a kernel up
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    kernel = getattr(module, name, None)
    if not isinstance(kernel, Kernel):
        raise ValueError(f"the file defines no kernel {name}")
    return kernel


def argument_types(kernel, blocks, wide):
    """Name to type of each parameter, in order; "constexpr" for the block sizes."""
    size = "i64" if wide else "i32"
    return {
        name: "constexpr" if name in blocks else kernel.signature.get(name, size)
        for name in inspect.signature(kernel.fn.fn).parameters
    }


def compile_kernel(kernel, capability, blocks, warps, stages=1, wide=False, divisible=()):
    """The compiled kernel for sm_`capability`: attributes asm["cubin"] and metadata.

    `blocks` gives the block parameters their values; `divisible` names the arguments that are multiples of 16."""
    signature = argument_types(kernel, blocks, wide)
    constants, attributes = {}, {}
    for position, name in enumerate(signature):
        if name in blocks:
            constants[(position,)] = blocks[name]
        if name in divisible:
            attributes[(position,)] = [["tt.divisibility", 16]]
    source = ASTSource(fn=kernel.fn, signature=signature, constexprs=constants, attrs=attributes)
    options = {"num_warps": warps, "num_stages": stages, "enable_fp_fusion": False}
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def compile_with_log(kernel, **how):
    """The compiled kernel, and what the assembler says of its registers."""
    knobs.nvidia.dump_ptxas_log = True
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        compiled = compile_kernel(kernel, **how)
    return compiled, said.getvalue()


def resources(log):
    """(registers of a thread, bytes it spills) by the assembler's log."""
    registers = re.findall(r"Used (\d+) registers", log)
    spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", log)
    if len(registers) != 1 or len(spills) != 2:
        raise ValueError(f"the assembler's log is not understood: {log!r}")
    return int(registers[0]), sum(map(int, spills))


def check_parameters(ptx, expected):
    """Raises where the kernel's entry does not take what a launch passes."""
    entry = re.search(r"\.visible \.entry \w+\(([^)]*)\)", ptx)
    count = entry.group(1).count(".param") if entry else 0
    if count != expected:
        raise ValueError(
            f"Triton {triton.__version__} made a kernel of {count} parameters where a launch passes {expected}"
        )
