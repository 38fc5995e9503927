"""Equal documents share a slope, so that it does not follow the order of the input.

A maximum over orders may be reached by many; each gives a subgradient, and so does their mean. Where documents of equal
score also earn alike (and no set tells them apart), exchanging them makes another maximiser: the mean over all these
exchanges gives each of them the mean of their slopes. Over other documents a mean is no subgradient.
"""

from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, compiled
from formulations.threads import share_ranges
from rankopt.losses.by_query import QUERY_ROWS

__all__ = ["alike", "shared"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGE = nb.uint64(0x9E3779B97F4A7C15)
OTHER = nb.uint64(0xC2B2AE3D27D4EB4F)
HALF = nb.uint64(32)


def alike(*traits: Floats | Ints) -> Ints:
    """A number for each document, the same for documents that agree in all traits (N,) and for no others."""
    if len(traits) == 1 and traits[0].dtype == np.float64:
        return np.ascontiguousarray(traits[0] + 0.0).view(np.int64)  # + 0.0: minus zero is zero
    found = np.zeros(traits[0].size, dtype=np.int64)
    for trait in traits:
        _, one = np.unique(trait, return_inverse=True)
        found = found * (int(one.max(initial=0)) + 1) + one
        found = np.unique(found, return_inverse=True)[1].astype(np.int64)
    return found


def shared(slope: Floats, scores: Floats, kind: Ints, offsets: Ints) -> Floats:
    """`slope` (N,), documents of one query, equal score and equal kind having the mean of theirs; changed in place."""
    given = (np.ascontiguousarray(scores), kind, offsets)
    share_ranges(offsets, QUERY_ROWS, lambda first, last: _share(*given, first, last, slope))
    return slope


@compiled(nb.int64(READ_INTS, READ_INTS, READ_INTS, nb.int64, nb.int64, nb.int64))
def _slot(table: Ints, bits: Ints, kind: Ints, low: int, i: int, mask: int) -> Any:
    """Where document i of a query stands in the table, or may stand: slots hold documents, -1 is free."""
    mixed = nb.uint64(bits[i]) * LARGE + nb.uint64(kind[low + i]) * OTHER
    slot = nb.int64((mixed ^ (mixed >> HALF)) & nb.uint64(mask))
    while table[slot] >= 0 and (bits[table[slot]] != bits[i] or kind[low + table[slot]] != kind[low + i]):
        slot = (slot + 1) & mask
    return slot


@compiled(nb.void(READ_FLOATS, READ_INTS, READ_INTS, nb.int64, nb.int64, FLOATS))
def _share(scores: Floats, kind: Ints, offsets: Ints, first: int, last: int, slope: Floats) -> None:
    """`shared` of the queries first <= q < last, in time linear in their documents.

    Only documents with a slope other than 0 are put into a table; of a decay that ends at position 10 these are ten.
    """
    longest = 1
    for q in range(first, last):
        longest = max(longest, offsets[q + 1] - offsets[q])
    size = 4
    while size < 2 * longest:
        size *= 2
    table, leader = np.empty(size, np.int64), np.empty(longest, np.int64)
    count, total, own = np.empty(longest, np.int64), np.empty(longest), np.empty(longest)
    bits = own.view(np.int64)
    for q in range(first, last):
        low, n = offsets[q], offsets[q + 1] - offsets[q]
        held = 0
        for i in range(n):
            own[i] = scores[low + i] + 0.0  # minus zero is zero
            held += slope[low + i] != 0.0
        if held == 0:
            continue
        size = 4
        while size < 2 * held:
            size *= 2
        table[:size] = -1
        tied = False
        for i in range(n):
            if slope[low + i] != 0.0:
                slot = _slot(table, bits, kind, low, i, size - 1)
                if table[slot] < 0:
                    table[slot], leader[i], count[i], total[i] = i, i, 1, slope[low + i]
                else:
                    one = table[slot]
                    leader[i], tied = one, True
                    count[one] += 1
                    total[one] += slope[low + i]
        if held < n:
            for i in range(n):
                if slope[low + i] == 0.0:
                    one = table[_slot(table, bits, kind, low, i, size - 1)]
                    leader[i] = one
                    if one >= 0:
                        count[one] += 1
                        tied = True
        if tied:
            for i in range(n):
                one = leader[i]
                if one >= 0 and count[one] > 1:
                    slope[low + i] = total[one] / count[one]
