"""Evaluation of scores on the test ratings of a split, with the protocol in words; baselines of one score an item.

* candidates "rated": the test ratings of a user are ranked; grades are the ratings
* candidates "all": all items are ranked except those that the user has seen; an item without a test rating has grade 0.
  Methods that do well on one often do badly on the other, because users do not rate at random

Among all items a low rating still counts: under nDCG one star is worth more than no rating. Under ERU(d=3) ratings up
to 3 are worth 0, as unrated items are. On scales with negative values, unrated items are worth more than disliked ones.

Ties are averaged over all orders of items of equal score. Users whose candidates all have one grade are excluded from
the mean, as in `CofiRanker.score`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from formulations.arrays import Bools, Floats, Ints, check_type
from formulations.display import CompactReprMixin
from rankopt.data.validation import each_row, sealed
from rankopt.errors import DataError, MeasureError, OptionError
from rankopt.evaluation.evaluation import evaluate
from rankopt.measures.binary import Binary
from rankopt.measures.dcg import DiscountOptions
from rankopt.measures.measure import Measure
from rankopt.measures.notation import MeasureMix, parse
from rankopt.options import Interval, number
from rankopt.ratings.ids import indices_of
from rankopt.ratings.splits import Split, as_ratings, number_of_users
from rankopt.ratings.table import Ratings


def ordered_lists(bounds: Ints, values: Floats) -> Bools:
    """(n,) whether list i, ratings bounds[i]:bounds[i + 1], has at least two different ratings."""
    sizes = np.diff(bounds)
    found, starts = np.zeros(sizes.size, dtype=bool), bounds[:-1][sizes > 0]
    if starts.size:
        found[sizes > 0] = np.maximum.reduceat(values, starts) > np.minimum.reduceat(values, starts)
    return found


def check_judges(measure: str | Measure, bounds: Ints, values: Floats) -> None:
    """Raise MeasureError for a binary measure under which all ratings of lists with different ratings are relevant, so
    that every order has the same value."""
    wanted = parse(measure)
    parts = _parts(wanted)
    if not all(isinstance(one, Binary) for one in parts):
        return
    sizes, ordered = np.diff(bounds), ordered_lists(bounds, values)
    judged = values[np.repeat(ordered, sizes)]
    if judged.size and all(isinstance(one, Binary) and one.relevant(judged).all() for one in parts):
        ends = np.concatenate([[0], np.cumsum(sizes[ordered])])
        cure = from_which_on(wanted, ends, judged, _has_order) or "give another measure, such as nDCG@10"
        raise MeasureError(
            f"measure {wanted!s} cannot judge these ratings because all orders have the same value; {cure}"
        )


def from_which_on(measure: Any, bounds: Ints, values: Floats, tells: Callable[[Floats, Ints, Any], Bools]) -> str:
    """A suggested `rel` for a binary measure under which all ratings are relevant; empty if no `rel` helps. tells:
    (ratings, bounds, measure) -> which lists the measure distinguishes."""
    if not values.size:
        return ""
    high = values[values > np.median(values)]
    least = float(high.min() if high.size else values.max())
    for one in _parts(measure):
        if isinstance(one, Binary) and one.relevant(values).all():
            better = one(rel=least)
            if tells(values, bounds, better).any():
                all_are = "above 0" if one.rel is None else f"{one.rel:g} or more"
                return f"all are {all_are} and count as relevant; set the smallest relevant one: {better}"
    return ""


def _parts(measure: Any) -> list[Measure]:
    return [part.measure for part in measure.parts] if isinstance(measure, MeasureMix) else [measure]


def has_exponential_gain(measure: Any) -> bool:
    """Whether the gain of a rating y is 2^y - 1, in the measure or a part of it."""
    return any(isinstance(one, DiscountOptions) and one.stated_gain in (None, "exp2") for one in _parts(parse(measure)))


def _has_order(values: Floats, bounds: Ints, measure: Binary) -> Bools:
    return ordered_lists(bounds, measure.relevant(values))


@contextmanager
def measured(measure: Any, values: Floats, name: str = "measure") -> Iterator[None]:
    """In this context a MeasureError caused by ratings below 0, or too large for 2^y, names them and the cure."""
    try:
        yield
    except MeasureError as error:
        least, largest = float(values.min(initial=0.0)), float(values.max(initial=0.0))
        why = error.args[0].partition(";")[0]
        why = why.rpartition(" (")[0] if why.count("(") > why.count(")") else why
        if least == largest == 0.0:
            raise MeasureError(f"{name} {measure!s} cannot judge ratings that are all 0; give some above 0") from error
        if least >= 0 and has_exponential_gain(measure):
            raise MeasureError(
                f"{name} {measure!s} cannot judge ratings up to {largest:g} ({why}); pass {name}=\"nDCG(gain='linear')"
                f'@10", or divide all ratings by {largest / 5:.3g}'
            ) from error
        if least >= 0:
            raise
        raise MeasureError(
            f"{name} {measure!s} cannot judge ratings below 0 ({why}); add {-least:g} to all ratings, which "
            f"changes no order, or give another {name}, such as 'ERU(d=0)', whose gain is max(y - d, 0)"
        ) from error


MOST = 1e100  # the largest |c| of the popularity
PAIRS = 1 << 20  # number of (user, item) pairs scored at a time if all items are candidates


@dataclass(frozen=True, eq=False, repr=False)
class RatingsEvaluation(CompactReprMixin):
    """A measure of the rankings of the users of a split.

    * `users` (m,): ids of users with test ratings; `values` (m,): their values, NaN if the measure is undefined or all
      candidates have one grade
    * `tied`: number of users whose value depends on the order of ties
    * `protocol`: split, candidates, ties and users left out in words
    """

    measure: Measure
    users: NDArray[Any]
    values: Floats
    tied: int
    protocol: str

    @property
    def n_users(self) -> int:
        """The number of users that count in the mean."""
        return int(np.count_nonzero(~np.isnan(self.values)))

    @property
    def mean(self) -> float:
        """The mean over users with candidates of different grades on which the measure is defined."""
        return float(np.nanmean(self.values))

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over users; NaN for one user."""
        counted = self.values[~np.isnan(self.values)]
        return float(counted.std(ddof=1) / np.sqrt(counted.size)) if counted.size > 1 else float("nan")

    @property
    def estimate(self) -> str:
        """The mean ± its standard error in four digits; only the mean for one user."""
        error = self.standard_error
        return f"{self.mean:.4f}" if np.isnan(error) else f"{self.mean:.4f} ± {error:.4f}"

    def __str__(self) -> str:
        tied = f"; {number_of_users(self.tied)} tied" if self.tied else ""
        return f"{self.measure!r} {self.estimate} ({self.protocol}{tied})"


