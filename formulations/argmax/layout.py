"""Precomputed data of a batch, independent of scores: chains of equal gain, cones of steps, significant weights.

The cone at a position is spanned by the extreme directions of the steps of the position weights from there on.

For positions p < q and documents x, y, x at p and y at q is no worse than the reverse when
(c_p - c_q)(s_x - s_y) >= (a_p - a_q)(b_x - b_y). All (c_p - c_q, a_p - a_q) lie in the cone spanned by the steps
(c_i - c_{i+1}, a_i - a_{i+1}), p <= i < q, so a document that is no worse in both extreme directions goes first.
Later positions see fewer steps, hence a cone that is no wider.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formulations.arrays import Bools, Bytes, Floats, Ints, Out, Shorts, frozen
from formulations.compiled import compiled, inlined
from formulations.problems.problem import EPSILON
from formulations.sorting import falling_rows

WAYS = ("any order", "one sort", "two sorts", "merge", "order ideals", "local search", "few candidates", "assignment")
ANY, ONE_SORT, TWO_SORTS, MERGE, IDEALS, LOCAL, FEW, ASSIGNMENT, OPEN, CUT, NEW = range(11)
"""The last three mark unsolved queries: open, first positions to be searched, new."""


@inlined
def states_of(max_states: int, n: int) -> int:
    """The maximum number of states of a query of n documents: `max_states`, or if 0 the limit of a narrow search."""
    return max_states if max_states > 0 else 80 * n + 2048


@inlined
def fill_order(label: Bytes, document: Shorts, start: Ints, last: int, order: Ints) -> None:
    """The next document of chain label[p] at each position p < last; chain g begins at start[g], which moves on."""
    for p in range(last):
        g = label[p]
        order[p] = document[start[g]]
        start[g] += 1


@compiled(internal=True)
def fill_up(members: Shorts, last: int, done: Out[Bools], order: Out[Ints]) -> None:
    """Append the unplaced members in order after positions p < last. done: a buffer, all False."""
    for p in range(last):
        done[order[p]] = True
    p = last
    for x in members:
        if done[x]:
            done[x] = False
        else:
            order[p] = x
            p += 1


MOST_POSITIONS = 32


@compiled(internal=True)
def find_cones(discount: Floats, position_weights: Floats, low: Out[Shorts], high: Out[Shorts]) -> int:
    """low[p], high[p]: the i >= p whose steps are extreme, most in score and most in gain; equal if all are parallel.

    Returns the first position after which no weight changes; positions from there on are equivalent, and low and
    high are not set. Products decide the order of angles, so equal weights compare exactly.
    """
    n = position_weights.size
    stop = n - 1
    while stop > 0 and position_weights[stop - 1] == position_weights[stop] and discount[stop - 1] == discount[stop]:
        stop -= 1
    if stop == 0:
        return 0
    one, two = stop - 1, stop - 1
    one_c, one_a = position_weights[one] - position_weights[stop], discount[one] - discount[stop]
    two_c, two_a = one_c, one_a
    for p in range(stop - 1, -1, -1):
        dc, da = position_weights[p] - position_weights[p + 1], discount[p] - discount[p + 1]
        if one_c * da - one_a * dc < 0.0:
            one, one_c, one_a = p, dc, da
        elif two_c * da - two_a * dc > 0.0:
            two, two_c, two_a = p, dc, da
        low[p], high[p] = one, two
    return stop


@inlined
def prefix_length(low: Shorts, high: Shorts, stop: int) -> int:
    """The first position from which all steps are parallel, if it is near and the cone the same before it; else 0."""
    turn = 0
    while turn < stop and low[turn] != high[turn]:
        if turn == MOST_POSITIONS or low[turn] != low[0] or high[turn] != high[0]:
            return 0
        turn += 1
    if turn and turn < stop and low[turn] != low[0] and low[turn] != high[0]:
        return 0
    return turn


NOTHING = 2.0**-400


def significant(weights: Floats, offsets: Ints) -> tuple[Floats, Floats]:
    """The weights with small ones set to zero, and the removed sum of each query; weights do not increase."""
    largest = np.maximum(np.abs(weights[offsets[:-1]]), np.abs(weights[offsets[1:] - 1]))
    size = np.abs(weights)
    small = size < NOTHING * np.repeat(largest, np.diff(offsets))
    lost = np.add.reduceat(np.where(small, size, 0.0), offsets[:-1])
    return np.where(small, 0.0, weights) if lost.any() else weights, lost


@compiled()
def fill_cones(
    discount: Floats, position_weights: Floats, offsets: Ints, low: Out[Shorts], high: Out[Shorts], stop: Out[Ints]
) -> None:
    """`find_cones` of every query."""
    for q in range(offsets.size - 1):
        rows = slice(offsets[q], offsets[q + 1])
        stop[q] = find_cones(discount[rows], position_weights[rows], low[rows], high[rows])


class Layout(NamedTuple):
    """What of a batch does not depend on the scores: read-only arrays, for kernels.

    by_gain: the documents of each query, counted within it, by rising gain and then as they come. chain_start: indices
    in by_gain where a chain of one gain begins, worth its gain, those of query q at entries first_chain[q] :
    first_chain[q + 1]. low, high, stop: see `find_cones`. discount, position_weights: the weights of the search, and
    for each query the removed sum (see `significant`).
    """

    gain: Floats
    discount: Floats
    position_weights: Floats
    offsets: Ints
    by_gain: Shorts
    chain_start: Ints
    worth: Floats
    first_chain: Ints
    low: Shorts
    high: Shorts
    stop: Ints
    lost_discount: Floats
    lost_position_weights: Floats

    @classmethod
    def from_arrays(cls, gain: Floats, discount: Floats, position_weights: Floats, offsets: Ints) -> Layout:
        lengths = np.diff(offsets)
        by_gain = falling_rows(offsets, -gain)
        sorted_gain = gain[by_gain]
        begins = np.append(True, sorted_gain[1:] != sorted_gain[:-1])
        begins[offsets[:-1]] = True
        chain_start = np.append(np.flatnonzero(begins), gain.size)
        low, high = np.zeros(gain.size, dtype=np.int32), np.zeros(gain.size, dtype=np.int32)
        stop = np.empty(lengths.size, dtype=np.int64)
        discount, lost_discount = significant(discount, offsets)
        position_weights, lost_position_weights = significant(position_weights, offsets)
        fill_cones(discount, position_weights, offsets, low, high, stop)
        within = (by_gain - np.repeat(offsets[:-1], lengths)).astype(np.int32)
        arrays = (
            gain, discount, position_weights, offsets, within, chain_start, sorted_gain[chain_start[:-1]],
            np.searchsorted(chain_start, offsets), low, high, stop, lost_discount, lost_position_weights,
        )  # fmt: skip
        return cls._make(map(frozen, arrays))


class Answers(NamedTuple):
    """Of a batch: the document, counted within its query, at each position; value, bound and way of each query."""

    order: Out[Ints]
    value: Out[Floats]
    bound: Out[Floats]
    way: Out[Bytes]

    @classmethod
    def empty(cls, offsets: Ints, way: int) -> Answers:
        count = offsets.size - 1
        return cls(np.empty(offsets[-1], np.int64), np.empty(count), np.empty(count), np.full(count, way, np.int8))


@inlined
def query_rows(scores: Floats, layout: Layout, q: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Scores, gain, discount and position weights of a query."""
    rows = slice(layout.offsets[q], layout.offsets[q + 1])
    return scores[rows], layout.gain[rows], layout.discount[rows], layout.position_weights[rows]


@compiled(internal=True)
def settle(
    scores: Floats, gain: Floats, discount: Floats, position_weights: Floats, order: Ints, left: float, q: int,
    found: Answers,
) -> None:  # fmt: skip
    """Value of the order of a query, and its bound: the value plus rounding plus the error that the search `left`."""
    earned, magnitude = 0.0, 0.0
    for i in range(order.size):
        x = order[i]
        up, down = position_weights[i] * scores[x], discount[i] * gain[x]
        earned += up - down
        magnitude += abs(up) + abs(down)
    found.value[q] = earned
    found.bound[q] = earned + EPSILON * (8.0 + 2.0 * order.size) * magnitude + left
