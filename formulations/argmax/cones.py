"""Which exchanges can pay: the extreme directions among the steps of the position weights from each position on.

For positions p < q and documents x, y, x at p and y at q is no worse than the reverse when
(c_p - c_q)(s_x - s_y) >= (a_p - a_q)(b_x - b_y). All (c_p - c_q, a_p - a_q) lie in the cone spanned by the steps
(c_i - c_{i+1}, a_i - a_{i+1}), p <= i < q, so a document that is no worse in both extreme directions goes first.
Later positions see fewer steps, hence a cone that is no wider.
"""

import numba as nb

from formulations.arrays import Floats, Shorts
from formulations.compiled import READ_FLOATS, READ_SHORTS, SHORTS, compiled

__all__ = ["find_cones", "places_of"]

MOST_PLACES = 32


@compiled(nb.int64(READ_FLOATS, READ_FLOATS, SHORTS, SHORTS))
def find_cones(discount: Floats, decay: Floats, low: Shorts, high: Shorts) -> int:
    """low[p], high[p]: the i >= p whose steps are extreme, most in score and most in gain; equal if all are parallel.

    Returns the first position from which on no weight changes; what stands there and after is all one, and low and high
    are not set. Products decide the order of angles, so equal weights compare exactly.
    """
    n = decay.size
    stop = n - 1
    while stop > 0 and decay[stop - 1] == decay[stop] and discount[stop - 1] == discount[stop]:
        stop -= 1
    if stop == 0:
        return 0
    one, two = stop - 1, stop - 1
    one_c, one_a = decay[one] - decay[stop], discount[one] - discount[stop]
    two_c, two_a = one_c, one_a
    for p in range(stop - 1, -1, -1):
        dc, da = decay[p] - decay[p + 1], discount[p] - discount[p + 1]
        if one_c * da - one_a * dc < 0.0:
            one, one_c, one_a = p, dc, da
        elif two_c * da - two_a * dc > 0.0:
            two, two_c, two_a = p, dc, da
        low[p], high[p] = one, two
    return stop


@compiled(nb.int64(READ_SHORTS, READ_SHORTS, nb.int64))
def places_of(low: Shorts, high: Shorts, stop: int) -> int:
    """The first position from which all steps are parallel, if it is near and the cone the same before it; else 0."""
    turn = 0
    while turn < stop and low[turn] != high[turn]:
        if turn == MOST_PLACES or low[turn] != low[0] or high[turn] != high[0]:
            return 0
        turn += 1
    if turn and turn < stop and low[turn] != low[0] and low[turn] != high[0]:
        return 0
    return turn
