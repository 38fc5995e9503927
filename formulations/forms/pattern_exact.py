"""What an order is worth by the definition of a pattern problem, in rational numbers: no digit is lost."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.forms.earnings import DOCUMENT, RANK, Earnings
from formulations.forms.feature_map import FIRST, POSITIONAL, FeatureMap

__all__ = ["exact_value", "rational_array"]


def exact_value(scores: Floats, grade: Floats, map: FeatureMap, earnings: Earnings, order: Ints) -> Fraction:
    """r(y)ᵀ scores - gain(y) of one query, order[p] being the document at position p."""
    constant = Fraction(float(earnings.constant[0]))
    return _scored(scores, grade, map, order) - _earned(grade, earnings, order) + constant


def _scored(scores: Floats, grade: Floats, map: FeatureMap, order: Ints) -> Fraction:
    """r(y)ᵀ scores."""
    weight, grades = rational_array(map.weight), grade[order]
    placed, count = rational_array(scores)[order], order.size
    if map.kind == POSITIONAL:
        return Fraction(sum((weight * placed).tolist()))
    if map.kind == FIRST:
        good = np.flatnonzero(grades > 0)
        above = int(good[0]) if good.size else 0
        return Fraction(weight[0] * (sum(placed[:above].tolist()) - above * (placed[above] if above else 0)))
    total = Fraction(0)
    for place in range(count):
        pairs = int((grades[place + 1 :] > grades[place]).sum()) - int((grades[:place] < grades[place]).sum())
        total += pairs * placed[place]
    return Fraction(weight[0] * total)


def _earned(grade: Floats, earnings: Earnings, order: Ints) -> Fraction:
    """gain(y) without the constant."""
    good = grade[order] > 0
    discount, total = rational_array(earnings.discount), Fraction(0)
    if earnings.kind == RANK:
        share = rational_array(earnings.share)[: int(good.sum())]
        return Fraction(sum((share * discount[good]).tolist()))
    if earnings.kind == DOCUMENT:
        share, passing, stay = (
            rational_array(earnings.share)[order],
            rational_array(earnings.passing)[order],
            Fraction(1),
        )
        for worth, passed, here in zip(share.tolist(), passing.tolist(), discount.tolist(), strict=True):
            total += worth * stay * here
            stay *= passed
        return total
    grades, chain = np.unique(grade, return_inverse=True)
    table = earnings.table.reshape(grades.size, *(np.bincount(chain) + 1))
    taken = [0] * grades.size
    for own in chain[order].tolist():
        total += Fraction(float(table[(own, *taken)]))
        taken[own] += 1
    return total


def rational_array(values: Any) -> NDArray[Any]:
    """The same numbers as fractions."""
    array = np.asarray(values, dtype=np.float64)
    made = np.empty(array.size, dtype=object)
    made[:] = [Fraction(value) for value in array.ravel().tolist()]
    return made.reshape(array.shape)
