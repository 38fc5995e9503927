"""Readers of LP and MPS files.

Files are read within size limits, and the program is collected name by name.

LP files: an objective, rows, bounds, integer variables; `[ ... ] / 2` holds the squares. Both sides of a row may hold
variables and numbers; the right side is moved to the left. A right side ends with its line, because rows need no name.
Variables are nonnegative without other bounds; limits of 1e20 or more are infinite, as in CPLEX and HiGHS.

MPS files: free or fixed, names without spaces, traditional sections. The first row of kind N is the objective; others
are dropped. An integer variable between markers without a line in BOUNDS is 0 or 1, as in CPLEX and HiGHS; with any
such line it is nonnegative without upper limit. A negative upper limit alone removes the lower limit 0, as in CPLEX
(HiGHS keeps 0 and finds no point). Limits of 1e20 or more are infinite, as in both.
"""

from __future__ import annotations

import gzip
import math
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse import coo_array, csr_array

from formulations.errors import InvalidProblemError
from formulations.problems.program import Block, Program

BYTES = 1 << 28  # largest size of a file, decompressed
INFINITE = 1e20  # limits from this magnitude on are infinite, as in CPLEX and HiGHS; many files write 1e30


def text_of(path: Path) -> str:
    """The text of a file, decompressed if its name ends with .gz. Raises InvalidProblemError for anything but text."""
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
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidProblemError(f"{path.name}, line {line} is no text: {error.reason}; save it as UTF-8") from None


def number(word: str, location: str) -> float:
    """A finite number or an infinity, as such files write them."""
    plain = word.lower().lstrip("+-")
    if plain in ("inf", "infinity"):
        return -math.inf if word.startswith("-") else math.inf
    try:
        value = float(word.replace("_", "?"))
    except ValueError:
        raise InvalidProblemError(f"{location}: {word[:40]!r} is no number") from None
    if math.isnan(value):
        raise InvalidProblemError(f"{location}: {word[:40]!r} is no number")
    return value


@dataclass
class Collected:
    """A program being read. Duplicate entries are an error in MPS and are summed in LP."""

    is_maximization: bool = False
    columns: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    objective: dict[int, float] = field(default_factory=dict)
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

    def program(self, location: str) -> Program:
        """The program; a variable without limits is nonnegative."""
        for limits in (self.lower, self.upper):
            limits.update({column: _limit(value) for column, value in limits.items()})
        self.row_lower, self.row_upper = ([*map(_limit, limits)] for limits in (self.row_lower, self.row_upper))
        size, count = len(self.columns), len(self.row_lower)
        if not size:
            raise InvalidProblemError(f"{location} has no variables; a program needs one at least")
        parts = (self.objective, self.entries, self.squares)
        if not all(math.isfinite(value) for part in parts for value in part.values()):
            raise InvalidProblemError(f"{location} has an infinite coefficient; only limits may be infinite")
        least, most = (*self.lower.values(), *self.row_lower), (*self.upper.values(), *self.row_upper)
        if any(not low < math.inf for low in least) or any(not high > -math.inf for high in most):
            raise InvalidProblemError(f"{location} has an infeasible limit, such as at least infinity; give numbers.")
        objective, lower, upper = np.zeros(size), np.zeros(size), np.full(size, np.inf)
        for array, values in ((objective, self.objective), (lower, self.lower), (upper, self.upper)):
            array[list(values)] = list(values.values())
        integer = np.zeros(size, dtype=np.bool_)
        integer[list(self.integer)] = True
        hessian = _sparse(self.squares, (size, size)) if any(self.squares.values()) else None
        row_lower, row_upper = (np.array(limits, dtype=np.float64) for limits in (self.row_lower, self.row_upper))
        return Program(
            objective, _sparse(self.entries, (count, size)), row_lower, row_upper, lower, upper, self.is_maximization,
            integer if integer.any() else None, _name_blocks(list(self.columns)), _name_blocks(list(self.rows)),
            hessian,
        )  # fmt: skip


