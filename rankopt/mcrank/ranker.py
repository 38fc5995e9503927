"""McRank [Li, Burges, Wu 2007; Chakrabarti et al. 2008]: grades as classes, documents by their expected grade."""
# mypy: allow-subclassing-any

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankopt.boosting.progress import told
from rankopt.data.canonical import canonical
from rankopt.data.values import taken
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.mcrank.classes import EXPECTED, classes_of, expectation, values_of
from rankopt.mcrank.classifiers import check_classifier, default_classifier, fitted, readable, stops_on_queries
from rankopt.mcrank.forms import as_data, check_form, refusal
from rankopt.mcrank.rounds import Part, StagedPredictions, chosen_rounds, folds_of
from rankopt.measures.notation import parse
from rankopt.rankers.base import Ranker
from rankopt.rankers.choices import AnyMeasure, Normalize, Seed

if TYPE_CHECKING:
    from rankopt.constraints.admissible import Admissible
    from rankopt.data.arrangement import Arrangement
    from rankopt.data.queries import Queries

__all__ = ["McRanker"]

Floats = NDArray[np.float64]

FEW = 30
"""Rounds where nothing can be held out: those of [Chakrabarti et al. 2008]."""

SAMPLE = 1000
"""Rows on which a classifier is compared with its arrays."""


