"""The loss-augmented argmax over Π(B, k), for a flat batch of queries: collapse, then shortest augmenting paths.

Only the best document per position and block matters [ORM, Corollary 7]. The remaining k × blocks assignment is solved
row by row [Jonker and Volgenant 1987]. The bound is recomputed from its duals.
"""

from __future__ import annotations

import numpy as np

from formulations.arrays import Floats, Ints, Out
from formulations.compiled import compiled, inlined


@inlined
def _collapse(
    scores: Floats, gain: Floats, block: Ints, discount: Floats, position_weights: Floats, best: Floats, holder: Ints
) -> None:
    """best[i, r]: the largest profit of a document of block r at position i; holder[i, r]: the first such document."""
    best[:, :] = -np.inf
    for i in range(position_weights.size):
        c, a = position_weights[i], discount[i]
        for j in range(scores.size):
            earned = c * scores[j] - a * gain[j]
            if earned > best[i, block[j]]:
                best[i, block[j]] = earned
                holder[i, block[j]] = j


@inlined
def _assign(best: Floats, chosen: Ints, price: Floats) -> None:
    """chosen[i] = the block at position i of the best assignment, price[r] >= 0 the dual of a block, 0 if unused."""
    positions, blocks = best.shape
    holds = np.full(blocks, -1, np.int64)
    level = np.zeros(positions)
    way = np.empty(blocks, np.int64)
    short = np.empty(blocks)
    done = np.empty(blocks, np.bool_)
    price[:] = 0.0
    for start in range(positions):
        short[:] = np.inf
        done[:] = False
        row, base, end = start, 0.0, -1
        while end < 0:
            nearest, least = -1, np.inf
            for r in range(blocks):
                if done[r]:
                    continue
                reached = base - best[row, r] - level[row] + price[r]
                if reached < short[r]:
                    short[r], way[r] = reached, row
                if short[r] < least:
                    nearest, least = r, short[r]
            done[nearest] = True
            base = least
            if holds[nearest] < 0:
                end = nearest
            else:
                row = holds[nearest]
        level[start] += base
        for r in range(blocks):
            if done[r] and r != end:
                level[holds[r]] += base - short[r]
                price[r] += base - short[r]
        r = end
        while True:
            row = way[r]
            holds[r] = row
            r, chosen[row] = chosen[row], r
            if row == start:
                break


@compiled()
def diverse_argmax(
    scores: Floats,
    gain: Floats,
    block: Ints,
    offsets: Ints,
    discount: Floats,
    position_weights: Floats,
    position_offsets: Ints,
    order: Out[Ints],
    value: Out[Floats],
    bound: Out[Floats],
) -> None:
    """For every query q: the best ranking of at most one document a block, its value and dual bound.

    Documents of q are rows offsets[q] : offsets[q + 1] of scores, gain and block (counted from 0 within q, all used);
    its positions, at most its blocks, are entries position_offsets[q : q + 2] of the others. order counts within q.
    """
    for q in range(offsets.size - 1):
        low, high = offsets[q], offsets[q + 1]
        first, last = position_offsets[q], position_offsets[q + 1]
        blocks = block[low:high].max() + 1
        best = np.empty((last - first, blocks))
        holder = np.zeros((last - first, blocks), np.int64)
        _collapse(
            scores[low:high],
            gain[low:high],
            block[low:high],
            discount[first:last],
            position_weights[first:last],
            best,
            holder,
        )
        chosen = np.full(last - first, -1, np.int64)
        price = np.empty(blocks)
        _assign(best, chosen, price)
        value[q], bound[q] = 0.0, price.sum()
        for i in range(last - first):
            order[first + i] = holder[i, chosen[i]]
            value[q] += best[i, chosen[i]]
            bound[q] += (best[i] - price).max()
