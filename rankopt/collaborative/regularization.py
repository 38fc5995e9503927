"""The strength ρ = λ/λ_max, and what items are pulled to, chosen inside the training ratings, by cross-fitting.

Every user's ratings are dealt into folds; each fold is placed by the model of the others, at every ρ: behind the share
of what might be listed that this model scores higher. Such shares mean the same under the models of all folds, so all
ratings of a user are judged at once (`long_lists`). λ itself would mislead: a fold holds fewer ratings, and its λ_max
is smaller.

What long lists of a user are worth under a measure, told from a few ratings that were left out.

Lists of two or ten ratings hardly tell models apart, and those that are asked for are longer: what a model overrates
comes first among many. But an order is worth a sum over its items, Σ_j b_j a[rank of j] - constant, so that each rating
tells a part of it once it is known where it would stand: behind the share of what might be listed that scores higher.
Of n ratings with worths b_j, drawn from a list of L whose shares above them are h_j, the list is worth

    b̄ Σ_i a_i + (L - 1)/(n - 1) Σ_j (b_j - b̄) a[1 + (L - 1) h_j] - constant

in expectation: L times the means of a and b, and their covariance. At n = L that is the measure itself.

What users rate is what they like. So their ratings stand above what others rate, the more so the closer a model follows
them, and that tells nothing of the order among what they rate: `levelled` takes it off.

A measure of ratings that were left out: for each user over those rated items alone, equal scores averaged.

Where offsets are pulled to: items that more users know are better liked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray

from formulations.active_set.working_set import inner
from formulations.compiled import FLOATS, READ_FLOATS, READ_INTS, READ_SHORTS, compiled
from formulations.display import CompactReprMixin
from formulations.parallel import share_ranges
from rankopt.collaborative.alternation import Alternation, alternated
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.linear_algebra import READ_TABLE
from rankopt.collaborative.problem import FactorProblem
from rankopt.collaborative.widening import Start, start_of
from rankopt.errors import DataError
from rankopt.evaluation.evaluation import evaluate
from rankopt.measures.notation import parse
from rankopt.measures.positional import Positional
from rankopt.optimize.certificate import Stop
from rankopt.ratings.evaluation import measured, ordered_lists

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def rated_only(bounds: Ints, values: Floats, scores: Floats, measure: Any) -> Floats:
    """(n,) the measure of each user's ratings in the order of the scores; NaN where it tells no order from another:
    for users of fewer than two ratings, and of equal ones."""
    sizes, differs = np.diff(bounds), ordered_lists(bounds, values)
    found = np.full(sizes.size, np.nan)
    if differs.any():
        rows = np.repeat(differs, sizes)
        offsets = np.concatenate([[0], np.cumsum(sizes[differs])])
        with measured(measure, values):
            found[differs] = evaluate(values[rows], scores[rows], measure, offsets=offsets).values[0]
    return found


Shorts = NDArray[np.int32]

LISTED = 50
"""Items of a list at least."""

CANDIDATES = 500
"""Items, drawn by how many ratings they have, that a rating is compared with."""

FEWEST = 5
"""Ratings of a user below which they tell of no list."""

ENTRIES = 1 << 10
"""Ratings left out of whole users that one thread places at a time."""


def shares_above(left: EncodedRatings, kept: EncodedRatings, factors: Factors) -> Floats:
    """(ratings left out,) which share of the items that might stand in a list is scored higher, equal scores half.

    These are items as often as they have ratings in `kept`, without those that the user has there. left, kept: ratings
    of the same users and items. factors: of all users.
    """
    found = np.full(left.values.size, 0.5)
    reached = np.cumsum(np.diff(kept.item_bounds))
    if found.size and reached[-1]:
        at = (np.arange(CANDIDATES) + 0.5) * (reached[-1] / CANDIDATES)
        candidates = np.searchsorted(reached, at, side="right")
        given = (factors.users, factors.items, factors.offsets, candidates)
        lists = (left.bounds, left.columns, kept.bounds, kept.columns)
        share_ranges(left.bounds, ENTRIES, lambda first, last: _above(*given, *lists, first, last, found))
    return found


@compiled(
    nb.void(
        READ_TABLE, READ_TABLE, READ_FLOATS, READ_INTS, READ_INTS, READ_SHORTS, READ_INTS, READ_SHORTS, nb.int64,
        nb.int64, FLOATS,
    )
)  # fmt: skip
def _above(
    users: Floats,
    items: Floats,
    offsets: Floats,
    candidates: Ints,
    bounds: Ints,
    columns: Shorts,
    kept_bounds: Ints,
    kept_columns: Shorts,
    first: int,
    last: int,
    found: Floats,
) -> None:
    mark = np.full(items.shape[0], -1)
    scores = np.empty(candidates.size)
    for u in range(first, last):
        if bounds[u] == bounds[u + 1]:
            continue
        for e in range(kept_bounds[u], kept_bounds[u + 1]):
            mark[kept_columns[e]] = u
        held = 0
        for j in candidates:
            if mark[j] != u:
                scores[held] = offsets[j] + inner(users[u], items[j])
                held += 1
        for e in range(bounds[u], bounds[u + 1]):
            j = columns[e]
            own, above = offsets[j] + inner(users[u], items[j]), 0.0
            for c in range(held):
                if scores[c] > own:
                    above += 1.0
                elif scores[c] == own:
                    above += 0.5
            if held:
                found[e] = above / held


def levelled(shares: Floats) -> Floats:
    """(ratings,) as shares of all of them: from 0 to 1 evenly, in the same order; equal ones have the mean."""
    _, which, often = np.unique(shares, return_inverse=True, return_counts=True)
    return np.asarray(((np.cumsum(often) - 0.5 * often) / max(shares.size, 1))[which])


def long_lists(measure: Any, bounds: Ints, values: Floats, shares: Floats) -> Floats:
    """(n,) the worth of a list of each user, of `LISTED` items or more, by the shares (ratings,) above his ratings; NaN
    for users of too few ratings, and where all are worth the same. The gains of a list are those of his ratings, each
    as often. Of a measure that is no such sum, the worth of the ratings themselves in that order."""
    wanted = parse(measure)
    if not (isinstance(wanted, Positional) and wanted.inner(values, bounds)):
        return rated_only(bounds, values, -shares, measure)
    sizes = np.diff(bounds)
    often = np.where(sizes, -(-LISTED // np.maximum(sizes, 1)), 0)
    lengths = sizes * often
    ends, times = np.concatenate([[0], np.cumsum(lengths)]), np.repeat(often, sizes)
    listed = np.repeat(values, times)
    with measured(measure, values):
        gain, constant = wanted.gain(listed, ends)[np.cumsum(times) - times], wanted.constant(listed, ends)
    del listed
    user, told = np.repeat(np.arange(sizes.size), sizes), (sizes >= FEWEST) & ordered_lists(bounds, gain)
    of_rating, total, discounted = lengths[user], np.zeros(sizes.size), np.zeros(values.size)
    by_length = np.argsort(of_rating, kind="stable")
    of_rating = of_rating[by_length]
    for length in np.unique(lengths[told]).tolist():
        low, high = np.searchsorted(of_rating, [length, length + 1])
        some, discount = by_length[low:high], np.append(wanted.discount(length), 0.0)
        discounted[some] = np.interp(1.0 + (length - 1) * shares[some], np.arange(1, length + 2), discount)
        total[lengths == length] = discount.sum()
    mean = np.bincount(user, gain, sizes.size) / np.maximum(sizes, 1)
    spread = np.bincount(user, (gain - mean[user]) * discounted, sizes.size)
    found = mean * total + (lengths - 1) / np.maximum(sizes - 1, 1) * spread - constant
    return np.where(told, found, np.nan)


STRENGTHS = (1.0, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25)
"""ρ from which one is chosen; 1 leaves offsets alone."""

FOLDS = 5

USUAL = {"levels": 0.65, "orders": 0.75}
"""The ρ that is right for most ratings, of losses that see levels and of losses of orders."""

RELAXED = 2.0 / 3.0
"""ρ_U of users who are solved once more, as a part of the chosen ρ, under convex losses of orders. A rule and no
choice: what it gains folds cannot tell from 0. Where a weaker ρ than the usual one was chosen users follow their
ratings closely as it is: on splits of MovieLens 100k that serve nothing else users of 50 ratings gained .0013 to .0024
by it at .75, and at .65 and .55 lost up to .0024 and .0052."""

LONG = 30
"""Ratings that a user has in the median, from which on users are solved once more: twice as many as there are factors
by default. On splits of MovieLens 100k that serve nothing else .0013 to .0024 were gained by users of 50 ratings, and
up to .0005 were lost by those of 10 and 20."""

SURE = 2.0
"""Standard errors over users from which on one strength counts as worse than another."""


@dataclass(frozen=True)
class RegularizationChoice(CompactReprMixin):
    """The chosen ρ, and what each of them reached: the mean over users of the measure, told by ratings left out, an
    estimate that may leave its range; NaN where these tell no order from another. prior: what items are pulled to, of
    the priors that were compared, and what each reached. seconds: what the choice took. cut: time was over before all
    was tried."""

    strength: float
    tried: tuple[float, ...]
    reached: tuple[float, ...]
    prior: str = "mean"
    priors: tuple[tuple[str, float], ...] = ()
    seconds: float = field(default=0.0, compare=False)
    cut: bool = False


def chosen_strength(
    rated: EncodedRatings,
    builds: Mapping[str, Callable[[EncodedRatings], Any]],
    factors: int,
    measure: Callable[[EncodedRatings, Floats], Floats],
    settings: Alternation,
    ends: float = math.inf,
    usual: float = USUAL["orders"],
    strengths: tuple[float, ...] = STRENGTHS,
    folds: int = FOLDS,
) -> RegularizationChoice:
    """builds: for each prior from ratings to blocks, or DataError for such as tell the loss nothing. measure: of
    ratings and the share of items above each, one number a user, NaN for none. ends: the `perf_counter` at which no
    further strength is tried.

    Few ratings tell near strengths apart by luck only. So `usual` is taken unless it lies below the best by `SURE`
    standard errors of the difference over users or more, then the best; and none are tried that are weaker than one
    that lies so. Of priors the one is taken that is better at `usual`."""
    began, fold = perf_counter(), folds_of(rated, folds)

    def deal(build: Callable[[EncodedRatings], Any]) -> _Folds:
        parts = []
        for number in range(folds):
            kept, left = rated.keep(fold != number), rated.keep(fold == number)
            if left.values.size and kept.values.size:
                with suppress(DataError):  # what is left of few ratings has no order to learn
                    blocks = build(kept)
                    parts.append(_Part(blocks, start_of(blocks, factors), kept, left))
        return _Folds(parts, rated, measure, settings, ends)

    dealt = {prior: deal(build) for prior, build in builds.items()}
    found = {prior: dealt[prior].at(usual) for prior in builds} if len(builds) > 1 else {}
    compared = {prior: _mean(told) for prior, told in found.items()}
    prior = better_prior(compared) or next(iter(builds))
    values: list[Floats] = []
    for strength in strengths:
        known = found.get(prior) if strength == usual else None
        reached = dealt[prior].at(strength) if known is None else known
        if reached is None:
            break
        values.append(reached)
        if _lower(values):
            break
    chosen = _settled(np.array(values), strengths, usual)
    return replace(
        chosen, prior=prior, priors=tuple(compared.items()), seconds=perf_counter() - began,
        cut=perf_counter() >= ends,
    )  # fmt: skip


def _mean(values: Floats | None) -> float:
    return float("nan") if values is None or _untold(values) else float(np.nanmean(values))


def _untold(values: Floats | None) -> bool:
    return values is None or bool(np.isnan(values).all())


def better_prior(compared: Mapping[str, float]) -> str | None:
    """The one that reached most, of equal ones the first; None where nothing is told."""
    told = [prior for prior, reached in compared.items() if not math.isnan(reached)]
    return max(told, key=lambda prior: compared[prior], default=None)


@dataclass
class _Part:
    """A fold: blocks of the ratings kept that the loss sees, where they start, ratings kept and left out, and the
    factors last found."""

    blocks: Any
    start: Start
    kept: EncodedRatings
    left: EncodedRatings
    warm: Factors | None = None


@dataclass(frozen=True)
class _Folds:
    parts: list[_Part]
    rated: EncodedRatings
    measure: Callable[[EncodedRatings, Floats], Floats]
    settings: Alternation
    ends: float

    def at(self, strength: float) -> Floats | None:
        """The measure of all that is left out, under the models of this strength; None where time is over."""
        shares = np.full(self.rated.values.size, np.nan)
        for part in self.parts:
            lam, factors = strength * part.start.lam_max, part.start.alone
            if strength < 1.0 and lam > 0.0:
                left = self.ends - perf_counter()
                if left <= 0.0:
                    return None
                settings = replace(self.settings, time_limit=left) if left < math.inf else self.settings
                here = part.blocks.at_strength(lam, lam)
                begin = partial(here.begun, part.warm or part.start.factors)
                done = alternated(here, settings, begin)
                if done.stop is Stop.INTERRUPTED:
                    raise KeyboardInterrupt("interrupted while the strength was chosen, before the first round")
                factors = part.warm = done.best.factors
            shares[part.left.given] = shares_above(part.left, part.kept, _of_all(part, factors))
        told = self.rated if not np.isnan(shares).any() else self.rated.keep(~np.isnan(shares))
        return self.measure(told, levelled(shares if told is self.rated else shares[told.given]))


def _of_all(part: _Part, factors: Factors) -> Factors:
    """Users that the loss did not see have the offsets alone, which order as those of users do not."""
    users = np.zeros((part.left.n_users, factors.dimensions))
    users[part.blocks.problem.rated.users] = factors.users
    return replace(factors, users=users)


def _lower(values: list[Floats]) -> bool:
    """Whether the last strength lies below the best for sure."""
    told = _told(np.array(values))
    return bool(told.size) and not _as_good(told)[-1]


def _settled(values: Floats, strengths: tuple[float, ...], usual: float) -> RegularizationChoice:
    """The usual one where it is as good as the best, as far as these values (strengths, users) can tell; else that."""
    tried, told = strengths[: len(values)], _told(values)
    if not told.size:
        return RegularizationChoice(min(tried, key=lambda one: abs(one - usual)), tried, (float("nan"),) * len(tried))
    reached = told.mean(axis=1)
    good = [one for one, as_good in zip(tried, _as_good(told).tolist(), strict=True) if as_good]
    return RegularizationChoice(
        usual if usual in good else tried[int(np.argmax(reached))], tried, tuple(reached.tolist())
    )


def _told(values: Floats) -> Floats:
    """The values (strengths, users) of users who tell something of all strengths."""
    return values[:, ~np.isnan(values).any(axis=0)]


def _as_good(told: Floats) -> NDArray[np.bool_]:
    """Which strengths lie below the best by less than `SURE` standard errors of the difference."""
    behind = told[int(np.argmax(told.mean(axis=1)))] - told
    return np.asarray(behind.mean(axis=1) <= SURE * behind.std(axis=1) / np.sqrt(told.shape[1]))


def folds_of(rated: EncodedRatings, folds: int) -> NDArray[np.int64]:
    """(ratings,) the fold of each: those of a user in turn, in the order of the items' content, the next user going on
    where one ends; and one further where items would be left out whole, as in a table where all rated five items."""
    dealt = np.arange(rated.values.size) % folds
    of_items = np.bincount(rated.columns * folds + dealt, minlength=rated.n_items * folds).reshape(-1, folds)
    whole = of_items.max(axis=1) == of_items.sum(axis=1)
    if 2 * of_items[whole].sum() > dealt.size:
        dealt = (dealt + np.repeat(np.arange(rated.n_users), np.diff(rated.bounds))) % folds
    return dealt


PRIORS = ("mean", "means")
"""What items may be pulled to: the mean of all ratings, or also their own."""

RATINGS = 10.0
"""How many ratings the first counts for; the second, made of the same ratings as the model, counts for `SHRUNK`."""

SHRUNK = 30.0
"""Ratings of the mean of all that are added to those of an item, where it is pulled to its own mean."""


def popular(rated: EncodedRatings, popularity: float, means: bool = False) -> Floats:
    """b⁰_j = mean + c log(1 + count_j), mean the constant that leaves the residuals of the ratings a mean of 0; with
    means, plus the item's mean residual times count_j/(count_j + 30): what levels of ratings tell and orders do not."""
    counts = np.diff(rated.item_bounds)
    prior = popularity * np.log1p(counts)
    if not rated.values.size:
        return np.asarray(prior)
    weights = rated.weights if rated.weights.size else None
    left = prior[rated.columns]
    np.subtract(rated.values[:], left, out=left)
    mean = np.average(left, weights=weights)
    prior = prior + mean
    if means:
        left -= mean
        if weights is not None:
            left *= weights / weights.mean()
        prior = prior + rated.per_item(left) / (counts + SHRUNK)
    return np.asarray(prior)


