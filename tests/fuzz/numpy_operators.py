"""What every operator of the random programs computes, as NumPy says it. Independent of Stax."""

import math

import numpy as np
from scipy import special

FLOATS = {"float16": (11, -14, 65504.0), "bfloat16": (8, -126, 3.3895313892515355e38),
          "float32": (24, -126, 3.4028234663852886e38), "float64": (53, -1022, 1.7976931348623157e308)}
BITS = {"uint8": 8, "int8": 8, "int16": 16, "int32": 32, "int64": 64}
ORDER = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"]


def is_float(dtype):
    return dtype in FLOATS


def compute_dtype(dtype):
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def unit_of(array, dtype):
    """The distance between neighbouring numbers of the dtype at each element."""
    digits, lowest, _ = FLOATS[dtype]
    exponent = np.frexp(np.where(np.isfinite(array), array, 0.0))[1] - 1
    exponent = np.where(np.isfinite(array) & (array != 0), exponent, lowest)
    return np.ldexp(1.0, np.maximum(exponent, lowest) - digits + 1)


def round_to(array, dtype):
    """Rounded to nearest even; past the largest number infinite."""
    if dtype == "float64":
        return array
    unit = unit_of(array, dtype)
    rounded = np.where(np.isfinite(array), np.rint(array / unit) * unit, array)
    limit = FLOATS[dtype][2]
    return np.where(np.abs(rounded) > limit, np.copysign(np.inf, rounded), rounded)


def wrap(array, dtype):
    """Integers at the width of the dtype."""
    if dtype == "bool":
        return np.asarray(array) != 0
    return np.asarray(array).astype(np.int64).astype(dtype).astype(np.int64)


def to_integer(array, dtype):
    """Floats to integers: truncated, NaN 0; saturated at int32 or int64; of a narrower type those that int32
    holds are wrapped, others are 0."""
    if dtype == "bool":
        return array != 0
    low, high = (-(2.0**63), 2.0**63) if dtype == "int64" else (-(2.0**31), 2.0**31 - 1)
    whole = np.trunc(np.where(np.isnan(array), 0.0, array))
    out = np.where(whole >= high, np.int64(2**63 - 1) if dtype == "int64" else np.int64(2**31 - 1),
                   np.clip(whole, low, high * (1 - 2.0**-53)).astype(np.int64))
    if dtype not in ("int32", "int64"):
        out = np.where(np.abs(whole) < 2.0**31, out, 0)
    return wrap(out, dtype)


def cast(array, source, target):
    """Between dtypes, with the array as this module holds it. Floats are rounded by the caller."""
    if is_float(target):
        return np.asarray(array, dtype=np.float64)
    return to_integer(array, target) if is_float(source) else wrap(array, target)


def category(dtype):
    return 0 if dtype == "bool" else 2 if is_float(dtype) else 1


def promote_two(a, b):
    if a == b:
        return a
    if category(a) != category(b):
        return a if category(a) > category(b) else b
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if {a, b} == {"uint8", "int8"}:
        return "int16"
    return max(a, b, key=ORDER.index)


class Rank:
    """How much say an operand has in promotion: tensors with dimensions, then zero-dim tensors, then numbers."""

    TENSOR, SCALAR, NUMBER = range(3)


def promote(operands):
    by_rank = {}
    for x in operands:
        if isinstance(x, (bool, int, float)):
            rank = Rank.NUMBER
            dtype = "bool" if isinstance(x, bool) else "int64" if isinstance(x, int) else "float32"
        else:
            rank = Rank.TENSOR if np.ndim(x.array) else Rank.SCALAR
            dtype = x.dtype
        by_rank[rank] = promote_two(by_rank[rank], dtype) if rank in by_rank else dtype
    out = None
    for rank in sorted(by_rank):
        if out is None or category(by_rank[rank]) > category(out):
            out = by_rank[rank]
    return out


