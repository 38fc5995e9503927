"""Passes over the queries and seconds to a relative gap of 1e-3, by method, bound and λ; and what a path of λ costs.

    RANKOPT_DATA=folder python benchmarks/loops.py

MQ2008 (parts S1, S2, S3) and OHSUMED (LETOR 2.0, parts S1, S2, S3), nDCG@10, features as given, other settings by
default. A pass evaluates every query once: what an engine was asked for is counted, so that mini-batches and the proof
at the end are in it. Seconds are of the whole fit. A cell with a % did not close the gap within `LIMIT` seconds; it
shows the gap that was left. The plain bundle has one plane a pass and goes all the way to where the model is least.
"""

import os
import warnings
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankopt.data import Queries, concatenate, read_svmlight
from rankopt.engines import Threads
from rankopt.errors import NoProgressWarning
from rankopt.optimize.bundle import Bundle
from rankopt.rankers import LargeMarginRanker, PairwiseRanker
from rankopt.risk.risk import CuttingPlaneEvaluation, Shard, ShardResult

LIMIT = 10.0
METHODS = {
    "plain bundle": Bundle(groups=1, damping=1.0, keep_idle=200),
    "bundle": Bundle(),
    "cutting_planes": "cutting_planes",
    "block_frank_wolfe": "block_frank_wolfe",
    "stochastic_subgradient": "stochastic_subgradient",
    "steepest_subgradient": "steepest_subgradient",
}
BOUNDS = ("convex", "pairwise hinge", "tie-aware", "nonconvex")


class Counting:
    """Threads that count the passes they were asked for."""

    def __init__(self) -> None:
        self.engine, self.passes = Threads(), 0.0

    def map(self, question: CuttingPlaneEvaluation, shards: Sequence[Shard]) -> list[ShardResult]:
        queries = sum(shard.weights.size for shard in shards)
        first, last = question.queries or (0, queries)
        self.passes += (last - first) / queries
        return self.engine.map(question, shards)


def ranker_of(bound: str, **options: object) -> LargeMarginRanker | PairwiseRanker:
    if bound == "pairwise hinge":
        return PairwiseRanker(**options)
    return LargeMarginRanker(bound=bound, w0="zeros" if bound == "convex" else "regression", **options)


def cell(queries: Queries, bound: str, lam: float, method: object) -> str:
    """Passes, seconds, and J where it may differ."""
    engine, began = Counting(), perf_counter()
    ranker = ranker_of(bound, lam=lam, method=method, engine=engine, time_limit=LIMIT, max_iter=10**6).fit(queries)
    seconds, proof = perf_counter() - began, ranker.certificate_
    left = "" if proof.relative_gap <= ranker.tol else f", {float(f'{100 * proof.relative_gap:.2g}'):g}%"
    return f"{engine.passes:.0f}, {seconds:.1f} s{left}" + (f", J {proof.primal:.3f}" if bound == "nonconvex" else "")


def table(title: str, head: Sequence[str]) -> None:
    print(f"\n{title}\n\n| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)


def path_row(name: str, queries: Queries, bound: str) -> tuple[str, ...]:
    """A path of ten λ beside ten fits."""
    lams = np.logspace(0, -4, 10)
    fits = []
    for lam in lams:
        began = perf_counter()
        fit = ranker_of(bound, lam=float(lam)).fit(queries)
        fits.append((perf_counter() - began, fit.n_iter_, fit.certificate_.primal))
    began = perf_counter()
    path = ranker_of(bound).path(queries, lams=lams)
    seconds, passes = perf_counter() - began, sum(model.n_iter_ for model in path)
    worst = max(model.certificate_.relative_gap for model in path)
    dearest = max(fit[0] for fit in fits), max(fit[1] for fit in fits)
    return (
        name, bound, f"{passes}, {seconds:.2f} s", f"{dearest[1]}, {dearest[0]:.2f} s",
        f"{sum(fit[1] for fit in fits)}, {sum(fit[0] for fit in fits):.2f} s", f"{passes / dearest[1]:.1f}",
        f"{seconds / dearest[0]:.1f}", f"{worst:.1e}", f"{path[-1].certificate_.primal:.4f}", f"{fits[-1][2]:.4f}",
    )  # fmt: skip


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", NoProgressWarning)
    folder = Path(os.environ["RANKOPT_DATA"])
    data = {
        name: concatenate([read_svmlight(folder / place / f"S{i}.txt.gz") for i in (1, 2, 3)])
        for name, place in (("MQ2008", "letor4-mq2008"), ("OHSUMED", "letor2-ohsumed"))
    }
    for bound in BOUNDS:  # compiles what is compiled once, off the clock
        ranker_of(bound, max_iter=2).fit(data["OHSUMED"])
        ranker_of(bound, max_iter=2, method=Bundle(groups=1)).fit(data["OHSUMED"])
    table("Passes and seconds to a gap of 0.1%", ("data", "bound", "λ", *METHODS))
    for (name, queries), bound, lam in product(data.items(), BOUNDS, (1.0, 1e-2, 1e-4)):
        cells = [cell(queries, bound, lam, method) for method in METHODS.values()]
        print("| " + " | ".join([name, bound, f"{lam:g}", *cells]) + " |", flush=True)
    head = ("data", "bound", "path", "dearest fit", "ten fits", "passes, path / dearest", "seconds, path / dearest")
    table("A path of ten λ from 1 to 1e-4", (*head, "largest gap", "last J, path", "last J, fit"))
    for (name, queries), bound in product(data.items(), BOUNDS):
        print("| " + " | ".join(path_row(name, queries, bound)) + " |", flush=True)


if __name__ == "__main__":
    main()
