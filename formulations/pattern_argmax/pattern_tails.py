"""Tails of the lattice of counts: what is left behind the last position with a discount, in order of score.

Under the pairwise map a tail is a sum over pairs of chains, each O(1) (see `triangle`); under the positional map it is
merged; under the first-relevant map it is the best number of others above the first relevant document, if that is left.
"""

import numba as nb
import numpy as np

from formulations.arrays import Floats, Ints
from formulations.compiled import INTS, READ_FLOATS, compiled

__all__ = ["first_tail", "next_of", "pair_tails", "pairwise_tail", "positional_tail"]

TABLE = nb.types.Array(nb.float64, 2, "C")
WHOLE_TABLE = nb.types.Array(nb.int64, 2, "C")


@compiled(nb.void(READ_FLOATS, INTS, READ_FLOATS, nb.int64, TABLE, TABLE, WHOLE_TABLE))
def pair_tails(height: Floats, begins: Ints, grade: Floats, k: int, total: Floats, free: Floats, until: Ints) -> None:
    """total[h, i]: the sum of the first i of chain h. For chains l of lower grade than h, at row l · G + h: free[i],
    what chain h from i on loses to chain l in order of score; until[a]: how many of h stand above less than a of l."""
    chains = grade.size
    for h in range(chains):
        total[h, 0] = 0.0
        for i in range(begins[h + 1] - begins[h]):
            total[h, i + 1] = total[h, i] + height[begins[h] + i]
    for low in range(chains):
        count = begins[low + 1] - begins[low]
        for h in range(chains):
            if grade[low] >= grade[h]:
                continue
            pair, passed, above = low * chains + h, 0, 0
            length = begins[h + 1] - begins[h]
            for i in range(length):
                s = height[begins[h] + i]
                while passed < count and height[begins[low] + passed] > s:
                    passed += 1
                while above <= min(passed, k):
                    until[pair, above] = i
                    above += 1
                free[pair, i] = total[low, passed] - passed * s
            while above <= min(count, k):
                until[pair, above] = length
                above += 1
            free[pair, length] = 0.0
            for i in range(length - 1, -1, -1):
                free[pair, i] += free[pair, i + 1]


@compiled(nb.float64(INTS, READ_FLOATS, TABLE, TABLE, WHOLE_TABLE))
def pairwise_tail(taken: Ints, grade: Floats, total: Floats, free: Floats, until: Ints) -> float:
    chains, value = grade.size, 0.0
    for low in range(chains):
        a = taken[low]
        for h in range(chains):
            if grade[low] < grade[h]:
                pair, b = low * chains + h, taken[h]
                to = max(until[pair, a], b)
                value += free[pair, to] + (to - b) * total[low, a] - a * (total[h, to] - total[h, b])
    return value


@compiled(nb.int64(READ_FLOATS, INTS, INTS, READ_FLOATS, nb.boolean))
def next_of(height: Floats, begins: Ints, taken: Ints, grade: Floats, others: bool) -> int:
    """The chain with the best of what is left, of equal ones the highest, -1 if none; `others`: not relevant ones."""
    best, most = -1, -np.inf
    for h in range(grade.size):
        if begins[h] + taken[h] < begins[h + 1] and not (others and grade[h] > 0.0):
            s = height[begins[h] + taken[h]]
            if s >= most:
                best, most = h, s
    return best


@compiled(nb.float64(READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, nb.int64, INTS))
def positional_tail(
    height: Floats, begins: Ints, taken: Ints, grade: Floats, decay: Floats, k: int, room: Ints
) -> float:
    for h in range(grade.size):
        room[h] = taken[h]
    value = 0.0
    for p in range(k, decay.size):
        h = next_of(height, begins, room, grade, False)
        value += decay[p] * height[begins[h] + room[h]]
        room[h] += 1
    return value


@compiled(nb.float64(READ_FLOATS, INTS, INTS, READ_FLOATS, nb.float64, INTS, INTS))
def first_tail(
    height: Floats, begins: Ints, taken: Ints, grade: Floats, strength: float, room: Ints, more: Ints
) -> float:
    """What others above the first relevant document add if it is not placed yet; more[0]: how many of them, -1 if it
    is."""
    above, lowest, placed = 0, np.inf, False
    for h in range(grade.size):
        room[h] = taken[h]
        if grade[h] > 0.0:
            placed |= taken[h] > 0
            if begins[h] < begins[h + 1]:
                lowest = min(lowest, height[begins[h]])
        else:
            above += taken[h]
    more[0] = -1
    if placed or strength == 0.0:
        return 0.0
    most, gained, count = -np.inf if lowest == np.inf else -strength * above * lowest, 0.0, 0
    more[0] = 0
    while True:
        h = next_of(height, begins, room, grade, True)
        if h < 0:
            break
        gained += strength * height[begins[h] + room[h]]
        room[h] += 1
        count += 1
        value = gained if lowest == np.inf else gained - strength * (above + count) * lowest
        if value > most:
            most, more[0] = value, count
    return 0.0 if most == -np.inf else most
