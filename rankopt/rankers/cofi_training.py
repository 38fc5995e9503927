"""From ratings to the fitted attributes of a `CofiRanker`: its problem, its strength, its run.

What a `CofiRanker` settles before it trains: tolerance, penalties, the prior of items, the strength.

Users that are solved once more for the items found, at a penalty of their own: the relaxed lasso's second step.

What shrinks a model until its noise is gone shrinks what is good in it too. Once items are found, users have few
numbers each, and may be pulled to 0 less than they were while items were looked for.
"""

# mypy: allow-subclassing-any
from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankopt.collaborative.alternation import (
    Alternation,
    AlternationHistory,
    AlternationResult,
    AlternationStep,
    alternated,
    best_users,
    users_alone,
)
from rankopt.collaborative.certificate import certificate_of
from rankopt.collaborative.checkpointing import as_data, chosen_of, run_of
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.factors import scores_of_pairs
from rankopt.collaborative.problem import ModelState, factors_to_caller, to_caller
from rankopt.collaborative.regularization import (
    LONG,
    RATINGS,
    RELAXED,
    SHRUNK,
    USUAL,
    Penalties,
    RegularizationChoice,
    chosen_strength,
    long_lists,
    of_unrated,
    rated_only,
)
from rankopt.collaborative.user_loss import UserLoss
from rankopt.collaborative.widening import FIRST, random_start, start_of, widened
from rankopt.errors import DataError, Interrupted, OptimumAtStart, OptionError
from rankopt.optimize.certificate import Stop
from rankopt.persistence.checkpoint import Checkpoint, identity_of_ratings
from rankopt.rankers.cofi_options import workers_of
from rankopt.rankers.progress import shown
from rankopt.ratings.evaluation import check_judges
from rankopt.ratings.table import Ratings

Floats = NDArray[np.float64]

TOL = 1e-4
"""tol=None. Factors explain a small part of J, a hundredth, say, and where they are small both blocks are nearly best:
at 1e-3 some runs ended where they began."""

TRIAL_TOL, TRIAL_ROUNDS = 2e-3, 10
"""How far a model of strength="auto" is trained: its measure settles before its gaps do."""


class CofiHyperparameterMixin:
    """What follows from the options of a `CofiRanker`, and from what its `chosen_` says."""

    loss: Any
    bound: Any
    decay: Any
    measure: Any
    strength: Any
    lam: Any
    offsets: Any
    offset_strength: Any
    prior: Any
    popularity: Any
    by_counts: Any
    tol: Any
    max_iter: Any
    time_limit: Any

    @property
    def _tol(self) -> float:
        """The gap of both blocks that is asked for."""
        return TOL if self.tol is None else float(self.tol)

    def _penalties(self, loss: UserLoss, prior: str | None = None) -> Penalties:
        """With this prior, or that of the fitted ranker."""
        if prior is None:
            prior = self._prior_of(loss, getattr(self, "chosen_", None))
        own = None if self.offset_strength is None else float(self.offset_strength)
        of_items = own or (SHRUNK if prior == "means" else RATINGS)
        return Penalties(
            popularity=float(self.popularity),
            offsets=of_items if self.offsets else None,
            user_offsets=self._own_offsets() if loss.sees_levels else None,
            by_counts=bool(self.by_counts),
            means=prior == "means",
        )

    def _own_offsets(self) -> float:
        """μ of the offsets of users."""
        return RATINGS if self.offset_strength is None else float(self.offset_strength)

    def _prior_of(self, loss: UserLoss, chosen: RegularizationChoice | None) -> str:
        return self._priors(loss)[0] if chosen is None else chosen.prior

    def _pulled_to_means(self) -> bool:
        """Whether the fitted ranker pulls items to their own means."""
        loss = UserLoss.named(self.loss, self.bound, self.decay)
        return bool(self.offsets) and self._penalties(loss).means

    def _priors(self, loss: UserLoss) -> tuple[str, ...]:
        """What is compared, and without a comparison the first: losses that see levels find an item's own mean
        themselves, and a bound that is not convex would keep to an order that is far off."""
        if self.prior != "auto":
            return (self.prior,)
        if loss.sees_levels or not self.offsets:
            return ("mean",)
        return ("mean", "means") if loss.convex else ("means",)

    def _lam(self, chosen: RegularizationChoice | None) -> float:
        """λ, or as a part of λ_max."""
        if self.lam is not None:
            return float(self.lam)
        return float(self.strength) if chosen is None else chosen.strength

    def _chosen(self, rated: EncodedRatings, loss: UserLoss, engine: Any, width: int) -> RegularizationChoice | None:
        """The strength, and the prior of items with it, if that is to be chosen, in half the time at most."""
        if self.lam is not None or not isinstance(self.strength, str):
            return None
        check_judges(self.measure, rated.bounds, rated.values[:])

        def measure(some: EncodedRatings, shares: Floats) -> Floats:
            return long_lists(self.measure, some.bounds, some.values[:], shares)

        def build(prior: str, some: EncodedRatings) -> Any:
            penalties = self._penalties(loss, prior)
            return penalties.blocks(loss, loss.seen(some), engine)[0]  # a part of a user may tell nothing

        settings = Alternation(max(float(self.tol or 0.0), TRIAL_TOL), min(int(self.max_iter), TRIAL_ROUNDS))
        ends = math.inf if self.time_limit is None else perf_counter() + 0.5 * self.time_limit
        builds = {prior: partial(build, prior) for prior in self._priors(loss)}
        usual = USUAL["levels" if loss.sees_levels else "orders"]
        found = chosen_strength(rated, builds, width, measure, settings, ends, usual)
        if found.cut:
            tried = ", ".join(f"{one:g}" for one in found.tried)
            warnings.warn(
                f"half of time_limit was over when strength='auto' had tried {tried}; raise it, or give a strength",
                ConvergenceWarning, stacklevel=5,
            )  # fmt: skip
        return found


