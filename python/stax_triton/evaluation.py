"""What a generated kernel has to compute: its plain function evaluated on drawn inputs, and results compared with that."""

import contextlib
import dataclasses
import inspect
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy as np

from stax_triton import bfloat16
from stax_triton.example import DTYPES, blocks_of, configured, file_of, grid_of, kind_of, numbers_of, parameters

# Largest difference, relative to the largest value of a buffer: sums in another order, functions of the GPU. Integers
# have to be equal.
TOLERANCES = {"fp64": 1e-10, "fp32": 1e-5, "fp16": 4e-3, "bf16": 3e-2}
HALVES = ("fp16", "bf16")
# Where a result changes by d if inputs are off by one rounding, or if all is computed in float64, a kernel may be off
# by that many times d, as long as this is no more than so many times the above: sums and differences may cancel.
ROUNDINGS, MOST = 32, 100
STATUS_WORDS = 4  # of KernelStatus; all are 0 as long as no index is out of range
# Integers may be indices: the first of these whose indices are in range, and that do not store twice at one place, are
# taken.
DRAWS = ("random", "ascending by 8", "ascending", "zeros")


# Buffers.


def as_floats(array, kind):
    """Half types as float32, in which they are computed; others as they are."""
    if kind == "bf16":
        return bfloat16.values_of(array)
    return array.astype(np.float32) if kind == "fp16" else array


def as_stored(array, kind):
    if kind == "bf16":
        return bfloat16.bits_of(array)
    return array.astype(np.float16) if kind == "fp16" else array


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


# The plain evaluation.


@dataclasses.dataclass
class Task:
    """A kernel, what it is given, and what it has to make of that."""

    kernel: object
    inputs: dict
    expected: dict  # None where it is not determined
    by: str  # what made `expected`, or why there is none
    interpreted: bool  # Triton's interpreter did
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
    expected, by, interpreted, sensitivity = None, "the plain evaluation", False, dict
    try:
        expected = evaluate(plain, kernel, inputs)
        sensitivity = lambda: sensitivity_of(plain, kernel, inputs, expected)  # noqa: E731
    except (functions.OutOfRange, functions.Undetermined) as error:
        by = str(error)
    except MemoryError:
        by, interpreted = "Triton's interpreter (there is not enough memory for the plain evaluation)", True
        expected = interpreted_apart(kernel, inputs)
    for name, buffer in names.items():
        memory[buffer] = (expected or inputs)[name]
    return Task(kernel, inputs, expected, by, interpreted, sensitivity)


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
        code = "import sys; from stax_triton import evaluation; evaluation.interpret_in(*sys.argv[1:])"
        arguments = [folder, file_of(kernel), kernel.name, json.dumps(kernel.config)]
        done = subprocess.run([sys.executable, "-c", code, *arguments], env=environment, check=False,
                              capture_output=True, text=True)  # fmt: skip
        if done.returncode != 0:
            raise SystemExit(f"{kernel.name}: Triton's interpreter failed:\n{done.stderr}")
        return dict(np.load(os.path.join(folder, "results.npz")))


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
