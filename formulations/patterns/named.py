"""Losses of patterns by name: "AUC", "AP", "RR", "ERR", "nDCG", "DCG", "P", and "@k" behind all but the first.

>>> pattern_loss("RR@10")
RR(cutoff=10)
"""

from __future__ import annotations

import numpy as np

from formulations.arrays import Floats
from formulations.errors import InvalidProblem
from formulations.patterns.losses import AP, AUC, ERR, RR, Discounted, PatternLoss

__all__ = ["pattern_loss"]

NAMES = ("AP", "AUC", "DCG", "ERR", "P", "RR", "nDCG")


def pattern_loss(loss: PatternLoss | str) -> PatternLoss:
    """The loss of this name; one that is given is returned. DCG and nDCG count 2^grade - 1 by 1 / log2(position + 1).

    Raises `InvalidProblem` for what names none.
    """
    if not isinstance(loss, str):
        if not callable(getattr(loss, "earnings", None)) or not isinstance(getattr(loss, "graded", None), bool):
            raise InvalidProblem(
                f"a {type(loss).__name__} is no loss of patterns: give a name, or a record of formulations.patterns"
            )
        return loss
    name, _, tail = loss.partition("@")
    if name not in NAMES or (tail and not (tail.isdecimal() and int(tail) > 0)) or loss.endswith("@"):
        known = ", ".join(NAMES)
        raise InvalidProblem(f"no loss of patterns is called {loss!r}; write {known}, or such a name and @k")
    cutoff = int(tail) if tail else None
    if name == "AUC":
        if cutoff is not None:
            raise InvalidProblem(f"{loss!r}: AUC has no cutoff; write 'AUC'")
        return AUC()
    if name in ("DCG", "nDCG"):
        return Discounted(_Logarithms(cutoff), _exponential, normalised=name == "nDCG")
    if name == "P":
        return Discounted(_Share(cutoff), graded=False)
    if name == "AP":
        return AP(cutoff)
    return RR(cutoff) if name == "RR" else ERR(cutoff)


class _Logarithms:
    """n → 1 / log2(position + 1), 0 beyond the cutoff."""

    def __init__(self, cutoff: int | None) -> None:
        self.cutoff = cutoff

    def __call__(self, n: int) -> Floats:
        count = n if self.cutoff is None else min(n, self.cutoff)
        return np.asarray(1.0 / np.log2(np.arange(2.0, count + 2.0)))


class _Share:
    """n → 1 / k for the first k positions."""

    def __init__(self, cutoff: int | None) -> None:
        self.cutoff = cutoff

    def __call__(self, n: int) -> Floats:
        count = n if self.cutoff is None else self.cutoff
        return np.full(min(count, n), 1.0 / count)


def _exponential(grade: Floats) -> Floats:
    return np.asarray(np.exp2(grade) - 1.0)
