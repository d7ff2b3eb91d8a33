"""What a file of `stax show --stage triton` does when it is run: it checks its kernels, and measures them.

A kernel is evaluated with NumPy, by Triton's interpreter in a process of its own. Where there is a GPU, the kernel is
compiled for it and launched by the driver's library; what both wrote is compared, and launches from a cold L2 cache are
timed. Needs Triton and NumPy.
"""

import argparse
import contextlib
import dataclasses
import inspect
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

DTYPES = {"i1": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "fp16": "float16",
          "bf16": "uint16", "fp32": "float32", "fp64": "float64"}  # fmt: skip
# Largest difference, relative to the largest value of a buffer: sums in another order, functions of the GPU. Integers
# have to be equal.
TOLERANCES = {"fp64": 1e-10, "fp32": 1e-5, "fp16": 4e-3, "bf16": 3e-2}
STATUS_WORDS = 4  # of KernelStatus; all are 0 as long as no index is out of range
AXES = ("x", "y", "z")  # of the grid


def to_bfloat16(values):
    """Bits of finite float32 values, rounded to nearest even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def as_numbers(array, kind):
    """The values of a buffer as float64, or integers as they are."""
    if kind == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64) if kind in TOLERANCES else array


def kind_of(kernel, name):
    return kernel.signature[name][1:]


def make_buffers(kernel, zeros=False):
    """Buffer to contents before the launch. `zeros`: integers are 0, which is an index of everything not empty."""
    random, buffers = np.random.default_rng(0), {}
    for name, elements in kernel.elements.items():
        kind = kind_of(kernel, name)
        if name.startswith("out_"):
            buffers[name] = np.zeros(elements, DTYPES[kind])
        elif kind == "bf16":
            buffers[name] = to_bfloat16(random.standard_normal(elements, dtype=np.float32))
        elif kind in TOLERANCES:
            buffers[name] = random.standard_normal(elements).astype(DTYPES[kind])
        else:
            limit = 1 if zeros else 2 if kind == "i1" else 8
            buffers[name] = random.integers(0, limit, elements).astype(DTYPES[kind])
    if "status" in kernel.signature:
        buffers["status"] = np.zeros(STATUS_WORDS, np.int64)
    return buffers


def blocks_of(kernel):
    return {name: size for name, size in kernel.config.items() if name.endswith("BLOCK")}


def numbers_of(kernel):
    """Scalars, size symbols and lengths of the axes, by parameter."""
    lengths = {f"{axis}numel": length for axis, length in kernel.numels.items()}
    return {**kernel.scalars, **kernel.symbols, **lengths}


def parameters(kernel):
    """Names of what a launch passes, in order."""
    known = {**kernel.signature, **numbers_of(kernel)}
    return [name for name in inspect.signature(kernel.fn.fn).parameters if name in known]


def grid_of(kernel):
    blocks = blocks_of(kernel)
    along = [(kernel.numels.get(axis, 1), blocks.get(f"{axis.upper()}BLOCK", 1)) for axis in AXES]
    return [-(-length // block) for length, block in along]


# The plain evaluation.


def interpreted(kernel, name, buffers):
    """An argument as the interpreter takes it."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    from stax_triton import interpret

    if name in buffers:
        kind = kind_of(kernel, name)
        return interpret.Buffer(buffers[name], "bfloat16" if kind == "bf16" else DTYPES[kind])
    value = numbers_of(kernel)[name]
    if name not in kernel.signature:
        return value
    dtype, stored = (tl.float64, np.float64) if kernel.signature[name] == "fp64" else (tl.int64, np.int64)
    return tl.tensor(TensorHandle(np.array([value], stored), dtype), dtype)


def evaluate(kernel, buffers):
    """Runs the kernel in the interpreter, on `buffers` as they are. In a process that interprets."""
    from stax_triton import interpret

    with np.errstate(all="ignore"):
        arguments = [interpreted(kernel, name, buffers) for name in parameters(kernel)]
        interpret.launch(kernel, arguments, grid_of(kernel), blocks_of(kernel))


