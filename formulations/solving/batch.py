"""Many problems at once: whole batches where a solver takes them, else one by one."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

import numpy as np

from formulations.forms.rank_two_assignment import RankTwoBatch
from formulations.solvers import named
from formulations.solvers.batch_solution import BatchSolution
from formulations.solvers.solver import BatchSolver, Solver
from formulations.solving.solve import solve

__all__ = ["solve_batch"]


def solve_batch(batch: RankTwoBatch, solver: Solver | str = "exact") -> BatchSolution:
    """Solve every query of a batch: at once where the solver can, else one by one."""
    chosen = named("exact" if solver == "auto" else solver) if isinstance(solver, str) else solver
    began = perf_counter()
    answer = chosen.solve_batch(batch) if isinstance(chosen, BatchSolver) else _one_by_one(batch, chosen)
    return replace(answer, seconds=perf_counter() - began)


def _one_by_one(batch: RankTwoBatch, solver: Solver) -> BatchSolution:
    order = np.empty(batch.scores.size, dtype=np.int64)
    value, bound = np.empty(len(batch)), np.empty(len(batch))
    for query in range(len(batch)):
        problem = batch[query]
        solution = solve(problem, solver)
        low, high = batch.offsets[query], batch.offsets[query + 1]
        left = np.setdiff1d(np.arange(high - low), solution.order, assume_unique=True)
        order[low:high] = np.concatenate([solution.order, left])
        value[query], bound[query] = solution.value, solution.bound
    ways = np.zeros(len(batch), dtype=np.int8)
    return BatchSolution(batch, order, value, bound, ways, (solver.spec,), solver.spec)
