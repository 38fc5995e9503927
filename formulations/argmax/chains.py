"""The documents of one gain by falling score: all of them, or as many as can be needed."""

import numba as nb

from formulations.arrays import Floats, Ints, Shorts
from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, READ_SHORTS, SHORTS, compiled
from formulations.stable_sort import sort_pairs

__all__ = ["sort_chain", "sort_chains"]


@compiled(nb.void(READ_FLOATS, READ_SHORTS, nb.int64, FLOATS, SHORTS))
def _few(scores: Floats, members: Shorts, reach: int, height: Floats, document: Shorts) -> None:
    """height, document: the `reach` best scores and whose they are, first come first of equal ones."""
    held = 0
    for x in members:
        s = scores[x]
        if held == reach:
            if s <= height[held - 1]:
                continue
            i = held - 1
        else:
            i = held
            held += 1
        while i > 0 and height[i - 1] < s:
            height[i], document[i] = height[i - 1], document[i - 1]
            i -= 1
        height[i], document[i] = s, x


@compiled(nb.void(READ_FLOATS, READ_SHORTS, nb.int64, FLOATS, SHORTS, FLOATS, SHORTS))
def sort_chain(
    scores: Floats, members: Shorts, reach: int, height: Floats, document: Shorts, other: Floats, spare: Shorts
) -> None:
    """Put the members by falling score, equal ones as they come, into document, their scores into height.

    Only the first `reach` need be right. other, spare: as much room again.
    """
    count = members.size
    if 4 * reach <= count:
        _few(scores, members, reach, height, document)
        return
    for i in range(count):
        height[i], document[i] = scores[members[i]], members[i]
    sort_pairs(height[:count], document[:count], other[:count], spare[:count])


@compiled(nb.void(READ_FLOATS, READ_SHORTS, READ_INTS, nb.int64, nb.int64, FLOATS, SHORTS, FLOATS, SHORTS, INTS, INTS))
def sort_chains(
    scores: Floats,
    members: Shorts,
    begins: Ints,
    top: int,
    last: int,
    height: Floats,
    document: Shorts,
    other: Floats,
    spare: Shorts,
    start: Ints,
    size: Ints,
) -> None:
    """`sort_chain` of every chain of a query whose first row is `top`: chain g begins at row begins[g] and ends where
    the next one begins. start, size: where it stands among the members, and how many of it can be needed for `last`
    positions and the one behind them."""
    for g in range(begins.size - 1):
        from_, to = begins[g] - top, begins[g + 1] - top
        start[g], size[g] = from_, min(to - from_, last + 1)
        part = slice(from_, to)
        sort_chain(scores, members[part], last + 1, height[part], document[part], other[part], spare[part])