class Context:
    """Rounding of one step: r() after an operation that is rounded once, t() after a function of some units."""

    def __init__(self, dtype, noise):
        self.result = dtype  # of the step
        self.dtype = compute_dtype(dtype)
        self.noise = noise

    def shake(self, x, units, dtype=None):
        """x, off by up to `units` units of the last place where there is noise."""
        if self.noise is None:
            return x
        unit = unit_of(x, dtype or self.dtype) * units
        sign = self.noise.choice([-1.0, 1.0], size=np.shape(x))
        return x + sign * self.noise.uniform(0.5, 1.0, size=np.shape(x)) * np.where(np.isfinite(x), unit, 0)

    def r(self, x, dtype=None):
        """After one correctly rounded operation: exact results stay."""
        dtype = dtype or self.dtype
        x = np.asarray(x, dtype=np.float64)
        rounded = round_to(x, dtype)
        x = np.where(np.isinf(rounded), rounded, x)
        exact = (rounded == x) | np.isnan(x)
        if dtype == "float64":  # what float64 rounds is not seen in float64; short numbers are taken as exact
            exact = (np.rint(x * 2.0**20) == x * 2.0**20) & (np.abs(x) < 2.0**32) | ~np.isfinite(x)
        return np.where(exact, x, self.moved(x, rounded, 1, dtype))

    def moved(self, x, rounded, units, dtype):
        """With noise, x as it may be in its dtype: off by some units, or rounded, which can be an integer where
        x is none."""
        if self.noise is None:
            return x
        return np.where(self.noise.random(np.shape(x)) < 0.5, rounded, self.shake(x, units, dtype))

    def t(self, x, units=4):
        """After a function that is right to a few units."""
        x = np.asarray(x, dtype=np.float64)
        rounded = round_to(x, self.dtype)
        x = np.where(np.isinf(rounded), rounded, x)
        return self.moved(x, rounded, units, self.dtype)

    def near(self, x, scale):
        """After a function whose error is that of terms of size `scale`."""
        terms = np.full(np.shape(x), float(scale))
        return self.t(x) + (self.shake(terms, 4) - terms)

    def summands(self, x, count):
        """Elements of a sum of `count`: as if its rounding errors had been made in them. Exact sums stay."""
        limit = 2.0 ** FLOATS[self.dtype][0]
        scaled = x * 2.0**10
        if np.all(np.isfinite(x)) and np.all(scaled == np.rint(scaled)) and np.sum(np.abs(scaled)) < limit:
            return x
        return self.shake(x, 4 + math.sqrt(max(count, 1)))

    def final(self, x):
        """The result in its own dtype."""
        return self.r(x, self.result)


UNARY = {}
BINARY = {}
OTHER = {}


def unary(*names):
    """f(context, x) on floats; integers and bool are converted."""
    def register(f):
        for name in names:
            UNARY[name] = f
        return f
    return register


def simple(name, f, exact=True):
    UNARY[name] = (lambda c, x: c.r(f(x))) if exact else (lambda c, x: c.t(f(x)))


for _name, _f in {"abs": np.abs, "neg": np.negative, "sqrt": np.sqrt, "reciprocal": lambda x: 1 / x,
                  "square": lambda x: x * x, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc,
                  "round": np.rint, "frac": lambda x: x - np.trunc(x), "clone": lambda x: x,
                  "relu": lambda x: np.where(np.isnan(x) | (x > 0), x, 0.0),
                  "relu6": lambda x: np.minimum(np.maximum(x, 0.0), 6.0),
                  "sign": lambda x: np.where(np.isnan(x), 0.0, np.sign(x)),
                  "hardshrink": lambda x: np.where((x >= -0.5) & (x <= 0.5), 0.0, x),
                  "softshrink": lambda x: np.where(x > 0.5, x - 0.5, np.where(x < -0.5, x + 0.5, x * 0.0))}.items():
    simple(_name, _f)


def digamma(x):
    """Below 0 by reflection, with the distance from the nearest pole taken exactly."""
    pole = x == np.rint(x)
    below = special.digamma(1 - x) - np.pi / np.tan(np.pi * (x - np.rint(x)))
    return np.where(x == 0, np.copysign(np.inf, -x), np.where(x > 0, special.digamma(x), np.where(pole, np.nan, below)))


for _name, _f in {"rsqrt": lambda x: 1 / np.sqrt(x), "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log,
                  "log2": np.log2, "log10": np.log10, "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan,
                  "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
                  "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
                  "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": special.erf, "erfc": special.erfc,
                  "i0": lambda x: np.where(np.isinf(x), np.inf, special.i0(x)), "erfinv": special.erfinv}.items():
    simple(_name, _f, exact=False)

UNARY["deg2rad"] = lambda c, x: c.t(x * (math.pi / 180))
UNARY["rad2deg"] = lambda c, x: c.t(x * (180 / math.pi))


def gammaln(c, x):
    return c.near(np.where(np.isneginf(x), np.inf, special.gammaln(x)), 1)


UNARY["lgamma"] = gammaln
UNARY["digamma"] = lambda c, x: c.near(digamma(x), 1)


@unary("sinc")
def sinc(c, x):
    t = c.t(x * math.pi)
    return np.where(x == 0, 1.0, c.r(c.t(np.sin(t)) / t))


@unary("logit")
def logit(c, x):
    return c.t(np.log(c.r(x / c.r(1 - x))))


@unary("leaky_relu")
def leaky_relu(c, x):
    return np.where(x > 0, x, c.t(x * 0.01, 1))


@unary("hardsigmoid")
def hardsigmoid(c, x):
    return c.r(np.minimum(np.maximum(c.r(x + 3), 0), 6) / 6)


@unary("hardswish")
def hardswish(c, x):
    return c.r(c.r(x * np.minimum(np.maximum(c.r(x + 3), 0), 6)) / 6)


@unary("softsign")
def softsign(c, x):
    return c.r(x / c.r(1 + np.abs(x)))


