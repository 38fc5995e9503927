"""What is small: so little work in all that compiling code for it would take longer than any other way."""

import numpy as np

from formulations.arrays import Ints

__all__ = ["STATES", "is_small"]

ROWS = 1 << 11
"""Documents of a small batch, at most."""

PAIRS = 1 << 18
"""Pairs of documents of one query in it, at most."""

STATES = 1 << 18
"""States, in all, of the lattices of small data that may be searched without compiled code."""


def is_small(offsets: Ints) -> bool:
    """Whether queries of these documents, query q having rows offsets[q] : offsets[q + 1], are a small batch.

    It is asked once of all the data that belong together, and never of a part: ways may differ in how they round.
    """
    lengths = np.diff(offsets)
    return bool(offsets[-1] <= ROWS and lengths @ lengths <= PAIRS)
