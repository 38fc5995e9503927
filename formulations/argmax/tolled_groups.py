"""Tolls on what a flow through nested groups does not know: the best bound that they prove, and rankings on the way.

Of rows a π <= limit that the flow leaves out every cell pays y · a. Every ranking t that the flow finds is a plane of
tolls y >= 0: value[t] - over[t] · y, over[t, s] being by how much it breaks the limit of side s (below 0: how much room
it leaves). The next tolls are where the planes found so far meet lowest,

    min φ   subject to   φ + over[t] · y >= value[t],   0 <= y <= cap

whose duals weigh the rankings [Kelley; Dantzig and Wolfe]. Few variables and many rows: the dual simplex method, which
goes on from the last corner when a plane comes or a cap rises. It ends where the flow finds no plane above that corner:
then no tolls prove more.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from formulations.argmax.nested_groups import FOUND, LOST, MASK, MATRIX, READ_MATRIX, place_nested
from formulations.arrays import Bools, Floats, Ints
from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled

__all__ = ["CLOSED", "FULL", "GIVEN_UP", "SETTLED", "ascend"]

TABLE = nb.types.Array(nb.int64, 2, "C")

CLOSED, SETTLED, GIVEN_UP, FULL = 1, 0, -1, -2

PIVOTS = 40
"""Pivots a side after which the corner is given up."""

SMALL = 1e-11
"""What counts as no change of a weight."""

WEIGHED = 1e-9
"""Smaller weights are rounding."""

FARTHEST = 1e9
"""How far a cap may rise, of what it began with, before what it limits is taken to be impossible."""


@compiled(nb.void(READ_FLOATS, nb.int64, INTS, MATRIX))
def _corner(over: Floats, plane: int, active: Ints, inverse: Floats) -> None:
    """The corner of one plane: tolls at their caps where it is over, at 0 where it is not."""
    sides = active.size - 1
    inverse[:] = 0.0
    for s in range(sides):
        high = over[s] > 0.0
        active[s] = sides + s if high else s
        inverse[s, s] = -1.0 if high else 1.0
        inverse[sides, s] = abs(over[s])
    active[sides], inverse[sides, sides] = 2 * sides + plane, 1.0


@compiled(nb.boolean(FLOATS, MATRIX, FLOATS, nb.int64, nb.float64, INTS, MATRIX, FLOATS, FLOATS))
def _pivoted(
    value: Floats, over: Floats, cap: Floats, planes: int, slack: float, active: Ints, inverse: Floats, at: Floats,
    change: Floats,
) -> bool:  # fmt: skip
    """Exchange active rows (y[s] >= 0 is s, its cap sides + s, plane t 2 sides + t), whose inverse comes along, until
    their corner `at` (y, then φ) lacks no more than `slack` of any row; False where that does not end."""
    sides = cap.size
    for _ in range(PIVOTS * (sides + 2)):
        at[:] = 0.0
        for place in range(sides + 1):
            row, least = active[place], 0.0
            if row >= 2 * sides:
                least = value[row - 2 * sides]
            elif row >= sides:
                least = -cap[row - sides]
            for i in range(sides + 1):
                at[i] += inverse[i, place] * least
        worst, entering = -slack, -1
        for s in range(sides):
            if at[s] < worst:
                worst, entering = at[s], s
            if cap[s] - at[s] < worst:
                worst, entering = cap[s] - at[s], sides + s
        for t in range(planes):
            room = at[sides] - value[t]
            for s in range(sides):
                room += over[t, s] * at[s]
            if room < worst:
                worst, entering = room, 2 * sides + t
        if entering < 0:
            return True
        leaving, least = -1, np.inf
        for place in range(sides + 1):
            if active[place] == entering:  # it lacks something by rounding alone
                return True
            if entering >= 2 * sides:
                change[place] = inverse[sides, place]
                for s in range(sides):
                    change[place] += over[entering - 2 * sides, s] * inverse[s, place]
            elif entering >= sides:
                change[place] = -inverse[entering - sides, place]
            else:
                change[place] = inverse[entering, place]
            if change[place] > SMALL and max(inverse[sides, place], 0.0) < least * change[place]:
                least, leaving = max(inverse[sides, place], 0.0) / change[place], place
        if leaving < 0:
            return False
        for i in range(sides + 1):
            inverse[i, leaving] /= change[leaving]
        for place in range(sides + 1):
            if place != leaving:
                for i in range(sides + 1):
                    inverse[i, place] -= inverse[i, leaving] * change[place]
        active[leaving] = entering
    return False


@compiled(
    nb.int64(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_MATRIX, MASK, READ_INTS, READ_INTS, READ_INTS,
        READ_INTS, READ_INTS, nb.float64, READ_MATRIX, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS,
        READ_FLOATS, FLOATS, TABLE, FLOATS, MATRIX, FLOATS, INTS, FLOATS, INTS, FLOATS, nb.float64,
    )
)  # fmt: skip
def ascend(
    scores: Floats, gain: Floats, discount: Floats, decay: Floats, base: Floats, allowed: Bools, leaf: Ints,
    parent: Ints, low: Ints, high: Ints, placed: Ints, reward: float, weight: Floats, lower: Floats, upper: Floats,
    rounding: Floats, price: Floats, side: Ints, sign: Floats, cap: Floats, orders: Ints, value: Floats,
    reached: Floats, part: Floats, counted: Ints, at: Floats, best: Ints, told: Floats, near: float,
) -> int:  # fmt: skip
    """Raise the bound by tolls from `at` on (or from the planes known): CLOSED where a ranking that keeps all rows is
    worth the bound up to `near`; SETTLED where no tolls of these sides prove more;
    FULL where there is no room for more rankings; else GIVEN_UP.

    Profits and groups are those of `place_nested`, base (k, n) tolls that always are asked. placed: documents that must
    be placed, each of which earns `reward` until it is taken off again. lower <= weight (rows, k n) · π <= upper, which
    may be off by `rounding`; price: of a unit that is broken, infinite where none may be. side, sign: which rows ask
    tolls, for their upper limit (1) or their lower (-1); cap: the most of each, raised where it is no price.

    Rankings go to orders (flows, k), with their value (flows,) and reached (flows, rows); part: their weights; counted:
    how many there are, and the flows asked for. best, told[0]: the best ranking that keeps all rows and its worth;
    told[1]: the bound; told[2]: the largest toll in what proves it.
    """
    k, n = base.shape
    rows, sides, most = lower.size, side.size, orders.shape[0]
    over, limit, first = np.empty((most, sides)), np.empty(sides), cap.copy()
    for s in range(sides):
        limit[s] = upper[side[s]] if sign[s] > 0.0 else -lower[side[s]]
        for t in range(counted[0]):
            over[t, s] = sign[s] * reached[t, side[s]] - limit[s]
    active, inverse, change = np.empty(sides + 1, np.int64), np.empty((sides + 1, sides + 1)), np.empty(sides + 1)
    if counted[0]:
        _corner(over[counted[0] - 1], counted[0] - 1, active, inverse)
    toll, order, proved = np.empty((k, n)), np.empty(k, np.int64), np.empty(2)
    while counted[0] < most:
        planes = counted[0]
        if planes and not _pivoted(value, over, cap, planes, 0.01 * near, active, inverse, at, change):
            return GIVEN_UP
        held = 0.0
        toll[:] = base
        for s in range(sides):
            at[s] = min(max(at[s], 0.0), cap[s])
            held += at[s] * limit[s]
            if at[s] != 0.0:
                for i in range(k):
                    for j in range(n):
                        toll[i, j] += at[s] * sign[s] * weight[side[s], i * n + j]
        for j in placed:
            held -= reward
            for i in range(k):
                toll[i, j] -= reward
        largest = 0.0
        for i in range(k):
            for j in range(n):
                largest = max(largest, abs(toll[i, j]))
        counted[1] += 1
        ended, same = LOST, 2.0**-50
        while ended == LOST and same < 2.0**-35:
            ended = place_nested(
                scores, gain, discount, decay, toll, allowed, leaf, parent, low, high, same, order, proved
            )
            same *= 128.0
        if ended != FOUND:
            return GIVEN_UP
        bound = proved[1] + held
        if bound < told[1]:
            told[1], told[2] = bound, max(told[2], largest)
        for j in placed:
            there = False
            for i in range(k):
                there = there or order[i] == j
            if not there:  # none has it: the reward outweighs all else
                return CLOSED
        earned, paid, admitted = 0.0, 0.0, True
        for i in range(k):
            earned += decay[i] * scores[order[i]] - discount[i] * gain[order[i]] - base[i, order[i]]
        for r in range(rows):
            here = 0.0
            for i in range(k):
                here += weight[r, i * n + order[i]]
            reached[planes, r] = here
            off = max(lower[r] - here, here - upper[r])
            if off > rounding[r]:
                admitted = admitted and price[r] < np.inf
                paid += price[r] * off if price[r] < np.inf else 0.0
        if admitted and earned - paid > told[0]:
            told[0] = earned - paid
            best[:] = order
        if told[1] <= told[0] + near:
            return CLOSED
        if planes == 0 or bound > at[sides] + near:
            for t in range(planes):
                known = True
                for i in range(k):
                    known = known and orders[t, i] == order[i]
                if known:
                    return GIVEN_UP
            orders[planes], value[planes] = order, earned
            for s in range(sides):
                over[planes, s] = sign[s] * reached[planes, side[s]] - limit[s]
            if planes == 0:
                _corner(over[0], 0, active, inverse)
            counted[0] += 1
            continue
        raised = False
        for place in range(sides + 1):
            s = active[place] - sides
            if 0 <= s < sides and inverse[sides, place] > WEIGHED and price[side[s]] == np.inf:
                cap[s] *= 4.0
                raised = True
                if cap[s] > FARTHEST * first[s]:
                    return GIVEN_UP
        if raised:
            continue
        part[:] = 0.0
        for place in range(sides + 1):
            if active[place] >= 2 * sides and inverse[sides, place] > WEIGHED:
                part[active[place] - 2 * sides] = inverse[sides, place]
        return SETTLED
    return FULL
