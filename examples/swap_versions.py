"""The same problems before and after a change: here of an option; of a version it is the same two steps, apart in time.

python examples/swap_versions.py
"""

import tempfile
from pathlib import Path

import numpy as np

from formulations import ConstrainedRanking, RankingSet, constrained_ranking
from rankopt.experiments import Against, SolverSwap
from rankopt.experiments.regression import mean_factor


def stated(seed: int) -> ConstrainedRanking:
    """Five of twenty documents, at most two of each of four groups that overlap: no flow, a linear program."""
    rng = np.random.default_rng(seed)
    admissible = RankingSet(20, 5)
    for _ in range(4):
        admissible = admissible.at_most(2, documents=rng.random(20) < 0.4)
    return constrained_ranking(rng.normal(size=(5, 20)), admissible)


def main() -> None:
    """Record rows and tapes; replay the tapes with presolve off, as one would under another version."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        SolverSwap(problems=[stated(seed) for seed in range(6)], argmax=("highs",), repeats=5).run(path)
        later = Against(path, argmax=("highs", "highs(presolve='off')"), repeats=5)
        found = later.changes(list(later.rows()))
    for solver in dict.fromkeys(one.after.solver for one in found):
        own = [one for one in found if one.after.solver == solver]
        mean = mean_factor(own)
        time = "-" if mean is None else f"{mean[0]:.2f} ({mean[1]:.2f} to {mean[2]:.2f})"
        print(f"{solver:24} time, now / before: {time:22} {sorted({one.kind.words for one in own})}")
    print("interval of 95%, problems and repeats drawn anew; a word a problem: what its own repeats show")


if __name__ == "__main__":
    main()