def evaluation(path, name, folder):
    """Inputs and what the kernel makes of them, as files in `folder`: the work of the process that interprets."""
    from stax_triton import interpret  # noqa: F401 - before anything else imports Triton

    from stax_triton import compile as stax_compile  # noqa: E402

    kernel = stax_compile.load_kernel(path, name)
    for zeros in (False, True):
        inputs = make_buffers(kernel, zeros)
        results = {name: array.copy() for name, array in inputs.items()}
        evaluate(kernel, results)
        if not results.get("status", np.zeros(1)).any():
            break
    np.savez(os.path.join(folder, "inputs.npz"), **inputs)
    np.savez(os.path.join(folder, "results.npz"), **results)


def evaluate_apart(path, name):
    """(inputs, results) by another process: Triton interprets or compiles, never both in one."""
    with tempfile.TemporaryDirectory() as folder:
        package = str(pathlib.Path(__file__).parent.parent)
        inherited = os.environ.get("PYTHONPATH")
        environment = {**os.environ, "TRITON_INTERPRET": "1",
                       "PYTHONPATH": package + (os.pathsep + inherited if inherited else "")}  # fmt: skip
        code = "import sys; from stax_triton import standalone; standalone.evaluation(*sys.argv[1:])"
        done = subprocess.run([sys.executable, "-c", code, path, name, folder], env=environment, check=False,
                              capture_output=True, text=True)  # fmt: skip
        if done.returncode != 0:
            raise SystemExit(f"{name}: the plain evaluation failed:\n{done.stderr}")
        files = [os.path.join(folder, file) for file in ("inputs.npz", "results.npz")]
        return tuple(dict(np.load(file)) for file in files)


# Compiling and comparing.


@dataclasses.dataclass
class Compiled:
    cubin: bytes
    entry: str
    types: list
    scratch_pointers: int
    warps: int
    shared_bytes: int
    registers: int


def compile_for(kernel, capability):
    """Machine code that counts on what is known of these arguments: pointers and many sizes are multiples of 16."""
    from stax_triton import compile as stax_compile

    blocks = blocks_of(kernel)
    divisible = [name for name in kernel.elements] + [n for n, v in numbers_of(kernel).items()
                                                      if n not in kernel.scalars and v % 16 == 0]  # fmt: skip
    compiled, log = stax_compile.compile_with_log(
        kernel, capability=capability, blocks=blocks, warps=kernel.config["num_warps"],
        stages=kernel.config["num_stages"], wide=kernel.wide, divisible=divisible)  # fmt: skip
    kinds = stax_compile.argument_types(kernel, blocks, kernel.wide)
    types = [kind for kind in kinds.values() if kind != "constexpr"]
    metadata = compiled.metadata
    if metadata.global_scratch_size or getattr(metadata, "profile_scratch_size", 0):
        raise SystemExit(f"{kernel.name}: needs scratch memory, which is not passed here")
    return Compiled(compiled.asm["cubin"], metadata.name, types,
                    stax_compile.scratch_pointers(compiled.asm["ptx"], len(types)), metadata.num_warps,
                    metadata.shared, stax_compile.resources(log)[0])  # fmt: skip


def difference(found, expected, kind):
    """(largest difference, how much is allowed): of floats relative to the largest finite value."""
    a, b = as_numbers(found, kind), as_numbers(expected, kind)
    if kind not in TOLERANCES:
        return float(np.count_nonzero(a != b)), 0.0
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0, TOLERANCES[kind]
    finite = b[np.isfinite(b)]
    scale = (float(np.abs(finite).max()) if finite.size else 0.0) or 1.0
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(a - b)) / scale
    return float(np.where(np.isnan(apart), np.inf, apart).max()), TOLERANCES[kind]


