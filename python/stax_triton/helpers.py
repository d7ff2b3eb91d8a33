"""Functions of generated kernels that Triton does not have, or computes by other rules.

Rules of Stax: NaN wins in maxima and minima; of equal values the lowest position wins; integer division floors
and never traps (x // 0 is 0, x % 0 is x).
"""

import triton
import triton.language as tl

from stax_triton.mathlib import atomic_add, exp2_flushed, libdevice, reciprocal_flushed  # noqa: F401


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b, tl.PropagateNan.ALL)


@triton.jit
def minimum(a, b):
    return tl.minimum(a, b, tl.PropagateNan.ALL)


@triton.jit
def max2(a, dim):
    return tl.reduce(a, dim, maximum)


@triton.jit
def min2(a, dim):
    return tl.reduce(a, dim, minimum)


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def prod(a, dim):
    return tl.reduce(a, dim, _multiply)


@triton.jit
def _or(a, b):
    return a | b


@triton.jit
def any(a, dim):
    return tl.reduce(a, dim, _or)


@triton.jit
def _and(a, b):
    return a & b


@triton.jit
def all(a, dim):
    return tl.reduce(a, dim, _and)


@triton.jit
def _xor(a, b):
    return a ^ b


@triton.jit
def xor(a, dim):
    return tl.reduce(a, dim, _xor)


@triton.jit
def _first_larger(a, i, b, j):
    """(value, position) of the maximum: NaN before numbers, then the lowest position."""
    a_nan = a != a
    b_nan = b != b
    keep = (a > b) | (a_nan & (b_nan == 0))
    tie = (a == b) | (a_nan & b_nan)
    keep = keep | (tie & (i < j))
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def _first_smaller(a, i, b, j):
    a_nan = a != a
    b_nan = b != b
    keep = (a < b) | (a_nan & (b_nan == 0))
    tie = (a == b) | (a_nan & b_nan)
    keep = keep | (tie & (i < j))
    return tl.where(keep, a, b), tl.where(keep, i, j)


@triton.jit
def max_with_index(value, index, dim):
    """Position and value of the maximum along `dim`."""
    v, i = tl.reduce((value, index), dim, _first_larger)
    return i, v


@triton.jit
def min_with_index(value, index, dim):
    v, i = tl.reduce((value, index), dim, _first_smaller)
    return i, v


@triton.jit
def maximum_with_index(position, value, index, new):
    v, i = _first_larger(value, position, new, index)
    return i, v


@triton.jit
def minimum_with_index(position, value, index, new):
    v, i = _first_smaller(value, position, new, index)
    return i, v


@triton.jit
def welford_step(mean, m2, count, value):
    """Mean, sum of squared deviations and count with one more value in every position."""
    count = count + 1.0
    delta = value - mean
    mean = mean + delta / count
    return mean, m2 + delta * (value - mean), count


