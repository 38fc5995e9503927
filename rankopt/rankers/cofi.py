"""Collaborative ranking: users and items as factors, learned from ratings, with what is proved of them [paper 5]."""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankopt.collaborative.alternation import AlternationHistory, AlternationStep
from rankopt.collaborative.global_bound import FactorCertificate
from rankopt.collaborative.loss_verification import slow_loss
from rankopt.collaborative.problem import ModelState
from rankopt.collaborative.reading import held_out, read_ratings_and_weights
from rankopt.collaborative.regularization import SHRUNK, RegularizationChoice, rated_only
from rankopt.collaborative.verification import VerifiedClaim, VerifiedFactors, verify_factors
from rankopt.data.typing import Pairs, Values
from rankopt.errors import DataError, MeasureError, ModelError, OptionError, RankoptError
from rankopt.fitting import AtomicFitMixin
from rankopt.measures.measure import Measure
from rankopt.optimize.certificate import Stop
from rankopt.rankers.cofi_training import OF_THE_RUN, CofiSettings, check_cofi, train
from rankopt.rankers.options import (
    AnyBound,
    AnyCheckpoint,
    AnyDecay,
    AnyEngine,
    AnyMeasure,
    AnyRatings,
    Seed,
    Weights,
    number,
)
from rankopt.rankers.recommending import RecommendationMixin
from rankopt.ratings.evaluation import check_judges
from rankopt.ratings.table import Ratings

Floats = NDArray[np.float64]

ALLOWED = 1e-9
"""By how much what items are pulled to may differ, as a part of it."""


