"""Least squares on the gains: the baseline of [ORM, section 6.1], and the start w₀ of the nonconvex bounds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.data.arrangement import Arrangement
from rankopt.data.canonical import canonical
from rankopt.data.queries import Queries
from rankopt.errors import OptionError
from rankopt.measures.notation import parse
from rankopt.measures.positional import Positional
from rankopt.optimize.least_squares import least_squares
from rankopt.rankers.base import LinearRanker
from rankopt.rankers.options import number

__all__ = ["RegressionRanker", "least_squares"]

Floats = NDArray[np.float64]

TARGETS = ("gain", "grade")


class RegressionRanker(LinearRanker):
    """Least squares: min over w and β of `Σ_q v_q Σ_{j in q} (t_j - wᵀx_j - β)² + α ‖w‖²`.

    v_q is the weight of the query (as given, 1 by default), t_j the target of the document. β orders nothing and is
    dropped. Where the solution is not unique, the one of least norm is taken, each feature measured in units of its own
    deviation, so weights do not depend on the order of features and constant features get weight 0.

    alpha: α >= 0, the ridge, in the units of `sklearn.linear_model.Ridge`.
    target: `"gain"`, the gain b(y)_j of `measure` (for nDCG divided by the best DCG of the query), or `"grade"`, the
    relevance y_j itself as in [ORM, section 6.1]; measures without gains (AP, ERR) leave only the latter.
    measure: what `score` means, and the gains; a measure of `rankopt.measures` or its notation.
    normalize: None, or how features are normalised within their query: "zscore", "minmax", "sum", "rank".
    """

    def __init__(
        self, alpha: float = 0.0, *, target: str = "gain", measure: Any = "nDCG@10", normalize: str | None = None
    ) -> None:
        self.alpha = alpha
        self.target = target
        self.measure = measure
        self.normalize = normalize

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        if evaluation is not None:
            raise OptionError("RegressionRanker cannot use eval_set because it chooses nothing; leave it out.")
        if not 0 <= number(self.alpha) < np.inf:
            raise OptionError(f"alpha = {self.alpha!r} is not a ridge; it must be finite and >= 0.")
        arranged = canonical(queries, weights)
        rows = np.repeat(arranged.weights, np.diff(arranged.offsets))
        targets = self._targets(arranged)
        self.coef_ = least_squares(arranged.features, targets, rows, float(self.alpha), arranged.rows)

    def _targets(self, queries: Arrangement) -> Floats:
        if self.target not in TARGETS:
            raise OptionError(f"target = {self.target!r} is unknown; it is one of {', '.join(map(repr, TARGETS))}.")
        relevance = np.asarray(queries.relevance, dtype=np.float64)
        if self.target == "grade":
            return relevance
        measure = parse(self.measure)
        if not isinstance(measure, Positional):
            raise OptionError(f"{measure} has no gains to regress on because it is not positional; use target='grade'.")
        return np.asarray(measure.gain(relevance, queries.offsets))
