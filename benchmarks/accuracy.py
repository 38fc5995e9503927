"""Accuracy of our rankers and of others on every data set at hand.

Whatever a learner chooses (a ridge, λ, leaves, rounds) it chooses inside the training queries of a split, by folds of
whole queries, and trains once more on all of them. nDCG@10 of each test query, gain 2^y - 1, queries without relevant
documents count 0, ties averaged. Trees: mean over `--seeds` seeds. p: paired randomization test over the test queries.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from statistics import mean
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from benchmarks.cases import Run, case, geometric_mean, ndcg, p_value, table, timed
from benchmarks.data import (
    SETS,
    Split,
    data_folder,
    folds,
    letor,
    mq2008,
    resampled,
    set_names,
    splits,
    validation_folds,
)
from rankopt.data import Queries, concatenate
from rankopt.data.normalization import METHODS, normalize
from rankopt.evaluation.comparison import compare
from rankopt.measures import evaluate
from rankopt.rankers import (
    BoostedRanker,
    DirectRanker,
    LargeMarginRanker,
    LossRanker,
    PairwiseRanker,
    RegressionRanker,
    SmoothRanker,
)

Learner = Callable[[Split, int], np.ndarray]
"""From a split and a seed to the scores of the test documents."""


def ranker(make: Callable[[int], Any]) -> Learner:
    return lambda split, seed: make(seed).fit(split.train).predict(split.test)


def ridge(split: Split, seed: int) -> np.ndarray:
    """scikit-learn's ridge on grades, α by folds."""

    def trained(train: Queries, alpha: float) -> Ridge:
        return Ridge(alpha, solver="cholesky").fit(train.features, train.relevance)

    def value(alpha: float) -> float:
        parts = folds(split.train, 4, seed)
        return mean(ndcg(part.test, trained(part.train, alpha).predict(part.test.features)).mean() for part in parts)

    return trained(split.train, max(np.logspace(-2, 4, 13), key=value)).predict(split.test.features)


def trees(name: str) -> Learner:
    def learn(split: Split, seed: int) -> np.ndarray:
        from benchmarks.trees import METHODS, choose_inside  # LightGBM and XGBoost are needed for these alone

        return choose_inside(METHODS[name], split, seed)

    return learn


