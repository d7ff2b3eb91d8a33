"""The functions of libdevice for Triton's interpreter: NumPy where it has them, Python's math elsewhere."""

import ctypes
import math
import statistics

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from stax_triton import bfloat16


def _array(x):
    return x.handle.data if isinstance(x, tl.tensor) else np.asarray(x)


def _block(data, like):
    scalar = like.type.scalar
    handle = TensorHandle(data, scalar)
    shape = data.shape
    return tl.tensor(handle, tl.block_type(scalar, list(shape)) if shape else scalar)


def _wrap(function):
    def apply(*args):
        like = next(a for a in args if isinstance(a, tl.tensor))
        arrays = np.broadcast_arrays(*(_array(a) for a in args))
        with np.errstate(all="ignore"):
            data = np.asarray(function(*arrays)).astype(_array(like).dtype)
        return _block(data, like)

    return apply


def _guarded(function):
    def safe(*values):
        try:
            return function(*values)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    vectorized = np.vectorize(safe, otypes=[np.float64])
    return lambda *arrays: vectorized(*(a.astype(np.float64) for a in arrays)) if arrays[0].size else arrays[0]


def _wide(function):
    """In float64, so that float32 results are rounded once."""
    return lambda *arrays: function(*(a.astype(np.float64) for a in arrays))


def _lgamma(x):
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def _erfinv(y):
    """From the normal distribution's quantile, with two steps of Newton on the side that keeps its digits."""
    if math.isnan(y) or abs(y) > 1:
        return math.nan
    if abs(y) == 1:
        return math.copysign(math.inf, y)
    if y == 0:
        return y
    a = abs(y)
    x = -statistics.NormalDist().inv_cdf(max((1 - a) / 2, 1e-300)) / math.sqrt(2)
    for _ in range(2):
        error = math.erf(x) - a if a < 0.5 else (1 - a) - math.erfc(x)
        x -= error / (2 / math.sqrt(math.pi) * math.exp(-x * x))
    return math.copysign(x, y)


exp = _wrap(_wide(np.exp))
exp2 = _wrap(_wide(np.exp2))
expm1 = _wrap(_wide(np.expm1))
log = _wrap(_wide(np.log))
log2 = _wrap(_wide(np.log2))
log10 = _wrap(_wide(np.log10))
log1p = _wrap(_wide(np.log1p))
sin = _wrap(_wide(np.sin))
cos = _wrap(_wide(np.cos))
tan = _wrap(_wide(np.tan))
asin = _wrap(_wide(np.arcsin))
acos = _wrap(_wide(np.arccos))
atan = _wrap(_wide(np.arctan))
sinh = _wrap(_wide(np.sinh))
cosh = _wrap(_wide(np.cosh))
tanh = _wrap(_wide(np.tanh))
asinh = _wrap(_wide(np.arcsinh))
acosh = _wrap(_wide(np.arccosh))
atanh = _wrap(_wide(np.arctanh))
erf = _wrap(_guarded(math.erf))
erfc = _wrap(_guarded(math.erfc))
erfinv = _wrap(_guarded(_erfinv))
lgamma = _wrap(_guarded(_lgamma))
cyl_bessel_i0 = _wrap(_wide(np.i0))
sqrt = _wrap(np.sqrt)
rsqrt = _wrap(lambda x: 1 / np.sqrt(x.astype(np.float64)))
fast_dividef = _wrap(lambda a, b: a / b)
floor = _wrap(np.floor)
ceil = _wrap(np.ceil)
trunc = _wrap(np.trunc)
rint = _wrap(np.rint)
fmod = _wrap(np.fmod)
pow = _wrap(_wide(np.power))
atan2 = _wrap(_wide(np.arctan2))
hypot = _wrap(_wide(np.hypot))
copysign = _wrap(np.copysign)
nextafter = _wrap(np.nextafter)


def _fma(a, b, c):
    """One rounding for float32: the product is exact in float64, and the sum is rounded to odd there by luck of
    its 29 spare bits in all but rare cases. float64 rounds twice."""
    return a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)


fma = _wrap(_fma)


exp2_flushed = _wrap(np.exp2)
reciprocal_flushed = _wrap(np.reciprocal)


_CTYPES = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}


def atomic_add(pointer, value, mask):
    """Position by position, so that dtypes without atomic instructions, and positions that repeat, are right."""
    addresses = pointer.handle.data
    values = np.broadcast_to(value.handle.data, addresses.shape).reshape(-1)
    on = np.broadcast_to(True if mask is None else mask.handle.data, addresses.shape).reshape(-1)
    brain = value.type.scalar == tl.bfloat16
    size = values.dtype.itemsize
    for address, term, wanted in zip(addresses.reshape(-1), values, on):
        if not wanted:
            continue
        cell = np.frombuffer(_CTYPES[size].from_address(int(address)), dtype=values.dtype)
        if brain:
            cell[0] = bfloat16.bits_of(bfloat16.values_of(cell[0]) + bfloat16.values_of(term))
        else:
            cell[0] = cell[0] + term