def evaluate_ratings(
    split: Split,
    predict: Any,
    measure: str | Measure = "nDCG@10",
    candidates: str = "rated",
    *,
    popularity: float = 0.0,
) -> RatingsEvaluation:
    """Evaluate each user's ranking of the candidates, "rated" or "all".

    predict: an object whose `predict(Ratings)` returns the scores of all its pairs, or the scores: (n_ratings,) of
    `split.test`, or (n_users, n_items) of all pairs. For new users (`split.known`) its `fold_in(Ratings)` is called
    first, if it has one. popularity: c of c log(1 + number of training ratings), added to the scores as `recommend`
    does. Users whose candidates all have one grade do not count, and the protocol has their number. Raises DataError
    for an invalid split, for scores of another shape or NaN, and if no user counts; MeasureError if all rated items are
    relevant.
    """
    wanted = parse(measure)
    _check_arguments(split, predict)
    if not isinstance(candidates, str) or candidates not in ("rated", "all"):
        raise OptionError(f"candidates cannot be {candidates!r}; they are 'rated' or 'all'.")
    bonus = popularity_offsets(popularity, split.train.counts)
    if not split.test.n_ratings:
        raise DataError("the split has no test ratings; pass a split with some.")
    if candidates == "rated":
        check_judges(wanted, split.test.bounds, split.test.values)
    if hasattr(predict, "predict") and split.known is not None and hasattr(predict, "fold_in"):
        predict = predict.fold_in(split.known)
    tested = np.flatnonzero(np.diff(split.test.bounds))
    values, tied, equal = [], 0, 0
    for pairs, scores in _score_pairs(split, predict, tested, candidates):
        bounds = pairs.bounds[np.concatenate([[0], 1 + np.flatnonzero(np.diff(pairs.bounds))])]  # without empty lists
        with measured(wanted, pairs.values):
            found = evaluate(pairs.values, scores + bonus[pairs.columns], wanted, offsets=bounds)
        ordered = ordered_lists(bounds, pairs.values)
        values.append(np.where(ordered, found.values[0], np.nan))
        equal += int(np.count_nonzero(~ordered))
        tied += int(found.tied[0])
    every = np.concatenate(values)
    if np.isnan(every).all():
        raise DataError(f"{wanted!r} judges no user because none has candidates of two grades; test other ratings")
    what = "rated items only" if candidates == "rated" else "all items but those seen, not rated = 0"
    undefined = int(np.isnan(every).sum()) - equal
    parts = [
        split.protocol,
        what,
        *([f"plus {popularity:g} log(1 + number of training ratings)"] if popularity else []),
        "ties averaged",
        *([f"{number_of_users(equal)} with equal ratings left out"] if equal else []),
        *([f"{number_of_users(undefined)} on whom the measure is undefined left out"] if undefined else []),
    ]
    return RatingsEvaluation(wanted, sealed(split.test.users[tested]), sealed(every), tied, "; ".join(parts))


