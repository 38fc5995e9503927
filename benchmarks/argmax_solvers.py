"""The loss-augmented argmax beside three packages for linear assignment: SciPy, OR-Tools and lapx.

    RANKOPT_DATA=folder python benchmarks/argmax_solvers.py [data set ...]

Problems as in `argmax.py`, fewer of them: of each data set queries with 1,000 documents together, or one of 1,000
("n = 1000"); nDCG, nDCG@10, P@5 and ERU by linear, power(0.5) and log, at the start, in the middle and at the end of a
run. All are timed by turns, on one thread, processor time, the least of two rounds (one at n = 1000), we on a batch
that holds each query eight times; a package is given the matrix of profits both ways round, the quicker counts. What it
takes to hand the problem over (matrix, sign, arcs) is left out. A cell is the geometric mean of the quotients.

SciPy's and lapx's values are ours to 1e-9 of the largest profit. OR-Tools takes whole costs: they are shifted to begin
at zero and multiplied by the greatest power of two for which its own arithmetic stays within 64 bits (see
`formulations.bridges.widening`), then rounded, so its order is optimal only to n / 2^b; the value of that order,
in the given profits, is compared to n / 2^b more than 1e-9 of the largest profit.

lapx is no dependency of ours; `lapjvc` is its quickest function that computes in doubles throughout (`lapjvs` is off by
1e-7 to 1e-5).
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import thread_time

import numpy as np
from argmax_problems import MEASURES, POINTS, SETS, largest, lengths, notation, part, posed, profits, thousand, trials
from scipy.optimize import linear_sum_assignment

from formulations import solve_batch
from formulations.bridges.widening import rounded_costs
from formulations.parallel import at_most
from formulations.problems.ranking import RankTwoBatch
from rankopt.data import Queries

DECAYS = ("linear", "power(0.5)", "log")
DOCUMENTS = 1000
COPIES = 8
"""Of each query in the batch that we solve: the cost of a call is shared by thousands of queries in training."""

Prepared = tuple[Callable[[], object], Callable[[object], np.ndarray], float]
"""A call to be timed, what makes of its answer the column of each row, and what the answer may leave open."""


def scipys(profit: np.ndarray) -> Prepared:
    return lambda: linear_sum_assignment(profit, maximize=True), lambda answer: answer[1], 0.0


def ortoolss(profit: np.ndarray) -> Prepared:
    from ortools.graph.python.linear_sum_assignment import SimpleLinearSumAssignment

    n = len(profit)
    costs = rounded_costs(-profit.ravel(), n, n, shift=True)
    solver = SimpleLinearSumAssignment()
    sources, targets = (index.astype(np.int32).ravel() for index in np.indices(profit.shape))
    solver.add_arcs_with_cost(sources, targets, np.asarray(costs.values))

    def mates(status: object) -> np.ndarray:
        assert status == solver.OPTIMAL
        return np.array([solver.right_mate(row) for row in range(n)])

    return solver.solve, mates, costs.left


def lapx(function: str) -> Callable[[np.ndarray], Prepared]:
    import lap

    solve = getattr(lap, function)

    def prepared(profit: np.ndarray) -> Prepared:
        cost = -profit
        return lambda: solve(cost), lambda answer: answer[1 if function == "lapjv" else 2], 0.0

    return prepared


def packages() -> dict[str, Callable[[np.ndarray], Prepared]]:
    found: dict[str, Callable[[np.ndarray], Prepared]] = {"SciPy": scipys, "OR-Tools": ortoolss}
    if find_spec("lap"):
        return found | {"lapx, lapjv": lapx("lapjv"), "lapx, lapjvc": lapx("lapjvc")}
    print("lapx is left out: it is not installed; `pip install lapx` adds its columns\n")
    return found


def timed(call: Callable[[], object]) -> tuple[float, object]:
    began = thread_time()
    answer = call()
    return thread_time() - began, answer


def quotients(batch: RankTwoBatch, solvers: dict[str, Callable[[np.ndarray], Prepared]]) -> list[float]:
    """The seconds of each package by ours, summed over the queries."""
    ours, theirs, scale = np.inf, np.full((len(batch), len(solvers)), np.inf), largest(batch)
    copies = part(batch, np.tile(np.arange(len(batch)), COPIES))
    for _ in range(2 if len(batch) > 1 else 1):
        for _ in range(5):
            seconds, answer = timed(lambda: solve_batch(copies))
            ours = min(ours, seconds / COPIES)
        for query, value in enumerate(answer.value[: len(batch)]):
            profit = profits(batch, query)
            for matrix in (profit, np.ascontiguousarray(profit.T)):
                for i, prepare in enumerate(solvers.values()):
                    call, columns, left = prepare(matrix)
                    seconds, said = timed(call)
                    theirs[query, i] = min(theirs[query, i], seconds)
                    earned = matrix[np.arange(len(matrix)), columns(said)].sum()
                    assert abs(earned - value) <= 1e-9 * scale[query] + left
    return (theirs.sum(axis=0) / ours).tolist()


def few(queries: Queries) -> Queries:
    """Some with `DOCUMENTS` documents together and at most 400 each, or one longer."""
    order = np.random.default_rng(1).permutation(len(queries))
    short = order[lengths(queries)[order] <= 400]
    held = np.cumsum(lengths(queries)[short]) <= DOCUMENTS
    return queries.select(np.sort(short[held]) if short.size else order[:1])


def main() -> None:
    warnings.simplefilter("ignore")
    folder, solvers, sets = Path(os.environ["RANKOPT_DATA"]), packages(), SETS | {"n = 1000": thousand}
    print("| data | measure | " + " | ".join(solvers) + " | least of all |")
    print("|" + "---|" * (len(solvers) + 3))
    for name in sys.argv[1:] or sets:
        queries = sets[name](folder)
        for measure in MEASURES:
            cells = []
            for decay in DECAYS:
                said = notation(measure, name)
                for w in trials(queries, said, decay)[1 : len(POINTS)]:
                    with at_most(1):
                        cells.append(quotients(posed(few(queries), said, decay, w), solvers))
            means = " | ".join(f"{mean:.0f}" for mean in np.exp(np.mean(np.log(cells), axis=0)))
            print(f"| {name} | {measure} | {means} | {float(f'{np.min(cells):.2g}'):g} |", flush=True)


if __name__ == "__main__":
    main()
