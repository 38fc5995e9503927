"""Collaborative ranking: users and items as factors, learned from ratings, with what is proved of them [paper 5].

How a fitted `CofiRanker` is saved, and whether what was read back can be used.
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankopt.collaborative.alternation import AlternationHistory, AlternationStep
from rankopt.collaborative.certificate import FactorCertificate
from rankopt.collaborative.factors import Factors, scores_of_pairs
from rankopt.collaborative.problem import ModelState
from rankopt.collaborative.reading import held_out, places_of_pairs, read_ratings_and_weights
from rankopt.collaborative.regularization import RegularizationChoice, rated_only
from rankopt.data.typing import Pairs, Values
from rankopt.errors import DataError, ModelError
from rankopt.fitting import AtomicFitMixin
from rankopt.measures.measure import Measure
from rankopt.rankers.cofi_options import check_cofi, check_learned
from rankopt.rankers.cofi_training import CofiFitMixin
from rankopt.rankers.cofi_verification import VerificationMixin
from rankopt.rankers.options import AnyBound, AnyCheckpoint, AnyDecay, AnyEngine, AnyMeasure, AnyRatings, Seed, Weights
from rankopt.rankers.recommending import RecommendationMixin
from rankopt.ratings.evaluation import check_judges
from rankopt.ratings.table import Ratings

# mypy: allow-subclassing-any


class CofiPersistenceMixin:
    """What saved models and pickles ask of a ranker, and a table that knows its ids."""

    users_: NDArray[Any]
    items_: NDArray[Any]
    _ids: Ratings
    _check_remembered: Any

    def _known(self) -> Ratings:
        """A table without ratings that knows the ids."""
        held = vars(self).get("_ids")
        if held is None or held.users is not self.users_:
            n = np.zeros(len(self.users_) + 1, dtype=np.int64)
            held = Ratings(self.users_, self.items_, n, np.zeros(0, np.int32), np.zeros(0))
            self._ids = held
        return self._ids

    def save(self, path: Any) -> None:
        """Write the fitted ranker to a file of data only, to be read by `rankopt.rankers.load_model`."""
        from rankopt.persistence.models import save_model

        save_model(self, path)

    def _check_loaded(self) -> None:
        """Raise ModelError where what was read from a file does not fit together, or cannot be used."""
        check_learned(self)
        self._check_remembered()

    def _check_storable(self) -> None:
        for name in ("users_", "items_"):
            ids = getattr(self, name)
            if ids.dtype == object and not all(isinstance(one, str) for one in ids.tolist()):
                what = "neither whole numbers of 64 bits nor strings"
                raise ModelError(f"{name} cannot be saved because ids are {what}; map them")

    def __getstate__(self) -> Any:
        above: Any = super()
        state = dict(above.__getstate__())
        for name in ("_ids", "_model_known"):
            state.pop(name, None)
        return state


# mypy: allow-subclassing-any


Floats = NDArray[np.float64]


class CofiRanker(
    AtomicFitMixin, CofiFitMixin, RecommendationMixin, VerificationMixin, CofiPersistenceMixin, BaseEstimator
):
    """Scores F[u, j] = b_j + ⟨U_u, M_j⟩ (+ b_u in a regression). M and b, with users of the training, make small

        J = Σ_u v_u l_u(F_u) + (λ_U/2)‖U‖² + (λ/2)‖M‖² + (μ/2)‖b - b⁰‖² (+ (μ/2)‖b_u‖²)   at λ_U = λ,

    l_u a loss of the scores of what user u rated, b⁰_j = mean + c log(1 + count_j), c the popularity, count_j the
    ratings of an item by users who tell the loss an order, mean the constant that leaves r_uj - b⁰_j a mean of 0 over
    all these ratings. For fixed M, b each user is a small convex problem, for fixed U, b_u the items are one: the two
    blocks are solved in turn, each to a gap that is proved. Then users may be solved once more, at λ_U of their own
    (`user_strength`): the U, b_u of the scores minimise J at that λ_U, for the M, b that were found.

    Everywhere X is `rankopt.ratings.Ratings`, a data frame with columns of user, item and rating, or (n, 2) rows of
    user and item with y (n,) ratings; ids are any hashables. Relabelled users or items and shuffled rows give the same
    model, bit for bit.

    Args:
        loss: "regression", Σ_j (F_uj - y_uj)²/2; a measure whose regret is bounded, "nDCG@10", "ERU(d=3)", ...; or a
            loss of `rankopt.losses.LOSSES` by name, "ordinal", "preferences", ... that says planes and is exact.
        factors: d, the width of U and M; or "free": doubled along the top singular pairs of the dual state until the
            gap of the whole is within `tol`, or closes no more.
        strength: ρ = λ/λ_max, λ_max the λ from which on a convex loss leaves no factors; "auto" chooses it by
            cross-fitting inside the training ratings (`chosen_` tells how).
        user_strength: ρ_U = λ_U/λ_max of the users that scores use; None leaves them as trained; "auto" takes two
            thirds of a strength that was chosen, .75 or more, where the loss is a convex one of orders and users have
            30 ratings or more in the median, else None. With eval_set such users are taken only where they reach there
            what the trained ones do.
        lam: λ itself, in place of strength.
        offsets: whether items have offsets b of their own; else b is one constant for all.
        offset_strength: how many ratings the prior counts for; None is 10, and 30 where it is "means". μ is this times
            what a rating bends the loss by, Σψ²/(2Σl) at b⁰ with its slopes ψ: 1 in a regression.
        prior: "mean", b⁰ as above; "means", plus the mean of what an item's n ratings leave over, times n/(n + 30);
            "auto", chosen beside the strength where that is "auto" and the loss a convex one of orders, else "means"
            under a bound that is not convex, "mean" otherwise.
        popularity: c >= 0.
        by_counts: λ and μ count once a rating of the user or item, in place of once.
        bound: of a measure's regret: "convex", "tie-aware", "nonconvex", or of your own.
        decay: position weights of the scores, for a measure; "shifted(0.25)" is (i + 1)^-0.25, the paper's.
        measure: what `score`, eval_set and strength="auto" go by, over the rated items of each user.
        start: "residual", the top singular pairs of what offsets alone leave over; or "random", which draws.
        tol: the gap of both blocks at which training ends, as a part of J; None is 1e-4.
        certify: whether the bound of the whole is worked out, where the loss is convex: it takes a dense matrix of the
            smaller side, up to 5,000 wide.
        max_iter, time_limit: rounds, and seconds, after which it ends anyway, with a ConvergenceWarning; the choice of
            a strength may take half of the seconds, and users of a strength of their own are solved after them.
        patience: rounds without a better measure on eval_set after which it ends.
        random_state: of start="random"; nothing else is drawn.
        engine, n_jobs: who computes users and items, as in `LargeMarginRanker`; the bits are the same.
        callbacks: functions (step, standing) called after each round; one that returns True ends training.
        checkpoint: as in `LargeMarginRanker`.
        verbose: 1 shows progress on a terminal.

    Fitted: `users_`, `items_`, the ids; `user_factors_` (n, d), `item_factors_` (m, d), `item_offsets_` (m,),
    `user_offsets_` (n,), 0 where the loss cannot see them; `trained_user_factors_` (n, d), `trained_user_offsets_` (n,)
    of the users of the training, the same arrays where these were not solved once more; `user_strength_`, ρ_U of
    `user_factors_`, equal to `strength_` then; else `user_gap_`, by how much of what they cost they may be above the
    best users, and `user_dual_slopes_`, `user_dual_heights_`, which prove it (else 0 and empty); `item_prior_` b⁰ (m,),
    `unknown_` that of an item without ratings, `item_counts_` (m,); `lam_`, `lam_max_`, `strength_`,
    `offset_strength_` μ; `certificate_`, `history_`, `n_iter_` of the training; and the dual states that prove what the
    certificate says, each a plane below every user's loss: slopes (ratings,) in the order of `Ratings` and heights
    (n,), `dual_slopes_`, `dual_heights_` of the users' block, `item_dual_slopes_`, `item_dual_heights_` of the items',
    often the same. With eval_set the factors are the best of
    all rounds there, and `eval_score_` is what they reach.
    """

    __metadata_request__fit: ClassVar = {"sample_weight": True, "user_weight": True}
    __metadata_request__score: ClassVar = {"sample_weight": True}

    _saved: ClassVar[tuple[str, ...]] = (
        "users_", "items_", "user_factors_", "item_factors_", "item_offsets_", "user_offsets_",
        "trained_user_factors_", "trained_user_offsets_", "user_dual_slopes_", "user_dual_heights_", "user_gap_",
        "item_prior_", "unknown_", "item_counts_",
        "lam_", "lam_max_", "strength_", "user_strength_", "offset_strength_", "chosen_", "certificate_",
        "history_", "n_iter_",
        "dual_slopes_", "dual_heights_", "item_dual_slopes_", "item_dual_heights_", "eval_score_", "n_features_in_",
        *RecommendationMixin._remembered,
    )  # fmt: skip
    _of_the_run: ClassVar[tuple[str, ...]] = ("callbacks", "checkpoint", "engine", "n_jobs", "verbose")

    users_: NDArray[Any]
    items_: NDArray[Any]
    certificate_: FactorCertificate
    history_: AlternationHistory
    n_features_in_: int
    eval_score_: float
    chosen_: RegularizationChoice

    def __init__(
        self,
        loss: str | Measure | Callable[..., Any] = "regression",
        *,
        factors: int | Literal["free"] = 15,
        strength: float | Literal["auto"] = "auto",
        user_strength: float | Literal["auto"] | None = "auto",
        lam: float | None = None,
        offsets: bool = True,
        offset_strength: float | None = None,
        prior: Literal["auto", "mean", "means"] = "auto",
        popularity: float = 0.1,
        by_counts: bool = False,
        bound: AnyBound = "convex",
        decay: AnyDecay = "shifted(0.25)",
        measure: AnyMeasure = "nDCG@10",
        start: Literal["residual", "random"] = "residual",
        tol: float | None = None,
        certify: bool = True,
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
        self.strength = strength
        self.user_strength = user_strength
        self.lam = lam
        self.offsets = offsets
        self.offset_strength = offset_strength
        self.prior = prior
        self.popularity = popularity
        self.by_counts = by_counts
        self.bound = bound
        self.decay = decay
        self.measure = measure
        self.start = start
        self.tol = tol
        self.certify = certify
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

    @property
    def model_(self) -> Factors:
        """The factors and offsets as one record, in the order of `users_` and `items_`."""
        return Factors(self.user_factors_, self.item_factors_, self.item_offsets_, self.user_offsets_)

    def predict(self, X: AnyRatings) -> Floats:
        """The scores (n,) of the pairs of X, rows of user and item, in their order, or of all pairs of `Ratings`.

        A user who is unknown has the item's offset alone, an item that is unknown the prior of one without ratings.
        Raises DataError for an id that is known by another type: "17" where 17 is.
        """
        check_is_fitted(self)
        return scores_of_pairs(self.model_, *places_of_pairs(self._known(), X), self.unknown_)

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
            raise DataError("sample_weight differs inside a user, but a ranking is weighed as a whole; give one a user")
        return float(np.average(values[counted], weights=of_user[counted]))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.string = True
        return tags
