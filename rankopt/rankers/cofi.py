"""Collaborative ranking: users and items as factors, learned from ratings, with what is proved of them [paper 5]."""
# mypy: allow-subclassing-any

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from rankopt.all_or_nothing import AllOrNothing
from rankopt.collaborative.alternation import Alternated, Alternation, alternated, gone_on
from rankopt.collaborative.certificate import FactorCertificate
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.history import AlternationHistory, AlternationStep
from rankopt.collaborative.kept import as_data, run_of
from rankopt.collaborative.learned import factors_to_caller, to_caller
from rankopt.collaborative.measured import rated_only
from rankopt.collaborative.prediction import scores_of_pairs
from rankopt.collaborative.prior import Penalties
from rankopt.collaborative.problem import Standing
from rankopt.collaborative.proved import certificate_of
from rankopt.collaborative.rated import Rated
from rankopt.collaborative.reading import pairs_of, read_ratings_and_weights
from rankopt.collaborative.start import Start, random_start, start_of
from rankopt.collaborative.strength import Chosen, chosen_strength
from rankopt.collaborative.user_loss import UserLoss
from rankopt.collaborative.widening import FIRST, widened
from rankopt.data.ratings.table import Ratings
from rankopt.errors import DataError, Interrupted, ModelError
from rankopt.optimize.certificate import Stop
from rankopt.persistence.checkpoint import Checkpoint
from rankopt.persistence.identity import identity_of_ratings
from rankopt.rankers.cofi_options import check_cofi, check_learned, workers_of
from rankopt.rankers.cofi_verification import VerifiedMixin
from rankopt.rankers.progress import shown
from rankopt.rankers.recommending import Recommending

