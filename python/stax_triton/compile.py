"""Compiles generated kernels for a named architecture, with no GPU present."""

import contextlib
import importlib
import importlib.util
import inspect
import io
import os
import re
import subprocess
import sys
import tempfile

import triton
import triton.language as tl
from triton import knobs
from triton._C.libtriton import nvidia
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import CUDAOptions
from triton.compiler import ASTSource

from stax_triton.heuristics import Kernel

for _name in ("triton.runtime.cache", "triton.compiler.compiler", "triton.runtime.jit"):
    # Triton hashes its 400 MB of code for keys of its own cache, which nothing here asks twice.
    _module = importlib.import_module(_name)
    if hasattr(_module, "triton_key"):
        _module.triton_key = lambda: triton.__version__

# The option that lets libdevice's functions take subnormal numbers for 0. Before Triton 3.6 they always did.
FLUSH = "enable_reflect_ftz"
if not hasattr(CUDAOptions, FLUSH):
    nvidia.set_nvvm_reflect_ftz = lambda module: None

# What a kernel takes after its own arguments: global scratch memory and, from Triton 3.5 on, profile scratch memory.
SCRATCH_POINTERS = (1, 2)


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


# The parameter of kernels whose loops load blocks ahead.
STAGES = "NUM_STAGES"


def argument_types(kernel, wide):
    """Name to type of each parameter, in order; "constexpr" for block sizes and what else a configuration says."""
    size = "i64" if wide else "i32"
    return {
        name: "constexpr" if parameter.annotation is tl.constexpr else kernel.signature.get(name, size)
        for name, parameter in inspect.signature(kernel.fn.fn).parameters.items()
    }


def constexprs(kernel, given):
    """The value of each constexpr parameter: given, or what the kernel's text has in its place."""
    values = {}
    for name, parameter in inspect.signature(kernel.fn.fn).parameters.items():
        if parameter.annotation is tl.constexpr:
            values[name] = given.get(name, parameter.default)
            if values[name] is inspect.Parameter.empty:
                raise ValueError(f"{kernel.name} needs {name}, and only {', '.join(given)} are given")
    return values


def compile_kernel(kernel, capability, blocks, warps, stages=1, registers=0, wide=False, divisible=()):
    """The compiled kernel for sm_`capability`: attributes asm["cubin"] and metadata.

    `blocks` gives the block parameters their values; a thread has at most `registers` registers, if any are given;
    `divisible` names the arguments that are multiples of 16."""
    signature = argument_types(kernel, wide)
    values = constexprs(kernel, {**blocks, STAGES: stages})
    constants, attributes = {}, {}
    for position, name in enumerate(signature):
        if name in values:
            constants[(position,)] = values[name]
        if name in divisible:
            attributes[(position,)] = [["tt.divisibility", 16]]
    source = ASTSource(fn=kernel.fn, signature=signature, constexprs=constants, attrs=attributes)
    options = {"num_warps": warps, "num_stages": stages, "maxnreg": registers or None, "enable_fp_fusion": False}
    if hasattr(CUDAOptions, FLUSH):
        options[FLUSH] = False
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def compile_with_log(kernel, **how):
    """The compiled kernel, and what the assembler says of its registers."""
    knobs.nvidia.dump_ptxas_log = True
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        compiled = compile_kernel(kernel, **how)
    return compiled, said.getvalue() or assembler_log(compiled.asm["ptx"])


def assembler_log(ptx):
    """What the assembler says, asked again: Triton 3.4 keeps it to itself, and so do kernels from Triton's cache."""
    arch = re.search(r"^\.target (\w+)", ptx, re.MULTILINE).group(1)
    tool = knobs.nvidia.ptxas
    if int(re.search(r"\d+", arch).group(0)) >= 100:
        tool = getattr(knobs.nvidia, "ptxas_blackwell", tool)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "kernel.ptx")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ptx)
        command = [tool.path, "-v", "--fmad=false", f"--gpu-name={arch}", path, "-o", path + ".o"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stderr


def resources(log):
    """(registers of a thread, bytes it spills) by the assembler's log, which also lists functions that a kernel calls."""
    registers = re.findall(r"Used (\d+) registers", log)
    spills = re.findall(r"(\d+) bytes spill (?:stores|loads)", log)
    if not registers or not spills:
        raise ValueError(f"the assembler's log is not understood: {log!r}")
    return max(map(int, registers)), sum(map(int, spills))


def scratch_pointers(ptx, own):
    """How many parameters the entry has beyond its `own`; raises where a launch would pass others."""
    entry = re.search(r"\.visible \.entry \w+\(([^)]*)\)", ptx)
    count = entry.group(1).count(".param") if entry else 0
    if count - own not in SCRATCH_POINTERS:
        raise ValueError(f"Triton {triton.__version__} made a kernel of {count} parameters out of {own}")
    return count - own
