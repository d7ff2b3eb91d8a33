"""The few functions of the driver's library that launch a kernel and time it, by ctypes."""

import ctypes
import math
import os
import statistics

import numpy as np

LIBRARY = os.environ.get("STAX_CUDA_DRIVER") or "libcuda.so.1"
# Attributes of a device.
GRID_X, L2_BYTES, CAPABILITY_MAJOR, CAPABILITY_MINOR, SHARED_OPT_IN = 5, 38, 75, 76, 97
SHARED_BYTES = 8  # attribute of a function: dynamic shared memory that a launch may ask for
SHARED_WITHOUT_ASKING = 48 << 10
OUT_OF_MEMORY = 2
WARM_UP, TIMED = 3, 25  # launches
EVENT_TIMING = 0

_P, _I, _U, _SIZE, _ADDRESS = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_uint64
# What each function takes; all return an int. Handles are pointers, addresses of the device and sizes have 64 bits.
FUNCTIONS = {
    "cuInit": [_U],
    "cuGetErrorString": [_I, _P],
    "cuDeviceGetCount": [_P],
    "cuDeviceGet": [_P, _I],
    "cuDeviceGetName": [_P, _I, _I],
    "cuDeviceGetAttribute": [_P, _I, _I],
    "cuDevicePrimaryCtxRetain": [_P, _I],
    "cuCtxSetCurrent": [_P],
    "cuCtxSynchronize": [],
    "cuMemGetInfo_v2": [_P, _P],
    "cuMemAlloc_v2": [_P, _SIZE],
    "cuMemFree_v2": [_ADDRESS],
    "cuMemcpyHtoDAsync_v2": [_ADDRESS, _P, _SIZE, _P],
    "cuMemcpyDtoHAsync_v2": [_P, _ADDRESS, _SIZE, _P],
    "cuMemsetD8Async": [_ADDRESS, ctypes.c_ubyte, _SIZE, _P],
    "cuEventCreate": [_P, _U],
    "cuEventDestroy_v2": [_P],
    "cuEventRecord": [_P, _P],
    "cuEventElapsedTime": [_P, _P, _P],
    "cuModuleLoadData": [_P, _P],
    "cuModuleUnload": [_P],
    "cuModuleGetFunction": [_P, _P, ctypes.c_char_p],
    "cuFuncSetAttribute": [_P, _I, _I],
    "cuLaunchKernel": [_P, *[_U] * 7, _P, _P, _P],
}


class NoGpu(Exception):
    """There is no driver, or no device."""


class GpuError(Exception):
    """The driver refused a call; the text says which and why. After most errors the device is of no use any more."""


def _number(value, kind):
    """A scalar argument as the kernel reads it."""
    kinds = {"fp64": ctypes.c_double, "i64": ctypes.c_int64, "i32": ctypes.c_int32}
    return kinds[kind](value)


