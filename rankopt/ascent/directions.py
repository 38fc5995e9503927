"""Which directions a round of an ascent tries.

    "coordinates"    the unit vectors e_1, ..., e_d
    "powell"         w as the last round that moved it left it, less w as it found it [Powell 1964; paper 3, section 4]
    Random(count)    `count` vectors drawn anew for each round, each entry normal in units of one deviation of its
                     feature

Those of a round are tried in this order. Powell's is the sum of the steps of a round: along a ridge that no coordinate
follows it goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import OptionError
from rankopt.optimize.settings import check_whole

__all__ = ["Directions", "Random"]

Floats = NDArray[np.float64]

NAMES = ("coordinates", "powell")


@dataclass(frozen=True)
class Random:
    """`count` directions drawn anew in each round."""

    count: int = 10

    def __post_init__(self) -> None:
        check_whole(1, count=self.count)


@dataclass(frozen=True, eq=False)
class Directions:
    """The directions of every round. units: (d,) the deviations of the features, 1 where a feature is constant."""

    coordinates: bool
    powell: bool
    drawn: int
    units: Floats

    @classmethod
    def of(cls, given: Any, deviations: Floats) -> Directions:
        """Of what a ranker is told: names and `Random`, in any order. OptionError for anything else."""
        check_directions(given)
        drawn = sum(one.count for one in given if isinstance(one, Random))
        units = np.where(deviations > 0, deviations, 1.0)
        return cls("coordinates" in given, "powell" in given, drawn, units)

    def of_round(self, advance: Floats, generator: dict[str, Any]) -> tuple[list[int | Floats], dict[str, Any]]:
        """The directions of a round, and the generator after its draws. advance: by which the last round moved w."""
        found: list[int | Floats] = [*range(self.units.size)] if self.coordinates else []
        if self.powell and advance.any():
            found.append(advance)
        if not self.drawn:
            return found, generator
        bits: Any = np.random.PCG64()
        bits.state = generator
        rows = np.random.Generator(bits).normal(size=(self.drawn, self.units.size)) / self.units
        return [*found, *rows], dict(bits.state)


def check_directions(given: Any) -> None:
    """Raise OptionError for what names no directions."""
    several = isinstance(given, Sequence) and not isinstance(given, str)
    if not several or not given or not all(isinstance(one, Random) or one in NAMES for one in given):
        raise OptionError(
            f"directions = {given!r} cannot be; give a sequence of {', '.join(map(repr, NAMES))} and Random(count), "
            "such as ('coordinates',)"
        )
    if set(given) == {"powell"}:
        raise OptionError("directions = ('powell',) never begins: it is the sum of other steps; add 'coordinates'")
