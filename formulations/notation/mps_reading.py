"""Programs from MPS files, free or fixed, names without spaces; the sections are those of the format's tradition.

A row of kind N is the objective, further ones are left out. A variable between the markers of whole ones of which
BOUNDS says nothing is 0 or 1, as CPLEX and HiGHS read it; with any line of BOUNDS it goes from 0 on without end, as
others do. An upper limit below 0 alone takes the lower limit 0 away, as CPLEX reads it (HiGHS leaves 0 and finds no
point). Limits of 1e20 or more are infinite, as both read them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

from formulations.errors import InvalidProblem
from formulations.notation.lines_of_programs import Collected, number, text_of
from formulations.notation.program import Program

__all__ = ["read_mps"]

Words = list[str]
CONSTANT = "objective constant"
"""The variable fixed at one that carries a constant of the objective; no name of a file has a space."""

LIMITS = {"N": (-math.inf, math.inf), "E": (0.0, 0.0), "G": (0.0, math.inf), "L": (-math.inf, 0.0)}
SENSES = {"MAX": True, "MAXIMIZE": True, "MAXIMISE": True, "MIN": False, "MINIMIZE": False, "MINIMISE": False}


def read_mps(path: Path) -> Program:
    """The program of an MPS file. Raises InvalidProblem with file, line and cure for what is none."""
    reader = _Mps(path.name)
    lines = text_of(path).splitlines()
    section, ended = "", False
    for place, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("*"):
            continue
        reader.place = f"{path.name}, line {place}"
        words = line.split()
        if not line[0].isspace():
            section = words[0].upper()
            if section == "ENDATA":
                ended = True
                break
            section = reader.section(section, words[1:])
            continue
        reader.steps[section](words) if section in reader.steps else reader.wrong("stands in no section")
    if not ended:
        raise InvalidProblem(f"{path.name} ends without ENDATA: it was cut off, or is no MPS file; write it again")
    return reader.program()


class _Mps:
    """Takes line after line, by section."""

    def __init__(self, name: str) -> None:
        self.name = self.place = name
        self.found = Collected()
        self.kinds: dict[str, str] = {}
        self.objective = ""
        self.constant, self.whole = 0.0, False
        self.limited: set[int] = set()
        self.steps: dict[str, Callable[[Words], None]] = {
            "OBJSENSE": self._sense, "ROWS": self._row, "COLUMNS": self._column, "RHS": self._right, "NAME": self._none,
            "RANGES": self._range, "BOUNDS": self._bound, "QUADOBJ": self._square, "QMATRIX": self._half_square,
        }  # fmt: skip

    def wrong(self, why: str) -> None:
        raise InvalidProblem(f"{self.place}: it {why}; write the file in free MPS format")

    def section(self, name: str, words: Words) -> str:
        if name not in self.steps and name != "OBJSENSE":
            self.wrong(f"begins a section {name[:30]!r}, which states no linear or quadratic program")
        if name == "OBJSENSE" and words:
            self._sense(words)
        return name

    def _none(self, words: Words) -> None:
        self.wrong("stands in no section")

    def _sense(self, words: Words) -> None:
        if words[0].upper() not in SENSES:
            self.wrong(f"asks for {words[0][:20]!r}, not MAX or MIN")
        self.found.maximises = SENSES[words[0].upper()]

    def _row(self, words: Words) -> None:
        if len(words) != 2 or words[0].upper() not in LIMITS or words[1] in self.kinds:
            self.wrong("is no row of its own: a kind N, E, G or L and a new name")
        kind, name = words[0].upper(), words[1]
        self.kinds[name] = kind
        if kind != "N":
            self.found.row(name, *LIMITS[kind])
        elif not self.objective:
            self.objective = name

    def _pairs(self, words: Words) -> Iterator[tuple[str, float]]:
        """Rows and numbers of a line, one pair or two."""
        if len(words) not in (2, 4):
            self.wrong("needs one row and a number, or two of each")
        for name, value in zip(words[::2], words[1::2], strict=True):
            if name not in self.kinds:
                self.wrong(f"names a row {name[:40]!r} that ROWS does not")
            yield name, number(value, self.place)

    def _column(self, words: Words) -> None:
        if len(words) == 3 and words[1].strip("'") == "MARKER":
            self.whole = words[2].strip("'") == "INTORG"
            return
        column = self.found.column(words[0])
        if self.whole:
            self.found.whole.add(column)
        for name, value in self._pairs(words[1:]):
            if self.kinds[name] == "N" and name != self.objective:
                continue
            place = (self.found.rows.get(name, -1), column)
            if (column in self.found.objective) if name == self.objective else (place in self.found.entries):
                self.wrong(f"tells the entry of {words[0][:40]!r} in {name[:40]!r} twice")
            if name == self.objective:
                self.found.objective[column] = value
            else:
                self.found.entries[place] = value

    def _right(self, words: Words) -> None:
        for name, value in self._pairs(words[len(words) % 2 :]):
            kind = self.kinds[name]
            if name == self.objective:
                self.constant = -value
            elif kind != "N":
                row = self.found.rows[name]
                if kind in "EG":
                    self.found.row_lower[row] = value
                if kind in "EL":
                    self.found.row_upper[row] = value

    def _range(self, words: Words) -> None:
        for name, value in self._pairs(words[len(words) % 2 :]):
            kind, row = self.kinds[name], self.found.rows.get(name, -1)
            if kind == "L" or (kind == "E" and value < 0):
                self.found.row_lower[row] = self.found.row_upper[row] - abs(value)
            elif kind != "N":
                self.found.row_upper[row] = self.found.row_lower[row] + abs(value)

    def _bound(self, words: Words) -> None:
        kind = words[0].upper()
        bare = kind in ("FR", "MI", "PL", "BV")
        rest = words[1:] if bare else words[1:-1]
        if kind not in ("LO", "UP", "FX", "LI", "UI", "FR", "MI", "PL", "BV") or len(rest) not in (1, 2, 3):
            self.wrong("is no bound of the kinds LO, UP, FX, FR, MI, PL, BV, LI and UI")
        name = rest[min(1, len(rest) - 1)]
        if name not in self.found.columns:
            self.wrong(f"names a variable {name[:40]!r} that COLUMNS does not")
        column, value = self.found.columns[name], 0.0 if bare else number(words[-1], self.place)
        self.limited.add(column)
        if kind in ("LI", "UI", "BV"):
            self.found.whole.add(column)
        if kind in ("LO", "LI", "FX", "BV"):
            self.found.lower[column] = value
        if kind in ("UP", "UI", "FX"):
            if value < 0 and kind != "FX" and column not in self.found.lower:
                self.found.lower[column] = -math.inf
            self.found.upper[column] = value
        if kind in ("FR", "MI"):
            self.found.lower[column] = -math.inf
        if kind in ("FR", "PL"):
            self.found.upper[column] = math.inf
        if kind == "BV":
            self.found.upper[column] = 1.0

    def _square(self, words: Words) -> None:
        """An entry of one triangle of the hessian, which stands for both."""
        self._entry(words, both=True)

    def _half_square(self, words: Words) -> None:
        self._entry(words, both=False)

    def _entry(self, words: Words, both: bool) -> None:
        if len(words) != 3 or not {*words[:2]} <= self.found.columns.keys():
            self.wrong("is no entry of the hessian: two variables and a number")
        i, j = (self.found.columns[name] for name in words[:2])
        for place in {(i, j), (j, i)} if both else {(i, j)}:
            if place in self.found.squares:
                self.wrong("tells an entry of the hessian twice")
            self.found.squares[place] = number(words[2], self.place)

    def program(self) -> Program:
        for column in self.found.whole - self.limited:
            self.found.upper[column] = 1.0
        if self.constant:
            column = self.found.column(CONSTANT)
            self.found.objective[column] = self.constant
            self.found.lower[column] = self.found.upper[column] = 1.0
        return self.found.program(self.name)
