"""The strength ρ = λ/λ_max chosen inside the training ratings, by cross-fitting.

Every user's ratings are dealt into folds; each fold is scored by the model of the others, at every ρ. λ itself would
mislead: a fold holds fewer ratings, and its λ_max is smaller.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.alternation import Alternation, alternated
from rankopt.collaborative.rated import Rated
from rankopt.collaborative.start import start_of

__all__ = ["FOLDS", "STRENGTHS", "Chosen", "chosen_strength", "folds_of"]

Floats = NDArray[np.float64]

STRENGTHS = (1.0, 0.85, 0.75, 0.65, 0.55, 0.45, 0.35, 0.25)
"""ρ from which one is chosen; 1 leaves offsets alone."""

FOLDS = 5


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
    error of the difference over users the middle one is taken."""
    values = np.full((len(strengths), folds, rated.n_users), np.nan)
    fold = folds_of(rated, folds)
    for number in range(folds):
        kept, left = rated.keep(fold != number), rated.keep(fold == number)
        if not left.values.size or not kept.values.size:
            continue
        blocks = build(kept)
        start = start_of(blocks, factors)
        at = start.factors
        for place, strength in enumerate(strengths):
            lam = strength * start.lam_max
            found = start.alone.factors
            if strength < 1.0 and lam > 0.0:
                here = blocks.at_strength(lam, lam)
                found = at = alternated(here, settings, here.begun(at)).best.factors
            values[place, number] = measure(left, found.scores(left.bounds, left.columns))
    return _middle(values.reshape(len(strengths), -1), strengths)


def _middle(values: Floats, strengths: tuple[float, ...]) -> Chosen:
    """The middle of those that are as good as the best, as far as these values (strengths, lists) can tell."""
    told = values[:, ~np.isnan(values).any(axis=0)]
    if not told.shape[1]:
        return Chosen(strengths[len(strengths) // 2], strengths, (float("nan"),) * len(strengths))
    reached = told.mean(axis=1)
    behind = told[int(np.argmax(reached))] - told
    error = behind.std(axis=1) / np.sqrt(told.shape[1])
    near = np.flatnonzero(behind.mean(axis=1) <= error)
    return Chosen(strengths[int(near[near.size // 2])], strengths, tuple(reached.tolist()))


def folds_of(rated: Rated, folds: int) -> NDArray[np.int64]:
    """(ratings,) the fold of each: those of a user in turn, in the order of the items' content, the next user going on
    where one ends."""
    return np.arange(rated.values.size) % folds
