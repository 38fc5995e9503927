"""Ties: how many pairs of documents could change places in an answer for nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.forms.assignment import Assignment
from formulations.forms.form import Form
from formulations.forms.pattern_ranking import PatternRanking
from formulations.forms.rank_two_assignment import RankTwoAssignment
from formulations.sets.constrained_ranking import ConstrainedRanking

__all__ = ["tied_pairs"]

CHECKED = 200
"""Pairs whose exchange is tried, of a ranking under constraints against the set, of a pattern against its value; beyond
that the count is a sample's."""


def tied_pairs(problem: Form, order: NDArray[Any]) -> int | None:
    """The pairs {x, y} of documents, x placed, whose exchange leaves the value as it is, to rounding, and is allowed.

    0 says that no single exchange ties; another order far from this one might. None where no documents are placed.
    """
    if isinstance(problem, PatternRanking):
        return _tied_in_pattern(problem, np.asarray(order, dtype=np.int64))
    if isinstance(problem, RankTwoAssignment):
        profit = problem.assignment().profit
        allowed = None
    elif isinstance(problem, Assignment):
        profit, allowed = problem.profit, problem.allowed
    elif isinstance(problem, ConstrainedRanking):
        profit, allowed = problem.worth, None
    else:
        return None
    x = np.asarray(order, dtype=np.int64)
    k, n = profit.shape
    if allowed is not None:
        profit = np.where(allowed, profit, -np.inf)
    here = profit[np.arange(k), x]
    among = profit[:, x]  # what position i would earn with the document of position j
    gained = among + among.T - here[:, None] - here
    left = np.setdiff1d(np.arange(n), x)
    freed = profit[:, left] - here[:, None]
    i, j = np.nonzero(np.triu(np.abs(gained) <= problem.rounding, 1))
    p, u = np.nonzero(np.abs(freed) <= problem.rounding)
    if not isinstance(problem, ConstrainedRanking):
        return int(i.size + p.size)
    pairs = [(a, x[b]) for a, b in zip(i, j, strict=True)] + list(zip(p, left[u], strict=True))
    sample = np.unique(np.linspace(0, len(pairs) - 1, min(len(pairs), CHECKED)).astype(int))
    tried = [pairs[at] for at in sample.tolist()]
    held = sum(_as_good(problem, x, _exchanged(x, int(a), int(b))) for a, b in tried)
    return round(held * len(pairs) / max(len(tried), 1))


def _as_good(problem: ConstrainedRanking, order: NDArray[np.int64], other: NDArray[np.int64]) -> bool:
    """Whether the set admits the other order, and what it breaks of soft constraints costs no other sum."""
    admissible = problem.admissible
    if not admissible.softened or not admissible.admits(other):
        return admissible.admits(other)
    return abs(problem.value(order) - problem.value(other)) <= problem.rounding


def _exchanged(order: NDArray[np.int64], position: int, document: int) -> NDArray[np.int64]:
    """The order with this document at this position, and the one that stood there where the document stood."""
    fresh = order.copy()
    fresh[order == document] = order[position]
    fresh[position] = document
    return fresh


def _tied_in_pattern(problem: PatternRanking, order: NDArray[np.int64]) -> int:
    """What exchanges leave is worked out by the definition."""
    first, second = np.triu_indices(order.size, 1)
    if not first.size:
        return 0
    sample = np.unique(np.linspace(0, first.size - 1, min(first.size, CHECKED)).astype(int))
    orders = np.tile(order, (sample.size + 1, 1))
    at = np.arange(sample.size)
    orders[at, first[sample]], orders[at, second[sample]] = order[second[sample]], order[first[sample]]
    values = np.array([problem.value(exchanged) for exchanged in orders])
    held = int((np.abs(values[:-1] - values[-1]) <= problem.rounding).sum())
    return round(held * first.size / sample.size)