def _limit(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= INFINITE else value


def _sparse(entries: dict[tuple[int, int], float], shape: tuple[int, int]) -> csr_array:
    index = np.array(list(entries), dtype=np.int64).reshape(-1, 2)
    values = np.array(list(entries.values()), dtype=np.float64)
    return csr_array(coo_array((values, (index[:, 0], index[:, 1])), shape=shape))


def _name_blocks(names: list[str]) -> tuple[Block, ...]:
    return tuple(Block(name, ()) for name in names)


TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_!#$%&(),;?@`'{}~\"][\w.!#$%&(),;?@`'{}~\"]*)"
    r"|(?P<sign><=|=<|>=|=>|[<>=+\-*^/\[\]:]))"
)
SIGNS = {"<": "<=", "=<": "<=", ">": ">=", "=>": ">="}
SECTIONS = {
    "max": "max", "maximize": "max", "maximise": "max", "maximum": "max",
    "min": "min", "minimize": "min", "minimise": "min", "minimum": "min",
    "subject to": "rows", "such that": "rows", "st": "rows", "s.t.": "rows", "st.": "rows",
    "bounds": "bounds", "bound": "bounds", "end": "end",
    "general": "integer", "generals": "integer", "gen": "integer", "integer": "integer", "integers": "integer",
    "binary": "binary", "binaries": "binary", "bin": "binary",
}  # fmt: skip
CONSTANT = "objective constant"  # a variable fixed at one; no name of a file has a space
UNSUPPORTED = {"semi-continuous", "semi", "semis", "sos", "sos1", "sos2", "lazy constraints", "user cuts", "pwlobj"}
UNSUPPORTED |= {"general constraints", "gencons", "scenario"}


@dataclass
class _Side:
    """Σ weight x + Σ square x y + constant."""

    weights: dict[int, float] = field(default_factory=dict)
    squares: dict[tuple[int, int], float] = field(default_factory=dict)
    constant: float = 0.0


def read_lp(path: Path) -> Program:
    """The program of an LP file. Raises InvalidProblemError with file, line and cure if it is malformed."""
    sections: dict[str, list[tuple[str, str, int]]] = {}
    at = ""
    for line_number, line in enumerate(text_of(path).splitlines(), 1):
        location = f"{path.name}, line {line_number}"
        bare = line.partition("\\")[0].strip()
        if " ".join(bare.lower().split()) in UNSUPPORTED:
            raise InvalidProblemError(f"{location} begins an unsupported section {bare!r}; restate it with rows")
        key, rest = _section(bare)
        if key:
            at = key
            sections.setdefault(at, [])
        if at == "end":
            break
        if rest and not at:
            raise InvalidProblemError(f"{location} precedes maximize or minimize; begin with one")
        if rest:
            sections[at] += _tokens(rest, location, line_number)
    if at != "end" or not {"max", "min"} & sections.keys():
        raise InvalidProblemError(f"{path.name} needs maximize or minimize and end; it was cut off, or is no LP file")
    return _Lp(path.name, sections).program()


def _section(line: str) -> tuple[str, str]:
    """The section that a line begins, "" for none, and what else it holds: max, min and rows may begin on this line."""
    words = line.split()
    section = SECTIONS.get(" ".join(words).lower())
    if section is not None:
        return section, ""
    for count in (2, 1):
        head = SECTIONS.get(" ".join(words[:count]).lower(), "")
        if head in ("max", "min", "rows") and len(words) > count and not words[count].startswith(":"):
            return head, line.split(None, count)[count]
    return "", line


def _tokens(text: str, location: str, line: int) -> list[tuple[str, str, int]]:
    found, at = [], 0
    while at < len(text.rstrip()):
        match = TOKEN.match(text, at)
        if match is None:
            raise InvalidProblemError(f"{location}: {text[at : at + 20].strip()!r} is no part of an LP file")
        kind = str(match.lastgroup)
        word = match[kind]
        if kind == "name" and word.lower() in ("inf", "infinity"):
            kind = "number"
        if kind == "name" and word.lower() == "nan":
            raise InvalidProblemError(f"{location}: {word!r} is neither a number nor a name; write a number")
        found.append((kind, SIGNS.get(word, word) if kind == "sign" else word, line))
        at = match.end()
    return found


