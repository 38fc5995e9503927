"""The references of rankings: the mean of the best ones, and those that the scores like most. All are told by gain and
discount, whose product is greatest for the rankings that are best, and the decay by place."""

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.compiled import FLOATS, INTS, READ_FLOATS, READ_INTS, compiled
from formulations.parallel import share_ranges
from formulations.sorting import QUERY_ROWS, sort_falling
from rankopt.errors import OptionError
from rankopt.losses.segment_ops import mean_of_alike, mean_of_runs, query_of_row, sorted_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def mean_of_best(which: str, gain: Floats, decay: Floats, offsets: Ints) -> Floats:
    """The mean of c over all orders that are best by gain, "average"; "first": equal gains in the order of the
    input, as in the papers, which makes that order a part of the problem. OptionError for another word."""
    if which not in ("average", "first"):
        raise OptionError(f"reference {which!r} is neither 'average' nor 'first'")
    query = query_of_row(offsets)
    rows = sorted_rows(query, gain)
    weights = np.empty(rows.size)
    weights[rows] = decay if which == "first" else mean_of_runs(decay, query, gain[rows])
    return weights


def liked_of_best(scores: Floats, gain: Floats, discount: Floats, decay: Floats, offsets: Ints) -> Floats:
    """c of the best ranking that the scores like most: sorted by gain, inside equal gains by score, then inside each
    run of positions with one discount (all those beyond a cut-off are such a run) by score again; documents alike in
    both share theirs."""
    weights = np.empty(scores.size)
    given = (scores, gain, discount, decay, offsets)
    if not best_by_score.pays(200 * scores.size):
        return best_by_score_in_numpy(*given)
    share_ranges(offsets, QUERY_ROWS, lambda first, last: best_by_score(*given, first, last, weights))
    return weights


def liked(scores: Floats, decay: Floats, offsets: Ints) -> Floats:
    """The decay by rank of score, documents of equal score share theirs."""
    weights = np.empty(scores.size)
    given = (scores, decay, offsets)
    if not by_score.pays(100 * scores.size):
        return by_score_in_numpy(*given)
    share_ranges(offsets, QUERY_ROWS, lambda first, last: by_score(*given, first, last, weights))
    return weights


@compiled(nb.void(INTS, READ_FLOATS, READ_FLOATS, nb.int64, nb.int64, FLOATS))
def _shared(order: Ints, scores: Floats, decay: Floats, first: int, last: int, weights: Floats) -> None:
    """Documents order[first:last] get the decay of their positions, those of equal score the mean of theirs."""
    start = first
    while start < last:
        end, total = start, 0.0
        while end < last and scores[order[end]] == scores[order[start]]:
            total += decay[end]
            end += 1
        for i in range(start, end):
            weights[order[i]] = total / (end - start)
        start = end


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, FLOATS))
def by_score(scores: Floats, decay: Floats, offsets: Ints, first: int, last: int, weights: Floats) -> None:
    """weights = c̄ of the nonconvex bound for the queries first <= q < last: the decay by rank of score."""
    for q in range(first, last):
        low, high = offsets[q], offsets[q + 1]
        order = np.arange(high - low)
        key = scores[low:high].copy()
        sort_falling(order, key, np.empty(high - low, np.int64))
        _shared(order, key, decay[low:high], 0, high - low, weights[low:high])


@compiled(nb.void(READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_FLOATS, READ_INTS, nb.int64, nb.int64, FLOATS))
def best_by_score(
    scores: Floats,
    gain: Floats,
    discount: Floats,
    decay: Floats,
    offsets: Ints,
    first: int,
    last: int,
    weights: Floats,
) -> None:
    """weights = c̄ of the tie-aware bound for the queries first <= q < last.

    Sorted by gain, then score; inside each run of positions of equal discount by score again. At last documents alike
    in gain and score, which may stand in several runs, share.
    """
    for q in range(first, last):
        low, high = offsets[q], offsets[q + 1]
        count = high - low
        order, spare = np.arange(count), np.empty(count, np.int64)
        key, worth, weight = scores[low:high].copy(), gain[low:high].copy(), weights[low:high]
        sort_falling(order, key, spare)
        sort_falling(order, worth, spare)
        by_gain = order.copy()
        start = 0
        while start < count:
            end = start
            while end < count and discount[low + end] == discount[low + start]:
                end += 1
            sort_falling(order[start:end], key, spare)
            _shared(order, key, decay[low:high], start, end, weight)
            start = end
        start = 0
        while start < count:
            end, total, x = start, 0.0, by_gain[start]
            while end < count and key[by_gain[end]] == key[x] and worth[by_gain[end]] == worth[x]:
                total += weight[by_gain[end]]
                end += 1
            for i in range(start, end):
                weight[by_gain[i]] = total / (end - start)
            start = end


def by_score_in_numpy(scores: Floats, decay: Floats, offsets: Ints) -> Floats:
    """`by_score` of all queries, the same bits."""
    query = query_of_row(offsets)
    rows, weights = sorted_rows(query, scores), np.empty(scores.size)
    weights[rows] = mean_of_alike(decay, np.arange(rows.size), query, scores[rows])
    return weights


def best_by_score_in_numpy(scores: Floats, gain: Floats, discount: Floats, decay: Floats, offsets: Ints) -> Floats:
    """`best_by_score` of all queries, the same bits."""
    query, weights = query_of_row(offsets), np.empty(scores.size)
    by_gain = sorted_rows(query, gain, scores)
    begins = np.append(True, (query[1:] != query[:-1]) | (discount[1:] != discount[:-1]))
    run = np.cumsum(begins)
    rows = by_gain[sorted_rows(run, scores[by_gain])]
    weights[rows] = mean_of_alike(decay, np.arange(rows.size), run, scores[rows])
    weights[by_gain] = mean_of_alike(weights[by_gain], np.arange(rows.size), query, gain[by_gain], scores[by_gain])
    return weights
