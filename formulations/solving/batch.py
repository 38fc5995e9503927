"""Solve many problems at once: whole batches if the solver accepts them, else one by one."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter
from typing import Any, overload

import numpy as np

from formulations.arrays import Ints
from formulations.errors import FormulationError, InvalidSolutionError, SolverCrashError
from formulations.problems.ranking import RankTwoBatch
from formulations.problems.relevance_ranking import RelevanceBatch, RelevanceRanking
from formulations.solvers import get_solver
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
    chosen = get_solver("exact" if solver == "auto" else solver) if isinstance(solver, str) else solver
    began = perf_counter()
    if isinstance(batch, RelevanceBatch):
        return replace(_patterns(batch, chosen, directed_rounding), seconds=perf_counter() - began)
    if isinstance(chosen, ExactArgmax):
        answer = chosen.solve_batch(batch)
        answer = answer.outward(chosen.for_batch(batch.offsets).compiled) if directed_rounding else answer
    elif isinstance(chosen, BatchSolver):
        answer = _checked(batch, chosen)
    else:
        answer = _one_by_one(batch, chosen, directed_rounding)
    return replace(answer, seconds=perf_counter() - began)


def _patterns(batch: RelevanceBatch, solver: Solver, outward: bool) -> RelevanceSolution:
    """At once if the solver accepts such batches, else one by one."""
    if isinstance(solver, ExactArgmax):
        answer = solver.solve_batch(batch)
        return answer.outward() if outward else answer
    nothing, ways = np.zeros(len(batch)), np.zeros(len(batch), dtype=np.int8)
    if isinstance(solver, BatchSolver) and RelevanceRanking in solver.accepts:
        order = _orders(solver, batch, RelevanceSolution)
        return RelevanceSolution(batch, order, nothing, nothing + np.inf, ways, (solver.spec,), solver.spec).proved()
    order, bound = np.empty(batch.scores.size, dtype=np.int64), nothing
    for query in range(len(batch)):
        solution = solve(batch[query], solver, directed_rounding=outward)
        order[batch.offsets[query] : batch.offsets[query + 1]] = solution.order
        bound[query] = solution.bound
    found = batch.judged(order)
    value = found.least if outward else found.value
    return RelevanceSolution(batch, order, value, bound, ways, (solver.spec,), solver.spec, told=found)


def _checked(batch: RankTwoBatch, solver: Any) -> BatchSolution:
    """The orders of a batch solver; value and bound recomputed from the data."""
    spec = getattr(solver, "spec", type(solver).__name__)
    orders = _orders(solver, batch, BatchSolution)
    nothing, ways = np.zeros(len(batch)), np.zeros(len(batch), dtype=np.int8)
    return BatchSolution(batch, orders, nothing, nothing, ways, (str(spec),), str(spec)).proved()


def _orders(solver: Any, batch: RankTwoBatch | RelevanceBatch, kind: type[Any]) -> Ints:
    """The orders of a batch solver, each checked to be an order of its query's documents."""
    spec = getattr(solver, "spec", type(solver).__name__)
    try:
        said = solver.solve_batch(batch)
    except FormulationError:
        raise
    except Exception as error:  # any error of the user's solver
        raise SolverCrashError(f"{spec!r} crashed: {type(error).__name__}: {error}") from error
    order = getattr(said, "order", None)
    if not isinstance(said, kind) or not isinstance(order, np.ndarray):
        raise InvalidSolutionError(
            f"{spec!r} returned {type(said).__name__}, which is no {kind.__name__} with an array of orders"
        )
    order = np.asarray(order)
    if order.shape != batch.scores.shape or order.dtype.kind not in "iu":
        raise InvalidSolutionError(
            f"{spec!r} returned orders of {order.dtype} and shape {order.shape} for {batch.scores.size} rows"
        )
    starts = np.repeat(batch.offsets[:-1], np.diff(batch.offsets))
    inside = (order >= 0) & (order < np.repeat(np.diff(batch.offsets), np.diff(batch.offsets)))
    held = np.bincount((starts + order)[inside].astype(np.int64), minlength=order.size)
    if not inside.all() or (held != 1).any():
        row = int(np.flatnonzero(~inside | (held != 1))[0])
        query = int(np.searchsorted(batch.offsets, row, side="right")) - 1
        raise InvalidSolutionError(
            f"{spec!r} must return an order of the documents of each query; that of query {query} is not one"
        )
    return np.ascontiguousarray(order, dtype=np.int64)


def _one_by_one(batch: RankTwoBatch, solver: Solver, outward: bool) -> BatchSolution:
    order = np.empty(batch.scores.size, dtype=np.int64)
    value, bound = np.empty(len(batch)), np.empty(len(batch))
    for query in range(len(batch)):
        problem = batch[query]
        solution = solve(problem, solver, directed_rounding=outward)
        low, high = batch.offsets[query], batch.offsets[query + 1]
        left = np.setdiff1d(np.arange(high - low), solution.order, assume_unique=True)
        order[low:high] = np.concatenate([solution.order, left])
        value[query], bound[query] = solution.value, solution.bound
    ways = np.zeros(len(batch), dtype=np.int8)
    return BatchSolution(batch, order, value, bound, ways, (solver.spec,), solver.spec)
