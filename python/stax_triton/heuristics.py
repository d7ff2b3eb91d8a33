"""Decorators of generated kernels: they keep what the code generator knows beside the kernel.

A decorated kernel is a Kernel: its function, form, size hints, pointer types and grid.
"""

import dataclasses
import enum


class ReductionHint(enum.Enum):
    DEFAULT = 0
    INNER = 1
    OUTER = 2
    OUTER_TINY = 3


class TileHint(enum.Enum):
    DEFAULT = 0
    SQUARE = 1


@dataclasses.dataclass
class Kernel:
    fn: object
    form: str
    size_hints: dict
    signature: dict
    grid: str
    reduction_hint: ReductionHint = ReductionHint.DEFAULT
    tile_hint: TileHint = TileHint.DEFAULT
    # What a launch with the sizes of the example needs beside; absent where none is made (standalone.py).
    elements: dict = None
    numels: dict = None
    symbols: dict = dataclasses.field(default_factory=dict)
    scalars: dict = dataclasses.field(default_factory=dict)
    config: dict = None
    wide: bool = False

    @property
    def name(self):
        return self.fn.__name__


def _decorator(form):
    def with_facts(**facts):
        def decorate(fn):
            return Kernel(fn=fn, form=form, **facts)

        return decorate

    return with_facts


pointwise = _decorator("pointwise")
persistent_reduction = _decorator("persistent_reduction")
reduction = _decorator("reduction")
