"""What a query of Π(B, 10) costs, way by way: the collapsed assignment, the flow, the linear and the integer program,
and the same linear program stated to cvxpy. Every way solves the same queries in one run; values must agree.

    python benchmarks/diverse_retrieval.py
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from formulations import diverse_retrieval, named, solve
from formulations.modeling.constrained_ranking import ConstrainedRanking

K = 10
SIZES = (50, 100, 200, 500, 1000, 2000)
WAYS = {
    "collapsed": lambda problem: solve(problem, "scipy"),
    "flow": lambda problem: solve(problem, "ortools:flow"),
    "linear program": lambda problem: solve(problem, "highs"),
    "integer program": lambda problem: solve(problem.linear_program(integer=True), "highs"),
    "cvxpy": lambda problem: solve(problem, "cvxpy:CLARABEL"),
}
SLOW = {"cvxpy": 1000, "integer program": 2000}
"""The largest n at which a way is tried."""


def problem(n: int, seed: int) -> ConstrainedRanking:
    """A loss-augmented query as training meets it: decay times score minus discount times gain, blocks n / 3."""
    rng = np.random.default_rng(seed)
    i = np.arange(1.0, K + 1)
    profit = np.outer(i**-0.5, rng.normal(size=n)) - np.outer(1 / np.log2(i + 1), rng.integers(0, 3, n) / 10)
    return diverse_retrieval(profit, rng.integers(0, max(n // 3, 1), n).tolist())


def main() -> None:
    for spec in ("scipy", "ortools:flow", "highs", "cvxpy:CLARABEL"):  # load the packages
        named(spec)
        solve(problem(40, 0), spec)
    print(f"| n | {' | '.join(WAYS)} | linear program / collapsed |")
    print(f"|---|{'---|' * len(WAYS)}---|")
    for n in SIZES:
        queries = [problem(n, seed) for seed in range(12 if n <= 500 else 5)]
        for query in queries:  # what a set keeps is built once, whichever way
            assert query.admissible.stated.collapse is not None
            assert query.admissible.stated.network is not None
        seconds: dict[str, float] = {}
        values: dict[str, np.ndarray] = {}
        for way, run in WAYS.items():
            if n > SLOW.get(way, n):
                continue
            began = perf_counter()
            values[way] = np.array([run(query).value for query in queries])
            seconds[way] = (perf_counter() - began) / len(queries)
            assert np.allclose(values[way], values["collapsed"], rtol=0, atol=1e-9), way
        cells = [f"{1e3 * seconds[way]:.3g} ms" if way in seconds else "-" for way in WAYS]
        print(f"| {n} | {' | '.join(cells)} | {seconds['linear program'] / seconds['collapsed']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