@unary("silu")
def silu(c, x):
    return c.r(x / c.r(1 + c.t(np.exp(-x))))


@unary("gelu")
def gelu(c, x):
    return c.r(c.r(x * 0.5) * c.r(1 + c.t(special.erf(c.t(x * math.sqrt(0.5), 1)))))


@unary("mish")
def mish(c, x):
    inner = np.where(x > 20, x, c.t(np.log1p(c.t(np.exp(x)))))
    return c.r(x * c.t(np.tanh(inner)))


@unary("elu", "celu")
def elu(c, x):
    return np.where(x > 0, x, c.t(np.expm1(x)))


@unary("selu")
def selu(c, x):
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return np.where(x > 0, c.t(x * scale, 1), c.t(c.t(np.expm1(x)) * (scale * alpha)))


@unary("softplus")
def softplus(c, x):
    return np.where(x > 20, x, c.t(np.log1p(c.t(np.exp(x)))))


@unary("logsigmoid")
def logsigmoid(c, x):
    return c.r(np.minimum(x, 0) - c.t(np.log1p(c.t(np.exp(-np.abs(x))))))


@unary("tanhshrink")
def tanhshrink(c, x):
    return c.r(x - c.t(np.tanh(x)))


PREDICATES = {
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "isposinf": np.isposinf,
    "isneginf": np.isneginf, "signbit": np.signbit, "logical_not": lambda x: x == 0,
}
KEEP_INTEGERS = {"floor", "ceil", "trunc", "round", "nan_to_num", "clone"}
INTEGER_UNARY = {
    "abs": np.abs, "neg": lambda x: 0 - x, "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6), "square": lambda x: x * x,
    "sign": np.sign,
}


def floats_of(x, dtype, c):
    """Operand x (a value or a number) as floats of `dtype`, rounded where it holds more digits."""
    if isinstance(x, (bool, int, float)):
        return round_to(np.float64(x), compute_dtype(dtype))
    array = np.asarray(x.array, dtype=np.float64)
    if is_float(x.dtype) and FLOATS[compute_dtype(x.dtype)][0] <= FLOATS[compute_dtype(dtype)][0]:
        return array
    return c.r(array)


def integers_of(x, dtype):
    if isinstance(x, (bool, int)):
        return wrap(np.int64(x), dtype)
    return wrap(x.array, dtype)


def evaluate_unary(name, x, dtype, noise):
    c = Context(dtype, noise)
    if name in PREDICATES:
        if is_float(x.dtype) or name == "logical_not":
            return PREDICATES[name](x.array)
        if name == "signbit":
            return np.asarray(x.array) < 0
        return np.full(np.shape(x.array), name == "isfinite")
    if name == "bitwise_not":
        return ~x.array if x.dtype == "bool" else wrap(~x.array, dtype)
    if name == "nan_to_num" and is_float(dtype):
        limit = FLOATS[dtype][2]
        return np.where(np.isnan(x.array), 0, np.where(np.isinf(x.array), np.copysign(limit, x.array), x.array))
    if not is_float(dtype):
        if name in KEEP_INTEGERS:
            return x.array
        return wrap(INTEGER_UNARY[name](x.array), dtype)
    return c.final(UNARY[name](c, floats_of(x, dtype, c)))


# Binary operators on floats: f(context, a, b).
def once(f):
    return lambda c, a, b: c.r(f(a, b))


def float_mod(a, b):
    return np.where(np.isinf(b) & np.isfinite(a), np.where((a != 0) & ((a < 0) != (b < 0)), b, a), np.mod(a, b))


def floor_divide(a, b):
    exact = np.floor_divide(a, b)
    return np.where(b == 0, a / b, exact)


def logaddexp(c, a, b):
    high, low = np.maximum(a, b), np.minimum(a, b)
    return np.where((a == b) & np.isinf(a), a, c.r(high + c.t(np.log1p(c.t(np.exp(c.r(low - high)))))))


def logaddexp2(c, a, b):
    high, low = np.maximum(a, b), np.minimum(a, b)
    tail = c.t(c.t(np.log1p(c.t(np.exp2(c.r(low - high))))) / math.log(2))
    return np.where((a == b) & np.isinf(a), a, c.r(high + tail))


def xlogy(c, a, b):
    return np.where(np.isnan(b), b, np.where(a == 0, 0.0, c.r(a * c.t(np.log(b)))))


def heaviside(c, a, b):
    return np.where(a == 0, b, (a > 0).astype(np.float64))


