"""Runs generated kernels on NumPy arrays in Triton's interpreter. Needs TRITON_INTERPRET=1 before the import."""

import importlib.util
import os

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np  # noqa: E402
from triton.runtime import interpreter  # noqa: E402

from stax_triton import bfloat16  # noqa: E402
from stax_triton.heuristics import Kernel  # noqa: E402

_patch_tensor = interpreter._patch_lang_tensor


def _patch_tensor_and_index(tensor, scope):
    """The interpreter keeps scalars as arrays of one element, which NumPy from 2.4 on takes for no index."""
    _patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(np.asarray(self.handle.data).reshape(-1)[0]))


interpreter._patch_lang_tensor = _patch_tensor_and_index

_convert_any = interpreter._convert_float


def _convert_float(values, source, target, rounding_mode):
    """float32 to bfloat16 as GPUs do it, to nearest even; the interpreter cuts off."""
    names = (str(source), str(target))
    if names == ("fp32", "bf16"):
        return bfloat16.bits_of(values)
    if names == ("bf16", "fp32"):
        return np.asarray(values).view(np.uint16).astype(np.uint32) << 16
    return _convert_any(values, source, target, rounding_mode)


interpreter._convert_float = _convert_float


def _parts(self, input, select):
    """The blocks at `select` along the axis of a reduction or scan."""
    index = (slice(None),) * self.axis + (select,)
    return [self.to_tensor(block.handle.data[index], block.dtype) for block in input]


def _combined(self, first, second):
    result = self.combine_fn.fn(*first, *second)
    return result if isinstance(result, tuple) else (result,)


_reduce_any = interpreter.ReduceOps.generic_reduce


def _reduce(self, input):
    """By halves, whole blocks at a time; the interpreter goes from element to element."""
    n = 1 if self.axis is None else input[0].handle.data.shape[self.axis]
    if self.axis is None or n & (n - 1) != 0:
        return _reduce_any(self, input)
    while n > 1:
        n //= 2
        input = _combined(self, _parts(self, input, slice(0, n)), _parts(self, input, slice(n, None)))
    squeezed = [b.handle.data if self.keep_dims else b.handle.data.squeeze(self.axis) for b in input]
    return [self.to_tensor(data, block.dtype) for data, block in zip(squeezed, input)]


def _scan(self, input):
    """In steps of 1, 2, 4, ... (Hillis and Steele 1986)."""
    n = input[0].handle.data.shape[self.axis]
    step = 1
    while step < n:
        earlier = [self.to_tensor(np.roll(b.handle.data, step, self.axis), b.dtype) for b in input]
        later = _combined(self, earlier, input)
        first = np.arange(n).reshape([-1] + [1] * (input[0].handle.data.ndim - 1 - self.axis)) < step
        input = [
            self.to_tensor(np.where(first, old.handle.data, new.handle.data), old.dtype)
            for old, new in zip(input, later)
        ]
        step *= 2
    return list(input)


interpreter.ReduceOps.generic_reduce = _reduce
interpreter.ScanOps.generic_scan = _scan
# Of a number and NaN these keep the number.
interpreter.InterpreterBuilder.create_maxnumf = lambda self, a, b: self.binary_op(a, b, np.fmax)
interpreter.InterpreterBuilder.create_minnumf = lambda self, a, b: self.binary_op(a, b, np.fmin)


class _Storage:
    def __init__(self, array):
        self.array = array

    def data_ptr(self):
        return self.array.ctypes.data

    def cpu(self):
        return self

    def copy_(self, other):
        self.array.reshape(-1).view(np.uint8)[:] = other.array.reshape(-1).view(np.uint8)


class Buffer:
    """A NumPy array with the few methods of a tensor that the interpreter asks for."""

    def __init__(self, array, dtype):
        self.array = array
        self.dtype = dtype

    def data_ptr(self):
        return self.array.ctypes.data

    def untyped_storage(self):
        return _Storage(self.array)

    def new_empty(self, *_, **__):
        return Buffer(np.empty_like(self.array), self.dtype)

    def set_(self, storage, *_):
        self.array = storage.array
        return self

    def storage_offset(self):
        return 0

    def size(self, *_):
        return self.array.shape

    def stride(self, *_):
        return tuple(s // self.array.itemsize for s in self.array.strides)

    def element_size(self):
        return self.array.itemsize

    def cpu(self):
        return self

    def copy_(self, other):
        self.array[...] = other.array


def launch(kernel, arguments, grid, blocks):
    """Runs `kernel` once over its grid. `arguments` are buffers and numbers in order, extents last."""
    if 0 not in grid:
        kernel.fn[tuple(grid)](*arguments, **blocks)


def load_kernel(source, folder, name):
    """The kernel of the generated file `source`, which is written to `folder` as the module `name`."""
    path = os.path.join(folder, name + ".py")
    with open(path, "w") as file:
        file.write(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return next(v for v in vars(module).values() if isinstance(v, Kernel))
