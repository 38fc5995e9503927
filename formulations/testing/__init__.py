"""Conformance checks for a user's own solver or problem, the same that ours pass: `check_solver(MySolver())` in a test.

They raise AssertionError with the name of the failing instance, and return what was checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import is_dataclass

import numpy as np

from formulations.certificates.certify import certify
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.errors import FormulationError, FractionalSolutionError, InfeasibleError, SolverError
from formulations.problems.assignment import Assignment
from formulations.problems.group_sequence import GroupSequence
from formulations.problems.lattice_path import LatticePath
from formulations.problems.problem import Problem, Solution, Status
from formulations.problems.ranking import RankTwoAssignment, RankTwoBatch
from formulations.problems.relevance_ranking import RelevanceRanking
from formulations.solvers import compatible_solvers, solves
from formulations.solvers.solver import Solver, suits
from formulations.solving.solve import solve, solve_batch
from formulations.testing.instances import FORMS, brute_force, infeasible, instances, shuffled

__all__ = ["check_problem", "check_solver"]


def check_solver(solver: Solver, *, accuracy: float = 1e-7, forms: Iterable[type[Problem]] = FORMS) -> list[str]:
    """Solve small problems of every class that `solver` reaches, bridges included.

    Checked: it is a frozen dataclass with the fields of the protocol; every answer is feasible, and its value and bound
    are certified; the value is the optimum (by brute force for rankings, within `accuracy` otherwise), and no bound
    excludes it; shuffling documents or planes does not change the value; infeasible problems are not solved. Instances
    that the solver rejects, such as costs that are no integers (`function_solver(rejects=)`), are left out.

    accuracy: the largest gap, relative to the objective, for real variables.
    """
    _check_record(solver)
    checked = []
    for form in forms:
        if not suits(solver, form):
            continue
        for name, problem, optimum in instances(form):
            if not solves(solver, problem):
                continue
            label = f"{solver.spec!r} on {form.__name__} {name!r}"
            solution = _solve_and_certify(problem, solver, label)
            if solution is None:  # a relaxation that is fractional, and no search in integers
                continue
            _check_value(solution, optimum, accuracy, label)
            shuffle = shuffled(problem)
            again = None if shuffle is None else _solve_and_certify(shuffle, solver, f"{label}, shuffled")
            if again is not None:
                _check_value(again, solution.value, accuracy, label)
            checked.append(f"{form.__name__}: {name}")
        if form is RankTwoAssignment:
            _check_batch(solver)
            checked.append("RankTwoBatch: all at once")
        nothing = infeasible(form)
        if nothing is not None:
            _check_refused(nothing, solver)
            checked.append(f"{form.__name__}: infeasible")
    assert checked, f"{solver.spec!r} accepts none of {', '.join(form.__name__ for form in forms)}"
    return checked


def check_problem(problem: Problem, *, solvers: Iterable[Solver | str] | None = None) -> dict[str, Solution]:
    """Solve a problem with all solvers that reach it (or with the listed ones) and compare.

    Checked: its arrays are read-only; it prints; every answer is certified; no value exceeds any bound; for up to 7
    documents the best value is that of brute force; a bound from arbitrary duals excludes no answer. Use small
    problems, because many solvers are slow.
    """
    for name, array in vars(problem).items():
        assert not (isinstance(array, np.ndarray) and array.flags.writeable), f"{name} can be written to"
    assert str(problem)
    solutions: dict[str, Solution] = {}
    for solver in compatible_solvers(problem) if solvers is None else solvers:
        spec = solver if isinstance(solver, str) else solver.spec
        solution = _solve_and_certify(problem, solver, f"{spec!r}")
        if solution is not None:
            solutions[spec] = solution
    assert solutions, f"no solver answered; tried {compatible_solvers(problem) if solvers is None else list(solvers)}"
    sign = 1.0 if problem.is_maximization else -1.0
    # Points of real variables may break a row by a tolerance, and gain by it.
    slack = problem.rounding + (0.0 if problem.tolerance == 0.0 else 1e-5 * problem.scale)
    for one in solutions.values():
        for other in solutions.values():
            assert sign * (one.value - other.bound) <= slack, f"{one} beats the bound of {other}"
    best = max(sign * solution.value for solution in solutions.values())
    orders = Assignment | RankTwoAssignment | ConstrainedRanking | RelevanceRanking
    if isinstance(problem, orders) and problem.documents <= 7:
        assert abs(best - brute_force(problem)) <= problem.rounding, f"brute force finds {brute_force(problem)!r}"
    for solution in solutions.values():
        if solution.y is not None:
            size = 1.0 + np.abs(solution.y).max(initial=0.0)
            anyhow = size * np.random.default_rng(0).normal(size=solution.y.shape)
            assert sign * problem.bound(anyhow) >= best - problem.rounding - 1e-6 * abs(best), "weak duality fails"
    return solutions


def _check_record(solver: object) -> None:
    frozen = is_dataclass(solver) and vars(type(solver))["__dataclass_params__"].frozen
    assert frozen, f"{solver!r} must be a frozen dataclass: its fields are its options"
    assert isinstance(solver, Solver), f"{solver!r} lacks a part of formulations.solving.solve.Solver"


def _check_batch(solver: Solver) -> None:
    """Check that the instances in one batch, with weights zero beyond their cut, have the same values as alone."""
    stated = [
        (problem, optimum)
        for _, problem, optimum in instances(RankTwoAssignment)
        if optimum is not None
        and isinstance(problem, RankTwoAssignment)
        and solves(solver, problem)
        and min(problem.discount[-1], problem.position_weights[-1]) >= 0
    ]
    problems = [problem for problem, _ in stated]
    if not problems:
        return
    offsets = np.cumsum([0] + [problem.documents for problem in problems])
    columns = {}
    for name in ("scores", "gain", "discount", "position_weights"):
        parts = [(getattr(problem, name), problem.documents) for problem in problems]
        columns[name] = np.concatenate([np.pad(values, (0, size - values.size)) for values, size in parts])
    answer = solve_batch(RankTwoBatch(**columns, offsets=offsets), solver)
    for query, (problem, optimum) in enumerate(stated):
        label = f"{solver.spec!r}, query {query} of a batch"
        order = answer.order[offsets[query] : offsets[query + 1]]
        assert sorted(order.tolist()) == list(range(problem.documents)), f"{label}: {order} is no order"
        assert abs(answer.value[query] - optimum) <= problem.rounding, f"{label}: {answer.value[query]!r}"
        assert answer.bound[query] >= optimum - problem.rounding, f"{label}: {answer.bound[query]!r}"


def _solve_and_certify(problem: Problem, solver: Solver | str, label: str) -> Solution | None:
    """The solution; None of a solver that reports that it cannot solve the problem."""
    try:
        solution = solve(problem, solver)
    except FormulationError as error:
        if isinstance(error, TypeError | FractionalSolutionError):  # declined
            return None
        raise AssertionError(f"{label}: {error}") from error
    assert solution.status is not Status.INACCURATE, f"{label} breaks a constraint by {solution.violation:g}"
    certify(problem, solution)
    return solution


def _check_value(solution: Solution, optimum: float | None, accuracy: float, label: str) -> None:
    problem = solution.problem
    sign = 1.0 if problem.is_maximization else -1.0
    exact = isinstance(
        problem, Assignment | RankTwoAssignment | ConstrainedRanking | RelevanceRanking | LatticePath | GroupSequence
    )
    allowed = problem.rounding + (0.0 if exact else accuracy * max(problem.scale, abs(solution.value)))
    if optimum is None:
        assert solution.gap <= allowed, f"{label} leaves the gap {solution.gap:g}"
        return
    assert abs(solution.value - optimum) <= allowed, f"{label} reaches {solution.value!r}, the optimum is {optimum!r}"
    assert sign * (solution.bound - optimum) >= -allowed, f"{label}: the bound {solution.bound!r} excludes the optimum"


def _check_refused(problem: Problem, solver: Solver) -> None:
    if not solves(solver, problem):
        return
    try:
        solution = solve(problem, solver)
    except (InfeasibleError, SolverError):
        return
    refused = solution.status is Status.INACCURATE
    assert refused, f"{solver.spec!r} calls a point of an infeasible {type(problem).__name__} {solution.status.name}"
