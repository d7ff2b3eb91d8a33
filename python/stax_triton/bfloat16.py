"""bfloat16, which NumPy lacks: its bits as uint16, and the float32 that they stand for."""

import numpy as np


def bits_of(values):
    """Of float32 values rounded to nearest even."""
    values = np.asarray(values, dtype=np.float32)
    bits = values.view(np.uint32)
    with np.errstate(over="ignore"):  # of NaN, which is replaced
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FFF), rounded)


def values_of(bits):
    return (np.asarray(bits, dtype=np.uint32) << 16).view(np.float32)