FLOAT_BINARY = {
    "add": once(np.add), "sub": once(np.subtract), "rsub": once(lambda a, b: b - a), "mul": once(np.multiply),
    "div": once(np.divide), "maximum": once(np.maximum), "minimum": once(np.minimum), "fmax": once(np.fmax),
    "fmin": once(np.fmin), "floor_divide": once(floor_divide), "trunc_divide": lambda c, a, b: np.trunc(c.r(a / b)),
    "remainder": once(float_mod), "fmod": once(np.fmod), "copysign": once(np.copysign), "heaviside": heaviside,
    "pow": lambda c, a, b: c.t(np.power(a, b)), "atan2": lambda c, a, b: c.t(np.arctan2(a, b)),
    "hypot": lambda c, a, b: c.t(np.hypot(a, b)), "logaddexp": logaddexp, "logaddexp2": logaddexp2, "xlogy": xlogy,
    "ldexp": lambda c, a, b: c.r(a * c.t(np.power(2.0, b))),
}


def int_floor_divide(a, b):
    return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b)))


def int_trunc_divide(a, b):
    q = int_floor_divide(a, b)
    return np.where((b != 0) & (q < 0) & (q * b != a), q + 1, q)


def int_remainder(a, b):
    return np.where(b == 0, a, np.mod(a, np.where(b == 0, 1, b)))


def int_fmod(a, b):
    return np.where(b == 0, a, np.fmod(a, np.where(b == 0, 1, b)))


def shift(left, dtype):
    bits = BITS[dtype]

    def apply(a, n):
        inside = (n >= 0) & (n < bits)
        amount = np.where(inside, n, 0)
        if left:
            return np.where(inside, a << amount, 0)
        return np.where(inside, a >> amount, np.where(a < 0, -1, 0))
    return apply


def int_pow(a, n):
    out = np.ones(np.broadcast(a, n).shape, dtype=np.int64)
    base, rest = np.broadcast_to(a, out.shape).copy(), np.broadcast_to(np.maximum(n, 0), out.shape).copy()
    while np.any(rest > 0):
        out = np.where(rest & 1, out * base, out)
        base = base * base
        rest = rest >> 1
    inverse = np.where(a == 1, 1, np.where(a == -1, np.where(n & 1, -1, 1), 0))
    return np.where(n < 0, inverse, out)


def int_gcd(a, b, dtype):
    # Euclid's steps on signed numbers: the magnitude of the lowest one is itself.
    a, b = (np.broadcast_to(x, np.broadcast(a, b).shape) for x in (wrap(np.abs(a), dtype), wrap(np.abs(b), dtype)))
    while np.any(a != 0):
        a, b = np.where(a == 0, 0, int_fmod(b, a)), np.where(a == 0, b, a)
    return b


INTEGER_BINARY = {
    "add": np.add, "sub": np.subtract, "rsub": lambda a, b: b - a, "mul": np.multiply, "maximum": np.maximum,
    "minimum": np.minimum, "fmax": np.maximum, "fmin": np.minimum, "floor_divide": int_floor_divide,
    "trunc_divide": int_trunc_divide, "remainder": int_remainder, "fmod": int_fmod, "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor, "pow": int_pow,
}
BOOL_BINARY = {
    "add": np.logical_or, "mul": np.logical_and, "maximum": np.logical_or, "minimum": np.logical_and,
    "bitwise_and": np.logical_and, "bitwise_or": np.logical_or, "bitwise_xor": np.logical_xor,
}
COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
               "ge": np.greater_equal}
LOGIC = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}


def truth(x):
    return bool(x) if isinstance(x, (bool, int, float)) else np.asarray(x.array) != 0


def evaluate_binary(name, a, b, dtype, noise):
    if name in LOGIC:
        return LOGIC[name](truth(a), truth(b))
    common = promote([a, b])
    if name in COMPARISONS:
        c = Context(common, noise)
        convert = (lambda x: floats_of(x, common, c)) if is_float(common) else (lambda x: integers_of(x, common))
        return COMPARISONS[name](convert(a), convert(b))
    c = Context(dtype, noise)
    if is_float(dtype):
        return c.final(FLOAT_BINARY[name](c, floats_of(a, dtype, c), floats_of(b, dtype, c)))
    assert dtype == common, f"{name}: result {dtype}, expected {common}"
    x, y = integers_of(a, dtype), integers_of(b, dtype)
    if dtype == "bool":
        return BOOL_BINARY[name](x, y)
    if name.startswith("bitwise_") and name.endswith("shift"):
        return wrap(shift("left" in name, dtype)(x, y), dtype)
    if name in ("gcd", "lcm"):
        g = int_gcd(x, y, dtype)
        wide = "int64" if dtype == "int64" else "int32"
        out = g if name == "gcd" else np.abs(wrap(np.where(g == 0, 0, int_trunc_divide(x, g) * y), wide))
        return wrap(out, dtype)
    return wrap(INTEGER_BINARY[name](x, y), dtype)


def evaluate(op, args, results, noise):
    """The results of one call, in the order of the operator's results."""
    name = op.split(".")[0]
    dtype = results[0][0]
    if op in OTHER or name in OTHER:
        out = OTHER.get(op, OTHER.get(name))(args, [r[0] for r in results], noise)
        return out if isinstance(out, list) else [out]
    if len(args) == 1 and (name in UNARY or name in PREDICATES or name in ("bitwise_not", "nan_to_num")):
        return [evaluate_unary(name, args[0], dtype, noise)]
    return [evaluate_binary(name, args[0], args[1], dtype, noise)]


