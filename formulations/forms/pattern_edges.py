"""The lattice of a pattern problem: its chains, and what every edge earns, from the rank-one parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.brevity import CompactReprMixin
from formulations.forms.earnings import DOCUMENT, RANK, Earnings
from formulations.forms.feature_map import FIRST, PAIRWISE, POSITIONAL, FeatureMap

__all__ = ["MOST_STATES", "Chains", "edges_of"]

MOST_STATES = 1 << 21
"""States of a lattice that is written out, at most."""


@dataclass(frozen=True, eq=False)
class Chains(CompactReprMixin):
    """members: the documents of each chain in the order in which a path takes them, chains by rising grade. grade,
    share, passing: (G,), what is one and the same in a chain. heights: the scores of its members."""

    members: tuple[Ints, ...]
    heights: tuple[Floats, ...]
    grade: Floats
    share: Floats
    passing: Floats

    @classmethod
    def of(cls, scores: Floats, grade: Floats, map: FeatureMap, earnings: Earnings) -> Chains:
        apart = [grade]
        if earnings.kind == DOCUMENT:
            apart += [earnings.share, earnings.passing]
        kinds, chain = np.unique(np.stack(apart, axis=1), axis=0, return_inverse=True)
        chain = chain.reshape(-1)
        rows = np.lexsort((-scores, chain))
        falling = np.split(rows, np.cumsum(np.bincount(chain))[:-1])
        upwards = (map.kind == FIRST) & (kinds[:, 0] > 0)
        members = tuple(part[::-1] if up else part for part, up in zip(falling, upwards.tolist(), strict=True))
        parts = [kinds[:, k] if kinds.shape[1] > k else np.ones(len(kinds)) for k in range(3)]
        return cls(members, tuple(scores[part] for part in members), *parts)

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(part.size for part in self.members)

    @property
    def states(self) -> int:
        return int(np.prod([float(length + 1) for length in self.lengths]))

    def order(self, path: Ints) -> Ints:
        """The document at each position, where a path takes the chains so."""
        order = np.empty(path.size, dtype=np.int64)
        for chain, part in enumerate(self.members):
            order[path == chain] = part
        return order


def edges_of(
    chains: Chains, map: FeatureMap, earnings: Earnings, number: Callable[[Any], NDArray[Any]] = np.asarray
) -> NDArray[Any]:
    """(G, N_0 + 1, ...) what each edge earns, 0 where there is none, the constant left out. number: what arrays of
    doubles are turned into first, so that the same is done in rational numbers."""
    lengths = chains.lengths
    counts = np.indices(tuple(length + 1 for length in lengths))
    place = np.minimum(counts.sum(axis=0), sum(lengths) - 1)
    earned = _earned(chains, earnings, counts, place, number)
    zero = number(np.zeros(1))[0]
    edges = []
    for chain, heights in enumerate(chains.heights):
        slope = _slope(chains, map, chain, counts, place, number)
        height = number(np.append(heights, 0.0))[counts[chain]]
        edge = slope * height - earned(chain)
        edges.append(np.where(counts[chain] < lengths[chain], edge, zero))
    return np.stack(edges)


def _slope(
    chains: Chains, map: FeatureMap, chain: int, counts: Ints, place: Ints, number: Callable[[Any], NDArray[Any]]
) -> NDArray[Any]:
    """r of the document that the edges of a chain place."""
    weight, grade = number(map.weight), chains.grade
    if map.kind == POSITIONAL:
        return np.asarray(weight[place])
    if map.kind == PAIRWISE:
        pairs = np.zeros(place.shape, dtype=np.int64)
        for other, length in enumerate(chains.lengths):
            if grade[other] > grade[chain]:
                pairs += length - counts[other]
            elif grade[other] < grade[chain]:
                pairs -= counts[other]
        return np.asarray(weight[0] * _whole(pairs, weight))
    good = grade > 0
    others = counts[~good].sum(axis=0) if (~good).any() else np.zeros(place.shape, dtype=np.int64)
    none = counts[good].sum(axis=0) == 0 if good.any() else np.ones(place.shape, dtype=bool)
    return np.asarray(weight[0] * _whole(np.where(none, -others if good[chain] else 1, 0), weight))


def _earned(
    chains: Chains, earnings: Earnings, counts: Ints, place: Ints, number: Callable[[Any], NDArray[Any]]
) -> Callable[[int], NDArray[Any]]:
    """From a chain to what its documents earn at each state."""
    if earnings.kind == RANK:
        discount, share = number(earnings.discount), number(np.append(earnings.share, 0.0))
        return lambda chain: share[counts[chain]] * discount[place] if chains.grade[chain] > 0 else 0 * discount[place]
    if earnings.kind == DOCUMENT:
        discount, worth, passing = number(earnings.discount), number(chains.share), number(chains.passing)
        here = discount[place]
        for chain, count in enumerate(counts):
            if chains.passing[chain] != 1.0:
                here = here * _powers(passing[chain], chains.lengths[chain])[count]
        return lambda chain: worth[chain] * here
    table = number(earnings.table).reshape(counts.shape)
    return lambda chain: table[chain]


def _powers(base: Any, most: int) -> NDArray[Any]:
    powers = [base * 0 + 1]
    for _ in range(most):
        powers.append(powers[-1] * base)
    return np.array(powers)


def _whole(values: Ints, like: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers as what the others are: Python's own among rationals, which NumPy's would turn into doubles."""
    return values.astype(object) if like.dtype == object else values.astype(np.float64)
