"""The best ranking of a set some of whose constraints may be broken at a price."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import LARGEST, Floats, frozen
from formulations.errors import InvalidProblem
from formulations.forms.form import EPSILON
from formulations.forms.linear_program import LinearProgram
from formulations.forms.outward import below, products
from formulations.notation.mps_and_lp import write
from formulations.notation.program import Program
from formulations.sets.constrained_ranking import ConstrainedRanking
from formulations.sets.constraint import broken
from formulations.sets.rows import SetRows
from formulations.sets.soft import priced, valid_price
from formulations.sets.widened import reach, widened

__all__ = ["SoftRanking"]


@dataclass(frozen=True, eq=False, repr=False)
class SoftRanking(ConstrainedRanking):
    """max over rankings π that the hard constraints admit of Σ profit[i, j] π[i, j] - charge · Σ price · units broken.

    variables    π[i, j] = 1 where document j stands at position i; over, under: what a soft row is broken by
    subject to   the rows of the set, hard and soft, the soft ones with over and under (`sets.widened`)
    integrality  that of the widened statement: see `verify_integrality`

    A point x is the order; `solution.broken` says what it breaks, and by how much. A dual y holds one price a row other
    than the positions, those of soft rows last and never beyond what breaking them costs.
    """

    charge: float = 1.0

    takes_soft: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "charge", valid_price(self.charge))
        if self.ranked is not None:
            raise InvalidProblem("a ranking of rank two has no set; leave `ranked` out")
        for one in self.admissible.softened:
            if not self.charge * one.price <= LARGEST:
                raise InvalidProblem(
                    f"breaking {one.name!r} costs charge {self.charge:g} × price {one.price:g} a unit, more than "
                    f"{LARGEST:g}; lower one of them"
                )

    @cached_property
    def stated(self) -> SetRows:
        admissible = self.admissible
        return admissible.priced if self.charge == 1.0 else priced(admissible.stated, admissible.softened, self.charge)

    @cached_property
    def worth(self) -> Floats:
        return frozen(self.profit - self.charge * self.admissible.cell_prices)

    @cached_property
    def scale(self) -> float:
        """The largest profit, or charge for a row, in magnitude."""
        return float(max(np.abs(self.worth).max(), self._dearest))

    @property
    def _dearest(self) -> float:
        price, (over, under) = self._prices, reach(self.stated)
        most = np.maximum(over, under)[self.stated.lower.size - price.size :]
        return float((price * most).max(initial=0.0))

    @property
    def _prices(self) -> Floats:
        """The prices of the soft rows, which stand last."""
        price = self.stated.price
        assert price is not None
        return price[self.admissible.stated.lower.size :]

    @property
    def extent(self) -> str:
        return f"{super().extent}, and {self._prices.size} that may be broken"

    @property
    def program(self) -> Program:
        return widened(self.stated, self.worth)

    def linear_program(self, integer: bool = False) -> LinearProgram:
        return LinearProgram.of(widened(self.stated, self.worth, integer))

    @property
    def rounding(self) -> float:
        return super().rounding + 16.0 * EPSILON * self.scale * self._prices.size + self._unsure

    def broken(self, x: NDArray[Any]) -> dict[str, float]:
        """What a ranking breaks of the soft constraints: name of a row, pin or ban → by how much."""
        held = [one.constraint for one in self.admissible.softened]
        return broken(held, np.asarray(x, dtype=np.int64), self.documents)

    @cached_property
    def _unsure(self) -> float:
        """What rounding may hide of the charges, in rows whose coefficients or limits are not whole."""
        first = self.admissible.stated.lower.size
        left = np.where(self.stated.whole_limits[first:], 0.0, self.stated.rounding[first - self.positions :])
        return float((self._prices * left).sum())

    def _charges(self, x: NDArray[Any]) -> tuple[Floats, Floats]:
        """Prices of the soft rows that x breaks, and by how much."""
        off = self.stated.excess(np.asarray(x))[self.stated.lower.size - self.positions - self._prices.size :]
        return self._prices[off > 0.0], off[off > 0.0]

    def value(self, x: NDArray[Any]) -> float:
        price, off = self._charges(x)
        return float(self.worth[np.arange(self.positions), np.asarray(x)].sum() - price @ off)

    def attained(self, x: NDArray[Any]) -> float:
        terms, digits, dropped = products(*self._charges(x))
        return below(self.worth[np.arange(self.positions), np.asarray(x)], -terms, -digits, -dropped - self._unsure)

    def write(self, path: str | Path) -> None:
        """Write the widened program in whole numbers to an .mps or .lp file."""
        write(widened(self.stated, self.worth, integer=True), Path(path))
