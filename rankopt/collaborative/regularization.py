"""What pulls factors and offsets to zero and to a prior, where factors start, and how strong λ is.

Penalties and the prior b⁰ of items; λ_max, from which on a convex loss leaves no factors, with the start at the top
singular pairs of the dual state; and the choice of ρ = λ/λ_max inside the training ratings, by cross-fitting: every
user's ratings are dealt into folds, the model of the other folds scores those of each, and the measure judges each
user's ratings in the order of these scores. λ itself would mislead: a fold's λ_max is smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np

from formulations.arrays import Bools, Floats, Ints
from formulations.display import CompactReprMixin
from rankopt.collaborative.alternation import Alternation, alternated
from rankopt.collaborative.encoded_ratings import EncodedRatings, unit_of_ratings
from rankopt.collaborative.problem import FactorProblem, Factors
from rankopt.collaborative.singular_value import scaled_slopes, top_pairs
from rankopt.errors import DataError, OptionError
from rankopt.evaluation.evaluation import evaluate
from rankopt.optimize.certificate import Stop
from rankopt.ratings.evaluation import evaluate_ratings, measured, ordered_lists
from rankopt.ratings.splits import Split
from rankopt.ratings.table import Ratings

PRIORS = ("mean", "means")  # what items may be pulled to: the mean of all ratings, or also their own
RATINGS = 10.0  # number of ratings that "mean" counts for; "means" counts for `SHRUNK`
SHRUNK = 30.0  # ratings of the mean of all that are added to those of an item, where it is pulled to its own mean


POPULARITY = 0.1  # c of losses of orders, and of a regression on ratings of 1 to 5


def prior_of_items(rated: EncodedRatings, penalties: Penalties) -> Floats:
    """b⁰_j = mean + c log(1 + count_j), mean the constant that leaves the residuals of the ratings a mean of 0; with
    means, plus the item's mean residual times count_j/(count_j + 30): what levels of ratings show and orders do not."""
    values, prior, mean = _prior(rated, penalties)
    if penalties.means and rated.n_ratings:
        left = values - prior[rated.columns] - mean
        if rated.weights.size:
            left *= rated.weights / rated.weights.mean()
        prior = prior + mean
        return np.asarray(prior + rated.per_item(left) / (np.diff(rated.item_bounds) + SHRUNK))
    return np.asarray(prior + mean)


def prior_of_unrated(rated: EncodedRatings, penalties: Penalties) -> float:
    """b⁰ of an item without ratings."""
    return _prior(rated, penalties)[2]


def _prior(rated: EncodedRatings, penalties: Penalties) -> tuple[Floats, Floats, float]:
    """The ratings in the unit of the scores, the part of the prior by counts (m,), and its mean."""
    values = penalties.in_scores(rated.values)
    if penalties.unrated:
        return values, np.zeros(rated.n_items), 0.0
    prior = np.asarray(penalties.popularity_of(rated.values) * np.log1p(np.diff(rated.item_bounds)))
    if not rated.n_ratings:
        return values, prior, 0.0
    weights = rated.weights if rated.weights.size else None
    return values, prior, float(np.average(values - prior[rated.columns], weights=weights))


@dataclass(frozen=True)
class Penalties:
    """popularity: c of the prior, None for the default. offsets: μ of item offsets, None where these stay at b⁰;
    user_offsets: μ of user offsets, None for none. by_counts: λ and μ count once a rating of the user or item, λ_u
    = λ n_u, instead of once. means: items are pulled to their own means. unrated: the weight of the pairs without a
    rating; b⁰ is then 0, the value of such a pair.
    """

    popularity: float | None
    offsets: float | None
    user_offsets: float | None
    by_counts: bool = False
    means: bool = False
    unrated: float = 0.0

    @property
    def sees_levels(self) -> bool:
        """Whether the loss sees levels of ratings, not only orders; such a loss has offsets of users."""
        return self.user_offsets is not None

    def in_scores(self, ratings: Floats) -> Floats:
        """The ratings in the unit of the scores: their own, or `unit_of_ratings` for losses of orders."""
        return ratings if self.sees_levels else ratings / unit_of_ratings(ratings)

    def popularity_of(self, ratings: Floats) -> float:
        """c of the prior: 0 where offsets are not learned; if None, 0.1 in units of what the loss sees."""
        if self.offsets is None:
            return 0.0
        if self.popularity is not None:
            return self.popularity
        return POPULARITY * (unit_of_ratings(ratings) if self.sees_levels else 1.0)

    def blocks(self, loss: Any, rated: EncodedRatings, engine: Any) -> tuple[Any, float]:
        """The blocks of a `UserLoss` of these ratings at λ = 1, and how much a rating of that loss bends it: the pull
        on item offsets is μ times that, so that the prior counts for μ ratings under every loss."""
        found = loss.blocks(self.problem(rated), engine)
        if self.offsets is None:
            return found, 1.0
        bend = found.bend()
        pulled = replace(found.problem, of_offsets=bend * found.problem.of_offsets)
        return (found if bend == 1.0 else replace(found, problem=pulled)), bend

    def problem(self, rated: EncodedRatings) -> FactorProblem:
        """The problem of these ratings at λ = 1. A user or item without ratings counts as with one."""
        users, items, none = np.ones(rated.n_users), np.ones(rated.n_items), np.zeros(0)
        if self.by_counts:
            users, items = np.maximum(np.diff(rated.bounds), 1.0), np.maximum(np.diff(rated.item_bounds), 1.0)
        return FactorProblem(
            rated=rated,
            prior=prior_of_items(rated, self),
            user_scale=users,
            item_scale=items,
            of_offsets=none if self.offsets is None else self.offsets * items,
            of_user_offsets=none if self.user_offsets is None else self.user_offsets * users,
            unrated=self.unrated,
        )