def compare(kernel, found, expected):
    """Whether all that the kernel wrote is right; says how far it is off."""
    right = True
    for name in kernel.elements:
        if name.startswith("in_ptr"):
            continue
        kind = kind_of(kernel, name)
        apart, allowed = difference(found[name], expected[name], kind)
        right = right and apart <= allowed
        what = f"largest relative difference {apart:.3g}" if kind in TOLERANCES else f"{apart:.0f} elements differ"
        print(f"  {name}: {what}{'' if apart <= allowed else f' (allowed: {allowed:.3g}): WRONG'}")
    return right


def run_on_gpu(gpu, kernel):
    """Whether the kernel computes on the GPU what it does in the interpreter."""
    inputs, expected = evaluate_apart(file_of(kernel), kernel.name)
    grid = grid_of(kernel)
    if max(grid[1:]) > 65535:
        raise SystemExit(f"{kernel.name}: a grid of {grid} is too large; give larger blocks by --config")
    compiled = compile_for(kernel, gpu.capability)
    values = {**numbers_of(kernel), **inputs}
    found, milliseconds = gpu.run(compiled, [values[name] for name in parameters(kernel)], grid)
    print(f"{kernel.name} on {gpu.name} (sm_{gpu.capability}, {compiled.registers} registers), {config_text(kernel)}:")
    arrays = [name for name in parameters(kernel) if name in inputs]
    right = compare(kernel, dict(zip(arrays, found)), expected)
    moved = sum(array.nbytes for array in inputs.values())
    print(f"  {milliseconds:.4f} ms, {moved / milliseconds / 1e6:.4g} GB/s ({moved} bytes)")
    return right


def without_gpu(why, kernel, capability):
    evaluate_apart(file_of(kernel), kernel.name)
    registers = compile_for(kernel, capability).registers
    print(f"{kernel.name}: {why}: compiled for sm_{capability} ({registers} registers), {config_text(kernel)}, "
          "evaluated with NumPy only; not timed")  # fmt: skip


def config_text(kernel):
    return ", ".join(f"{name}={value}" for name, value in kernel.config.items())


def file_of(kernel):
    return os.path.abspath(inspect.getsourcefile(kernel.fn.fn))


def configured(kernel, text):
    """The kernel with what "XBLOCK=8,num_warps=4" says."""
    config = dict(kernel.config)
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name.strip() not in config or not value.strip().isdigit():
            raise SystemExit(f"--config: {part!r}; {kernel.name} takes {config_text(kernel)}")
        config[name.strip()] = int(value)
    return dataclasses.replace(kernel, config=config)


def options():
    parser = argparse.ArgumentParser(description="Checks and measures the kernels of this file.")
    parser.add_argument("--config", default="", help="block sizes, warps, stages: XBLOCK=8,num_warps=4")
    parser.add_argument("--target", help="compile for this architecture (sm_90) only, and use no GPU")
    parser.add_argument("--kernel", help="only the kernel of that name")
    given = parser.parse_args()
    if given.target and not re.fullmatch(r"sm_\d+", given.target):
        parser.error(f"--target: {given.target!r} is no architecture such as sm_90")
    return given


def main(*kernels):
    """Ends the process: with 1 where a kernel's numbers are wrong."""
    from stax_triton import cuda_driver

    given, right = options(), True
    if given.kernel and given.kernel not in [kernel.name for kernel in kernels]:
        raise SystemExit(f"--kernel: there are {', '.join(kernel.name for kernel in kernels)}")
    with contextlib.ExitStack() as stack:
        gpu, why = None, "as asked"
        if not given.target:
            try:
                gpu = stack.enter_context(cuda_driver.Gpu())
            except cuda_driver.NoGpu as error:
                why = f"no GPU ({error})"
        for kernel in kernels:
            if given.kernel not in (None, kernel.name):
                continue
            if kernel.numels is None:
                print(f"{kernel.name}: for other sizes than the example's, not run")
                continue
            kernel = configured(kernel, given.config)
            if gpu:
                right = run_on_gpu(gpu, kernel) and right
            else:
                without_gpu(why, kernel, int((given.target or "sm_90")[3:]))
    sys.exit(0 if right else 1)