def other(*names):
    def register(f):
        for name in names:
            OTHER[name] = f
        return f
    return register


def operands(values, dtype, c):
    return [floats_of(v, dtype, c) if is_float(dtype) else integers_of(v, dtype) for v in values]


@other("where")
def where(args, dtypes, noise):
    c = Context(dtypes[0], noise)
    a, b = operands(args[1:], dtypes[0], c)
    out = np.where(truth(args[0]), a, b)
    return c.final(out) if is_float(dtypes[0]) else out


@other("masked_fill")
def masked_fill(args, dtypes, noise):
    x, mask, value = args
    c = Context(dtypes[0], noise)
    if is_float(dtypes[0]):
        return c.final(np.where(truth(mask), floats_of(value, dtypes[0], c), x.array))
    number = np.int64(int(value))
    return np.where(truth(mask), wrap(number, dtypes[0]), x.array)


@other("clamp")
def clamp(args, dtypes, noise):
    low, high = args[1], args[2]
    x = operands([args[0]], dtypes[0], Context(dtypes[0], noise))[0]
    if not is_float(dtypes[0]):  # bounds that do not fit the dtype bound as they are
        return wrap(np.minimum(np.maximum(x.astype(np.int64), int(low)), int(high)), dtypes[0])
    return np.minimum(np.maximum(x, low), high)


@other("addcmul")
def addcmul(args, dtypes, noise):
    c = Context(dtypes[0], noise)
    a, x, y = operands(args[:3], dtypes[0], c)
    value = args[3]
    if is_float(dtypes[0]):
        return c.final(c.r(a + c.r(c.r(x * float(value)) * y)))
    return wrap(a + x * y * int(value), dtypes[0])


@other("addcdiv")
def addcdiv(args, dtypes, noise):
    c = Context(dtypes[0], noise)
    a, x, y = operands(args[:3], dtypes[0], c)
    return c.final(c.r(a + c.r(x / y)))


@other("lerp")
def lerp(args, dtypes, noise):
    c = Context(dtypes[0], noise)
    a, b = operands(args[:2], dtypes[0], c)
    w = args[2]
    d = c.r(b - a)
    return c.final(c.r(a + c.r(w * d)) if abs(w) < 0.5 else c.r(b - c.r(d * (1 - w))))


@other("to")
def to(args, dtypes, noise):
    x, target = args[0], dtypes[0]
    if is_float(target):
        return Context(target, noise).final(np.asarray(x.array, dtype=np.float64))
    return cast(x.array, x.dtype, target)


# Reductions.
def dims_of(x, dims):
    rank = np.ndim(x)
    if dims is None or dims == []:
        return tuple(range(rank))
    return tuple(sorted(d % rank for d in (dims if isinstance(dims, list) else [dims]))) if rank else ()


def count_over(x, dims):
    return int(np.prod([np.shape(x)[d] for d in dims], dtype=np.int64))


def optional(args, k, absent=None):
    return args[k] if len(args) > k and args[k] is not None else absent


@other("sum")
def sum_(args, dtypes, noise):
    x = args[0]
    dims, keep = dims_of(x.array, optional(args, 1)), bool(optional(args, 2, False))
    if not is_float(dtypes[0]):
        return np.sum(x.array, axis=dims, keepdims=keep, dtype=np.int64)
    c = Context(dtypes[0], noise)
    terms = c.summands(x.array, count_over(x.array, dims))
    return c.final(c.r(np.sum(terms, axis=dims, keepdims=keep)))


@other("mean")
def mean(args, dtypes, noise):
    x = args[0]
    dims, keep = dims_of(x.array, optional(args, 1)), bool(optional(args, 2, False))
    c = Context(dtypes[0], noise)
    count = count_over(x.array, dims)
    total = c.r(np.sum(c.summands(x.array, count), axis=dims, keepdims=keep))
    return c.final(c.t(total / np.float64(count), 1))


def unknown_where(c, condition, x):
    """x, but anything where the condition holds: products whose partial ones leave the range of the dtype."""
    if c.noise is None:
        return x
    return np.where(condition, np.where(c.noise.random() < 0.5, np.inf, np.nan), x)


def leaves_range(c, partial):
    _, lowest, largest = FLOATS[c.dtype]
    size = np.abs(partial)
    return ~((size < largest / 4) & (size > 2.0 ** (lowest + 4)))


