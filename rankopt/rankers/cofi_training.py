"""What the options of a `CofiRanker` mean, and how it is trained: its problem, its strength, its run."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from formulations.arrays import Floats, Ints
from formulations.parallel import at_most
from rankopt.collaborative import regularization
from rankopt.collaborative.alternation import (
    FIRST_FACTORS,
    Alternation,
    AlternationResult,
    AlternationStep,
    alternated,
    run_as_data,
    run_from_data,
    widened,
)
from rankopt.collaborative.encoded_ratings import EncodedRatings, unit_of_ratings
from rankopt.collaborative.global_bound import certificate_of
from rankopt.collaborative.problem import ModelState, dual_to_caller, factors_to_caller, scattered, scores_of_pairs
from rankopt.collaborative.user_loss import UserLoss
from rankopt.engines import ended, get_engine
from rankopt.errors import DataError, NoProgressWarning, OptionError
from rankopt.fitting import warn_interrupted
from rankopt.optimize.certificate import History, Stop
from rankopt.options import COUNT, NOT_NEGATIVE, RUN, Interval, Rules
from rankopt.persistence.checkpoint import identity_of_ratings
from rankopt.rankers.run import training_run
from rankopt.ratings.evaluation import check_judges, has_exponential_gain
from rankopt.ratings.table import Ratings

STARTS = ("residual", "random")

LEAST = 1e-100  # of what is squared or divided by: its products are neither 0 nor infinite

TOL = 1e-4
"""tol=None. Factors explain a small part of J, a hundredth, say, and where they are small both blocks are nearly best:
at 1e-3 some runs ended where they began."""

TRIAL_TOL, TRIAL_ROUNDS = 2e-3, 10  # how far a model of reg="auto" is trained: its measure settles before its gaps do

WIDE = 200
"""Number of factors that is valid for any table, so that parts of a table accept the number chosen for the table."""

SHORT = 30
"""Ratings of a user in the median below which prior="auto" pulls items to their own means, under losses of orders."""

OF_THE_RUN = ("callbacks", "checkpoint", "engine", "n_jobs", "verbose")  # options that do not change the model


STRENGTH = Interval(LEAST, 1 / LEAST, "both")

RULES: Rules = {
    **RUN, "tol": (NOT_NEGATIVE, None), "reg": (STRENGTH, "auto"), "lam": (STRENGTH, None), "factors": (COUNT, "free"),
    "bias_reg": (STRENGTH, None), "popularity_prior": (Interval(0, 1 / LEAST, "both"), None), "patience": (COUNT,),
    "item_prior": ("auto", *regularization.PRIORS), "init": STARTS, "item_bias": (bool,), "weight_by_count": (bool,),
    "unrated_weight": (Interval(0, 1),),
    "compute_bound": (bool,),
}  # fmt: skip
"""What the options of a `CofiRanker` may be."""


@contextmanager
def workers_of(engine: Any, n_jobs: int | None) -> Iterator[Any]:
    """The engine, and the threads of this process that belong to it."""
    workers = None if n_jobs in (None, -1) else int(n_jobs)
    known = get_engine(engine, workers)
    with ended(known, isinstance(engine, str)), at_most(1 if engine == "serial" else workers):
        yield known


@dataclass(frozen=True)
class CofiSettings:
    """Settings derived from the options of a `CofiRanker`: the loss, the requested gap of both blocks, and the rest."""

    loss: UserLoss
    tol: float
    params: Mapping[str, Any]

    @classmethod
    def from_params(cls, params: Mapping[str, Any]) -> CofiSettings:
        loss = UserLoss.named(params["loss"], params["bound"], params["position_weights"])
        return cls(loss, TOL if params["tol"] is None else float(params["tol"]), params)

    def penalties(self, counts: Ints) -> regularization.Penalties:
        """At λ = 1. counts: of the ratings of each user that the loss can learn from.

        Losses that see levels find an item's own mean themselves; and so do losses of orders from long lists, but a
        bound that is not convex would keep to an order that is far off."""
        params, own, prior = self.params, self.params["bias_reg"], self.params["item_prior"]
        if prior == "auto":
            short = not self.loss.convex or np.median(counts) < SHORT
            prior = "means" if short and not self.loss.sees_levels and params["item_bias"] else "mean"
        default = regularization.SHRUNK if prior == "means" else regularization.RATINGS
        return regularization.Penalties(
            popularity=None if params["popularity_prior"] is None else float(params["popularity_prior"]),
            offsets=(default if own is None else float(own)) if params["item_bias"] else None,
            user_offsets=(regularization.RATINGS if own is None else float(own)) if self.loss.sees_levels else None,
            by_counts=bool(params["weight_by_count"]),
            means=prior == "means" and bool(params["item_bias"]),
            unrated=float(params["unrated_weight"]),
        )

    def seen(self, rated: EncodedRatings) -> EncodedRatings:
        """The ratings of users that the loss can learn from."""
        rated = self.loss.seen(rated)
        return rated.select_users(np.diff(rated.bounds) > 0) if self.params["unrated_weight"] else rated

    def lam(self, chosen: regularization.RegularizationChoice | None) -> float:
        """λ, or as a part of λ_max."""
        if self.params["lam"] is not None:
            return float(self.params["lam"])
        return float(self.params["reg"]) if chosen is None else chosen.reg

    def choose(
        self, rated: EncodedRatings, penalties: regularization.Penalties, engine: Any, width: int
    ) -> regularization.RegularizationChoice | None:
        """The strength, if that is to be chosen, in half the time at most."""
        if self.params["lam"] is not None or not isinstance(self.params["reg"], str):
            return None
        measure, limit = self.params["measure"], self.params["time_limit"]
        unit = unit_of_ratings(rated.values) if has_exponential_gain(measure) else 1.0
        check_judges(measure, rated.bounds, rated.values / unit)

        def build(some: EncodedRatings) -> Any:
            return penalties.blocks(self.loss, self.seen(some), engine)[0]  # a part of a user may have no order

        settings = Alternation(
            max(float(self.params["tol"] or 0.0), TRIAL_TOL), min(int(self.params["max_iter"]), TRIAL_ROUNDS)
        )
        ends = math.inf if limit is None else perf_counter() + 0.5 * limit
        usual = regularization.USUAL["all" if penalties.unrated else "levels" if self.loss.sees_levels else "orders"]
        among_all = penalties.unrated > 0
        found = regularization.choose_strength(rated, build, width, measure, settings, ends, usual, unit, among_all)
        if found.cut:
            tried = ", ".join(f"{one:g}" for one in found.tried)
            warnings.warn(
                f"half of time_limit was over when reg='auto' had tried {tried}; raise it, or pass a number as reg",
                ConvergenceWarning, stacklevel=5,
            )  # fmt: skip
        return found

    def alternation(self, chosen: regularization.RegularizationChoice | None) -> Alternation:
        limit = self.params["time_limit"]
        if limit is not None and chosen is not None:
            limit = max(limit - chosen.seconds, 0.0)
        return Alternation(self.tol, int(self.params["max_iter"]), limit, int(self.params["patience"]))


def train(ranker: Any, ratings: Ratings, weights: Floats | None, by_rating: bool, evaluation: Ratings | None) -> None:
    """Set the fitted attributes of a `CofiRanker`. weights: (n_ratings,) in the order of the ratings; by_rating: some
    are of single ratings."""
    params = ranker.get_params(deep=False)
    settings = CofiSettings.from_params(params)
    loss, free, given_lam = settings.loss, isinstance(params["factors"], str), params["lam"] is not None
    loss.check_weights(by_rating)
    with workers_of(params["engine"], params["n_jobs"]) as engine, training_run(ranker) as run:
        checkpoint = run.checkpoint
        counts = ratings.counts  # now: it takes 8 bytes a rating while it is made
        rated = settings.seen(EncodedRatings.from_ratings(ratings, weights))
        if (least := rated.weights.min(initial=1.0)) <= params["unrated_weight"]:
            raise OptionError(
                f"unrated_weight = {params['unrated_weight']:g} must be less than the weights of the ratings, the "
                f"least of which is {least:g}; lower it, or raise them"
            )
        rated = rated if params["unrated_weight"] else rated.of_rated_items()
        loss.check_parts(rated)
        identity = {}
        if checkpoint is not None:
            options = {name: value for name, value in params.items() if name not in OF_THE_RUN}
            identity = identity_of_ratings(type(ranker).__name__, options, ratings, weights, evaluation)
        width = FIRST_FACTORS if free else int(params["factors"])
        if width > max(WIDE, most := min(ratings.n_users, ratings.n_items)):
            message = f"{ratings.n_users} users and {ratings.n_items} items"
            raise OptionError(f"factors = {width} are more than {message} can use; pass at most {most}, or 'free'")
        penalties = settings.penalties(np.diff(rated.bounds))
        chosen = None if checkpoint is None else checkpoint.found(identity, _stored_choice)
        if chosen is None:
            chosen = settings.choose(rated, penalties, engine, width)
        blocks, bend = penalties.blocks(loss, rated, engine)
        start = regularization.start_of(blocks, width)
        lam = settings.lam(chosen) * (1.0 if given_lam else start.lam_max or 1.0)
        blocks = blocks.at_strength(lam, lam)
        unknown = regularization.prior_of_unrated(rated, penalties)  # now, for what it takes
        judge = None if evaluation is None else _judge(ratings, blocks, evaluation, unknown, params["measure"])
        alternation = settings.alternation(chosen)

        def keeps(before: AlternationResult | None) -> Callable[[AlternationResult], None] | None:
            if checkpoint is None:
                return None
            return lambda at: checkpoint.write(
                lambda: {**run_as_data(at, before), "chosen": chosen}, at.stop is not None
            )

        def part(begin: Callable[[], Any], before: AlternationResult | None, tol: float) -> AlternationResult:
            return alternated(blocks, replace(alternation, tol=tol), begin, run.callbacks, judge, keeps(before))

        def begun() -> Any:
            if params["init"] != "residual":
                return blocks.begun(regularization.random_start(start, params["random_state"]))
            none = blocks.convex and lam >= start.lam_max  # zero factors are then the global optimum
            return blocks.begun(start.factors.offsets_alone() if none else start.factors)

        found: list[Any] = []  # emptied when a run goes on: a state is as large as the ratings
        if checkpoint is not None:
            known = checkpoint.found(identity, lambda stored: run_from_data(stored, blocks, None if free else width))
            found += [] if known is None else [one for one in known if one is not None]
            del known
            if not found and chosen is not None:
                checkpoint.write(lambda: {"chosen": chosen}, False)
        done = found.pop() if len(found) > 1 else part(found.pop if found else begun, None, alternation.tol)
        if free:
            done = widened(blocks, done, part, alternation, judge is not None, found.pop() if found else None)
        best, steps, stop, judged = blocks.complete(done.best), done.steps, done.stop, done.judged
        del done  # with its planes
        stop = Stop.GAP if stop is None else stop
        try:
            ranker.certificate_ = certificate_of(blocks, best, stop, bool(params["compute_bound"]))
        except KeyboardInterrupt:  # the factors are computed, only the global bound is missing
            if stop is Stop.INTERRUPTED:
                raise
            stop = Stop.INTERRUPTED
            ranker.certificate_ = certificate_of(blocks, best, stop, False)
    _keep_model(ranker, ratings, blocks.problem, best, unknown)
    ranker.item_popularity_, ranker.n_iter_ = counts, len(steps) - 1
    ranker.history_ = History.from_rows(AlternationStep, steps)
    ranker.lam_, ranker.lam_max_ = float(lam), start.lam_max
    ranker.reg_ = float(lam / (start.lam_max or lam)) if given_lam or not start.lam_max else settings.lam(chosen)
    ranker.bias_reg_ = bend * (penalties.offsets or 0.0)
    for name, value in (("chosen_", chosen), ("best_score_", None if judge is None else judged)):
        vars(ranker).pop(name, None)
        if value is not None:
            setattr(ranker, name, value)
    _warn(ranker, stop, chosen)


def _warn(ranker: Any, stop: Stop, chosen: regularization.RegularizationChoice | None) -> None:
    """Warn of training that ended early, and of a model without factors."""
    if stop in (Stop.ITERATIONS, Stop.TIME):
        message = f"training stopped before its gaps closed ({ranker.certificate_}); raise max_iter or time_limit"
        warnings.warn(message, ConvergenceWarning, stacklevel=5)
    if stop is Stop.INTERRUPTED:
        warn_interrupted("factors", stacklevel=6)
    cut = chosen is not None and chosen.cut  # reported elsewhere
    if not cut and ranker.lam_max_ and ranker.reg_ >= 1.0 and not ranker.item_factors_.any():
        message = "reg='auto' found no value" if chosen is not None else f"reg = {ranker.reg_:g} is too large"
        warnings.warn(
            f"{message}: no factors help, every user has the same order, that of item_bias_; pass a reg "
            "below 1, or more ratings", NoProgressWarning, stacklevel=5,
        )  # fmt: skip


def _stored_choice(run: Mapping[str, Any]) -> regularization.RegularizationChoice | None:
    """The strength that a stored run chose, if it did."""
    chosen = run.get("chosen")
    return chosen if isinstance(chosen, regularization.RegularizationChoice) and chosen.reg in chosen.tried else None


def _judge(
    ratings: Ratings, blocks: Any, evaluation: Ratings, unknown: float, measure: Any
) -> Callable[[ModelState], float]:
    """The measure on the evaluation ratings of a state."""
    check_judges(measure, evaluation.bounds, evaluation.values)
    users, items = ratings.user_index(evaluation.users), ratings.item_index(evaluation.items)
    users, items = users[evaluation.user_of()], items[evaluation.columns]

    def judge(now: ModelState) -> float:
        factors = factors_to_caller(blocks.problem, now.factors, unknown)
        scores = scores_of_pairs(factors, users, items, unknown)
        values = regularization.rated_only(evaluation.bounds, evaluation.values, scores, measure)
        if np.isnan(values).all():
            raise DataError("eval_set cannot compare rankings: no user has two different ratings; pass more ratings")
        return float(np.nanmean(values))

    return judge


def _keep_model(ranker: Any, ratings: Ratings, problem: Any, best: ModelState, unknown: float) -> None:
    """unknown: b⁰ of an item without ratings."""
    rated, factors = problem.rated, factors_to_caller(problem, best.factors, unknown)
    ranker.user_ids_, ranker.item_ids_ = ratings.users, ratings.items
    ranker.cold_start_bias_, ranker.n_features_in_ = unknown, 2
    ranker.user_factors_, ranker.user_bias_ = factors.users, factors.user_offsets
    ranker.item_factors_, ranker.item_bias_ = factors.items, factors.offsets
    ranker.item_prior_ = scattered(problem.prior, rated.items, rated.all_items, unknown)
    users = dual_to_caller(problem, best.slopes, best.heights)
    items = users if best.of_items is None else dual_to_caller(problem, *best.of_items)
    ranker.user_dual_coef_, ranker.user_dual_intercept_ = users
    ranker.item_dual_coef_, ranker.item_dual_intercept_ = items
    ranker.seen_indptr_, ranker.seen_indices_ = ratings.bounds, ratings.columns
    ranker.rating_range_ = np.array([ratings.values.min(), ratings.values.max()])
    ranker.item_attributes_ = {
        name: values if values.dtype.kind in "iufb" else values.tolist() for name, values in ratings.attributes.items()
    }