class McRanker(Ranker):
    """Scores a document by Σ_y P(y | x) value(y): y runs over the K distinct grades, value(y) is y itself ("grade") or
    2^y - 1 ("gain"), and P is a classifier whose classes are the grades.

    The classifier learns single documents, each with the weight of its query, and knows no measure; nothing is proved
    of the result.

    Args:
        classifier: any with `fit` and `predict_proba`; a clone is fitted. None is scikit-learn's histogram boosting of
            8 leaves a tree and 500 rounds at most. Histogram boosting with early_stopping="auto", its default, is
            stopped on whole queries (below): `max_iter` rounds at most, `n_iter_no_change` beyond the best. True and
            False are scikit-learn's own: stopped on rows, of whose queries others are learned from, and not at all.
        expected: "grade" or "gain".
        measure: of `rankopt.measures`, or its notation: what `score` means; nothing else.
        random_state: of the default; a number gives the same trees each time, None does too.
        verbose: 1 shows progress on a terminal.
        constraints: an `Admissible` that `rank` and `score` obey; training does not use it.
        normalize: as in `LargeMarginRanker`.

    Rounds: those after which the mean log-likelihood of the grades is best over the documents of eval_set, if there is
    one; else over the training queries with something to order, dealt into three folds by their content, each judged by
    a classifier that is grown without its fold (`rankopt.mcrank.rounds`). Then all training queries are learned from
    for so many rounds. Fewer than two such queries leave nothing to judge by: 30 rounds, as in the paper.

    Rows come to the classifier in an order of their content, so that shuffled rows give the same model. Sparse features
    are made dense for classifiers that take no others; all must be finite, whatever the classifier does with NaN.
    Raises DataError for grades that are no classes (one alone, or more than 31), OptionError for a classifier without
    `predict_proba`, or without sample_weight where queries have weights.

    Fitted: `classes_` (K,), the grades; `classifier_`; `grades_`, the classifier as arrays (`rankopt.mcrank.FORMS`), of
    histogram boosting and `LogisticRegression`, else None. A ranker with `grades_` scores by them, to the bits of the
    classifier, and can be saved, as data only; once loaded it has no `classifier_`. Where rounds were chosen
    `n_rounds_` and `held_out_`, the mean log-likelihood after each round that was tried; with eval_set `eval_score_`.
    """

    _saved: ClassVar[tuple[str, ...]] = (*Ranker._saved, "classes_", "grades_", "n_rounds_", "held_out_", "eval_score_")
    _of_the_run: ClassVar[tuple[str, ...]] = ("verbose",)

    classes_: Floats
    classifier_: Any
    grades_: Any
    n_rounds_: int
    held_out_: Floats
    eval_score_: float

    def __init__(
        self,
        classifier: Any = None,
        expected: Literal["grade", "gain"] = "grade",
        *,
        measure: AnyMeasure = "nDCG@10",
        random_state: Seed = None,
        verbose: int = 0,
        constraints: Admissible | None = None,
        normalize: Normalize = None,
    ) -> None:
        self.classifier = classifier
        self.expected = expected
        self.measure = measure
        self.random_state = random_state
        self.verbose = verbose
        self.constraints = constraints
        self.normalize = normalize

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        self._check_options()
        for name in ("n_rounds_", "held_out_", "eval_score_"):
            if hasattr(self, name):
                delattr(self, name)
        arranged = canonical(queries, weights)
        arranged = arranged.select(np.flatnonzero(arranged.weights > 0))
        self.classes_, classes = classes_of(arranged.graded)
        values_of(self.classes_, self.expected)
        own = default_classifier(self.random_state) if self.classifier is None else clone(self.classifier)
        features = readable(own, taken(arranged.features, arranged.rows))
        rows = np.repeat(arranged.weights / arranged.weights.mean(), np.diff(arranged.offsets))
        if stops_on_queries(own):
            self.n_rounds_ = min(FEW, own.max_iter)
            parts = self._parts(own, arranged, StagedPredictions(features, classes, rows), evaluation)
            if parts:
                where = "on eval_set" if evaluation is not None else "on queries left out"
                with told(self.verbose, len(parts), own.max_iter, "log-likelihood", where) as progress:
                    self.n_rounds_, self.held_out_ = chosen_rounds(own, parts, progress)
            own.set_params(max_iter=self.n_rounds_, early_stopping=False)
        self.classifier_ = fitted(own, features, classes, None if np.ptp(arranged.weights) == 0 else rows)
        self.grades_ = as_data(self.classifier_, features[:SAMPLE])
        if evaluation is not None:
            self.eval_score_ = self._mean(evaluation, np.ones(len(evaluation)), None)

    def _parts(
        self, own: Any, arranged: Arrangement, rows: StagedPredictions, evaluation: Queries | None
    ) -> list[Part]:
        """What rounds are judged by: the eval_set, or each fold in turn."""
        if evaluation is None:
            return [Part(replace(rows, chosen=~held), replace(rows, chosen=held)) for held in folds_of(arranged)]
        grades = np.asarray(evaluation.relevance)
        places = np.minimum(np.searchsorted(self.classes_, grades), self.classes_.size - 1)
        places = np.where(self.classes_[places] == grades, places, -1)
        return [Part(rows, StagedPredictions(readable(own, evaluation.features), places, np.ones(places.size)))]

    def _scores(self, features: Any) -> Floats:
        values = values_of(self.classes_, self.expected)
        if self.grades_ is not None:
            self._check_width()
            return expectation(self.grades_.probabilities(features), range(values.size), values)
        found = np.asarray(self.classifier_.predict_proba(readable(self.classifier_, features)), dtype=np.float64)
        known = np.asarray(self.classifier_.classes_)
        if found.shape != (features.shape[0], known.size) or not np.isfinite(found).all():
            raise DataError(
                f"documents cannot be scored because predict_proba of {type(self.classifier_).__name__} gives no "
                f"finite table of {features.shape[0]} × {known.size}; mend the classifier, or give another"
            )
        return expectation(found, known, values)

    def _check_width(self) -> None:
        """DataError where `grades_` was replaced by one of other features or classes."""
        with suppress(ModelError):
            return check_form(self.grades_, self.n_features_in_, self.classes_.size)
        raise DataError(f"grades_ is not of {self.n_features_in_} features and {self.classes_.size} classes; fit again")

    def _check_options(self) -> None:
        check_classifier(self.classifier)
        if self.expected not in EXPECTED:
            raise OptionError(
                f"expected = {self.expected!r} is unknown; it is one of {' or '.join(map(repr, EXPECTED))}."
            )
        parse(self.measure)

    def _check_params(self) -> None:
        super()._check_params()
        self._check_options()

    def _check_storable(self) -> None:
        if self.grades_ is None:
            raise refusal(self.classifier_)

    def _check_learned(self) -> None:
        classes = getattr(self, "classes_", None)
        if not (isinstance(classes, np.ndarray) and classes.dtype == np.float64 and classes.ndim == 1):
            raise ModelError("classes_ is missing, or no vector of grades.")
        if not (classes.size > 1 and classes[0] >= 0 and (np.diff(classes) > 0).all() and classes[-1] < np.inf):
            raise ModelError("classes_ are not two grades or more, rising.")
        check_form(getattr(self, "grades_", None), self.n_features_in_, classes.size)
        if self.expected in EXPECTED:
            try:
                values_of(classes, self.expected)
            except DataError as error:
                raise ModelError(f"classes_ cannot be expected ({error}).") from error
