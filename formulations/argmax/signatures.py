"""Types of the arguments of compiled kernels: contiguous vectors that are read, and vectors that are written."""

import numba as nb

__all__ = ["FLOATS", "INTS", "READ_FLOATS", "READ_INTS"]

FLOATS = nb.types.Array(nb.float64, 1, "C")
INTS = nb.types.Array(nb.int64, 1, "C")
READ_FLOATS = nb.types.Array(nb.float64, 1, "C", readonly=True)
READ_INTS = nb.types.Array(nb.int64, 1, "C", readonly=True)
