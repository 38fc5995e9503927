"""Collaborative ranking: users and items as factors, learned from ratings, with what is proved of them [paper 5]."""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from formulations.arrays import Floats
from rankopt.collaborative.alternation import AlternationStep
from rankopt.collaborative.loss_verification import slow_loss
from rankopt.collaborative.problem import ModelState
from rankopt.collaborative.reading import held_out, read_ratings_and_weights
from rankopt.collaborative.regularization import SHRUNK, RegularizationChoice, rated_only
from rankopt.collaborative.user_loss import UserLoss
from rankopt.collaborative.verification import VerifiedClaim, VerifiedFactors, all_pairs, verify_factors
from rankopt.data.typing import Pairs, Values
from rankopt.errors import DataError, MeasureError, ModelError, OptionError, RankoptError
from rankopt.fitting import atomic
from rankopt.measures.measure import Measure
from rankopt.measures.notation import parse
from rankopt.optimize.certificate import BLOCKS, FACTORS, Certificate, History, Stop, check_saved
from rankopt.options import Interval, Rules, check_options, number
from rankopt.persistence.models import save_model
from rankopt.rankers import typing as types
from rankopt.rankers.cofi_training import OF_THE_RUN, RULES, CofiSettings, train
from rankopt.rankers.recommending import RecommendationMixin
from rankopt.ratings.evaluation import check_judges
from rankopt.ratings.table import Ratings

ALLOWED = 1e-9  # by how much what items are pulled to may differ, as a part of it


