"""What a sort of the rest earns, by who was taken out of it before: a table in place of a sort for each way to take.

All documents are ranked by one key, and `turn` of them stand elsewhere, at the places before. With t of these above it
a document at rank r would stand at turn + r - t. To take it out costs what it earns there, and brings what follows up
by one. These costs, each with its own t, sum to what the documents taken cost together.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from formulations.arrays import Bytes, Floats, Ints
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, compiled

__all__ = ["COSTS", "NEEDS", "sort_rest", "tail_costs"]

NEEDS = nb.types.Array(nb.int64, 2, "C")
COSTS = nb.types.Array(nb.float64, 3, "C")


@compiled(
    nb.int64(FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, nb.int64, INTS, INTS, nb.int64, nb.int64, BYTES)
)
def sort_rest(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    step: int,
    placed: Ints,
    wanted: Ints,
    first: int,
    last: int,
    label: Bytes,
) -> int:
    """label[p] = the chain of the document at first <= p < last, by the key of the step from position `step`; how many
    of each chain are `placed` goes on. Ends, and returns the position, where all are placed that are `wanted`."""
    chains, left = worth.size, 0
    dc, da = decay[step] - decay[step + 1], discount[step] - discount[step + 1]
    key = np.full(chains, -np.inf)
    for g in range(chains):
        left += placed[g] < wanted[g]
        if placed[g] < size[g]:
            key[g] = dc * height[start[g] + placed[g]] - da * worth[g]
    p = first
    while p < last and left:
        best, most = 0, key[0]
        for g in range(1, chains):
            if key[g] > most:
                best, most = g, key[g]
        label[p] = best
        p += 1
        placed[best] += 1
        left -= placed[best] == wanted[best]
        key[best] = -np.inf
        if placed[best] < size[best]:
            key[best] = dc * height[start[best] + placed[best]] - da * worth[best]
    return p


@compiled(
    nb.void(
        FLOATS, READ_FLOATS, INTS, INTS, READ_FLOATS, READ_FLOATS, nb.int64, nb.int64, nb.int64, INTS, NEEDS, COSTS,
    )
)  # fmt: skip
def tail_costs(
    height: Floats,
    worth: Floats,
    start: Ints,
    size: Ints,
    discount: Floats,
    decay: Floats,
    step: int,
    turn: int,
    stop: int,
    most: Ints,
    rank: Ints,
    cost: Floats,
) -> None:
    """rank[g, i] in the sort of all by the key of `step`, cost[g, i, turn - 1 - t] of taking that document out of it
    where t before it are taken; up to a number that is the same for all ways to take `turn` of them."""
    chains, total = worth.size, 0
    for g in range(chains):
        total += size[g]
    listed, ranked = np.zeros(chains, np.int64), np.empty(total, np.int8)
    # Documents behind the last one that can be taken come up by as much whoever is.
    end = sort_rest(height, worth, start, size, discount, decay, step, listed, most, 0, total, ranked)
    weight, share, base = discount, 0.0, 1.0
    if decay[step] > decay[step + 1]:
        weight, share = decay, 1.0
        base = (discount[step] - discount[step + 1]) / (decay[step] - decay[step + 1])
    above = np.zeros(end + turn + 1)
    for p in range(min(stop, above.size)):
        above[p] = weight[p] - weight[stop]
    raised = np.zeros(turn)
    for r in range(end - 1, -1, -1):
        g = ranked[r]
        listed[g] -= 1
        i = listed[g]
        worthy = share * height[start[g] + i] - base * worth[g]
        if i < most[g]:
            rank[g, i] = r
            for below in range(turn):
                cost[g, i, below] = above[r + below + 1] * worthy - raised[below]
        for below in range(turn):
            raised[below] += (above[r + below] - above[r + below + 1]) * worthy
