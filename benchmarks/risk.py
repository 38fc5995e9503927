"""What one step of training costs beside the two products with the features that nobody can avoid.

    python benchmarks/risk.py [queries]

Generated data in the shape of MSLR-WEB30K: 6,000 queries of 120 documents with 136 features, grades 0 to 4. A step is
value and subgradient of the risk at one w, that is X w, 6,000 loss-augmented rankings, and Xᵀ r; beside it, in the same
run and by turns, NumPy's `X @ w` and `X.T @ r` (SciPy's for sparse features). w is taken along a real run: its start,
its middle and its end. Each figure is the least of several repetitions.
"""

import sys
import warnings
from itertools import product
from time import perf_counter

import numpy as np
from scipy.sparse import csr_array

from rankopt.data import Queries
from rankopt.rankers import LargeMarginRanker

DOCUMENTS, FEATURES, REPEATS = 120, 136, 7

CELLS = [
    ("nDCG@10", "power(0.5)@10"),
    ("nDCG@10", "linear"),
    ("nDCG@10", "power(0.5)"),
    ("nDCG", "power(0.5)"),
    ("P@5", "power(0.5)@5"),
]
"""Measures and decays; the first is the one that the aim is stated for."""


def generated(queries, seed=0):
    """Features (float64) and grades 0 to 4 that a linear score explains in part."""
    random = np.random.default_rng(seed)
    table = random.standard_normal((queries * DOCUMENTS, FEATURES))
    w = random.standard_normal(FEATURES) / np.sqrt(FEATURES)
    latent = table @ w + 0.8 * random.standard_normal(queries * DOCUMENTS)
    return table, np.digitize(latent, [0.6, 1.2, 1.8, 2.4]).astype(float)


def along_a_run(ranker, queries):
    """w at the start, in the middle and at the end of a run of a few steps."""
    passed = []
    ranker.set_params(max_iter=12, tol=0.0, callbacks=(lambda step, state: passed.append(state.trial) and None,))
    ranker.fit(queries)
    return [np.zeros(FEATURES), passed[len(passed) // 2], ranker.coef_]


def least(*jobs):
    """The least seconds of each job, done by turns."""
    best = [np.inf] * len(jobs)
    for _ in range(REPEATS):
        for i, job in enumerate(jobs):
            began = perf_counter()
            job()
            best[i] = min(best[i], perf_counter() - began)
    return best


def row(label, features, grades, measure, position_weights, bound):
    sizes = np.full(grades.size // DOCUMENTS, DOCUMENTS)
    queries = Queries.from_arrays(features, grades, group=sizes)
    ranker = LargeMarginRanker(measure, position_weights=position_weights, bound=bound, w0="zeros", lam=1e-3)
    risk = ranker.objective(queries).risk
    r = np.random.default_rng(1).standard_normal(grades.size).astype(features.dtype)
    ratios, shares = [], []
    for w in along_a_run(ranker, queries):
        own = w.astype(features.dtype)
        step, products = least(lambda w=w: risk.at(w), lambda own=own: (features @ own, features.T @ r))
        ratios.append(step / products)
        shares.append(risk.at(w).seconds / step)
    print(
        f"| {label} | {bound} | {measure} | {position_weights} | "
        + " | ".join(f"{ratio:.2f}" for ratio in ratios)
        + f" | {100 * np.mean(shares):.0f} |",
        flush=True,
    )


def main():
    queries = int(sys.argv[1]) if len(sys.argv) > 1 else 6000
    warnings.simplefilter("ignore")
    table, grades = generated(queries)
    print("| features | bound | measure | decay | w = 0 | middle | end | argmax, % of the step |\n" + "|---" * 8 + "|")
    for (measure, decay), bound in product(CELLS, ("convex", "tie-aware", "nonconvex")):
        row("float64", table, grades, measure, decay, bound)
    single = table.astype(np.float32)
    for measure, decay in CELLS:
        row("float32", single, grades, measure, decay, "convex")
    sparse = csr_array(np.where(np.random.default_rng(2).random(table.shape) < 0.1, table, 0.0))
    for measure, decay in CELLS[:2]:
        row("CSR, 10% filled", sparse, grades, measure, decay, "convex")


if __name__ == "__main__":
    main()
