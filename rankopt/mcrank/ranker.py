"""McRank [Li, Burges, Wu 2007; Chakrabarti et al. 2008]: grades as classes, documents by their expected grade.

How many rounds a boosted classifier grows, chosen on whole queries.

Documents of one query resemble each other: rows left out of training have their like in it, and a choice on them comes
too late. Here queries are left out. Over the documents j that are held out, with the weights v of their queries,

    rounds* = argmax_r  Σ_j v_j log P_r(y_j | x_j) / Σ_j v_j,      of equals the fewest,

P_r the classifier after r rounds. Held out are the queries of eval_set, if there is one; else the training queries with
something to order, dealt into three folds in their canonical order, each fold seen by a P_r that is grown without it.
All grow at once, `n_iter_no_change` rounds at a time, until the best round is so many rounds back or `max_iter` is
reached. A grade that nothing grown on has counts as of probability 1e-15.

The likelihood is what the classifier is grown for, and smooth where the measure of a ranking is not: chosen by nDCG@10
in its place, rounds differed more from split to split, and rankings were no better (`benchmarks/mcrank.md`).

Classifiers of grades: the default, what any must be able to do, and how one is fitted.
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankopt.boosting.growth import told
from rankopt.data.canonical_order import Arrangement, canonical
from rankopt.data.validation import is_sparse, taken
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.mcrank.classes import EXPECTED, classes_of, expectation, values_of
from rankopt.mcrank.classifier_data import as_data, check_form, refusal
from rankopt.measures.notation import parse
from rankopt.rankers.base import Ranker
from rankopt.rankers.options import AnyMeasure, Normalize, Seed, number

if TYPE_CHECKING:
    from rankopt.constraints.admissible import Admissible
    from rankopt.data.queries import Queries

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Told = Callable[[int, float | None], None]

FOLDS = 3
LEAST = 1e-15


@dataclass(frozen=True, eq=False)
class StagedPredictions:
    """Some rows (None: all) of features, places of classes (-1: of none) and weights, copied when asked for."""

    features: Any
    classes: Ints
    weights: Floats
    chosen: Mask | None = None

    def of(self, values: Any) -> Any:
        return values if self.chosen is None else values[self.chosen]


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to grow on, and rows that are held out."""

    grown: StagedPredictions
    held: StagedPredictions


def folds_of(queries: Arrangement) -> list[Mask]:
    """Each fold as a mask (N,) of the documents that are held out; none where fewer than two queries have something to
    order. Whatever is held out, what is left has two grades or more."""
    grades, starts = queries.graded, queries.offsets[:-1]
    ordered = np.flatnonzero(np.maximum.reduceat(grades, starts) > np.minimum.reduceat(grades, starts))
    if ordered.size < 2:
        return []
    fold = np.full(len(queries), -1)
    fold[ordered] = np.arange(ordered.size) % FOLDS
    of_documents = np.repeat(fold, np.diff(queries.offsets))
    return [of_documents == number for number in range(min(FOLDS, ordered.size))]


def chosen_rounds(classifier: Any, parts: list[Part], told: Told) -> tuple[int, Floats]:
    """rounds*, and the mean log-likelihood after each round that was grown.

    classifier: scikit-learn's histogram boosting, or what has its `max_iter`, `n_iter_no_change`, `warm_start` and
    `staged_predict_proba`. told: is told of each round.
    """
    from sklearn.base import clone

    most, patience = _whole(classifier, "max_iter"), _whole(classifier, "n_iter_no_change")
    growing = [clone(classifier).set_params(warm_start=True, early_stopping=False) for _ in parts]
    total = sum(part.held.of(part.held.weights).sum() for part in parts)
    found: list[float] = []
    while len(found) < most and (not found or len(found) - 1 - np.argmax(found) < patience):
        rounds = min(len(found) + patience, most)
        sums = np.zeros(rounds - len(found))
        for one, part in zip(growing, parts, strict=True):
            sums += _after(one.set_params(max_iter=rounds), part, len(found))
        for value in (sums / total).tolist():
            found.append(value)
            told(len(found), value)
    return int(np.argmax(found)) + 1, np.array(found)


