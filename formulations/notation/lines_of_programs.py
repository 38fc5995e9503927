"""What readers of program files share: the text, read within bounds, and the program collected name by name."""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array, csr_array

from formulations.errors import InvalidProblem
from formulations.notation.names import Block
from formulations.notation.program import Program

__all__ = ["Collected", "number", "text_of"]

BYTES = 1 << 28
"""What a file may have, unpacked."""

INFINITE = 1e20
"""From here on a limit is none, as CPLEX and HiGHS read files: 1e30 stands for infinity in many."""


def text_of(path: Path) -> str:
    """The text of a file, unpacked where its name ends with .gz. Raises InvalidProblem for what is no text."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as packed:
                content = packed.read(BYTES + 1)
        else:
            with path.open("rb") as plain:
                content = plain.read(BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidProblem(f"{path.name} is no gzip file, or a damaged one: {error}; pack it again") from None
    if len(content) > BYTES:
        raise InvalidProblem(f"{path.name} has more than {BYTES} bytes; state the problem in Python")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidProblem(f"{path.name}, line {line} is no text: {error.reason}; save it as UTF-8") from None


def number(word: str, place: str) -> float:
    """A finite number or an infinity, as such files write them."""
    plain = word.lower().lstrip("+-")
    if plain in ("inf", "infinity"):
        return -math.inf if word.startswith("-") else math.inf
    try:
        value = float(word.replace("_", "?"))
    except ValueError:
        raise InvalidProblem(f"{place}: {word[:40]!r} is no number") from None
    if math.isnan(value):
        raise InvalidProblem(f"{place}: {word[:40]!r} is no number")
    return value


@dataclass
class Collected:
    """A program being read. Entries that are told twice are refused by MPS and summed by LP."""

    maximises: bool = False
    columns: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    objective: dict[int, float] = field(default_factory=dict)
    entries: dict[tuple[int, int], float] = field(default_factory=dict)
    squares: dict[tuple[int, int], float] = field(default_factory=dict)
    lower: dict[int, float] = field(default_factory=dict)
    upper: dict[int, float] = field(default_factory=dict)
    row_lower: list[float] = field(default_factory=list)
    row_upper: list[float] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)

    def column(self, name: str) -> int:
        """The column of this name, a new one where there is none."""
        return self.columns.setdefault(name, len(self.columns))

    def row(self, name: str, low: float, high: float) -> int:
        """A new row."""
        self.rows[name] = len(self.row_lower)
        self.row_lower.append(low)
        self.row_upper.append(high)
        return self.rows[name]

    def program(self, place: str) -> Program:
        """All of it; a variable without limits goes from 0 on."""
        for limits in (self.lower, self.upper):
            limits.update({column: _limit(value) for column, value in limits.items()})
        self.row_lower, self.row_upper = ([*map(_limit, limits)] for limits in (self.row_lower, self.row_upper))
        size, count = len(self.columns), len(self.row_lower)
        if not size:
            raise InvalidProblem(f"{place} has no variables; a program needs one at least")
        told = (self.objective, self.entries, self.squares)
        if not all(math.isfinite(value) for part in told for value in part.values()):
            raise InvalidProblem(f"{place} has an infinite coefficient; only limits may be infinite")
        least, most = (*self.lower.values(), *self.row_lower), (*self.upper.values(), *self.row_upper)
        if any(not low < math.inf for low in least) or any(not high > -math.inf for high in most):
            raise InvalidProblem(f"{place} has a limit that nothing keeps: at least infinity, say; give numbers")
        objective, lower, upper = np.zeros(size), np.zeros(size), np.full(size, np.inf)
        for array, values in ((objective, self.objective), (lower, self.lower), (upper, self.upper)):
            array[list(values)] = list(values.values())
        integer = np.zeros(size, dtype=np.bool_)
        integer[list(self.whole)] = True
        hessian = _sparse(self.squares, (size, size)) if any(self.squares.values()) else None
        row_lower, row_upper = (np.array(limits, dtype=np.float64) for limits in (self.row_lower, self.row_upper))
        return Program(
            objective, _sparse(self.entries, (count, size)), row_lower, row_upper, lower, upper, self.maximises,
            integer if integer.any() else None, _named(list(self.columns)), _named(list(self.rows)), hessian,
        )  # fmt: skip


def _limit(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= INFINITE else value


def _sparse(entries: dict[tuple[int, int], float], shape: tuple[int, int]) -> csr_array:
    places = np.array(list(entries), dtype=np.int64).reshape(-1, 2)
    values = np.array(list(entries.values()), dtype=np.float64)
    return csr_array(coo_array((values, (places[:, 0], places[:, 1])), shape=shape))


def _named(names: list[str]) -> tuple[Block, ...]:
    return tuple(Block(name, ()) for name in names)
