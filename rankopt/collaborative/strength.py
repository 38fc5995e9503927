"""The strength ρ = λ/λ_max chosen inside the training ratings, by cross-fitting.

Every user's ratings are dealt into folds; each fold is scored by the model of the others, at every ρ. λ itself would
mislead: a fold holds fewer ratings, and its λ_max is smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.alternation import Alternation, alternated
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.rated import Rated
from rankopt.collaborative.start import start_of

__all__ = ["FOLDS", "STRENGTHS", "Chosen", "chosen_strength", "folds_of"]

Floats = NDArray[np.float64]

STRENGTHS = (1.0, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25)
"""ρ from which one is chosen; 1 leaves offsets alone."""

FOLDS = 5

FAR = 4.0
"""Standard errors below the best at which no weaker strength is tried."""


@dataclass(frozen=True)
class Chosen:
    """The chosen ρ, and what each of them reached: the mean of the measure of ratings left out."""

    strength: float
    tried: tuple[float, ...]
    reached: tuple[float, ...]


def chosen_strength(
    rated: Rated,
    build: Callable[[Rated], Any],
    factors: int,
    measure: Callable[[Rated, Floats], Floats],
    settings: Alternation,
    strengths: tuple[float, ...] = STRENGTHS,
    folds: int = FOLDS,
) -> Chosen:
    """build: from ratings to blocks. measure: of ratings left out and their scores, one number a user, NaN for none.

    Few ratings tell near strengths apart by luck only. So of all that lie below the best by less than one standard
    error of the difference over users the middle one is taken, the larger of two."""
    fold = folds_of(rated, folds)
    parts = []
    for number in range(folds):
        kept, left = rated.keep(fold != number), rated.keep(fold == number)
        if left.values.size and kept.values.size:
            blocks = build(kept)
            parts.append((blocks, start_of(blocks, factors), left))
    warm = [start.factors for _, start, _ in parts]
    values: list[Floats] = []
    for strength in strengths:
        found = []
        for number, (blocks, start, left) in enumerate(parts):
            lam, factors_now = strength * start.lam_max, start.alone
            if strength < 1.0 and lam > 0.0:
                here = blocks.at_strength(lam, lam)
                factors_now = warm[number] = alternated(here, settings, partial(here.begun, warm[number])).best.factors
            found.append(measure(*_scored(left, blocks.problem, factors_now)))
        values.append(np.concatenate(found) if found else np.zeros(0))
        if _hopeless(values):
            break
    return _middle(np.array(values), strengths)


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
