"""`--sweep NAME=LOW:HIGH` of `rankopt verify`: which limits of which constraint are asked what they cost."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from formulations.sets.limits import Side

__all__ = ["FORM", "SweepOption", "swept_by"]

FORM = "NAME=LOW:HIGH[:STEP][:SIDE]"

WRITTEN = re.compile(
    r"(?P<name>.+)=(?P<low>\d{1,15}):(?P<high>\d{1,15})(?::(?P<step>[1-9]\d{0,14}))?"
    r"(?::(?P<side>at_most|at_least|exactly))?"
)
"""The name is that of a constraint, or of one of its rows; the side as statement files write it."""


@dataclass(frozen=True)
class SweepOption:
    """One such option."""

    text: str
    name: str
    limits: range
    side: Side | None

    @classmethod
    def read(cls, text: str) -> SweepOption:
        """Raises a usage error for what is none."""
        found = WRITTEN.fullmatch(text)
        if found is None or int(found["low"]) > int(found["high"]):
            raise click.UsageError(f"--sweep {text!r}: write {FORM}, such as site=1:4 or site=0:90:10:at_least")
        limits = range(int(found["low"]), int(found["high"]) + 1, int(found["step"] or 1))
        side: Any = None if found["side"] is None else found["side"].replace("_", " ")
        return cls(text, found["name"], limits, side)


def swept_by(problem: Any, sweeps: tuple[str, ...], profit: Any = None) -> list[Any]:
    """The curve of each constraint, and of two the front of both, unless the problem is an empty set with its profit.
    Raises a usage error for what cannot be swept, `Infeasible` for an empty set that is so at all limits."""
    from formulations.errors import InvalidProblem
    from formulations.sets.constrained_ranking import ConstrainedRanking
    from formulations.solving.pareto import pareto
    from formulations.solving.price_of import price_of

    read = [SweepOption.read(text) for text in sweeps]
    if read and profit is None and not isinstance(problem, ConstrainedRanking):
        raise click.UsageError("--sweep asks what limits cost: FILE needs a profit, or weights and scores")
    swept: list[Any] = []
    for one in read:
        try:
            swept.append(price_of(problem, one.name, one.limits, profit=profit, side=one.side))
        except InvalidProblem as error:
            raise click.UsageError(f"--sweep {one.text!r}: {_as_written(error)}") from None
    if len(read) == 2 and profit is None:
        first, second = ((one.name, one.limits) for one in read)
        try:
            swept.append(pareto(problem, first, second, sides=(read[0].side, read[1].side)))
        except InvalidProblem as error:
            raise click.UsageError(f"--sweep of two constraints: {_as_written(error)}") from None
    return swept


def _as_written(error: Exception) -> str:
    """What is wrong, its cure in the words of the command."""
    told = str(error)
    for python, written in (
        ("say side='at most' or side='at least'", "end with :at_most or :at_least"),
        ("range(0, 1000, 10)", "NAME=0:1000:10"),
        ("sweep one constraint by price_of", "give one --sweep of it"),
    ):
        told = told.replace(python, written)
    return told
