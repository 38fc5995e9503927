"""Linear rankers, score(x) = coefᵀ x: scores, explanations, selected features, and the measure as a function of w.

`RegressionRanker` fits them by least squares on grades or gains: the baseline of [ORM, section 6.1], and a start w₀ of
the nonconvex bounds.
"""
# mypy: allow-subclassing-any

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from formulations.arrays import Floats
from rankopt.data.canonical_order import Arrangement, canonical
from rankopt.data.queries import Queries
from rankopt.data.validation import is_missing
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.evaluation.evaluation import evaluate
from rankopt.explanations.contributions import Explanation
from rankopt.measures.measure import PositionalMeasure
from rankopt.measures.notation import parse
from rankopt.optimize.least_squares import column_units, in_units, least_squares
from rankopt.optimize.ridge import WIDEST, Choice, least_squares_in_box, ridges_of
from rankopt.options import NOT_NEGATIVE, Rules, as_numbers, check, check_options
from rankopt.persistence.onnx import Linear
from rankopt.rankers.base import Ranker
from rankopt.rankers.inputs import document_id, read_pair
from rankopt.rankers.missing import check_missing_learned, with_indicators
from rankopt.rankers.typing import AnyMeasure, AnyRows, CoefBounds, Document, Missing, Normalize
from rankopt.scorers.linear import linear_scores, slot_scores