@triton.jit
def welford_merge(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    """Chan, Golub and LeVeque 1983; an empty part adds nothing."""
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    delta = mean_b - mean_a
    a_empty = count_a == 0.0
    b_empty = count_b == 0.0
    mean = tl.where(a_empty, mean_b, tl.where(b_empty, mean_a, mean_a + delta * share))
    m2 = tl.where(a_empty, m2_b, tl.where(b_empty, m2_a, m2_a + m2_b + delta * delta * count_a * share))
    return mean, m2, count


@triton.jit
def welford(mean, m2, count, dim):
    return tl.reduce((mean, m2, count), dim, welford_merge)


@triton.jit
def _add_both(a, b, c, d):
    return a + c, b + d


@triton.jit
def welford_rows(mean, m2, count, x, mask, dim: tl.constexpr):
    """Mean, sum of squared deviations and count of each row, with one more block x: the block's own first, in two passes of
    which the second corrects the first's rounding (Chan, Golub and LeVeque 1983, equation 1.7)."""
    if mask is None:
        n = tl.full(mean.shape, x.shape[dim], mean.dtype)
        total = tl.sum(x, dim)
    else:
        mask = tl.broadcast_to(mask, x.shape)
        x = tl.where(mask, x, 0.0)
        # Counted beside the sum: a sum of the mask alone is one that every thread does all of, since nothing of memory
        # tells it how to spread.
        total, n = tl.reduce((x, mask.to(x.dtype)), dim, _add_both)
        n = tl.expand_dims(n, dim)
    some = tl.maximum(n, 1.0)
    rough = tl.expand_dims(total, dim) / some
    d = x - rough
    if mask is not None:
        d = tl.where(mask, d, 0.0)
    rest, squares = tl.reduce((d, d * d), dim, _add_both)
    rest = tl.expand_dims(rest, dim)
    error = rest / some
    error = tl.where(error != error, 0.0, error)
    squares = tl.maximum(tl.expand_dims(squares, dim) - rest * error, 0.0, tl.PropagateNan.ALL)
    return welford_merge(mean, m2, count, rough + error, squares, n)


@triton.jit
def online_softmax(m, s, x, dim):
    """The maximum m of each row and the sum s of exp(x - m), with one more block x: the block's maximum first, so that
    each element costs one exponential. The sum is 0 where the maximum is -inf."""
    larger = tl.maximum(m, tl.expand_dims(max2(x, dim), dim), tl.PropagateNan.ALL)
    shift = tl.where(larger == float("-inf"), 0.0, larger)
    more = tl.sum(libdevice.exp(x - shift), dim)
    return larger, s * libdevice.exp(m - shift) + tl.expand_dims(more, dim)


@triton.jit
def logaddexp(a, b):
    m = tl.maximum(a, b, tl.PropagateNan.ALL)
    infinite = tl.abs(m) == float("inf")
    sum = libdevice.exp(a - m) + libdevice.exp(b - m)
    return tl.where(infinite, m, m + libdevice.log(sum))


@triton.jit
def cumlogaddexp(a, dim):
    return tl.associative_scan(a, dim, logaddexp)


@triton.jit
def later_larger(a, i, b, j):
    """The later of equal values, NaN before numbers."""
    take = (b >= a) | (b != b)
    return tl.where(take, b, a), tl.where(take, j, i)


@triton.jit
def later_smaller(a, i, b, j):
    take = (b <= a) | (b != b)
    return tl.where(take, b, a), tl.where(take, j, i)


@triton.jit
def cummax(value, index, dim):
    return tl.associative_scan((value, index), dim, later_larger)


@triton.jit
def cummin(value, index, dim):
    return tl.associative_scan((value, index), dim, later_smaller)


@triton.jit
def sigmoid(x):
    """Of the exponential that does not overflow, so that what is below the smallest normal number is there, too."""
    e = libdevice.exp(-tl.abs(x))
    part = tl.where(x < 0.0, e, 1.0)
    return tl.div_rn(part, 1.0 + e) if x.dtype == tl.float32 else part / (1.0 + e)


@triton.jit
def sigmoid_relaxed(x):
    """To 1e-5, relatively."""
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def erfc_relaxed(x):
    """Relatively to 3e-6 where it is above 0.05, 5e-4 above 6e-5, 4e-3 above 2e-9: Abramowitz and Stegun
    7.1.26, whose error shrinks with exp(-x^2). One reciprocal, one exp2."""
    a = tl.abs(x)
    t = reciprocal_flushed(tl.fma(a, 0.3275911, 1.0))
    p = tl.fma(t, 1.061405429, -1.453152027)
    p = tl.fma(p, t, 1.421413741)
    p = tl.fma(p, t, -0.284496736)
    p = tl.fma(p, t, 0.254829592)
    tail = exp2_flushed(x * x * -1.4426950408889634) * (p * t)
    return tl.where(x < 0, 2.0 - tail, tail)


@triton.jit
def sign(x):
    """That of NaN is 0."""
    nothing = tl.where(x < 0, -1.0, 0.0).to(x.dtype)
    return tl.where(x > 0, 1.0, nothing).to(x.dtype)


@triton.jit
def sign_int(x):
    return ((x > 0).to(tl.int32) - (x < 0).to(tl.int32)).to(x.dtype)


@triton.jit
def signbit(x):
    if x.dtype == tl.float64:
        return x.to(tl.int64, bitcast=True) < 0
    return x.to(tl.float32).to(tl.int32, bitcast=True) < 0


@triton.jit
def _is_minus_one(a):
    """Triton 3.9 compares no unsigned number with a negative one."""
    return a != a if a.dtype.is_int_unsigned() else a == -1


@triton.jit
def trunc_div_int(a, b):
    zero = b == 0
    minus_one = _is_minus_one(b)
    q = a // tl.where(zero | minus_one, 1, b).to(b.dtype)
    return tl.where(zero, 0, tl.where(minus_one, -a, q)).to(a.dtype)


@triton.jit
def fmod_int(a, b):
    zero = b == 0
    minus_one = _is_minus_one(b)
    r = a % tl.where(zero | minus_one, 1, b).to(b.dtype)
    return tl.where(zero, a, tl.where(minus_one, 0, r)).to(a.dtype)


@triton.jit
def floor_div_int(a, b):
    q = trunc_div_int(a, b)
    r = fmod_int(a, b)
    lower = (r != 0) & ((r < 0) != (b < 0)) & (b != 0)
    return q - lower.to(q.dtype)


@triton.jit
def remainder_int(a, b):
    r = fmod_int(a, b)
    shift = (r != 0) & ((r < 0) != (b < 0)) & (b != 0)
    return tl.where(shift, r + b, r)


@triton.jit
def index_div(a, n):
    """a // n, rounded down, for index arithmetic: n is positive, and may be a plain number."""
    q = a // n
    return tl.where(a - q * n < 0, q - 1, q)


@triton.jit
def index_mod(a, n):
    r = a % n
    return tl.where(r < 0, r + n, r)


@triton.jit
def remainder(a, b):
    r = libdevice.fmod(a, b)
    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)


