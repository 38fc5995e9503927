"""Problems on which two versions of a solver are compared: rankings of a real training under sets, written as programs,
and small programs with whole and real variables together.

    python benchmarks/versions.py record rows.jsonl                 # in the environment of the one version
    rankopt swap --baseline rows.jsonl --output now.jsonl     # in that of the other

The solvers are HiGHS with its usual options, by the interior-point method, and with presolve always on.
"""

from __future__ import annotations

import sys

import numpy as np

from formulations import LinearProgram, RankingSet, constrained_ranking
from formulations.bridges import restated
from rankopt.experiments import Limits, SolverSwap

SOLVERS = ("highs", "highs(method='ipm')", "highs(presolve='on')")
RELAXED, MIXED, REPEATS = 12, 120, 5


def relaxed(seed: int) -> LinearProgram:
    """The relaxation of a set of rankings whose groups overlap: 10 of 40 to 200 documents, at most 2 of a group."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 200))
    held = rng.random((8, n)) < 0.2
    admissible = RankingSet(n, 10)
    for group in held:
        admissible = admissible.at_most(2, documents=group)
    profit = np.outer(1.0 / np.log2(np.arange(2.0, 12.0)), rng.normal(size=n)) + 0.1 * rng.normal(size=(10, n))
    return restated(constrained_ranking(profit, admissible), LinearProgram)


def mixed(seed: int) -> LinearProgram:
    """A program of a few whole and real variables, with rows that have room for both."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    matrix = rng.integers(0, 4, (m, n)).astype(float)
    lower = rng.integers(0, 9, m) + 0.5 * rng.integers(0, 2, m)
    whole = rng.random(n) < 0.5
    whole[:2] = True, False
    cost = rng.integers(1, 9, n).astype(float)
    return LinearProgram(cost, matrix, np.minimum(lower, 10 * matrix.sum(axis=1)), np.full(m, np.inf), np.zeros(n),
                         np.full(n, 10.0), is_maximization=False, integer=whole)  # fmt: skip


def main() -> None:
    """Record the rows."""
    if sys.argv[1:2] != ["record"] or len(sys.argv) != 3:
        raise SystemExit(__doc__)
    problems = [relaxed(seed) for seed in range(RELAXED)] + [mixed(seed) for seed in range(MIXED)]
    limits = Limits(problem=20.0, tape=200.0)
    rows = SolverSwap(problems=problems, argmax=SOLVERS, master_solvers=(), repeats=REPEATS, limits=limits).run(
        sys.argv[2]
    )
    for solver in SOLVERS:
        own = [row for row in rows if row.solver == solver]
        found = {word: sum(row.status.words == word for row in own) for word in {row.status.words for row in own}}
        print(solver, next(row.version for row in own if row.version), found)


if __name__ == "__main__":
    main()
