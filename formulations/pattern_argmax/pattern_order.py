"""Chains sorted by score before the search; the order of goods and bads from how many bads stand above each good."""

import numba as nb
import numpy as np

from formulations.argmax.chains import sort_chain
from formulations.arrays import Bools, Bytes, Floats, Ints, Shorts
from formulations.compiled import BYTES, FLOATS, INTS, READ_FLOATS, READ_INTS, READ_SHORTS, SHORTS, compiled

__all__ = ["merge_range", "sort_range"]

READ_BOOLS = nb.types.Array(nb.bool_, 1, "C", readonly=True)


@compiled(
    nb.void(READ_FLOATS, READ_INTS, READ_SHORTS, READ_INTS, READ_INTS, READ_BOOLS, nb.int64, nb.int64, FLOATS, SHORTS)
)
def sort_range(
    scores: Floats,
    offsets: Ints,
    members: Shorts,
    chain_start: Ints,
    first_chain: Ints,
    rising: Bools,
    begin: int,
    end: int,
    height: Floats,
    document: Shorts,
) -> None:
    """height, document (N,): scores and documents of the queries begin <= q < end, chain by chain by falling score, or
    where the chain is `rising` by rising score."""
    longest = 0
    for q in range(begin, end):
        longest = max(longest, offsets[q + 1] - offsets[q])
    other, spare = np.empty(longest), np.empty(longest, np.int32)
    for q in range(begin, end):
        own = scores[offsets[q] : offsets[q + 1]]
        for g in range(first_chain[q], first_chain[q + 1]):
            low, high = chain_start[g], chain_start[g + 1]
            count = high - low
            sort_chain(own, members[low:high], count, height[low:high], document[low:high], other, spare)
            if rising[g]:
                for i in range(count // 2):
                    x, y = low + i, high - 1 - i
                    height[x], height[y] = height[y], height[x]
                    document[x], document[y] = document[y], document[x]


@compiled(
    nb.void(
        READ_FLOATS, READ_SHORTS, READ_INTS, READ_INTS, BYTES, INTS, READ_FLOATS, nb.int64, READ_FLOATS, READ_FLOATS,
        READ_FLOATS, nb.int64, nb.int64, INTS, FLOATS, FLOATS, FLOATS,
    )
)  # fmt: skip
def merge_range(
    height: Floats,
    document: Shorts,
    offsets: Ints,
    bads: Ints,
    merged: Bytes,
    above: Ints,
    weight: Floats,
    kind: int,
    discount: Floats,
    share: Floats,
    constant: Floats,
    begin: int,
    end: int,
    order: Ints,
    slope: Floats,
    earned: Floats,
    value: Floats,
) -> None:
    """order, slope, earned and value of the queries that are `merged`, where above[row of good g] bads stand above good
    g; the bads come first among the rows of a query. kind: of the feature map, in the order of `pattern_batch.KINDS`.
    share: of the good of each rank, what a bad earns taken off; constant: what is taken off what goods earn."""
    for q in range(begin, end):
        if not merged[q]:
            continue
        low, high, count = offsets[q], offsets[q + 1], bads[q]
        bad, goods = low, high - low - count
        positional, pairs = kind == 1, kind == 0
        weighed = 0.0 if positional else weight[q]
        place, scored, gained = low, 0.0, 0.0
        for g in range(goods + 1):
            good = low + count + g
            until = low + above[good] if g < goods else low + count
            r = 0.0
            if pairs:
                r = weighed * (goods - g)
            elif g == 0 and goods:
                r = weighed
            while bad < until:
                x = document[bad]
                order[place] = x
                if positional:
                    r = weight[place]
                slope[low + x] = r
                scored += r * height[bad]
                bad += 1
                place += 1
            if g == goods:
                break
            x = document[good]
            order[place] = x
            if positional:
                r = weight[place]
            elif pairs or g == 0:
                r = -weighed * (bad - low)
            else:
                r = 0.0
            slope[low + x] = r
            scored += r * height[good]
            gained += share[low + g] * discount[place]
            place += 1
        earned[q] = gained - constant[q]
        value[q] = scored - earned[q]
