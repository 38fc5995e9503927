"""The best ranking where nested groups of documents have limits over all positions, one query at a time.

Positions enter one by one along longest paths of the residual network of `sets.laminar_flow`: position → document → the
smallest group that holds it → larger groups → out. A document that is placed passes its position on, a group that is
full gives one of its units back. Units that lower limits still ask for earn a reward that no exchange of documents
outweighs. At the end the longest ways of the residual network are prices that prove the answer.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from formulations.arrays import Bools, Floats, Ints
from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled

__all__ = ["FOUND", "LOST", "NONE", "place_nested"]

MASK = nb.types.Array(nb.bool_, 2, "C", readonly=True)
MATRIX = nb.types.Array(nb.float64, 2, "C")
READ_MATRIX = nb.types.Array(nb.float64, 2, "C", readonly=True)

FOUND, NONE, LOST = 1, 0, -1

FROM_ABOVE, FROM_OUTSIDE = -1, -2
"""How a path came to a group or a document (else from a group below, a document, a position), and to a position."""


@compiled(
    nb.int64(
        MATRIX, READ_INTS, READ_INTS, READ_INTS, READ_INTS, nb.float64, nb.float64, INTS, INTS, INTS, FLOATS, FLOATS,
        FLOATS, INTS, INTS, INTS,
    )
)  # fmt: skip
def _settle(
    profit: Floats, leaf: Ints, parent: Ints, low: Ints, high: Ints, reward: float, noise: float, order: Ints,
    place: Ints, flow: Ints, at_position: Floats, at_document: Floats, at_group: Floats, to_position: Ints,
    to_document: Ints, to_group: Ints,
) -> int:  # fmt: skip
    """Lengthen the ways at_... along residual arcs until none gains more than `noise`; LOST where they do for ever."""
    k, n = profit.shape
    groups = parent.size
    fresh = np.ones(k, np.bool_)
    for _ in range(2 * (k + n + groups) + 4):
        moved = False
        for i in range(k):
            if not fresh[i] or at_position[i] == -np.inf:
                continue
            fresh[i] = False
            for j in range(n):
                reached = at_position[i] + profit[i, j]
                if place[j] != i and reached > at_document[j] + noise:
                    at_document[j], to_document[j], moved = reached, i, True
        for j in range(n):
            if place[j] < 0 and at_document[j] > at_group[leaf[j]] + noise:
                at_group[leaf[j]], to_group[leaf[j]], moved = at_document[j], -3 - j, True
        for g in range(groups):
            reached = at_group[g] + (reward if flow[g] < low[g] else 0.0)
            if flow[g] < high[g] and reached > at_group[parent[g]] + noise:
                at_group[parent[g]], to_group[parent[g]], moved = reached, g, True
        for g in range(groups - 1, -1, -1):
            reached = at_group[parent[g]] - (reward if flow[g] <= low[g] else 0.0)
            if flow[g] > 0 and reached > at_group[g] + noise:
                at_group[g], to_group[g], moved = reached, FROM_ABOVE, True
        for j in range(n):
            q = place[j]
            if q < 0:
                continue
            if at_group[leaf[j]] > at_document[j] + noise:
                at_document[j], to_document[j], moved = at_group[leaf[j]], FROM_ABOVE, True
            reached = at_document[j] - profit[q, j]
            if reached > at_position[q] + noise:
                at_position[q], to_position[q], fresh[q], moved = reached, j, True, True
        if not moved:
            return FOUND
    return LOST


@compiled(
    nb.int64(
        READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_MATRIX, MASK, READ_INTS, READ_INTS, READ_INTS,
        READ_INTS, nb.float64, INTS, FLOATS,
    )
)  # fmt: skip
def place_nested(
    scores: Floats, gain: Floats, discount: Floats, decay: Floats, toll: Floats, allowed: Bools, leaf: Ints,
    parent: Ints, low: Ints, high: Ints, near: float, order: Ints, told: Floats,
) -> int:  # fmt: skip
    """order[i] = the document at position i of the ranking of most Σ_i decay[i] scores[π_i] - discount[i] gain[π_i] -
    toll[i, π_i]; told: its value, and a bound by prices, both up to rounding. FOUND; NONE where no ranking meets the
    limits; LOST where rounding hides which way is longer: then ask with more `near`, what counts as equal relative to
    profits.

    leaf[j] is the smallest group of document j, parent[g] the next larger one, larger groups having larger numbers and
    parent.size standing for all documents. low[g] <= the placed documents of g <= high[g]. Only allowed[i, j] count.
    """
    k, n, groups = decay.size, scores.size, parent.size
    profit = np.empty((k, n))
    largest = 0.0
    for i in range(k):
        for j in range(n):
            profit[i, j] = decay[i] * scores[j] - discount[i] * gain[j] - toll[i, j]
            largest = max(largest, abs(profit[i, j]))
            if not allowed[i, j]:
                profit[i, j] = -np.inf
    asked = False
    for g in range(groups):
        asked = asked or low[g] > 0
    reward = (4.0 * k + 4.0) * largest + 1.0 if asked else 0.0
    noise = near * max(largest, reward)
    flow, place = np.zeros(groups, np.int64), np.full(n, -1, np.int64)
    at_position, at_document, at_group = np.empty(k), np.empty(n), np.empty(groups + 1)
    to_position, to_document = np.empty(k, np.int64), np.empty(n, np.int64)
    to_group = np.empty(groups + 1, np.int64)
    order[:] = -1
    for entering in range(k):
        at_position[:], at_document[:], at_group[:] = -np.inf, -np.inf, -np.inf
        at_position[entering], to_position[entering] = 0.0, FROM_OUTSIDE
        ended = _settle(
            profit, leaf, parent, low, high, reward, noise, order, place, flow, at_position, at_document, at_group,
            to_position, to_document, to_group,
        )  # fmt: skip
        if ended != FOUND:
            return LOST
        if at_group[groups] == -np.inf:
            return NONE
        node, steps = groups, 0
        document, position = -1, -1
        while position < 0 or to_position[position] != FROM_OUTSIDE:
            steps += 1
            if steps > 2 * (k + n + groups) + 4:
                return LOST
            if position >= 0:  # it was freed by a document that goes elsewhere, or nowhere
                document, position = to_position[position], -1
                place[document] = -1
            elif document >= 0:
                way = to_document[document]
                if way == FROM_ABOVE:
                    node, document = leaf[document], -1
                else:
                    order[way], place[document] = document, way
                    document, position = -1, way
            else:
                way = to_group[node]
                if way == FROM_ABOVE:
                    flow[node] -= 1
                    node = parent[node]
                elif way >= 0:
                    flow[way] += 1
                    node = way
                else:
                    document = -3 - way
    for g in range(groups):
        if flow[g] < low[g]:
            return NONE
    at_position[:], at_document[:], at_group[:] = 0.0, 0.0, 0.0
    ended = _settle(
        profit, leaf, parent, low, high, reward, noise, order, place, flow, at_position, at_document, at_group,
        to_position, to_document, to_group,
    )  # fmt: skip
    if ended != FOUND:
        return LOST
    value, bound = 0.0, 0.0
    for g in range(groups):
        price = at_group[g] - at_group[parent[g]]
        bound += price * (high[g] if price > 0.0 else low[g])
    for j in range(n):  # what a document asks beyond its groups, 0 at least
        at_document[j] = max(at_document[j], at_group[leaf[j]])
        bound += at_document[j] - at_group[leaf[j]]
    for i in range(k):
        most = -np.inf
        for j in range(n):
            most = max(most, profit[i, j] - (at_document[j] - at_group[groups]))
        bound += most
        value += profit[i, order[i]]
    told[0], told[1] = value, bound
    return FOUND
