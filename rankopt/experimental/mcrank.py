"""McRank: documents by the expected grade of a classifier [Li, Burges, Wu 2007; Chakrabarti et al. 2008]."""

# mypy: allow-subclassing-any
from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from formulations.arrays import Floats, is_sparse
from rankopt.data.canonical_order import canonical
from rankopt.data.validation import taken
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.measures.notation import parse
from rankopt.options import check
from rankopt.rankers.base import Ranker
from rankopt.rankers.run import store_score
from rankopt.rankers.typing import AnyMeasure, Normalize

if TYPE_CHECKING:
    from rankopt.constraints.admissible import Admissible
    from rankopt.data.queries import Queries


MAX_GRADES = 31  # distinct grades beyond which they are numbers and not classes


class McRanker(Ranker):
    """Score a document by its expected grade Σ_y P(y | x) y, where P is a classifier of the K distinct grades.

    The classifier learns single documents, each with the weight of its query. It knows no measure, and nothing is
    proved of the result. Rows are sorted by their content: shuffled rows give the same model.

    Parameters
    ----------
    classifier : an estimator with `fit` and `predict_proba`, or None
        A clone is fitted. None is scikit-learn's `HistGradientBoostingClassifier` with 30 trees of 8 leaves for each
        grade, as in the paper of 2008.
    expectation : {"grade", "gain"}
        The expectation of y, or of 2^y - 1.
    measure : of `rankopt.measures`, or its notation; used by `score` only.
    constraints : an `Admissible` for `rank` and `score`; training ignores it.
    normalize : as in `LargeMarginRanker`.

    Attributes
    ----------
    classes_ : (K,) the grades.
    classifier_ : the fitted classifier; its class k is the grade classes_[k].
    best_score_ : the measure on eval_set, if one was passed; nothing is chosen there.

    Raises
    ------
    DataError
        In `fit`, if there are fewer than 2 or more than 31 distinct grades.
    OptionError
        In `fit`, if the classifier has no `predict_proba`, or no `sample_weight` although queries have weights.
    ModelError
        In `save`: a classifier of scikit-learn is no plain data.
    """

    classes_: Floats
    classifier_: Any
    best_score_: float

    def __init__(
        self,
        classifier: Any = None,
        expectation: Literal["grade", "gain"] = "grade",
        *,
        measure: AnyMeasure = "nDCG@10",
        constraints: Admissible | None = None,
        normalize: Normalize = None,
    ) -> None:
        self.classifier = classifier
        self.expectation = expectation
        self.measure = measure
        self.constraints = constraints
        self.normalize = normalize

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        self._check_options()
        arranged = canonical(queries, weights)
        arranged = arranged.select(np.flatnonzero(arranged.weights > 0))
        self.classes_, labels = np.unique(arranged.graded, return_inverse=True)
        if not 2 <= self.classes_.size <= MAX_GRADES:
            raise DataError(
                f"McRanker needs 2 to {MAX_GRADES} distinct grades; got {self.classes_.size} in "
                f"{labels.size} sample{'s' if labels.size > 1 else ''}. Bin them (`np.digitize(y, bins)`), or fit "
                "RegressionRanker or BoostedRanker, which read grades as numbers"
            )
        if not np.isfinite(self._values()).all():
            raise DataError(f"2^{self.classes_[-1]:g} overflows; use expectation='grade' or lower grades")
        if self.classifier is None:
            own = HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=8, early_stopping=False, random_state=0)
        else:
            own = clone(self.classifier)
        options = {}
        if np.ptp(arranged.weights) > 0:
            if not has_fit_parameter(own, "sample_weight"):
                raise OptionError(
                    f"query_weight needs a classifier with sample_weight; got {type(own).__name__}. Leave it out, or "
                    "give another classifier"
                )
            rows = np.repeat(arranged.weights / arranged.weights.mean(), np.diff(arranged.offsets))
            options = {"sample_weight": rows}
        features = _readable(own, taken(arranged.features, arranged.rows))
        self.classifier_ = own.fit(features, labels, **options)
        store_score(self, None if evaluation is None else self._mean(evaluation, np.ones(len(evaluation)), None))

    def _scores(self, features: Any) -> Floats:
        found = np.asarray(self.classifier_.predict_proba(_readable(self.classifier_, features)), dtype=np.float64)
        if found.shape != (features.shape[0], self.classes_.size) or not np.isfinite(found).all():
            raise DataError(
                f"predict_proba of {type(self.classifier_).__name__} must give a finite table of {features.shape[0]} × "
                f"{self.classes_.size}; give another classifier"
            )
        return np.asarray((found * self._values()).sum(axis=1))

    def _values(self) -> Floats:
        """(K,) what a document of each grade is worth."""
        with np.errstate(over="ignore"):
            return self.classes_ if self.expectation == "grade" else np.asarray(2.0**self.classes_ - 1.0)

    def _check_options(self) -> None:
        classifier = self.classifier
        if classifier is not None and (isinstance(classifier, type) or not hasattr(classifier, "fit")):
            raise OptionError(f"classifier must be an object such as `LogisticRegression()`; got {classifier!r:.80}")
        if classifier is not None and not hasattr(classifier, "predict_proba"):
            raise OptionError(
                f"classifier must have predict_proba; got {classifier!r:.80}. Wrap it by CalibratedClassifierCV"
            )
        check("expectation", self.expectation, ("grade", "gain"))
        parse(self.measure)

    def save(self, path: str | PathLike[str]) -> NoReturn:
        """Raise ModelError: a fitted classifier of scikit-learn is no plain data."""
        raise ModelError(
            f"McRanker cannot be saved to {str(path)!r} because model files hold plain data and its classifier is a "
            "scikit-learn object; use joblib.dump(ranker, path) or skops.io.dump(ranker, path), and load such a file "
            "only if you trust it"
        )


def _readable(classifier: Any, features: Any) -> Any:
    """The features; sparse ones as an array if the classifier reads no others."""
    return features if not is_sparse(features) or get_tags(classifier).input_tags.sparse else features.toarray()
