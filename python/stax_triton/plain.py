"""The functions of plain evaluations (`def plain...` in files of `stax show --stage triton`) that NumPy lacks.

They follow the rules of the instructions of loops (src/loops/opcode.h), by the shortest way rather than the fastest,
and share nothing with the kernels. Folds and scans go over the last axes of an array; folds leave them with length 1.
Half types are given as float32.
"""

import math

import numpy as np

# Before NumPy 2, Python's numbers widen numbers of NumPy unless told otherwise.
getattr(np, "_set_promotion_state", lambda state: None)("weak")


class Undetermined(Exception):
    """The result would depend on the order in which points are evaluated."""


class OutOfRange(Exception):
    """The kernel would report an index."""


# Half types.


def float16(x):
    """Rounded to float16, still float32."""
    with np.errstate(over="ignore"):
        return np.asarray(x, np.float32).astype(np.float16).astype(np.float32)


def bfloat16(x):
    """Rounded to bfloat16, to nearest even, still float32."""
    x = np.asarray(x, np.float32)
    half, one, below = np.uint64(16), np.uint64(1), np.uint64(0x7FFF)
    bits = x.view(np.uint32).astype(np.uint64)
    rounded = (bits + below + (bits >> half & one) >> half << half).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), x, rounded)


# Memory.


def load(array, index, mask):
    """array[index], and 0 where the mask is false."""
    mask = np.asarray(mask)
    index, mask = np.broadcast_arrays(index, mask)
    values = np.zeros(mask.shape, array.dtype)
    values[mask] = array[index[mask]]
    return values


def _places(index, value, mask):
    index, value, mask = np.broadcast_arrays(index, value, True if mask is None else mask)
    return index[mask], value[mask]


def store(array, index, value, mask=None):
    """array[index] = value where the mask holds. Values that meet at one place have to be equal."""
    index, value = _places(index, value, mask)
    value = value.astype(array.dtype)
    array[index] = value
    kept = array[index]
    if not ((kept == value) | ((kept != kept) & (value != value))).all():
        raise Undetermined("different values are stored at one place")


def add_at(array, index, value, mask=None):
    """array[index] += value where the mask holds; what meets at one place adds up."""
    index, value = _places(index, value, mask)
    (np.logical_or if array.dtype == np.bool_ else np.add).at(array, index, value)


def check_index(index, size, wrap=False, mask=None):
    """`index` if it lies in [0, size), negative ones from the end where `wrap`; 0 where the mask is false."""
    value = np.where(index < 0, index + size, index) if wrap else np.asarray(index)
    wanted = True if mask is None else mask
    if (((value < 0) | (value >= size)) & wanted).any():
        raise OutOfRange(f"an index is out of range for a dimension of size {size}")
    return np.where(wanted, value, 0)


# Functions of floats.


def _each(function):
    """A function of Python's floats, as one of arrays. It is computed in float64."""

    def safe(x):
        try:
            return function(x)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    each = np.vectorize(safe, otypes=[np.float64])
    return lambda x: each(x).astype(np.asarray(x).dtype) if np.size(x) else x


def _erfinv(y):
    """By bisection, and Newton's steps from there, for the smaller of the tails."""
    if not abs(y) < 1:
        return math.copysign(math.inf, y) if abs(y) == 1 else math.nan
    a, low, high = abs(y), 0.0, 6.0
    off = (lambda x: math.erf(x) - a) if a < 0.5 else (lambda x: (1 - a) - math.erfc(x))
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if off(middle) < 0 else (low, middle)
    x = (low + high) / 2 if a > 1e-8 else a * math.sqrt(math.pi) / 2
    for _ in range(2):
        x -= off(x) * math.exp(x * x) * math.sqrt(math.pi) / 2
    return math.copysign(x, y)


def _lgamma(x):
    return math.inf if math.isinf(x) or (x <= 0 and x == math.floor(x)) else math.lgamma(x)


def _digamma(x):
    """From psi(x + 1) = psi(x) + 1/x to where log(x) - 1/(2x) - ... is exact; reflected below 0."""
    if x == 0:
        return -math.copysign(math.inf, x)
    if x < 0:
        if math.isinf(x) or x == math.floor(x):
            return math.nan
        return _digamma(1 - x) - math.pi / math.tan(math.pi * math.remainder(x, 1))
    below = 0.0
    while x < 20:
        below, x = below + 1 / x, x + 1
    w = 1 / (x * x)
    return math.log(x) - 0.5 / x - w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w / 132)))) - below


erf, erfc, erfinv = _each(math.erf), _each(math.erfc), _each(_erfinv)
lgamma, digamma = _each(_lgamma), _each(_digamma)


def i0(x):
    """The modified Bessel function of order 0, which is NaN at infinities."""
    x = np.asarray(x)
    return np.where(np.isinf(x), np.nan, np.i0(x.astype(np.float64))).astype(x.dtype)


def sigmoid(x):
    return (1 / (1 + np.exp(-np.asarray(x, np.float64)))).astype(np.asarray(x).dtype)


