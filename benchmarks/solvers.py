"""What `solve` costs compared with the bare library, and what warm starts save."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import process_time
from typing import Any

import numpy as np

from benchmarks.cases import Run, case, least, table
from formulations import LinearProgram, margin_dual, matching, solve, solve_many
from formulations.problems.problem import Problem


def covering(rng: np.random.Generator, rows: int, columns: int) -> LinearProgram:
    """A cheapest cover: with some ten numbers a row."""
    matrix = rng.random((rows, columns)) * (rng.random((rows, columns)) < 10 / columns)
    return LinearProgram(
        rng.random(columns) + 0.5, matrix, 0.2 * matrix.sum(axis=1), np.full(rows, np.inf), np.zeros(columns),
        np.full(columns, 5.0), is_maximization=False,
    )  # fmt: skip


def bare_highs(problem: Any) -> Callable[[], Any]:
    import highspy

    def run() -> Any:
        highs, program = highspy.Highs(), highspy.HighsLp()
        highs.setOptionValue("output_flag", False)
        program.num_row_, program.num_col_ = problem.matrix.shape
        program.col_cost_, program.col_lower_, program.col_upper_ = problem.objective, problem.lower, problem.upper
        program.row_lower_, program.row_upper_ = problem.row_lower, problem.row_upper
        matrix = program.a_matrix_
        matrix.format_, matrix.num_row_, matrix.num_col_ = highspy.MatrixFormat.kRowwise, *problem.matrix.shape
        matrix.start_, matrix.index_, matrix.value_ = problem.matrix.indptr, problem.matrix.indices, problem.matrix.data
        highs.passModel(program)
        highs.run()
        return np.array(highs.getSolution().col_value)

    return run


def bare_scipy(problem: Any) -> Callable[[], Any]:
    from scipy.optimize import linear_sum_assignment

    return lambda: linear_sum_assignment(problem.profit, maximize=True)


def bare_ortools(problem: Any) -> Callable[[], Any]:
    from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment

    def run() -> Any:
        k, n = problem.profit.shape
        spread = np.log2(np.ptp(problem.profit))
        costs = problem.profit.max() - problem.profit
        costs = np.rint(np.ldexp(costs, int(60 - 2.0 * np.log2(n) - spread))).astype(np.int64)  # as precise as `solve`
        solver = SimpleLinearSumAssignment()
        solver.add_arcs_with_cost(
            np.repeat(np.arange(k, dtype=np.int32), n), np.tile(np.arange(n, dtype=np.int32), k), costs.ravel()
        )
        solver.solve()
        return [solver.right_mate(row) for row in range(k)]

    return run


def bare_cvxpy(problem: Any) -> Callable[[], Any]:
    import cvxpy

    def run() -> Any:
        weights, step = cvxpy.Variable(problem.values.size, nonneg=True), cvxpy.Variable(problem.slopes.shape[1])
        objective = cvxpy.Maximize(problem.values @ weights - problem.lam / 2 * cvxpy.sum_squares(step))
        rows = [problem.lam * step == problem.slopes.T @ weights, cvxpy.sum(weights) <= 1]
        return cvxpy.Problem(objective, rows).solve(solver="CLARABEL")

    return run


@case()
def overhead(run: Run) -> None:
    """Processor seconds of `solve` by those of the bare library for the same problem, the least of some rounds."""
    rng = np.random.default_rng(run.seed)
    row = table("solver", "problem", "bare, ms", "solve, ms", "ratio")
    sizes = (1, 2) if run.quick else (1, 4, 20)
    families: tuple[tuple[str, Callable[[int], Problem], Callable[[Any], Callable[[], Any]]], ...] = (
        ("highs", lambda size: covering(rng, 50 * size, 150 * size), bare_highs),
        ("scipy", lambda size: matching(rng.normal(size=(40 * size, 40 * size))), bare_scipy),
        ("ortools", lambda size: matching(rng.normal(size=(40 * size, 40 * size))), bare_ortools),
        ("cvxpy:CLARABEL", lambda size: margin_dual(rng.normal(size=(20 * size, 46)), rng.random(20 * size), lam=0.1),
         bare_cvxpy),
    )  # fmt: skip
    for solver, make, bare_of in families:
        for size in sizes:
            problem = make(size)
            alone, ours = least(run.count(9, 1) + 1, bare_of(problem), partial(solve, problem, solver))
            row(solver, problem.shape_text, f"{1e3 * alone:.3g}", f"{1e3 * ours:.3g}", f"{ours / alone:.2f}")


@case()
def warm_starts(run: Run) -> None:
    """Fifty sweeps of each size: HiGHS's iterations and processor seconds, by `solve_many` and from scratch."""
    rng = np.random.default_rng(run.seed)
    row = table("program", "varied", "iterations", "from the last basis", "seconds, ratio", "values differ by")
    for rows in (20,) if run.quick else (40, 200, 1000):
        program = covering(rng, rows, 3 * rows)
        count = run.count(50, 3)
        for part, values in (
            ("objective", program.objective * (1.0 + 0.02 * rng.normal(size=(count, 3 * rows)))),
            ("row_lower", program.row_lower * (1.0 - 0.5 * np.arange(count)[:, None] / count)),
        ):
            began = process_time()
            cold = [solve(replace(program, **{part: value}), "highs") for value in values]
            between = process_time()
            warm = solve_many(program, "highs", **{"objectives" if part == "objective" else part: values})
            seconds = between - began, process_time() - between
            off = max(abs(one.value - other.value) / abs(other.value) for one, other in zip(warm, cold, strict=True))
            steps = [sum(one.details["iterations"] for one in found) for found in (cold, warm)]
            row(program.shape_text, part, *steps, f"{seconds[1] / seconds[0]:.2f}", f"{off:.0e}")
