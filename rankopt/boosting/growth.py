"""Trees grown by LightGBM on an objective of ours, round by round, stopped on whole queries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankopt.boosting.metric import BoostingMetric
from rankopt.boosting.objective import BoostingObjective
from rankopt.boosting.packages import lightgbm, table
from rankopt.boosting.tree_text import text_of
from rankopt.data.values import taken

if TYPE_CHECKING:
    from rankopt.data.arrangement import Arrangement
    from rankopt.data.queries import Queries

__all__ = ["Growth", "Told", "grown"]

OF_DATA = {"verbosity": -1, "feature_pre_filter": False}
"""Features that no tree can split by now stay: that none is left is an error of LightGBM's."""

Told = Callable[[int, float | None], None]
"""What is told of each round: its number from 1, and the measure on the eval_set if there is one."""


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

    def parameters(self, objective: BoostingObjective) -> dict[str, Any]:
        """What LightGBM is told. Its sums are taken feature by feature: the same bits on any number of threads."""
        return {
            "objective": objective,
            "metric": "None",
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": self.min_child_samples,
            "feature_fraction": self.colsample_bytree,
            "seed": objective.seed,
            "num_threads": self.threads,
            "deterministic": True,
            "force_col_wise": True,
            "verbosity": -1,
        }


def grown(
    train: Arrangement,
    objective: BoostingObjective,
    growth: Growth,
    evaluation: Queries | None,
    metric: BoostingMetric,
    told: Told | None = None,
) -> tuple[str, int]:
    """The text of the trees for these queries, weighted as they are, and their number: those to the best round on the
    evaluation queries, or all. No text where no feature tells documents apart."""
    package, sizes = lightgbm(), np.diff(train.offsets)
    weights: NDArray[np.float64] | None = np.repeat(train.weights * sizes.size, sizes)
    if np.ptp(train.weights) == 0:
        weights = None
    data = package.Dataset(
        table(taken(train.features, train.rows)),
        train.graded,
        group=sizes,
        weight=weights,
        params=OF_DATA,
    )
    data.construct()
    if not any(data.feature_num_bin(feature) for feature in range(train.n_features)):
        return "", 0
    held = []
    callbacks = [] if told is None else [_telling(told)]
    if evaluation is not None:
        sizes = np.diff(evaluation.offsets)
        held = [
            data.create_valid(table(evaluation.features), evaluation.relevance, group=sizes, params=OF_DATA).construct()
        ]
        callbacks.append(package.early_stopping(growth.patience, verbose=False))
    booster = package.train(
        growth.parameters(objective),
        data,
        growth.rounds,
        valid_sets=held,
        feval=metric if held else None,
        callbacks=callbacks,
    )
    rounds = booster.best_iteration if held else booster.num_trees()
    return text_of(booster, rounds), rounds


def _telling(told: Told) -> Callable[[Any], None]:
    def after(round: Any) -> None:
        found = round.evaluation_result_list
        told(round.iteration + 1, float(found[0][2]) if found else None)

    return after
