"""The solver that a statement names: a word, or a table of its name and its options.

    solver = "highs"
    solver = "highs(presolve='off', time_limit=10)"

    [solver]
    name = "highs"
    presolve = "off"
    time_limit = 10

The table says what the longer word says. A statement only names its solver: it cannot solve what it states.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

from formulations.errors import InvalidProblem

__all__ = ["solver_of"]

LONGEST = 1000
"""Letters that a name with its options may have."""


def solver_of(file: str, stated: dict[str, Any]) -> str | None:
    """The name with its options, None where the file names no solver. InvalidProblem for what is no such word or
    table."""
    if "solver" not in stated:
        return None
    said = stated["solver"]
    if isinstance(said, dict):
        given = dict(said)
        said = given.pop("name", None)
        if not isinstance(said, str) or not said:
            raise InvalidProblem(f'{file}: [solver] does not say which one; write name = "highs" below it')
        if "(" in said and given:
            raise InvalidProblem(
                f"{file}: [solver] has options in its name {said[:40]!r} and beside it; leave one of the two places"
            )
        written = ", ".join(f"{_word(file, name)}={_written(file, name, value)}" for name, value in given.items())
        said = f"{said}({written})" if given else said
    if not isinstance(said, str) or not said:
        raise InvalidProblem(f'{file}: solver = {str(said)[:40]!r} is no name; write solver = "highs", or [solver]')
    if len(said) > LONGEST:
        raise InvalidProblem(f"{file}: the solver and its options have more than {LONGEST} letters; say less")
    return said


def _word(file: str, name: str) -> str:
    if not name.isidentifier():
        raise InvalidProblem(f'{file}: [solver] has an option {name[:40]!r}, which is no word; write presolve = "off"')
    return name


def _written(file: str, name: str, value: Any) -> str:
    """An option as Python writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_written(file, key, part)}" for key, part in value.items()) + "}"
    if not isinstance(value, str | int | float) or not isfinite(value if isinstance(value, float) else 0.0):
        raise InvalidProblem(
            f"{file}: [solver] has {name} = {str(value)[:40]}; options are words, finite numbers, true and false"
        )
    return repr(value)
