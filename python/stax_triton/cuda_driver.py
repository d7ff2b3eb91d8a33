"""The few functions of the driver's library that launch a kernel and time it, by ctypes."""

import ctypes
import os
import statistics

import numpy as np

LIBRARY = os.environ.get("STAX_CUDA_DRIVER") or "libcuda.so.1"
L2_BYTES, CAPABILITY_MAJOR, CAPABILITY_MINOR = 38, 75, 76  # attributes of a device
SHARED_BYTES = 8  # attribute of a function
SHARED_WITHOUT_ASKING = 48 << 10
WARM_UP, TIMED = 3, 25  # launches


class NoGpu(Exception):
    """There is no driver, or no device."""


def _number(value, kind):
    """A scalar argument as the kernel reads it."""
    kinds = {"fp64": ctypes.c_double, "i64": ctypes.c_int64, "i32": ctypes.c_int32}
    return kinds[kind](value)


class Gpu:
    """The first device, with its primary context current."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise NoGpu(str(error)) from None
        count, device = ctypes.c_int(), ctypes.c_int()
        if self.library.cuInit(0) != 0 or self.library.cuDeviceGetCount(ctypes.byref(count)) != 0 or not count.value:
            raise NoGpu(f"{LIBRARY} finds no device")
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.device = device
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        name = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", name, 128, device)
        self.name = name.value.decode()
        self.capability = 10 * self.attribute(CAPABILITY_MAJOR) + self.attribute(CAPABILITY_MINOR)
        self.allocated = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for address in self.allocated:
            self.library.cuMemFree_v2(address)

    def call(self, function, *arguments):
        error = getattr(self.library, function)(*arguments)
        if error != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(error, ctypes.byref(text))
            raise RuntimeError(f"{function}: {(text.value or b'error').decode()} ({error})")

    def attribute(self, which):
        value = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(value), which, self.device)
        return value.value

    def allocate(self, size):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        self.allocated.append(address)
        return address

    def load(self, compiled):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(compiled.cubin))
        self.call("cuModuleGetFunction", ctypes.byref(function), module, compiled.entry.encode())
        if compiled.shared_bytes > SHARED_WITHOUT_ASKING:
            self.call("cuFuncSetAttribute", function, SHARED_BYTES, compiled.shared_bytes)
        return function

    def run(self, compiled, values, grid):
        """Launches with `values`, arrays and numbers in the kernel's order. (Contents of the arrays after the first
        launch, median milliseconds of further ones from a cold L2 cache.)"""
        function, arrays, arguments = self.load(compiled), [], []
        for value, kind in zip(values, compiled.types):
            if not isinstance(value, np.ndarray):
                arguments.append(_number(value, kind))
                continue
            address = self.allocate(value.nbytes)
            if value.nbytes:
                host = ctypes.c_void_p(value.ctypes.data)
                self.call("cuMemcpyHtoDAsync_v2", address, host, ctypes.c_size_t(value.nbytes), None)
            arrays.append((address, np.empty_like(value)))
            arguments.append(address)
        arguments += [ctypes.c_uint64(0) for _ in range(compiled.scratch_pointers)]
        places = [ctypes.cast(ctypes.byref(argument), ctypes.c_void_p) for argument in arguments]
        pointers = (ctypes.c_void_p * len(places))(*places)

        def launch():
            threads = 32 * compiled.warps
            self.call("cuLaunchKernel", function, *grid, threads, 1, 1, compiled.shared_bytes, None, pointers, None)

        launch()
        for address, host in arrays:
            if host.nbytes:
                place = ctypes.c_void_p(host.ctypes.data)
                self.call("cuMemcpyDtoHAsync_v2", place, address, ctypes.c_size_t(host.nbytes), None)
        self.call("cuCtxSynchronize")
        return [host for _, host in arrays], self.time(launch)

    def time(self, launch):
        size = 2 * self.attribute(L2_BYTES)
        cold, times = self.allocate(size), []
        start, end = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (start, end):
            self.call("cuEventCreate", ctypes.byref(event), 0)
        for _ in range(WARM_UP + TIMED):
            self.call("cuMemsetD8Async", cold, ctypes.c_ubyte(0), ctypes.c_size_t(size), None)
            self.call("cuEventRecord", start, None)
            launch()
            self.call("cuEventRecord", end, None)
            self.call("cuEventSynchronize", end)
            milliseconds = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(milliseconds), start, end)
            times.append(milliseconds.value)
        for event in (start, end):
            self.call("cuEventDestroy_v2", event)
        return statistics.median(times[WARM_UP:])
