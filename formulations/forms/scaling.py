"""Powers of two by which solvers see numbers of order one: multiplying by them is exact.

>>> unit(np.array([0.3, -5.0])), unit(np.zeros(2))
(8.0, 1.0)
"""

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Floats

__all__ = ["row_units", "unit"]


def unit(values: Floats) -> float:
    """The least power of two above every magnitude in `values`; 1 where all are zero."""
    largest = float(np.abs(values).max(initial=0.0))
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest > 0 else 1.0


def row_units(matrix: csr_array) -> Floats:
    """A unit for each row; 1 for rows of numbers that are of order one as they are (1e-4 to 1e4)."""
    rows, columns = matrix.shape
    largest = np.asarray(abs(matrix).max(axis=1).toarray()).ravel() if columns else np.zeros(rows)
    smallest = np.full(largest.size, np.inf)
    sizes = np.abs(matrix.data)
    np.minimum.at(smallest, np.repeat(np.arange(largest.size), np.diff(matrix.indptr)), np.where(sizes, sizes, np.inf))
    moderate = (largest == 0) | ((smallest >= 1e-4) & (largest <= 1e4))
    return np.where(moderate, 1.0, np.ldexp(1.0, np.frexp(largest)[1]))