__all__ = ["CofiRanker"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


TRIAL_TOL, TRIAL_ROUNDS = 2e-3, 10
"""How far a model of strength="auto" is trained: its measure settles before its gaps do."""


class CofiRanker(AllOrNothing, Recommending, VerifiedMixin, BaseEstimator):
    """Scores F[u, j] = b_j + ⟨U_u, M_j⟩ (+ b_u in a regression) that minimise

        J = Σ_u v_u l_u(F_u) + (λ/2)(‖U‖² + ‖M‖²) + (μ/2)‖b - b⁰‖² (+ (μ/2)‖b_u‖²),   b⁰_j = mean + c log(1 + count_j)

    l_u a loss of the scores of what user u rated, c the popularity. For fixed M, b each user is a small convex problem,
    for fixed U the items are one: the two blocks are solved in turn, each to a gap that is proved.

    Everywhere X is `rankopt.data.Ratings`, a data frame with columns of user, item and rating, or (n, 2) rows of user
    and item with y (n,) ratings; ids are any hashables. Relabelled users or items and shuffled rows give the same
    model, bit for bit.

    Args:
        loss: "regression", Σ_j (F_uj - y_uj)²/2; a measure whose regret is bounded, "nDCG@10", "ERU(d=3)", ...; or any
            loss of `rankopt.losses.LOSSES` by name, "ordinal", "preferences", ...
        factors: d, the width of U and M; or "free": doubled along the top singular pairs of the dual state until the
            gap of the whole is within `tol`, or closes no more.
        strength: ρ = λ/λ_max, λ_max the λ from which on all factors are 0; "auto" chooses it by cross-fitting inside
            the training ratings (`chosen_` tells how).
        lam: λ itself, in place of strength.
        offsets: whether items have offsets b of their own; else b is one constant for all.
        offset_strength: μ > 0, how many ratings the prior counts for.
        popularity: c >= 0.
        by_counts: λ and μ count once a rating of the user or item, in place of once.
        bound: of a measure's regret: "convex", "tie-aware", "nonconvex", or of your own.
        decay: position weights of the scores, for a measure; "shifted(0.25)" is (i + 1)^-0.25, the paper's.
        measure: what `score`, eval_set and strength="auto" go by, over the rated items of each user.
        start: "residual", the top singular pairs of what offsets alone leave over; or "random", which draws.
        tol: the gap of both blocks at which training ends, as a part of J.
        certify: whether the bound of the whole is worked out, where the loss is convex: it takes a dense matrix of the
            smaller side, up to 5,000 wide.
        max_iter, time_limit: rounds, and seconds, after which it ends anyway, with a ConvergenceWarning.
        patience: rounds without a better measure on eval_set after which it ends.
        random_state: of start="random"; nothing else is drawn.
        engine, n_jobs: who computes users and items, as in `LargeMarginRanker`; the bits are the same.
        callbacks: functions (step, standing) called after each round; one that returns True ends training.
        checkpoint: as in `LargeMarginRanker`.
        verbose: 1 shows progress on a terminal.

    Fitted: `users_`, `items_`, the ids; `user_factors_` (n, d), `item_factors_` (m, d), `item_offsets_` (m,),
    `user_offsets_` (n,), 0 where the loss cannot see them; `item_prior_` b⁰ (m,), `unknown_` that of an item without
    ratings, `item_counts_` (m,); `lam_`, `lam_max_`, `strength_`; `certificate_`, `history_`, `n_iter_`; and the dual
    states that prove what the certificate says, each a plane below every user's loss: slopes (ratings,) in the order of
    `Ratings` and heights (n,), `dual_slopes_`, `dual_heights_` of the users' block, `item_dual_slopes_`,
    `item_dual_heights_` of the items', often the same. With eval_set the factors are the best of all rounds there, and
    `eval_score_` is what they reach.
    """

    __metadata_request__fit: ClassVar = {"sample_weight": True, "user_weight": True}
    __metadata_request__score: ClassVar = {"sample_weight": True}

    _saved: ClassVar[tuple[str, ...]] = (
        "users_", "items_", "user_factors_", "item_factors_", "item_offsets_", "user_offsets_", "item_prior_",
        "unknown_", "item_counts_", "lam_", "lam_max_", "strength_", "chosen_", "certificate_", "history_", "n_iter_",
        "dual_slopes_", "dual_heights_", "item_dual_slopes_", "item_dual_heights_", "eval_score_", "n_features_in_",
        *Recommending._remembered,
    )  # fmt: skip
    _of_the_run: ClassVar[tuple[str, ...]] = ("callbacks", "checkpoint", "engine", "n_jobs", "verbose")

    users_: NDArray[Any]
    items_: NDArray[Any]
    certificate_: FactorCertificate
    history_: AlternationHistory
    n_features_in_: int
    eval_score_: float
    chosen_: Chosen

    def __init__(
        self,
        loss: Any = "regression",
        *,
        factors: int | str = 15,
        strength: float | str = "auto",
        lam: float | None = None,
        offsets: bool = True,
        offset_strength: float = 10.0,
        popularity: float = 0.1,
        by_counts: bool = False,
        bound: Any = "convex",
        decay: Any = "shifted(0.25)",
        measure: Any = "nDCG@10",
        start: str = "residual",
        tol: float = 1e-3,
        certify: bool = True,
        max_iter: int = 100,
        time_limit: float | None = None,
        patience: int = 5,
        random_state: Any = None,
        engine: Any = "threads",
        n_jobs: int | None = None,
        callbacks: Sequence[Callable[[AlternationStep, Standing], bool | None]] = (),
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.loss = loss
        self.factors = factors
        self.strength = strength
        self.lam = lam
        self.offsets = offsets
        self.offset_strength = offset_strength
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
        self, X: Any, y: Any = None, *, sample_weight: Any = None, user_weight: Any = None, eval_set: Any = None
    ) -> Self:
        """Learn from ratings.

        sample_weight: (n,) one a rating, for losses that are sums over ratings. user_weight: v_u, a mapping from user
        or (n_users,) in the order of `Ratings.users`. eval_set: other ratings, `Ratings` or (X, y): the round that is
        best there is kept. A fit that fails leaves the ranker as it was.
        """
        check_cofi(**self.get_params(deep=False))
        ratings, weights = read_ratings_and_weights(X, y, sample_weight, user_weight)
        held = eval_set if isinstance(eval_set, tuple | list) else (eval_set, None)
        evaluation = None if eval_set is None else read_ratings_and_weights(*held)[0]
        self._fit(ratings, weights, sample_weight is not None, evaluation)
        return self

    def _fit(self, ratings: Ratings, weights: Floats | None, by_rating: bool, evaluation: Ratings | None) -> None:
        kept = self.checkpoint if isinstance(self.checkpoint, Checkpoint | None) else Checkpoint(self.checkpoint)
        loss = UserLoss.named(self.loss, self.bound, self.decay)
        loss.check_weights(by_rating)
        penalties = self._penalties(loss)
        with (
            workers_of(self.engine, self.n_jobs) as engine,
            shown(self.verbose) as progress,
            nullcontext() if kept is None else kept.claimed(),
        ):
            counts = ratings.counts  # now: it takes 8 bytes a rating while it is made
            rated = loss.seen(Rated.of(ratings, weights))

            def build(some: Rated) -> Any:
                return loss.blocks(penalties.problem(some), engine)

            blocks = build(rated)
            width = FIRST if isinstance(self.factors, str) else int(self.factors)
            start = start_of(blocks, width)
            lam, chosen = self._lam(rated, build, start, width)
            blocks = blocks.at_strength(lam, lam)
            judge = None if evaluation is None else self._judge(ratings, rated, blocks, evaluation)
            settings = Alternation(float(self.tol), int(self.max_iter), self.time_limit, int(self.patience))
            keep = None
            if kept is not None:

                def keep(at: Alternated) -> None:
                    kept.write(lambda: as_data(at), at.stop is not None)

            def begun() -> Any:
                params = {k: v for k, v in self.get_params(deep=False).items() if k not in self._of_the_run}
                of_run = identity_of_ratings(type(self).__name__, params, ratings, weights, evaluation)
                fixed = None if isinstance(self.factors, str) else width
                found = None if kept is None else kept.found(of_run, lambda run: run_of(run, blocks, fixed))
                if found is not None:
                    return found
                residual = self.start == "residual"
                return blocks.begun(start.factors if residual else random_start(start, self.random_state))

            def go_on(begin: Callable[[], Any], tol: float) -> Alternated:
                finer = replace(settings, tol=min(tol, settings.tol))
                return alternated(blocks, finer, begin, (*self.callbacks, *progress), judge, keep)

            done = go_on(begun, settings.tol)
            if isinstance(self.factors, str):
                done = widened(
                    blocks, done, lambda at, wider, tol: go_on(lambda: gone_on(at, wider), tol), settings.tol
                )
            self._keep(ratings, counts, blocks, done, evaluation is not None)
        self.lam_, self.lam_max_ = float(lam), start.lam_max
        self.strength_ = float(lam / start.lam_max) if start.lam_max else 1.0
        if hasattr(self, "chosen_"):
            del self.chosen_
        if chosen is not None:
            self.chosen_ = chosen
        self._tell(done.stop)

    def _penalties(self, loss: UserLoss) -> Penalties:
        own = float(self.offset_strength)
        return Penalties(
            popularity=float(self.popularity),
            offsets=own if self.offsets else None,
            user_offsets=own if loss.sees_levels else None,
            by_counts=bool(self.by_counts),
        )

    def _lam(
        self, rated: Rated, build: Callable[[Rated], Any], start: Start, width: int
    ) -> tuple[float, Chosen | None]:
        if self.lam is not None:
            return float(self.lam), None
        if not isinstance(self.strength, str):
            return float(self.strength) * (start.lam_max or 1.0), None

        def measure(left: Rated, scores: Floats) -> Floats:
            return rated_only(left.bounds, left.values, scores, self.measure)

        settings = Alternation(max(float(self.tol), TRIAL_TOL), min(int(self.max_iter), TRIAL_ROUNDS))
        chosen = chosen_strength(rated, build, width, measure, settings)
        return chosen.strength * (start.lam_max or 1.0), chosen

    def _judge(self, ratings: Ratings, rated: Rated, blocks: Any, evaluation: Ratings) -> Callable[[Standing], float]:
        """The measure on the evaluation ratings of a standing."""
        users, items = ratings.user_index(evaluation.users), ratings.item_index(evaluation.items)
        users, items = users[evaluation.user_of()], items[evaluation.columns]
        unknown = self._unknown(blocks.problem.prior, rated)

        def judge(now: Standing) -> float:
            factors = factors_to_caller(blocks.problem, now.factors)
            scores = scores_of_pairs(factors, users, items, unknown)
            values = rated_only(evaluation.bounds, evaluation.values, scores, self.measure)
            if np.isnan(values).all():
                raise DataError("eval_set tells no order from another: no user has two different ratings there")
            return float(np.nanmean(values))

        return judge

    def _unknown(self, prior: Floats, rated: Rated) -> float:
        """b⁰ of an item without ratings."""
        counts = np.diff(rated.item_bounds)
        popularity = float(self.popularity) if self.offsets else 0.0
        return float(prior[0] - popularity * np.log1p(counts[0]))

    def _keep(self, ratings: Ratings, counts: Ints, blocks: Any, done: Alternated, judged: bool) -> None:
        best, problem = blocks.whole(done.best), blocks.problem
        told = to_caller(problem, best)
        self.users_, self.items_ = ratings.users, ratings.items
        self.user_factors_, self.item_factors_ = told.factors.users, told.factors.items
        self.item_offsets_, self.user_offsets_ = told.factors.offsets, told.factors.user_offsets
        self.item_prior_, self.item_counts_ = told.prior, counts
        self.unknown_ = self._unknown(problem.prior, problem.rated)
        (self.dual_slopes_, self.dual_heights_), (self.item_dual_slopes_, self.item_dual_heights_) = told.duals
        stop = done.stop if done.stop is not None else Stop.GAP
        self.certificate_ = certificate_of(blocks, best, stop, bool(self.certify))
        self.history_ = AlternationHistory.of(done.steps)
        self.n_iter_ = len(done.steps) - 1
        self.n_features_in_ = 2
        self._remember(ratings)
        if hasattr(self, "eval_score_"):
            del self.eval_score_
        if judged:
            self.eval_score_ = done.judged

    def _tell(self, stop: Stop | None) -> None:
        if stop in (Stop.ITERATIONS, Stop.TIME):
            told = f"training stopped before the gaps of both blocks closed ({self.certificate_}); raise max_iter"
            warnings.warn(f"{told} or time_limit", ConvergenceWarning, stacklevel=4)
        if stop is Stop.INTERRUPTED:
            raise Interrupted("training was interrupted; the ranker holds the best factors so far")

    @property
    def model_(self) -> Factors:
        """The factors and offsets as one record, in the order of `users_` and `items_`."""
        return Factors(self.user_factors_, self.item_factors_, self.item_offsets_, self.user_offsets_)

    def predict(self, X: Any) -> Floats:
        """The scores (n,) of the pairs of X, rows of user and item, in their order, or of all pairs of `Ratings`.

        A user who is unknown has the item's offset alone, an item that is unknown the prior of one without ratings.
        """
        check_is_fitted(self)
        known = self._known()
        if isinstance(X, Ratings):
            users, items = known.user_index(X.users)[X.user_of()], known.item_index(X.items)[X.columns]
        else:
            first, second = pairs_of(X)
            users, items = known.user_index(first), known.item_index(second)
        return scores_of_pairs(self.model_, users, items, self.unknown_)

    def score(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> float:
        """The mean over users of `measure` on these ratings, each user's over the rated items alone, equal scores
        averaged; users of fewer than two different ratings do not count. sample_weight: equal inside a user."""
        check_is_fitted(self)
        ratings, weights = read_ratings_and_weights(X, y, sample_weight)
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

    def _known(self) -> Ratings:
        """A table without ratings that knows the ids."""
        held = vars(self).get("_ids")
        if held is None or held.users is not self.users_:
            n = np.zeros(len(self.users_) + 1, dtype=np.int64)
            held = Ratings(self.users_, self.items_, n, np.zeros(0, np.int32), np.zeros(0))
            self._ids = replace(held)
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
                raise ModelError(f"{name} cannot be saved because ids are neither whole numbers nor strings; map them")

    def __getstate__(self) -> Any:
        state = dict(super().__getstate__())
        for name in ("_ids", "_model_known"):
            state.pop(name, None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.input_tags.string = True
        return tags