EQUAL = 1e-12
"""λ that differ by no more than rounding are one."""


@dataclass(frozen=True, eq=False)
class UserRefit:
    """ρ_U, the standing with users of that strength and its dual state, by how much of what users cost they may be
    above the best, and their measure on eval_set, NaN without one."""

    strength: float
    standing: ModelState
    gap: float
    judged: float


class UserRefitMixin:
    """What `user_strength` asks for, and λ_U of the users that there are."""

    user_strength: Any
    lam_: float
    lam_max_: float
    strength_: float
    user_strength_: float
    _tol: Any

    def _asked_of_users(
        self, loss: UserLoss, chosen: RegularizationChoice | None, counts: NDArray[np.int64]
    ) -> float | None:
        """ρ_U, None where users stay those of the training. counts: of the ratings of those who tell an order."""
        if not isinstance(self.user_strength, str):
            return None if self.user_strength is None else float(self.user_strength)
        if chosen is None or loss.sees_levels or not loss.convex:
            return None
        long, strong = np.median(counts) >= LONG, chosen.strength >= USUAL["orders"]
        return RELAXED * chosen.strength if long and strong else None

    @property
    def _lam_of_users(self) -> float:
        """λ_U of `user_factors_`."""
        same = self.user_strength_ == self.strength_
        return self.lam_ if same else self.user_strength_ * (self.lam_max_ or 1.0)

    def _relaxed(
        self,
        blocks: Any,
        done: AlternationResult,
        asked: float | None,
        lam_max: float,
        judge: Callable[..., float] | None,
    ) -> UserRefit | None:
        """The best users at λ_U = ρ_U λ_max for the items of a run. None where no ρ_U is asked for; where there are no
        factors, or λ_U is that of the run; where nothing is gained; and where eval_set says that they are worse."""
        best, lam = done.best.factors, blocks.problem.lam_users
        if asked is None or not (lam_max and best.items.any()) or math.isclose(asked * lam_max, lam, rel_tol=EQUAL):
            return None
        others = blocks.at_strength(asked * lam_max, lam)
        start = others.at(best)
        found = best_users(others, start, self._tol)
        if not found.value < start.value:
            return None
        judged = math.nan if judge is None else judge(found)
        cost, bound = users_alone(others.problem, found)
        gap = (cost - bound) / cost if cost > 0.0 else math.inf
        return None if judged < done.judged else UserRefit(asked, others.whole(found), gap, judged)


# mypy: allow-subclassing-any


Ints = NDArray[np.int64]

WIDE = 200
"""Factors that any table may be asked for, so that a part of it may be given what the whole is."""


LOOSE = 1e-3
"""The gap of users of a strength of their own from which on a warning tells of it."""


