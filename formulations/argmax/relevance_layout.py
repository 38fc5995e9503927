"""Precomputed data of a batch of relevance rankings, independent of scores: chains, and the method of each query.

A query of two chains whose lower one has no gain is binary: relevant document g below b irrelevant ones gains
share[g] discount[g + b] (or the entry of its table). The method depends on these numbers, never on a name:

    sort                  one chain
    one pass              pairwise map: share is 0 except for the first relevant document, discount does not increase
                          first-relevant map: no negative share, discount does not increase
    independent choices   pairwise map: share is affine and nonnegative, discount is convex: rows of cells are concave
    triangle and tail     discount is 0 from some position on
    grid                  any other binary query
    lattice (and tail)    the rest
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from formulations.arrays import Bools, Bytes, Floats, Ints, Shorts, frozen
from formulations.compiled import STATES, is_small
from formulations.problems.problem import EPSILON
from formulations.problems.relevance_ranking import RelevanceBatch
from formulations.problems.relevance_values import DOCUMENT, FIRST, PAIRWISE, POSITIONAL, RANK, TABLE

PATTERN_WAYS = ("grid", "lattice", "independent choices", "triangle and tail", "one pass", "lattice and tail", "sort")
GRID, LATTICE, EACH, TRIANGLE, ONE_PASS, TAIL, SORT = range(7)

KINDS = (PAIRWISE, POSITIONAL, FIRST)


class RelevanceLayout(NamedTuple):
    """Read-only arrays, for kernels.

    members (N,): the documents of each query, counted within it, chain by chain. chain_start: rows where chains
    begin, those of query q being entries first_chain[q] : first_chain[q + 1], and the end. chain_grade, chain_share,
    chain_passing: the values of a chain. algorithm (m,): the method of each query. irrelevant (m,): the size of the
    lower of two chains. stop (m,): the position from which on discount is 0. share (N,): of the relevant document of
    each rank. moment (N,): Σ_{p < r} p (discount[p] - discount[p + 1]) up to each row r of a query. constant (m,):
    subtracted from gains. The rest is that of the batch; kind: the index of its feature map in `KINDS`.
    """

    members: Shorts
    chain_start: Ints
    first_chain: Ints
    chain_grade: Floats
    chain_share: Floats
    chain_passing: Floats
    algorithm: Bytes
    irrelevant: Ints
    stop: Ints
    share: Floats
    moment: Floats
    constant: Floats
    discount: Floats
    weight: Floats
    offsets: Ints
    table: Floats
    starts: Ints
    kind: int

    @classmethod
    def from_batch(cls, batch: RelevanceBatch) -> RelevanceLayout:
        offsets, sizes, earnings = batch.offsets, batch.sizes, batch.earnings
        query = np.repeat(np.arange(sizes.size), sizes)
        position = np.arange(query.size) - offsets[query]
        keys = [batch.grade]
        if earnings.kind == DOCUMENT:
            keys += [earnings.share, earnings.passing]
        rows = np.lexsort((*keys[::-1], query))
        new = np.zeros(query.size, dtype=bool)
        for key in keys:
            new[1:] |= key[rows[1:]] != key[rows[:-1]]
        new[offsets[:-1]] = True
        begins = np.flatnonzero(new)
        first_chain = np.searchsorted(begins, offsets)
        grade, share, passing = (part[rows[begins]] for part in (batch.grade, earnings.share, earnings.passing))
        chains = np.diff(first_chain)
        lower = first_chain[:-1]
        upper = np.minimum(lower + 1, begins.size - 1)
        ends = np.append(begins, query.size)
        irrelevant = np.where(chains == 2, ends[lower + 1] - ends[lower], 0)
        weighted = np.where(earnings.discount != 0.0, position + 1, 0)
        stop = np.maximum.reduceat(weighted, offsets[:-1])
        two = (chains == 2) & (grade[lower] < grade[upper])
        if batch.map.kind == FIRST or earnings.kind == RANK:
            two &= (grade[lower] <= 0.0) & (grade[upper] > 0.0)
        by_rank, constant = earnings.share, earnings.constant
        if earnings.kind == RANK:  # a single chain may be irrelevant, with no gain
            by_rank = np.where((chains == 1) & (grade[lower] <= 0.0), 0.0, 1.0)[query] * by_rank
        if earnings.kind == DOCUMENT:
            worth = share[upper] - share[lower]  # the common gain of both is the same for any order
            together = np.where(passing[lower] == 1.0, (share[lower] == 0.0) | (passing[upper] == 1.0), False)
            two &= together
            alone = chains == 1
            worth = np.where(alone, share[lower], worth)
            by_rank = worth[query] * np.where(alone, passing[lower], passing[upper])[query] ** position
            bottom = np.where(alone, 0.0, share[lower])
            constant = constant - bottom * np.add.reduceat(earnings.discount, offsets[:-1])
        if earnings.kind == TABLE:
            stop = sizes.copy()
        relevant = sizes - irrelevant
        way = _ways(
            batch, two, chains, stop, np.where(position < relevant[query], by_rank, 0.0), relevant, query, position
        )
        drops = earnings.discount - np.append(earnings.discount[1:], 0.0)
        moments = np.cumsum(np.where(position < sizes[query] - 1, position * drops, 0.0))
        moment = np.append(0.0, moments[:-1])
        arrays = (
            (rows - offsets[query]).astype(np.int32), ends, first_chain, grade, share, passing,
            way.astype(np.int8), irrelevant, stop, by_rank, moment - moment[offsets[:-1]][query], constant,
            earnings.discount, batch.map.weight, offsets, earnings.table, earnings.starts,
        )  # fmt: skip
        return cls._make([*map(frozen, arrays), KINDS.index(batch.map.kind)])

    def states(self, stop: Ints) -> Floats:
        """(m,) states of each query's lattice, of the counts up to stop (m,) of every chain."""
        lengths, first = np.diff(self.chain_start), self.first_chain
        query = np.repeat(np.arange(stop.size), np.diff(first))
        return np.asarray(np.multiply.reduceat(np.minimum(lengths, stop[query]) + 1.0, first[:-1]))

    def is_small(self, batch: RelevanceBatch) -> bool:
        """Whether the batch is small (`formulations.compiled`), and so are the lattices of its queries of many chains,
        which are then searched completely."""
        graded = (self.algorithm == LATTICE) | (self.algorithm == TAIL)
        return is_small(batch.offsets) and float(self.states(batch.sizes)[graded].sum()) <= STATES

    def hidden(self, batch: RelevanceBatch, ways: Bytes) -> Floats:
        """(m,) a bound on the rounding error of these methods.

        If irrelevant documents are inserted independently, up to 2 n₊ relevant ones are compared in turn.
        All comparisons read the same sums, so their error counts once, by n; the last few operations of each add up.
        Both are proportional to n₋ times the contribution of an irrelevant document: its scores, the first share times
        the first discount, and twice the rise of the shares times all discounts.
        """
        left = batch.left
        if not (ways == EACH).any():
            return left
        relevant, score = batch.sizes - self.irrelevant, np.maximum.reduceat(np.abs(batch.scores), batch.offsets[:-1])
        pairs = 2.0 * batch.map.weight * relevant * self.irrelevant * score if batch.map.kind == PAIRWISE else 0.0
        added = batch.reach + pairs + batch.sizes * batch.cached("a bad adds", lambda: self._a_bad_adds(batch))
        apart = EPSILON * (64.0 + 16.0 * batch.sizes + 32.0 * relevant) * added
        return np.asarray(np.where(ways == EACH, np.maximum(left, apart), left))

    def _a_bad_adds(self, batch: RelevanceBatch) -> Floats:
        """(m,) first share · first discount + 2 rise · Σ discount, where shares are affine and discounts fall."""
        starts, relevant = batch.offsets[:-1], batch.sizes - self.irrelevant
        last = self.share[starts + np.maximum(relevant - 1, 0)]
        rise = np.abs(last - self.share[starts]) / np.maximum(relevant - 1, 1)
        discount = np.abs(batch.earnings.discount)
        most, total = np.maximum.reduceat(discount, starts), np.add.reduceat(discount, starts)
        return np.asarray(np.abs(self.share[starts]) * most + 2.0 * rise * total)


