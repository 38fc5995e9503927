"""What a collaborative ranker is asked for: lists of items, new users, items like others."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankopt.collaborative.factors import Factors
from rankopt.collaborative.fold_in import folded
from rankopt.collaborative.known_items import KnownModel
from rankopt.collaborative.reading import read_ratings_and_weights
from rankopt.collaborative.recommendation import Recommendations, Seen
from rankopt.collaborative.regularization import Penalties
from rankopt.collaborative.user_loss import UserLoss
from rankopt.constraints.admissible import Admissible
from rankopt.data.typing import Ids, Values
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.rankers.cofi_options import LEAST, RANGE, workers_of
from rankopt.rankers.options import AnyRatings, Weights, number
from rankopt.ratings.ids import check_spelling
from rankopt.ratings.table import Ratings


class RecommendationMixin:
    """`recommend`, `fold_in` and `similar` of a ranker of two factors.

    Fitted besides: `seen_bounds_` (n_users + 1,) and `seen_items_` (ratings,), the places in `items_` of what each user
    rated; `item_attributes_`, name -> one value an item.
    """

    users_: NDArray[Any]
    items_: NDArray[Any]
    item_counts_: NDArray[np.int64]
    unknown_: float
    lam_max_: float
    _lam_of_users: Any
    _tol: Any
    loss: Any
    bound: Any
    decay: Any
    engine: Any
    n_jobs: int | None
    seen_bounds_: NDArray[np.int64]
    seen_items_: NDArray[np.int32]
    item_attributes_: dict[str, Any]

    _remembered = ("seen_bounds_", "seen_items_", "item_attributes_")

    @property
    def model_(self) -> Factors:
        """The factors."""
        raise NotImplementedError

    def _penalties(self, loss: UserLoss) -> Penalties:
        raise NotImplementedError

    def recommend(
        self,
        users: Ids | None = None,
        k: int | None = None,
        *,
        seen: Seen = "leave out",
        among: Ids | None = None,
        popularity: float = 0.0,
        admissible: Admissible | None = None,
    ) -> Recommendations:
        """The best k items of each of these users (None: of all), of whom the model need not know any.

        k: 10, or the number that the rules are of. seen: "leave out" what a user rated in training, "keep" it, or leave
        out what other `Ratings` say, of whatever items. among: the items that may be listed, None for all. popularity:
        c of c log(1 + count), added to the scores that order. admissible: rules over attributes of the items of the
        training ratings, `Admissible(10).at_most(2, by="genre")`:
        then the list is the admissible one of the largest Σ_i s_π(i) / log2(i + 1), exactly, overlapping genres or not.
        A list is shorter than k where fewer items are left, and then rules ask for no more than that many. Equal scores
        stand in the order of item ids. Raises OptionError for another k than that of the rules, which are of whole
        lists, DataError for a user whose items leave no admissible list, as where rules ask for items and none is left
        (`Admissible(on_infeasible="truncate")` then gives an empty list), and for an id that is known by another type,
        "17" for 17.
        """
        return self._all_known().recommend(
            users, k, seen=seen, among=among, popularity=popularity, admissible=admissible
        )

    def similar(self, item: Hashable, k: int = 10) -> list[tuple[Any, float]]:
        """The k items (id, cosine) whose factors point most nearly where those of this one do; items without factors
        are like none."""
        return self._all_known().similar(item, k)

    def fold_in(
        self,
        X: AnyRatings,
        y: Values | None = None,
        *,
        sample_weight: Values | None = None,
        user_weight: Weights | None = None,
        strength: float | None = None,
    ) -> KnownModel:
        """A model of the users of these ratings, new or known, fitted to them alone with the items as they are.

        strength: ρ of these users' penalty ρ λ_max, by default `user_strength_`, that of `user_factors_`: the ratings
        of the fit give those users again, to `tol`, where the bound is convex (else they may end at another optimum).
        It may be far lower than what is best for training (benchmarks/cofi.md).
        It has `predict`, `recommend` and `similar`, and `proved`: value, bound and gap of its users' block. Ratings of
        items that the model does not know are left aside. sample_weight, user_weight: as in `fit`; a user of weight 2
        is pulled to 0 half as much.
        """
        check_is_fitted(self)
        if strength is not None and not LEAST <= number(strength) <= 1 / LEAST:
            raise OptionError(f"strength = {strength!r} is no part of λ_max; give a number of {RANGE}, or None")
        lam = self._lam_of_users if strength is None else float(strength) * (self.lam_max_ or 1.0)
        ratings, weights = read_ratings_and_weights(X, y, sample_weight, user_weight)
        loss = UserLoss.named(self.loss, self.bound, self.decay)
        loss.check_weights(sample_weight is not None)
        table, weights = self._on_own_items(ratings, weights)
        with workers_of(self.engine, self.n_jobs):
            proved = folded(loss, self._penalties(loss), lam, self.model_, table, weights, self._tol)
        factors = replace(self.model_, users=proved.users, user_offsets=proved.user_offsets)
        given = ratings if table.n_ratings < ratings.n_ratings else None
        return KnownModel(table, factors, self.item_counts_, float(self.unknown_), proved, given)

    def _on_own_items(self, ratings: Ratings, weights: Any) -> tuple[Ratings, Any]:
        """The ratings of items that the model knows, over all of these, and their weights."""
        known = self._all_known().seen
        index = known.item_index(ratings.items)
        check_spelling(known.items, ratings.items, index, "item")
        place = index[ratings.columns]
        kept = place >= 0
        users, items = ratings.user_of()[kept], place[kept].astype(np.int32)
        if weights is not None:
            weights = weights[kept][np.lexsort((items, users))]
        table = Ratings.of_places(ratings.users, users, known.items, items, ratings.values[kept])
        return table.with_attributes(known.attributes), weights

    def _all_known(self) -> KnownModel:
        check_is_fitted(self)
        held = vars(self).get("_model_known")
        if held is None or held.factors.users is not self.model_.users:
            values = np.zeros(len(self.seen_items_))
            attributes = {name: _array(column) for name, column in self.item_attributes_.items()}
            seen = Ratings(self.users_, self.items_, self.seen_bounds_, self.seen_items_, values, attributes)
            held = KnownModel(seen, self.model_, self.item_counts_, float(self.unknown_))
            self._model_known = held
        return held

    def _remember(self, ratings: Ratings) -> None:
        """Keep what was seen of these ratings, beside the factors."""
        self.seen_bounds_, self.seen_items_ = ratings.bounds, ratings.columns
        self.item_attributes_ = {
            name: values if values.dtype.kind in "iufb" else values.tolist()
            for name, values in ratings.attributes.items()
        }

    def _check_remembered(self) -> None:
        """Raise ModelError where what was kept does not fit together."""
        try:
            self._all_known()
        except (AttributeError, DataError, TypeError, ValueError) as error:
            raise ModelError(f"what users have seen, or attributes of items, do not fit together ({error}).") from error


def _array(values: Any) -> NDArray[Any]:
    """A column of attributes as an array of one dimension."""
    if isinstance(values, np.ndarray):
        return values
    return np.fromiter(values, dtype=object, count=len(values))
