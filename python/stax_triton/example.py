"""Launches of a generated kernel for the sizes of its example, by what the decorator of a shown file says."""

import dataclasses
import inspect
import os

DTYPES = {"i1": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "fp16": "float16",
          "bf16": "uint16", "fp32": "float32", "fp64": "float64"}  # fmt: skip
AXES = ("x", "y", "z")  # of the grid


def kind_of(kernel, name):
    return kernel.signature[name][1:]


def blocks_of(kernel):
    """Values of the constants among the kernel's parameters: sizes of blocks, and how many of them are kept."""
    return {name: size for name, size in kernel.config.items() if name.isupper()}


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


def configured(kernel, config):
    return dataclasses.replace(kernel, config={**kernel.config, **config})


def config_text(kernel):
    return ", ".join(f"{name}={value}" for name, value in kernel.config.items())


def file_of(kernel):
    return os.path.abspath(inspect.getsourcefile(kernel.fn.fn))