@other("prod")
def prod(args, dtypes, noise):
    x, dim, keep = args[0], args[1], bool(args[2])
    if not is_float(dtypes[0]):
        return np.prod(x.array, axis=dim, keepdims=keep, dtype=np.int64)
    c = Context(dtypes[0], noise)
    count = np.shape(x.array)[dim]
    value = np.prod(x.array, axis=dim, keepdims=keep)
    wild = leaves_range(c, np.cumprod(np.where(np.isfinite(x.array), np.maximum(np.abs(x.array), 1), 1), axis=dim))
    wild |= leaves_range(c, np.cumprod(np.where(np.isfinite(x.array) & (x.array != 0), np.minimum(np.abs(x.array), 1), 1), axis=dim))
    return c.final(unknown_where(c, np.any(wild, axis=dim, keepdims=keep), c.t(value, count + 2)))


def extremum(f):
    def apply(args, dtypes, noise):
        x = args[0]
        return f(x.array, axis=dims_of(x.array, args[1]), keepdims=bool(args[2]))
    return apply


OTHER["amax"] = extremum(np.max)
OTHER["amin"] = extremum(np.min)


def position(f, with_value):
    def apply(args, dtypes, noise):
        x, dim, keep = args[0].array, args[1], bool(args[2])
        at = f(x.astype(np.int64) if x.dtype == bool else x, axis=dim, keepdims=True)
        value = np.take_along_axis(x, at, dim)
        at = np.asarray(at, dtype=np.int64)
        out = [value, at] if with_value else [at]
        return out if keep else [np.squeeze(o, axis=dim) for o in out]
    return apply


OTHER["max.dim"] = position(np.argmax, True)
OTHER["min.dim"] = position(np.argmin, True)
OTHER["argmax"] = position(np.argmax, False)
OTHER["argmin"] = position(np.argmin, False)


def truth_reduction(f):
    def apply(args, dtypes, noise):
        out = f(truth(args[0]), axis=dims_of(args[0].array, args[1]), keepdims=bool(args[2]))
        return out.astype(np.int64) if dtypes[0] == "uint8" else out
    return apply


OTHER["any"] = truth_reduction(np.any)
OTHER["all"] = truth_reduction(np.all)


@other("count_nonzero")
def count_nonzero(args, dtypes, noise):
    return np.sum(truth(args[0]), axis=dims_of(args[0].array, args[1]), dtype=np.int64)


def moments(c, x, dims):
    """Mean and sum of squared deviations over dims, kept."""
    terms = c.summands(x, count_over(x, dims))
    center = np.mean(terms, axis=dims, keepdims=True)
    return center, np.sum((terms - center) ** 2, axis=dims, keepdims=True)


def variance(root, with_mean):
    def apply(args, dtypes, noise):
        x, dims, correction, keep = args[0].array, dims_of(args[0].array, args[1]), args[2], bool(args[3])
        c = Context(dtypes[0], noise)
        center, squares = moments(c, x, dims)
        infinite = np.any(~np.isfinite(x), axis=dims, keepdims=True)  # a running mean ends at infinity or NaN
        center, squares = unknown_where(c, infinite, c.t(center)), c.t(squares)
        count = count_over(x, dims)
        var = c.t(squares / np.float64(max(count - correction, 0)))
        out = [c.final(c.r(np.sqrt(var)) if root else var)] + ([c.final(center)] if with_mean else [])
        return out if keep else [np.squeeze(o, axis=dims) for o in out]
    return apply


OTHER["var"] = variance(False, False)
OTHER["std"] = variance(True, False)
OTHER["var_mean"] = variance(False, True)
OTHER["std_mean"] = variance(True, True)


@other("logsumexp")
def logsumexp(args, dtypes, noise):
    x, dims, keep = args[0].array, dims_of(args[0].array, args[1]), bool(args[2])
    c = Context(dtypes[0], noise)
    high = np.max(x, axis=dims, keepdims=True)
    high = np.where(np.isinf(high), 0.0, high)
    total = np.sum(c.summands(c.t(np.exp(c.r(x - high))), count_over(x, dims)), axis=dims, keepdims=True)
    out = c.final(c.r(high + c.t(np.log(total))))
    return out if keep else np.squeeze(out, axis=dims)


@other("linalg_vector_norm")
def vector_norm(args, dtypes, noise):
    x, p, dims, keep = args[0].array, args[1], dims_of(args[0].array, args[2]), bool(args[3])
    c = Context(dtypes[0], noise)
    size = np.abs(x)
    power = size if p == 1 else c.r(size * size) if p == 2 else c.t(size**p)
    total = c.r(np.sum(c.summands(power, count_over(x, dims)), axis=dims, keepdims=keep))
    return c.final(total if p == 1 else c.r(np.sqrt(total)) if p == 2 else c.t(total ** (1 / p)))


# Scans.
@other("cumsum")
def cumsum(args, dtypes, noise):
    x, dim = args[0].array, args[1]
    if not is_float(dtypes[0]):
        return np.cumsum(x, axis=dim, dtype=np.int64)
    c = Context(dtypes[0], noise)
    return c.final(c.r(np.cumsum(c.summands(x, np.shape(x)[dim]), axis=dim)))