class Gpu:
    """The first device, with its primary context current."""

    def __init__(self):
        try:
            self.cuda = ctypes.CDLL(LIBRARY)
            for name, types in FUNCTIONS.items():
                getattr(self.cuda, name).argtypes = types
        except (OSError, AttributeError) as error:
            raise NoGpu(str(error)) from None
        count, device = ctypes.c_int(), ctypes.c_int()
        try:
            self.call("cuInit", 0)
            self.call("cuDeviceGetCount", ctypes.byref(count))
        except GpuError as error:
            raise NoGpu(str(error)) from None
        if not count.value:
            raise NoGpu(f"{LIBRARY} finds no device")
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.device = device.value
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        self.call("cuCtxSetCurrent", context)
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, 128, self.device)
        self.name = name.value.decode()
        self.capability = 10 * self.attribute(CAPABILITY_MAJOR) + self.attribute(CAPABILITY_MINOR)
        self.largest_grid = [self.attribute(GRID_X + k) for k in range(3)]
        self.allocated = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()

    def call(self, function, *arguments):
        error = getattr(self.cuda, function)(*arguments)
        if error != 0:
            raise GpuError(f"{function}: {self.words(error)} ({error})")

    def words(self, error):
        text = ctypes.c_char_p()
        self.cuda.cuGetErrorString(error, ctypes.byref(text))
        return (text.value or b"unknown error").decode()

    def attribute(self, which):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), which, self.device)
        return value.value

    def allocate(self, size):
        address = ctypes.c_uint64()
        error = self.cuda.cuMemAlloc_v2(ctypes.byref(address), max(size, 1))
        if error == OUT_OF_MEMORY:
            free, total = ctypes.c_size_t(), ctypes.c_size_t()
            self.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
            raise GpuError(f"{self.name} is out of memory: {size} bytes are needed, {free.value} of {total.value} are "
                           "free; end what else uses it, or show the program for smaller sizes")  # fmt: skip
        if error != 0:
            raise GpuError(f"cuMemAlloc_v2: {self.words(error)} ({error})")
        self.allocated.append(address)
        return address

    def free(self):
        for address in self.allocated:
            self.cuda.cuMemFree_v2(address)
        self.allocated = []

    def load(self, compiled):
        """(module, function) of machine code."""
        most = self.attribute(SHARED_OPT_IN)
        if compiled.shared_bytes > most:
            raise GpuError(f"it needs {compiled.shared_bytes} bytes of shared memory, {self.name} has {most} for a "
                           "block of threads; take smaller blocks or fewer stages by --config")  # fmt: skip
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), compiled.cubin)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, compiled.entry.encode())
        if compiled.shared_bytes > SHARED_WITHOUT_ASKING:
            self.call("cuFuncSetAttribute", function, SHARED_BYTES, compiled.shared_bytes)
        return module, function

    def run(self, compiled, values, grid):
        """Launches with `values`, arrays and numbers in the kernel's order. (Contents of the arrays after the first
        launch, median milliseconds of further ones from a cold L2 cache.)"""
        module, function = self.load(compiled)
        try:
            return self.launches(function, compiled, values, grid)
        finally:
            self.free()
            self.cuda.cuModuleUnload(module)

    def launches(self, function, compiled, values, grid):
        arrays, arguments = [], []
        for value, kind in zip(values, compiled.types, strict=True):
            if not isinstance(value, np.ndarray):
                arguments.append(_number(value, kind))
                continue
            address = self.allocate(value.nbytes)
            if value.nbytes:
                self.call("cuMemcpyHtoDAsync_v2", address, value.ctypes.data, value.nbytes, None)
            arrays.append((address, np.empty_like(value)))
            arguments.append(address)
        for each in compiled.scratch_bytes:  # of an instance; null where the kernel needs none
            arguments.append(self.allocate(each * math.prod(grid)) if each else ctypes.c_uint64(0))
        pointers = (ctypes.c_void_p * len(arguments))(*map(ctypes.addressof, arguments))

        def launch():
            threads = 32 * compiled.warps
            self.call("cuLaunchKernel", function, *grid, threads, 1, 1, compiled.shared_bytes, None, pointers, None)

        launch()
        for address, host in arrays:
            if host.nbytes:
                self.call("cuMemcpyDtoHAsync_v2", host.ctypes.data, address, host.nbytes, None)
        self.call("cuCtxSynchronize")
        return [host for _, host in arrays], self.time(launch)

    def time(self, launch):
        """All launches are queued before the first ends, so that none waits for Python."""
        size = 2 * self.attribute(L2_BYTES)
        cold, spans = self.allocate(size), []
        for _ in range(WARM_UP + TIMED):
            start, end = self.event(), self.event()
            self.call("cuMemsetD8Async", cold, 0, size, None)
            self.call("cuEventRecord", start, None)
            launch()
            self.call("cuEventRecord", end, None)
            spans.append((start, end))
        self.call("cuCtxSynchronize")
        times = []
        for start, end in spans:
            milliseconds = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(milliseconds), start, end)
            times.append(milliseconds.value)
            for event in (start, end):
                self.call("cuEventDestroy_v2", event)
        return statistics.median(times[WARM_UP:])

    def event(self):
        event = ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(event), EVENT_TIMING)
        return event
