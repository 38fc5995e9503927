"""What a fitted collaborative ranker answers: scores of pairs, lists of items, new users, items like others."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankopt.collaborative.problem import Factors
from rankopt.collaborative.reading import read_ratings_and_weights
from rankopt.collaborative.recommendation import KnownModel, Recommendations, Seen
from rankopt.collaborative.user_loss import fold_in
from rankopt.constraints.admissible import Admissible
from rankopt.data.typing import Ids, Values
from rankopt.options import check
from rankopt.rankers.cofi_training import STRENGTH, CofiSettings, workers_of
from rankopt.rankers.typing import AnyRatings, Weights
from rankopt.ratings.ids import check_spelling
from rankopt.ratings.table import Ratings


class RecommendationMixin:
    """`predict`, `recommend`, `fold_in` and `similar` of a factor model.

    Fitted: `seen_indptr_` (n_users + 1,) and `seen_indices_` (ratings,), the indices in `item_ids_` of the items that
    each user rated; `item_attributes_`, name -> one value per item.
    """

    get_params: Any
    user_ids_: NDArray[Any]
    item_ids_: NDArray[Any]
    item_popularity_: NDArray[np.int64]
    cold_start_bias_: float
    lam_: float
    lam_max_: float
    engine: Any
    n_jobs: int | None
    seen_indptr_: NDArray[np.int64]
    seen_indices_: NDArray[np.int32]
    item_attributes_: dict[str, Any]

    @property
    def model_(self) -> Factors:
        """The factors and offsets as one record, in the order of `user_ids_` and `item_ids_`."""
        own: Any = self
        return Factors(own.user_factors_, own.item_factors_, own.item_bias_, own.user_bias_)

    def predict(self, X: AnyRatings) -> NDArray[np.float64]:
        """Return the scores (n,) of the rows (user, item) of X, or of all pairs of `Ratings`.

        An unknown user has the item's offset only; an unknown item has the prior of an item without ratings. Raises
        DataError for an id of another type than the known one: "17" for 17.
        """
        return self._known().predict(X)

    def recommend(
        self,
        users: Ids | None = None,
        k: int | None = None,
        *,
        seen: Seen = "leave out",
        among: Ids | None = None,
        popularity: float = 0.0,
        constraints: Admissible | None = None,
    ) -> Recommendations:
        """Return the best k items of each user (None: all users); users may be unknown to the model.

        k: default 10, or the list length of the constraints. seen: "leave out" the items that a user rated in training,
        "keep" them, or `Ratings` of the items to leave out. among: the candidate items, None for all; those without
        training ratings have the score `cold_start_bias_`, and one item at least must have some. popularity: c of
        c log(1 + count), added to the scores; `evaluate_ratings(..., popularity=c)` measures its effect.
        constraints: constraints on attributes of the items of the training ratings, such as
        `Admissible(10).at_most(2, by="genre")`; the list is then the exact maximizer of Σ_i s_π(i) / log2(i + 1) over
        the admissible lists.

        If fewer than k items are left, the list is shorter. Equal scores are ordered by item id. Raises OptionError for
        a k other than that of the constraints, and DataError for a user without an admissible list
        (`Admissible(on_infeasible="truncate")` gives an empty list instead) or an id of another type than the known
        one.
        """
        return self._known().recommend(users, k, seen=seen, among=among, popularity=popularity, constraints=constraints)

    def similar(self, item: Hashable, k: int = 10) -> list[tuple[Any, float]]:
        """The k items (id, cosine) whose factors point most nearly where those of this one do; items without factors
        are like none."""
        return self._known().similar(item, k)

    def fold_in(
        self,
        X: AnyRatings,
        y: Values | None = None,
        *,
        sample_weight: Values | None = None,
        user_weight: Weights | None = None,
        reg: float | None = None,
    ) -> KnownModel:
        """A model of the users of these ratings, new or known, fitted to them alone with the items as they are.

        reg: ρ of these users' penalty ρ λ_max, by default that of the training: the ratings of the fit give its
        users again, to `tol`, where the bound is convex (else they may end at another optimum). For new users
        a third of it often orders better; choose it on held-out ratings.
        It has `predict`, `recommend` and `similar`, and `proved`: value, bound and gap of its users' block. Ratings of
        items that the model does not know are left aside, with a warning of their number; another warning is of ratings
        far outside the range of the training ratings. sample_weight, user_weight: as in `fit`; a user of weight 2
        is pulled to 0 half as much.
        """
        known = self._known()
        check("reg", reg, (STRENGTH, None))
        lam = self.lam_ if reg is None else float(reg) * (self.lam_max_ or 1.0)
        ratings, weights = read_ratings_and_weights(X, y, sample_weight, user_weight)
        settings = CofiSettings.from_params(self.get_params(deep=False))
        settings.loss.check_weights(sample_weight is not None)
        table, weights = _on_known_items(known.seen, ratings, weights)
        _warn_of_others(known.seen, ratings, table.n_ratings, vars(self).get("rating_range_"))
        penalties = settings.penalties(np.diff(self.seen_indptr_))
        with workers_of(self.engine, self.n_jobs):
            proved = fold_in(settings.loss, penalties, lam, self.model_, table, weights, settings.tol)
        factors = replace(self.model_, users=proved.users, user_offsets=proved.user_offsets)
        rated = ratings if table.n_ratings < ratings.n_ratings else None
        return KnownModel(table, factors, self.item_popularity_, float(self.cold_start_bias_), proved, rated)

    def _known(self) -> KnownModel:
        check_is_fitted(self)
        seen = vars(self).get("_seen")
        if seen is None or seen.users is not self.user_ids_ or seen.columns is not self.seen_indices_:
            values = np.zeros(len(self.seen_indices_))
            attributes = {
                name: one if isinstance(one, np.ndarray) else np.fromiter(one, dtype=object, count=len(one))
                for name, one in self.item_attributes_.items()
            }
            seen = Ratings(self.user_ids_, self.item_ids_, self.seen_indptr_, self.seen_indices_, values, attributes)
            self._seen = seen
        return KnownModel(seen, self.model_, self.item_popularity_, float(self.cold_start_bias_))


def _on_known_items(known: Ratings, ratings: Ratings, weights: Any) -> tuple[Ratings, Any]:
    """The ratings of items that the model knows, over all of these, and their weights."""
    index = known.item_index(ratings.items)
    check_spelling(known.items, ratings.items, index, "item")
    index_of = index[ratings.columns]
    inside = index_of >= 0
    users, items = ratings.user_of()[inside], index_of[inside].astype(np.int32)
    if weights is not None:
        weights = weights[inside][np.lexsort((items, users))]
    table = Ratings.from_indices(ratings.users, users, known.items, items, ratings.values[inside])
    return table.with_attributes(known.attributes), weights


def _warn_of_others(known: Ratings, ratings: Ratings, n_known: int, scale: Any) -> None:
    """Warn of ratings of unknown items, and of another scale than that of training; scale: None in older models."""
    if n_known < ratings.n_ratings:
        others = ratings.items[ratings.columns[known.item_index(ratings.items)[ratings.columns] < 0]]
        message = (
            f"{others.size} of {ratings.n_ratings} ratings are of items that the model does not know, such as "
            f"{others.item(0)!r}, and have no effect; check the ids, or fit with ratings of these items"
        )
        warnings.warn(message, UserWarning, stacklevel=3)
    if scale is None:
        return
    (low, high), margin = scale, 0.25 * float(scale[1] - scale[0])
    outside = ratings.values[(ratings.values < low - margin) | (ratings.values > high + margin)]
    if outside.size:
        message = (
            f"{outside.size} of {ratings.n_ratings} ratings are far outside the range of the training ratings, {low:g} "
            f"to {high:g}, such as {outside[0]:g}; use the same scale"
        )
        warnings.warn(message, UserWarning, stacklevel=3)
