"""What orders of pattern problems are worth, compiled: the same as `forms.pattern_values`, in one pass each."""

import numba as nb
import numpy as np

from formulations.arrays import Bytes, Floats, Ints
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, READ_INTS, compiled

__all__ = ["judge_range"]

_PAIRWISE, _POSITIONAL = range(2)


@compiled(
    nb.void(
        READ_FLOATS, READ_FLOATS, READ_INTS, READ_FLOATS, nb.int64, READ_FLOATS, READ_FLOATS, READ_FLOATS,
        READ_FLOATS, nb.boolean, READ_INTS, BYTES, INTS, nb.int64, nb.int64, FLOATS, FLOATS, FLOATS,
    )
)  # fmt: skip
def judge_range(
    scores: Floats,
    grade: Floats,
    level: Ints,
    weight: Floats,
    kind: int,
    discount: Floats,
    share: Floats,
    passing: Floats,
    constant: Floats,
    by_rank: bool,
    offsets: Ints,
    taken: Bytes,
    order: Ints,
    begin: int,
    end: int,
    slope: Floats,
    earned: Floats,
    value: Floats,
) -> None:
    """slope (N,), earned and value (m,) of the queries that are taken; level: the rank of each document's grade."""
    levels = 1
    for q in range(begin, end):
        if not taken[q]:
            continue
        for row in range(offsets[q], offsets[q + 1]):
            levels = max(levels, level[row] + 1)
    held, seen = np.empty(levels, np.int64), np.empty(levels, np.int64)
    for q in range(begin, end):
        if not taken[q]:
            continue
        low, high = offsets[q], offsets[q + 1]
        above, rank, stay, first = 0, 0, 1.0, True
        gained, scored = 0.0, 0.0
        pairs = kind == _PAIRWISE
        if pairs:
            held[:] = 0
            seen[:] = 0
            for row in range(low, high):
                held[level[row]] += 1
        for place in range(low, high):
            x = low + order[place]
            good = grade[x] > 0.0
            if kind == _POSITIONAL:
                r = weight[place]
            elif pairs:
                count, own = 0, level[x]
                for other in range(own):
                    count -= seen[other]
                for other in range(own + 1, levels):
                    count += held[other] - seen[other]
                seen[own] += 1
                r = weight[q] * count
            elif not first:
                r = 0.0
            elif good:
                r, first = -weight[q] * above, False
            else:
                r = weight[q]
                above += 1
            slope[x] = r
            scored += r * scores[x]
            if by_rank:
                if good:
                    gained += share[low + rank] * discount[place]
                    rank += 1
            else:
                gained += share[x] * stay * discount[place]
                stay *= passing[x]
        earned[q] = gained - constant[q]
        value[q] = scored - earned[q]
