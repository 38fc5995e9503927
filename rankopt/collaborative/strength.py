"""The strength ρ = λ/λ_max, and what items are pulled to, chosen inside the training ratings, by cross-fitting.

Every user's ratings are dealt into folds; each fold is placed by the model of the others, at every ρ: behind the share
of what might be listed that this model scores higher. Such shares mean the same under the models of all folds, so all
ratings of a user are judged at once (`long_lists`). λ itself would mislead: a fold holds fewer ratings, and its λ_max
is smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.alternation import Alternation, alternated
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.long_lists import levelled, shares_above
from rankopt.collaborative.rated import Rated
from rankopt.collaborative.start import Start, start_of
from rankopt.errors import DataError
from rankopt.optimize.certificate import Stop

__all__ = ["FOLDS", "STRENGTHS", "Chosen", "chosen_strength", "folds_of", "plainest"]

Floats = NDArray[np.float64]

STRENGTHS = (1.0, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25)
"""ρ from which one is chosen; 1 leaves offsets alone."""

FOLDS = 5

USUAL = 0.65
"""The ρ that is right for most ratings: where others are no better for sure it is taken, and priors are compared."""

FAR = 4.0
"""Standard errors below the best at which no weaker strength is tried."""


@dataclass(frozen=True)
class Chosen:
    """The chosen ρ, and what each of them reached: the mean over users of the measure, told by ratings left out; NaN
    where these tell no order from another. prior: what items are pulled to, of the priors that were compared, and what
    each reached. seconds: what the choice took. cut: time was over before all was tried."""

    strength: float
    tried: tuple[float, ...]
    reached: tuple[float, ...]
    prior: str = "mean"
    priors: tuple[tuple[str, float], ...] = ()
    seconds: float = field(default=0.0, compare=False)
    cut: bool = False


def chosen_strength(
    rated: Rated,
    builds: Mapping[str, Callable[[Rated], Any]],
    factors: int,
    measure: Callable[[Rated, Floats], Floats],
    settings: Alternation,
    ends: float = math.inf,
    strengths: tuple[float, ...] = STRENGTHS,
    folds: int = FOLDS,
) -> Chosen:
    """builds: for each prior from ratings to blocks, or DataError for such as tell the loss nothing. measure: of
    ratings and the share of items above each, one number a user, NaN for none. ends: the `perf_counter` at which no
    further strength is tried.

    Few ratings tell near strengths apart by luck only. So of all that lie below the best by less than one standard
    error of the difference over users the one nearest to `USUAL` is taken; of priors likewise the first."""
    began, fold = perf_counter(), folds_of(rated, folds)

    def deal(build: Callable[[Rated], Any]) -> _Folds:
        parts = []
        for number in range(folds):
            kept, left = rated.keep(fold != number), rated.keep(fold == number)
            if left.values.size and kept.values.size:
                with suppress(DataError):  # what is left of few ratings has no order to learn
                    blocks = build(kept)
                    parts.append(_Part(blocks, start_of(blocks, factors), kept, left))
        return _Folds(parts, rated, measure, settings, ends)

    dealt = {prior: deal(build) for prior, build in builds.items()}
    found = {prior: dealt[prior].at(USUAL) for prior in builds} if len(builds) > 1 else {}
    compared = {prior: _mean(told) for prior, told in found.items()}
    prior = plainest(found) or next(iter(builds))
    values: list[Floats] = []
    for strength in strengths:
        known = found.get(prior) if strength == USUAL else None
        reached = dealt[prior].at(strength) if known is None else known
        if reached is None:
            break
        values.append(reached)
        if _hopeless(values):
            break
    chosen = _nearest(np.array(values), strengths)
    return replace(
        chosen, prior=prior, priors=tuple(compared.items()), seconds=perf_counter() - began,
        cut=perf_counter() >= ends,
    )  # fmt: skip


def _mean(values: Floats | None) -> float:
    return float("nan") if values is None or _untold(values) else float(np.nanmean(values))


def _untold(values: Floats | None) -> bool:
    return values is None or bool(np.isnan(values).all())


def plainest(found: Mapping[str, Floats | None]) -> str | None:
    """The first of those that lie below the best by less than one standard error; None where nothing is told."""
    told = {name: values for name, values in found.items() if values is not None and not _untold(values)}
    if not told:
        return None
    best = max(told, key=lambda name: float(np.nanmean(told[name])))
    for name, values in told.items():
        behind = told[best] - values
        behind = behind[~np.isnan(behind)]
        if behind.size and behind.mean() <= behind.std() / np.sqrt(behind.size):
            return name
    return best


@dataclass
class _Part:
    """A fold: blocks of the ratings kept that the loss sees, where they start, ratings kept and left out, and the
    factors last found."""

    blocks: Any
    start: Start
    kept: Rated
    left: Rated
    warm: Factors | None = None


@dataclass(frozen=True)
class _Folds:
    parts: list[_Part]
    rated: Rated
    measure: Callable[[Rated, Floats], Floats]
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


def _hopeless(values: list[Floats]) -> bool:
    """Whether the last strength lies so far below the best that weaker ones need no trial."""
    told = np.array(values)
    told = told[:, ~np.isnan(told).any(axis=0)]
    if not told.shape[1]:
        return False
    behind = told[int(np.argmax(told.mean(axis=1)))] - told[-1]
    return bool(behind.mean() > FAR * behind.std() / np.sqrt(behind.size))


def _nearest(values: Floats, strengths: tuple[float, ...]) -> Chosen:
    """Of those that are as good as the best, as far as these values (strengths, users) can tell, the most usual."""
    strengths = strengths[: len(values)]
    told = values[:, ~np.isnan(values).any(axis=0)]
    if not told.shape[1]:
        return Chosen(_usual(strengths), strengths, (float("nan"),) * len(strengths))
    reached = told.mean(axis=1)
    behind = told[int(np.argmax(reached))] - told
    error = behind.std(axis=1) / np.sqrt(told.shape[1])
    near = np.flatnonzero(behind.mean(axis=1) <= error)
    return Chosen(_usual([strengths[i] for i in near.tolist()]), strengths, tuple(reached.tolist()))


def _usual(strengths: Sequence[float]) -> float:
    """The one nearest to `USUAL`, the larger of two."""
    return min(strengths, key=lambda one: (abs(one - USUAL), -one))


def folds_of(rated: Rated, folds: int) -> NDArray[np.int64]:
    """(ratings,) the fold of each: those of a user in turn, in the order of the items' content, the next user going on
    where one ends."""
    return np.arange(rated.values.size) % folds
