"""What a file of `stax show --stage triton` does when it is run: it checks its kernels, and measures them.

What a kernel has to compute is evaluated by a function of NumPy in the same file, which was printed from the loops
that the kernel was made from. Where there is a GPU, the kernel is compiled for it and launched by the driver's library;
what it wrote is compared, and launches from a cold L2 cache are timed. Elsewhere its text is run by Triton's
interpreter, in a process of its own, and that is compared. Needs Triton and NumPy.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import sys
import tempfile

from stax_triton import compile as stax_compile
from stax_triton import cuda_driver
from stax_triton.evaluation import compare, interpreted_apart, make_tasks
from stax_triton.example import AXES, blocks_of, config_text, configured, file_of, grid_of, numbers_of, parameters

# Of a target that Triton 3.6 does not know its compiler ends the process.
ARCHITECTURES = [f"sm_{number}" for number in (75, 80, 86, 87, 89, 90, 100, 101, 103, 120, 121)]

# Compiling.


@dataclasses.dataclass
class Compiled:
    cubin: bytes
    entry: str
    types: list
    scratch_bytes: list  # of an instance of the grid, by pointer
    warps: int
    shared_bytes: int
    registers: int


def compile_for(kernel, capability):
    """Machine code that counts on what is known of these arguments: pointers and many sizes are multiples of 16."""
    blocks = blocks_of(kernel)
    divisible = [name for name in kernel.elements] + [n for n, v in numbers_of(kernel).items()
                                                      if n not in kernel.scalars and v % 16 == 0]  # fmt: skip
    compiled, log = stax_compile.compile_with_log(
        kernel, capability=capability, blocks=blocks, warps=kernel.config["num_warps"],
        stages=kernel.config["num_stages"], registers=kernel.config.get("maxnreg", 0), wide=kernel.wide,
        divisible=divisible)  # fmt: skip
    kinds = stax_compile.argument_types(kernel, kernel.wide)
    types = [kind for kind in kinds.values() if kind != "constexpr"]
    metadata = compiled.metadata
    scratch = [metadata.global_scratch_size, getattr(metadata, "profile_scratch_size", 0)]
    pointers = stax_compile.scratch_pointers(compiled.asm["ptx"], len(types))
    return Compiled(compiled.asm["cubin"], metadata.name, types, scratch[:pointers], metadata.num_warps,
                    metadata.shared, stax_compile.resources(log)[0])  # fmt: skip


def compiled(kernel, capability):
    try:
        return compile_for(kernel, capability)
    except Exception as error:  # whatever Triton and its assembler raise
        raise SystemExit(f"{kernel.name} does not compile for sm_{capability} with {config_text(kernel)}: "
                         f"{type(error).__name__}: {error}") from None  # fmt: skip


def folded(kernel, folder):
    """The kernel with all its instances along the first dimension of the grid, x innermost: GPUs take 65,535 blocks at
    most along another. Made from the text, as Stax makes the variant for such launches."""
    number, text = "tl.program_id(0)", pathlib.Path(file_of(kernel)).read_text(encoding="utf-8")
    axes = [axis for axis in AXES if axis in kernel.numels]
    for dimension, axis in enumerate(axes):
        blocks = f"tl.cdiv({axis}numel, {axis.upper()}BLOCK)"
        along = number if dimension == len(axes) - 1 else f"({number} % {blocks})"
        text = text.replace(f"{axis}offset = tl.program_id({dimension})", f"{axis}offset = {along}")
        number = f"({number} // {blocks})"
    path = os.path.join(folder, "folded.py")
    pathlib.Path(path).write_text(text, encoding="utf-8")
    return configured(stax_compile.load_kernel(path, kernel.name), kernel.config)


# Running.


def run_on_gpu(gpu, task):
    """Whether the kernel computes on the GPU what it has to."""
    kernel, grid = task.kernel, grid_of(task.kernel)
    with tempfile.TemporaryDirectory() as folder:
        launched = kernel
        if any(blocks > most for blocks, most in zip(grid[1:], gpu.largest_grid[1:])):
            launched, grid = folded(kernel, folder), [grid[0] * grid[1] * grid[2], 1, 1]
        if grid[0] > gpu.largest_grid[0]:
            raise SystemExit(f"{kernel.name}: a grid of {grid[0]} blocks is too large; give larger blocks by --config")
        code = compiled(launched, gpu.capability)
    values = {**numbers_of(kernel), **task.inputs}
    found, milliseconds = gpu.run(code, [values[name] for name in parameters(kernel)], grid)
    print(f"{kernel.name} ({code.registers} registers), {config_text(kernel)}, against {task.by}:")
    arrays = [name for name in parameters(kernel) if name in task.inputs]
    right = compare(task, dict(zip(arrays, found)))
    moved = sum(array.nbytes for array in task.inputs.values())
    print(f"  {milliseconds:.4f} ms, {moved / milliseconds / 1e6:.4g} GB/s ({moved} bytes)")
    return right


def run_without_gpu(task, capability):
    """Whether the kernel computes in Triton's interpreter what it has to."""
    kernel = task.kernel
    registers = compiled(kernel, capability).registers
    print(f"{kernel.name} ({registers} registers), {config_text(kernel)}, against {task.by}:")
    if task.interpreted:
        print("  not compared: that is what the kernel would be compared with")
        return True
    return compare(task, interpreted_apart(kernel, task.inputs))