@atomic
class CofiRanker(RecommendationMixin, BaseEstimator):
    """Matrix factorization trained on bounds of ranking measures: scores F[u, j] = b_j + ⟨U_u, M_j⟩ (+ b_u).

    It minimizes, with b_u in a regression only,

        J = Σ_u v_u l_u(F_u) + (λ/2)‖U‖² + (λ/2)‖M‖² + (μ/2)‖b - b⁰‖² (+ (μ/2)‖b_u‖²)

    l_u is a loss of the scores of the items that user u rated. The prior is b⁰_j = mean + c log(1 + count_j), with
    c = popularity_prior and count_j the number of ratings of item j by users with something to order. mean makes the
    mean of r_uj - b⁰_j over these ratings 0. J is convex in (U, b_u) for fixed M, b, and in (M, b) for fixed U, b_u.
    Training alternates between the two blocks and proves a duality gap for each.

    X is `rankopt.ratings.Ratings`, a data frame with columns of user, item and rating, or (n, 2) rows (user, item)
    with y (n,) ratings; ids are hashable. The model does not depend on the ids or on the order of the rows, bit for
    bit.

    Parameters
    ----------
    **Start here**

    loss : default "regression"
        "regression", Σ_j (F_uj - y_uj)²/2; a measure whose regret is bounded, "nDCG@10", "ERU(d=3)", ...; or a
        loss of `rankopt.losses.LOSSES` by name, "ordinal", "preferences", ... that is exact and has cutting
        planes.
    factors : default 15
        The number of factors of each user and each item, or "free", which adds factors until the global gap closes.
        This is d, the width of U and M; "free" doubles it along the top singular pairs of the dual state until the
        global gap is at most `tol`, or stops decreasing.
    reg : default "auto"
        Strength of the regularization, where 1 makes all factors 0; "auto" chooses it on the training ratings. It is
        ρ = λ/λ_max; all factors are 0 from ρ = 1 on for a convex loss. "auto" chooses ρ by cross-fitting (see
        `chosen_`).
    lam : default None
        λ; replaces reg.

    **Model**

    item_bias : default True
        True: an offset b_j for each item. False: one constant for all items.
    bias_reg : default None
        How many ratings the prior of an item's offset counts for: larger numbers shrink the offsets of items with
        few ratings more. None is 30 for item_prior "means", else 10. μ is this number times the curvature of one
        rating, Σψ²/(2Σl) at b⁰ with slopes ψ: 1 in a regression.
    item_prior : default "auto"
        The prior b⁰ of the items' offsets: "mean", the same for items of equal popularity; "means", plus the mean
        residual of the item's n ratings times n/(n + 30); "auto", "means" for ranking losses with a nonconvex
        bound or with a median of fewer than 30 ratings per user, else "mean".
    popularity_prior : default None
        The weight c >= 0 of log(1 + number of ratings of the item) in the prior of the items' offsets; None is a 40th
        of the range of the ratings in a regression (0.1 for 1 to 5 stars), else 0.1. The range is from their 1% to
        their 99% quantile, so the unit of the ratings has no effect on recommendations. A number c is in the unit of
        the scores: in a regression that of the ratings, else a quarter of their range.
    unrated_weight : default 0
        The weight 0 <= α < 1, in a regression, of each pair of a user and an item without a rating, as a rating of 0;
        0.05 suits lists among all items. Over these pairs, of users with ratings, (α/2) Σ F_uj² is added to J, b⁰ is
        0, and reg="auto" maximizes the measure among all items that a user has not rated. The weights of ratings, 1
        or sample_weight times user_weight, must exceed α. The time of a round is linear in the number of ratings; the
        global bound forms all pairs, up to 8 million. [Hu, Koren and Volinsky 2008]
    weight_by_count : default False
        True: λ and μ are multiplied by the number of ratings of the user or item.
    bound : default "convex"
        Of a measure's regret: "convex", "tie-aware", "nonconvex", or a custom bound.
    position_weights : default "shifted(0.25)"
        Position weights of the scores, for a measure; "shifted(0.25)" is (i + 1)^-0.25 [paper 5].
    measure : default "nDCG@10"
        The measure of `score`, eval_set and reg="auto", over the rated items of each user.

    **Solver**

    init : default "residual"
        "residual", the top singular pairs of the residuals of the offsets; or "random".
    tol : default None
        The relative gap of both blocks at which training ends; None is 1e-4.
    compute_bound : default True
        Whether to compute the global bound, for a convex loss. It needs a dense matrix of the smaller side, up
        to 5,000 wide.
    random_state : default None
        Seed of init="random".

    **Run**

    max_iter : default 100
        Maximum rounds; exceeding them raises a ConvergenceWarning.
    time_limit : default None
        Maximum seconds, of which reg="auto" may use half; exceeding them raises a ConvergenceWarning.
    patience : default 5
        Rounds without improvement on eval_set after which training ends.
    engine, n_jobs, checkpoint, verbose : defaults "threads", None, None, 0
        As in `LargeMarginRanker`.
    callbacks : default ()
        Functions (step, state) called after each round; training ends if one returns True.

    Notes
    -----
    Fitted: `user_ids_`, `item_ids_`; `user_factors_` (n, d), `item_factors_` (m, d), `item_bias_` (m,),
    `user_bias_` (n,), 0 where the loss is invariant to them; `item_prior_` b⁰ (m,), `cold_start_bias_`, the prior
    of an item without ratings, `item_popularity_` (m,); `rating_range_`, the least and the largest rating;
    `lam_`, `lam_max_`, `reg_`, `bias_reg_` μ;
    `certificate_`, `history_`, `n_iter_`; and the dual states that prove the certificate: planes below the loss of
    each user, with slopes (ratings,) in the order of `Ratings` (less α F_uj, the slopes of unrated pairs) and heights
    (n,). These are `user_dual_coef_`, `user_dual_intercept_` of the users' block and `item_dual_coef_`,
    `item_dual_intercept_` of the items' block. With eval_set the factors are those of the best round on it, and
    `best_score_` is its score.
    """

    __metadata_request__fit: ClassVar = {"sample_weight": True, "user_weight": True}
    __metadata_request__score: ClassVar = {"sample_weight": True}

    _saved: ClassVar[tuple[str, ...]] = (
        "user_ids_", "item_ids_", "user_factors_", "item_factors_", "item_bias_", "user_bias_",
        "item_prior_", "cold_start_bias_", "item_popularity_",
        "lam_", "lam_max_", "reg_", "bias_reg_", "chosen_", "certificate_",
        "history_", "n_iter_",
        "user_dual_coef_", "user_dual_intercept_", "item_dual_coef_", "item_dual_intercept_",
        "best_score_", "n_features_in_", "seen_indptr_", "seen_indices_", "item_attributes_",
        "rating_range_",
    )  # fmt: skip
    _of_the_run: ClassVar[tuple[str, ...]] = OF_THE_RUN
    _rules: ClassVar[Rules] = RULES
    _misnamed: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("n_factors", "n_components", "rank", "k"), "the number of factors is called factors here"),
        **dict.fromkeys(
            ("regularization", "reg_all", "alpha", "lambda_"),
            "the regularization is called reg here, relative to λ_max; lam is λ itself",
        ),
        **dict.fromkeys(("n_epochs", "iterations", "epochs"), "the maximum number of rounds is called max_iter here"),
    }

    certificate_: Certificate
    history_: History
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
        popularity_prior: float | None = None,
        unrated_weight: float = 0.0,
        weight_by_count: bool = False,
        bound: types.AnyBound = "convex",
        position_weights: types.AnyPositionWeights = "shifted(0.25)",
        measure: types.AnyMeasure = "nDCG@10",
        init: Literal["residual", "random"] = "residual",
        tol: float | None = None,
        compute_bound: bool = True,
        max_iter: int = 100,
        time_limit: float | None = None,
        patience: int = 5,
        random_state: types.Seed = None,
        engine: types.AnyEngine = "threads",
        n_jobs: int | None = None,
        callbacks: Sequence[Callable[[AlternationStep, ModelState], bool | None]] = (),
        checkpoint: types.AnyCheckpoint = None,
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
        self.unrated_weight = unrated_weight
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
        X: types.AnyRatings,
        y: Values | None = None,
        *,
        sample_weight: Values | None = None,
        user_weight: types.Weights | None = None,
        eval_set: Ratings | tuple[Pairs, Values] | None = None,
    ) -> Self:
        """Fit the factors to ratings.

        sample_weight: (n,) weights of ratings, for losses that are sums over ratings. user_weight: v_u, an array
        (n_users,) in the order of `Ratings.users`, or a mapping from user, which may contain other users. eval_set:
        other ratings, `Ratings` or (X, y); the best round on them is retained. A failed fit leaves the ranker
        unchanged.
        """
        self._check_params()
        ratings, weights = read_ratings_and_weights(X, y, sample_weight, user_weight)
        evaluation = None if eval_set is None else held_out(eval_set, ratings)
        self._fit(ratings, weights, sample_weight is not None, evaluation)
        return self

    _fit = train

    def _check_params(self) -> None:
        """Raise OptionError or MeasureError for a value that cannot work."""
        check_options(self)
        parse(self.measure)
        loss = UserLoss.named(self.loss, self.bound, self.position_weights)
        if self.unrated_weight and not loss.sees_levels:
            raise OptionError(f"unrated_weight needs loss='regression'; got loss={self.loss!r}. Omit one of the two.")
        if self.unrated_weight and (self.item_prior != "auto" or self.popularity_prior is not None):
            raise OptionError("unrated_weight sets the prior of the items to 0; omit item_prior and popularity_prior.")

    def score(self, X: types.AnyRatings, y: Values | None = None, *, sample_weight: Values | None = None) -> float:
        """The mean over users of `measure` on these ratings, each user's over the rated items alone, equal scores
        averaged; users of fewer than two different ratings imply no order and do not count, as in
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
        X: types.AnyRatings,
        y: Values | None = None,
        *,
        sample_weight: Values | None = None,
        user_weight: types.Weights | None = None,
        planes: int = 50,
        seed: int = 0,
    ) -> VerifiedFactors:
        """Verify J, the bounds of both blocks and the global bound of `certificate_` by independent code.

        X, y, sample_weight, user_weight: the training data. planes: the number of users, drawn with the seed, whose
        dual planes are checked by a linear program. For a regression all are checked; for a nonconvex bound none, as
        its planes depend on the scores. Verification shares only the definitions of measures and position weights with
        training. It is slow: an assignment for every user, a program for every drawn one, seconds for 700 ratings.

        Returns a `VerifiedFactors`: true if everything holds, with the failures in words, the number of checked planes
        and of lists that are too long. Raises DataError for ratings other than those of `fit`, OptionError for a loss
        without a reference implementation (`slow_loss`).
        """
        check_is_fitted(self)
        for name, value in (("planes", planes), ("seed", seed)):
            if value not in Interval(0, integer=True):
                raise OptionError(f"{name} = {value!r} is not an integer >= 0; pass such an integer")
        params, held = self.get_params(deep=False), vars(self)
        ratings, weights = read_ratings_and_weights(X, y, sample_weight, user_weight)
        known = np.array_equal(ratings.users, self.user_ids_) and np.array_equal(ratings.items, self.item_ids_)
        if not known or ratings.n_ratings != held["user_dual_coef_"].size:
            raise DataError("these are not the ratings of the fit: users, items or their number differ; give those")
        loss = slow_loss(params["loss"], params["bound"], params["position_weights"])
        sizes = np.diff(ratings.bounds)
        rows = zip(ratings.bounds[:-1].tolist(), ratings.bounds[1:].tolist(), strict=True)
        try:
            seen = np.array([low < high and loss.has_order(ratings.values[low:high]) for low, high in rows], dtype=bool)
        except MeasureError as error:
            raise OptionError(f"loss = {params['loss']!r} cannot be verified on these ratings: {error}") from error
        learned = np.repeat(seen, sizes)
        counts = np.bincount(ratings.columns[learned], minlength=ratings.n_items)
        of_users, of_items = np.ones(ratings.n_users), np.ones(ratings.n_items)
        if params["weight_by_count"]:
            of_users, of_items = np.maximum(sizes, 1.0), np.maximum(counts, 1.0)
        penalties = CofiSettings.from_params(params).penalties(sizes[seen])
        own = float(held["bias_reg_"])
        claim = VerifiedClaim(
            factors=self.model_,
            of_users=held["lam_"] * of_users,
            of_items=held["lam_"] * of_items,
            of_offsets=own * of_items if params["item_bias"] else np.full(ratings.n_items, np.inf),
            of_user_offsets=None if penalties.user_offsets is None else penalties.user_offsets * of_users,
            prior=held["item_prior_"],
            duals=(
                (held["user_dual_coef_"], held["user_dual_intercept_"]),
                (held["item_dual_coef_"], held["item_dual_intercept_"]),
            ),
            certificate=self.certificate_,
        )
        claim, pairs, of_pairs = all_pairs(claim, ratings, weights, penalties.unrated)
        found = verify_factors(claim, pairs, loss, of_pairs, int(planes), seed)
        seen_values, some = penalties.in_scores(ratings.values[learned]), None if weights is None else weights[learned]
        c = 0.0 if penalties.unrated else penalties.popularity_of(ratings.values[learned])
        prior = c * np.log1p(counts)
        left = seen_values - prior[ratings.columns[learned]]
        mean = 0.0 if penalties.unrated else np.average(left, weights=some)
        if penalties.means:
            left = (left - mean) * (1.0 if some is None else some / some.mean())
            prior = prior + np.bincount(ratings.columns[learned], left, ratings.n_items) / (counts + SHRUNK)
        wrong = [*found.wrong, *self._unlike(ratings, prior + mean, float(mean)), *self._unlike_strengths()]
        return replace(found, wrong=tuple(wrong))

    def _unlike(self, ratings: Ratings, item_prior: Floats, mean: float) -> Iterator[str]:
        """What else the ranker tells of these ratings and is not so."""
        away = float(np.abs(self.item_prior_ - item_prior).max(initial=0.0))
        scale = ALLOWED * float(np.abs(item_prior).max(initial=0.0) or 1.0)
        if not away <= scale:
            what = "the mean and popularity of these ratings"
            yield f"items are pulled to other offsets than {what}, by up to {away:.3g}"
        if not abs(self.cold_start_bias_ - mean) <= scale:
            yield f"the prior of an item without ratings is {mean:.8g}, not {self.cold_start_bias_:.8g}"
        if not np.array_equal(self.item_popularity_, ratings.counts):
            yield "item_counts_ are not those of these ratings"
        if self.loss != "regression" and self.user_bias_.any():
            yield "users have offsets, which this loss cannot see"

    def _unlike_strengths(self) -> Iterator[str]:
        """Check that the strengths match λ and the options, the number of factors the request, and the gaps the
        stopping reason."""
        lam, strength, certificate = self.lam_, self.reg_, self.certificate_
        if not abs(lam - strength * (self.lam_max_ or lam)) <= ALLOWED * lam:
            yield f"reg_ = {strength:g} of lam_max_ = {self.lam_max_:g} is not lam_ = {lam:g}"
            return
        settings = CofiSettings.from_params(self.get_params(deep=False))
        found, name = (strength, "reg_") if self.lam is None and self.lam_max_ else (lam, "lam_")
        if not abs(found - (expected := settings.lam(vars(self).get("chosen_")))) <= ALLOWED * found:
            yield f"{name} = {found:.8g} is not the {expected:.8g} that was requested or chosen"
        if self.factors not in ("free", width := self.item_factors_.shape[1]):
            yield f"there are {width} factors, not {self.factors}"
        gap = max(certificate.users_gap, certificate.items_gap) if certificate.stop is Stop.GAP else 0.0
        if not gap <= settings.tol * (1.0 + ALLOWED):
            yield f"a gap of {gap:.2g} is not within the tolerance {settings.tol:g}"

    def save(self, path: Any) -> None:
        """Write the fitted ranker to a file of data only, to be read by `rankopt.rankers.load_model`."""
        save_model(self, path)

    def _check_loaded(self) -> None:
        """Raise ModelError where fitted attributes are missing, of other shapes, or not finite, or cannot be used."""
        ids: list[Any] = [getattr(self, name, None) for name in ("user_ids_", "item_ids_")]
        if not all(isinstance(one, np.ndarray) and one.ndim == 1 for one in ids):
            raise ModelError("user_ids_ or item_ids_ are missing or are no ids.")
        n, m = len(ids[0]), len(ids[1])
        known = getattr(self, "item_factors_", None)
        width = known.shape[-1:] if isinstance(known, np.ndarray) else ()
        shapes: dict[str, tuple[int, ...]] = {
            "user_factors_": (n, *width), "item_factors_": (m, *width), "item_bias_": (m,), "user_bias_": (n,),
            "item_prior_": (m,), "item_popularity_": (m,), "user_dual_intercept_": (n,), "item_dual_intercept_": (n,),
        }  # fmt: skip
        for name, shape in shapes.items():
            array: NDArray[Any] | None = getattr(self, name, None)
            kind = "i" if name == "item_popularity_" else "f"
            if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype.kind != kind:
                raise ModelError(f"{name} is missing or has another shape than {shape}.")
            if not np.isfinite(array).all():
                raise ModelError(f"{name} holds numbers that are not finite.")
        for name in ("user_dual_coef_", "item_dual_coef_"):
            slopes = getattr(self, name, None)
            if not isinstance(slopes, np.ndarray) or slopes.shape != (int(self.item_popularity_.sum()),):
                raise ModelError(f"{name} is missing or holds not one number a rating.")
            if slopes.dtype.kind != "f" or not np.isfinite(slopes).all():
                raise ModelError(f"{name} holds what is no finite number.")
        for name in ("cold_start_bias_", "lam_", "lam_max_", "reg_", "bias_reg_"):
            if not np.isfinite(number(getattr(self, name, None))):
                raise ModelError(f"{name} is missing or no number.")
        if min(self.lam_max_, self.bias_reg_) < 0:
            raise ModelError("lam_max_ and bias_reg_ cannot be negative.")
        if min(self.lam_, self.reg_) <= 0:
            raise ModelError("lam_ and reg_ must be greater than 0.")
        check_saved(self, AlternationStep, FACTORS, BLOCKS)
        if type(getattr(self, "n_iter_", None)) is not int or self.n_iter_ != len(self.history_) - 1:
            raise ModelError("n_iter_ does not count the rounds of history_.")
        try:
            self._check_params()
        except (RankoptError, TypeError, ValueError, OverflowError) as error:
            raise ModelError(f"a parameter or an id has a value that cannot work ({error}).") from error
        try:
            self._known()
        except (AttributeError, DataError, TypeError, ValueError) as error:
            raise ModelError(f"what users have seen, or attributes of items, do not fit together ({error}).") from error

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
