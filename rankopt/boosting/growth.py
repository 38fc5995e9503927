"""Boosting rounds of LightGBM on our objective, early stopping on queries, and progress on a terminal.

LightGBM (extra `boosting`) is imported on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankopt.boosting.objective import BoostingData, BoostingMetric, BoostingObjective
from rankopt.boosting.tree_text import text_of
from rankopt.data.validation import taken
from rankopt.errors import OptionError
from rankopt.rankers.run import shown

if TYPE_CHECKING:
    from rankopt.data.canonical_order import Arrangement
    from rankopt.data.queries import Queries


def lightgbm() -> Any:
    """The package; OptionError that names the cure where it is not installed."""
    try:
        return import_module("lightgbm")
    except ImportError as error:
        raise OptionError(
            f"trees of LightGBM cannot be grown or used because lightgbm cannot be loaded ({error}); "
            "pip install 'rankopt[boosting]'"
        ) from error


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
    """rounds: trees, one a round. patience: rounds without a better measure on the eval_set after which it ends.
    threads: 0 leaves their number to LightGBM. The rest as LightGBM calls it."""

    rounds: int
    learning_rate: float
    num_leaves: int
    min_child_samples: int
    colsample_bytree: float
    patience: int
    threads: int = 0

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
        }


def grow(
    train: Arrangement,
    objectives: Sequence[BoostingObjective],
    growth: Growth,
    evaluation: Queries | None,
    metric: BoostingMetric,
    report: Report = lambda round, value: None,
) -> tuple[list[str], int, list[float], bool]:
    """The text of the trees of each objective for these queries, weighted as they are, and the number of rounds: those
    to where the mean of all scores is best on the evaluation queries, or all. Empty texts where no feature tells
    documents apart. Then the measure there after each round, and whether Ctrl-C ended training after a round."""
    package, data = lightgbm(), _data(train)
    if not any(data.feature_num_bin(feature) for feature in range(train.n_features)):
        return [""] * len(objectives), 0, [], False
    boosters = [package.Booster(growth.parameters(objective.seed), data) for objective in objectives]
    judged = None if evaluation is None else _Judged.from_queries(evaluation, data, boosters, metric)
    best, rounds, trees, values = -np.inf, 0, [0] * len(boosters), list[float]()
    interrupted = False
    try:
        for round in range(1, growth.rounds + 1):
            for booster, objective in zip(boosters, objectives, strict=True):
                booster.update(fobj=objective)
            value = None if judged is None else judged.mean_of(boosters)
            report(round, value)
            values += [] if value is None else [value]
            if value is None or value > best:
                # A round in which no leaf could be split leaves no tree.
                best = best if value is None else value
                rounds, trees = round, [booster.num_trees() for booster in boosters]
            if round - rounds >= growth.patience:
                break
    except KeyboardInterrupt:
        if not rounds:
            raise
        interrupted = True
    texts = [text_of(booster, count) for booster, count in zip(boosters, trees, strict=True)]
    return texts, rounds, values, interrupted


def _data(train: Arrangement) -> Any:
    """The `lightgbm.Dataset`."""
    sizes = np.diff(train.offsets)
    weights: NDArray[np.float64] | None = np.repeat(train.weights * sizes.size, sizes)
    if np.ptp(train.weights) == 0:
        weights = None
    features = table(taken(train.features, train.rows))
    return lightgbm().Dataset(features, train.graded, group=sizes, weight=weights, params=OF_DATA).construct()


@dataclass(frozen=True, eq=False)
class _Judged:
    """The evaluation queries, whose scores LightGBM keeps up to date tree by tree."""

    rows: BoostingData
    metric: BoostingMetric

    @classmethod
    def from_queries(cls, queries: Queries, data: Any, boosters: Sequence[Any], metric: BoostingMetric) -> _Judged:
        sizes = np.diff(queries.offsets)
        held = data.create_valid(table(queries.features), queries.relevance, group=sizes, params=OF_DATA).construct()
        for booster in boosters:
            booster.add_valid(held, "eval_set")
        return cls(
            BoostingData.from_arrays(queries.relevance, np.zeros(queries.n_documents), None, sizes, "the ranker"),
            metric,
        )

    def mean_of(self, boosters: Sequence[Any]) -> float:
        """The measure of the mean of all scores."""
        total = np.zeros(self.rows.scores.size)

        def add(scores: Any, data: Any) -> tuple[str, float, bool]:
            np.add(total, scores, out=total)
            return "scores", 0.0, True

        for booster in boosters:
            booster.eval_valid(add)
        return self.metric.at(replace(self.rows, scores=total / len(boosters)))


@contextmanager
def report_rounds(
    verbose: int, members: int, rounds: int, measure: str, where: str = "on eval_set"
) -> Iterator[Report]:
    """What shows each round in one line, as `shown` does. measure, where: what is watched, and on what."""
    with shown(verbose) as progress:

        def show(round: int, value: float | None) -> None:
            found = "" if value is None else f": {measure} {value:.4f} {where}"
            for callback in progress:
                callback(f"{members} models, round {round} of {rounds}{found}", None)

        yield show
