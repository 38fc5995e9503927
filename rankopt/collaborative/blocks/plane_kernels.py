"""Planes of users as they lie in memory, user after user and plane after plane: read, mixed, moved and joined."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled
from rankopt.collaborative.book import CODES, READ_CODES
from rankopt.collaborative.normal_equations import TABLE

__all__ = [
    "FEW", "SLOPES", "crowded", "decode", "join_lightest", "mix_planes", "move_numbers", "move_slopes", "place_fresh",
    "read_slopes",
]  # fmt: skip

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.uint16]

FEW = 6
"""Planes of a user from which on one without weight makes way for the next, before there are more; fewer than a user of
the users' block has (`held_planes`), since they are kept from pass to pass and from round to round."""

SLOPES = (READ_FLOATS, READ_CODES, READ_CODES, READ_FLOATS, READ_FLOATS)
"""What slopes are read from: scale, codes, reference, book, plain."""


@compiled(nb.void(nb.int64, nb.int64, nb.int64, nb.int64, *SLOPES, TABLE))
def read_slopes(
    u: int, low: int, at: int, count: int, scale: Floats, codes: Codes, reference: Codes, book: Floats, plain: Floats,
    found: Floats,
) -> None:  # fmt: skip
    """found[k, :size] = the slopes of plane k < count of user u, whose ratings begin at `low` and slopes at `at`."""
    size = found.shape[1]
    if plain.size:
        for k in range(count):
            for e in range(size):
                found[k, e] = plain[at + k * size + e]
        return
    v = scale[u]
    for k in range(count):
        for e in range(size):
            found[k, e] = v * (book[codes[at + k * size + e]] - book[reference[low + e]])


@compiled(nb.boolean(READ_INTS, READ_FLOATS, nb.int64))
def crowded(counts: Ints, weights: Floats, most: int) -> bool:
    """Whether a user has so many planes, or more, that all have weight."""
    first = 0
    for u in range(counts.size):
        if counts[u] >= most:
            full = True
            for k in range(counts[u]):
                full &= weights[first + k] > 0.0
            if full:
                return True
        first += counts[u]
    return False


@compiled(nb.void(READ_INTS, READ_INTS, nb.int64, FLOATS, FLOATS, FLOATS, FLOATS))
def join_lightest(
    bounds: Ints, counts: Ints, most: int, plain: Floats, weights: Floats, heights: Floats, gram: Floats
) -> None:
    first, at, table = 0, 0, 0
    for u in range(counts.size):
        own, size = counts[u], bounds[u + 1] - bounds[u]
        light, other = -1, -1
        for k in range(own):
            if light < 0 or weights[first + k] < weights[first + light]:
                light, other = k, light
            elif other < 0 or weights[first + k] < weights[first + other]:
                other = k
        if own >= most and weights[first + light] > 0.0:
            total = weights[first + light] + weights[first + other]
            p, q = weights[first + light] / total, weights[first + other] / total
            for e in range(size):
                to = at + other * size + e
                plain[to] = p * plain[at + light * size + e] + q * plain[to]
            heights[first + other] = p * heights[first + light] + q * heights[first + other]
            square = gram[table : table + own * own].reshape((own, own))
            alone = p * p * square[light, light] + 2.0 * p * q * square[light, other] + q * q * square[other, other]
            for k in range(own):
                square[other, k] = p * square[light, k] + q * square[other, k]
                square[k, other] = square[other, k]
            square[other, other] = alone
            weights[first + other], weights[first + light] = total, 0.0
        first, at, table = first + own, at + own * size, table + own * own


@compiled(nb.void(READ_INTS, READ_INTS, READ_FLOATS, INTS, INTS))
def place_fresh(bounds: Ints, counts: Ints, weights: Floats, place: Ints, grown: Ints) -> None:
    """The place of each user's next plane, and how many planes he has then."""
    first = 0
    for u in range(counts.size):
        own = counts[u]
        place[u] = own
        if own >= FEW:
            for k in range(own):
                if weights[first + k] == 0.0:
                    place[u] = k
                    break
        if bounds[u + 1] > bounds[u]:
            grown[u] = max(own, place[u] + 1)
        first += own


def _moved_of(kind: Any, read: Any, write: Any) -> Any:
    return nb.void(READ_INTS, READ_INTS, READ_INTS, READ_INTS, read, read, write)


@compiled([_moved_of(nb.uint16, READ_CODES, CODES), _moved_of(nb.float64, READ_FLOATS, FLOATS)])
def move_slopes(bounds: Ints, counts: Ints, grown: Ints, place: Ints, held: Any, fresh: Any, found: Any) -> None:
    """Slopes of all planes with the fresh ones in their places."""
    old, new = 0, 0
    for u in range(counts.size):
        low, size = bounds[u], bounds[u + 1] - bounds[u]
        for e in range(counts[u] * size):
            found[new + e] = held[old + e]
        if size:
            for e in range(size):
                found[new + place[u] * size + e] = fresh[low + e]
        old += counts[u] * size
        new += grown[u] * size


@compiled(
    nb.void(READ_INTS, READ_INTS, READ_INTS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, FLOATS, FLOATS, FLOATS)
)
def move_numbers(
    counts: Ints, grown: Ints, place: Ints, weights: Floats, heights: Floats, gram: Floats, fresh: Floats,
    more_weights: Floats, more_heights: Floats, more_gram: Floats,
) -> None:  # fmt: skip
    """Weights, heights and gram likewise; the fresh planes have the weight 0, and no entries yet."""
    old, new, at, to = 0, 0, 0, 0
    for u in range(counts.size):
        own, more = counts[u], grown[u]
        for k in range(own):
            more_weights[new + k], more_heights[new + k] = weights[old + k], heights[old + k]
            for other in range(own):
                more_gram[to + k * more + other] = gram[at + k * own + other]
        if more:
            more_heights[new + place[u]] = fresh[u]
        old, new, at, to = old + own, new + more, at + own * own, to + more * more


@compiled(nb.void(READ_INTS, *SLOPES, READ_INTS, READ_FLOATS, READ_FLOATS, FLOATS, FLOATS))
def mix_planes(
    bounds: Ints, scale: Floats, codes: Codes, reference: Codes, book: Floats, plain: Floats, counts: Ints,
    weights: Floats, heights: Floats, found: Floats, height: Floats,
) -> None:  # fmt: skip
    first, at = 0, 0
    for u in range(counts.size):
        low, size, v = bounds[u], bounds[u + 1] - bounds[u], scale[u]
        for e in range(size):
            total = 0.0
            for k in range(counts[u]):
                one = at + k * size + e
                slope = plain[one] if plain.size else v * (book[codes[one]] - book[reference[low + e]])
                total += weights[first + k] * slope
            found[low + e] = total
        height[u] = 0.0
        for k in range(counts[u]):
            height[u] += weights[first + k] * heights[first + k]
        first += counts[u]
        at += counts[u] * size


@compiled(nb.void(READ_INTS, *SLOPES, READ_INTS, FLOATS))
def decode(
    bounds: Ints, scale: Floats, codes: Codes, reference: Codes, book: Floats, plain: Floats, counts: Ints,
    found: Floats,
) -> None:  # fmt: skip
    at = 0
    for u in range(counts.size):
        low, size = bounds[u], bounds[u + 1] - bounds[u]
        for _ in range(counts[u]):
            for e in range(size):
                found[at + e] = scale[u] * (book[codes[at + e]] - book[reference[low + e]])
            at += size