def popularity_offsets(popularity: Any, counts: Ints) -> Floats:
    """c log(1 + count), added to the scores of items."""
    if popularity not in Interval(-MOST, MOST, "both"):
        raise OptionError(f"popularity = {popularity!r} is not a valid weight; pass a number up to {MOST:g}")
    return np.asarray(float(popularity) * np.log1p(counts))


def _check_arguments(split: Any, predict: Any) -> None:
    """Raise DataError if split is no Split, or predict is not fitted or a function."""
    if not isinstance(split, Split):
        raise DataError(
            f"split cannot be a {type(split).__name__} because training and test ratings must be separate; pass a "
            "split, such as weak_split(ratings), strong_split(ratings) or given_split(train, test); fit to its train."
        )
    scores_nothing = not hasattr(predict, "predict") and (callable(predict) or hasattr(predict, "fit"))
    if scores_nothing or isinstance(predict, type):
        what = getattr(predict, "__name__", type(predict).__name__)
        raise DataError(
            f"predict cannot be {what} because it returns no scores; pass a ranker that was fitted to "
            "split.train, or anything with `predict(Ratings)`, or the scores themselves."
        )


def _score_pairs(split: Split, predict: Any, tested: Ints, candidates: str) -> Iterator[tuple[Ratings, Floats]]:
    """Pairs with their grades and scores, a block of users at a time."""
    test = split.test
    if candidates == "rated":
        if hasattr(predict, "predict"):
            scores = _check_scores(predict.predict(test), (test.n_ratings,))
        else:
            everything = each_row(predict).ndim == 2
            values = _check_scores(predict, (test.n_users, test.n_items) if everything else (test.n_ratings,))
            scores = values[test.user_of(), test.columns] if everything else values
        yield test, scores
        return
    table = None
    if not hasattr(predict, "predict"):
        table = _check_scores(predict, (test.n_users, test.n_items))
    step = max(1, PAIRS // test.n_items)
    for begin in range(0, tested.size, step):
        pairs = _unseen(split, tested[begin : begin + step])
        if table is None:
            yield pairs, _check_scores(predict.predict(pairs), (pairs.n_ratings,))
        else:
            yield pairs, table[pairs.user_of(), pairs.columns]


def _unseen(split: Split, users: Ints) -> Ratings:
    """All pairs of these users and their unseen items; the grade is the test rating or 0."""
    test, seen = split.test, split.seen
    grades = test.select_users(users).to_csr()[users].toarray()
    free = np.ones(grades.shape, dtype=bool)
    known = seen.to_csr()[users]
    free[np.repeat(np.arange(users.size), np.diff(known.indptr)), known.indices] = False
    sizes = np.zeros(test.n_users, dtype=np.int64)
    sizes[users] = free.sum(axis=1)
    columns = np.broadcast_to(np.arange(test.n_items, dtype=np.int32), free.shape)[free]
    return Ratings(
        test.users, test.items, np.concatenate([[0], np.cumsum(sizes)]), columns, grades[free], test.attributes
    )


def _check_scores(scores: Any, shape: tuple[int, ...]) -> Floats:
    try:
        found = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"scores cannot be read: {error}; pass numbers, or an object with `predict`.") from None
    if found.shape != shape:
        raise DataError(f"scores have shape {found.shape}, but the pairs of the test are {shape}; give one a pair.")
    if np.isnan(found).any():
        raise DataError("a score is NaN, which cannot be ordered; correct the ranker.")
    return found


