"""Least squares on grades or gains: the baseline of [ORM, section 6.1], and a start w₀ of the nonconvex bounds."""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rankopt.data.canonical_order import Arrangement, canonical
from rankopt.data.queries import Queries
from rankopt.errors import DataError, OptionError
from rankopt.evaluation.evaluation import evaluate
from rankopt.measures.notation import parse
from rankopt.measures.positional import PositionalMeasure
from rankopt.optimize.least_squares import column_units, in_units, least_squares
from rankopt.optimize.ridge import Choice, ridges_of
from rankopt.options import NOT_NEGATIVE, Rules, check_options
from rankopt.rankers.linear import LinearRanker
from rankopt.rankers.typing import AnyMeasure, Normalize
from rankopt.scorers.linear import linear_scores

Floats = NDArray[np.float64]

LARGEST = 1e100
"""The largest target: squares of what is summed must stay in double precision."""


class RegressionRanker(LinearRanker):
    """Least squares: min over w and β of `Σ_q v_q Σ_{j in q} (t_j - wᵀx_j - β_q)² + α ‖w‖²`.

    v_q is the weight of the query (1 by default), t_j the target of the document. β does not affect the order and is
    dropped. If the solution is not unique, the one of least norm is returned, with each feature in units of its own
    deviation. So weights do not depend on the order of features, and constant features get weight 0.

    Parameters
    ----------
    **Start here**

    alpha : default "auto"
        α >= 0, the ridge, in the units of `sklearn.linear_model.Ridge`; or `"auto"`. "auto" compares ridges α
        and α σ_j², σ_j² the variance of feature j within queries, over twelve powers of ten. It takes the
        smallest squared error in five-fold cross-validation over queries, or the best `measure` on eval_set.
        Beyond 2,048 features it compares five ridges α in three folds. The second kind is invariant to the
        scale of the features.
    measure : default "nDCG@10"
        The measure of `score`, and of the gains; one of `rankopt.measures` or its notation.
    normalize : default None
        None, or the normalization of features within their query: "zscore", "minmax", "sum", "rank".

    **Model**

    target : default "grade"
        `"grade"`, the relevance y_j [ORM, section 6.1], or `"gain"`, the gain b(y)_j of `measure` (for nDCG
        divided by the best DCG of the query). Measures without gains (AP, ERR) support only "grade".
    intercept : default "query"
        `"query"`, a β for each query, so that only differences within queries are fitted; or `"all"`, one β as
        in [ORM]; "auto" chooses the ridge for the former.

    Notes
    -----
    Fitted in addition to the attributes of all rankers: `alpha_` (d,), the ridge of each feature; `best_score_`, if an
    eval_set chose it.
    """

    _saved: ClassVar[tuple[str, ...]] = (*LinearRanker._saved, "alpha_", "best_score_")

    _rules: ClassVar[Rules] = {
        "alpha": (NOT_NEGATIVE, "auto"),
        "target": ("grade", "gain"),
        "intercept": ("query", "all"),
    }

    alpha_: Floats
    best_score_: float

    def __init__(
        self,
        alpha: float | Literal["auto"] = "auto",
        *,
        target: Literal["grade", "gain"] = "grade",
        intercept: Literal["query", "all"] = "query",
        measure: AnyMeasure = "nDCG@10",
        normalize: Normalize = None,
    ) -> None:
        self.alpha = alpha
        self.target = target
        self.intercept = intercept
        self.measure = measure
        self.normalize = normalize

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        chosen = isinstance(self.alpha, str)
        if evaluation is not None and not chosen:
            raise OptionError("eval_set needs alpha='auto'; got a number. Leave eval_set out, or set alpha='auto'.")
        check_options(self)
        if hasattr(self, "best_score_"):
            del self.best_score_
        parse(self.measure)  # a slip in what it is judged by is an error before training
        arranged = canonical(queries, weights)
        targets, rows = self._targets(arranged), row_weights(arranged)
        if targets.max() > LARGEST:
            raise DataError(
                f"a target is {targets.max():g}, and its square leaves double precision; use smaller grades"
            )
        judge = None if evaluation is None else self._judge(evaluation)
        features, units = in_range(arranged.features) if chosen else (arranged.features, np.ones(arranged.n_features))
        if chosen:
            ridges = ridges_of(features, targets, rows, arranged.rows, arranged.offsets)
            alpha = ridges.cross_validated() if judge is None else best_judged(ridges, units, judge)
        else:
            alpha = np.full(arranged.n_features, float(self.alpha))
        offsets = arranged.offsets if self.intercept == "query" else None
        self.coef_ = units * least_squares(features, targets, rows, alpha, arranged.rows, offsets)
        with np.errstate(over="ignore"):
            self.alpha_ = np.minimum(alpha / units / units, np.finfo(np.float64).max)
        if judge is not None:
            self.best_score_ = judge(self.coef_)

    def _judge(self, evaluation: Queries) -> Callable[[Floats], float]:
        return lambda w: evaluate(evaluation, linear_scores(evaluation.features, w), self.measure).mean()

    def _targets(self, queries: Arrangement) -> Floats:
        relevance = np.asarray(queries.relevance, dtype=np.float64)
        if self.target == "grade":
            return relevance
        measure = parse(self.measure)
        if not isinstance(measure, PositionalMeasure):
            raise OptionError(f"{measure} has no gains to regress on because it is not positional; use target='grade'.")
        return np.asarray(measure.gain(relevance, queries.offsets))


def row_weights(queries: Arrangement) -> Floats:
    """(N,) the weight of each document: that of its query."""
    return np.repeat(queries.weights, np.diff(queries.offsets))


def in_range(features: Any) -> tuple[Any, Floats]:
    """The features with columns whose squares would leave double precision in units of their own, and the units."""
    units = column_units(features)
    return (features, np.ones(features.shape[1])) if units is None else (in_units(features, units), units)


def best_judged(ridges: Choice, units: Floats, judge: Callable[[Floats], float]) -> Floats:
    """The ridge whose weights are judged best; of equals the largest of a kind."""
    judged = np.array([judge(units * w) for w in ridges.weights])
    return np.asarray(ridges.penalties[np.flatnonzero(judged == judged.max())[-1]])


def cross_validated_ridge(queries: Arrangement) -> Floats:
    """The weights (d,) of `RegressionRanker()` on these queries."""
    (features, units), weights = in_range(queries.features), row_weights(queries)
    grades = np.asarray(queries.graded, dtype=np.float64)
    alpha = ridges_of(features, grades, weights, queries.rows, queries.offsets).cross_validated()
    return units * least_squares(features, grades, weights, alpha, queries.rows, queries.offsets)
