"""The best ranking of a set: every way to it against brute force, every claim recomputed, every lie refuted."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from problems.constrained_rankings import EVERY, KINDS, PROFIT, SIX, brute_force, stated

from formulations import (
    Fractional,
    RankingSet,
    Status,
    Unsupported,
    certify,
    constrained_ranking,
    ranking,
    solve,
)
from formulations.constraints.structure import BlockCollapse, LaminarNetwork

INSIDE = ("cvxpy:CLARABEL", "cvxpy:SCS", "cvxpy:OSQP")
"""Solvers that end inside the optimal face where there are ties."""


@pytest.mark.every(13)
@pytest.mark.parametrize(("kind", "seed"), SIX)
@pytest.mark.parametrize("solver", ["auto", "highs", "cp_sat", "networkx", *INSIDE])
def test_no_ranking_of_the_set_beats_the_solution(kind, seed, solver):
    problem = stated(kind, seed)
    try:
        solution = solve(problem, solver)
    except (Fractional, Unsupported):
        assert solver not in ("auto", "highs")
        return
    best = brute_force(problem)
    assert problem.admissible.is_feasible(solution.order)
    assert abs(solution.value - best) <= problem.rounding
    assert solution.bound >= best - problem.rounding
    certify(problem, solution)
    exact = certify(problem, solution, exact=True)
    assert exact.value <= exact.bound
    rows = problem.admissible.compiled
    if BlockCollapse.of(rows) is not None or LaminarNetwork.of(rows) is not None:
        assert exact.gap == Fraction(0)
        assert solution.status is Status.OPTIMAL


TRIANGLE = EVERY.at_most(1, documents=[0, 1]).at_most(1, documents=[1, 2]).at_most(1, documents=[0, 2])
RANKED = ranking([3.0, 2.5, 2.0, 1.0, 0.5, 0.0], [0, 1, 0, 2, 0, 1.0], discount=[1, 0.6, 0.5], decay=[3, 2, 1.0])
FRACTIONAL = constrained_ranking(np.outer([1.0, 0.9, 0.8], [3.0, 3.0, 3.0, 0, 0, 0]), TRIANGLE)
WAYS = {
    "exact via no constraints": (constrained_ranking(RANKED, EVERY), "auto", ""),
    "scipy via collapsed assignment": (
        constrained_ranking(PROFIT, EVERY.at_most(1, by=[*"aabbcc"])),
        "auto",
        "matched",
    ),
    "ortools via collapsed assignment": (
        constrained_ranking(PROFIT, EVERY),
        "ortools",
        "positions and rows are matched",
    ),
    "ortools via laminar flow": (
        constrained_ranking(PROFIT, EVERY.at_most(2, by=[*"aaabbb"])),
        "auto",
        "two laminar families",
    ),
    "networkx via laminar flow": (
        constrained_ranking(PROFIT, EVERY.at_most(2, documents=[0, 1])),
        "networkx",
        "two laminar",
    ),
    "highs via linear program": (
        constrained_ranking(PROFIT, EVERY.precedes(2, 1)),
        "auto",
        "this vertex of the relaxation is whole",
    ),
    "highs via integer program": (FRACTIONAL, "auto", "not proved totally unimodular: a search in whole numbers"),
    "cp_sat via integer program": (constrained_ranking(PROFIT, EVERY), "cp_sat", "searches in whole numbers"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_solution_says_the_way_it_was_found_and_why(way):
    problem, solver, why = WAYS[way]
    solution = solve(problem, solver)
    assert solution.solver == way
    assert why in solution.message
    assert abs(solution.value - brute_force(problem)) <= problem.rounding


def test_a_proof_of_total_unimodularity_is_named():
    problem = constrained_ranking(PROFIT, EVERY.at_most(2, documents=[0, 1]))
    assert "totally unimodular (laminar)" in solve(problem, "highs").message


def test_a_ranked_problem_under_constraints_is_the_same_problem():
    under = constrained_ranking(RANKED, EVERY.at_most(1, documents=[0, 1]))
    assert solve(under).value == pytest.approx(brute_force(under), abs=1e-12)
    assert solve(constrained_ranking(RANKED, EVERY)).value == pytest.approx(solve(RANKED).value, abs=1e-12)


# Where the relaxation is fractional


def test_a_fractional_relaxation_is_said_and_not_rounded():
    assert solve(FRACTIONAL.linear_program(), "highs").value == pytest.approx(4.35)
    for solver in ("cvxpy:GLOP", "cvxpy:CLARABEL", "cvxpy:SCS"):
        with pytest.raises(Fractional, match=r"(?s)value 4\.35.*solve in whole numbers, by 'highs' or 'cp_sat'"):
            solve(FRACTIONAL, solver)
    for solver in ("auto", "highs", "cp_sat"):
        solution = solve(FRACTIONAL, solver)
        assert solution.value == pytest.approx(3.0, abs=1e-12) == brute_force(FRACTIONAL)
        assert solution.bound >= 3.0 - 1e-12
        certify(FRACTIONAL, solution, exact=True)
    for solver in ("exact", "scipy", "networkx"):
        with pytest.raises(Unsupported, match="accepting"):
            solve(FRACTIONAL, solver)


# Symmetries, ties and scales


@pytest.mark.every(7)
@pytest.mark.parametrize(("kind", "seed"), SIX)
def test_the_order_in_which_documents_come_does_not_matter(kind, seed):
    problem = stated(kind, seed)
    new = np.random.default_rng(seed).permutation(problem.documents)
    old = np.argsort(new)
    cells = (np.arange(problem.positions)[:, None] * problem.documents + new).ravel()
    moved = tuple(
        replace(
            c,
            matrix=c.matrix[:, cells],
            forbids=None
            if c.forbids is None
            else c.forbids.reshape(problem.profit.shape)[:, new].reshape(c.forbids.shape),
        )
        for c in problem.admissible.constraints
    )
    again = constrained_ranking(problem.profit[:, new], replace(problem.admissible, constraints=moved))
    solution = solve(again)
    assert solution.value == pytest.approx(solve(problem).value, abs=problem.rounding)
    assert problem.admissible.is_feasible(new[solution.order])
    assert (old[new[solution.order]] == solution.order).all()


@pytest.mark.every(7)
@pytest.mark.parametrize("scale", [1e-9, 1e9, 0.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["auto", "cp_sat", *INSIDE])
def test_the_unit_of_profit_does_not_matter(kind, scale, solver):
    problem = stated(kind, 2)
    scaled = constrained_ranking(problem.profit * scale, problem.admissible)
    try:
        solution = solve(scaled, solver)
    except (Fractional, Unsupported):
        assert solver != "auto"
        return
    assert abs(solution.value - brute_force(scaled)) <= scaled.rounding
    certify(scaled, solution, exact=True)


def test_one_document_at_one_position():
    for admissible in (
        RankingSet(1, 1),
        RankingSet(1, 1).fix(0, 0),
        RankingSet(1, 1).exactly(1),
        RankingSet(1, 1).at_most(3),
    ):
        for solver in ("auto", "highs", "cp_sat", *INSIDE):
            solution = solve(constrained_ranking([[-2.5]], admissible), solver)
            assert (solution.order.tolist(), solution.value, solution.status.name) == ([0], -2.5, "OPTIMAL")


TIED = {
    "all equal": (np.ones((3, 6)), EVERY.at_most(1, by=[*"aabbcc"])),
    "a laminar set": (
        np.tile([1.0, 1, 1, 1, 0, 0], (3, 1)),
        EVERY.at_most(2, documents=range(4)).at_least(1, documents=[5, 4]),
    ),
    "unimodular otherwise": (np.ones((3, 6)), EVERY.precedes(0, 1)),
    "a quota on a prefix": (np.ones((3, 6)), EVERY.at_least(1, documents=[0, 1, 2], positions=range(2))),
    "a thousand share a unit": (
        np.where(np.arange(2002) < 2, 1.0, 10.0) * np.ones((2, 1)),
        RankingSet(2002, 2).at_most(1, by=["A", "B", *["rest"] * 2000]),
    ),
    "a thousand under a quota": (
        np.where(np.arange(1502) < 2, 1.0, 10.0) * np.ones((2, 1)),
        RankingSet(1502, 2).at_most(1, documents=range(2, 1502)).at_most(2, documents=range(1502)),
    ),
}


@pytest.mark.parametrize("case", TIED)
@pytest.mark.parametrize("solver", INSIDE)
def test_ties_end_at_a_vertex(case, solver):
    """Solvers that stay inside the optimal face give shares of documents; what comes back is a best ranking."""
    problem = constrained_ranking(*TIED[case])
    solution = solve(problem, solver)
    assert problem.admissible.is_feasible(solution.order)
    assert solution.value == pytest.approx(solve(problem).value, abs=problem.rounding)
    assert certify(problem, solution, exact=True).gap <= problem.rounding