def _after(classifier: Any, part: Part, done: int) -> Floats:
    """The log-likelihood of what is held out after each round beyond those done: sums over the documents."""
    grown, held = part.grown, part.held
    weights = None if np.ptp(grown.weights) == 0 else grown.of(grown.weights)
    classifier.fit(grown.of(grown.features), grown.of(grown.classes), sample_weight=weights)
    classes = held.of(held.classes)
    column = np.minimum(np.searchsorted(classifier.classes_, classes), classifier.classes_.size - 1)
    rows, known = np.arange(classes.size), classifier.classes_[column] == classes
    staged = islice(classifier.staged_predict_proba(held.of(held.features)), done, None)
    own = (np.where(known, found[rows, column], 0.0) for found in staged)
    counted = held.of(held.weights)
    return np.array([counted @ np.log(np.maximum(found, LEAST)) for found in own])


def _whole(classifier: Any, name: str) -> int:
    """An option that is a number of rounds; OptionError for anything else."""
    value = number(getattr(classifier, name))
    if not (value >= 1 and value.is_integer()):
        given = getattr(classifier, name)
        raise OptionError(f"{name} = {given!r} of the classifier is no number of rounds; give 1 or more")
    return int(value)


ROUNDS, PATIENCE, LEARNING_RATE, LEAVES = 500, 10, 0.1, 8
"""Of the default: rounds at most, rounds without a better one after which it ends, and its trees."""


def default_classifier(random_state: Any) -> Any:
    """Histogram boosting that is stopped on whole queries; the same bits each time for a number or None."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    draw = getattr(random_state, "integers", getattr(random_state, "randint", None))  # of a generator, new or old
    seed = (0 if random_state is None else random_state) if draw is None else int(draw(2**31 - 1))
    if not (0 <= number(seed) < 2**32 and number(seed).is_integer()):
        raise OptionError(f"random_state = {random_state!r} is no seed; give a whole number of 0 or more, or None")
    return HistGradientBoostingClassifier(
        max_iter=ROUNDS, n_iter_no_change=PATIENCE, learning_rate=LEARNING_RATE, max_leaf_nodes=LEAVES,
        random_state=int(seed),
    )  # fmt: skip


def check_classifier(classifier: Any) -> None:
    """OptionError unless it is None or has what is asked of a classifier."""
    if classifier is None:
        return
    kind = type(classifier).__name__
    if isinstance(classifier, type):
        raise OptionError(
            f"classifier = {classifier.__name__} is a class, not one of its objects; write {classifier.__name__}()"
        )
    if not (hasattr(classifier, "fit") and hasattr(classifier, "get_params")):
        raise OptionError(f"classifier cannot be a {kind} because it is no estimator of scikit-learn's kind; give one")
    if not hasattr(classifier, "predict_proba"):
        raise OptionError(
            f"classifier cannot be {classifier!r:.80} because it has no predict_proba, and an expected grade needs "
            "probabilities; wrap it by CalibratedClassifierCV, or give another"
        )


def stops_on_queries(classifier: Any) -> bool:
    """Whether it is histogram boosting that leaves it open when to stop (early_stopping="auto", its default)."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return isinstance(classifier, HistGradientBoostingClassifier) and classifier.early_stopping == "auto"


def fitted(classifier: Any, features: Any, classes: NDArray[np.int64], weights: Floats | None) -> Any:
    """The classifier, fitted. OptionError where rows have weights and it takes none."""
    from sklearn.utils.validation import has_fit_parameter

    if weights is None:
        return classifier.fit(features, classes)
    if not has_fit_parameter(classifier, "sample_weight"):
        raise OptionError(
            f"query_weight cannot be heeded because fit of {type(classifier).__name__} takes no sample_weight; leave "
            "it out, or give another classifier"
        )
    return classifier.fit(features, classes, sample_weight=weights)


def readable(classifier: Any, features: Any) -> Any:
    """The features as the classifier takes them: CSR becomes an array where it takes no other."""
    if not is_sparse(features) or _takes_sparse(classifier):
        return features
    return features.toarray()


def _takes_sparse(classifier: Any) -> bool:
    from sklearn.utils import get_tags

    try:
        return bool(get_tags(classifier).input_tags.sparse)
    except (AttributeError, TypeError):  # of another package
        return False


# mypy: allow-subclassing-any


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
    a classifier that is grown without its fold (`rankopt.mcrank.ranker`). Then all training queries are learned from
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