def sign(x):
    """0 of NaN, too."""
    return np.nan_to_num(np.sign(x))


def fma(x, y, z):
    """x * y + z, of float32 rounded once but for rare cases."""
    dtype = np.result_type(x, y, z)
    return (np.asarray(x, np.float64) * y + z).astype(dtype)


# Division. Integers never trap: x/0 is 0, x%0 is x.


def _by(y):
    return np.where(y == 0, np.ones_like(y), y)


def _is_float(x):
    return np.asarray(x).dtype.kind == "f"


def floor_div(x, y):
    if _is_float(x):
        return np.where(y == 0, x / y, np.floor_divide(x, y))
    return np.where(y == 0, 0, np.floor_divide(x, _by(y))).astype(np.asarray(x).dtype)


def fmod(x, y):
    """The rest with the sign of x."""
    return np.fmod(x, y) if _is_float(x) else np.where(y == 0, x, np.fmod(x, _by(y)))


def remainder(x, y):
    """The rest with the sign of y."""
    rest = fmod(x, y)
    return np.where((rest != 0) & (y != 0) & ((rest < 0) != (y < 0)), rest + y, rest).astype(np.asarray(x).dtype)


def trunc_div(x, y):
    """The quotient towards zero."""
    if _is_float(x):
        wide = np.trunc(np.asarray(x, np.float64) / y)
        exact = np.rint((np.asarray(x, np.float64) - np.fmod(x, y)) / y)
        return np.where(np.isfinite(wide) & np.isfinite(y), exact, wide).astype(np.asarray(x).dtype)
    return np.where(y == 0, 0, (x - np.fmod(x, _by(y))) // _by(y)).astype(np.asarray(x).dtype)


def power(x, y):
    """Integers wrap; with negative exponents they are the quotient 1 / x^|y| towards zero."""
    if _is_float(x):
        return np.power(np.asarray(x, np.float64), y).astype(np.asarray(x).dtype)
    base, exponent = np.broadcast_arrays(x, y)
    inverse = np.where(base == 1, 1, np.where(base == -1, 1 - 2 * (exponent % 2), 0))
    return np.where(exponent < 0, inverse, np.power(base, np.maximum(exponent, 0))).astype(np.asarray(x).dtype)


# Bits.


def _inside(x, count):
    return (count >= 0) & (count < 8 * np.asarray(x).dtype.itemsize)


def shift_left(x, count):
    inside = _inside(x, count)
    return np.where(inside, np.left_shift(x, np.where(inside, count, 0)), 0).astype(np.asarray(x).dtype)


def shift_right(x, count):
    """Past the width: 0, or the sign."""
    inside = _inside(x, count)
    shifted = np.right_shift(x, np.where(inside, count, 0))
    return np.where(inside, shifted, np.where(x < 0, -1, 0)).astype(np.asarray(x).dtype)


def to_integer(x, dtype):
    """Towards zero; int32 and int64 saturate, narrower types wrap what int32 holds and are 0 for the rest, as NaN."""
    wide = np.dtype(dtype) if np.dtype(dtype).itemsize >= 4 else np.dtype(np.int32)
    low, high = float(np.iinfo(wide).min), -float(np.iinfo(wide).min)
    whole = np.trunc(np.asarray(x, np.float64))
    inside = (whole >= low) & (whole < high)
    values = np.where(inside, whole, 0).astype(wide)
    if wide == np.dtype(dtype):
        limits = np.iinfo(wide)
        values = np.where(whole >= high, limits.max, np.where(whole < low, limits.min, values))
    return values.astype(dtype)


def random_bits(seed, counter, word):
    """Word `word` of Philox-4x32-10 (Salmon et al. 2011) with key `seed`, as int64 in [0, 2^32)."""
    low = np.uint64(0xFFFFFFFF)
    seed, counter = np.asarray(seed).astype(np.uint64), np.asarray(counter).astype(np.uint64)
    keys = [seed & low, seed >> np.uint64(32)]
    words = [counter & low, counter >> np.uint64(32), np.uint64(0), np.uint64(0)]
    for _ in range(10):
        first, second = words[0] * np.uint64(0xD2511F53), words[2] * np.uint64(0xCD9E8D57)
        words = [second >> np.uint64(32) ^ words[1] ^ keys[0], second & low,
                 first >> np.uint64(32) ^ words[3] ^ keys[1], first & low]  # fmt: skip
        keys = [keys[0] + np.uint64(0x9E3779B9) & low, keys[1] + np.uint64(0xBB67AE85) & low]
    return words[word].astype(np.int64)


# Folds.


def _rows(x, axes):
    """The last `axes` axes as one."""
    return x.reshape(x.shape[: x.ndim - axes] + (math.prod(x.shape[x.ndim - axes :]),))


def _folded(values, axes):
    return np.asarray(values).reshape(np.shape(values) + (1,) * axes)


def _wide(x):
    """Sums of floats are made in float64, and rounded once."""
    return np.float64 if x.dtype.kind == "f" else x.dtype


def _lowest(dtype):
    return -np.inf if dtype.kind == "f" else False if dtype.kind == "b" else np.iinfo(dtype).min


def _highest(dtype):
    return np.inf if dtype.kind == "f" else True if dtype.kind == "b" else np.iinfo(dtype).max


def total(x, axes=1):
    rows = _rows(x, axes)
    sums = rows.any(-1) if x.dtype == np.bool_ else rows.sum(-1, dtype=_wide(x)).astype(x.dtype)
    return _folded(sums, axes)


def product(x, axes=1):
    rows = _rows(x, axes)
    return _folded(rows.all(-1) if x.dtype == np.bool_ else rows.prod(-1, dtype=_wide(x)).astype(x.dtype), axes)


def largest(x, axes=1):
    """NaN where there is one."""
    return _folded(_rows(x, axes).max(-1, initial=_lowest(x.dtype)), axes)


def smallest(x, axes=1):
    return _folded(_rows(x, axes).min(-1, initial=_highest(x.dtype)), axes)


def any_of(x, axes=1):
    return _folded(_rows(x, axes).any(-1), axes)


def all_of(x, axes=1):
    return _folded(_rows(x, axes).all(-1), axes)


def xor_of(x, axes=1):
    return _folded(np.bitwise_xor.reduce(_rows(x, axes), -1), axes)


def largest_at(x, axes=1):
    """(The first position of the largest value, or of NaN; the value.)"""
    rows = _rows(x, axes)
    at = rows.argmax(-1)
    return _folded(at, axes), _folded(np.take_along_axis(rows, at[..., None], -1)[..., 0], axes)


def smallest_at(x, axes=1):
    rows = _rows(x, axes)
    at = rows.argmin(-1)
    return _folded(at, axes), _folded(np.take_along_axis(rows, at[..., None], -1)[..., 0], axes)


def mean_and_squares(x, axes=1):
    """(Mean, sum of squared deviations, count.)"""
    rows = _rows(x, axes).astype(np.float64)
    mean = rows.mean(-1, keepdims=True)
    squares = ((rows - mean) ** 2).sum(-1)
    count = np.full(squares.shape, rows.shape[-1])
    return tuple(_folded(r.astype(x.dtype), axes) for r in (mean[..., 0], squares, count))


def merged_mean_and_squares(mean, squares, count, axes=1):
    """The same of several parts; empty ones add nothing."""
    dtype = mean.dtype
    mean, squares, count = (_rows(a, axes).astype(np.float64) for a in np.broadcast_arrays(mean, squares, count))
    mean, squares = np.where(count == 0, 0, mean), np.where(count == 0, 0, squares)
    whole = count.sum(-1)
    merged = (count * mean).sum(-1) / whole
    around = (squares + count * (mean - merged[..., None]) ** 2).sum(-1)
    return tuple(_folded(r.astype(dtype), axes) for r in (merged, around, whole))


def largest_and_exponentials(x, axes=1):
    """(m, the largest value; the sum of exp(x - m), 0 where m is -inf.)"""
    rows = _rows(x, axes)
    m = rows.max(-1, initial=-np.inf, keepdims=True)
    exponentials = np.exp((rows - np.where(m == -np.inf, 0, m)).astype(np.float64)).sum(-1)
    return _folded(m[..., 0], axes), _folded(np.where(m[..., 0] == -np.inf, 0, exponentials).astype(x.dtype), axes)


# Scans: each position has the fold of those up to it.


def running_total(x, axes=1):
    rows = _rows(x, axes)
    if x.dtype == np.bool_:
        return np.logical_or.accumulate(rows, -1).reshape(x.shape)
    return rows.cumsum(-1, dtype=_wide(x)).astype(x.dtype).reshape(x.shape)


def running_product(x, axes=1):
    rows = _rows(x, axes)
    if x.dtype == np.bool_:
        return np.logical_and.accumulate(rows, -1).reshape(x.shape)
    return rows.cumprod(-1, dtype=_wide(x)).astype(x.dtype).reshape(x.shape)


def _running(ufunc, x, axes):
    """(Extrema, positions of the last ones.)"""
    rows = _rows(x, axes)
    values = ufunc.accumulate(rows, -1)
    extreme = (rows == values) | ((rows != rows) & (values != values))
    positions = np.maximum.accumulate(np.where(extreme, np.arange(rows.shape[-1]), 0), -1)
    return values.reshape(x.shape), positions.reshape(x.shape)


def running_largest(x, axes=1):
    return _running(np.maximum, x, axes)


def running_smallest(x, axes=1):
    return _running(np.minimum, x, axes)


def running_log_of_exponentials(x, axes=1):
    rows = _rows(x, axes).astype(np.float64)
    return np.logaddexp.accumulate(rows, -1).astype(x.dtype).reshape(x.shape)


def in_order(x, axes=1):
    """The values of each row, the smallest first."""
    return np.sort(_rows(x, axes), -1).reshape(x.shape)
