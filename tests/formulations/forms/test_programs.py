"""Bounds of programs from any prices, and what is no program."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from formulations import (
    InvalidProblemError,
    RankingSet,
    UnsupportedProblemError,
    constrained_ranking,
    solve,
)
from formulations.problems.linear_program import LinearProgram
from formulations.problems.quadratic_program import QuadraticProgram


def test_a_price_on_a_missing_limit_counts_as_none():
    program = LinearProgram(
        np.array([1.0, 1.0]), csr_array(np.ones((1, 2))), np.array([1.0]), np.array([np.inf]), np.zeros(2),
        np.full(2, np.inf), is_maximization=False,
    )  # fmt: skip
    assert program.bound(np.array([1.0])) == 1.0
    assert program.bound(np.array([-5.0])) == 0.0
    assert program.bound(np.array([1.0 + 1e-6])) == -np.inf
    assert program.bound(np.array([1.0 + 2**-52])) == pytest.approx(1.0)


def test_the_bound_of_a_quadratic_program_holds_for_any_prices():
    random = np.random.default_rng(0)
    root = random.normal(size=(3, 2))
    problem = QuadraticProgram(
        csr_array(root @ root.T), random.normal(size=3), csr_array(random.normal(size=(2, 3))),
        np.full(2, -1.0), np.full(2, 1.0), np.full(3, -2.0), np.full(3, 2.0),
    )  # fmt: skip
    best = solve(problem)
    assert best.gap <= 1e-6
    for _ in range(50):
        assert problem.bound(random.normal(size=5)) <= best.value + problem.rounding


def test_what_is_no_problem_is_refused():
    with pytest.raises(UnsupportedProblemError, match="problem cannot be a list"):
        solve([1.0, 2.0])
    row, two = csr_array(np.ones((1, 2))), np.ones(2)
    with pytest.raises(InvalidProblemError, match="hessian has shape"):
        QuadraticProgram(csr_array(np.eye(3)), two, row, np.zeros(1), np.ones(1), np.zeros(2), two)


def test_forms_of_many_arrays_print_as_a_line():
    admissible = RankingSet(30, 20).at_most(2, documents=range(9), name="few")
    for made in (
        constrained_ranking(np.ones((20, 30)), admissible),
        constrained_ranking(np.ones((20, 30)), admissible.penalized("few", penalty=1.0)),
        admissible.program,
    ):
        assert repr(made).startswith(f"<{type(made).__name__} of ")
        assert len(repr(made)) < 100
