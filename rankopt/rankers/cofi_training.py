"""From ratings to the fitted attributes of a `CofiRanker`: its problem, its strength, its run."""
# mypy: allow-subclassing-any

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from rankopt.collaborative.alternation import Alternated, Alternation, alternated
from rankopt.collaborative.blocks.user_loss import UserLoss
from rankopt.collaborative.history import AlternationHistory
from rankopt.collaborative.kept import as_data, run_of
from rankopt.collaborative.learned import factors_to_caller, to_caller
from rankopt.collaborative.measured import rated_only
from rankopt.collaborative.prediction import scores_of_pairs
from rankopt.collaborative.prior import Penalties
from rankopt.collaborative.problem import Standing
from rankopt.collaborative.proved import certificate_of
from rankopt.collaborative.rated import Rated
from rankopt.collaborative.start import Start, random_start, start_of
from rankopt.collaborative.strength import Chosen, chosen_strength
from rankopt.collaborative.widening import FIRST, widened
from rankopt.data.ratings.table import Ratings
from rankopt.errors import DataError, Interrupted
from rankopt.optimize.certificate import Stop
from rankopt.persistence.checkpoint import Checkpoint
from rankopt.persistence.identity import identity_of_ratings
from rankopt.rankers.cofi_options import workers_of
from rankopt.rankers.progress import shown

__all__ = ["Alternating"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RIDGE_TOL, PLANE_TOL = 1e-4, 1e-3
"""tol=None, of blocks in closed form, which lie near each other after few rounds, and of blocks by planes."""

TRIAL_TOL, TRIAL_ROUNDS = 2e-3, 10
"""How far a model of strength="auto" is trained: its measure settles before its gaps do."""


class Alternating:
    """The `_fit` of a ranker with the options of `CofiRanker`."""

    _of_the_run: ClassVar[tuple[str, ...]]
    get_params: Any
    _remember: Any
    loss: Any
    bound: Any
    decay: Any
    measure: Any
    factors: Any
    strength: Any
    lam: Any
    offsets: Any
    offset_strength: Any
    popularity: Any
    by_counts: Any
    start: Any
    tol: Any
    certify: Any
    max_iter: Any
    time_limit: Any
    patience: Any
    random_state: Any
    engine: Any
    n_jobs: Any
    callbacks: Any
    checkpoint: Any
    verbose: Any
    chosen_: Chosen
    eval_score_: float

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
                return loss.blocks(penalties.problem(loss.seen(some)), engine)  # a part of a user may tell nothing

            blocks = build(rated)
            width = FIRST if isinstance(self.factors, str) else int(self.factors)
            start = start_of(blocks, width)
            lam, chosen = self._lam(rated, build, start, width)
            blocks = blocks.at_strength(lam, lam)
            judge = None if evaluation is None else self._judge(ratings, rated, blocks, evaluation)
            settings = Alternation(self._tol(loss), int(self.max_iter), self.time_limit, int(self.patience))
            free = isinstance(self.factors, str)

            def part(begin: Callable[[], Any], before: Alternated | None, tol: float) -> Alternated:
                def keep(at: Alternated) -> None:
                    if kept is not None:
                        kept.write(lambda: as_data(at, before), at.stop is not None)

                finer = replace(settings, tol=tol)
                return alternated(blocks, finer, begin, (*self.callbacks, *progress), judge, keep)

            def begun() -> Any:
                residual = self.start == "residual"
                return blocks.begun(start.factors if residual else random_start(start, self.random_state))

            found: list[Any] = []  # emptied when a run goes on: a standing is as large as the ratings
            if kept is not None:
                params = {k: v for k, v in self.get_params(deep=False).items() if k not in self._of_the_run}
                of_run = identity_of_ratings(type(self).__name__, params, ratings, weights, evaluation)
                known = kept.found(of_run, lambda run: run_of(run, blocks, None if free else width))
                found += [] if known is None else [one for one in known if one is not None]
                del known
            done = found.pop() if len(found) > 1 else part(found.pop if found else begun, None, settings.tol)
            if free:
                done = widened(blocks, done, part, settings, judge is not None, found.pop() if found else None)
            self._keep(ratings, counts, blocks, done, evaluation is not None)
        self.lam_, self.lam_max_ = float(lam), start.lam_max
        self.strength_ = float(lam / start.lam_max) if start.lam_max else 1.0
        if hasattr(self, "chosen_"):
            del self.chosen_
        if chosen is not None:
            self.chosen_ = chosen
        self._tell(done.stop)

    def _tol(self, loss: UserLoss) -> float:
        """The gap of both blocks that is asked for."""
        if self.tol is not None:
            return float(self.tol)
        return RIDGE_TOL if loss.sees_levels else PLANE_TOL

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

        settings = Alternation(max(float(self.tol or 0.0), TRIAL_TOL), min(int(self.max_iter), TRIAL_ROUNDS))
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
            told = f"training stopped before its gaps closed ({self.certificate_}); raise max_iter"
            warnings.warn(f"{told} or time_limit", ConvergenceWarning, stacklevel=4)
        if stop is Stop.INTERRUPTED:
            raise Interrupted("training was interrupted; the ranker holds the best factors so far")
