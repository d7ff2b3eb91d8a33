"""What a file of `stax show --stage triton` does when it is run: it checks its kernels, and measures them.

What a kernel has to compute is evaluated by a function of NumPy in the same file, which was printed from the loops
that the kernel was made from. Where there is a GPU, the kernel is compiled for it and launched by the driver's library;
what it wrote is compared, and launches from a cold L2 cache are timed. Elsewhere its text is run by Triton's
interpreter, in a process of its own, and that is compared. Needs Triton and NumPy.
"""

import argparse
import contextlib
import dataclasses
import importlib
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zlib

try:
    import numpy as np
except ImportError:  # require_packages() says what to do
    np = None

# As tools/requirements.txt has them, and the first version that does.
PACKAGES = {"numpy": ("2.4.6", "1.26"), "triton": ("3.6.0", "3.4")}

DTYPES = {"i1": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "fp16": "float16",
          "bf16": "uint16", "fp32": "float32", "fp64": "float64"}  # fmt: skip
# Largest difference, relative to the largest value of a buffer: sums in another order, functions of the GPU. Integers
# have to be equal.
TOLERANCES = {"fp64": 1e-10, "fp32": 1e-5, "fp16": 4e-3, "bf16": 3e-2}
HALVES = ("fp16", "bf16")
# Where a result changes by d if inputs are off by one rounding, or if all is computed in float64, a kernel may be off
# by that many times d, as long as this is no more than so many times the above: sums and differences may cancel.
ROUNDINGS, MOST = 32, 100
STATUS_WORDS = 4  # of KernelStatus; all are 0 as long as no index is out of range
AXES = ("x", "y", "z")  # of the grid
# Integers may be indices: the first of these whose indices are in range, and that do not store twice at one place, are
# taken.
DRAWS = ("random", "ascending by 8", "ascending", "zeros")


def require_packages():
    """Ends the process, saying what to do, where Triton or NumPy is missing."""
    os.environ.pop("TRITON_INTERPRET", None)  # kernels are compiled here
    wrong = []
    for name, (pinned, oldest) in PACKAGES.items():
        try:
            version = importlib.import_module(name).__version__
            if tuple(map(int, re.findall(r"\d+", version)[:2])) < tuple(map(int, oldest.split("."))):
                wrong.append((f"{name} {version} is older than {oldest}", f"{name}=={pinned}"))
        except Exception as error:  # a broken installation raises anything
            wrong.append((f"{name} cannot be imported ({error})", f"{name}=={pinned}"))
    if wrong:
        why, wanted = zip(*wrong)
        raise SystemExit(f"{'; '.join(why)}. Install what the file needs by\n"
                         f"  {sys.executable} -m pip install {' '.join(wanted)}")  # fmt: skip


# Buffers.


