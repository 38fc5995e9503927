"""The best order where exchanges of gain for score are a matter of the first few positions, and the rest is one sort.

Behind a discount's cut only the decay still falls, so whatever stands before, the rest comes by falling score; wherever
all steps are parallel from position `turn` on (see `cones`) the rest is sorted by one key. Let the cone be one and the
same before. Then a document needs its dominators before it, counts of how many of each gain are placed are the ideals
of one order, and there are at most C(turn + G, G) of them for G gains, however long the list is.

What the rest earns follows from who stands before (see `tails`): the sum of one entry of a table for each of them. The
one that is last of them in the sort dominates none, so each state adds one entry to the sum of the state without it.
"""

import numba as nb
import numpy as np

from formulations.argmax.tails import NEEDS, sort_rest, tail_costs
from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, READ_SHORTS, SHORTS, compiled

__all__ = ["best_first_places"]


@compiled(
    nb.void(
        FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, nb.int64, nb.int64, nb.int64, nb.int64, INTS, NEEDS,
    )
)  # fmt: skip
def _dominators(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    low: int,
    high: int,
    turn: int,
    field: int,
    most: Ints,
    need: Ints,
) -> None:
    """need[g, i]: how many of each chain dominate document i of chain g, `field` bits a chain; most[g]: how many of
    chain g can stand before `turn`, the others have too many before them."""
    chains = worth.size
    dc, da = decay[low] - decay[low + 1], discount[low] - discount[low + 1]
    ec, ea = decay[high] - decay[high + 1], discount[high] - discount[high + 1]
    one, two = np.empty((chains, turn)), np.empty((chains, turn))
    for g in range(chains):
        for i in range(min(size[g], turn)):
            s = height[start[g] + i]
            one[g, i], two[g, i] = dc * s - da * worth[g], ec * s - ea * worth[g]
    over = np.empty(chains, np.int64)
    for g in range(chains):
        over[:] = 0
        i = 0
        while i < min(size[g], turn):
            x, y, packed, before = one[g, i], two[g, i], 0, i
            for h in range(chains):
                if h == g:
                    continue
                j, reach = over[h], min(size[h], turn)
                if h < g:
                    while j < reach and one[h, j] >= x and two[h, j] >= y:
                        j += 1
                else:
                    while j < reach and one[h, j] >= x and two[h, j] >= y and (one[h, j] > x or two[h, j] > y):
                        j += 1
                over[h] = j
                packed += j << (field * h)
                before += j
            if before >= turn:
                break
            need[g, i] = packed
            i += 1
        most[g] = i
        for blocked in range(i, turn + 1):
            need[g, blocked] = (turn + 1) << (field * g)


@compiled(
    nb.int64(
        FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, READ_SHORTS, READ_SHORTS, nb.int64, nb.int64,
        SHORTS, INTS, FLOATS, FLOATS, SHORTS, SHORTS, SHORTS, BYTES, BYTES,
    )
)  # fmt: skip
def best_first_places(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    low: Shorts,
    high: Shorts,
    stop: int,
    turn: int,
    slot: Shorts,
    key: Ints,
    value: Floats,
    tail: Floats,
    last: Shorts,
    where: Shorts,
    origin: Shorts,
    chain: Bytes,
    label: Bytes,
) -> int:
    """As `best_labels` for the `turn` > 0 of `places_of`, but nothing is pruned.

    Room: slot -1 for each vector of counts, of all gains but one, that is told apart at a position, as it is again in
    the end; the others a state.
    """
    chains, room = worth.size, origin.size
    field = 2
    while turn + 1 >= 1 << (field - 1):
        field += 1
    if field * chains > 62:
        return -1
    most, need = np.zeros(chains, np.int64), np.empty((chains, turn + 1), np.int64)
    _dominators(
        height, worth, start, size, discount, decay, low[0], high[0], turn, field, most, need
    )  # fmt: skip
    radix, cells, longest, guards = np.zeros(chains, np.int64), 1, 0, 0
    for g in range(chains):
        guards += 1 << (field * g + field - 1)
        if most[g] > most[longest]:
            longest = g
    for g in range(chains):
        if g != longest:  # the position tells its count
            radix[g] = cells
            cells *= most[g] + 1
    if cells > slot.size:
        return -1
    rank, cost = np.zeros((chains, turn), np.int64), np.empty((chains, turn, turn))
    tailed = turn < stop
    if tailed:
        tail_costs(height, worth, start, size, discount, decay, low[turn], turn, stop, most, rank, cost)
    floor_c, floor_a = decay[stop], discount[stop]
    mask = (1 << (field - 1)) - 1
    key[0], value[0], tail[0], last[0], where[0], origin[0] = 0, 0.0, 0.0, -1, 0, -1
    begin, end, widest = 0, 1, 1
    for p in range(turn):
        c, a, below, new = decay[p] - floor_c, discount[p] - floor_a, turn - 1 - p, end
        for state in range(begin, end):
            here = key[state]
            for g in range(chains):
                i = (here >> (field * g)) & mask
                if ((here | guards) - need[g, i]) & guards != guards:
                    continue
                reached, at = value[state] + (c * height[start[g] + i] - a * worth[g]), where[state] + radix[g]
                there = slot[at]
                if there < 0:
                    if new == room:
                        for t in range(end, new):
                            slot[where[t]] = -1
                        return -1
                    there = new
                    slot[at], where[new], key[new] = new, at, here + (1 << (field * g))
                    value[new], tail[new], last[new] = -np.inf, np.nan if tailed else 0.0, max(last[state], rank[g, i])
                    new += 1
                if reached > value[there]:
                    value[there], origin[there], chain[there] = reached, state, g
                if tailed and rank[g, i] > last[state]:
                    tail[there] = tail[state] + cost[g, i, below]
        for t in range(end, new):
            slot[where[t]] = -1
        begin, end = end, new
        widest = max(widest, end - begin)
    best = begin
    for state in range(begin, end):
        if tail[state] != tail[state]:  # rounding made two that differ one in the sort
            return -1
        if value[state] - tail[state] > value[best] - tail[best]:
            best = state
    placed = np.empty(chains, np.int64)
    for g in range(chains):
        placed[g] = (key[best] >> (field * g)) & mask
    for p in range(turn - 1, -1, -1):
        label[p] = chain[best]
        best = origin[best]
    if tailed:
        sort_rest(height, worth, start, size, discount, decay, low[turn], placed, size, turn, stop, label)
    return widest