@other("cumprod")
def cumprod(args, dtypes, noise):
    x, dim = args[0].array, args[1]
    if not is_float(dtypes[0]):
        return np.cumprod(x, axis=dim, dtype=np.int64)
    c = Context(dtypes[0], noise)
    partial = np.cumprod(np.where(np.isfinite(x) & (x != 0), x, 1), axis=dim)
    wild = np.logical_or.accumulate(leaves_range(c, partial), axis=dim)
    return c.final(unknown_where(c, wild, c.t(np.cumprod(x, axis=dim), np.shape(x)[dim] + 2)))


def extremum_scan(better):
    def apply(args, dtypes, noise):
        x, dim = np.moveaxis(args[0].array, args[1], 0), args[1]
        value, at = x.copy(), np.zeros(x.shape, dtype=np.int64)
        for k in range(1, len(x)):
            nan = (x[k] != x[k]), (value[k - 1] != value[k - 1])
            take = nan[0] | (~nan[1] & better(x[k], value[k - 1]))
            value[k] = np.where(take, x[k], value[k - 1])
            at[k] = np.where(take, k, at[k - 1])
        return [np.moveaxis(value, 0, dim), np.moveaxis(at, 0, dim)]
    return apply


OTHER["cummax"] = extremum_scan(np.greater_equal)
OTHER["cummin"] = extremum_scan(np.less_equal)


@other("logcumsumexp")
def logcumsumexp(args, dtypes, noise):
    x, dim = np.moveaxis(args[0].array, args[1], 0), args[1]
    c = Context(dtypes[0], noise)
    out = np.empty(x.shape)
    for k in range(len(x)):
        out[k] = x[k] if k == 0 else logaddexp(c, out[k - 1], x[k])
    return c.final(np.moveaxis(out, 0, dim))


# Normalisations and products.
def softmax_parts(c, x, dim):
    shifted = c.r(x - np.max(x, axis=dim, keepdims=True)) if np.shape(x)[dim] else x
    e = c.t(np.exp(shifted))
    return shifted, e, np.sum(c.summands(e, np.shape(x)[dim]), axis=dim, keepdims=True)


@other("softmax")
def softmax(args, dtypes, noise):
    c = Context(dtypes[0], noise)
    _, e, total = softmax_parts(c, args[0].array, args[1])
    return c.final(c.t(e / total))


@other("log_softmax")
def log_softmax(args, dtypes, noise):
    c = Context(dtypes[0], noise)
    shifted, _, total = softmax_parts(c, args[0].array, args[1])
    return c.final(c.r(shifted - c.t(np.log(total))))


@other("layer_norm")
def layer_norm(args, dtypes, noise):
    x, shape = args[0].array, args[1]
    c = Context(dtypes[0], noise)
    dims = tuple(range(np.ndim(x) - len(shape), np.ndim(x)))
    center, squares = moments(c, x, dims)
    center = c.t(center)
    scale = c.t(1 / np.sqrt(c.r(c.t(squares / np.float64(count_over(x, dims))) + 1e-5)))
    y = c.r(c.r(x - center) * scale)
    for k, f in ((2, np.multiply), (3, np.add)):
        if optional(args, k) is not None:
            y = c.r(f(y, args[k].array))
    return c.final(y)


@other("rms_norm")
def rms_norm(args, dtypes, noise):
    x, shape = args[0].array, args[1]
    c = Context(dtypes[0], noise)
    dims = tuple(range(np.ndim(x) - len(shape), np.ndim(x)))
    eps = 2.0 ** (1 - FLOATS[dtypes[0]][0])
    squares = np.mean(c.summands(c.r(x * x), count_over(x, dims)), axis=dims, keepdims=True)
    y = c.t(x * c.t(1 / np.sqrt(c.r(c.t(squares) + eps))))
    return c.final(c.r(y * args[2].array) if optional(args, 2) is not None else y)


@other("mm")
def mm(args, dtypes, noise):
    c = Context(dtypes[0], noise)
    a, b = c.summands(args[0].array, np.shape(args[0].array)[1]), args[1].array
    return c.final(c.t(a @ b, 2))


# Views and rearrangements: pure moves of elements.
def move(f):
    return lambda args, dtypes, noise: f(args[0].array, *args[1:])


def slice_(x, dim, start, end, step):
    at = [slice(None)] * np.ndim(x)
    at[dim] = slice(*slice(start, end).indices(np.shape(x)[dim])[:2], step)
    return x[tuple(at)]


def expand(x, sizes):
    return np.broadcast_to(x, sizes)


def unfold(x, dim, size, step):
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=dim)
    at = [slice(None)] * np.ndim(windows)
    at[dim % np.ndim(x)] = slice(None, None, step)
    return windows[tuple(at)]


