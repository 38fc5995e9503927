"""From float costs to whole ones, for solvers that take no others: the only place where costs are rounded.

Costs are shifted to begin at zero where every solution uses the same number of them, multiplied by a power of two and
rounded. Each rounds by half a unit at most, so two solutions of n costs each compare wrongly by n units at most: the
solution found is optimal to `left` = n / 2^b in the given costs. Doubles being whole multiples of a power of two, no
rounding is needed at all where whole numbers may be of any length.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log2

import numpy as np

from formulations.arrays import Floats, Ints


@dataclass(frozen=True)
class IntegerCosts:
    """`values` = (cost - shift) · 2^exponent, rounded; a solution best for them is optimal to `left` for the costs."""

    values: Ints | list[int]
    exponent: int
    left: float

    @property
    def details(self) -> dict[str, float]:
        return {"cost_exponent": self.exponent, "rounding_bound": self.left}


def rounded_costs(cost: Floats, terms: int, nodes: int, *, shift: bool) -> IntegerCosts:
    """Costs in 64-bit integers.

    terms: how many costs make up a solution, counted with their flow. nodes: solvers multiply costs by it inside.
    shift: whether every solution uses the same number of costs, so that a constant may be taken off.
    """
    low = float(cost.min(initial=np.inf)) if shift and cost.size else 0.0
    moved = cost - low
    spread = float(np.abs(moved).max(initial=0.0))
    if spread == 0.0:
        return IntegerCosts(np.zeros(cost.size, dtype=np.int64), 0, 0.0)
    terms = max(terms, 1)
    exponent = floor(60 - log2(max(nodes, 1)) - log2(max(terms, nodes, 1)) - log2(spread))
    values = np.rint(np.ldexp(moved, exponent)).astype(np.int64)
    return IntegerCosts(values, exponent, float(np.ldexp(float(terms), -exponent)))


def exact_costs(cost: Floats) -> IntegerCosts:
    """Costs as whole numbers of any length, without rounding."""
    ratios = [value.as_integer_ratio() for value in cost.tolist()]
    denominator = max((below for _, below in ratios), default=1)
    values = [above * (denominator // below) for above, below in ratios]
    return IntegerCosts(values, denominator.bit_length() - 1, 0.0)
