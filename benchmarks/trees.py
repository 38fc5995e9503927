"""Trees on the bound next to LightGBM, XGBoost and CatBoost.

Every peer chooses inside the training queries of a split: for 4, 8, 16 leaves it is grown for 200 rounds (600 with
20,000 documents) on two thirds and judged after each round by nDCG@10 on the other third, three times. Leaves and round
are taken where the mean of the three curves (each value the mean of nine neighbors) is best. Learning rate .1, .7 of
the features a tree, LightGBM: 20 documents a leaf; one thread. The case `defaults` has its own validation queries.
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


def query_numbers(queries: Queries) -> np.ndarray:
    return np.repeat(np.arange(len(queries)), np.diff(queries.offsets))


def by_xgboost(train: Queries, test: Queries, curve: bool, leaves: int, rounds: int, seed: int) -> np.ndarray:
    def data(queries: Queries) -> xgboost.DMatrix:
        return xgboost.DMatrix(queries.features, queries.relevance, qid=query_numbers(queries))

    options = BOTH | {
        "objective": "rank:ndcg", "eval_metric": "ndcg@10", "max_leaves": leaves, "max_depth": 0, "nthread": 1,
        "grow_policy": "lossguide", "tree_method": "hist", "seed": seed, "verbosity": 0,
    }  # fmt: skip
    seen: dict = {}
    watch = {"evals": [(data(test), "held")], "evals_result": seen} if curve else {}
    grown = xgboost.train(options, data(train), rounds, verbose_eval=False, **watch)
    return np.array(seen["held"]["ndcg@10"]) if curve else grown.predict(data(test)).astype(float)


def by_catboost(train: Queries, test: Queries, curve: bool, leaves: int, rounds: int, seed: int) -> np.ndarray:
    from catboost import CatBoost, Pool

    metric = "NDCG:top=10;type=Exp"
    options = {
        "loss_function": "YetiRank", "eval_metric": metric, "depth": leaves.bit_length() - 1, "learning_rate": 0.1,
        "rsm": 0.7, "iterations": rounds, "use_best_model": False, "thread_count": 1, "random_seed": seed,
        "verbose": False, "allow_writing_files": False,
    }  # fmt: skip
    own, held = (Pool(one.features, one.relevance, group_id=query_numbers(one)) for one in (train, test))
    grown = CatBoost(options).fit(own, eval_set=held if curve else None)
    return np.array(grown.evals_result_["validation"][metric]) if curve else grown.predict(held)


METHODS = {
    "lambdarank": by_lightgbm("lambdarank"),
    "rank_xendcg": by_lightgbm("rank_xendcg"),
    "rank:ndcg": by_xgboost,
    "YetiRank": by_catboost,
}
"""Scores of the test queries, or (curve) their nDCG@10 after each round."""


def choose_inside(learn: Callable[..., np.ndarray], split: Split, seed: int) -> np.ndarray:
    """Scores of the test queries; leaves and rounds are chosen inside the training queries."""
    candidates, rounds = [], ROUNDS if split.train.n_documents < 20_000 else 3 * ROUNDS
    for leaves in LEAVES:
        curves = [learn(part.train, part.test, True, leaves, rounds, seed) for part in folds(split.train, 3, seed)]
        along = np.pad(np.mean(curves, axis=0), WIDE // 2, mode="edge")
        smooth = np.convolve(along, np.ones(WIDE) / WIDE, "valid")
        candidates.append((smooth.max(), leaves, int(smooth.argmax()) + 1))
    _, leaves, best = max(candidates)
    return learn(split.train, split.test, False, leaves, best, seed)


def with_validation(name: str) -> list[tuple[Queries, Queries, Queries]]:
    """(train, validation, test): official parts of OHSUMED, else a fourth of the training queries for validation.

    LightGBM: five folds of all queries, because the one test part has 50."""
    if name == "OHSUMED":
        return [tuple(ohsumed_fold(fold, "train", "vali", "test")) for fold in range(1, 6)]
    parts = splits(name)
    if name == "LightGBM":
        (one,) = parts
        test = one.test.replace(query_ids=tuple(f"test {number}" for number in one.test.query_ids))
        parts = [*folds(concatenate([one.train, test]), 5)]
    both = [(next(folds(split.train, 4)), split.test) for split in parts]
    return [(inner.train, inner.test, test) for inner, test in both]


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
    small = ["MQ2008", "OHSUMED", "MSLR", "LightGBM", "digits"]
    large = [f"generated {rows}" for rows in ("21,000", "45,000", "90,000", "300,000")]
    names = run.size(small + large, ["generated 1,200"])
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
