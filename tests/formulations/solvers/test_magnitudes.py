"""Numbers of any magnitude: no wrong value, bound or verdict, whatever solver answers."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from problems.magnitudes import integer_program, linear_program, quadratic_program, soft_set

from formulations import (
    InfeasibleError,
    QuadraticProgram,
    SolverError,
    Status,
    UnboundedError,
    UnsupportedProblemError,
    solve,
)

CLOSE = 1e-6  # of the terms of the value

KINDS = {
    "linear": (linear_program, ("auto", "highs", "cvxpy:CLARABEL", "cvxpy:GLOP", "cvxpy:SCIPY")),
    "quadratic": (quadratic_program, ("auto", "qpsolvers:piqp", "qpsolvers:daqp", "cvxpy:CLARABEL")),
    "integer": (integer_program, ("auto", "highs", "cp_sat", "cvxpy:SCIPY")),
    "soft": (soft_set, ("auto", "highs", "cp_sat")),
}


def judged(problem, optimum, solver):
    """right: the optimum within CLOSE; unknown: the answer says that it may not be; else what is wrong."""
    try:
        found = solve(problem, solver)
    except UnboundedError:
        return "false unbounded"
    except InfeasibleError:
        return "right" if optimum is None else "false infeasible"
    except (SolverError, UnsupportedProblemError):
        return "unknown"
    if optimum is None:
        return "unknown" if found.status is Status.INACCURATE else "a point of an empty set"
    sign = 1 if problem.is_maximization else -1
    slack = CLOSE * problem.magnitude_at(found.x)
    if np.isfinite(found.bound) and sign * (Fraction(found.bound) - optimum) < 0:
        return "false bound"
    if found.status is Status.INACCURATE:
        return "unknown"
    behind = float(sign * (optimum - Fraction(found.value)))
    gained = 0.0
    if isinstance(problem, QuadraticProgram):  # what violations within the tolerance may gain
        rows = problem.linearised(problem.linear)
        gained = CLOSE * float(np.abs(problem.linear) @ rows.units_at(found.x)[1])
    if behind < -slack - gained:
        return "false value"
    if behind > slack:
        return "false claim" if found.verdict.startswith("optimal") else "unknown"
    return "right" if found.gap <= slack or found.verdict.startswith("optimal") else "unknown"


def tallied(kind, seeds):
    """How many answers of each solver were right, unknown, or wrong; the seeds of wrong ones."""
    made, solvers = KINDS[kind]
    counts, wrong = {solver: Counter() for solver in solvers}, []
    for seed in seeds:
        problem, optimum = made(seed)
        for solver in solvers:
            word = judged(problem, optimum, solver)
            counts[solver][word] += 1
            if word not in ("right", "unknown"):
                wrong.append((kind, seed, solver, word))
    return counts, wrong


@pytest.mark.parametrize(("kind", "number"), [("linear", 120), ("quadratic", 80), ("integer", 100), ("soft", 60)])
def test_no_answer_is_wrong(kind, number):
    counts, wrong = tallied(kind, range(number))
    assert not wrong
    assert counts["auto"]["right"] >= 0.97 * number, counts


@pytest.mark.study
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", range(5))
def test_no_answer_of_many_is_wrong(kind, part):
    counts, wrong = tallied(kind, range(1000 + 250 * part, 1250 + 250 * part))
    assert not wrong
    assert counts["auto"]["right"] >= 0.97 * 250, counts