class LinearRanker(Ranker):
    """Base class of rankers with scores `coefᵀ x`; a subclass computes coef in `_fit`.

    Data are passed as to every `Ranker`. Fitted: `coef_` (d,) in the units of the input features, and the attributes
    of every ranker. With `missing="indicator"` also `missing_features_` (p,), the numbers of the features that lack
    values in training, and `missing_means_` (d,), the means of the features; `coef_` is (d + p,), the weights of the
    indicators last. `get_feature_names_out()` names the columns of `coef_`.
    """

    _saved: ClassVar[tuple[str, ...]] = ("coef_", "missing_features_", "missing_means_", *Ranker._saved)

    coef_: Floats
    missing_features_: NDArray[np.int64]
    missing_means_: Floats

    def explain(self, x: Document, y: Document, *, among: AnyRows | None = None) -> Explanation:
        """Explain the score difference of documents x and y (d,): the terms coef_j (x_j - y_j), largest first.

        among: all documents (n, d) of their query; needed only by a ranker with `normalize`, to normalize x and y. The
        terms are then those of the normalized features, with the normalization fixed.
        """
        check_is_fitted(self, "coef_")
        return self._explained(x, y, self.coef_, among)

    def _explained(self, x: Any, y: Any, coef: Floats, among: Any = None) -> Explanation:
        names, rows = read_pair(self, x, y, among)
        found = Explanation.from_coefficients(names, coef, *rows)
        return replace(found, documents=(document_id(x), document_id(y)))

    def _as_graph(self) -> Linear:
        if not hasattr(self, "missing_features_"):
            return Linear(self.coef_)
        return Linear(self.coef_, self.missing_features_, self.missing_means_)

    def _scores(self, features: Any) -> Floats:
        scores = slot_scores(features, self.coef_)
        if not np.isfinite(scores).all():
            row = int(np.argwhere(~np.isfinite(scores))[0, 0])
            raise DataError(f"The score of row {row} leaves double precision; its features are too large: rescale.")
        return scores

    def _check_learned(self) -> None:
        """Raise ModelError where the weights are missing, of another type or shape, or not finite."""
        if not hasattr(self, "coef_"):
            raise ModelError("coef_ is missing.")
        check_missing_learned(self)
        coef, shape = self.coef_, self._coef_shape()
        if not (isinstance(coef, np.ndarray) and coef.dtype == np.float64 and coef.shape == shape):
            size = " × ".join(map(str, shape))
            raise ModelError(f"coef_ is not an array of {size} float64 numbers, as n_features_in_ requires.")
        if not np.isfinite(coef).all():
            raise ModelError("coef_ has a value that is not finite.")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns that `coef_` weighs, in its order: the features of fit ("x0", "x1", ... where the
        data named none), and the indicators. input_features: not used; a Pipeline passes it."""
        check_is_fitted(self, "n_features_in_")
        names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)])
        return np.array(with_indicators(self, names), dtype=object)

    def _coef_shape(self) -> tuple[int, ...]:
        return (self.n_features_in_ + len(getattr(self, "missing_features_", ())),)

    def _box(self, queries: Queries, shape: tuple[int, ...]) -> Floats | None:
        """(2, d) the limits of weights of this shape; None where there are none."""
        limits, indicators = getattr(self, "coef_bounds", None), len(getattr(self, "missing_features_", ()))
        return box_of(limits, queries.feature_names, shape, queries.n_features - indicators)

    def _judge(self, evaluation: Queries) -> Callable[[Floats], float]:
        """The measure on the evaluation queries, as `score` computes it."""
        values = self._values(evaluation)
        return lambda w: float(np.nanmean(values(w)))

    def _values(self, queries: Queries, measures: Sequence[Any] | None = None) -> Callable[[Floats], Floats]:
        """The measure (m,) of each query, or the mean of several, NaN where it is not defined, as a function of w."""
        deployment, wanted = self._deployment(queries), [self.measure] if measures is None else list(measures)

        def values(w: Floats) -> Floats:
            return np.asarray(deployment.evaluate(linear_scores(queries.features, w), wanted).values.mean(axis=0))

        return values

    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """(d,) True for a feature whose weight is not 0 (of a ranker with several weights a feature, or with an
        indicator, any of them); or the `indices` of these features."""
        check_is_fitted(self, "coef_")
        check("indices", indices, (bool,))
        weighted = np.any(np.reshape(self.coef_, (-1, self._coef_shape()[-1])) != 0.0, axis=0)
        support = weighted[: self.n_features_in_]
        if hasattr(self, "missing_features_"):
            support[self.missing_features_] |= weighted[self.n_features_in_ :]
        return np.flatnonzero(support) if indices else support

    @property
    def selected_(self) -> NDArray[np.object_]:
        """The names, as in `get_feature_names_out`, of the columns whose weight is not 0, the largest weight first."""
        check_is_fitted(self, "coef_")
        names = self.get_feature_names_out()
        size = np.abs(np.reshape(self.coef_, (-1, names.size))).max(axis=0)
        order = np.argsort(-size, kind="stable")
        return np.asarray(names[order[size[order] > 0]], dtype=object)


LARGEST = 1e100  # the largest target: squares of what is summed must stay in double precision


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
    normalize, missing : defaults "auto", "error"
        As in `LargeMarginRanker`.

    **Model**

    target : default "grade"
        `"grade"`, the relevance y_j [ORM, section 6.1], or `"gain"`, the gain b(y)_j of `measure` (for nDCG
        divided by the best DCG of the query). Measures without gains (AP, ERR) support only "grade".
    intercept : default "query"
        `"query"`, a β for each query, so that only differences within queries are fitted; or `"all"`, one β as
        in [ORM]; "auto" chooses the ridge for the former.
    coef_bounds : default None
        As in `LargeMarginRanker`; "auto" chooses the ridge without them.

    Notes
    -----
    Fitted in addition to the attributes of all rankers: `alpha_` (d,), the ridge of each feature; `best_score_`, if an
    eval_set chose it.
    """

    _saved: ClassVar[tuple[str, ...]] = (*LinearRanker._saved, "alpha_", "best_score_")
    _linear_in_gains: ClassVar[bool] = True

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
        normalize: Normalize = "auto",
        coef_bounds: CoefBounds = None,
        missing: Missing = "error",
    ) -> None:
        self.alpha = alpha
        self.target = target
        self.intercept = intercept
        self.measure = measure
        self.normalize = normalize
        self.coef_bounds = coef_bounds
        self.missing = missing

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        chosen = isinstance(self.alpha, str)
        if evaluation is not None and not chosen:
            raise OptionError("eval_set needs alpha='auto'; got a number. Leave eval_set out, or set alpha='auto'.")
        check_options(self)
        if hasattr(self, "best_score_"):
            del self.best_score_
        parse(self.measure)  # a slip in what it is judged by is an error before training
        box = self._box(queries, (queries.n_features,))
        if box is not None and queries.n_features > WIDEST:
            raise OptionError(
                f"coef_bounds need at most {WIDEST} features here; got {queries.n_features}. Take "
                "LossRanker(method='block_frank_wolfe')."
            )
        arranged = canonical(queries, weights)
        targets, rows = self._targets(arranged), row_weights(arranged)
        if targets.max() > LARGEST:
            raise DataError(f"a target is {targets.max():g}: its square leaves double precision; use smaller grades")
        judge = None if evaluation is None else self._judge(evaluation)
        features, units = in_range(arranged.features) if chosen else (arranged.features, np.ones(arranged.n_features))
        if chosen:
            ridges = ridges_of(features, targets, rows, arranged.rows, arranged.offsets)
            alpha = ridges.cross_validated() if judge is None else best_judged(ridges, units, judge)
        else:
            alpha = np.full(arranged.n_features, float(self.alpha))
        offsets = arranged.offsets if self.intercept == "query" else None
        self.coef_ = units * solved_in(box, units, features, targets, rows, alpha, arranged.rows, offsets)
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