@dataclass(frozen=True, eq=False)
class Start:
    """factors: U = P √s, M = Q √s for -Ψ ≈ P s Qᵀ, with the offsets that are best alone. lam_max: ‖Ψ‖₂, from which on
    √(λ_U λ_M) leaves no factors. alone: the offsets alone."""

    factors: Factors
    lam_max: float
    alone: Factors


def start_of(blocks: Any, count: int) -> Start:
    """Of so many factors; Ψ is the dual state of the best offsets, in units of the users' and items' scales."""
    problem, alone = blocks.problem, blocks.offsets_only()
    table = scaled_slopes(problem, alone, problem.user_scale, problem.item_scale)
    left, size, right = top_pairs(table, max(count, 1))
    root = np.sqrt(size[:count])
    users = -left[:, :count] * (root / np.sqrt(problem.user_scale)[:, None])
    items = right[:, :count] * (root / np.sqrt(problem.item_scale)[:, None])
    factors = Factors(
        np.ascontiguousarray(users), np.ascontiguousarray(items), alone.factors.offsets, alone.factors.user_offsets
    )
    return Start(factors, float(size[0]), alone.factors)


def random_start(start: Start, random_state: Any) -> Factors:
    """Factors drawn from a normal distribution instead, of about the size of those of `start`."""
    from sklearn.utils import check_random_state

    factors = start.factors
    try:
        draws = check_random_state(random_state)
    except ValueError:
        raise OptionError(f"random_state must be an integer or None; got {random_state!r}") from None
    users, items = (
        draws.normal(size=one.shape) * float(np.sqrt(np.mean(one * one))) for one in (factors.users, factors.items)
    )
    return replace(factors, users=users, items=items)


def rated_only(bounds: Ints, values: Floats, scores: Floats, measure: Any) -> Floats:
    """(n,) the measure of each user's ratings in the order of the scores, equal ones averaged; NaN where it tells no
    order from another: for users of fewer than two ratings, and of equal ones."""
    sizes, differs = np.diff(bounds), ordered_lists(bounds, values)
    found = np.full(sizes.size, np.nan)
    if differs.any():
        rows = np.repeat(differs, sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes[differs])])
        with measured(measure, values):
            found[differs] = evaluate(values[rows], scores[rows], measure, offsets=offsets).values[0]
    return found


STRENGTHS = (1.0, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25)  # ρ from which one is chosen; 1 leaves offsets alone
WEAKER = (0.18, 0.13, 0.09)  # more of them, where all pairs count
JUDGED, LISTS = 2000, 1000  # users whose lists of all items are judged; lists, where there are fewer users
FOLDS = 5
USUAL = {"levels": 0.65, "orders": 0.75, "all": 0.5}  # of losses of levels, orders, all pairs (not tried: the best)
SURE = 2.0  # standard errors over users from which on one strength counts as worse than another


@dataclass(frozen=True)
class RegularizationChoice(CompactReprMixin):
    """The chosen ρ, and what each of them reached: the mean over users of the measure of ratings left out, NaN where
    these imply no order. seconds: what the choice took. cut: time was over before all was tried."""

    reg: float
    tried: tuple[float, ...]
    reached: tuple[float, ...]
    seconds: float = field(default=0.0, compare=False)
    cut: bool = False


