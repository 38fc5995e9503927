"""Objective, proven gap, iterations and seconds on MQ2008 (parts S1, S2, S3), by bound and λ.

    RANKOPT_DATA=folder python benchmarks/mq2008_objective.py

J(w) = (λ/2)‖w - w₀‖² + the mean bound of the regret of nDCG@10 over the queries with something to order; the features
as LETOR gives them (query-level normalised), decay linear. w₀ = 0 for the convex bound, least squares on the gains for
the nonconvex one. The gap of the convex bound is the distance from the minimum; that of the nonconvex bound
("stationary") is what one more step of the concave-convex procedure could still gain. Training ends at 0.1 percent.
"""

import os
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankopt.data import concatenate, read_svmlight
from rankopt.errors import NoProgressWarning
from rankopt.measures import evaluate
from rankopt.rankers import LargeMarginRanker


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", NoProgressWarning)
    folder = Path(os.environ["RANKOPT_DATA"]) / "letor4-mq2008"
    queries = concatenate([read_svmlight(folder / f"S{i}.txt.gz") for i in (1, 2, 3)])
    LargeMarginRanker(max_iter=1).fit(queries)  # compiles what is compiled once, off the clock
    columns = ("bound", "λ", "J", "proven bound", "gap", "gap, %", "kind", "rounds", "steps", "seconds", "in argmax")
    print("| " + " | ".join([*columns, "‖w - w₀‖", "train nDCG@10"]) + " |\n|" + "---|" * (len(columns) + 2))
    for bound in ("convex", "nonconvex"):
        for lam in (1.0, 1e-2, 1e-4):
            began = perf_counter()
            ranker = LargeMarginRanker(
                bound=bound, position_weights="linear", lam=lam, w0=None if bound == "convex" else "regression"
            ).fit(queries)
            seconds, proof, last = perf_counter() - began, ranker.certificate_, ranker.history_[-1]
            cells = (
                bound,
                f"{lam:g}",
                f"{proof.primal:.6f}",
                f"{proof.bound:.6f}",
                f"{proof.gap:.1e}",
                f"{100 * proof.relative_gap:.3f}",
                proof.kind,
                f"{max(last.round, 1)}",
                f"{ranker.n_iter_}",
                f"{seconds:.1f}",
                f"{last.seconds_argmax:.1f}",
                f"{np.linalg.norm(ranker.coef_ - ranker.w0_):.3g}",
                f"{evaluate(queries, ranker.predict(queries), 'nDCG@10').mean():.4f}",
            )
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
