"""The text of a program file, and the program that its reader collects.

Files are read within size limits. Lines end with LF, CR LF or CR. Limits of 1e20 or more are infinite, as in CPLEX and
HiGHS. A variable without limits is nonnegative.
"""

from __future__ import annotations

import gzip
import math
import re
import warnings
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array, csr_array

from formulations.errors import InvalidProblemError, ProgramFileWarning
from formulations.problems.program import CONSTANT, Block, Program

BYTES = 1 << 28  # largest size of a file, decompressed
INFINITE = 1e20  # limits from this magnitude on are infinite, as in CPLEX and HiGHS; many files write 1e30


def lines_of(path: Path) -> list[str]:
    """The lines of a file, decompressed if its name ends with .gz. Raises InvalidProblemError for anything but text."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rb") as packed:
                content = packed.read(BYTES + 1)
        else:
            with path.open("rb") as plain:
                content = plain.read(BYTES + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidProblemError(f"{path.name} is no gzip file, or a damaged one: {error}; pack it again") from None
    if len(content) > BYTES:
        raise InvalidProblemError(f"{path.name} has more than {BYTES} bytes; state the problem in Python")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidProblemError(f"{path.name}, line {line} is no text: {error.reason}; save it as UTF-8") from None
    return re.split(r"\r\n|\r|\n", text)  # str.splitlines ends lines, and so comments, at other characters too


def warn(message: str) -> None:
    warnings.warn(message, ProgramFileWarning, stacklevel=5)  # the caller of read_program


def shown(names: Iterable[str]) -> str:
    """The first names, as a message can show them."""
    listed = [repr(name[:40]) for name in names]
    return ", ".join(listed[:3]) + (f" and {len(listed) - 3} others" if len(listed) > 3 else "")


@dataclass
class Collected:
    """A program being read. `lower` and `upper` hold the limits that the file states."""

    is_maximization: bool = False
    columns: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    objective: dict[int, float] = field(default_factory=dict)
    constant: float = 0.0
    entries: dict[tuple[int, int], float] = field(default_factory=dict)
    squares: dict[tuple[int, int], float] = field(default_factory=dict)
    lower: dict[int, float] = field(default_factory=dict)
    upper: dict[int, float] = field(default_factory=dict)
    row_lower: list[float] = field(default_factory=list)
    row_upper: list[float] = field(default_factory=list)
    integer: set[int] = field(default_factory=set)

    def column(self, name: str) -> int:
        """The column of this name, a new one if there is none."""
        return self.columns.setdefault(name, len(self.columns))

    def row(self, name: str, low: float, high: float) -> int:
        """A new row."""
        self.rows[name] = len(self.row_lower)
        self.row_lower.append(low)
        self.row_upper.append(high)
        return self.rows[name]

    def program(self, file: str) -> Program:
        if not self.columns:
            raise InvalidProblemError(f"{file} has no variables; a program needs one at least")
        if self.constant:
            column = self.column(CONSTANT)
            self.objective[column] = self.constant
            self.lower[column] = self.upper[column] = 1.0
        for limits in (self.lower, self.upper):
            limits.update({column: _limit(value) for column, value in limits.items()})
        self.row_lower, self.row_upper = ([*map(_limit, limits)] for limits in (self.row_lower, self.row_upper))
        size, count = len(self.columns), len(self.row_lower)
        parts = (self.objective, self.entries, self.squares)
        if not all(math.isfinite(value) for part in parts for value in part.values()):
            raise InvalidProblemError(f"{file} has an infinite coefficient; only limits may be infinite")
        least, most = (*self.lower.values(), *self.row_lower), (*self.upper.values(), *self.row_upper)
        if any(not low < math.inf for low in least) or any(not high > -math.inf for high in most):
            raise InvalidProblemError(f"{file} has an infeasible limit, such as at least infinity; give numbers.")
        objective, lower, upper = np.zeros(size), np.zeros(size), np.full(size, np.inf)
        for array, values in ((objective, self.objective), (lower, self.lower), (upper, self.upper)):
            array[list(values)] = list(values.values())
        integer = np.zeros(size, dtype=np.bool_)
        integer[list(self.integer)] = True
        hessian = _sparse(self.squares, (size, size)) if any(self.squares.values()) else None
        row_lower, row_upper = (np.array(limits, dtype=np.float64) for limits in (self.row_lower, self.row_upper))
        return Program(
            objective, _sparse(self.entries, (count, size)), row_lower, row_upper, lower, upper, self.is_maximization,
            integer if integer.any() else None, _named(list(self.columns)), _named(list(self.rows)), hessian,
        )  # fmt: skip


def _limit(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= INFINITE else value


def _sparse(entries: dict[tuple[int, int], float], shape: tuple[int, int]) -> csr_array:
    index = np.array(list(entries), dtype=np.int64).reshape(-1, 2)
    values = np.array(list(entries.values()), dtype=np.float64)
    return csr_array(coo_array((values, (index[:, 0], index[:, 1])), shape=shape))


def _named(names: list[str]) -> tuple[Block, ...]:
    return tuple(Block(name, ()) for name in names)
