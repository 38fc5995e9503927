"""Value and bound of a sequence of groups in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.certificates.rational_programs import Evidence, Rational, fractions
from formulations.forms.prefix_group_ranking import PrefixGroupRanking

__all__ = ["grouped"]


def grouped(problem: PrefixGroupRanking, x: NDArray[Any], y: Floats | None) -> Evidence:
    worth, held = fractions(problem.worth), problem.counts(x)
    value = Fraction(0)
    for g, first in enumerate(problem.start.tolist()):
        for p, count in enumerate(held[g].tolist()):
            value += sum(worth[p, first : first + count], Fraction(0))
    bound: Rational = float("inf") if y is None else _priced(problem, worth, fractions(y.reshape(problem.lower.shape)))
    return Evidence(Fraction(problem.violation(x)), value, bound)


def _priced(problem: PrefixGroupRanking, worth: Any, price: Any) -> Fraction:
    """Σ_p max_g Σ_{q >= p} ρ[g, q] + Σ_{g, p} max_N (Σ_{r < N} worth - ρ N)."""
    total, groups = Fraction(0), range(problem.groups)
    for p in range(problem.positions):
        allowed = np.flatnonzero(~problem.banned[:, p]).tolist()
        total += max(sum(price[g, p:], Fraction(0)) for g in allowed)
        for g in groups:
            first, low, high = int(problem.start[g]), int(problem.lower[g, p]), int(problem.upper[g, p])
            gained = [part - price[g, p] for part in worth[p, first : first + high]]
            total += sum(gained[:low], Fraction(0)) + sum((one for one in gained[low:] if one > 0), Fraction(0))
    return total