def to_bfloat16(values):
    """Bits of float32 values, rounded to nearest even."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FFF), rounded)


def as_floats(array, kind):
    """Half types as float32, in which they are computed; others as they are."""
    if kind == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32) if kind == "fp16" else array


def as_stored(array, kind):
    if kind == "bf16":
        return to_bfloat16(array)
    return array.astype(np.float16) if kind == "fp16" else array


def kind_of(kernel, name):
    return kernel.signature[name][1:]


def drawn(kernel, name, buffer, how):
    """What is in a buffer that no kernel before has written."""
    random = np.random.default_rng(zlib.crc32(buffer.encode()))
    elements, kind = kernel.elements[name], kind_of(kernel, name)
    if name.startswith("out_"):
        return as_stored(np.full(elements, np.nan if kind in TOLERANCES else 1).astype(
            np.float32 if kind in HALVES else DTYPES[kind]), kind)  # fmt: skip
    if kind in TOLERANCES:
        values = random.standard_normal(elements)
        return as_stored(values.astype(np.float32), kind) if kind in HALVES else values.astype(DTYPES[kind])
    if kind == "i1":
        return random.integers(0, 2, elements).astype(bool)
    if how == "random":
        return random.integers(0, 8, elements).astype(DTYPES[kind])
    steps = {"ascending by 8": np.arange(elements) % 8, "ascending": np.arange(elements), "zeros": np.zeros(elements)}
    return steps[how].astype(DTYPES[kind])


def make_inputs(kernel, names, memory, how):
    """Parameter to contents before the launch. `memory`: by buffer, what kernels before have left."""
    inputs = {}
    for name in kernel.elements:
        buffer = names.get(name, name)
        inputs[name] = memory[buffer].copy() if buffer in memory else drawn(kernel, name, buffer, how)
    if "status" in kernel.signature:
        inputs["status"] = np.zeros(STATUS_WORDS, np.int64)
    return inputs


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


@dataclasses.dataclass
class Task:
    """A kernel, what it is given, and what it has to make of that."""

    kernel: object
    inputs: dict
    expected: dict  # None where it is not determined
    by: str  # what made `expected`
    sensitivity: object  # () -> by parameter, how much `expected` changes where inputs are off by a rounding


def evaluate(plain, kernel, inputs, wide=False):
    """What the plain function makes of inputs. `wide`: of float64 in place of float32."""
    results = {name: as_floats(array, kind_of(kernel, name)).copy() for name, array in inputs.items()}
    if wide:
        results = {name: a.astype(np.float64) if a.dtype == np.float32 else a for name, a in results.items()}
    named = {**results, **kernel.scalars}
    with np.errstate(all="ignore"):
        plain(**{name: named[name] for name in inspect.signature(plain).parameters if name in named})
    return {name: as_stored(array, kind_of(kernel, name)) for name, array in results.items()}


def shifted(kernel, inputs):
    """The inputs, each float off by a rounding at random."""
    random, moved = np.random.default_rng(1), dict(inputs)
    for name, array in inputs.items():
        if array.dtype in (np.float32, np.float64) and not name.startswith("out_"):
            sign = random.integers(0, 2, array.shape) * 2 - 1
            moved[name] = (array * (1 + sign * np.finfo(array.dtype).eps)).astype(array.dtype)
    return moved


def sensitivity_of(plain, kernel, inputs, expected):
    """By parameter, how far float results move for so little that a kernel that is right may be off, too."""
    names = [name for name in kernel.elements if kind_of(kernel, name) in TOLERANCES]
    moved, changes = [evaluate(plain, kernel, shifted(kernel, inputs))], dict.fromkeys(names, 0.0)
    with contextlib.suppress(ValueError, TypeError):  # of what looks at the bits of float32
        moved.append(evaluate(plain, kernel, inputs, wide=True))
    for results in moved:
        for name in names:
            changes[name] = max(changes[name], difference(results[name], expected[name], kind_of(kernel, name)))
    return changes


def make_task(kernel, plain, memory, how):
    """Evaluates the kernel plainly, and leaves what it wrote in `memory`."""
    from stax_triton import plain as functions

    names = {p.name: p.annotation for p in inspect.signature(plain).parameters.values() if p.annotation is not p.empty}
    inputs = make_inputs(kernel, names, memory, how)
    expected, by, sensitivity = None, "the plain evaluation", dict
    try:
        expected = evaluate(plain, kernel, inputs)
        sensitivity = lambda: sensitivity_of(plain, kernel, inputs, expected)  # noqa: E731
    except (functions.OutOfRange, functions.Undetermined) as error:
        by = str(error)
    except MemoryError:
        by = "Triton's interpreter (there is not enough memory for the plain evaluation)"
        expected = interpreted_apart(kernel, inputs)
    for name, buffer in names.items():
        memory[buffer] = (expected or inputs)[name]
    return Task(kernel, inputs, expected, by, sensitivity)


def make_tasks(pairs):
    """Tasks for (kernel, plain function), which follow one another: what one has written the next ones read."""
    for how in DRAWS:
        memory = {}
        tasks = [make_task(kernel, plain, memory, how) for kernel, plain in pairs]
        if all(task.expected is not None for task in tasks):
            break
    return tasks


# The kernel in Triton's interpreter.


def argument(kernel, name, buffers):
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


def interpret_in(folder, path, name, config):
    """Runs the kernel on the inputs in `folder`, where it leaves the results; in the process that interprets."""
    from stax_triton import interpret  # before anything else imports Triton

    from stax_triton import compile as stax_compile  # noqa: E402

    kernel = configured(stax_compile.load_kernel(path, name), json.loads(config))
    buffers = dict(np.load(os.path.join(folder, "inputs.npz")))
    with np.errstate(all="ignore"):
        arguments = [argument(kernel, name, buffers) for name in parameters(kernel)]
        interpret.launch(kernel, arguments, grid_of(kernel), blocks_of(kernel))
    np.savez(os.path.join(folder, "results.npz"), **buffers)


def interpreted_apart(kernel, inputs):
    """What the kernel makes of inputs, by another process: Triton interprets or compiles, never both in one."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(os.path.join(folder, "inputs.npz"), **inputs)
        package = str(pathlib.Path(__file__).parent.parent)
        inherited = os.environ.get("PYTHONPATH")
        environment = {**os.environ, "TRITON_INTERPRET": "1",
                       "PYTHONPATH": package + (os.pathsep + inherited if inherited else "")}  # fmt: skip
        code = "import sys; from stax_triton import standalone; standalone.interpret_in(*sys.argv[1:])"
        arguments = [folder, file_of(kernel), kernel.name, json.dumps(kernel.config)]
        done = subprocess.run([sys.executable, "-c", code, *arguments], env=environment, check=False,
                              capture_output=True, text=True)  # fmt: skip
        if done.returncode != 0:
            raise SystemExit(f"{kernel.name}: Triton's interpreter failed:\n{done.stderr}")
        return dict(np.load(os.path.join(folder, "results.npz")))


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
    from stax_triton import compile as stax_compile

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