@triton.jit
def _quotient(a, b):
    return tl.div_rn(a, b) if a.dtype == tl.float32 else a / b


@triton.jit
def trunc_div(a, b):
    return libdevice.trunc(_quotient(a, b))


@triton.jit
def floor_div(a, b):
    """Exact: from the remainder, as the quotient's rounding may pass an integer."""
    r = libdevice.fmod(a, b)
    exact = _quotient(a - r, b)
    exact = tl.where((r != 0) & ((r < 0) != (b < 0)), exact - 1.0, exact)
    near = libdevice.floor(exact)
    near = tl.where(exact - near > 0.5, near + 1.0, near)
    quotient = _quotient(a, b)
    near = tl.where(exact == 0, libdevice.copysign(exact, quotient), near)
    return tl.where(b == 0, quotient, near)


@triton.jit
def shift_left(a, n):
    width: tl.constexpr = a.dtype.primitive_bitwidth
    inside = (n >= 0) & (n < width)
    return tl.where(inside, a << tl.where(inside, n, 0).to(a.dtype), 0).to(a.dtype)


@triton.jit
def shift_right(a, n):
    width: tl.constexpr = a.dtype.primitive_bitwidth
    inside = (n >= 0) & (n < width)
    out = tl.where(a < 0, -1, 0).to(a.dtype)
    return tl.where(inside, a >> tl.where(inside, n, 0).to(a.dtype), out).to(a.dtype)


@triton.jit
def gcd(a, b):
    """The magnitude of the lowest integer is itself, and the steps keep its sign."""
    a, b = tl.broadcast(tl.abs(a), tl.abs(b))  # a loop may not change a block's shape
    steps: tl.constexpr = 2 * a.dtype.primitive_bitwidth
    for _ in tl.range(0, steps):
        r = fmod_int(a, b)
        done = b == 0
        a = tl.where(done, a, b)
        b = tl.where(done, b, r)
    return a


@triton.jit
def pow_int(a, n):
    """a to the n, wrapping; a negative n gives 0, or 1 and -1 where these are the powers."""
    a, n = tl.broadcast(a, n)  # a loop may not change a block's shape
    negative = n < 0
    odd = (n & 1) != 0
    special = tl.where(a == 1, 1, tl.where(_is_minus_one(a), tl.where(odd, -1, 1), 0)).to(a.dtype)
    left = tl.where(negative, 0, n).to(n.dtype)
    result = (a * 0 + 1).to(a.dtype)
    base = a
    width: tl.constexpr = n.dtype.primitive_bitwidth
    for _ in tl.range(0, width):
        result = tl.where((left & 1) != 0, result * base, result).to(a.dtype)
        base = (base * base).to(a.dtype)
        left = left >> 1
    return tl.where(negative, special, result)


