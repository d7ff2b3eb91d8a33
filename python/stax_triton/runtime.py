"""What a generated kernel file imports."""

from stax_triton import helpers as triton_helpers  # noqa: F401
from stax_triton import heuristics as triton_heuristics  # noqa: F401
from stax_triton.heuristics import ReductionHint, TileHint  # noqa: F401
from stax_triton.mathlib import libdevice  # noqa: F401
