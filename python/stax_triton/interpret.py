"""Runs generated kernels on NumPy arrays in Triton's interpreter. Needs TRITON_INTERPRET=1 before the import."""

import os

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np  # noqa: E402
from triton.runtime import interpreter  # noqa: E402

_patch_tensor = interpreter._patch_lang_tensor


def _patch_tensor_and_index(tensor, scope):
    """The interpreter keeps scalars as arrays of one element, which NumPy from 2.4 on takes for no index."""
    _patch_tensor(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(np.asarray(self.handle.data).reshape(-1)[0]))


interpreter._patch_lang_tensor = _patch_tensor_and_index


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


def launch(kernel, arguments, numels, blocks):
    """Runs `kernel` once over its grid. `arguments` are buffers and numbers in order, `numels` and `blocks` follow
    the axes (z, y, x, then r0)."""
    axes = list(kernel.size_hints)
    grid = [1, 1, 1]
    for axis, numel in zip(axes, numels):
        if axis != "r0_":
            grid["xyz".index(axis)] = -(-numel // blocks[f"{axis.upper()}BLOCK"])
    if 0 in grid:
        return
    kernel.fn[tuple(grid)](*arguments, *numels, **blocks)
