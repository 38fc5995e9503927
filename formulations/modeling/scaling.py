"""Powers of two by which solvers see numbers of order one: multiplying by them is exact."""

import numpy as np

from formulations.arrays import Floats

__all__ = ["unit"]


def unit(values: Floats) -> float:
    """The least power of two above every magnitude in `values`; 1 where all are zero.

    >>> unit(np.array([0.3, -5.0])), unit(np.zeros(2))
    (8.0, 1.0)
    """
    largest = float(np.abs(values).max(initial=0.0))
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest > 0 else 1.0
