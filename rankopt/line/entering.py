"""Which line below the first τ places reaches the last of them next: asked after most swaps of a list of places."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import READ_FLOATS, compiled
from rankopt.line.crossing import ROUNDING

__all__ = ["entering"]

Floats = NDArray[np.float64]

TINY = 1e-300
"""Products below it are not told apart from 0."""

NATURAL = (1 << 40) - 1
"""By its bits the compiler sees that a number is not negative: indices of that kind would count from the end, which
every access asked for."""


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, nb.int64, nb.int64))
def entering(line_s: Floats, line_a: Floats, place: int, lines: int) -> int:
    """The line of those below `place`, by rising slope, that overtakes the one there first; -1 if none will.

    Of those whose times rounding cannot tell apart the flattest: what crosses it at once comes after.
    """
    own_s, own_a, found, soonest, limit = line_s[place], line_a[place], -1, np.inf, np.inf
    for line in range(lines - 1, place, -1):
        r = line & NATURAL
        rise, lead = line_a[r] - own_a, own_s - line_s[r]
        if rise <= 0.0:
            break
        if lead > rise * limit + TINY:  # later by more than rounding hides: most lines, without a division
            continue
        t = lead / rise
        if found >= 0 and line_a[r] == line_a[found]:
            nearer = line_s[r] > line_s[found]
        else:
            nearer = t <= soonest + ROUNDING * abs(t)
        if nearer and t < np.inf:
            soonest, found = t, r
            limit = t + 2.0 * ROUNDING * abs(t)
    return found
