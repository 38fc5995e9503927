"""A binary heap of slots by their distance, each held once: a distance that falls moves its slot up."""

import numba as nb

from formulations.arrays import Floats, Ints
from formulations.compiled import FLOATS, INTS, compiled

__all__ = ["lift", "take_nearest"]


@compiled(nb.void(INTS, INTS, FLOATS, nb.int64))
def lift(heap: Ints, place: Ints, distance: Floats, i: int) -> None:
    """Move the slot at place i of the heap up, as far as its distance is below those above it."""
    slot = heap[i]
    d = distance[slot]
    while i > 0:
        above = (i - 1) >> 1
        other = heap[above]
        if distance[other] <= d:
            break
        heap[i] = other
        place[other] = i
        i = above
    heap[i] = slot
    place[slot] = i


@compiled(nb.int64(INTS, INTS, FLOATS, nb.int64))
def take_nearest(heap: Ints, place: Ints, distance: Floats, held: int) -> int:
    """Take the slot of least distance off a heap of `held` slots."""
    nearest = heap[0]
    held -= 1
    slot = heap[held]
    d = distance[slot]
    i, below = 0, 1
    while below < held:
        if below + 1 < held and distance[heap[below + 1]] < distance[heap[below]]:
            below += 1
        other = heap[below]
        if distance[other] >= d:
            break
        heap[i] = other
        place[other] = i
        i = below
        below = 2 * i + 1
    heap[i] = slot
    place[slot] = i
    return int(nearest)
