"""What all ways of the argmax share: how a query is handed to them, and how it is left."""

from __future__ import annotations

import numba as nb
import numpy as np

from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, READ_INTS, READ_SHORTS, SHORTS, compiled

__all__ = [
    "ANY", "ASSIGNMENT", "BATCH", "CUT", "FEW", "IDEALS", "MERGE", "NEW", "ONE_SORT", "OPEN", "PRICES", "TWO_SORTS",
    "WAYS", "fill_up", "place", "settle", "states_of",
]  # fmt: skip

WAYS = ("any order", "one sort", "two sorts", "merge", "order ideals", "prices", "few candidates", "assignment")
ANY, ONE_SORT, TWO_SORTS, MERGE, IDEALS, PRICES, FEW, ASSIGNMENT, OPEN, CUT, NEW = range(11)
"""The last three are no ways: not solved yet, its first places to be searched, not looked at yet."""

EPSILON = 2.0**-52

BATCH = (
    READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, READ_INTS, READ_FLOATS, READ_INTS,
    READ_SHORTS, READ_SHORTS, READ_INTS, nb.int64, nb.int64, nb.int64, INTS, FLOATS, FLOATS, BYTES,
)  # fmt: skip
"""Scores, gain, discount, decay, offsets; of the `Layout` by_gain, chain_start, worth, first_chain, low, high, stop;
the first query, one behind the last, room for states; order, value, bound and way, which are filled."""


@compiled(nb.int64(nb.int64, nb.int64))
def states_of(room: int, n: int) -> int:
    """How many states a query of n documents may have: `room`, or if that is 0 what a narrow search takes."""
    return room if room > 0 else 80 * n + 2048


@compiled(nb.void(BYTES, SHORTS, INTS, nb.int64, INTS))
def place(label: Bytes, document: Shorts, start: Ints, last: int, order: Ints) -> None:
    """The next document of chain label[p] at each position p < last; chain g begins at start[g], which moves on."""
    for p in range(last):
        g = label[p]
        order[p] = document[start[g]]
        start[g] += 1


@compiled(nb.void(READ_SHORTS, nb.int64, nb.boolean[::1], INTS))
def fill_up(members: Shorts, last: int, done: np.ndarray, order: Ints) -> None:
    """Those of the members that stand at no position p < last behind these, as they come. done: room, all False."""
    for p in range(last):
        done[order[p]] = True
    p = last
    for x in members:
        if done[x]:
            done[x] = False
        else:
            order[p] = x
            p += 1


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, INTS, nb.float64, nb.int64, FLOATS, FLOATS))
def settle(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    decay: Floats,
    order: Ints,
    left: float,
    query: int,
    value: Floats,
    bound: Floats,
) -> None:
    """Value of the order of a query, and its bound: above it by rounding, and by what the search `left` open."""
    earned, magnitude = 0.0, 0.0
    for i in range(order.size):
        x = order[i]
        up, down = decay[i] * scores[x], discount[i] * gain[x]
        earned += up - down
        magnitude += abs(up) + abs(down)
    value[query] = earned
    bound[query] = earned + EPSILON * (8.0 + 2.0 * order.size) * magnitude + left
