"""Which criterion to train [paper 4], and the smoothed measure.

In the tables of paper 4 documents are relevant or not (grade above 0), a third of the training queries is left out to
choose λ by the criterion that is trained, and queries without relevant documents are left out of the means.
p: paired randomization test over the test queries of all splits against the first row.
"""

from __future__ import annotations

import numpy as np

from benchmarks.cases import Run, case, ndcg, p_value, table, timed
from benchmarks.data import Split, folds, set_names, splits
from rankopt.data import Queries
from rankopt.measures import evaluate
from rankopt.rankers import LargeMarginRanker, RegressionRanker, SmoothRanker
from rankopt.scorers.linear import linear_scores

BOTH = ("MQ2008", "OHSUMED")
TESTS = ("AUC", "AP", "RR", "nDCG@10")
MIX = "AP + nDCG@10 + RR"
CRITERIA = (
    *((measure, "pairwise") for measure in ("AUC", "AP", "RR")), ("RR", "first-relevant"), ("nDCG@10", "pairwise"),
    ("nDCG", "pairwise"), (MIX, "pairwise"), (f"({MIX})(slack='shared')", "pairwise"),
    *((measure, "positional") for measure in ("AP", "RR", "nDCG@10", MIX)),
)  # fmt: skip


def binary_splits(name: str) -> list[Split]:
    def binary(queries: Queries) -> Queries:
        return queries.replace(relevance=(queries.relevance > 0).astype(float))

    return [Split(binary(split.train), binary(split.test)) for split in splits(name)]


@case()
def criteria(run: Run) -> None:
    """Test measures of every trained criterion, feature map and bound, λ chosen inside [paper 4, Figures 7 and 9]."""
    rows = [(m, f, bound) for bound in ("convex", "nonconvex") for m, f in CRITERIA]
    for name in set_names(run, BOTH):
        cut = binary_splits(name)
        print(f"\n{name}, relevant or not, {sum(len(split.test) for split in cut)} test queries")
        row = table("trained", "map", "bound", *TESTS, "λ", "at w0", "seconds")

        def fitted(measure: str, feature_map: str, bound: str, cut: list[Split] = cut) -> tuple[list, list, int]:
            values, lams, idle = [], [], 0
            for split in cut:
                if measure == "ridge":
                    own = RegressionRanker().fit(split.train)
                else:
                    inner = next(folds(split.train, 3))
                    own = LargeMarginRanker(measure, feature_map=feature_map, bound=bound, max_iter=300)
                    natural = own.objective(inner.train).lam
                    path = own.path(inner.train, lams=[size * natural for size in (10.0, 1.0, 0.1, 0.01)])
                    best = max(path.models, key=lambda model: model.score(inner.test)).lam_ / natural
                    lams.append(f"{best:g}")
                    own.lam = best * own.objective(split.train).lam
                    idle += own.fit(split.train).certificate_.at_start
                values.append(evaluate(split.test, own.predict(split.test.features), TESTS).values)
            found = np.concatenate(values, axis=1)
            return found[:, ~np.isnan(found).any(axis=0)].tolist(), lams, int(idle)

        first = None
        for key in [("ridge", "", ""), *run.size(rows, rows[:2])]:
            (values, lams, idle), seconds = run.results.timed(lambda key=key: fitted(*key), "criteria", name, *key)
            first = first or values
            marks = [p_value(own, other) for own, other in zip(values, first, strict=True)]
            cells = [f"{np.mean(own):.4f}" + (f" (p {p})" if p else "") for own, p in zip(values, marks, strict=True)]
            row(*key, *cells, ", ".join(lams), idle, f"{seconds:.0f}")


# The smoothed measure.

LONG = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125)
MARGIN = "LargeMarginRanker()"


def faint(queries: Queries, **options: object) -> SmoothRanker:
    """All bandwidths, a hundredth of the natural λ."""
    own = SmoothRanker(bandwidths=LONG, **options)
    return own.set_params(lam=0.01 * own.objective(queries).lam)


LEARNERS = {
    "ridge, the start": lambda train: RegressionRanker(),
    MARGIN: lambda train: LargeMarginRanker(),
    "SmoothRanker()": lambda train: SmoothRanker(),
    "bandwidths=4 ... 1/32": lambda train: SmoothRanker(bandwidths=LONG),
    "bandwidths=4 ... 1/32, lam=0.01 scale": faint,
    'bandwidths=4 ... 1/32, lam=0.01 scale, method="CG"': lambda train: faint(train, method="CG"),
}


def values(queries: Queries, w: np.ndarray) -> np.ndarray:
    return ndcg(queries, linear_scores(queries.features, w))


@case()
def smooth(run: Run) -> None:
    """SmoothRanker: training and test nDCG@10, p against LargeMarginRanker(), seconds by its."""
    for name in set_names(run, BOTH):
        row, rows, cut = table(name, "training", "test", "p", "time"), {}, splits(name)
        for label, make in LEARNERS.items():
            fits = [timed(lambda make=make, cut=cut: [make(split.train).fit(split.train) for split in cut])
                    for _ in range(run.size(4, 1))]  # fmt: skip
            models, seconds = fits[0][0], min(time for _, time in fits)
            train = np.mean([values(s.train, m.coef_).mean() for m, s in zip(models, cut, strict=True)])
            test = np.concatenate([values(s.test, m.coef_) for m, s in zip(models, cut, strict=True)])
            rows[label] = train, test, seconds
        for label, (train, test, seconds) in rows.items():
            p = p_value(test, rows[MARGIN][1])
            row(label, f"{train:.4f}", f"{test.mean():.4f}", p, f"{seconds / rows[MARGIN][2]:.2f}")
