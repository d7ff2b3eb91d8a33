"""Evaluates random programs operator by operator with NumPy, in float64, and compares with the results of Stax.

numpy_oracle.py FILE: one program a line, as tests/fuzz/oracle_file.cpp writes them. Prints a line for every
difference, `seed SEED: what`, and the number of programs last.

Tolerances are measured, not guessed. Every step that rounds when it is computed in its own dtype is repeated
with noise of that size: a few units of the last place for functions, the rounding errors of the additions for
sums. What a result moves by is what its program may be off by. A step whose result is exact gets no noise, so
that exact programs are compared exactly, discontinuous operators included.
"""

import json
import sys

import numpy as np

import numpy_operators
from numpy_operators import is_float, unit_of

SAMPLES = 6
SAMPLES_TO_CONFIRM = 64
SAFETY = 8


def read_array(text, dtype, sizes):
    """An array as this module computes with it: floats as float64, integers as int64."""
    raw = bytes.fromhex(text)
    if dtype == "bfloat16":
        bits = np.frombuffer(raw, dtype=np.uint16).astype(np.uint32) << 16
        array = bits.view(np.float32).astype(np.float64)
    elif dtype.startswith("float"):
        array = np.frombuffer(raw, dtype=dtype).astype(np.float64)
    elif dtype == "bool":
        array = np.frombuffer(raw, dtype=np.uint8) != 0
    else:
        array = np.frombuffer(raw, dtype=dtype).astype(np.int64)
    return array.reshape(sizes)


class Value:
    """A tensor of a program: its elements and its dtype."""

    def __init__(self, array, dtype):
        self.array = array
        self.dtype = dtype


def decode(argument, values):
    """An argument of a step as Python has it."""
    if argument is None:
        return None
    kind, content = argument
    if kind == "tensor":
        return values[content]
    if kind == "tensors":
        return [values[k] for k in content]
    return content


def run(program, inputs, noise):
    """The program's values by number. `noise` is a random generator, or None."""
    values = {k: Value(array, entry["dtype"]) for k, (array, entry) in enumerate(zip(inputs, program["inputs"]))}
    number = program["first_result"]
    for step in program["steps"]:
        arguments = [decode(a, values) for a in step["args"]]
        results = numpy_operators.evaluate(step["op"], arguments, step["results"], noise)
        for (dtype, sizes), array in zip(step["results"], results):
            assert list(np.shape(array)) == sizes, f"{step['op']}: shape {np.shape(array)}, expected {sizes}"
            values[number] = Value(array, dtype)
            number += 1
    return values


def expected_of(program, inputs, noise):
    values = run(program, inputs, noise)
    return [values[o["value"]].array for o in program["outputs"]]


def moved_by(base, moved):
    """Distances of two arrays; infinite where one of them is not finite and they differ."""
    same = (base == moved) | ((base != base) & (moved != moved))
    distance = np.abs(np.asarray(base, dtype=np.float64) - np.asarray(moved, dtype=np.float64))
    return np.where(same, 0.0, np.where(np.isfinite(distance), np.maximum(distance, 5e-324), np.inf))


def differing(program, inputs, samples, seed):
    """For every output the places where it differs by more than the noise explains."""
    base = expected_of(program, inputs, None)
    reach = [np.zeros(np.shape(b)) for b in base]
    for k in range(samples):
        moved = expected_of(program, inputs, np.random.default_rng([seed, samples, k]))
        reach = [np.maximum(r, moved_by(b, m)) for r, b, m in zip(reach, base, moved)]
    out = []
    for output, want, allowed in zip(program["outputs"], base, reach):
        got = read_array(output["data"], output["dtype"], output["sizes"])
        off = moved_by(want, got)
        if is_float(output["dtype"]):
            allowed = np.where(allowed > 0, SAFETY * allowed + 2 * unit_of(want, output["dtype"]), 0)
        else:
            allowed = np.where(allowed > 0, np.inf, 0)
        wrong = (off > allowed) & np.isfinite(allowed)
        out.append((wrong, want, got))
    return out


def check(program):
    """A description of the first difference, or nothing."""
    inputs = [read_array(i["data"], i["dtype"], i["sizes"]) for i in program["inputs"]]
    for samples in (SAMPLES, SAMPLES_TO_CONFIRM):
        found = differing(program, inputs, samples, program["seed"])
        if not any(wrong.any() for wrong, _, _ in found):
            return None
    for number, (wrong, want, got) in enumerate(found):
        if wrong.any():
            at = np.unravel_index(np.argmax(wrong), wrong.shape)
            where = [int(i) for i in at]
            return (
                f"output {number} ({program['outputs'][number]['dtype']}) differs in {int(wrong.sum())} elements; "
                f"at {where}: NumPy {want[at]!r}, Stax {got[at]!r}"
            )
    return None


def main(path):
    count = 0
    with open(path, encoding="utf-8") as lines, np.errstate(all="ignore"):
        for line in lines:
            program = json.loads(line)
            count += 1
            try:
                found = check(program)
            except Exception as error:  # one program that the oracle cannot evaluate hides no other
                found = f"the oracle failed: {type(error).__name__}: {error}"
            if found:
                print(f"seed {program['seed']}: {found}", flush=True)
    print(f"programs {count}")


if __name__ == "__main__":
    main(sys.argv[1])
