"""Reader of MPS files, free or fixed: lines by section, names in COLUMNS.

Format       Fixed format is assumed if all lines keep to its columns; names may then have blanks. Else blanks separate.
             A line with * in its first column is a comment, and what follows a word with $ after the first name.
Objective    The first row of kind N, or that of OBJNAME; other rows of kind N are dropped. Its right side is minus the
             constant. OBJSENSE, or PuLP's comment *SENSE:Maximize, states the sense.
Vectors      Of several vectors of RHS, RANGES or BOUNDS the first is read, with a warning.
Limits       An integer variable between markers without a line in BOUNDS is 0 or 1, as in CPLEX and HiGHS, with a
             warning; with any such line it is nonnegative without upper limit. A negative upper limit alone removes
             the lower limit 0, as in CPLEX, with a warning (HiGHS keeps 0 and finds no point).
Squares      QUADOBJ and QSECTION hold one triangle of the hessian, QMATRIX both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from decimal import Context, Decimal
from functools import partial
from pathlib import Path
from typing import NoReturn

from formulations.errors import InvalidProblemError
from formulations.io.program_text import INFINITE, Collected, lines_of, shown, warn
from formulations.problems.program import Program

Words = list[str]

SENSES = {"MAX": True, "MAXIMIZE": True, "MAXIMISE": True, "MAXIMUM": True}
SENSES |= {"MIN": False, "MINIMIZE": False, "MINIMISE": False, "MINIMUM": False}
PULP_SENSE = re.compile(r"\*\s*SENSE\s*:\s*(\w+)\s*", re.IGNORECASE)
NUMBER = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:E[+-]?\d+)?|INF|INFINITY)", re.ASCII)
EXACT = Context(prec=60, traps=[])  # sums of limits and ranges are those of the decimals in the file
BARE = ("FR", "MI", "PL", "BV")  # kinds of bounds without a number
UNSUPPORTED = {
    "SOS": "special ordered sets", "SOS1": "special ordered sets", "SOS2": "special ordered sets",
    "SETS": "special ordered sets", "QCMATRIX": "quadratic constraints", "CSECTION": "cones",
    "INDICATORS": "indicator constraints", "LAZYCONS": "lazy constraints", "USERCUTS": "user cuts",
    "GENCONS": "general constraints", "PWLOBJ": "a piecewise linear objective", "SCENARIOS": "scenarios",
}  # fmt: skip
UNSUPPORTED_BOUNDS = {"SC": "semicontinuous", "SI": "semi-integer", "PI": "partial integer"}


def read_mps(path: Path) -> Program:
    """The program of an MPS file. Raises InvalidProblemError with file, line and cure if it is malformed."""
    reader = _Mps(path.name)
    lines = lines_of(path)
    split = _fixed_fields if _is_fixed(lines) else _free_fields
    for number, line in enumerate(lines, 1):
        reader.location = f"{path.name}, line {number}"
        if line.startswith("*"):
            reader.comment(line)
        elif line.strip() and line[0] in " \t":
            reader.data(split(line) if reader.section in _DATA else _free_fields(line))
        elif line.strip():
            reader.header(_free_fields(line))
        if reader.section == "ENDATA":
            return reader.program()
    raise InvalidProblemError(f"{path.name} ends without ENDATA: it was cut off, or is no MPS file; write it again")


_DATA = ("ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "QUADOBJ", "QMATRIX", "QSECTION")
_FIELDS = (slice(1, 3), slice(4, 12), slice(14, 22), slice(24, 36), slice(39, 47), slice(49, 61))
_GAPS = (slice(0, 1), slice(3, 4), slice(12, 14), slice(22, 24), slice(36, 39), slice(47, 49), slice(61, None))


def _free_fields(line: str) -> Words:
    return re.findall(r"[^ \t\f\v]+", line)


def _fixed_fields(line: str) -> Words:
    return [word for word in _six_fields(_uncommented(line)) if word]


def _six_fields(line: str) -> Words:
    return [line[field].strip() for field in _FIELDS]


def _uncommented(line: str) -> str:
    """A line without the comment that a $ at the beginning of field 3 or 5 begins."""
    for column in (14, 39):
        line = line[:column] if line[column : column + 1] == "$" else line
    return line.rstrip()


def _is_fixed(lines: list[str]) -> bool:
    """Whether all lines of data keep to the columns of fixed format."""
    section = ""
    for line in lines:
        if line[:1] not in (" ", "\t") and line.strip() and line[0] != "*":
            section = line.split()[0].upper()
        elif section in _DATA and line.strip() and line[0] != "*" and not _keeps_columns(_uncommented(line), section):
            return False
    return True


def _keeps_columns(line: str, section: str) -> bool:
    kind, _, third, fourth, fifth, sixth = fields = _six_fields(line)
    if "\t" in line or any(line[gap].strip() for gap in _GAPS) or any(" " in word for word in (kind, fourth, sixth)):
        return False
    if section == "ROWS":
        return bool(kind and fields[1]) and not any(fields[2:])
    return bool(third and (fourth or kind or fifth)) and (bool(fifth) == bool(sixth) or third == "'MARKER'")


class _Mps:
    """Reads line by line, by section."""

    def __init__(self, name: str) -> None:
        self.name = self.location = name
        self.found = Collected()
        self.section = ""
        self.kinds: dict[str, str] = {}
        self.objective = self.objective_name = ""
        self.sense: bool | None = None
        self.awaits_sense = False
        self.integer, self.current = False, ""  # between markers; the variable of the last line
        self.limited: set[int] = set()
        self.rhs: dict[str, Decimal] = {}
        self.ranges: dict[str, Decimal] = {}
        self.vectors: dict[str, list[str]] = {}
        self.steps: dict[str, Callable[[Words], None]] = {
            "NAME": lambda _: self.wrong("is in no section", "begin one before it"),
            "OBJSENSE": self._sense,
            "OBJNAME": self._objective_name,
            "ROWS": self._row,
            "COLUMNS": self._column,
            "RHS": partial(self._vector, values=self.rhs),
            "RANGES": partial(self._vector, values=self.ranges),
            "BOUNDS": self._bound,
            "QUADOBJ": partial(self._square, both=True),
            "QSECTION": partial(self._square, both=True),
            "QMATRIX": partial(self._square, both=False),
        }

    def wrong(self, why: str, cure: str) -> NoReturn:
        raise InvalidProblemError(f"{self.location} {why}; {cure}")

    def comment(self, line: str) -> None:
        found = PULP_SENSE.fullmatch(line)
        if found and found[1].upper() in SENSES:
            self._sense([found[1]])

    def header(self, words: Words) -> None:
        """A line that begins in the first column."""
        name = {"OBJSEN": "OBJSENSE", "OBJSENS": "OBJSENSE"}.get(words[0].upper(), words[0].upper())
        if self.awaits_sense:
            self._sense(words)
            return
        if name not in self.steps and name not in UNSUPPORTED and name != "ENDATA":
            self.wrong(f"begins an unknown section {words[0][:30]!r}", "begin lines of data with a blank")
        self.section = name
        if name in ("OBJSENSE", "OBJNAME"):
            self.awaits_sense = name == "OBJSENSE"
            if words[1:]:
                self.steps[name](words[1:])
        elif name == "QSECTION" and words[1:] and words[1] != self.objective:
            self.wrong(f"has quadratic constraints (of row {words[1][:40]!r})", "only the objective may have squares")
        elif words[1:] and name not in ("NAME", "ENDATA", "QSECTION", *UNSUPPORTED):
            self.wrong(f"has words after {name}", "begin lines of data with a blank")

    def data(self, words: Words) -> None:
        """A line that begins with a blank."""
        first = 2 if self.section in ("ROWS", "BOUNDS") else 1
        for at in range(first, len(words)):
            if words[at].startswith("$") and words[at] not in self.kinds and words[at] not in self.found.columns:
                words = words[:at]
                break
        if self.section in UNSUPPORTED:
            self.wrong(f"states {UNSUPPORTED[self.section]}, which are not supported", "state the problem without them")
        if self.section not in self.steps:
            self.wrong("is in no section", "begin one before it")
        self.steps[self.section](words)

    def _sense(self, words: Words) -> None:
        sense = SENSES.get(words[0].upper()) if len(words) == 1 else None
        if sense is None:
            self.wrong(f"states the sense {' '.join(words)[:20]!r}", "write MAX or MIN")
        if self.sense not in (None, sense):
            self.wrong("states a second, different sense", "remove one")
        self.sense, self.awaits_sense = sense, False

    def _objective_name(self, words: Words) -> None:
        if len(words) != 1 or self.kinds or self.objective_name:
            self.wrong("is no single name of the objective before ROWS", "write one name there")
        self.objective_name = words[0]

    def _row(self, words: Words) -> None:
        if len(words) != 2 or words[0].upper() not in ("N", "E", "G", "L"):
            self.wrong(
                "is no row: a kind N, E, G or L and a name",
                "names with blanks need the columns of fixed format in all lines",
            )
        kind, name = words[0].upper(), words[1]
        if name in self.kinds:
            self.wrong(f"states a second row {name[:40]!r}", "rename it")
        self.kinds[name] = kind
        if kind != "N":
            self.found.row(name, 0.0, 0.0)
        elif not self.objective and self.objective_name in ("", name):
            self.objective = name

    def number(self, word: str) -> str:
        """A number of the file, as Python writes it."""
        upper = word.upper().replace("D", "E")
        if not NUMBER.fullmatch(upper):
            self.wrong(f"needs a number; got {word[:40]!r}", "write a number such as -1.5e3")
        return upper

    def _pairs(self, words: Words) -> Iterator[tuple[str, str]]:
        """Rows and numbers of a line, one pair or two."""
        if len(words) not in (2, 4):
            self.wrong(
                "needs a row and a number, or two of each, after a name",
                "names with blanks need the columns of fixed format in all lines",
            )
        for name, value in zip(words[::2], words[1::2], strict=True):
            if name not in self.kinds:
                self.wrong(f"names a row {name[:40]!r} that ROWS does not have", "add it there, or correct the name")
            yield name, self.number(value)

    def _column(self, words: Words) -> None:
        if len(words) == 3 and words[1].strip("'").upper() == "MARKER" and not NUMBER.fullmatch(words[2].upper()):
            kind = words[2].strip("'").upper()
            if kind in ("SOSORG", "SOSEND"):
                self.wrong("states special ordered sets, which are not supported", "restate them with rows")
            if kind not in ("INTORG", "INTEND"):
                self.wrong(f"is a marker {words[2][:20]!r}", "write 'INTORG' or 'INTEND'")
            self.integer, self.current = kind == "INTORG", ""
            return
        pairs = list(self._pairs(words[1:]))
        if words[0] != self.current and words[0] in self.found.columns:
            self.wrong(f"returns to the variable {words[0][:40]!r}", "write the lines of a variable one after another")
        self.current, column = words[0], self.found.column(words[0])
        if self.integer:
            self.found.integer.add(column)
        for name, value in pairs:
            if self.kinds[name] == "N" and name != self.objective:
                continue
            entry = (self.found.rows.get(name, -1), column)
            if (column in self.found.objective) if name == self.objective else (entry in self.found.entries):
                self.wrong(f"states the entry of {words[0][:40]!r} in {name[:40]!r} twice", "remove one")
            if name == self.objective:
                self.found.objective[column] = float(value)
            else:
                self.found.entries[entry] = float(value)

    def _is_first(self, vector: str) -> bool:
        """Whether this is the first vector of the section, or has no name; others are alternatives, not read."""
        vectors = self.vectors.setdefault(self.section, [])
        if vector and vector not in vectors:
            vectors.append(vector)
        return vector in ("", *vectors[:1])

    def _vector(self, words: Words, values: dict[str, Decimal]) -> None:
        """A line of RHS or RANGES; the name of the vector may be missing."""
        pairs = list(self._pairs(words[len(words) % 2 :]))
        if not self._is_first(words[0] if len(words) % 2 else ""):
            return
        for name, value in pairs:
            if name in values:
                self.wrong(f"states a second value of {name[:40]!r} in {self.section}", "remove one")
            if self.section == "RANGES" and name == self.objective:
                self.wrong("states a range of the objective", "remove it, or make the row one of kind E, G or L")
            values[name] = EXACT.create_decimal(value)

    def _bound(self, words: Words) -> None:
        kind, rest = words[0].upper(), words[1:]
        if kind in UNSUPPORTED_BOUNDS:
            self.wrong(f"states a {UNSUPPORTED_BOUNDS[kind]} variable ({kind})", "restate it with rows and integers")
        if kind not in ("LO", "UP", "FX", "LI", "UI", *BARE):
            self.wrong(f"is a bound of kind {words[0][:20]!r}", f"use LO, UP, FX, LI, UI, {', '.join(BARE)}")
        # kinds without a number may have one, which is ignored
        has_number = kind not in BARE or len(rest) == 3 or (len(rest) == 2 and rest[1] not in self.found.columns)
        limit = float(self.number(rest.pop())) if rest and has_number else 0.0
        if len(rest) not in (1, 2):
            self.wrong(
                "is no bound",
                f"write {kind}, the name of the vector, a variable{'' if kind in BARE else ' and a number'}",
            )
        name = rest[-1]
        if name not in self.found.columns:
            self.wrong(f"names a variable {name[:40]!r} that COLUMNS does not have", "correct the name")
        if not self._is_first(rest[0] if len(rest) == 2 else ""):
            return
        column = self.found.columns[name]
        self.limited.add(column)
        if kind in ("LI", "UI", "BV"):
            self.found.integer.add(column)
        if kind in ("FR", "MI"):
            self._limit(self.found.lower, name, -math.inf)
        if kind in ("FR", "PL"):
            self._limit(self.found.upper, name, math.inf)
        if kind in ("LO", "LI", "FX", "BV"):
            self._limit(self.found.lower, name, 0.0 if kind == "BV" else limit)
        if kind in ("UP", "UI", "FX", "BV"):
            self._limit(self.found.upper, name, 1.0 if kind == "BV" else limit)

    def _limit(self, limits: dict[int, float], name: str, value: float) -> None:
        if limits.setdefault(self.found.columns[name], value) != value:
            self.wrong(f"states a second, different limit of {name[:40]!r}", "remove one")

    def _square(self, words: Words, both: bool) -> None:
        """An entry of the hessian; both: of one triangle, used for both."""
        if len(words) != 3 or not {*words[:2]} <= self.found.columns.keys():
            self.wrong("is no entry of the hessian: two variables of COLUMNS and a number", "write these")
        i, j = (self.found.columns[name] for name in words[:2])
        for pair in {(i, j), (j, i)} if both else {(i, j)}:
            if pair in self.found.squares:
                self.wrong("states an entry of the hessian twice", f"write it once; {self.section} has one triangle")
            self.found.squares[pair] = float(self.number(words[2]))

    def program(self) -> Program:
        """The program, after all lines are read: sections may be in any order."""
        if self.objective_name != "" and self.objective != self.objective_name:
            raise InvalidProblemError(f"{self.name}: OBJNAME is {self.objective_name[:40]!r}, no row of kind N")
        for section, vectors in self.vectors.items():
            if vectors[1:]:
                warn(f"{self.name}: {section} has the vectors {shown(vectors)}; only {vectors[0][:40]!r} is read")
        self.found.is_maximization = bool(self.sense)
        self.found.constant = -float(self.rhs.get(self.objective, 0.0))
        for name, row in self.found.rows.items():
            self.found.row_lower[row], self.found.row_upper[row] = self._row_limits(name)
        binary = self.found.integer - self.limited
        if binary:
            names = shown(name for name, column in self.found.columns.items() if column in binary)
            warn(
                f"{self.name}: {names}: integer variables without a line in BOUNDS are read as 0 or 1, as by CPLEX and "
                "HiGHS; write a line 'PL BND name' for 0 to infinity, or 'BV BND name' for 0 or 1"
            )
        self.found.upper |= dict.fromkeys(binary, 1.0)
        negative = {column for column, value in self.found.upper.items() if value < 0} - self.found.lower.keys()
        if negative:
            names = shown(name for name, column in self.found.columns.items() if column in negative)
            warn(f"{self.name}: {names}: the upper limit is negative, so the lower limit is read as -inf, not as 0")
        self.found.lower |= dict.fromkeys(negative, -math.inf)
        variables = list(self.found.columns)
        for (i, j), value in self.found.squares.items():
            if self.found.squares.get((j, i)) != value:
                pair = f"({variables[i][:40]!r}, {variables[j][:40]!r})"
                raise InvalidProblemError(f"{self.name}: QMATRIX is not symmetric at {pair}; write both triangles")
        return self.found.program(self.name)

    def _row_limits(self, name: str) -> tuple[float, float]:
        kind, right, width = self.kinds[name], self.rhs.get(name, Decimal(0)), self.ranges.get(name)
        if width is not None and abs(right) >= INFINITE:
            raise InvalidProblemError(f"{self.name}: {name[:40]!r} has a range and an infinite right side; remove one")
        low, high = (-Decimal("inf") if kind == "L" else right), (Decimal("inf") if kind == "G" else right)
        if width is not None and (kind == "L" or (kind == "E" and width < 0)):
            low = EXACT.subtract(right, width.copy_abs())
        elif width is not None:
            high = EXACT.add(right, width.copy_abs())
        return float(low), float(high)