class _Lp:
    """Reads the tokens of each section in turn."""

    def __init__(self, name: str, sections: dict[str, list[tuple[str, str, int]]]) -> None:
        self.name, self.sections = name, sections
        self.found = Collected(is_maximization="max" in sections)
        self.tokens: list[tuple[str, str, int]] = []
        self.at = 0

    def program(self) -> Program:
        self._begin("max" if self.found.is_maximization else "min")
        self._label("objective")
        objective = self._side(squares=True)
        if self.at < len(self.tokens):
            raise self._wrong("ends the objective")
        self.found.objective, self.found.squares = objective.weights, objective.squares
        if objective.constant:
            column = self.found.column(CONSTANT)
            self.found.objective[column] = objective.constant
            self.found.lower[column] = self.found.upper[column] = 1.0
        self._begin("rows")
        while self.at < len(self.tokens):
            self._row()
        self._begin("bounds")
        while self.at < len(self.tokens):
            self._bound()
        for section in ("integer", "binary"):
            self._begin(section)
            while self.at < len(self.tokens):
                column = self._variable()
                self.found.integer.add(column)
                if section == "binary":
                    self.found.lower[column], self.found.upper[column] = 0.0, 1.0
        return self.found.program(self.name)

    def _begin(self, section: str) -> None:
        self.tokens, self.at = self.sections.get(section, []), 0

    def _peek(self, ahead: int = 0) -> tuple[str, str]:
        index = self.at + ahead
        return self.tokens[index][:2] if index < len(self.tokens) else ("", "")

    def _wrong(self, why: str) -> InvalidProblemError:
        line = self.tokens[min(self.at, len(self.tokens) - 1)][2] if self.tokens else 1
        return InvalidProblemError(f"{self.name}, line {line}: {self._peek()[1][:40] or 'the end'!r} {why}, and cannot")

    def _label(self, usual: str) -> str:
        if self._peek()[0] == "name" and self._peek(1)[1] == ":":
            self.at += 2
            return self.tokens[self.at - 2][1]
        return usual

    def _variable(self) -> int:
        kind, word = self._peek()
        if kind != "name":
            raise self._wrong("is where a variable is expected")
        self.at += 1
        return self.found.column(word)

    def _read_coefficient(self) -> float | None:
        """Signs and a number, 1 without one; None if no term can begin here."""
        sign, seen = 1.0, False
        while self._peek()[1] in ("+", "-"):
            sign, seen = -sign if self._peek()[1] == "-" else sign, True
            self.at += 1
        if self._peek()[0] == "number":
            value = float(self._peek()[1])
            self.at += 1
            return sign * value
        if self._peek()[0] == "name" or self._peek()[1] == "[":
            return sign
        if seen:
            raise self._wrong("follows a sign")
        return None

    def _side(self, squares: bool = False, last: bool = False) -> _Side:
        """A sum; for the last side of a row, on one line."""
        side, begun = _Side(), self.at
        while not (last and self.at > begun and self._line(self.at) > self._line(self.at - 1)):
            self._check_operator(begun)
            counted = self._peek()[0] == "number" or self._peek(1)[0] == "number"
            weight = self._read_coefficient()
            if weight is None:
                return side
            if self._peek()[1] == "[" and squares:
                self._squares(side, weight)
            elif counted and last and self._line(self.at) > self._line(self.at - 1):
                side.constant += weight
            elif self._peek()[0] == "name" and self._peek(1)[1] != ":":
                column = self._variable()
                side.weights[column] = side.weights.get(column, 0.0) + weight
            elif counted:
                side.constant += weight
            else:
                raise self._wrong("is in an expression")
            if self._peek()[0] == "name" and self._peek(1)[1] == ":":
                return side
        return side

    def _check_operator(self, begun: int) -> None:
        """Raise InvalidProblemError for a term after another without + or - between them."""
        kind, word = self._peek()
        if self.at == begun or not (kind in ("name", "number") or word == "["):
            return
        words = f"{self.tokens[self.at - 1][1][:40]!r} and {word[:40]!r}"
        raise InvalidProblemError(
            f"{self.name}, line {self._line(self.at)}: no + or - separates {words}; write one, or name the row"
        )

    def _line(self, at: int) -> int:
        return self.tokens[min(at, len(self.tokens) - 1)][2]

    def _squares(self, side: _Side, sign: float) -> None:
        """`[ a x ^ 2 + b x * y ] / 2`, divided by 2; the hessian holds second derivatives."""
        self.at += 1
        begun = self.at
        while self._peek()[1] != "]":
            self._check_operator(begun)
            weight = self._read_coefficient()
            if weight is None:
                raise self._wrong("is between brackets")
            first = self._variable()
            if self._peek()[1] == "^" and self._peek(1) == ("number", "2"):
                second = first
                self.at += 2
            elif self._peek()[1] == "*":
                self.at += 1
                second = self._variable()
            else:
                raise self._wrong("follows a variable between brackets")
            for pair in {(first, second), (second, first)}:
                share = weight if first == second else weight / 2
                side.squares[pair] = side.squares.get(pair, 0.0) + sign * share
        self.at += 1
        if self._peek()[1] == "/" and self._peek(1) == ("number", "2"):
            self.at += 2
        else:
            side.squares = {pair: 2 * value for pair, value in side.squares.items()}

    def _row(self) -> None:
        begun = self.at
        name = self._label(f"row_{len(self.found.row_lower) + 1}")
        if name in self.found.rows:
            line = self._line(begun)
            raise InvalidProblemError(f"{self.name}, line {line}: a second row has the name {name[:40]!r}; rename it")
        sides, signs = [self._side()], []
        while self._peek()[1] in ("<=", ">=", "=") and len(sides) < 3:
            signs.append(self._peek()[1])
            self.at += 1
            sides.append(self._side(last=bool(sides[0].weights) or len(sides) == 2))
        middle = sides[1] if len(sides) == 3 else sides[0]
        rest = [side for side in sides if side is not middle]
        if not signs or (len(sides) == 3 and (len({*signs}) > 1 or any(side.weights for side in rest))):
            raise self._wrong("makes no row of the kind sum <= number")
        low, high = -math.inf, math.inf
        weights = dict(middle.weights)
        for sign, side, before in zip(signs, rest, [len(sides) == 3, False], strict=False):
            for column, weight in side.weights.items():
                weights[column] = weights.get(column, 0.0) - weight
            limit = side.constant - middle.constant
            if sign == "=" or (sign == ">=") != before:
                low = max(low, limit)
            if sign == "=" or (sign == ">=") == before:
                high = min(high, limit)
        row = self.found.row(name, low, high)
        self.found.entries |= {(row, column): weight for column, weight in weights.items()}

    def _bound(self) -> None:
        if self._peek()[0] == "name" and self._peek(1)[1].lower() == "free":
            column = self._variable()
            self.found.lower[column], self.found.upper[column] = -math.inf, math.inf
            self.at += 1
            return
        left = self._read_coefficient() if self._peek()[0] != "name" else None
        sign = self._sign() if left is not None else ""
        column = self._variable()
        if left is not None:
            self._hold(column, {"<=": ">=", ">=": "<=", "=": "="}[sign], left)
        elif self._peek()[1] not in ("<=", ">=", "="):
            raise self._wrong("follows a variable among the bounds")
        if self._peek()[1] in ("<=", ">=", "="):
            sign = self._sign()
            right = self._read_coefficient()
            if right is None or self.tokens[self.at - 1][0] != "number":
                raise self._wrong("is no limit")
            self._hold(column, sign, right)

    def _sign(self) -> str:
        sign = self._peek()[1]
        if sign not in ("<=", ">=", "="):
            raise self._wrong("is where <=, >= or = is expected")
        self.at += 1
        return sign

    def _hold(self, column: int, sign: str, value: float) -> None:
        if sign != "<=":
            self.found.lower[column] = value
        if sign != ">=":
            self.found.upper[column] = value