def box_of(coef_bounds: Any, names: Sequence[str] | None, shape: tuple[int, ...], d: int) -> Floats | None:
    """(2, d) the limits of weights of this shape, flat; None where there are none. coef_bounds: one pair (low, high),
    a pair for each of the d features, or a mapping from names of features and indicators, or from numbers where they
    have no names; None in a pair is no limit.
    Indicators without a pair are free."""
    if coef_bounds is None:
        return None
    pairs = coef_bounds
    if isinstance(coef_bounds, Mapping):
        known = [*range(d)] if names is None else [*names]
        unknown = [name for name in coef_bounds if name not in known]
        if unknown:
            shown = f"the numbers 0 to {d - 1}" if names is None else ", ".join(names)
            raise OptionError(f"coef_bounds has {unknown[0]!r:.80}, which is no feature; known are {shown:.500}")
        wrong_pair = next((name for name, pair in coef_bounds.items() if np.shape(pair) != (2,)), None)
        if wrong_pair is not None:
            raise OptionError(
                f"coef_bounds[{wrong_pair!r}] must be a pair (low, high), with None for no limit; got "
                f"{coef_bounds[wrong_pair]!r:.80}"
            )
        pairs = [coef_bounds.get(name, (None, None)) for name in known]
    limits = as_numbers("coef_bounds", pairs)  # None is NaN
    if any(one is not None and is_missing(one) for one in np.array(pairs, dtype=object).ravel()):
        raise OptionError("coef_bounds has nan, which is no limit; pass None where there is none")
    if limits.shape == (d, 2):
        limits = np.pad(limits, ((0, shape[-1] - d), (0, 0)), constant_values=np.nan)
    if limits.shape not in ((2,), (*shape[-1:], 2), (*shape, 2)):
        size = " × ".join(map(str, (*shape, 2)))
        raise OptionError(
            f"coef_bounds must be a pair (low, high), {size} numbers, or a mapping from feature to pair; got an array "
            f"of shape {limits.shape}"
        )
    limits = np.broadcast_to(np.where(np.isnan(limits), [-np.inf, np.inf], limits), (*shape, 2))
    box = np.moveaxis(limits, -1, 0).reshape(2, -1)
    wrong = ~((box[0] <= box[1]) & (box[0] < np.inf) & (box[1] > -np.inf))
    if wrong.any():
        low, high = box[:, wrong][:, 0]
        raise OptionError(f"coef_bounds needs low <= high, finite or None; got ({low:g}, {high:g})")
    size = np.abs(box, where=np.isfinite(box), out=np.zeros_like(box)).max()
    if size > LARGEST:
        raise OptionError(f"coef_bounds needs limits of at most {LARGEST:g} in size; got {size:g}. None is no limit.")
    return box if np.isfinite(box).any() else None


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


def solved_in(
    box: Floats | None, units: Floats, features: Any, targets: Floats, weights: Floats, *problem: Any
) -> Floats:
    """`least_squares` of features in units, in a box of the weights of the features themselves."""
    if box is None or features.shape[1] > WIDEST:
        return least_squares(features, targets, weights, *problem)
    return least_squares_in_box(box / units, features, targets, weights, *problem)


def cross_validated_ridge(queries: Arrangement, box: Floats | None = None) -> Floats:
    """The weights (d,) of `RegressionRanker()` on these queries, in the box if there are at most WIDEST of them."""
    (features, units), weights = in_range(queries.features), row_weights(queries)
    grades = np.asarray(queries.graded, dtype=np.float64)
    alpha = ridges_of(features, grades, weights, queries.rows, queries.offsets).cross_validated()
    return units * solved_in(box, units, features, grades, weights, alpha, queries.rows, queries.offsets)