class ItemScoresBaseline:
    """A ranker with one score per item, the same for all users.

    Fitted: `item_ids_` (n_items,), `scores_` (n_items,), and `cold_start_bias_`, the score of other items.
    """

    scores_: Floats

    def fit(self, ratings: Ratings | Any) -> Self:
        """Compute the scores from `Ratings`, or a data frame of user, item and rating. Raises DataError for none."""
        ratings = as_ratings(ratings, f"{type(self).__name__}.fit")
        if not ratings.n_ratings:
            raise DataError("a baseline needs at least one rating; got none.")
        self.item_ids_, self.cold_start_bias_ = ratings.items, 0.0
        self.scores_ = sealed(self._scores(ratings))
        return self

    def predict(self, ratings: Ratings) -> Floats:
        """The scores (n_ratings,) of the pairs, in their order; the ratings are not used."""
        if not hasattr(self, "scores_"):
            raise NotFittedError(f"{self} is not fitted; call fit(ratings) first.")
        check_type("ratings", ratings, Ratings, error=DataError, cure="Pass Ratings.from_arrays(user, item, rating).")
        index = indices_of(self.item_ids_, ratings.items)[ratings.columns]
        return np.append(self.scores_, self.cold_start_bias_)[index]

    def _scores(self, ratings: Ratings) -> Floats:
        raise NotImplementedError


@dataclass
class ItemMeanBaseline(ItemScoresBaseline):
    """b_j = m + c log(1 + n_j) + Σ_u (r_uj - m) / (n_j + κ): item means shrunk towards the mean m of all.

    n_j is the number of its ratings, κ `shrinkage` >= 0, c `popularity` in the unit of the ratings. An item without
    ratings has m.

    >>> ratings = Ratings.from_arrays(["ann", "bob", "ann"], ["Alien", "Alien", "Brazil"], [5, 4, 3])
    >>> ItemMeanBaseline(shrinkage=1).fit(ratings).scores_.round(2)
    array([4.33, 3.5 ])
    """

    shrinkage: float = 5.0
    popularity: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= number(self.shrinkage) < np.inf and np.isfinite(number(self.popularity))):
            raise OptionError(f"shrinkage must be a number >= 0 and popularity a finite number; got {self}.")

    def _scores(self, ratings: Ratings) -> Floats:
        mean = self.cold_start_bias_ = float(ratings.values.mean())
        counts = ratings.counts
        above = np.bincount(ratings.columns, ratings.values - mean, ratings.n_items)
        shrunk = above / np.maximum(counts + self.shrinkage, np.finfo(float).tiny)
        return np.asarray(mean + self.popularity * np.log1p(counts) + shrunk)


@dataclass
class PopularityBaseline(ItemScoresBaseline):
    """The number of ratings of an item."""

    def _scores(self, ratings: Ratings) -> Floats:
        return ratings.counts.astype(np.float64)
