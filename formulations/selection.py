"""The number that is nth in order of size, compiled, without sorting."""

import numba as nb

from formulations.arrays import Floats
from formulations.compiled import FLOATS, compiled

__all__ = ["nth_largest"]


@compiled(nb.float64(FLOATS, nb.int64))
def nth_largest(values: Floats, nth: int) -> float:
    """The number that stands at place `nth`, counted from 0, when the largest come first; `values` are moved about.

    Time linear in them on the mean [Hoare 1961, FIND], the middle of three being what others are compared with.
    """
    low, high = 0, values.size - 1
    while low < high:
        first, middle, last = values[low], values[(low + high) // 2], values[high]
        pivot = max(min(first, middle), min(max(first, middle), last))
        i, j = low, high
        while i <= j:
            while values[i] > pivot:
                i += 1
            while values[j] < pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if nth <= j:
            high = j
        elif nth >= i:
            low = i
        else:
            break
    return float(values[nth])
