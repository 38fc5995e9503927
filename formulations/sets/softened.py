"""What a set of rankings says softly: constraints that a ranking may break at a price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from formulations.arrays import Floats, Ints
from formulations.errors import InvalidProblem
from formulations.sets.constraint import Constraint
from formulations.sets.repair import Repair, repaired
from formulations.sets.rows import SetRows
from formulations.sets.soft import Soft, cell_prices, charge_of, priced, valid_price

if TYPE_CHECKING:
    from typing import Self

__all__ = ["SoftConstraintsMixin"]


class SoftConstraintsMixin:
    """The part of a `RankingSet` that speaks of prices. softened: the constraints that may be broken; they exclude no
    ranking."""

    documents: int
    positions: int
    constraints: tuple[Constraint, ...]
    softened: tuple[Soft, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """k positions and n documents."""
        return self.positions, self.documents

    def _rows(self) -> SetRows:
        raise NotImplementedError(f"{type(self).__name__} says no rows of its own; make one by RankingSet(n, k)")

    def _placed(self, order: ArrayLike) -> Ints:
        raise NotImplementedError(f"{type(self).__name__} reads no rankings; make one by RankingSet(n, k)")

    def soft(self, constraint: str, *, price: float) -> Self:
        """The set with the constraint of this name no longer required: a ranking may break it, at `price` a unit, off
        the value of a problem over the set. A unit is one of what a row counts, or one forbidden cell that is held.

        Raises InvalidProblem for a name that no constraint has, and a price that is no number from 0 to 1e150.
        """
        cost = valid_price(price, constraint)
        every = {held.name: held for held in (*self.constraints, *(one.constraint for one in self.softened))}
        if not isinstance(constraint, str) or constraint not in every:
            known = ", ".join(map(repr, every)) or "none"
            raise InvalidProblem(f"no constraint is named {constraint!r}, so none can be soft; there are {known}")
        hard = tuple(held for held in self.constraints if held.name != constraint)
        others = tuple(one for one in self.softened if one.name != constraint)
        return replace(self, constraints=hard, softened=(*others, Soft(every[constraint], cost)))  # type: ignore[type-var]

    @cached_property
    def required(self) -> Self:
        """The set without its soft constraints."""
        return replace(self, softened=()) if self.softened else self  # type: ignore[type-var]

    @cached_property
    def priced(self) -> SetRows:
        """The rows of the set and behind them those of its soft constraints, with their prices."""
        return priced(self._rows(), self.softened)

    @cached_property
    def cell_prices(self) -> Floats:
        """(k, n) what a cell costs that soft bans and pins forbid."""
        return cell_prices(self.softened, self.shape)

    def charge(self, order: ArrayLike) -> float:
        """What a ranking (the document at each position) pays for the soft constraints that it breaks."""
        return charge_of(self.softened, self._placed(order), self.documents)

    def repaired(self, prices: float | Mapping[str, float] = 1.0) -> Repair:
        """A ranking that breaks as little as can be, each constraint at its price a unit, and a bound that proves it.

        prices: one for all constraints, or a mapping from name to price; those that it lacks must hold, soft ones at
        the price they have. Raises InvalidProblem for a name that no constraint has, Infeasible where what must hold
        cannot.
        """
        return repaired(self.shape, self.constraints, self.softened, prices)