# The command line.


def parsed(kernel, text):
    """The configuration that "XBLOCK=8,num_warps=4" says."""
    config = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name.strip() not in kernel.config or not value.strip().isdecimal():
            raise SystemExit(f"--config: {part!r}; {kernel.name} takes {config_text(kernel)}")
        config[name.strip()] = int(value)
    return config


def options():
    parser = argparse.ArgumentParser(description="Checks and measures the kernels of this file.")
    parser.add_argument("--config", default="", help="block sizes, warps and what else the file says of them: XBLOCK=8,num_warps=4")
    parser.add_argument("--target", help="compile for this architecture (sm_90) only, and use no GPU")
    parser.add_argument("--kernel", help="only the kernel of that name")
    given = parser.parse_args()
    if given.target and given.target not in ARCHITECTURES:
        parser.error(f"--target: {given.target!r} is none of {', '.join(ARCHITECTURES)}")
    return given


def open_gpu(given, stack):
    """None where there is none, or none is wanted."""
    if given.target:
        return None
    try:
        gpu = stack.enter_context(cuda_driver.Gpu())
        print(f"on {gpu.name} (sm_{gpu.capability})")
        return gpu
    except cuda_driver.NoGpu as error:
        print(f"no GPU ({error})")
        return None
    except cuda_driver.GpuError as error:
        raise SystemExit(f"the GPU cannot be used: {error}") from None


def main(*parts):
    """Ends the process: with 1 where a kernel's numbers are wrong, or it could not be run. A part is a kernel that the
    example's sizes do not take, or (kernel, plain function)."""
    given, right = options(), True
    parts = [part if isinstance(part, tuple) else (part, None) for part in parts]
    names = [kernel.name for kernel, _ in parts]
    if given.kernel and given.kernel not in names:
        raise SystemExit(f"--kernel: there are {', '.join(names)}")
    wanted = [kernel.name for kernel, _ in parts if given.kernel in (None, kernel.name)]
    pairs = [(configured(kernel, parsed(kernel, given.config) if kernel.name in wanted else {}), plain)
             for kernel, plain in parts if plain is not None]  # fmt: skip
    with contextlib.ExitStack() as stack:
        gpu, capability = open_gpu(given, stack), int((given.target or "sm_90")[3:])
        if gpu is None:
            print(f"compiled for sm_{capability} and run in Triton's interpreter, not timed")
        tasks = {task.kernel.name: task for task in make_tasks(pairs)}
        for name in wanted:
            if name not in tasks:
                print(f"{name}: for other sizes than the example's, not run")
            elif not gpu:
                right = run_without_gpu(tasks[name], capability) and right
            else:
                try:
                    right = run_on_gpu(gpu, tasks[name]) and right
                except cuda_driver.GpuError as error:
                    sys.stdout.flush()
                    raise SystemExit(f"{name}: {error}") from None
    sys.exit(0 if right else 1)
