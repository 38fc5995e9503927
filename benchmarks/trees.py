"""Trees on the bound next to LightGBM and XGBoost.

Every learner chooses inside the training queries of a split: for 4, 8, 16 leaves it is grown for 200 rounds on two
thirds and judged after each round by nDCG@10 on the other third, three times. Leaves and round are taken where the mean
of the three curves (each value the mean of nine neighbors) is best. Peers: learning rate .1, 20 documents a leaf, .7 of
the features a tree; `BoostedRanker`: its defaults. One thread. The case `defaults` has its own validation queries.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import process_time
from typing import Any

import lightgbm
import numpy as np
import xgboost

from benchmarks.cases import Run, case, ndcg, table
from benchmarks.data import (
    BUNDLED,
    SETS,
    Split,
    concatenate,
    folds,
    mq2008,
    ohsumed_fold,
    splits,
)
from rankopt.boosting import boosting_objective
from rankopt.data import Queries
from rankopt.rankers import BoostedRanker

QUIET = {"num_threads": 1, "verbosity": -1, "deterministic": True, "force_col_wise": True}
BOTH = {"learning_rate": 0.1, "colsample_bytree": 0.7}
LEAVES, ROUNDS, WIDE = (4, 8, 16), 200, 9


def lightgbm_data(queries: Queries, **options: Any) -> lightgbm.Dataset:
    return lightgbm.Dataset(queries.features, queries.relevance, group=np.diff(queries.offsets), **options)


def by_lightgbm(objective: str) -> Callable[..., np.ndarray]:
    def learn(train: Queries, test: Queries, curve: bool, leaves: int, rounds: int, seed: int) -> np.ndarray:
        options = BOTH | QUIET | {
            "objective": objective, "metric": "ndcg", "eval_at": [10], "num_leaves": leaves, "min_child_samples": 20,
            "seed": seed,
        }  # fmt: skip
        own, seen = lightgbm_data(train), {}
        if not curve:
            return lightgbm.train(options, own, rounds).predict(test.features)
        held = [lightgbm_data(test, reference=own)]
        lightgbm.train(options, own, rounds, valid_sets=held, callbacks=[lightgbm.record_evaluation(seen)])
        return np.array(seen["valid_0"]["ndcg@10"])

    return learn


def by_xgboost(train: Queries, test: Queries, curve: bool, leaves: int, rounds: int, seed: int) -> np.ndarray:
    def data(queries: Queries) -> xgboost.DMatrix:
        qid = np.repeat(np.arange(len(queries)), np.diff(queries.offsets))
        return xgboost.DMatrix(queries.features, queries.relevance, qid=qid)

    options = BOTH | {
        "objective": "rank:ndcg", "eval_metric": "ndcg@10", "max_leaves": leaves, "max_depth": 0, "nthread": 1,
        "grow_policy": "lossguide", "tree_method": "hist", "seed": seed, "verbosity": 0,
    }  # fmt: skip
    seen: dict = {}
    watch = {"evals": [(data(test), "held")], "evals_result": seen} if curve else {}
    grown = xgboost.train(options, data(train), rounds, verbose_eval=False, **watch)
    return np.array(seen["held"]["ndcg@10"]) if curve else grown.predict(data(test)).astype(float)


def by_us(**options: Any) -> Callable[..., np.ndarray]:
    def learn(train: Queries, test: Queries, curve: bool, leaves: int, rounds: int, seed: int) -> np.ndarray:
        own = BoostedRanker(num_leaves=leaves, n_estimators=rounds, random_state=seed, n_jobs=1, **options)
        if curve:
            own.set_params(early_stopping=rounds).fit(train, eval_set=test)
            return np.array(own.evals_result_["eval_set"]["nDCG@10"])
        return own.fit(train).predict(test.features)

    return learn


METHODS = {
    "BoostedRanker": by_us(),
    "BoostedRanker(n_bags=1)": by_us(n_bags=1),
    "lambdarank": by_lightgbm("lambdarank"),
    "rank_xendcg": by_lightgbm("rank_xendcg"),
    "rank:ndcg": by_xgboost,
}
"""Scores of the test queries, or (curve) their nDCG@10 after each round."""


def choose_inside(learn: Callable[..., np.ndarray], split: Split, seed: int, rounds: int = ROUNDS) -> np.ndarray:
    """Scores of the test queries; leaves and rounds are chosen inside the training queries."""
    candidates = []
    for leaves in LEAVES:
        curves = [learn(part.train, part.test, True, leaves, rounds, seed) for part in folds(split.train, 3, seed)]
        along = np.pad(np.mean(curves, axis=0), WIDE // 2, mode="edge")
        smooth = np.convolve(along, np.ones(WIDE) / WIDE, "valid")
        candidates.append((smooth.max(), leaves, int(smooth.argmax()) + 1))
    _, leaves, best = max(candidates)
    return learn(split.train, split.test, False, leaves, best, seed)


def with_validation(name: str) -> list[tuple[Queries, Queries, Queries]]:
    """(train, validation, test): official parts of OHSUMED, else a fourth of the training queries for validation."""
    if name == "OHSUMED":
        return [tuple(ohsumed_fold(fold, "train", "vali", "test")) for fold in range(1, 6)]
    parts = [generated(name)] if name.startswith("generated") else splits(name)
    both = [(next(folds(split.train, 4)), split.test) for split in parts]
    return [(inner.train, inner.test, test) for inner, test in both]


def generated(name: str) -> Split:
    """Queries of 60 documents; 40 features, ten log-normal; products, |x|, thresholds, noise of deviation 1."""
    queries = int(name.split()[1].replace(",", "")) // 60
    random = np.random.default_rng(queries)
    X = random.normal(size=(queries, 60, 40)) + random.normal(size=(queries, 1, 40)) / 2
    X[..., 30:] = np.exp(X[..., 30:])
    x = np.moveaxis(X, 2, 0)
    worth = 0.4 * (x[0] - x[1] + x[2]) + x[4] * x[5] + x[6] * x[7] + np.abs(x[8]) + (x[9] > 0.5) + (x[10] > x[11])
    worth += 0.5 * np.log1p(x[30]) - 0.4 * np.log1p(x[31]) * (x[12] > 0) + random.normal(size=worth.shape)
    grades = np.digitize(worth, np.quantile(worth, [0.6, 0.8, 0.92, 0.98]))
    every = Queries.from_arrays(X.reshape(-1, 40), grades.ravel(), group=[60] * queries)
    return Split(every.select(np.arange(queries * 4 // 5)), every.select(np.arange(queries * 4 // 5, queries)))


def by_default(objective: str | None, train: Queries, held: Queries, test: Queries, seed: int) -> np.ndarray:
    """Scores of the test queries; the number of trees, at most 1,000, is chosen on `held`. LightGBM: 8 leaves."""
    if objective is None:
        return BoostedRanker(random_state=seed, n_jobs=1).fit(train, eval_set=held).predict(test)
    options = BOTH | QUIET | {"objective": objective, "metric": "ndcg", "eval_at": [10], "num_leaves": 8, "seed": seed}
    own, stop = lightgbm_data(train), lightgbm.early_stopping(100, verbose=False)
    grown = lightgbm.train(options, own, 1000, valid_sets=[lightgbm_data(held, reference=own)], callbacks=[stop])
    return grown.predict(test.features)


@case()
def defaults(run: Run) -> None:
    """`BoostedRanker()` next to both objectives of LightGBM, each stopped on the same validation queries.

    Difference: to the better of the two in the mean of all test queries, with its standard error."""
    names = run.size(["MQ2008", "OHSUMED", "MSLR", "LightGBM", "digits", "generated 21,000", "generated 90,000"],
                     ["generated 1,200"])  # fmt: skip
    learners = {"BoostedRanker": None, "lambdarank": "lambdarank", "rank_xendcg": "rank_xendcg"}
    row = table("set", "test queries", *learners, "difference")
    for name in run.chosen(names):
        if name in SETS and name not in BUNDLED and "RANKOPT_DATA" not in os.environ:
            continue

        def values(label: str, seed: int, name: str = name) -> list[float]:
            return np.concatenate(
                [ndcg(part[2], by_default(learners[label], *part, seed)) for part in with_validation(name)]
            ).tolist()

        found = {
            label: np.mean(
                [run.results.get(lambda label=label, seed=seed: values(label, seed), "defaults", name, label, seed)
                 for seed in range(run.seeds)], axis=0,
            )
            for label in learners
        }  # fmt: skip
        ours, *theirs = found.values()
        apart = ours - max(theirs, key=np.mean)
        error = apart.std(ddof=1) / np.sqrt(apart.size)
        row(name, ours.size, *(f"{one.mean():.4f}" for one in found.values()), f"{apart.mean():+.4f} ± {error:.4f}")


class TimedObjective:
    """An objective and the processor seconds of all its calls; LightGBM copies what it is given."""

    def __init__(self) -> None:
        self.objective, self.seconds = boosting_objective("nDCG@10"), 0.0

    def __call__(self, scores: np.ndarray, data: lightgbm.Dataset) -> Any:
        began = process_time()
        found = self.objective(scores, data)
        self.seconds += process_time() - began
        return found

    def __deepcopy__(self, memo: dict) -> TimedObjective:
        return self


@case()
def rounds(run: Run) -> None:
    """A round of boosting on the bound next to one with lambdarank, the same trees; processor milliseconds."""
    count, turns = run.size(60, 3), run.size(7, 1)
    rng, queries = np.random.default_rng(0), run.size(200, 20)
    X = rng.normal(size=(queries * 120, 136)).astype(np.float32)
    worth = X[:, :10].sum(axis=1) + np.abs(X[:, 10]) * 2 + 3 * rng.normal(size=len(X))
    grades = np.digitize(worth, np.quantile(worth, np.cumsum([0.52, 0.32, 0.13, 0.02])))
    data = {"generated, shape of MSLR": Queries.from_arrays(X, grades, group=[120] * queries)}
    if "RANKOPT_DATA" in os.environ and not run.quick:
        data["MQ2008, S1 and S2"] = concatenate(mq2008((1, 2)))

    def grown(objective: Any, own: lightgbm.Dataset, leaves: int, rounds: int) -> float:
        options = QUIET | {"objective": objective, "num_leaves": leaves, "min_data_in_leaf": 20, "metric": "None"}
        began = process_time()
        lightgbm.train(options, own, rounds)
        return 1e3 * (process_time() - began) / rounds

    row = table("data", "leaves", "lambdarank, ms", "on the bound, ms", "of which ours", "ratio")
    for name, part in data.items():
        params = {"verbosity": -1, "min_data_in_leaf": 20}
        own = lightgbm_data(part, free_raw_data=False, params=params).construct()
        grown(TimedObjective(), own, 8, 3)  # compiles
        for leaves in (8, 31):
            theirs, ours, inside = [], [], []
            for _ in range(turns):
                theirs.append(grown("lambdarank", own, leaves, count))
                objective = TimedObjective()
                ours.append(grown(objective, own, leaves, count))
                inside.append(1e3 * objective.seconds / count)
            row(name, leaves, *(f"{min(times):.2f}" for times in (theirs, ours, inside)),
                f"{min(ours) / min(theirs):.2f}")  # fmt: skip