# Comparing.


def difference(found, expected, kind):
    """How many integers differ; the largest difference of floats, relative to the largest finite value."""
    if kind not in TOLERANCES:
        return float(np.count_nonzero(found != expected))
    a, b = (as_floats(array, kind).astype(np.float64) for array in (found, expected))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    finite = b[np.isfinite(b)]
    scale = (float(np.abs(finite).max()) if finite.size else 0.0) or 1.0
    with np.errstate(all="ignore"):
        apart = np.where(same, 0.0, np.abs(a - b)) / scale
    return float(np.where(np.isnan(apart), np.inf, apart).max())


def compare(task, found):
    """Whether all that the kernel wrote is right; says how far it is off."""
    if task.expected is None:
        print(f"  not compared: {task.by}")
        return True
    right, kernel, sensitivity = True, task.kernel, None
    if "status" in found and found["status"].any():
        print(f"  index {found['status'][1]} is reported as out of range: WRONG")
        right = False
    for name in kernel.elements:
        if name.startswith("in_ptr"):
            continue
        kind = kind_of(kernel, name)
        apart, allowed = difference(found[name], task.expected[name], kind), TOLERANCES.get(kind, 0.0)
        if kind in TOLERANCES and apart > allowed:
            sensitivity = task.sensitivity() if sensitivity is None else sensitivity
            allowed = max(allowed, min(MOST * allowed, ROUNDINGS * sensitivity.get(name, 0.0)))
        right = right and apart <= allowed
        what = f"largest relative difference {apart:.3g}" if kind in TOLERANCES else f"{apart:.0f} elements differ"
        print(f"  {name}: {what}{'' if apart <= allowed else f' (allowed: {allowed:.3g}): WRONG'}")
    return right


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
    return compare(task, interpreted_apart(kernel, task.inputs))


# The command line.


def config_text(kernel):
    return ", ".join(f"{name}={value}" for name, value in kernel.config.items())


def file_of(kernel):
    return os.path.abspath(inspect.getsourcefile(kernel.fn.fn))


def configured(kernel, config):
    return dataclasses.replace(kernel, config={**kernel.config, **config})


def parsed(kernel, text):
    """The configuration that "XBLOCK=8,num_warps=4" says."""
    config = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name.strip() not in kernel.config or not value.strip().isdigit():
            raise SystemExit(f"--config: {part!r}; {kernel.name} takes {config_text(kernel)}")
        config[name.strip()] = int(value)
    return config


def options():
    parser = argparse.ArgumentParser(description="Checks and measures the kernels of this file.")
    parser.add_argument("--config", default="", help="block sizes, warps, stages: XBLOCK=8,num_warps=4")
    parser.add_argument("--target", help="compile for this architecture (sm_90) only, and use no GPU")
    parser.add_argument("--kernel", help="only the kernel of that name")
    given = parser.parse_args()
    if given.target and not re.fullmatch(r"sm_\d+", given.target):
        parser.error(f"--target: {given.target!r} is no architecture such as sm_90")
    return given


def open_gpu(given, stack):
    """None where there is none, or none is wanted."""
    from stax_triton import cuda_driver

    if given.target:
        return None
    try:
        gpu = stack.enter_context(cuda_driver.Gpu())
        print(f"on {gpu.name} (sm_{gpu.capability})")
        return gpu
    except cuda_driver.NoGpu as error:
        print(f"no GPU ({error})")
        return None


def main(*parts):
    """Ends the process: with 1 where a kernel's numbers are wrong, or it could not be run. A part is a kernel that the
    example's sizes do not take, or (kernel, plain function)."""
    from stax_triton import cuda_driver

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
