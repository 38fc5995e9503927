"""What a kernel adds to a linear ranker on MQ2008: RBF by Nyström, splines, and the start that they need.

    RANKOPT_DATA=folder python benchmarks/kernels.py [landmarks]

Parts S1 to S3, two to learn from and the third to test on, three rotations. λ, γ, the degree and the knots are chosen
inside the two: fitted on each, judged on the other, nDCG@10 in the mean of both, then fitted on both. NDCG@10 of the
convention "burges" (gain 2^y - 1, log2(1 + rank), queries without relevant documents count 0, ties averaged). p: paired
randomisation over the 470 test queries against the linear large margin. Landmarks are drawn with seed 0, the best of
the seeds is not looked for. "ridge" is `RegressionRanker()`, its α by cross-validation over whole queries. Large-margin
rankers: nonconvex bound, decay power(0.5). Seconds: processor, choice and all, of one run on a machine shared with
others.
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
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from rankopt.data import KernelFeatures, Queries, concatenate, read_svmlight
from rankopt.measures import compare, evaluate
from rankopt.rankers import LargeMarginRanker, PairwiseRanker, RegressionRanker

LAMS = (1.0, 0.1, 0.01, 0.001)
GAMMAS = (0.01, 0.03, 0.1, 0.3, 1.0)


@dataclass
class Chained:
    """Features, then a ranker on them."""

    features: Any
    ranker: Any

    def fit(self, queries: Queries) -> Chained:
        mapped = queries.features if self.features is None else self.features.fit_transform(queries.features)
        self.ranker.fit(queries.with_(features=np.asarray(mapped), feature_names=None))
        return self

    def predict(self, queries: Queries) -> np.ndarray:
        mapped = queries.features if self.features is None else self.features.transform(queries.features)
        return self.ranker.predict(queries.with_(features=np.asarray(mapped), feature_names=None))


class FromAnother:
    """A large-margin ranker that starts from, and is pulled to, the weights of another."""

    def __init__(self, start: Any, lam: float) -> None:
        self.start, self.lam = start, lam

    def fit(self, queries: Queries) -> FromAnother:
        w0 = "zeros" if self.start is None else self.start.fit(queries).coef_
        self.ranker = LargeMarginRanker("nDCG@10", bound="nonconvex", lam=self.lam, w0=w0).fit(queries)
        return self

    def predict(self, queries: Queries) -> np.ndarray:
        return self.ranker.predict(queries)


def rankers(landmarks: int) -> dict[str, list[Callable[[], Chained]]]:
    """For each row of the table, what is chosen from."""

    def rbf(gamma: float) -> Any:
        return KernelFeatures("rbf", gamma=gamma, landmarks=landmarks)

    def poly(degree: int) -> Any:
        return KernelFeatures("poly", gamma=1 / 46, degree=degree, landmarks=landmarks)

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
    svm = [lambda lam=lam: PairwiseRanker(lam=lam) for lam in LAMS]
    from_svm = [lambda lam=lam: FromAnother(PairwiseRanker(lam=0.01), lam) for lam in LAMS]
    ridges = [RegressionRanker]
    from_ridge = [lambda lam=lam: FromAnother(RegressionRanker(), lam) for lam in LAMS]
    bare = [lambda lam=lam: FromAnother(RegressionRanker(0.0), lam) for lam in LAMS]
    return {
        "linear, ridge": each(linear, ridges),
        "linear, RankSVM": each(linear, svm),
        "linear, large margin from RankSVM": each(linear, from_svm),
        "linear, large margin from ridge": each(linear, from_ridge),
        "RBF, ridge": each(rbfs, ridges),
        "RBF, RankSVM": each(rbfs, svm),
        "RBF, large margin from ridge": each(rbfs, from_ridge),
        "RBF, large margin from least squares": each(rbfs, bare),
        "polynomial, large margin from ridge": each(polys, from_ridge),
        "splines, ridge": each(splines, ridges),
        "splines, large margin from ridge": each(splines, from_ridge),
    }


def values(ranker: Chained, queries: Queries) -> np.ndarray:
    return np.asarray(evaluate(queries, ranker.predict(queries), "nDCG@10", convention="burges").values_of("nDCG@10"))


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
    base = "linear, large margin from RankSVM"
    print(f"{landmarks} landmarks\n\n| ranker | test NDCG@10 | by rotation | against {base} | p | choices | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name, means, count, seconds in rows:
        told = compare(found[name], found[base])
        apart = "" if name == base else f"{told.difference:+.4f}"
        p = "" if name == base else f"{told.p_randomization:.3f}"
        turns = " ".join(f"{mean:.4f}" for mean in means)
        print(f"| {name} | {np.mean(means):.4f} | {turns} | {apart} | {p} | {count} | {seconds:.0f} |")


if __name__ == "__main__":
    main()