@triton.jit
def to_int(x, dtype: tl.constexpr):
    """Truncates. int32 and int64 saturate, narrower types wrap what int32 holds and are 0 for the rest; NaN is 0."""
    x = tl.where(x != x, 0.0, x).to(x.dtype)
    if dtype == tl.int64:
        low = x <= -9223372036854775808.0
        high = x >= 9223372036854775808.0
        inside = tl.where(low | high, 0.0, x).to(x.dtype).to(tl.int64)
        return tl.where(low, -9223372036854775808, tl.where(high, 9223372036854775807, inside)).to(tl.int64)
    low = x <= -2147483649.0
    high = x >= 2147483648.0
    if x.dtype == tl.float32:
        low = x < -2147483648.0
    inside = tl.where(low | high, 0.0, x).to(x.dtype).to(tl.int32)
    if dtype == tl.int32:
        return tl.where(low, -2147483648, tl.where(high, 2147483647, inside)).to(tl.int32)
    return inside.to(dtype)


@triton.jit
def random_bits(seed, counter, word: tl.constexpr):
    """Word `word` of Philox-4x32-10, int64 in [0, 2^32)."""
    low = (counter & 0xFFFFFFFF).to(tl.uint32)
    high = ((counter >> 32) & 0xFFFFFFFF).to(tl.uint32)
    zero = low * 0
    c0, c1, c2, c3 = tl.philox(seed, low, high, zero, zero)
    bits = c0 if word == 0 else c1 if word == 1 else c2 if word == 2 else c3
    return bits.to(tl.uint32).to(tl.int64)


@triton.jit
def digamma(x):
    """Reflection for x < 0, recurrence up to 10, then the asymptotic series (Abramowitz and Stegun 6.3.7, 6.3.5,
    6.3.18), in float64."""
    pi: tl.constexpr = 3.141592653589793
    y = x.to(tl.float64)
    reflect = y < 0.0
    pole = (y == libdevice.floor(y)) & reflect
    z = tl.where(reflect, 1.0 - y, y)
    shift = tl.zeros_like(z)
    for _ in tl.range(0, 10):
        small = z < 10.0
        shift = shift - tl.where(small, 1.0 / tl.where(small, z, 1.0), 0.0)
        z = tl.where(small, z + 1.0, z)
    w = 1.0 / (z * z)
    tail = w * (0.08333333333333333 - w * (0.008333333333333333 - w * (0.003968253968253968 - w * (
        0.004166666666666667 - w * (0.007575757575757576 - w * (0.021092796092796094 - w * 0.08333333333333333))))))
    value = shift + libdevice.log(z) - 0.5 / z - tail
    nearest = y - libdevice.rint(y)  # exact, and exact for tiny y
    value = tl.where(reflect, value - pi / libdevice.tan(pi * nearest), value)
    value = tl.where(pole, float("nan"), value)
    value = tl.where(y == 0.0, libdevice.copysign(y * 0.0 + float("inf"), y * -1.0), value)
    return value.to(x.dtype)


@triton.jit
def i0(x):
    """NaN at both infinities, as on the CPU; libdevice is infinite there."""
    return tl.where(tl.abs(x) == float("inf"), float("nan"), libdevice.cyl_bessel_i0(x))


@triton.jit
def last(a, dim):
    """The last position of every row, which stays a dimension."""
    n: tl.constexpr = a.shape[dim]
    position = tl.arange(0, n)[None, :]
    return tl.sum(tl.where(position == n - 1, a, 0).to(a.dtype), dim)[:, None].to(a.dtype)


@triton.jit
def check_index(index, size, wrap: tl.constexpr, mask, node, status):
    """`index` inside [0, size), negative ones from the end where `wrap`. The first that lies outside is left in
    `status`: (node, index, size, flag)."""
    value = index + size if wrap else index
    value = tl.where(index < 0, value, index)
    bad = (value < 0) | (value >= size)
    if mask is not None:
        bad = bad & mask
    if tl.max(bad.to(tl.int32)) != 0:
        # Of 32 bits: of an exchange of 64 bits Triton 3.4 and 3.5 hand on half the result, which is not assembled.
        flag = (status + 3).to(tl.pointer_type(tl.int32), bitcast=True)
        if tl.atomic_cas(flag, tl.full((), 0, tl.int32), tl.full((), 1, tl.int32)) == 0:
            worst = tl.max(tl.where(bad, index, -9223372036854775808))
            tl.store(status, node)
            tl.store(status + 1, worst)
            tl.store(status + 2, size)
    return tl.where(bad, 0, value)
