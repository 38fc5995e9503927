"""Test instances: small problems of every class that have troubled solvers, the same ones every time.

They have ties, zeros, one document, scales of 1e±9, fewer positions than documents, forbidden cells, duplicate and zero
planes. `failing` has the smallest known counterexamples outside the theorem of `integrality.prefix_limits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from formulations.bridges import restated
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.constraints.ranking_set import RankingSet
from formulations.gallery.masters import margin_dual
from formulations.gallery.rankings import first_relevant_ranking, pairwise_ranking, ranking, relevance_ranking
from formulations.problems.assignment import Assignment
from formulations.problems.group_sequence import GroupSequence
from formulations.problems.lattice_path import LatticePath
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.problem import Problem
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking import RankTwoAssignment
from formulations.problems.relevance_ranking import RelevanceRanking
from formulations.problems.relevance_values import DOCUMENT
from formulations.problems.simplex_qp import GroupedSimplexQP


def failing() -> Iterator[tuple[str, ConstrainedRanking, float, float]]:
    """Name, problem, LP optimum and best ranking of counterexamples outside the theorem."""
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
    yield "a position weight below 0", ConstrainedRanking(profit, below), 4.5, 4.0
    suffix = RankingSet(6, 3).at_most(0, documents=[0], positions=[2])
    suffix = suffix.at_least(1, documents=[1, 2, 4], positions=[1, 2])
    profit = np.outer([5.0, 4, 3], [2.0, 1, 4, 0, 0, 3])
    yield "a suffix", ConstrainedRanking(profit, suffix), 35.5, 35.0


FORMS: tuple[type[Problem], ...] = (
    RankTwoAssignment, Assignment, ConstrainedRanking, PenalizedRanking, RelevanceRanking, LatticePath,
    GroupSequence, MinCostFlow, LinearProgram,
    GroupedSimplexQP, QuadraticProgram,
)  # fmt: skip


Instance = tuple[str, Problem, float | None]


@cache
def instances(form: type[Problem]) -> tuple[Instance, ...]:
    """Name, problem, and the optimum if it is known without a solver."""
    return tuple(_instances_of(form))


def _instances_of(form: type[Problem]) -> Iterator[Instance]:
    if form in RANKED:
        yield from ((name, problem, brute_force(problem)) for name, problem in RANKED[form]())
    elif form is LatticePath:
        yield from ((name, pattern.lattice(), brute_force(pattern)) for name, pattern in _patterns())
    elif form is MinCostFlow:
        for name, problem in _matchings():
            known = brute_force(problem)
            yield name, restated(problem, MinCostFlow), -known if problem.is_maximization else known
        yield "two routes", _two_routes(), 13.5
    elif form is LinearProgram:
        for name, problem in _matchings():
            yield name, restated(problem, LinearProgram), brute_force(problem)
        yield "rows of all kinds", _rows_of_all_kinds(), -3.0
        yield "integer and real", _mixed_integer_program(), 9.0
    elif form is GroupedSimplexQP:
        yield from _masters()
    elif form is QuadraticProgram:
        yield "corner", _corner(), -2.4375


def brute_force(
    problem: Assignment | RankTwoAssignment | ConstrainedRanking | RelevanceRanking | GroupSequence,
) -> float:
    """The best value over all orders, or sequences of groups; for at most 7 documents."""
    if isinstance(problem, GroupSequence):
        every = map(np.array, product(range(problem.groups), repeat=problem.positions))
        return max(problem.value(groups) for groups in every if problem.violation(groups) == 0.0)
    if isinstance(problem, ConstrainedRanking):
        orders = np.array(list(permutations(range(problem.documents), problem.positions)))
        above = problem.profit[np.arange(problem.positions), orders].sum(axis=1)  # duals only take away
        best = -np.inf
        for order in orders[np.argsort(-above)]:
            if problem.profit[np.arange(problem.positions), order].sum() <= best:
                break
            if problem.admissible.is_feasible(order):
                best = max(best, problem.value(order))
        return best
    if isinstance(problem, RelevanceRanking):
        return max(problem.value(np.array(order)) for order in permutations(range(problem.documents)))
    if isinstance(problem, RankTwoAssignment):
        profit = np.outer(problem.position_weights, problem.scores) - np.outer(problem.discount, problem.gain)
    else:
        profit = problem.masked_profit()
    orders = np.array(list(permutations(range(profit.shape[1]), profit.shape[0])))
    best = float(profit[np.arange(profit.shape[0]), orders].sum(axis=1).max())
    return best if problem.is_maximization else -best


def shuffled(problem: Problem, seed: int = 0) -> Problem | None:
    """The same problem with its documents, columns or planes permuted; None if that is not defined."""
    random = np.random.default_rng(seed)
    if isinstance(problem, RankTwoAssignment):
        new = random.permutation(problem.documents)
        return RankTwoAssignment(problem.scores[new], problem.gain[new], problem.discount, problem.position_weights)
    if isinstance(problem, Assignment):
        new = random.permutation(problem.documents)
        allowed = None if problem.allowed is None else problem.allowed[:, new]
        return Assignment(problem.profit[:, new], allowed, problem.sense)
    if isinstance(problem, RelevanceRanking) and problem.earnings.kind != DOCUMENT:
        new = random.permutation(problem.documents)
        return RelevanceRanking(problem.scores[new], problem.grade[new], problem.map, problem.earnings)
    if isinstance(problem, GroupedSimplexQP):
        new = random.permutation(problem.values.size)
        return GroupedSimplexQP(
            problem.slopes[new], problem.values[new], problem.group[new], problem.capacity, problem.lam
        )
    return None


def infeasible(form: type[Problem]) -> Problem | None:
    """An infeasible problem of this class, if the class has one."""
    if form is MinCostFlow:
        unmet: list[Any] = [[0], [1], [1], [1.0], [2, -2]]
        return MinCostFlow(*unmet)
    if form is LinearProgram:
        return _program([1.0, 1.0], [[1.0, 1.0]], [3.0], [np.inf], [0.0, 0.0], [1.0, 1.0])
    return None


def _rankings() -> Iterator[tuple[str, RankTwoAssignment]]:
    random = np.random.default_rng(7)
    i = np.arange(1.0, 8.0)
    log, power, linear = 1 / np.log2(i + 1), i**-0.5, np.maximum(5 - i, 0)
    scores, gain = random.normal(size=7), np.array([3.0, 0, 0, 1, 0, 7, 0])
    yield "random", ranking(scores, random.random(7), discount=log, position_weights=power)
    yield "grades", ranking(scores, gain, discount=log, position_weights=linear)
    yield "cut", ranking(scores, gain, discount=log[:3], position_weights=linear[:3])
    yield "position weights beyond the cutoff", ranking(scores, gain, discount=log[:2], position_weights=power)
    yield "proportional weights", ranking(scores, gain, discount=log, position_weights=2 * log)
    yield "equal weights", ranking(scores, gain, discount=np.ones(7) / 7, position_weights=np.ones(7))
    yield "all scores zero", ranking(np.zeros(7), gain, discount=log, position_weights=power)
    yield "all gains zero", ranking(scores, np.zeros(7), discount=log, position_weights=power)
    yield "tied", ranking([1, 1, 0, 0, 1, 0.0], [1, 0, 1, 0, 1, 0.0], discount=6 - i[:6], position_weights=power[:6])
    yield "one document", ranking([-2.0], [1.0], discount=[1.0], position_weights=[1.0])
    yield "one position", ranking(scores, gain, discount=[1.0], position_weights=[1.0])
    yield "1e-9", ranking(scores * 1e-9, gain * 1e-9, discount=log, position_weights=power)
    yield "1e9", ranking(scores * 1e9, gain * 1e9, discount=log, position_weights=power)
    yield "mixed scales", ranking(scores * 1e9, gain, discount=log, position_weights=power)
    yield "negative weights", ranking(scores, gain, discount=log[:4] - 1, position_weights=power[:4] - 0.8)


def _patterns() -> Iterator[tuple[str, RelevanceRanking]]:
    random = np.random.default_rng(11)
    scores, grades, tied = random.normal(size=5), [2, 0, 1, 0, 0], [1.0, 1.0, 0.0, 1.0, 0.0]
    half = 0.5 ** np.arange(5.0)
    yield "AP by pairs", pairwise_ranking(scores, grades, "AP")
    yield "AP by pairs, tied", pairwise_ranking(tied, grades, "AP")
    yield "AUC by pairs, all scores zero", pairwise_ranking(np.zeros(5), grades, "AUC")
    yield "nDCG@2 by pairs, graded", pairwise_ranking(scores, grades, "nDCG@2")
    yield "RR by the first", first_relevant_ranking(scores, grades, "RR")
    yield "AP by positions", relevance_ranking(scores, grades, "AP", position_weights=half)
    yield "ERR@2 by positions", relevance_ranking(tied, grades, "ERR@2", position_weights=half)
    yield "one document", pairwise_ranking([-2.0], [1.0], "AP")
    yield "no relevant document", first_relevant_ranking(scores, np.zeros(5), "RR")
    yield "AP by pairs, 1e-9", pairwise_ranking(scores * 1e-9, grades, "AP", scale=1e-9)
    yield "AP by pairs, 1e9", pairwise_ranking(scores * 1e9, grades, "AP")


def _matchings() -> Iterator[tuple[str, Assignment]]:
    random = np.random.default_rng(8)
    profit = random.normal(size=(6, 6))
    yield "random", Assignment(profit)
    yield "fewer positions", Assignment(profit[:3])
    yield "all losses", Assignment(profit[:3] - 10)
    yield "tied", Assignment(random.integers(0, 2, (5, 6)).astype(float))
    yield "all zero", Assignment(np.zeros((4, 6)))
    yield "one document", Assignment(np.array([[-3.0]]))
    yield "1e-9", Assignment(profit * 1e-9)
    yield "1e9", Assignment(profit * 1e9)
    yield "one large", Assignment(profit + np.where(np.eye(6), 1e9, 0.0))
    yield "forbidden", Assignment(profit, np.eye(6, dtype=bool) | (random.random((6, 6)) < 0.4))
    yield "forbidden, fewer", Assignment(profit[:3], np.eye(3, 6, k=1, dtype=bool) | (random.random((3, 6)) < 0.3))
    yield "costs", Assignment(profit, sense="min")
    yield (
        "costs, forbidden, fewer",
        Assignment(profit[:3], np.eye(3, 6, k=1, dtype=bool) | (random.random((3, 6)) < 0.3), "min"),
    )


def _constrained_instances() -> Iterator[tuple[str, ConstrainedRanking]]:
    random = np.random.default_rng(10)
    profit, tied = random.normal(size=(4, 6)), random.integers(0, 2, (4, 6)).astype(float)
    site, topic = ["a", "a", "b", "b", "c", "d"], [("x",), ("x", "y"), ("y",), ("z",), ("z", "x"), None]
    every = RankingSet(6, 4)
    yield "no constraint", ConstrainedRanking(profit, every)
    yield "blocks", ConstrainedRanking(profit, every.at_most(1, by=site))
    yield "blocks, tied", ConstrainedRanking(tied, every.at_most(1, by=site))
    yield "blocks, 1e9", ConstrainedRanking(profit * 1e9, every.at_most(1, by=site))
    yield "blocks, all zero", ConstrainedRanking(np.zeros((4, 6)), every.at_most(1, by=site))
    yield "banned cells", ConstrainedRanking(profit, every.forbid([0, 1], range(2)).fix(5, 3))
    yield "caps above one", ConstrainedRanking(profit, every.at_most(2, by=["a", "a", "a", "a", "b", "c"]))
    yield "nested quotas", ConstrainedRanking(tied, every.at_least(1, by=site).at_most(2, documents=range(4)))
    yield "no choice", ConstrainedRanking(profit[:1, :1], RankingSet(1, 1).exactly(1, documents=0))
    yield "precedence", ConstrainedRanking(profit, every.precedes(2, 0).precedes(3, 2))
    yield "overlapping caps", ConstrainedRanking(tied, every.at_most(1, by=topic))
    yield "a quota on a prefix", ConstrainedRanking(profit, every.at_least(1, documents=[4, 5], positions=range(2)))
    triangle = RankingSet(6, 3).at_most(1, documents=[0, 1]).at_most(1, documents=[1, 2]).at_most(1, documents=[0, 2])
    # The relaxation reaches 4.35, rankings reach 3.
    yield from ((name, counterexample) for name, counterexample, _, _ in failing())
    yield "fractional", ConstrainedRanking(np.outer([1.0, 0.9, 0.8], [3.0, 3.0, 3.0, 0.0, 0.0, 0.0]), triangle)


def _penalized_instances() -> Iterator[tuple[str, PenalizedRanking]]:
    random = np.random.default_rng(14)
    profit, tied = random.normal(size=(4, 6)), random.integers(0, 2, (4, 6)).astype(float)
    sites = RankingSet(6, 4).at_most(1, by=[*"aabbcd"], name="site").penalized("site", penalty=0.5)
    early = RankingSet(6, 4).forbid([0, 1], range(2), name="late").penalized("late", penalty=0.25)
    late = early.at_most(1, by=[*"aabbcd"])
    top = sites.at_least(2, documents=[4, 5], positions=range(3), name="top").penalized("top", penalty=1.5)
    yield "soft sites", PenalizedRanking(profit, sites)
    yield "soft sites, tied", PenalizedRanking(tied, sites)
    yield "soft cells alone", PenalizedRanking(profit, late)
    yield "soft floor and caps", PenalizedRanking(tied, top)
    yield "soft, all zero", PenalizedRanking(np.zeros((4, 6)), top)
    yield "soft, 1e9", PenalizedRanking(profit * 1e9, top)
    yield (
        "soft, free of charge",
        PenalizedRanking(profit, top.penalized("top", penalty=0.0).penalized("site", penalty=0.0)),
    )


def _sequences() -> Iterator[tuple[str, GroupSequence]]:
    random = np.random.default_rng(12)
    profit = np.outer([4.0, 3.0, 1.5, 1.0], random.normal(size=6))
    site = [*"aabbcc"]
    capped = RankingSet(6, 4).at_most(1, by=site, positions=range(2))
    floors = capped.at_least(1, by=site, positions=range(3)).at_most(0, documents=[0, 1], positions=[1])
    for name, weights, one in (
        ("caps on a prefix", profit, capped),
        ("floors and a place apart", profit, floors),
        ("all zero", np.zeros((4, 6)), capped),
        ("1e9", profit * 1e9, floors),
        ("1e-9", profit * 1e-9, floors),
    ):
        yield name, restated(ConstrainedRanking(weights, one), GroupSequence)


RANKED: dict[type[Problem], Callable[[], Iterator[tuple[str, Any]]]] = {
    RankTwoAssignment: _rankings,
    Assignment: _matchings,
    ConstrainedRanking: _constrained_instances,
    PenalizedRanking: _penalized_instances,
    RelevanceRanking: _patterns,
    GroupSequence: _sequences,
}


def _two_routes() -> MinCostFlow:
    """Four units from node 0 to node 3 by routes of cost 3 (two units), 4 (one) and 4.5; a loop at node 3 pays 1."""
    tail, head, capacity = [0, 1, 0, 2, 1, 3], [1, 3, 2, 3, 2, 3], [3, 2, 4, 4, 2, 1]
    parts: list[Any] = [tail, head, capacity, [1.0, 2.0, 2.0, 2.5, 0.5, -1.0], [4, 0, 0, -4]]
    return MinCostFlow(*parts)


def _rows_of_all_kinds() -> LinearProgram:
    """min x + 2y - z with an equation, a two-sided row, a free and a bounded variable: (1, -2, 0) is best."""
    return _program(
        [1.0, 2.0, -1.0], [[1.0, -1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 2.0]],
        [3.0, -1.0, -np.inf], [3.0, 2.0, -2.0], [0.0, -np.inf, 0.0], [np.inf, np.inf, 4.0],
    )  # fmt: skip


def _mixed_integer_program() -> LinearProgram:
    """min 2x + 3z, x + z >= 9/2, z integer: (9/2, 0) is optimal; HiGHS 1.14.0 with presolve returns (0, 5)."""
    real = _program([2.0, 3.0], [[1.0, 1.0]], [4.5], [np.inf], [0.0, 0.0], [10.0, 10.0])
    return replace(real, integer=np.array([False, True]))


def _corner() -> QuadraticProgram:
    """min ½‖x‖² - 2 x₀ - 2 x₁ over the unit square with x₀ + x₁ <= 3/2; the best point is (3/4, 3/4)."""
    return QuadraticProgram(
        csr_array(np.eye(2)), np.array([-2.0, -2.0]), csr_array(np.ones((1, 2))),
        np.array([-np.inf]), np.array([1.5]), np.zeros(2), np.ones(2),
    )  # fmt: skip


def _masters() -> Iterator[tuple[str, Problem, float | None]]:
    random = np.random.default_rng(9)
    slopes, heights = random.normal(size=(9, 4)), random.random(9)
    groups = np.arange(9) % 3
    yield "one plane", margin_dual([[3.0, 4.0]], [1.0], lam=2.0), 0.04
    yield "a plane below zero", margin_dual([[1.0]], [-1.0], lam=1.0), 0.0
    yield "zero planes", margin_dual(np.zeros((3, 2)), [0.5, 0.25, 0.0], lam=1.0), 0.5
    yield "two opposite", margin_dual([[1.0], [-1.0]], [1.0, 0.0], lam=1.0), 0.625
    yield "random", margin_dual(slopes, heights, lam=0.1), None
    yield "duplicates", margin_dual(np.repeat(slopes[:3], 3, axis=0), np.repeat(heights[:3], 3), lam=0.1), None
    yield "more features", margin_dual(slopes[:3], heights[:3], lam=0.1), None
    yield "small lam", margin_dual(slopes, heights, lam=1e-4), None
    yield "1e-9", margin_dual(slopes * 1e-9, heights * 1e-9, lam=0.1), None
    yield "1e9, lam to match", margin_dual(slopes * 1e9, heights * 1e9, lam=1e8), None
    yield "groups", margin_dual(slopes, heights, lam=0.1, groups=groups, group_mass=[0.5, 0.3, 0.2]), None
    yield "an empty group", margin_dual(slopes, heights, lam=0.1, groups=groups, group_mass=[0.4, 0.3, 0.2, 0.1]), None


def _program(objective: list[float], rows: list[list[float]], *limits: list[float]) -> LinearProgram:
    arrays: list[Any] = [np.array(part) for part in (objective, rows, *limits)]
    return replace(LinearProgram(*arrays), is_maximization=False)
