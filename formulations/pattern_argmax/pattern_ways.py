"""The ways of the argmax of pattern problems, in words and as numbers."""

__all__ = ["EACH", "GRID", "LATTICE", "ONE_PASS", "PATTERN_WAYS", "SORT", "TAIL", "TRIANGLE"]

PATTERN_WAYS = ("grid", "lattice", "every bad for itself", "triangle and tail", "one pass", "lattice and tail", "sort")
GRID, LATTICE, EACH, TRIANGLE, ONE_PASS, TAIL, SORT = range(7)
