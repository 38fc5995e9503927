"""Statements of sets of rankings whose integrality is studied, each a function of n documents, k positions and blocks.

A statement returns None where it makes no sense at a size (fewer blocks than positions, say).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from formulations.forms.linear_program import LinearProgram
from formulations.marginals.exposure import ExposureLimits
from formulations.problems.marginal_ranking import marginal_ranking
from formulations.sets.ranking_set import RankingSet

__all__ = ["STATEMENTS", "Statement"]

Statement = Callable[[int, int, int], RankingSet | LinearProgram | None]


def blocks_once(n: int, k: int, blocks: int) -> RankingSet | None:
    """Π(B, k): at most one document of each block in all k positions [ORM, Definition 5]."""
    return None if blocks < k else RankingSet(n, k).at_most(1, by=_labels(n, blocks), name="block")


def nested_quotas(n: int, k: int, blocks: int) -> RankingSet | None:
    """Sites within topics, over all positions: at most one document a site, two a topic of two sites."""
    sites = _labels(n, 2 * blocks)
    if 2 * blocks > n or 2 * blocks < k:
        return None
    return RankingSet(n, k).at_most(1, by=sites, name="site").at_most(2, by=sites // 2, name="topic")


def prefix_quotas(n: int, k: int, blocks: int) -> RankingSet | None:
    """Disjoint groups with quotas on prefixes: of each at least one fewer than its even share, and at most one more, in
    the first p positions, for all p from 2 to k - 1."""
    if k < 3:
        return None
    groups, stated = _labels(n, blocks), RankingSet(n, k)
    for p in range(2, k):
        share = p // blocks
        stated = stated.at_most(min(p, share + 1), by=groups, positions=range(p), name=f"top {p}")
        if share > 1:
            stated = stated.at_least(share - 1, by=groups, positions=range(p), name=f"floor {p}")
    return stated


def overlapping_groups(n: int, k: int, blocks: int) -> RankingSet | None:
    """Groups in a ring, each sharing documents with the next: at most one document of each."""
    if blocks < 3 or n < 2 * blocks:
        return None
    stated, ring = RankingSet(n, k), np.arange(n) % (2 * blocks)
    for group in range(blocks):
        held = (ring // 2 == group) | (ring == 2 * ((group + 1) % blocks))
        stated = stated.at_most(1, documents=held & (np.arange(n) < 2 * blocks), name=f"group {group}")
    return stated


def scattered_quotas(n: int, k: int, blocks: int) -> RankingSet | None:
    """Disjoint groups, each at most once in every second position: position sets that are no prefixes."""
    if k < 4:
        return None
    stated, groups = RankingSet(n, k), _labels(n, blocks)
    for first in range(2):
        places = range(first, k, 2)
        stated = stated.at_most(-(-len(places) // blocks), by=groups, positions=places, name=f"every other {first}")
    return stated


def precedence(n: int, k: int, blocks: int) -> RankingSet | None:
    """Chains of documents: wherever the second of a block stands, its first stands earlier."""
    if n < 2 * blocks:
        return None
    stated = RankingSet(n, k)
    for block in range(blocks):
        stated = stated.before(block, blocks + block, name=f"before {block}")
    return stated


def exposure(n: int, k: int, blocks: int) -> LinearProgram | None:
    """The mean exposure of each block within two fifths of the even share: rows that are meant for a lottery (Singh and
    Joachims, 2018), asked of one ranking."""
    if blocks < 2 or k < 2:
        return None
    even = float((1.0 / np.log2(np.arange(2.0, k + 2))).sum()) / n
    fair = ExposureLimits(_labels(n, blocks).tolist(), 0.6 * even, 1.4 * even)
    return marginal_ranking(np.zeros((k, n)), constraints=fair)


def _labels(n: int, blocks: int) -> NDArray[np.int64]:
    """Documents dealt out to blocks in turn."""
    return np.arange(n) % blocks


STATEMENTS: dict[str, Statement] = {
    "Π(B, k)": blocks_once,
    "nested quotas": nested_quotas,
    "quotas on prefixes": prefix_quotas,
    "quotas on every other position": scattered_quotas,
    "overlapping groups": overlapping_groups,
    "precedence": precedence,
    "exposure": exposure,
}
"""Every statement that the study grows."""