def layout_of(batch: RelevanceBatch) -> RelevanceLayout:
    """The layout, cached with the batch."""
    return batch.cached("layout", lambda: RelevanceLayout.from_batch(batch))


def _ways(
    batch: RelevanceBatch,
    two: Bools,
    chains: Ints,
    stop: Ints,
    share: Floats,
    relevant: Ints,
    query: Ints,
    position: Ints,
) -> Ints:
    """(m,)"""
    sizes, starts, discount = batch.sizes, batch.offsets[:-1], batch.earnings.discount

    def every(held: Bools) -> Bools:
        return np.asarray(np.logical_and.reduceat(held, starts))

    behind = np.append(discount[1:], 0.0)
    last = position == sizes[query] - 1
    falls = every((discount >= behind) | last)
    before = np.append(0.0, discount[:-1])
    convex = every((before - discount >= discount - behind) | last | (position == 0))
    positive = every(share >= 0.0)
    known = two & (batch.earnings.kind != TABLE)
    way = np.where(two, GRID, LATTICE)
    if batch.map.kind == PAIRWISE:
        at = starts + np.maximum(relevant - 1, 0)
        slope = (share[at] - share[starts]) / np.maximum(relevant - 1, 1)
        off = np.abs(share - share[starts][query] - slope[query] * position)
        largest = np.maximum.reduceat(np.abs(share), starts)
        affine = every((off <= 8.0 * EPSILON * largest[query]) | (position >= relevant[query]))
        way = np.where(known & (stop < sizes), TRIANGLE, way)
        way = np.where(known & affine & convex & positive, EACH, way)
        only_first = every((share == 0.0) | (position == 0))
        way = np.where(known & only_first & positive & falls, ONE_PASS, way)
    elif batch.map.kind == FIRST:
        way = np.where(known & positive & falls, ONE_PASS, way)
    else:
        merged = stop * (stop + sizes) < relevant * (sizes - relevant)  # a tail is merged at a cost of its length
        way = np.where(known & (stop < sizes) & merged, TRIANGLE, way)
    way = np.where((way == LATTICE) & (stop < sizes), TAIL, way)
    return np.where(chains == 1, SORT, way)