Words = list[str]

LIMITS = {"N": (-math.inf, math.inf), "E": (0.0, 0.0), "G": (0.0, math.inf), "L": (-math.inf, 0.0)}
SENSES = {"MAX": True, "MAXIMIZE": True, "MAXIMISE": True, "MIN": False, "MINIMIZE": False, "MINIMISE": False}


def read_mps(path: Path) -> Program:
    """The program of an MPS file. Raises InvalidProblemError with file, line and cure if it is malformed."""
    reader = _Mps(path.name)
    lines = text_of(path).splitlines()
    section, ended = "", False
    for line_number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("*"):
            continue
        reader.location = f"{path.name}, line {line_number}"
        words = line.split()
        if not line[0].isspace():
            section = words[0].upper()
            if section == "ENDATA":
                ended = True
                break
            section = reader.section(section, words[1:])
            continue
        reader.steps[section](words) if section in reader.steps else reader.wrong("is in no section")
    if not ended:
        raise InvalidProblemError(f"{path.name} ends without ENDATA: it was cut off, or is no MPS file; write it again")
    return reader.program()


class _Mps:
    """Reads line by line, by section."""

    def __init__(self, name: str) -> None:
        self.name = self.location = name
        self.found = Collected()
        self.kinds: dict[str, str] = {}
        self.objective = ""
        self.constant, self.integer = 0.0, False
        self.limited: set[int] = set()
        self.steps: dict[str, Callable[[Words], None]] = {
            "OBJSENSE": self._sense,
            "ROWS": self._row,
            "COLUMNS": self._column,
            "RHS": self._right,
            "NAME": self._none,
            "RANGES": self._range,
            "BOUNDS": self._bound,
            "QUADOBJ": partial(self._entry, both=True),
            "QMATRIX": partial(self._entry, both=False),
        }

    def wrong(self, why: str) -> None:
        raise InvalidProblemError(f"{self.location}: it {why}; write the file in free MPS format")

    def section(self, name: str, words: Words) -> str:
        if name not in self.steps and name != "OBJSENSE":
            self.wrong(f"begins a section {name[:30]!r}, which states no linear or quadratic program")
        if name == "OBJSENSE" and words:
            self._sense(words)
        return name

    def _none(self, words: Words) -> None:
        self.wrong("is in no section")

    def _sense(self, words: Words) -> None:
        if words[0].upper() not in SENSES:
            self.wrong(f"asks for {words[0][:20]!r}, not MAX or MIN")
        self.found.is_maximization = SENSES[words[0].upper()]

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
            yield name, number(value, self.location)

    def _column(self, words: Words) -> None:
        if len(words) == 3 and words[1].strip("'") == "MARKER":
            self.integer = words[2].strip("'") == "INTORG"
            return
        column = self.found.column(words[0])
        if self.integer:
            self.found.integer.add(column)
        for name, value in self._pairs(words[1:]):
            if self.kinds[name] == "N" and name != self.objective:
                continue
            entry = (self.found.rows.get(name, -1), column)
            if (column in self.found.objective) if name == self.objective else (entry in self.found.entries):
                self.wrong(f"states the entry of {words[0][:40]!r} in {name[:40]!r} twice")
            if name == self.objective:
                self.found.objective[column] = value
            else:
                self.found.entries[entry] = value

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
        column, value = self.found.columns[name], 0.0 if bare else number(words[-1], self.location)
        self.limited.add(column)
        if kind in ("LI", "UI", "BV"):
            self.found.integer.add(column)
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

    def _entry(self, words: Words, both: bool) -> None:
        """An entry of the hessian; both: of one triangle, used for both."""
        if len(words) != 3 or not {*words[:2]} <= self.found.columns.keys():
            self.wrong("is no entry of the hessian: two variables and a number")
        i, j = (self.found.columns[name] for name in words[:2])
        for pair in {(i, j), (j, i)} if both else {(i, j)}:
            if pair in self.found.squares:
                self.wrong("states an entry of the hessian twice")
            self.found.squares[pair] = number(words[2], self.location)

    def program(self) -> Program:
        for column in self.found.integer - self.limited:
            self.found.upper[column] = 1.0
        if self.constant:
            column = self.found.column(CONSTANT)
            self.found.objective[column] = self.constant
            self.found.lower[column] = self.found.upper[column] = 1.0
        return self.found.program(self.name)
