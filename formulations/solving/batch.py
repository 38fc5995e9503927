"""Solve many problems at once: in batches if the solver accepts them, else one by one."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any, overload

import numpy as np

from formulations.arrays import Floats, Ints, check_type
from formulations.errors import FormulationError, InvalidSolutionError, SolverCrashError
from formulations.problems.ranking import RankTwoAssignment, RankTwoBatch
from formulations.problems.relevance_ranking import RelevanceBatch, RelevanceRanking
from formulations.solvers import as_solver
from formulations.solvers.batch_solution import BatchSolution, RelevanceSolution
from formulations.solvers.exact import ExactArgmax
from formulations.solvers.solver import BatchSolver, Solver
from formulations.solving.solve import solve


@overload
def solve_batch(
    batch: RankTwoBatch, solver: Solver | str = "exact", *, directed_rounding: bool = True
) -> BatchSolution: ...
@overload
def solve_batch(
    batch: RelevanceBatch, solver: Solver | str = "exact", *, directed_rounding: bool = True
) -> RelevanceSolution: ...
def solve_batch(
    batch: RankTwoBatch | RelevanceBatch, solver: Solver | str = "exact", *, directed_rounding: bool = True
) -> BatchSolution | RelevanceSolution:
    """Solve every query of a batch: at once if the solver can, else one by one.

    directed_rounding: whether value and bound are rounded outward, so that value <= optimum <= bound. Otherwise they
    have rounding errors of double precision on either side; training uses these.

    Answers of other solvers are verified. Raises `InvalidSolutionError` if a query's order is malformed, and what
    `solve` raises.
    """
    check_type("directed_rounding", directed_rounding, bool)
    chosen = as_solver("exact" if isinstance(solver, str) and solver == "auto" else solver)
    check_type(
        "batch", batch, RankTwoBatch, RelevanceBatch,
        cure="Pass what ranking(..., offsets=) returns; solve a list of problems by [solve(p) for p in problems].",
    )  # fmt: skip
    began = perf_counter()
    form = RelevanceRanking if isinstance(batch, RelevanceBatch) else RankTwoAssignment
    answer: Any
    if isinstance(chosen, ExactArgmax):
        answer = chosen.solve_batch(batch)
        if directed_rounding and isinstance(batch, RankTwoBatch):
            answer = answer.outward(chosen.for_batch(batch.offsets).compiled)
        elif directed_rounding:
            answer = answer.outward()
    elif isinstance(chosen, BatchSolver) and form in getattr(chosen, "accepts", (RankTwoAssignment,)):
        open_ = np.full(len(batch), np.inf)
        answer = _answers(batch, chosen, _orders(batch, chosen), -open_, open_).proved()
    else:
        answer = _one_by_one(batch, chosen, directed_rounding)
    timed: BatchSolution | RelevanceSolution = replace(answer, seconds=perf_counter() - began)
    return timed


def _answers(batch: RankTwoBatch | RelevanceBatch, solver: Any, order: Ints, value: Floats, bound: Floats) -> Any:
    kind, spec = _solution_class(batch), _name(solver)
    return kind(batch, order, value, bound, np.zeros(len(batch), dtype=np.int8), (spec,), spec)


def _solution_class(batch: RankTwoBatch | RelevanceBatch) -> type[Any]:
    return RelevanceSolution if isinstance(batch, RelevanceBatch) else BatchSolution


def _name(solver: Any) -> str:
    return str(getattr(solver, "spec", type(solver).__name__))


def _orders(batch: RankTwoBatch | RelevanceBatch, solver: Any) -> Ints:
    """The orders of a batch solver, each checked to be an order of its query's documents."""
    spec, kind = _name(solver), _solution_class(batch)
    try:
        answer = solver.solve_batch(batch)
    except FormulationError:
        raise
    except Exception as error:  # any error of the user's solver
        raise SolverCrashError(f"{spec!r} crashed: {type(error).__name__}: {error}") from error
    order = getattr(answer, "order", None)
    if not isinstance(answer, kind) or not isinstance(order, np.ndarray):
        raise InvalidSolutionError(f"{spec!r} must return a {kind.__name__} of orders; got {type(answer).__name__}.")
    order = np.asarray(order)
    if order.shape != batch.scores.shape or order.dtype.kind not in "iu":
        raise InvalidSolutionError(
            f"{spec!r} must return {batch.scores.size} integers; got {order.dtype}, {order.shape}"
        )
    starts = np.repeat(batch.offsets[:-1], np.diff(batch.offsets))
    inside = (order >= 0) & (order < np.repeat(np.diff(batch.offsets), np.diff(batch.offsets)))
    held = np.bincount((starts + order)[inside].astype(np.int64), minlength=order.size)
    if not inside.all() or (held != 1).any():
        row = int(np.flatnonzero(~inside | (held != 1))[0])
        query = int(np.searchsorted(batch.offsets, row, side="right")) - 1
        raise InvalidSolutionError(f"{spec!r} must return orders of documents; that of query {query} is not one")
    return np.ascontiguousarray(order, dtype=np.int64)


def _one_by_one(batch: RankTwoBatch | RelevanceBatch, solver: Solver, outward: bool) -> Any:
    order = np.empty(batch.scores.size, dtype=np.int64)
    value, bound = np.empty(len(batch)), np.empty(len(batch))
    for query in range(len(batch)):
        solution = solve(batch[query], solver, directed_rounding=outward)
        low, high = batch.offsets[query], batch.offsets[query + 1]
        left = np.setdiff1d(np.arange(high - low), solution.order, assume_unique=True)
        order[low:high] = np.concatenate([solution.order, left])
        value[query], bound[query] = solution.value, solution.bound
    return _answers(batch, solver, order, value, bound)
