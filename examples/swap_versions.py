"""The same problems before and after a change: here of an option; of a version it is the same two steps, apart in time.

python examples/swap_versions.py
"""

import tempfile
from pathlib import Path

import numpy as np

from formulations import ConstrainedRanking, RankingSet, constrained_ranking
from rankopt.experiments import SolverSwap, changes
from rankopt.experiments.regression import by_solver, mean_factor, read_baseline


def stated(seed: int) -> ConstrainedRanking:
    """Five of twenty documents, at most two of each of four groups that overlap: no flow, a linear program."""
    rng = np.random.default_rng(seed)
    admissible = RankingSet(20, 5)
    for _ in range(4):
        admissible = admissible.at_most(2, documents=rng.random(20) < 0.4)
    return constrained_ranking(rng.normal(size=(5, 20)), admissible)


def main() -> None:
    """Record rows and traces; replay the traces with presolve off, as one would under another version."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        SolverSwap(problems=[stated(seed) for seed in range(6)], argmax_solvers=("highs",), repeats=5).run(path)
        rows, traces = read_baseline(path)
        now = SolverSwap(problems=traces, argmax_solvers=("highs", "highs(presolve='off')"), repeats=5).run()
    for (_, solver), own in by_solver(changes(rows, now)).items():
        factor = mean_factor(own)
        time = "-" if factor is None else f"{factor:.2f}"
        print(f"{solver:24} time, now / before: {time:6} {sorted({one.kind.words for one in own})}")


if __name__ == "__main__":
    main()