class CofiFitMixin(CofiHyperparameterMixin, UserRefitMixin):
    """The `_fit` of a ranker with the options of `CofiRanker`."""

    _of_the_run: ClassVar[tuple[str, ...]]
    get_params: Any
    _remember: Any
    factors: Any
    start: Any
    certify: Any
    patience: Any
    random_state: Any
    engine: Any
    n_jobs: Any
    callbacks: Any
    checkpoint: Any
    verbose: Any
    chosen_: RegularizationChoice
    eval_score_: float

    def _fit(self, ratings: Ratings, weights: Floats | None, by_rating: bool, evaluation: Ratings | None) -> None:
        kept = self.checkpoint if isinstance(self.checkpoint, Checkpoint | None) else Checkpoint(self.checkpoint)
        loss = UserLoss.named(self.loss, self.bound, self.decay)
        loss.check_weights(by_rating)
        with (
            workers_of(self.engine, self.n_jobs) as engine,
            shown(self.verbose) as progress,
            nullcontext() if kept is None else kept.claimed(),
        ):
            counts = ratings.counts  # now: it takes 8 bytes a rating while it is made
            rated = loss.seen(EncodedRatings.of(ratings, weights)).of_rated_items()
            loss.check_parts(rated)
            of_run = {} if kept is None else self._identity(ratings, weights, evaluation)
            width = FIRST if isinstance(self.factors, str) else int(self.factors)
            if width > max(WIDE, most := min(ratings.n_users, ratings.n_items)):
                told = f"{ratings.n_users} users and {ratings.n_items} items"
                raise OptionError(f"factors = {width} are more than {told} can use; give at most {most}, or 'free'")
            chosen = None if kept is None else kept.found(of_run, chosen_of)
            if chosen is None:
                chosen = self._chosen(rated, loss, engine, width)
            blocks, bend = self._penalties(loss, self._prior_of(loss, chosen)).blocks(loss, rated, engine)
            start = start_of(blocks, width)
            lam = self._lam(chosen) * (1.0 if self.lam is not None else start.lam_max or 1.0)
            blocks = blocks.at_strength(lam, lam)
            unknown = of_unrated(rated, float(self.popularity) if self.offsets else 0.0)  # now, for what it takes
            judge = None if evaluation is None else self._judge(ratings, blocks, evaluation, unknown)
            limit = self.time_limit
            if limit is not None and chosen is not None:
                limit = max(limit - chosen.seconds, 0.0)
            settings = Alternation(self._tol, int(self.max_iter), limit, int(self.patience))
            free = isinstance(self.factors, str)

            def keeps(before: AlternationResult | None) -> Callable[[AlternationResult], None] | None:
                if kept is None:
                    return None
                return lambda at: kept.write(lambda: {**as_data(at, before), "chosen": chosen}, at.stop is not None)

            def part(begin: Callable[[], Any], before: AlternationResult | None, tol: float) -> AlternationResult:
                finer, told = replace(settings, tol=tol), (*self.callbacks, *progress)
                return alternated(blocks, finer, begin, told, judge, keeps(before))

            def begun() -> Any:
                if self.start != "residual":
                    return blocks.begun(random_start(start, self.random_state))
                none = loss.convex and lam >= start.lam_max  # then no factors are the optimum of the whole
                return blocks.begun(start.factors.offsets_alone() if none else start.factors)

            found: list[Any] = []  # emptied when a run goes on: a standing is as large as the ratings
            if kept is not None:
                known = kept.found(of_run, lambda run: run_of(run, blocks, None if free else width))
                found += [] if known is None else [one for one in known if one is not None]
                del known
                if not found and chosen is not None:
                    kept.write(lambda: {"chosen": chosen}, False)
            done = found.pop() if len(found) > 1 else part(found.pop if found else begun, None, settings.tol)
            if free:
                done = widened(blocks, done, part, settings, judge is not None, found.pop() if found else None)
            try:
                asked = self._asked_of_users(loss, chosen, np.diff(blocks.problem.rated.bounds))
                relaxed = self._relaxed(blocks, done, asked, start.lam_max, judge)
            except KeyboardInterrupt:  # the model is done, with the users of the training
                relaxed, done = None, replace(done, stop=Stop.INTERRUPTED)
            best, steps, stop = blocks.whole(done.best), done.steps, done.stop
            judged = done.judged if relaxed is None else relaxed.judged
            del done  # with its planes
            self._keep(ratings, counts, blocks, best, steps, stop, relaxed, unknown)
        if hasattr(self, "eval_score_"):
            del self.eval_score_
        if judge is not None:
            self.eval_score_ = judged
        self.lam_, self.lam_max_ = float(lam), start.lam_max
        self.offset_strength_ = bend * (self._penalties(loss, self._prior_of(loss, chosen)).offsets or 0.0)
        given = self.lam is None and start.lam_max
        self.strength_ = self._lam(chosen) if given else float(lam / (start.lam_max or lam))
        self.user_strength_ = self.strength_ if relaxed is None else relaxed.strength
        if hasattr(self, "chosen_"):
            del self.chosen_
        if chosen is not None:
            self.chosen_ = chosen
        self._tell(self.certificate_.stop)
        tried = chosen is None or not chosen.cut  # else that is told
        if tried and start.lam_max and self.strength_ >= 1.0 and not self.item_factors_.any():
            told = "strength='auto' found none" if chosen is not None else f"strength = {self.strength_:g} is none"
            warnings.warn(
                f"{told} at which factors help: every user has the same order, that of item_offsets_; give a strength "
                "below 1, or more ratings", OptimumAtStart, stacklevel=4,
            )  # fmt: skip
        if self.user_gap_ > max(self._tol, LOOSE) and loss.convex:
            warnings.warn(
                f"users of user_strength = {self.user_strength_:g} may cost {self.user_gap_:.2g} of what they do more "
                "than the best; raise user_strength, or give None", ConvergenceWarning, stacklevel=4,
            )  # fmt: skip

    def _identity(self, ratings: Ratings, weights: Floats | None, evaluation: Ratings | None) -> Mapping[str, str]:
        """Of a run, to tell whether a checkpoint is of it."""
        others = (*self._of_the_run, "user_strength")  # which the training knows nothing of
        params = {k: v for k, v in self.get_params(deep=False).items() if k not in others}
        return identity_of_ratings(type(self).__name__, params, ratings, weights, evaluation)

    def _judge(
        self, ratings: Ratings, blocks: Any, evaluation: Ratings, unknown: float
    ) -> Callable[[ModelState], float]:
        """The measure on the evaluation ratings of a standing."""
        check_judges(self.measure, evaluation.bounds, evaluation.values)
        users, items = ratings.user_index(evaluation.users), ratings.item_index(evaluation.items)
        users, items = users[evaluation.user_of()], items[evaluation.columns]

        def judge(now: ModelState) -> float:
            factors = factors_to_caller(blocks.problem, now.factors, unknown)
            scores = scores_of_pairs(factors, users, items, unknown)
            values = rated_only(evaluation.bounds, evaluation.values, scores, self.measure)
            if np.isnan(values).all():
                raise DataError("eval_set tells no order from another: no user has two different ratings there")
            return float(np.nanmean(values))

        return judge

    def _keep(
        self, ratings: Ratings, counts: Ints, blocks: Any, best: ModelState, steps: tuple[AlternationStep, ...],
        stop: Stop | None, relaxed: UserRefit | None, unknown: float,
    ) -> None:  # fmt: skip
        """relaxed: other users than those of the run, which the certificate is of. unknown: b⁰ of an item without
        ratings."""
        problem, self.unknown_ = blocks.problem, unknown
        told = to_caller(problem, best, unknown)
        self.users_, self.items_ = ratings.users, ratings.items
        self.item_factors_, self.item_offsets_ = told.factors.items, told.factors.offsets
        self.trained_user_factors_, self.trained_user_offsets_ = told.factors.users, told.factors.user_offsets
        final, none = told.factors, np.zeros(0)
        self.user_dual_slopes_, self.user_dual_heights_, self.user_gap_ = none, none, 0.0
        if relaxed is not None:
            own = to_caller(problem, relaxed.standing, unknown)
            final, (self.user_dual_slopes_, self.user_dual_heights_) = own.factors, own.duals[0]
            self.user_gap_ = relaxed.gap
        self.user_factors_, self.user_offsets_ = final.users, final.user_offsets
        self.item_prior_, self.item_counts_ = told.prior, counts
        (self.dual_slopes_, self.dual_heights_), (self.item_dual_slopes_, self.item_dual_heights_) = told.duals
        stop = Stop.GAP if stop is None else stop
        try:
            self.certificate_ = certificate_of(blocks, best, stop, bool(self.certify))
        except KeyboardInterrupt:  # the factors are done, only the bound of the whole is not
            stop = Stop.INTERRUPTED
            self.certificate_ = certificate_of(blocks, best, stop, False)
        self.history_ = AlternationHistory.of(steps)
        self.n_iter_ = len(steps) - 1
        self.n_features_in_ = 2
        self._remember(ratings)

    def _tell(self, stop: Stop | None) -> None:
        if stop in (Stop.ITERATIONS, Stop.TIME):
            told = f"training stopped before its gaps closed ({self.certificate_}); raise max_iter"
            warnings.warn(f"{told} or time_limit", ConvergenceWarning, stacklevel=5)
        if stop is Stop.INTERRUPTED:
            raise Interrupted("training was interrupted; the ranker holds the best factors so far")
