"""Rankings under limits on prefixes over disjoint groups, drawn at random, with profits of each kind for which the
theorem holds (`integrality.prefix_groups`), and the smallest ones known for which it fails."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from formulations.arrays import Floats, Ints
from formulations.sets.constrained_ranking import ConstrainedRanking
from formulations.sets.ranking_set import RankingSet

__all__ = ["EXTENSIONS", "drawn", "failing"]

EXTENSIONS = ("rank one", "a = κ c", "gains constant in groups", "a decay a group", "any sign, all placed")


def drawn(seed: int, most: int = 7) -> tuple[str, Floats, RankingSet]:
    """The kind of the profits, the profits (k, n), and a set of up to `most` documents, perhaps an empty one."""
    random = np.random.default_rng(seed)
    kind = EXTENSIONS[seed % len(EXTENSIONS)]
    n = int(random.integers(2, most + 1))
    k = n = min(n, 5) if kind == EXTENSIONS[-1] else n
    k = k if random.random() < 0.2 or k != n else int(random.integers(1, min(n, 8) + 1))
    if kind == EXTENSIONS[-1]:
        k = n
    groups = int(random.integers(1, 4))
    group = random.integers(0, groups + 1, n)
    admissible = RankingSet(n, k)
    for _ in range(int(random.integers(1, 5))):
        members = np.flatnonzero(group == random.integers(0, groups))
        last, where = int(random.integers(1, k + 1)), random.random()
        positions: range | list[int] = range(last)
        if where < 0.2:
            positions = [last - 1]
        elif where < 0.4 and k == n:
            positions = range(last - 1, k)
        word = str(random.choice(["at_most", "at_least", "exactly"], p=[0.5, 0.4, 0.1]))
        count = int(random.integers(0, min(len(positions), 3) + 1))
        admissible = admissible.say(word, count, documents=members, positions=positions)
    return kind, _profit(kind, random, k, group), admissible


def _profit(kind: str, random: np.random.Generator, k: int, group: Ints) -> Floats:
    n, whole = group.size, random.random() < 0.5

    def falling(*shape: int) -> Floats:
        return -np.sort(-(random.integers(0, 4, shape).astype(float) if whole else random.random(shape)), axis=-1)

    score = random.integers(-3, 4, n).astype(float) if whole else random.normal(size=n)
    decay, gain, worth = falling(k), random.integers(0, 3, n).astype(float), random.integers(0, 3, 4).astype(float)
    if kind == "a = κ c":
        return np.outer(decay, score) - np.outer(2.0 * decay, gain)
    if kind == "gains constant in groups":
        return np.outer(decay, score) - np.outer(falling(k), worth[group])
    if kind == "a decay a group":
        several = falling(4, k)[group].T * score
        return np.asarray(several + random.integers(-2, 3, (4, k))[group].T)
    return np.outer(decay - 1.5 if kind == "any sign, all placed" else decay, score)


def failing() -> Iterator[tuple[str, ConstrainedRanking, float, float]]:
    """Name, problem, the optimum of its linear program and the best ranking, of what lies next to the theorem."""
    quota = RankingSet(4, 3).at_most(1, documents=[0, 1], positions=range(2))
    profit = np.outer([4.0, 4, 3], [3.0, 0, 1, 2]) - np.outer([5.0, 2, 2], [2.0, 0, 1, 3])
    yield "rank two, one limit from above", ConstrainedRanking(profit, quota), 7.5, 7.0
    two = RankingSet(5, 3).at_most(0, documents=[0], positions=[0]).at_least(1, documents=[1, 2, 3], positions=range(2))
    profit = np.outer([2.0, 1, 1], [4.0, 4, 1, 0, 2]) - np.outer([5.0, 5, 1], [0.0, 1, 0, 0, 0])
    yield "two gains, two limits", ConstrainedRanking(profit, two), 9.5, 9.0
    nested = RankingSet(6, 3).at_most(0, documents=[1, 2], positions=[0]).at_most(0, documents=[3, 4], positions=[0])
    nested = nested.at_most(1, documents=[0, 1, 2], positions=range(2)).at_most(2, documents=range(5))
    profit = np.outer([3.0, 2, 1], [1.0, 2, 0, 1, 0, 0])
    yield "nested groups at several prefixes", ConstrainedRanking(profit, nested), 5.5, 5.0
    below = RankingSet(5, 3).at_least(1, documents=[0, 2], positions=range(2)).at_most(1, documents=[1, 3])
    profit = np.outer([2.0, -1, -2], [0.0, 3, 2, 0, 1])
    yield "a decay below 0", ConstrainedRanking(profit, below), 4.5, 4.0
    suffix = RankingSet(6, 3).at_most(0, documents=[0], positions=[2])
    suffix = suffix.at_least(1, documents=[1, 2, 4], positions=[1, 2])
    profit = np.outer([5.0, 4, 3], [2.0, 1, 4, 0, 0, 3])
    yield "a suffix", ConstrainedRanking(profit, suffix), 35.5, 35.0