def choose_strength(
    rated: EncodedRatings, build: Callable[[EncodedRatings], Any], factors: int, measure: Any, settings: Alternation,
    ends: float = math.inf, usual: float = USUAL["orders"], unit: float = 1.0, among_all: bool = False,
) -> RegularizationChoice:  # fmt: skip
    """build: from ratings to blocks, or DataError for ratings without information. ends: the `perf_counter` at which
    no further strength is tried. unit: of the ratings that the measure judges. among_all: judge the order of all items
    without a training rating, as `evaluate_ratings` does, of up to `JUDGED` users in one fold each, of few in more.

    Few ratings separate near strengths by chance only. So `usual` is taken unless it lies below the best by `SURE`
    standard errors of the difference over users or more, then the best; and none weaker than one that lies so is."""
    began, fold, parts = perf_counter(), folds_of(rated), []
    users = rated.user_of()
    turns = min(max(LISTS // max(rated.n_users, 1), 1), FOLDS)  # the folds in which each user is judged
    tested = (users < JUDGED) & ((fold - users) % FOLDS < turns)
    for number in range(FOLDS):
        train, held = rated.select(fold != number), fold == number
        left = rated.select(held & tested if among_all else held)
        if left.n_ratings and train.n_ratings:
            with suppress(DataError):  # what is left of few ratings has no order to learn
                blocks = build(train)
                parts.append(_Fold(blocks, start_of(blocks, factors), train, left))
    values: list[Floats] = []
    strengths = (*STRENGTHS, *WEAKER) if among_all else STRENGTHS
    for strength in strengths:
        scores, lists = np.full(rated.n_ratings, np.nan), []
        for part in parts:
            if perf_counter() >= ends and strength < 1.0:
                break
            found = part.factors(strength, settings, ends)
            if among_all:
                lists.append(part.among_all(found, measure, unit))
            else:
                scores[part.left.given] = found.scores(part.left.bounds, part.left.columns)
        else:
            if not among_all:
                informative = ~np.isnan(scores)
                some = rated if informative.all() else rated.select(informative)
                judged = scores if informative.all() else scores[some.given]
                lists = [rated_only(some.bounds, some.values / unit, judged, measure)]
            values.append(np.concatenate(lists))
            if not _is_lower(values):
                continue
        break
    chosen = _choose(np.array(values), strengths, usual)
    return replace(chosen, seconds=perf_counter() - began, cut=perf_counter() >= ends)


@dataclass
class _Fold:
    """Blocks of the ratings of other folds that the loss sees, where they start, these ratings, the ratings left out,
    and the factors last found."""

    blocks: Any
    start: Start
    train: EncodedRatings
    left: EncodedRatings
    warm: Factors | None = None

    def factors(self, strength: float, settings: Alternation, ends: float) -> Factors:
        """Of all users, without offsets of users: these differ from fold to fold. Users that the loss did not see have
        the offsets of items alone."""
        lam, factors = strength * self.start.lam_max, self.start.alone
        if strength < 1.0 and lam > 0.0:
            if ends < math.inf:
                settings = replace(settings, time_limit=max(ends - perf_counter(), 0.0))
            here = self.blocks.at_strength(lam, lam)
            done = alternated(here, settings, partial(here.begun, self.warm or self.start.factors))
            if done.stop is Stop.INTERRUPTED:
                raise KeyboardInterrupt("interrupted while the strength was chosen, before the first round")
            factors = self.warm = done.best.factors
        users = np.zeros((self.left.n_users, factors.dimensions))
        users[self.blocks.problem.rated.users] = factors.users
        return replace(factors, users=users, user_offsets=np.zeros(len(users)))

    def among_all(self, factors: Factors, measure: Any, unit: float) -> Floats:
        """The measure of each user with ratings left out."""
        ids = np.arange(self.left.n_users), np.arange(self.left.n_items)
        train, left = (Ratings(*ids, one.bounds, one.columns, one.values / unit, {}) for one in (self.train, self.left))
        scorer = SimpleNamespace(predict=lambda pairs: factors.scores(pairs.bounds, pairs.columns))
        return evaluate_ratings(Split(train, left, ""), scorer, measure, "all").values


def _is_lower(values: list[Floats]) -> bool:
    """Whether the last strength lies below the best for sure."""
    informative = _informative(np.array(values))
    return bool(informative.size) and not _as_good(informative)[-1]


def _choose(values: Floats, strengths: tuple[float, ...], usual: float) -> RegularizationChoice:
    """The usual one where it is as good as the best, within the noise of these values (strengths, users); else that."""
    tried, informative = strengths[: len(values)], _informative(values)
    if not informative.size:
        return RegularizationChoice(min(tried, key=lambda one: abs(one - usual)), tried, (float("nan"),) * len(tried))
    reached = informative.mean(axis=1)
    good = [one for one, as_good in zip(tried, _as_good(informative).tolist(), strict=True) if as_good]
    return RegularizationChoice(
        usual if usual in good else tried[int(np.argmax(reached))], tried, tuple(reached.tolist())
    )


def _informative(values: Floats) -> Floats:
    """The values (strengths, users) of users with values at all strengths."""
    return values[:, ~np.isnan(values).any(axis=0)]


def _as_good(informative: Floats) -> Bools:
    """Which strengths lie below the best by less than `SURE` standard errors of the difference."""
    behind = informative[int(np.argmax(informative.mean(axis=1)))] - informative
    return np.asarray(behind.mean(axis=1) <= SURE * behind.std(axis=1) / np.sqrt(informative.shape[1]))


def folds_of(rated: EncodedRatings, folds: int = FOLDS) -> Ints:
    """(ratings,) the fold of each: those of a user in turn, in the order of the items' content, the next user going on
    where one ends; and one further where items would be left out entirely, as in a table where all rated five items."""
    dealt = np.arange(rated.n_ratings) % folds
    of_items = np.bincount(rated.columns * folds + dealt, minlength=rated.n_items * folds).reshape(-1, folds)
    gone = of_items.max(axis=1) == of_items.sum(axis=1)
    if 2 * of_items[gone].sum() > dealt.size:
        dealt = (dealt + np.repeat(np.arange(rated.n_users), np.diff(rated.bounds))) % folds
    return dealt