LINEAR: dict[str, Learner] = {
    "LargeMarginRanker": ranker(lambda seed: LargeMarginRanker()),
    'LargeMarginRanker, lam="auto"': ranker(lambda seed: LargeMarginRanker(lam="auto")),
    "RegressionRanker": ranker(lambda seed: RegressionRanker()),
    "PairwiseRanker": ranker(lambda seed: PairwiseRanker()),
    "LargeMarginRanker, w0 RankSVM": ranker(lambda seed: LargeMarginRanker(w0="ranksvm")),
    "ridge (scikit-learn)": ridge,
}
OTHERS: dict[str, Learner] = {
    "SmoothRanker": ranker(lambda seed: SmoothRanker()),
    "DirectRanker": ranker(lambda seed: DirectRanker(random_state=seed)),
    'LossRanker("listnet")': ranker(lambda seed: LossRanker("listnet")),
    'LossRanker("listmle")': ranker(lambda seed: LossRanker("listmle")),
}
PEERS = ("lambdarank", "rank_xendcg")
TREES: dict[str, Learner] = {
    "BoostedRanker": ranker(lambda seed: BoostedRanker(random_state=seed, n_jobs=1)),
    **{name: trees(name) for name in PEERS},
    "rank:ndcg (XGBoost)": trees("rank:ndcg"),
    **({"YetiRank (CatBoost)": trees("YetiRank")} if find_spec("catboost") else {}),
}
RANKERS = LINEAR | OTHERS | TREES
MEASURES = ("nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "P@1", "P@3", "P@5", "P@10", "AP")


def test_values(run: Run, name: str, learners: dict[str, Learner], label: str) -> tuple[np.ndarray, float]:
    """Mean over the seeds of (measures, test queries) of a ranker on a set, and seconds a seed."""

    parts = splits(name)  # read before the clock starts

    def values(seed: int) -> list[list[float]]:
        found = [
            evaluate(part.test, learners[label](part, seed), MEASURES, convention="burges").values for part in parts
        ]
        return np.concatenate(found, axis=1).tolist()

    seeds = range(run.seeds) if label in TREES else [0]
    both = [run.results.timed(lambda seed=seed: values(seed), "test values", name, label, seed) for seed in seeds]
    return np.mean([value for value, _ in both], axis=0), mean(seconds for _, seconds in both)


@case()
def peers(run: Run) -> None:
    """All rankers of ours as they come, ridge, boosted trees: nDCG@10, mean rank, seconds, paired differences.

    p: against the better objective of LightGBM. Seconds: geometric mean over the sets, by those of the first ranker."""
    names, learners = set_names(run, (*SETS, "generated 21,000")), run.size(RANKERS, LINEAR)
    for learn in LINEAR.values():
        learn(splits(names[0])[0], 0)  # loads compiled code
    both = {(label, name): test_values(run, name, learners, label) for name in names for label in learners}
    found = {key: values[MEASURES.index("nDCG@10")] for key, (values, _) in both.items()}
    order = {name: sorted(learners, key=lambda label: -found[label, name].mean()) for name in names}
    first = next(iter(learners))
    row = table("", *(f"{name} ({found[first, name].size})" for name in names), "mean rank", "seconds")
    for label in learners:
        cells = []
        for name in names:
            own = found[label, name]
            p = ""
            if label not in PEERS and PEERS[0] in learners:
                p = ", p " + p_value(own, max((found[peer, name] for peer in PEERS), key=np.mean))
            cells.append(f"{own.mean():.4f} ± {own.std(ddof=1) / np.sqrt(own.size):.4f}{p}")
        ratio = geometric_mean([both[label, name][1] / both[first, name][1] for name in names])
        row(label, *cells, f"{mean(order[name].index(label) + 1 for name in names):.1f}", f"{ratio:.2g}")
    row = table(f"{first} less", *names)
    for label in learners:
        pairs = [(found[first, name], found[label, name]) for name in names]
        row(label, *(f"{(a - b).mean():+.4f} (p {p_value(a, b)})" if (a != b).any() else "0" for a, b in pairs))


@case(data=True, packages=["lightgbm"])
def readme(run: Run) -> None:
    """The table of README: ridge and LightGBM (parameters chosen), LargeMarginRanker (defaults); nDCG@10."""
    names = run.chosen(("MQ2008", "OHSUMED", "MSLR zscore"))
    learners = {
        "ridge (scikit-learn)": ridge,
        "LargeMarginRanker": LINEAR["LargeMarginRanker"],
        "LightGBM lambdarank": TREES["lambdarank"],
    }
    both = {(label, name): test_values(run, name, learners, label) for label in learners for name in names}
    found = {key: values[MEASURES.index("nDCG@10")] for key, (values, _) in both.items()}
    row = table("nDCG@10", *(f"{name} ({found['LightGBM lambdarank', name].size})" for name in names), "time")
    for label in learners:
        values = [found[label, name] for name in names]
        cells = [f"{own.mean():.3f} ± {own.std(ddof=1) / np.sqrt(own.size):.3f}" for own in values]
        ratio = mean(both[label, name][1] / both["LightGBM lambdarank", name][1] for name in names)
        row(label, *cells, f"{ratio:.2g}")
    for label in ("ridge (scikit-learn)", "LightGBM lambdarank"):
        marks = [p_value(found["LargeMarginRanker", name], found[label, name]) for name in names]
        print(f"p of LargeMarginRanker against {label}: {', '.join(marks)}")


@case()
def few_queries(run: Run) -> None:
    """Linear rankers with 13, 50, 100 and 300 training queries drawn without replacement."""
    row = table("set, queries", *LINEAR)
    for name in set_names(run):
        for size in run.size((13, 50, 100, 300), (5,)):
            if size >= len(splits(name)[0].train):
                continue
            draws = run.size(max(-(-20 // len(splits(name))), 4), 2)
            drawn = [resampled(split, size, draw) for split in splits(name) for draw in range(draws)]
            values = [
                run.results.get(lambda own=own, drawn=drawn: [float(ndcg(o.test, own(o, 0)).mean()) for o in drawn],
                                "few queries", name, size, draws, label)
                for label, own in LINEAR.items()
            ]  # fmt: skip
            marks = [p_value(own, values[0]) for own in values]
            cells = [f"{mean(own):.4f}" + (f" (p {p})" if p else "") for own, p in zip(values, marks, strict=True)]
            row(f"{name}, {size}", *cells)


@case(data=True)
def ohsumed(run: Run) -> None:
    """OHSUMED (LETOR 2.0, five folds) next to the published rows, convention "letor2".

    Features as given and divided by their sum within the query, in units of their deviation. w₀: ridge regression on
    the grades [ORM, section 6.3], α = .3, 1, 3 times the documents. The validation part (21 queries) rates models by
    the mean of NDCG@1..10 and MAP. "chosen" is the best, "mean of ten" the mean of the ten best in units of the spread
    of their scores. The grid was narrowed by means over the five validation parts (some 600 settings), which together
    hold all 106 queries; the test parts were looked at nine times, all rows at once."""
    measures, shown = [*(f"nDCG@{k}" for k in range(1, 11)), "AP"], [0, 2, 4, 9, 10]
    heads = ("NDCG@1", "NDCG@3", "NDCG@5", "NDCG@10", "MAP")
    margins = [("nonconvex", c, lam) for c in ("linear", "power(0.5)") for lam in (10.0, 1.0, 0.1)]
    margins = run.size([*margins, *((bound, "power(0.5)", 1000.0) for bound in ("tie-aware", "convex"))], margins[:1])
    kinds = ("given", "sum")

    def values(part: dict, models: list) -> np.ndarray:
        scores = np.mean([part[kind].features @ weights for kind, _, weights in models], axis=0)
        return np.asarray(evaluate(part["given"], scores, measures, convention="letor2").values)

    def trained(train: dict) -> tuple[list, list, list, list]:
        def model(kind: str, label: str, weights: np.ndarray) -> tuple:
            scores = train[kind].features @ weights
            return kind, label, weights / np.mean([scores[a:b].std() for a, b in pairwise(train[kind].offsets)])

        plain = RegressionRanker(0.0, intercept="all").fit(train["given"]).coef_
        pairs, ridges, large = [], [], []
        for kind in kinds:
            deviation = np.asarray(train[kind].features).std(axis=0)
            unit = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-12)
            queries = train[kind].replace(features=train[kind].features * unit)
            for lam in (1.0, 0.1, 0.01, 0.001, 0.0001):
                weights = PairwiseRanker(lam=lam).fit(queries).coef_
                pairs.append(model(kind, f"{kind}, RankSVM, λ = {lam:g}", weights * unit))
            for alpha in (0.3, 1.0, 3.0):
                w0 = RegressionRanker(alpha=alpha * queries.n_documents, intercept="all").fit(queries).coef_
                ridges.append(model(kind, f"{kind}, ridge {alpha:g}", w0 * unit))
                for bound, c, lam in margins:
                    w = LargeMarginRanker(bound=bound, position_weights=c, lam=lam, w0=w0).fit(queries).coef_
                    moved = f"moved {np.linalg.norm(w - w0) / np.linalg.norm(w0):.1%} from w₀"
                    label = f"{kind}, w₀ ridge {alpha:g}, {bound}, {c}, λ = {lam:g}, {moved}"
                    large.append(model(kind, label, w * unit))
        return [model("given", "least squares", plain)], pairs, ridges, large

    parts = [{"given": part, "sum": normalize(part, "sum")} for part in letor("letor2-ohsumed", range(1, 6))]
    found, labels = defaultdict(list), []
    for fold in range(run.size(5, 1)):
        train = {kind: concatenate([parts[(fold + i) % 5][kind] for i in range(3)]) for kind in kinds}
        validation, test = parts[(fold + 3) % 5], parts[(fold + 4) % 5]
        plain, pairs, ridges, large = trained(train)
        for models in (pairs, large):
            models.sort(key=lambda one: -values(validation, [one]).mean())
        best_ridge = max(ridges, key=lambda one: values(validation, [one]).mean())
        for name, models in {
            "least squares": plain, "RankSVM, chosen": pairs[:1], "ridge regression, chosen": [best_ridge],
            "ridge regression, mean of all 6": ridges, "large margin, chosen": large[:1],
            "large margin, mean of ten": large[:10], f"large margin, mean of all {len(large)}": large,
        }.items():  # fmt: skip
            found[name].append(values(test, models))
        labels.append(large[0][1])
    published: dict[str, np.ndarray] = {}
    with open(data_folder() / "reference-tables" / "letor2_ohsumed_reference_long.csv", newline="") as file:
        for line in csv.DictReader(file):
            if (line["split"], line["fold"]) == ("test", "mean") and line["measure"] in heads:
                own = published.setdefault(line["algorithm"], np.zeros(len(heads)))
                own[heads.index(line["measure"])] = float(line["value"])
    top = np.max(list(published.values()), axis=0)
    row = table("test, mean of 5 folds", *heads)
    for name, own in published.items():
        row(f"{name} (published)", *(f"{value:.4f}" for value in own))
    for name, rows in found.items():
        own = np.mean([one.mean(axis=1) for one in rows], axis=0)[shown]
        row(name, *(f"**{v:.4f}**" if v > most else f"{v:.4f}" for v, most in zip(own, top, strict=True)))
    print("\nBold: above every published row. Chosen on validation, fold by fold: " + "; ".join(labels))
    row = table("", "against", "measure", "difference", "95% interval", "p, randomization")
    for ours in ("large margin, chosen", "large margin, mean of ten"):
        for other in list(found)[:4]:
            for measure, place in (("NDCG@10", 9), ("MAP", 10)):
                compared = compare(*(np.concatenate([one[place] for one in found[name]]) for name in (ours, other)))
                low, high = compared.interval
                interval = f"{low:+.4f} to {high:+.4f}"
                row(ours, other, measure, f"{compared.difference:+.4f}", interval, f"{compared.p_randomization:.3f}")


@case(data=True)
def objective(run: Run) -> None:
    """Objective, proven bound, gap, steps and seconds on MQ2008 by bound and λ; position weights linear."""
    queries = concatenate(mq2008())
    LargeMarginRanker(max_iter=1).fit(queries)  # compiles
    columns = ("J", "proven bound", "gap", "gap, %", "kind", "rounds", "steps", "seconds", "in argmax", "‖w - w₀‖")
    row = table("bound", "λ", *columns, "train nDCG@10")
    for bound, w0 in (("convex", None), ("nonconvex", "regression")):
        for lam in run.size((1.0, 1e-2, 1e-4), (1.0,)):
            own = LargeMarginRanker(bound=bound, position_weights="linear", lam=lam, w0=w0)
            _, seconds = timed(lambda own=own: own.fit(queries))
            proof, last = own.certificate_, own.history_[-1]
            row(
                bound, f"{lam:g}", f"{proof.primal:.6f}", f"{proof.bound:.6f}", f"{proof.gap:.1e}",
                f"{100 * proof.relative_gap:.3f}", proof.kind, max(last.round, 1), own.n_iter_, f"{seconds:.1f}",
                f"{last.seconds_argmax:.1f}", f"{np.linalg.norm(own.coef_ - own.w0_):.3g}",
                f"{evaluate(queries, own.predict(queries), 'nDCG@10').mean():.4f}",
            )  # fmt: skip


@case()
def normalization(run: Run) -> None:
    """Features normalized within the query, every method; p against the features as given, convention "default"."""
    row = table("set", "ranker", "as given", *METHODS)
    for name in set_names(run, ("MSLR", "LightGBM", "MQ2008", "Les Miserables", "digits")):
        rankers = {"ridge": RegressionRanker, "RankSVM": PairwiseRanker, "large margin": LargeMarginRanker}
        for label, kind in rankers.items():
            values = {}
            for method in (None, *METHODS):
                fitted = [(kind(normalize=method).fit(split.train), split.test) for split in splits(name)]
                parts = [evaluate(test, own.predict(test), "nDCG@10").per_query() for own, test in fitted]
                values[method] = np.concatenate(parts)
            both = [compare(values[method], values[None]) for method in METHODS]
            cells = [f"{one.mean_a:.4f} ({one.p_randomization:.3f})" for one in both]
            row(name, label, f"{np.nanmean(values[None]):.4f}", *cells)


@case(packages=["lightgbm"])
def missing(run: Run) -> None:
    """30% of the values removed at random, or of the columns of each query: linear with indicators, trees, LightGBM."""
    from benchmarks.trees import METHODS as GROWN

    peer = GROWN["lambdarank"]
    learners: dict[str, Learner] = {
        "linear": ranker(lambda seed: LargeMarginRanker(missing="indicator")),
        "trees": ranker(lambda seed: BoostedRanker(n_estimators=100, random_state=seed)),
        "lambdarank": lambda split, seed: peer(split.train, split.test, False, 8, 100, seed),
    }

    def without(queries: Queries, how: str, rng: np.random.Generator) -> Queries:
        rows, d = queries.features.shape
        removed = np.zeros((rows, d), dtype=bool)
        if how == "at random":
            removed = rng.random((rows, d)) < 0.3
        elif how == "by column":
            removed = (rng.random((len(queries), d)) < 0.3)[queries.query_of(np.arange(rows))]
        return queries.replace(features=np.where(removed, np.nan, queries.features))

    row = table("set", "removed", *learners)
    for name in set_names(run, ("MQ2008", "OHSUMED", "LightGBM", "Les Miserables")):
        for how in ("nothing", "at random", "by column"):
            rng = np.random.default_rng(run.seed)
            parts = [Split(without(one.train, how, rng), without(one.test, how, rng)) for one in splits(name)]

            def values(learn: Learner, parts: list[Split] = parts) -> list:
                return np.concatenate([ndcg(part.test, learn(part, run.seed)) for part in parts]).tolist()

            found = [run.results.get(partial(values, learn), name, how, label) for label, learn in learners.items()]
            row(name, how, *(f"{np.mean(one):.4f} ± {np.std(one) / len(one) ** 0.5:.4f}" for one in found))


@case(data=True)
def kernels(run: Run) -> None:
    """RBF and polynomial kernels (Nyström) and splines before a linear ranker on MQ2008.

    Parameters are chosen inside the two training parts: fitted on each, judged on the other. One seed of landmarks."""
    count = run.size(600, 50)
    rbf = [Nystroem(kernel="rbf", gamma=g, n_components=count, random_state=0) for g in (0.01, 0.03, 0.1, 0.3)]
    poly = [Nystroem(kernel="poly", gamma=1 / 46, degree=d, n_components=count, random_state=0) for d in (2, 3)]
    spline = [
        make_pipeline(SplineTransformer(knots, degree=2, knots="quantile", include_bias=False),
                      StandardScaler(with_std=False))
        for knots in (3, 5)
    ]  # fmt: skip
    svm = [PairwiseRanker(lam=lam) for lam in (1.0, 0.1, 0.01, 0.001)]
    large, least_w0 = [LargeMarginRanker()], [LargeMarginRanker(w0="regression")]
    options = {
        "linear, large margin": ([None], large), "linear, ridge": ([None], [RegressionRanker()]),
        "linear, RankSVM": ([None], svm), "RBF, ridge": (rbf, [RegressionRanker()]), "RBF, RankSVM": (rbf, svm),
        "RBF, large margin": (rbf, large), "RBF, large margin from least squares": (rbf, least_w0),
        "polynomial, ridge": (poly, [RegressionRanker()]), "polynomial, large margin": (poly, large),
        "splines, ridge": (spline, [RegressionRanker()]), "splines, large margin": (spline, large),
    }  # fmt: skip
    options = run.size(options, {name: options[name] for name in ("linear, large margin", "splines, ridge")})

    def values(features: Any, head: Any, train: Queries, test: Queries) -> np.ndarray:
        if features is not None:
            features = clone(features).fit(train.features)
            train, test = (
                part.replace(features=np.asarray(features.transform(part.features)), feature_names=None)
                for part in (train, test)
            )
        return ndcg(test, clone(head).fit(train).predict(test))

    parts, base = mq2008(), None
    row = table("ranker", "test NDCG@10", "by rotation", "against linear, large margin", "p", "choices", "seconds")
    for name, (maps, heads) in options.items():
        choices = [(features, head) for features in maps for head in heads]

        def tested(choices: list = choices) -> list[np.ndarray]:
            found = []
            for i in range(3):
                one, other = (parts[j] for j in range(3) if j != i)
                halves = ((one, other), (other, one))
                best = max(choices, key=lambda pair: np.mean([values(*pair, *half).mean() for half in halves]))
                found.append(values(*best, concatenate([one, other]), parts[i]))
            return found

        found, seconds = timed(tested)
        own, turns = np.concatenate(found), [f"{part.mean():.4f}" for part in found]
        base = own if base is None else base
        means = np.mean([part.mean() for part in found])
        row(name, f"{means:.4f}", " ".join(turns), f"{(own - base).mean():+.4f}", p_value(own, base, 3),
            len(choices), f"{seconds:.0f}")  # fmt: skip


@case()
def sparse_paths(run: Run) -> None:
    """Features left and nDCG@10 along a path of penalty="l1" against "l2", λ by validation; p over all test queries."""

    def values(model: Any, queries: Queries) -> np.ndarray:
        return evaluate(queries, model.predict(queries), "nDCG@10").per_query()

    def best(path: Any, validation: Queries) -> Any:
        return max(path, key=lambda model: np.nanmean(values(model, validation)))

    rankers = {
        "LargeMarginRanker": LargeMarginRanker(position_weights="power(0.5)", w0="regression", time_limit=30),
        "PairwiseRanker": PairwiseRanker("nDCG@10", time_limit=30),
    }
    count, dense = run.size(8, 3), np.logspace(1, -3, run.size(5, 2))
    for label, own in rankers.items():
        for name in set_names(run, ("MQ2008", "OHSUMED")):
            rows, chosen, other, kept, times = [[] for _ in range(count)], [], [], [], ([], [])
            for train, validation, test in validation_folds(name):
                l1 = clone(own).set_params(penalty="l1")
                path, seconds = timed(lambda l1=l1, train=train: l1.path(train, lams=count))
                times[0].append(seconds)
                for row_, model in zip(rows, path, strict=True):
                    left, gap = int(model.get_support().sum()), model.certificate_.relative_gap
                    row_.append((model.lam_, left, np.nanmean(values(model, test)), gap, model.n_iter_))
                model = best(path, validation)
                chosen.append(values(model, test))
                kept.append(model.get_support().sum())
                path, seconds = timed(lambda own=own, train=train: own.path(train, lams=dense))
                times[1].append(seconds)
                other.append(values(best(path, validation), test))
            print(f"\n### {name}, {label}, {train.n_features} features")
            row = table("λ", "features left", "nDCG@10 on test", "largest gap", "steps")
            for cells in rows:
                lam, left, value, _, steps = np.mean(cells, axis=0)
                row(f"{lam:.2g}", f"{left:.1f}", f"{value:.4f}", f"{max(c[3] for c in cells):.1e}", f"{steps:.0f}")
            l1_values, l2_values = np.concatenate(chosen), np.concatenate(other)
            p = p_value(l1_values, l2_values, 3)
            row("l1, λ by validation", f"{np.mean(kept):.1f}", f"{np.nanmean(l1_values):.4f}", "",
                f"p {p}, {np.mean(times[0]):.1f} s")  # fmt: skip
            row("l2, λ by validation", "all", f"{np.nanmean(l2_values):.4f}", "", f"{np.mean(times[1]):.1f} s")
