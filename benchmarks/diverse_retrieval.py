"""What a query of Π(B, 10) costs, way by way: the collapsed assignment, the flow, the linear and the integer program,
and the same linear program stated to cvxpy. Every way solves the same queries in one run; values must agree. What a set
keeps from one profit to the next (its rows, its network) is built before the clock starts. Medians of five passes.
`solve` of one query is timed with all that it does beside: restating, dual prices, value, feasibility and bound.
"compiled" is the pass over all queries at once that training uses (`solve_sets`), with value and bound.

    python benchmarks/diverse_retrieval.py
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from formulations import RankingSet, solve
from formulations.solving.constrained_batch import SetBatch, solve_sets

K = 10
SIZES = (50, 100, 200, 500, 1000, 2000)
WAYS = {
    "collapsed": lambda problem: solve(problem, "scipy"),
    "flow": lambda problem: solve(problem, "ortools:flow"),
    "linear program": lambda problem: solve(problem, "highs"),
    "integer program": lambda problem: solve(problem.linear_program(integer=True), "highs"),
    "cvxpy": lambda problem: solve(problem, "cvxpy:CLARABEL"),
}
LARGEST = {"cvxpy": 1000}
"""The largest n at which a way is tried."""


def queries(n: int, count: int) -> SetBatch:
    """Loss-augmented queries as training meets them: decay times score minus discount times gain, blocks n / 3."""
    rng = np.random.default_rng(n)
    i = np.arange(1.0, K + 1)
    return SetBatch(
        sets=[RankingSet(n, K).at_most(1, by=rng.integers(0, n // 3, n), name="block") for _ in range(count)],
        scores=rng.normal(size=n * count),
        gain=rng.integers(0, 3, n * count) / 10,
        discount=np.tile(1 / np.log2(i + 1), count),
        position_weights=np.tile(i**-0.5, count),
        offsets=n * np.arange(count + 1),
        places=K * np.arange(count + 1),
    )


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What work() returns, and the median of the seconds of five calls after a first one."""
    result, seconds = work(), []
    for _ in range(5):
        began = perf_counter()
        work()
        seconds.append(perf_counter() - began)
    return result, float(np.median(seconds))


def main() -> None:
    print(f"| n | compiled | {' | '.join(WAYS)} | linear program / collapsed | linear program / compiled |")
    print(f"|---|{'---|' * (len(WAYS) + 3)}")
    for n in SIZES:
        batch = queries(n, 20 if n <= 500 else 8)
        problems = [batch[q] for q in range(len(batch))]
        seconds: dict[str, float] = {}
        best, compiled = timed(lambda batch=batch: solve_sets(batch).value)
        compiled /= len(batch)
        for way, run in WAYS.items():
            if n > LARGEST.get(way, n):
                continue
            values, whole = timed(lambda run=run, problems=problems: [run(problem).value for problem in problems])
            seconds[way] = whole / len(problems)
            assert np.allclose(values, best, rtol=0, atol=1e-9), way
        cells = [f"{1e3 * seconds[way]:.3g} ms" if way in seconds else "-" for way in WAYS]
        ratios = [f"{seconds['linear program'] / other:.0f}" for other in (seconds["collapsed"], compiled)]
        print(f"| {n} | {1e3 * compiled:.2g} ms | {' | '.join([*cells, *ratios])} |", flush=True)


if __name__ == "__main__":
    main()
