"""A step of training over every feature map beside the two products with the features.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/step_of_maps.py

Value and subgradient of the risk (scores, loss-augmented orders, references, transposed products) by the time of
NumPy's `X @ w` and `X.T @ r` on the same 36,000 x 136 features: 300 queries of 120 documents, about a fifth of them
relevant, at w = the truth. By turns, the least of the rounds, on one core: NumPy's own threads spin after a product, in
the way of whoever comes next.
"""

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

from rankopt.data import Queries
from rankopt.rankers import LargeMarginRanker

QUERIES, DOCUMENTS, FEATURES = 300, 120, 136

CELLS = [
    ("AP", "pairwise"), ("AUC", "pairwise"), ("nDCG", "pairwise"), ("nDCG@10", "pairwise"), ("RR", "pairwise"),
    ("RR", "first-relevant"), ("nDCG@10", "positional"), ("AP", "positional"), ("RR@10", "positional"),
]  # fmt: skip


def least(rounds: int, *tasks: Callable[[], object]) -> list[float]:
    seconds = [np.inf] * len(tasks)
    for _ in range(rounds):
        for which, task in enumerate(tasks):
            began = time.perf_counter()
            task()
            seconds[which] = min(seconds[which], time.perf_counter() - began)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    random = np.random.default_rng(0)
    X = random.normal(size=(QUERIES * DOCUMENTS, FEATURES))
    w = random.normal(size=FEATURES) / 12
    relevant = X @ w + random.normal(size=len(X)) > 1.2
    queries = Queries.from_arrays(X, relevant * 1.0, qid=np.repeat(np.arange(QUERIES), DOCUMENTS))
    r = random.normal(size=len(X))
    print("| measure | map | convex | tie-aware | nonconvex |\n|---|---|---|---|---|")
    for measure, map_ in CELLS:
        told = []
        for bound in ("convex", "tie-aware", "nonconvex"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ranker = LargeMarginRanker(measure, feature_map=map_, bound=bound, w0=np.full(FEATURES, 1e-9), lam=1.0)
                risk = ranker.objective(queries).risk
            for _ in range(3):  # code is ready
                risk.at(w)
            step, products = least(rounds, lambda risk=risk: risk.at(w), lambda: (X @ w, X.T @ r))
            told.append(f"{step / products:.2f}")
        print(f"| {measure} | {map_} | {' | '.join(told)} |", flush=True)


if __name__ == "__main__":
    main()