class CofiRanker(AtomicFitMixin, RecommendationMixin, BaseEstimator):
    """Scores F[u, j] = b_j + ⟨U_u, M_j⟩ (+ b_u in a regression) that make small

        J = Σ_u v_u l_u(F_u) + (λ/2)‖U‖² + (λ/2)‖M‖² + (μ/2)‖b - b⁰‖² (+ (μ/2)‖b_u‖²)

    l_u a loss of the scores of what user u rated, b⁰_j = mean + c log(1 + count_j), c the popularity, count_j the
    ratings of an item by users who tell the loss an order, mean the constant that leaves r_uj - b⁰_j a mean of 0 over
    all these ratings. For fixed M, b each user is a small convex problem, for fixed U, b_u the items are one: the two
    blocks are solved in turn, each to a gap that is proved.

    Everywhere X is `rankopt.ratings.Ratings`, a data frame with columns of user, item and rating, or (n, 2) rows of
    user and item with y (n,) ratings; ids are any hashables. Relabelled users or items and shuffled rows give the same
    model, bit for bit.

    Args:
        loss: "regression", Σ_j (F_uj - y_uj)²/2; a measure whose regret is bounded, "nDCG@10", "ERU(d=3)", ...; or a
            loss of `rankopt.losses.LOSSES` by name, "ordinal", "preferences", ... that says planes and is exact.
        factors: d, the width of U and M; or "free": doubled along the top singular pairs of the dual state until the
            gap of the whole is within `tol`, or closes no more.
        reg: ρ = λ/λ_max, λ_max the λ from which on a convex loss leaves no factors; "auto" chooses it by
            cross-fitting inside the training ratings (`chosen_` tells how).
        lam: λ itself, in place of strength.
        item_bias: whether items have offsets b of their own; else b is one constant for all.
        bias_reg: how many ratings the prior counts for; None is 10, and 30 where it is "means". μ is this times
            what a rating bends the loss by, Σψ²/(2Σl) at b⁰ with its slopes ψ: 1 in a regression.
        item_prior: "mean", b⁰ as above; "means", plus the mean of what an item's n ratings leave over, times n/(n +
        30);
            "auto", "means" for losses of orders under a bound that is not convex, or where users have fewer than 30
            ratings in the median, else "mean".
        popularity_prior: c >= 0.
        weight_by_count: λ and μ count once a rating of the user or item, in place of once.
        bound: of a measure's regret: "convex", "tie-aware", "nonconvex", or of your own.
        position_weights: position weights of the scores, for a measure; "shifted(0.25)" is (i + 1)^-0.25, the paper's.
        measure: what `score`, eval_set and reg="auto" go by, over the rated items of each user.
        init: "residual", the top singular pairs of what offsets alone leave over; or "random", which draws.
        tol: the gap of both blocks at which training ends, as a part of J; None is 1e-4.
        compute_bound: whether the bound of the whole is worked out, where the loss is convex: it takes a dense matrix
        of the
            smaller side, up to 5,000 wide.
        max_iter, time_limit: rounds, and seconds, after which it ends anyway, with a ConvergenceWarning; the choice of
            a strength may take half of the seconds.
        patience: rounds without a better measure on eval_set after which it ends.
        random_state: of init="random"; nothing else is drawn.
        engine, n_jobs: who computes users and items, as in `LargeMarginRanker`; the bits are the same.
        callbacks: functions (step, standing) called after each round; one that returns True ends training.
        checkpoint: as in `LargeMarginRanker`.
        verbose: 1 shows progress on a terminal.

    Fitted: `user_ids_`, `item_ids_`, the ids; `user_factors_` (n, d), `item_factors_` (m, d), `item_offsets_` (m,),
    `user_offsets_` (n,), 0 where the loss cannot see them; `item_prior_` b⁰ (m,),
    `cold_start_bias_` that of an item without ratings, `item_popularity_` (m,); `lam_`, `lam_max_`, `reg_`,
    `offset_strength_` μ; `certificate_`, `history_`, `n_iter_` of the training; and the dual states that prove what the
    certificate says, each a plane below every user's loss: slopes (ratings,) in the order of `Ratings` and heights
    (n,), `dual_slopes_`, `dual_heights_` of the users' block, `item_dual_coef_`, `item_dual_intercept_` of the items',
    often the same. With eval_set the factors are the best of
    all rounds there, and `best_score_` is what they reach.
    """

    __metadata_request__fit: ClassVar = {"sample_weight": True, "user_weight": True}
    __metadata_request__score: ClassVar = {"sample_weight": True}

    _saved: ClassVar[tuple[str, ...]] = (
        "user_ids_", "item_ids_", "user_factors_", "item_factors_", "item_offsets_", "user_offsets_",
        "item_prior_", "cold_start_bias_", "item_popularity_",
        "lam_", "lam_max_", "reg_", "offset_strength_", "chosen_", "certificate_",
        "history_", "n_iter_",
        "dual_slopes_", "dual_heights_", "item_dual_coef_", "item_dual_intercept_", "best_score_", "n_features_in_",
        "seen_indptr_", "seen_indices_", "item_attributes_",
    )  # fmt: skip
    _of_the_run: ClassVar[tuple[str, ...]] = OF_THE_RUN

    certificate_: FactorCertificate
    history_: AlternationHistory
    n_features_in_: int
    best_score_: float
    chosen_: RegularizationChoice

    def __init__(
        self,
        loss: str | Measure | Callable[..., Any] = "regression",
        *,
        factors: int | Literal["free"] = 15,
        reg: float | Literal["auto"] = "auto",
        lam: float | None = None,
        item_bias: bool = True,
        bias_reg: float | None = None,
        item_prior: Literal["auto", "mean", "means"] = "auto",
        popularity_prior: float = 0.1,
        weight_by_count: bool = False,
        bound: AnyBound = "convex",
        position_weights: AnyDecay = "shifted(0.25)",
        measure: AnyMeasure = "nDCG@10",
        init: Literal["residual", "random"] = "residual",
        tol: float | None = None,
        compute_bound: bool = True,
        max_iter: int = 100,
        time_limit: float | None = None,
        patience: int = 5,
        random_state: Seed = None,
        engine: AnyEngine = "threads",
        n_jobs: int | None = None,
        callbacks: Sequence[Callable[[AlternationStep, ModelState], bool | None]] = (),
        checkpoint: AnyCheckpoint = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.factors = factors
        self.reg = reg
        self.lam = lam
        self.item_bias = item_bias
        self.bias_reg = bias_reg
        self.item_prior = item_prior
        self.popularity_prior = popularity_prior
        self.weight_by_count = weight_by_count
        self.bound = bound
        self.position_weights = position_weights
        self.measure = measure
        self.init = init
        self.tol = tol
        self.compute_bound = compute_bound
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.patience = patience
        self.random_state = random_state
        self.engine = engine
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.verbose = verbose

    def fit(
        self,
        X: AnyRatings,
        y: Values | None = None,
        *,
        sample_weight: Values | None = None,
        user_weight: Weights | None = None,
        eval_set: Ratings | tuple[Pairs, Values] | None = None,
    ) -> Self:
        """Learn from ratings.

        sample_weight: (n,) one a rating, for losses that are sums over ratings. user_weight: v_u, a mapping from user,
        in which others than these may stand too (a fold lacks some), or (n_users,) in the order of `Ratings.users`.
        eval_set: other ratings, `Ratings` or (X, y): the round that is
        best there is kept. A fit that fails leaves the ranker as it was.
        """
        check_cofi(**self.get_params(deep=False))
        ratings, weights = read_ratings_and_weights(X, y, sample_weight, user_weight)
        evaluation = None if eval_set is None else held_out(eval_set, ratings)
        self._fit(ratings, weights, sample_weight is not None, evaluation)
        return self

    _fit = train

    def score(self, X: AnyRatings, y: Values | None = None, *, sample_weight: Values | None = None) -> float:
        """The mean over users of `measure` on these ratings, each user's over the rated items alone, equal scores
        averaged; users of fewer than two different ratings tell no order and do not count, as in
        `rankopt.ratings.evaluate_ratings`. sample_weight: equal inside a user."""
        check_is_fitted(self)
        ratings, weights = read_ratings_and_weights(X, y, sample_weight)
        check_judges(self.measure, ratings.bounds, ratings.values)
        values = rated_only(ratings.bounds, ratings.values, self.predict(ratings), self.measure)
        counted = ~np.isnan(values)
        if not counted.any():
            raise DataError("score cannot judge these ratings because no user has two different ones; give more")
        if weights is None:
            return float(values[counted].mean())
        starts = ratings.bounds[:-1][np.diff(ratings.bounds) > 0]
        of_user = np.zeros(ratings.n_users)
        of_user[np.diff(ratings.bounds) > 0] = np.maximum.reduceat(weights, starts)
        if not np.array_equal(weights, np.repeat(of_user, np.diff(ratings.bounds))):
            raise DataError("sample_weight differs inside a user, but it applies to a full ranking; pass one per user")
        return float(np.average(values[counted], weights=of_user[counted]))

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
        """Whether J, the bounds of both blocks and that of the whole are as `certificate_` has them.

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
                raise OptionError(f"{name} = {value!r} is not an integer >= 0; pass such an integer")
        params, held = self.get_params(deep=False), vars(self)
        ratings, weights = read_ratings_and_weights(X, y, sample_weight, user_weight)
        known = np.array_equal(ratings.users, self.user_ids_) and np.array_equal(ratings.items, self.item_ids_)
        if not known or ratings.n_ratings != held["dual_slopes_"].size:
            raise DataError("these are not the ratings of the fit: users, items or their number differ; give those")
        loss = slow_loss(params["loss"], params["bound"], params["position_weights"])
        sizes = np.diff(ratings.bounds)
        rows = zip(ratings.bounds[:-1].tolist(), ratings.bounds[1:].tolist(), strict=True)
        try:
            seen = np.array([low < high and loss.told(ratings.values[low:high]) for low, high in rows], dtype=bool)
        except MeasureError as error:
            raise OptionError(f"loss = {params['loss']!r} cannot be verified on these ratings: {error}") from error
        learnt = np.repeat(seen, sizes)
        counts = np.bincount(ratings.columns[learnt], minlength=ratings.n_items)
        of_users, of_items = np.ones(ratings.n_users), np.ones(ratings.n_items)
        if params["by_counts"]:
            of_users, of_items = np.maximum(sizes, 1.0), np.maximum(counts, 1.0)
        penalties = CofiSettings.from_params(params).penalties(sizes[seen])
        own = float(held["offset_strength_"])
        claim = VerifiedClaim(
            factors=self.model_,
            of_users=held["lam_"] * of_users,
            of_items=held["lam_"] * of_items,
            of_offsets=own * of_items if params["offsets"] else np.full(ratings.n_items, np.inf),
            of_user_offsets=None if penalties.user_offsets is None else penalties.user_offsets * of_users,
            prior=held["item_prior_"],
            duals=(
                (held["dual_slopes_"], held["dual_heights_"]),
                (held["item_dual_coef_"], held["item_dual_intercept_"]),
            ),
            certificate=self.certificate_,
        )
        found = verify_factors(claim, ratings, loss, weights, planes, seed)
        prior = penalties.popularity * np.log1p(counts)
        some = None if weights is None else weights[learnt]
        left = ratings.values[learnt] - prior[ratings.columns[learnt]]
        mean = np.average(left, weights=some)
        if penalties.means:
            left = (left - mean) * (1.0 if some is None else some / some.mean())
            prior = prior + np.bincount(ratings.columns[learnt], left, ratings.n_items) / (counts + SHRUNK)
        wrong = [*found.wrong, *self._unlike(ratings, prior + mean, float(mean)), *self._unlike_strengths()]
        return replace(found, wrong=tuple(wrong))

    def _unlike(self, ratings: Ratings, item_prior: Floats, mean: float) -> Iterator[str]:
        """What else the ranker tells of these ratings and is not so."""
        away = float(np.abs(self.item_prior_ - item_prior).max(initial=0.0))
        if not away <= ALLOWED * (1.0 + abs(mean)):
            what = "the mean and popularity of these ratings"
            yield f"items are pulled to other offsets than {what}, by up to {away:.3g}"
        if not abs(self.cold_start_bias_ - mean) <= ALLOWED * (1.0 + abs(mean)):
            yield f"the prior of an item without ratings is {mean:.8g}, not {self.cold_start_bias_:.8g}"
        if not np.array_equal(self.item_popularity_, ratings.counts):
            yield "item_counts_ are not those of these ratings"
        if self.loss != "regression" and self.user_offsets_.any():
            yield "users have offsets, which this loss cannot see"

    def _unlike_strengths(self) -> Iterator[str]:
        """Whether strengths fit λ, and what the options ask for; and whether factors are as many as asked for, and the
        gaps closed where training says so."""
        lam, strength, said = self.lam_, self.reg_, self.certificate_
        if not abs(lam - strength * (self.lam_max_ or lam)) <= ALLOWED * lam:
            yield f"strength_ = {strength:g} of lam_max_ = {self.lam_max_:g} is not lam_ = {lam:g}"
            return
        settings = CofiSettings.from_params(self.get_params(deep=False))
        found, name = (strength, "reg_") if self.lam is None and self.lam_max_ else (lam, "lam_")
        if not abs(found - (asked := settings.lam(vars(self).get("chosen_")))) <= ALLOWED * found:
            yield f"{name} = {found:.8g} is not the {asked:.8g} that was asked for or chosen"
        if self.factors not in ("free", width := self.item_factors_.shape[1]):
            yield f"there are {width} factors, not {self.factors}"
        if said.stop is Stop.GAP and not (gap := max(said.users_gap, said.items_gap)) <= settings.tol * (1.0 + ALLOWED):
            yield f"a gap of {gap:.2g} is not within the tolerance {settings.tol:g}"

    def save(self, path: Any) -> None:
        """Write the fitted ranker to a file of data only, to be read by `rankopt.rankers.load_model`."""
        from rankopt.persistence.models import save_model

        save_model(self, path)

    def _check_loaded(self) -> None:
        """Raise ModelError where what was read from a file does not fit together, or cannot be used."""
        check_learned(self)

    def _check_storable(self) -> None:
        for name in ("user_ids_", "item_ids_"):
            ids = getattr(self, name)
            if ids.dtype == object and not all(isinstance(one, str) for one in ids.tolist()):
                what = "neither 64-bit integers nor strings"
                raise ModelError(f"{name} cannot be saved because ids are {what}; map them")

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        state.pop("_seen", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.string = True
        return tags


def check_learned(ranker: Any) -> None:
    """Raise ModelError where fitted attributes are missing, of other shapes, or not finite."""
    ids = [getattr(ranker, name, None) for name in ("user_ids_", "item_ids_")]
    if not all(isinstance(one, np.ndarray) and one.ndim == 1 for one in ids):
        raise ModelError("users_ or items_ are missing or are no ids.")
    n, m = len(ids[0]), len(ids[1])  # type: ignore[arg-type]
    known = getattr(ranker, "item_factors_", None)
    width = known.shape[-1:] if isinstance(known, np.ndarray) else ()
    shapes: dict[str, tuple[int, ...]] = {
        "user_factors_": (n, *width), "item_factors_": (m, *width), "item_offsets_": (m,), "user_offsets_": (n,),
        "item_prior_": (m,), "item_popularity_": (m,), "dual_heights_": (n,), "item_dual_intercept_": (n,),
    }  # fmt: skip
    for name, shape in shapes.items():
        array: NDArray[Any] | None = getattr(ranker, name, None)
        kind = "i" if name == "item_popularity_" else "f"
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype.kind != kind:
            raise ModelError(f"{name} is missing or has another shape than {shape}.")
        if not np.isfinite(array).all():
            raise ModelError(f"{name} holds numbers that are not finite.")
    for name in ("dual_slopes_", "item_dual_coef_"):
        slopes = getattr(ranker, name, None)
        if not isinstance(slopes, np.ndarray) or slopes.shape != (int(ranker.item_popularity_.sum()),):
            raise ModelError(f"{name} is missing or holds not one number a rating.")
        if slopes.dtype.kind != "f" or not np.isfinite(slopes).all():
            raise ModelError(f"{name} holds what is no finite number.")
    for name in ("cold_start_bias_", "lam_", "lam_max_", "reg_", "offset_strength_"):
        if not np.isfinite(number(getattr(ranker, name, None))):
            raise ModelError(f"{name} is missing or no number.")
    if min(ranker.lam_max_, ranker.offset_strength_) < 0:
        raise ModelError("lam_max_ and offset_strength_ cannot be negative.")
    if min(ranker.lam_, ranker.reg_) <= 0:
        raise ModelError("lam_ and strength_ are above 0.")
    if not isinstance(getattr(ranker, "certificate_", None), FactorCertificate):
        raise ModelError("certificate_ is missing or is no certificate of factors.")
    if not isinstance(getattr(ranker, "history_", None), AlternationHistory):
        raise ModelError("history_ is missing or is no history of an alternation.")
    if type(getattr(ranker, "n_iter_", None)) is not int or ranker.n_iter_ != len(ranker.history_) - 1:
        raise ModelError("n_iter_ does not count the rounds of history_.")
    try:
        check_cofi(**ranker.get_params(deep=False))
    except (RankoptError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"a parameter or an id has a value that cannot work ({error}).") from error
    try:
        ranker._known()
    except (AttributeError, DataError, TypeError, ValueError) as error:
        raise ModelError(f"what users have seen, or attributes of items, do not fit together ({error}).") from error
