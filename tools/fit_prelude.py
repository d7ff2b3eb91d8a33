#!/usr/bin/env python3
"""Fits the float32 polynomials of src/codegen/cpp/prelude_math.cpp and prints their coefficients.

Needs numpy and mpmath. Each fit minimises the largest weighted error by reweighted least squares (Lawson's iteration)
on Chebyshev points. Coefficients are rounded to float32 one after the other, lowest order first, and the rest is fitted
again after each rounding, so that the printed polynomial is the fitted one. The last column is its largest error,
relative to the function, in units of 2^-24.
"""
import mpmath as mp
import numpy as np

mp.mp.dps = 40
POINTS = 800


def lawson(basis, target, weight):
    """Coefficients minimising max |weight * (basis @ c - target)|."""
    lawson_weight = np.ones(len(target))
    scale = np.abs(basis).max(axis=0)
    best, best_error = None, np.inf
    for _ in range(60):
        root = (np.sqrt(lawson_weight) * weight)[:, None]
        coefficients = np.linalg.lstsq(basis / scale * root, target * root[:, 0], rcond=None)[0] / scale
        error = np.abs(weight * (basis @ coefficients - target))
        if error.max() < best_error:
            best, best_error = coefficients, error.max()
        lawson_weight *= error + 1e-30
        lawson_weight /= lawson_weight.max()
    return best


def fit(name, function, low, high, degree, weight):
    """Fits function(t) on [low, high]; weight(t) turns an error of the polynomial into a relative error of the result."""
    middle, half = (low + high) / 2, (high - low) / 2
    t = [mp.mpf(middle) + mp.mpf(half) * mp.cos(mp.pi * (k + 0.5) / POINTS) for k in range(POINTS)]
    target = np.array([float(function(x)) for x in t])
    weights = np.array([float(weight(x)) for x in t])
    points = np.array([float(x) for x in t])
    powers = np.stack([points**k for k in range(degree + 1)], axis=1)
    fixed = []
    for k in range(degree + 1):
        rest = target - powers[:, :k] @ np.array(fixed) if k else target
        fixed.append(float(np.float32(lawson(powers[:, k:], rest, weights)[0])))
    error = np.abs(weights * (powers @ np.array(fixed) - target)).max() * 2**24
    print(f"{name:10s} {{{', '.join(float.hex(c) for c in fixed)}}}  {error:.3f}")


def square(function):
    return lambda t: function(mp.sqrt(t))


def main():
    ln2_half = float(mp.log(2) / 2) * 1.0001
    quarter_pi = float(mp.pi / 4) * 1.0001
    fit("exp", lambda r: (mp.exp(r) - 1 - r) / r**2, -ln2_half, ln2_half, 4, lambda r: r**2 / mp.exp(r))
    fit("exp2", lambda r: (mp.power(2, r) - 1) / r, -0.50001, 0.50001, 5, lambda r: r / mp.power(2, r))
    fit("expm1", lambda r: (mp.expm1(r) - r) / r**2, -ln2_half, ln2_half, 5, lambda r: r**2 / mp.expm1(r))
    low, high = float(mp.sqrt(0.5)) - 1.0001, float(mp.sqrt(2)) - 0.9999
    fit("log", lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, low, high, 8, lambda f: f**3 / mp.log1p(f))
    t_end = quarter_pi**2
    fit("sin", square(lambda x: (mp.sin(x) - x) / x**3), 1e-9, t_end, 3, square(lambda x: x**3 / mp.sin(x)))
    fit("cos", square(lambda x: (mp.cos(x) - 1 + x * x / 2) / x**4), 1e-6, t_end, 2, square(lambda x: x**4 / mp.cos(x)))
    fit("tan", square(lambda x: (mp.tan(x) - x) / x**3), 1e-9, t_end, 6, square(lambda x: x**3 / mp.tan(x)))
    fit("tanh", square(lambda x: (mp.tanh(x) - x) / x**3), 1e-9, 0.625**2, 4, square(lambda x: x**3 / mp.tanh(x)))
    fit("erf", square(lambda x: mp.erf(x) / x - 1), 1e-9, 1.0, 6, square(lambda x: x / mp.erf(x)))
    fit("log_erfc", lambda x: mp.log(mp.erfc(x)), 0.99, 4.1, 9, lambda x: mp.erfc(x) / mp.erf(x))


if __name__ == "__main__":
    main()
