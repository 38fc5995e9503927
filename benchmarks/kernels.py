"""What a kernel adds to a linear ranker on MQ2008: RBF and polynomial by Nyström, splines, and the start they need.

    RANKOPT_DATA=folder python benchmarks/kernels.py [landmarks]

Parts S1 to S3, two to learn from and the third to test on, three rotations. γ, the degree, knots and RankSVM's λ are
chosen inside the two: fitted on each, judged on the other, nDCG@10 in the mean of both, then fitted on both. NDCG@10 of
the convention "burges" (gain 2^y - 1, log2(1 + rank), queries without relevant documents count 0, ties averaged). p:
paired randomisation over the 470 test queries, not adjusted. Landmarks are drawn with seed 0; no other seed was looked
at. "ridge" is `RegressionRanker()`, "large margin" is `LargeMarginRanker()`, both as they come; "from least squares" is
the latter with w0="regression". Seconds: processor, choice and all, of one run on a machine shared with others.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from rankopt.data import Queries, concatenate, read_svmlight
from rankopt.measures import compare, evaluate
from rankopt.rankers import LargeMarginRanker, PairwiseRanker, RegressionRanker

BASE = "linear, large margin"
LAMS = (1.0, 0.1, 0.01, 0.001)
GAMMAS = (0.01, 0.03, 0.1, 0.3)


@dataclass
class Chained:
    """Features, then a ranker on them."""

    features: Any
    ranker: Any

    def fit(self, queries: Queries) -> Chained:
        mapped = queries.features if self.features is None else self.features.fit_transform(queries.features)
        self.ranker.fit(queries.replace(features=np.asarray(mapped), feature_names=None))
        return self

    def predict(self, queries: Queries) -> np.ndarray:
        mapped = queries.features if self.features is None else self.features.transform(queries.features)
        return self.ranker.predict(queries.replace(features=np.asarray(mapped), feature_names=None))


def rankers(landmarks: int) -> dict[str, list[Callable[[], Chained]]]:
    """For each row of the table, what is chosen from."""

    def rbf(gamma: float) -> Any:
        return Nystroem(kernel="rbf", gamma=gamma, n_components=landmarks, random_state=0)

    def poly(degree: int) -> Any:
        return Nystroem(kernel="poly", gamma=1 / 46, degree=degree, n_components=landmarks, random_state=0)

    def spline(knots: int) -> Any:
        return make_pipeline(
            SplineTransformer(knots, degree=2, knots="quantile", include_bias=False), StandardScaler(with_std=False)
        )

    def each(maps: Iterator[Any], heads: list[Callable[[], Any]]) -> list[Callable[[], Chained]]:
        return [lambda make=make, head=head: Chained(make(), head()) for make in maps for head in heads]

    linear = [lambda: None]
    rbfs = [lambda g=g: rbf(g) for g in GAMMAS]
    polys = [lambda k=k: poly(k) for k in (2, 3)]
    splines = [lambda k=k: spline(k) for k in (3, 5)]
    ridge, margin = [RegressionRanker], [LargeMarginRanker]
    svm = [lambda lam=lam: PairwiseRanker(lam=lam) for lam in LAMS]
    bare = [lambda: LargeMarginRanker(w0="regression")]
    return {
        "linear, ridge": each(linear, ridge),
        "linear, RankSVM": each(linear, svm),
        BASE: each(linear, margin),
        "RBF, ridge": each(rbfs, ridge),
        "RBF, RankSVM": each(rbfs, svm),
        "RBF, large margin": each(rbfs, margin),
        "RBF, large margin from least squares": each(rbfs, bare),
        "polynomial, ridge": each(polys, ridge),
        "polynomial, large margin": each(polys, margin),
        "splines, ridge": each(splines, ridge),
        "splines, large margin": each(splines, margin),
    }


def values(ranker: Chained, queries: Queries) -> np.ndarray:
    return np.asarray(evaluate(queries, ranker.predict(queries), "nDCG@10", convention="burges").per_query("nDCG@10"))


def main() -> None:
    warnings.simplefilter("ignore")
    folder = Path(os.environ["RANKOPT_DATA"]) / "letor4-mq2008"
    parts = [read_svmlight(folder / f"S{i}.txt.gz") for i in (1, 2, 3)]
    landmarks = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    found: dict[str, np.ndarray] = {}
    rows = []
    for name, options in rankers(landmarks).items():
        began, tested = process_time(), []
        for i in range(3):
            one, other = (parts[j] for j in range(3) if j != i)
            judged = [
                np.mean([values(make().fit(seen), held).mean() for seen, held in ((one, other), (other, one))])
                for make in options
            ]
            ranker = options[int(np.argmax(judged))]().fit(concatenate([one, other]))
            tested.append(values(ranker, parts[i]))
        found[name] = np.concatenate(tested)
        rows.append((name, [part.mean() for part in tested], len(options), process_time() - began))
        print(name, [f"{part.mean():.4f}" for part in tested], f"{rows[-1][3]:.0f} s", file=sys.stderr, flush=True)
    print(f"{landmarks} landmarks\n\n| ranker | test NDCG@10 | by rotation | against {BASE} | p | choices | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name, means, count, seconds in rows:
        told = compare(found[name], found[BASE])
        apart = "" if name == BASE else f"{told.difference:+.4f}"
        p = "" if name == BASE else f"{told.p_randomization:.3f}"
        turns = " ".join(f"{mean:.4f}" for mean in means)
        print(f"| {name} | {np.mean(means):.4f} | {turns} | {apart} | {p} | {count} | {seconds:.0f} |")


if __name__ == "__main__":
    main()
