"""The functions of libdevice for Triton's interpreter: NumPy where it has them, Python's math elsewhere."""

import math

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle


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
            data = np.asarray(function(*arrays)).astype(arrays[0].dtype)
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
    if math.isnan(y) or abs(y) > 1:
        return math.nan
    if abs(y) == 1:
        return math.copysign(math.inf, y)
    a = 0.147
    log = math.log(1 - y * y) if abs(y) < 1 else -math.inf
    t = 2 / (math.pi * a) + log / 2
    x = math.copysign(math.sqrt(math.sqrt(t * t - log / a) - t), y)
    for _ in range(4):  # Newton
        if math.isinf(x):
            break
        error = math.erf(x) - y if abs(x) < 2 else math.copysign(1 - abs(y) - math.erfc(abs(x)), y)
        x -= error / (2 / math.sqrt(math.pi) * math.exp(-x * x))
    return x


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