def of_unrated(rated: EncodedRatings, popularity: float) -> float:
    """b⁰ of an item without ratings."""
    first = rated.item_bounds[:2]
    return float(popular(rated, popularity)[0] - popularity * np.log1p(first[1] - first[0]))


@dataclass(frozen=True)
class Penalties:
    """offsets: μ of item offsets, None where these stay at b⁰; user_offsets: μ of user offsets, None for none.
    by_counts: λ and μ count once a rating of the user or item, λ_u = λ n_u, in place of once. means: items are pulled
    to their own means."""

    popularity: float
    offsets: float | None
    user_offsets: float | None
    by_counts: bool = False
    means: bool = False

    def blocks(self, loss: Any, rated: EncodedRatings, engine: Any) -> tuple[Any, float]:
        """The blocks of a `UserLoss` of these ratings at λ = 1, and how much a rating of that loss bends it: the pull
        on item offsets is μ times that, so that the prior counts for μ ratings under every loss."""
        found = loss.blocks(self.problem(rated), engine)
        if self.offsets is None:
            return found, 1.0
        bend = found.bend()
        return (found if bend == 1.0 else replace(found, problem=found.problem.with_pull(bend))), bend

    def problem(self, rated: EncodedRatings) -> FactorProblem:
        """The problem of these ratings at λ = 1. A user or item without ratings counts as with one."""
        n, m = rated.n_users, rated.n_items
        users, items = np.ones(n), np.ones(m)
        if self.by_counts:
            users, items = np.maximum(np.diff(rated.bounds), 1.0), np.maximum(np.diff(rated.item_bounds), 1.0)
        none = np.zeros(0)
        return FactorProblem(
            rated=rated,
            prior=popular(
                rated, self.popularity if self.offsets is not None else 0.0, self.means and self.offsets is not None
            ),
            user_scale=users,
            item_scale=items,
            of_offsets=none if self.offsets is None else self.offsets * items,
            of_user_offsets=none if self.user_offsets is None else self.user_offsets * users,
        )
