"""Soft constraints: a ranking may break them, at a price a unit.

Of a row lower <= a π <= upper a ranking breaks max(lower - a π, a π - upper, 0) units, of forbidden cells as many as it
holds. What it is worth falls by price · units, a concave function of π. So the rows stay in the program with a column
each for what they are over and under, and their dual prices are held within ± the price that breaking them has.

A soft constraint is no part of what a set admits: it may be broken. Cells that are forbidden at a price only earn less.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from formulations.arrays import LARGEST, Floats, Ints, frozen
from formulations.constraints.constraint import Constraint, broken
from formulations.constraints.rows import SetRows
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblem


@dataclass(frozen=True, eq=False)
class Soft(CompactReprMixin):
    """A constraint (of a set, or of cvxpy) and what a unit of breaking it costs."""

    constraint: Any
    price: float

    @property
    def name(self) -> str:
        return str(self.constraint.name)


def soft(constraint: Any, *, price: float) -> Soft:
    """A cvxpy constraint that may be broken at a price a unit, for `RankingSet.from_cvxpy`.

    Sets say it by `RankingSet.soft(name, price=...)`, rules over attributes by `Admissible.soft(name, price=...)`,
    statement files by a key `price`. Raises InvalidProblem for a price that is no number from 0 to 1e150.
    """
    if isinstance(constraint, Soft | str) or not hasattr(constraint, "args"):
        raise InvalidProblem(
            f"soft takes a cvxpy constraint, not a {type(constraint).__name__}; of a set write "
            "RankingSet(...).soft(name, price=...)"
        )
    return Soft(constraint, valid_price(price))


def valid_price(price: Any, of: Any = "") -> float:
    """The price (of a constraint of this name) as a float, or InvalidProblem."""
    number = price.item() if isinstance(price, np.generic) else price
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0.0 <= number <= LARGEST:
        whose = f" of {of!r}" if of else ""
        raise InvalidProblem(f"price = {price!r} is no price{whose}; give a number from 0 to {LARGEST:g}")
    return float(number)


def charge_of(softened: Iterable[Soft], order: Ints, n: int) -> float:
    """What a ranking of n documents (the document at each position) pays for the soft constraints that it breaks."""
    return float(sum(one.price * sum(broken([one.constraint], order, n).values()) for one in softened))


def cell_prices(softened: Iterable[Soft], shape: tuple[int, int]) -> Floats:
    """(k, n) what a document at a position costs where that is forbidden at a price."""
    cost = np.zeros(shape)
    for one in softened:
        if one.constraint.forbids is not None:
            cost += one.price * one.constraint.forbids.reshape(shape)
    return frozen(cost)


def priced(stated: SetRows, softened: Iterable[Soft], charge: float = 1.0) -> SetRows:
    """The rows of a set, and behind them those of its soft constraints, at their prices times `charge`."""
    rows = [one for one in softened if one.constraint.rows]
    held: list[Constraint] = [one.constraint for one in rows]
    count = stated.lower.size
    matrix = csr_array(vstack([stated.matrix, *(one.matrix[:, stated.cell] for one in held)]))
    matrix.sort_indices()
    costs = [np.full(one.constraint.rows, charge * one.price) for one in rows]
    return replace(
        stated,
        matrix=matrix,
        lower=frozen(np.concatenate([stated.lower, *(one.lower for one in held)])),
        upper=frozen(np.concatenate([stated.upper, *(one.upper for one in held)])),
        blocks=(*stated.blocks, *(one.block for one in held)),
        price=frozen(np.concatenate([np.full(count, np.inf), *costs])),
    )
