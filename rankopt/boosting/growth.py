"""Boosting rounds of LightGBM on our objective, early stopping on queries, and progress on a terminal.

LightGBM (extra `boosting`) is imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.boosting.objective import BoostingData, BoostingMetric, BoostingObjective
from rankopt.boosting.tree_text import joined, text_of
from rankopt.data.canonical_order import Arrangement
from rankopt.data.validation import taken
from rankopt.options import load_package
from rankopt.rankers.run import shown


def lightgbm() -> Any:
    return load_package("lightgbm", "boosting")


def table(features: Any) -> Any:
    """The features as an array or a sparse matrix: LightGBM knows no sparse arrays. Nothing is copied."""
    if not hasattr(features, "tocsr"):
        return features
    from scipy.sparse import csr_matrix

    return csr_matrix(features)


OF_DATA = {"verbosity": -1, "feature_pre_filter": False}
"""Features that no tree can split by now stay: that none is left is an error of LightGBM's."""

Report = Callable[[int, float | None], None]
"""Report of a round: its number from 1, and the measure on the eval_set if there is one."""


@dataclass(frozen=True)
class Growth:
    """rounds: trees, one a round. patience: rounds without a better measure on the evaluation queries after which it
    ends. monotone: a sign for each feature, or empty. threads: 0 leaves their number to LightGBM. categorical: the
    features whose numbers are codes of categories. The rest as LightGBM calls it."""

    rounds: int
    learning_rate: float
    num_leaves: int
    min_child_samples: int
    colsample_bytree: float
    patience: int
    monotone: tuple[int, ...] = ()
    threads: int = 0
    categorical: tuple[int, ...] = ()

    def parameters(self, seed: int) -> dict[str, Any]:
        """Parameters of LightGBM. Sums are taken feature by feature: bit-identical on any number of threads."""
        return {
            "objective": "none",
            "metric": "None",
            "learning_rate": float(self.learning_rate),
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": self.min_child_samples,
            "feature_fraction": float(self.colsample_bytree),
            "seed": seed,
            "num_threads": self.threads,
            "deterministic": True,
            "force_col_wise": True,
            "verbosity": -1,
        } | ({"monotone_constraints": list(self.monotone)} if self.monotone else {})


@dataclass(frozen=True, eq=False)
class Member:
    """A model whose scores are averaged with those of others: its objective, the queries that it is grown on, those
    that it is evaluated on (or None), and the text of the trees that it continues (or an empty one)."""

    objective: BoostingObjective
    train: Arrangement
    evaluation: Arrangement | None
    init: str = ""


def grow(
    members: Sequence[Member], growth: Growth, metric: BoostingMetric, report: Report
) -> tuple[list[str], int, list[float], bool]:
    """The text of the trees of each member and the number of rounds: those to `best_round`, or all without evaluation
    queries. Empty texts where no feature tells documents apart. Then the measure on the evaluation queries after each
    round, and whether Ctrl-C ended training after a round."""
    package, data = lightgbm(), {id(one.train): one.train for one in members}
    sets = {key: _data(train, categorical=growth.categorical) for key, train in data.items()}
    if not any(own.feature_num_bin(j) for own in sets.values() for j in range(own.num_feature())):
        return [one.init for one in members], 0, [], False
    boosters, judged = [], _Judged(metric)
    for one in members:
        own = sets[id(one.train)]
        own.set_init_score(_init_scores(one.init, one.train))
        boosters.append(package.Booster(growth.parameters(one.objective.seed), own))
        if one.evaluation is not None:
            judged.add(boosters[-1], one.init, one.evaluation, own)
    rounds, trees, values = 0, [[0] * len(boosters)], list[float]()
    interrupted = False
    try:
        for round in range(1, growth.rounds + 1):
            for booster, one in zip(boosters, members, strict=True):
                booster.update(fobj=one.objective)
            value = judged.mean() if judged.boosters else None
            report(round, value)
            values += [] if value is None else [value]
            trees.append([booster.num_trees() for booster in boosters])  # none where no leaf could be split
            rounds = best_round(values) if values else round
            if round - rounds >= growth.patience:
                break
    except KeyboardInterrupt:
        if not rounds:
            raise
        interrupted = True
    texts = [
        joined(one.init, text_of(booster, count))
        for one, booster, count in zip(members, boosters, trees[rounds], strict=True)
    ]
    return texts, rounds, values, interrupted


WINDOW = 9


def smoothed(values: Sequence[float]) -> NDArray[np.float64]:
    """The mean of nine values around each; before the first and after the last these are repeated."""
    along = np.pad(values, WINDOW // 2, mode="edge")
    return np.convolve(along, np.ones(WINDOW), "valid") / WINDOW


def best_round(values: Sequence[float]) -> int:
    """The round, from 1, around which the mean of nine values is largest: one value alone is the best by chance."""
    return int(smoothed(values).argmax()) + 1


def _data(train: Arrangement, reference: Any = None, categorical: Sequence[int] = ()) -> Any:
    sizes = np.diff(train.offsets)
    weights = None if np.ptp(train.weights) == 0 else np.repeat(train.weights * sizes.size, sizes)
    features = table(taken(train.features, train.rows))
    return lightgbm().Dataset(
        features, train.graded, group=sizes, weight=weights, reference=reference, params=OF_DATA,
        categorical_feature=[*categorical] or "auto",
    ).construct()  # fmt: skip


def _init_scores(init: str, queries: Arrangement) -> NDArray[np.float64] | None:
    if not init:
        return None
    booster = lightgbm().Booster(model_str=init)
    return np.asarray(booster.predict(table(taken(queries.features, queries.rows))))


@dataclass(frozen=True, eq=False)
class _Judged:
    """The evaluation queries of members, whose scores LightGBM keeps up to date tree by tree."""

    metric: BoostingMetric
    boosters: list[tuple[Any, int]] = field(default_factory=list)
    rows: dict[int, BoostingData] = field(default_factory=dict)

    def add(self, booster: Any, init: str, queries: Arrangement, data: Any) -> None:
        held, key = _data(queries, data), id(queries)
        held.set_init_score(_init_scores(init, queries))
        booster.add_valid(held, "eval_set")
        self.boosters.append((booster, key))
        weights = np.repeat(queries.weights, np.diff(queries.offsets))
        self.rows[key] = BoostingData(np.zeros(weights.size), queries.graded, queries.offsets, weights)

    def mean(self) -> float:
        """The measure of the mean scores of all members evaluated on the same queries; of several sets the mean."""
        totals = {key: np.zeros(rows.scores.size) for key, rows in self.rows.items()}
        for booster, key in self.boosters:

            def add(scores: Any, data: Any, total: Any = totals[key]) -> tuple[str, float, bool]:
                np.add(total, scores, out=total)
                return "scores", 0.0, True

            booster.eval_valid(add)
        return float(np.mean([self.metric.at(replace(rows, scores=totals[key])) for key, rows in self.rows.items()]))


@contextmanager
def report_rounds(verbose: int, members: int, rounds: int, measure: str, where: str) -> Iterator[Report]:
    """What shows each round in one line, as `shown` does. measure, where: what is watched, and on what."""
    with shown(verbose) as progress:

        def show(round: int, value: float | None) -> None:
            found = "" if value is None else f": {measure} {value:.4f} {where}"
            for callback in progress:
                callback(f"{members} models, round {round} of {rounds}{found}", None)

        yield show