def pad_constant(x, pad, value):
    rank = np.ndim(x)
    pairs = [(0, 0)] * rank
    for k in range(len(pad) // 2):
        pairs[rank - 1 - k] = (pad[2 * k], pad[2 * k + 1])
    keep = tuple(slice(max(-low, 0), size - max(-high, 0)) for (low, high), size in zip(pairs, np.shape(x)))
    return np.pad(x[keep], [(max(low, 0), max(high, 0)) for low, high in pairs], constant_values=value)


def pad_indexed(x, pad, mode):
    pairs = [(0, 0)] * (np.ndim(x) - 1) + [(pad[0], pad[1])]
    return np.pad(x, pairs, mode={"reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode])


def diag_embed(x, offset):
    size = np.shape(x)[-1] + abs(offset)
    out = np.zeros((*np.shape(x)[:-1], size, size), dtype=x.dtype)
    k = np.arange(np.shape(x)[-1])
    out[..., k + max(-offset, 0), k + max(offset, 0)] = x
    return out


def slice_scatter(x, source, dim, start, end, step):
    out = x.copy()
    at = [slice(None)] * np.ndim(x)
    at[dim] = slice(start, end, step)
    out[tuple(at)] = source.array
    return out


def squeeze(x):
    return np.squeeze(x)


OTHER.update({
    "permute": move(np.transpose),
    "slice": move(slice_),
    "select": move(lambda x, dim, index: np.take(x, index, axis=dim)),
    "expand": move(expand),
    "reshape": move(np.reshape),
    "diagonal": move(lambda x, offset, a, b: np.diagonal(x, offset, a, b)),
    "unsqueeze": move(np.expand_dims),
    "squeeze": move(squeeze),
    "unfold": move(unfold),
    "flip": move(lambda x, dims: np.flip(x, tuple(dims))),
    "roll": move(lambda x, shifts, dims: np.roll(x, shifts, dims)),
    "tril": move(np.tril),
    "triu": move(np.triu),
    "repeat": move(np.tile),
    "pad": move(pad_indexed),
    "diag_embed": move(diag_embed),
    "slice_scatter": move(slice_scatter),
    "embedding": move(lambda x, index: x[index.array]),
    "take": move(lambda x, index: np.reshape(x, -1)[index.array]),
    "index_select": move(lambda x, dim, index: np.take(x, index.array, axis=dim)),
})


@other("constant_pad_nd")
def constant_pad(args, dtypes, noise):
    value = wrap(np.int64(args[2]), dtypes[0]) if not is_float(dtypes[0]) else args[2]
    return pad_constant(args[0].array, args[1], value)


def gather_at(index, shape, dim):
    """Coordinates that gather and scatter_add mean: the index along `dim`, the position elsewhere."""
    at = list(np.indices(np.shape(index)))
    at[dim] = index
    return tuple(at)


@other("gather")
def gather(args, dtypes, noise):
    x, dim, index = args[0].array, args[1] % np.ndim(args[0].array), args[2].array
    return x[gather_at(index, np.shape(x), dim)]


def add_at(x, at, source, dtype, noise):
    if not is_float(dtype):
        out = x.copy()
        np.add.at(out, at, source)
        return wrap(out, dtype)
    c = Context(dtype, noise)
    out = x.astype(np.float64)
    count = source.size
    if dtype in ("float16", "bfloat16"):  # every addition rounds to the half type
        c.dtype = dtype
    np.add.at(out, at, c.summands(source, count))
    base = np.where(np.isfinite(x), c.summands(x, count) - x, 0)
    return c.final(out + base)


@other("scatter_add")
def scatter_add(args, dtypes, noise):
    x, dim, index, source = args[0].array, args[1], args[2].array, args[3].array
    part = source[tuple(slice(0, s) for s in np.shape(index))]
    return add_at(x, gather_at(index, np.shape(x), dim), part, dtypes[0], noise)


@other("index_add")
def index_add(args, dtypes, noise):
    x, dim, index, source = args[0].array, args[1], args[2].array, args[3].array
    at = (slice(None),) * dim + (index,)
    return add_at(x, at, source, dtypes[0], noise)


def joined(f):
    def apply(args, dtypes, noise):
        c = Context(dtypes[0], noise)
        parts = operands(args[0], dtypes[0], c)
        out = f(parts, axis=args[1])
        return c.final(out) if is_float(dtypes[0]) else out
    return apply


OTHER["cat"] = joined(np.concatenate)
OTHER["stack"] = joined(np.stack)


# Factories.
def filled(array, dtype, noise):
    array = np.asarray(array)
    if is_float(dtype):
        return Context(dtype, noise).final(array.astype(np.float64))
    return to_integer(array.astype(np.float64), dtype)


@other("full")
def full(args, dtypes, noise):
    return filled(np.full(args[0], args[1]), dtypes[0], noise)


@other("arange")
def arange(args, dtypes, noise):
    return filled(np.arange(args[0], args[1], args[2]), dtypes[0], noise)


@other("eye")
def eye(args, dtypes, noise):
    return filled(np.eye(args[0], args[1]), dtypes[0], noise)
