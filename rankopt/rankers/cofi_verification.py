"""What a `CofiRanker` says of itself, checked from the ratings, long after training or on another machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankopt.collaborative.certificate import FactorCertificate
from rankopt.collaborative.loss_verification import slow_loss
from rankopt.collaborative.reading import read_ratings_and_weights
from rankopt.collaborative.regularization import SHRUNK
from rankopt.collaborative.user_loss import UserLoss
from rankopt.collaborative.verification import UsersClaim, VerifiedClaim, VerifiedFactors, unlike_users, verify_factors
from rankopt.data.typing import Values
from rankopt.errors import DataError, MeasureError, OptionError
from rankopt.optimize.certificate import Stop
from rankopt.rankers.options import AnyRatings, Weights

ALLOWED = 1e-9
"""By how much what items are pulled to may differ, as a part of it."""


class VerificationMixin:
    """`verify`, of a ranker of factors that is fitted or loaded."""

    certificate_: FactorCertificate
    model_: Any
    get_params: Any
    _own_offsets: Any
    _pulled_to_means: Any
    _lam_of_users: Any
    _asked_of_users: Any
    _lam: Any
    _tol: Any

    def verify(
        self,
        X: AnyRatings,
        y: Values | None = None,
        *,
        sample_weight: Values | None = None,
        user_weight: Weights | None = None,
        planes: int = 50,
        seed: int = 0,
    ) -> VerifiedFactors:
        """Whether J, the bounds of both blocks and that of the whole are as `certificate_` has them, of the users of
        the training; and whether those of `user_strength_` cost no more at their own λ_U than these do there, and no
        more than `user_gap_` above what their own dual state proves.

        X, y, sample_weight, user_weight: what `fit` was given. planes: of how many users, drawn with this seed, the
        dual state itself is checked, each by a linear program; of a regression all are, of a bound that is not convex
        none, as its planes follow the scores. Nothing is shared with training but the definitions of measures and
        decays, and it is slow: an assignment for every user, a program for every drawn one, seconds for 700 ratings.
        The record is true where all holds, says in words what does not, and counts the planes that were checked and
        those of lists too long for it (`VerifiedFactors`). Raises DataError for other ratings than
        those of the fit, OptionError for losses that have no slow way (`slow_loss`).
        """
        check_is_fitted(self)
        for name, value in (("planes", planes), ("seed", seed)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise OptionError(f"{name} = {value!r} is no whole number of 0 or more; give one")
        params, held = self.get_params(deep=False), vars(self)
        ratings, weights = read_ratings_and_weights(X, y, sample_weight, user_weight)
        known = np.array_equal(ratings.users, held["users_"]) and np.array_equal(ratings.items, held["items_"])
        if not known or ratings.n_ratings != held["dual_slopes_"].size:
            raise DataError("these are not the ratings of the fit: users, items or their number differ; give those")
        loss = slow_loss(params["loss"], params["bound"], params["decay"])
        rows = zip(ratings.bounds[:-1].tolist(), ratings.bounds[1:].tolist(), strict=True)
        try:
            seen = np.array([low < high and loss.told(ratings.values[low:high]) for low, high in rows], dtype=bool)
        except MeasureError as error:
            raise OptionError(f"loss = {params['loss']!r} cannot be verified on these ratings: {error}") from error
        learnt = np.repeat(seen, np.diff(ratings.bounds))
        counts = np.bincount(ratings.columns[learnt], minlength=ratings.n_items)
        of_users, of_items = np.ones(ratings.n_users), np.ones(ratings.n_items)
        if params["by_counts"]:
            of_users, of_items = np.maximum(np.diff(ratings.bounds), 1.0), np.maximum(counts, 1.0)
        own = float(held["offset_strength_"])
        claim = VerifiedClaim(
            factors=replace(
                self.model_, users=held["trained_user_factors_"], user_offsets=held["trained_user_offsets_"]
            ),
            of_users=held["lam_"] * of_users,
            of_items=held["lam_"] * of_items,
            of_offsets=own * of_items if params["offsets"] else np.full(ratings.n_items, np.inf),
            of_user_offsets=self._own_offsets() * of_users if params["loss"] == "regression" else None,
            prior=held["item_prior_"],
            duals=(
                (held["dual_slopes_"], held["dual_heights_"]),
                (held["item_dual_slopes_"], held["item_dual_heights_"]),
            ),
            certificate=self.certificate_,
        )
        users = UsersClaim(
            self.model_, self._lam_of_users * of_users, held["user_strength_"] == held["strength_"],
            (held["user_dual_slopes_"], held["user_dual_heights_"]), float(held["user_gap_"]),
        )  # fmt: skip
        found = verify_factors(claim, ratings, loss, weights, planes, seed)
        popular = (float(params["popularity"]) if params["offsets"] else 0.0) * np.log1p(counts)
        mean = np.average(ratings.values[learnt] - popular[ratings.columns[learnt]], weights=_some(weights, learnt))
        if self._pulled_to_means():
            scale = 1.0 if weights is None else weights[learnt] / weights[learnt].mean()
            left = (ratings.values[learnt] - popular[ratings.columns[learnt]] - mean) * scale
            popular = popular + np.bincount(ratings.columns[learnt], left, ratings.n_items) / (counts + SHRUNK)
        wrong = [*found.wrong, *_unlike(held, ratings, popular + mean, float(mean), claim)]
        told = tuple(self._unlike_strengths(held, np.diff(ratings.bounds)[seen])) or tuple(
            unlike_users(claim, users, ratings, loss, weights, planes, seed)
        )
        return replace(found, wrong=(*wrong, *told))

    def _unlike_strengths(self, held: Any, counts: Any) -> Iterator[str]:
        """Whether strengths fit λ, and what the options ask for of users with so many ratings; and whether factors are
        as many as asked for, and the gaps closed where training says so."""
        lam, own, strength = held["lam_"], held["user_strength_"], held["strength_"]
        params, chosen, said = self.get_params(deep=False), held.get("chosen_"), self.certificate_
        if not abs(lam - strength * (held["lam_max_"] or lam)) <= ALLOWED * lam:
            yield f"strength_ = {strength:g} of lam_max_ = {held['lam_max_']:g} is not lam_ = {lam:g}"
            return
        found, name = (strength, "strength_") if params["lam"] is None and held["lam_max_"] else (lam, "lam_")
        if not abs(found - (asked := self._lam(chosen))) <= ALLOWED * found:
            yield f"{name} = {found:.8g} is not the {asked:.8g} that was asked for or chosen"
        if params["factors"] not in ("free", width := held["item_factors_"].shape[1]):
            yield f"there are {width} factors, not {params['factors']}"
        if said.stop is Stop.GAP and not (gap := max(said.users_gap, said.items_gap)) <= self._tol * (1.0 + ALLOWED):
            yield f"a gap of {gap:.2g} is not within the tolerance {self._tol:g}"
        if own == strength and held["user_gap_"] and not held["user_dual_heights_"].size:
            yield f"user_gap_ = {held['user_gap_']:g} is of users of another strength, and there are none"
        kind = UserLoss.named(params["loss"], params["bound"], params["decay"])
        of_users = self._asked_of_users(kind, chosen, counts)
        if own not in (strength, of_users):
            told = "nothing else" if of_users is None else f"{of_users:g}"
            yield f"user_strength_ = {own:g} is neither strength_ = {strength:g} nor what was asked for, {told}"


def _unlike(held: Any, ratings: Any, prior: Any, mean: float, claim: VerifiedClaim) -> Iterator[str]:
    """What else the ranker tells of these ratings and is not so."""
    away = float(np.abs(held["item_prior_"] - prior).max(initial=0.0))
    if not away <= ALLOWED * (1.0 + abs(mean)):
        yield f"items are pulled to other offsets than the mean and popularity of these ratings, by up to {away:.3g}"
    if not abs(held["unknown_"] - mean) <= ALLOWED * (1.0 + abs(mean)):
        yield f"the prior of an item without ratings is {mean:.8g}, not {held['unknown_']:.8g}"
    if not np.array_equal(held["item_counts_"], ratings.counts):
        yield "item_counts_ are not those of these ratings"
    if claim.of_user_offsets is None and (held["user_offsets_"].any() or held["trained_user_offsets_"].any()):
        yield "users have offsets, which this loss cannot see"


def _some(weights: Any, chosen: Any) -> Any:
    return None if weights is None else weights[chosen]
