"""The strength ρ = λ/λ_max, and what items are pulled to, chosen inside the training ratings, by cross-fitting.

Every user's ratings are dealt into folds; each fold is scored by the model of the others, at every ρ. λ itself would
mislead: a fold holds fewer ratings, and its λ_max is smaller.
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

from rankopt.collaborative.alternation import Alternation, alternated
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.rated import Rated
from rankopt.collaborative.start import Start, start_of
from rankopt.errors import DataError

__all__ = ["FOLDS", "STRENGTHS", "Chosen", "chosen_strength", "folds_of", "plainest"]

Floats = NDArray[np.float64]

STRENGTHS = (1.0, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25)
"""ρ from which one is chosen; 1 leaves offsets alone."""

FOLDS = 5

COMPARED = 0.75
"""The ρ at which priors of items are compared."""

FAR = 4.0
"""Standard errors below the best at which no weaker strength is tried."""


@dataclass(frozen=True)
class Chosen:
    """The chosen ρ, and what each of them reached: the mean of the measure of ratings left out; NaN where these tell
    no order from another. prior: what items are pulled to, of the priors that were compared, and what each reached.
    seconds: what the choice took. cut: time was over before all was tried."""

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
    ratings left out and their scores, one number a user, NaN for none. ends: the `perf_counter` at which no further
    strength is tried.

    Few ratings tell near strengths apart by luck only. So of all that lie below the best by less than one standard
    error of the difference over users the middle one is taken, the larger of two; of priors likewise the first."""
    began, fold = perf_counter(), folds_of(rated, folds)

    def deal(build: Callable[[Rated], Any]) -> _Folds:
        parts = []
        for number in range(folds):
            kept, left = rated.keep(fold != number), rated.keep(fold == number)
            if left.values.size and kept.values.size:
                with suppress(DataError):  # what is left of few ratings has no order to learn
                    blocks = build(kept)
                    parts.append(_Part(blocks, start_of(blocks, factors), left))
        return _Folds(parts, measure, settings, ends)

    dealt = {prior: deal(build) for prior, build in builds.items()}
    found = {prior: dealt[prior].at(COMPARED) for prior in builds} if len(builds) > 1 else {}
    compared = {prior: _mean(told) for prior, told in found.items()}
    prior = plainest(found) or next(iter(builds))
    values: list[Floats] = []
    for strength in strengths:
        reached = dealt[prior].at(strength)
        if reached is None:
            break
        values.append(reached)
        if _hopeless(values):
            break
    chosen = _middle(np.array(values), strengths)
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
    """A fold: blocks of the ratings kept, where they start, ratings left out, and the factors last found."""

    blocks: Any
    start: Start
    left: Rated
    warm: Factors | None = None


@dataclass(frozen=True)
class _Folds:
    parts: list[_Part]
    measure: Callable[[Rated, Floats], Floats]
    settings: Alternation
    ends: float

    def at(self, strength: float) -> Floats | None:
        """The measure of all that is left out, under the models of this strength; None where time is over."""
        found = []
        for part in self.parts:
            lam, factors = strength * part.start.lam_max, part.start.alone
            if strength < 1.0 and lam > 0.0:
                left = self.ends - perf_counter()
                if left <= 0.0:
                    return None
                settings = replace(self.settings, time_limit=left) if left < math.inf else self.settings
                here = part.blocks.at_strength(lam, lam)
                begin = partial(here.begun, part.warm or part.start.factors)
                factors = part.warm = alternated(here, settings, begin).best.factors
            found.append(self.measure(*_scored(part.left, part.blocks.problem, factors)))
        return np.concatenate(found) if found else np.zeros(0)


def _scored(left: Rated, problem: Any, factors: Factors) -> tuple[Rated, Floats]:
    """The ratings left out and their scores; users that the loss did not see have the offsets alone."""
    users = np.zeros((left.n_users, factors.dimensions))
    users[problem.rated.users] = factors.users
    own = np.zeros(left.n_users)
    own[problem.rated.users] = factors.user_offsets
    return left, replace(factors, users=users, user_offsets=own).scores(left.bounds, left.columns)


def _hopeless(values: list[Floats]) -> bool:
    """Whether the last strength lies so far below the best that weaker ones need no trial."""
    told = np.array(values)
    told = told[:, ~np.isnan(told).any(axis=0)]
    if not told.shape[1]:
        return False
    behind = told[int(np.argmax(told.mean(axis=1)))] - told[-1]
    return bool(behind.mean() > FAR * behind.std() / np.sqrt(behind.size))


def _middle(values: Floats, strengths: tuple[float, ...]) -> Chosen:
    """The middle of those that are as good as the best, as far as these values (strengths, lists) can tell."""
    strengths = strengths[: len(values)]
    told = values[:, ~np.isnan(values).any(axis=0)]
    if not told.shape[1]:
        return Chosen(strengths[len(strengths) // 2], strengths, (float("nan"),) * len(strengths))
    reached = told.mean(axis=1)
    behind = told[int(np.argmax(reached))] - told
    error = behind.std(axis=1) / np.sqrt(told.shape[1])
    near = np.flatnonzero(behind.mean(axis=1) <= error)
    return Chosen(strengths[int(near[(near.size - 1) // 2])], strengths, tuple(reached.tolist()))


def folds_of(rated: Rated, folds: int) -> NDArray[np.int64]:
    """(ratings,) the fold of each: those of a user in turn, in the order of the items' content, the next user going on
    where one ends."""
    return np.arange(rated.values.size) % folds
