"""What LightGBM and XGBoost hand to an objective or a metric, in one form: scores, grades, weights, queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.values import column
from rankopt.errors import DataError

__all__ = ["BoostingData"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FORGOTTEN = (
    "{what} cannot rank because the data have no queries; give the data set group= (sizes of consecutive queries)"
)


@dataclass(frozen=True, eq=False)
class BoostingData:
    """scores, relevance: (N,), documents query by query, cut by offsets (m + 1,). weights: (N,), or None: 1 each."""

    scores: Floats
    relevance: Floats
    offsets: Ints
    weights: Floats | None

    @classmethod
    def of(cls, relevance: Any, scores: Any, weight: Any, group: Any, what: str) -> BoostingData:
        """Grades, scores, weights and the sizes of queries, as LightGBM's ranker passes them to functions of one's own.

        what: who asks, for the DataError where there are no queries.
        """
        if group is None or np.size(group) == 0:
            raise DataError(FORGOTTEN.format(what=what))
        return cls._checked(relevance, scores, weight, np.concatenate([[0], np.cumsum(np.asarray(group, np.int64))]))

    @classmethod
    def of_dataset(cls, scores: Any, data: Any, what: str) -> BoostingData:
        """Scores and a `lightgbm.Dataset`."""
        return cls.of(data.get_label(), scores, data.get_weight(), data.get_group(), what)

    @classmethod
    def of_matrix(cls, scores: Any, matrix: Any, what: str) -> BoostingData:
        """Scores and an `xgboost.DMatrix`, whose weights are one a query or one a row."""
        offsets = np.asarray(matrix.get_uint_info("group_ptr"), dtype=np.int64)
        if offsets.size < 2:
            raise DataError(FORGOTTEN.format(what=what).replace("group=", "group= or qid="))
        weight = matrix.get_weight()
        if np.size(weight) == offsets.size - 1:
            weight = np.repeat(weight, np.diff(offsets))
        return cls._checked(matrix.get_label(), scores, weight, offsets)

    @classmethod
    def _checked(cls, relevance: Any, scores: Any, weight: Any, offsets: Ints) -> BoostingData:
        n = int(offsets[-1])
        grades = column(np.ravel(relevance), n, "relevance", np.float64)
        given = None if weight is None or np.size(weight) == 0 else column(weight, n, "weight", np.float64)
        return cls(column(np.ravel(scores), n, "scores", np.float64), grades, offsets, given)

    @property
    def query_weights(self) -> Floats | None:
        """(m,) the weight of the first document of each query."""
        return None if self.weights is None else self.weights[self.offsets[:-1]]
