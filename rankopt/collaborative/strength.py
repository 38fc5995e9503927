"""The strength ρ = λ/λ_max, and what items are pulled to, chosen inside the training ratings, by cross-fitting.

Every user's ratings are dealt into folds; each fold is placed by the model of the others, at every ρ: behind the share
of what might be listed that this model scores higher. Such shares mean the same under the models of all folds, so all
ratings of a user are judged at once (`long_lists`). λ itself would mislead: a fold holds fewer ratings, and its λ_max
is smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.brevity import CompactReprMixin
from rankopt.collaborative.alternation import Alternation, alternated
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.long_lists import levelled, shares_above
from rankopt.collaborative.rated import EncodedRatings
from rankopt.collaborative.start import Start, start_of
from rankopt.errors import DataError
from rankopt.optimize.certificate import Stop

__all__ = [
    "FOLDS",
    "RELAXED",
    "STRENGTHS",
    "USUAL",
    "RegularizationChoice",
    "better_prior",
    "chosen_strength",
    "folds_of",
]

Floats = NDArray[np.float64]

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
