"""Programs from LP files: an objective, rows, bounds, whole variables; `[ ... ] / 2` holds the squares.

Sides of a row may hold variables and numbers; what stands on the right is brought to the left. A right side ends with
its line, since rows need no name. Variables go from 0 on where no bound says else; limits of 1e20 or more are infinite,
as CPLEX and HiGHS read them.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path

from formulations.errors import InvalidProblem
from formulations.notation.lines_of_programs import Collected, text_of
from formulations.notation.program import Program

__all__ = ["read_lp"]

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
    "general": "whole", "generals": "whole", "gen": "whole", "integer": "whole", "integers": "whole",
    "binary": "binary", "binaries": "binary", "bin": "binary",
}  # fmt: skip
CONSTANT = "objective constant"
UNSUPPORTED = {"semi-continuous", "semi", "semis", "sos", "sos1", "sos2", "lazy constraints", "user cuts", "pwlobj"}
UNSUPPORTED |= {"general constraints", "gencons", "scenario"}


@dataclass
class _Side:
    """Σ weight x + Σ square x y + constant."""

    weights: dict[int, float] = field(default_factory=dict)
    squares: dict[tuple[int, int], float] = field(default_factory=dict)
    constant: float = 0.0


def read_lp(path: Path) -> Program:
    """The program of an LP file. Raises InvalidProblem with file, line and cure for what is none."""
    sections: dict[str, list[tuple[str, str, int]]] = {}
    at = ""
    for place, line in enumerate(text_of(path).splitlines(), 1):
        bare = line.partition("\\")[0].strip()
        words = " ".join(bare.lower().split())
        if words in UNSUPPORTED:
            raise InvalidProblem(
                f"{path.name}, line {place} begins a section {bare!r}, which states no linear or quadratic program; "
                "state what it says by rows and whole variables"
            )
        key = SECTIONS.get(words)
        if key is None and bare:
            first = bare.split()
            for count in (2, 1):  # a section may begin on the line that names it
                head = SECTIONS.get(" ".join(first[:count]).lower())
                if head in ("max", "min", "rows") and len(first) > count and not bare.split()[count].startswith(":"):
                    key, bare = head, bare.split(None, count)[count]
                    break
            else:
                if not at:
                    raise InvalidProblem(f"{path.name}, line {place} stands before maximize or minimize; begin so")
                sections[at] += _tokens(bare, f"{path.name}, line {place}", place)
                continue
            at = key
            sections.setdefault(at, []).extend(_tokens(bare, f"{path.name}, line {place}", place))
            continue
        if key == "end":
            at = "end"
            break
        if key is not None:
            at = key
            sections.setdefault(at, [])
    if at != "end" or not {"max", "min"} & sections.keys():
        raise InvalidProblem(f"{path.name} needs maximize or minimize and end; it was cut off, or is no LP file")
    return _Lp(path.name, sections).program()


def _tokens(text: str, place: str, line: int) -> list[tuple[str, str, int]]:
    found, at = [], 0
    while at < len(text.rstrip()):
        match = TOKEN.match(text, at)
        if match is None:
            raise InvalidProblem(f"{place}: {text[at : at + 20].strip()!r} is no part of an LP file")
        kind = str(match.lastgroup)
        word = match[kind]
        if kind == "name" and word.lower() in ("inf", "infinity"):
            kind = "number"
        if kind == "name" and word.lower() == "nan":
            raise InvalidProblem(f"{place}: {word!r} is no number, and no name; write the number that it stands for")
        found.append((kind, SIGNS.get(word, word) if kind == "sign" else word, line))
        at = match.end()
    return found


class _Lp:
    """Reads the tokens of each section in turn."""

    def __init__(self, name: str, sections: dict[str, list[tuple[str, str, int]]]) -> None:
        self.name, self.sections = name, sections
        self.found = Collected(maximises="max" in sections)
        self.tokens: list[tuple[str, str, int]] = []
        self.at = 0

    def program(self) -> Program:
        self._begin("max" if self.found.maximises else "min")
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
        for section in ("whole", "binary"):
            self._begin(section)
            while self.at < len(self.tokens):
                column = self._variable()
                self.found.whole.add(column)
                if section == "binary":
                    self.found.lower[column], self.found.upper[column] = 0.0, 1.0
        return self.found.program(self.name)

    def _begin(self, section: str) -> None:
        self.tokens, self.at = self.sections.get(section, []), 0

    def _peek(self, ahead: int = 0) -> tuple[str, str]:
        place = self.at + ahead
        return self.tokens[place][:2] if place < len(self.tokens) else ("", "")

    def _wrong(self, why: str) -> InvalidProblem:
        line = self.tokens[min(self.at, len(self.tokens) - 1)][2] if self.tokens else 1
        return InvalidProblem(f"{self.name}, line {line}: {self._peek()[1][:40] or 'the end'!r} {why}, and cannot")

    def _label(self, usual: str) -> str:
        if self._peek()[0] == "name" and self._peek(1)[1] == ":":
            self.at += 2
            return self.tokens[self.at - 2][1]
        return usual

    def _variable(self) -> int:
        kind, word = self._peek()
        if kind != "name":
            raise self._wrong("stands where a variable should")
        self.at += 1
        return self.found.column(word)

    def _signed(self) -> float | None:
        """Signs and a number, 1 where there is none; None where a term cannot begin here."""
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
        """What can be read as a sum; of the last side of a row on one line."""
        side, begun = _Side(), self.at
        while not (last and self.at > begun and self._line(self.at) > self._line(self.at - 1)):
            self._joined(begun)
            told = self._peek()[0] == "number" or self._peek(1)[0] == "number"
            weight = self._signed()
            if weight is None:
                return side
            if self._peek()[1] == "[" and squares:
                self._squares(side, weight)
            elif told and last and self._line(self.at) > self._line(self.at - 1):
                side.constant += weight
            elif self._peek()[0] == "name" and self._peek(1)[1] != ":":
                column = self._variable()
                side.weights[column] = side.weights.get(column, 0.0) + weight
            elif told:
                side.constant += weight
            else:
                raise self._wrong("stands in an expression")
            if self._peek()[0] == "name" and self._peek(1)[1] == ":":
                return side
        return side

    def _joined(self, begun: int) -> None:
        """Raise InvalidProblem for a term behind another with no + or - between them."""
        kind, word = self._peek()
        if self.at == begun or not (kind in ("name", "number") or word == "["):
            return
        raise InvalidProblem(
            f"{self.name}, line {self._line(self.at)}: no + or - stands between {self.tokens[self.at - 1][1][:40]!r} "
            f"and {word[:40]!r}; write one, or begin a row with its name and a colon"
        )

    def _line(self, at: int) -> int:
        return self.tokens[min(at, len(self.tokens) - 1)][2]

    def _squares(self, side: _Side, sign: float) -> None:
        """`[ a x ^ 2 + b x * y ] / 2`: half of it counts, and the hessian holds 2 ∂."""
        self.at += 1
        begun = self.at
        while self._peek()[1] != "]":
            self._joined(begun)
            weight = self._signed()
            if weight is None:
                raise self._wrong("stands between brackets")
            first = self._variable()
            if self._peek()[1] == "^" and self._peek(1) == ("number", "2"):
                second = first
                self.at += 2
            elif self._peek()[1] == "*":
                self.at += 1
                second = self._variable()
            else:
                raise self._wrong("follows a variable between brackets")
            for place in {(first, second), (second, first)}:
                share = weight if first == second else weight / 2
                side.squares[place] = side.squares.get(place, 0.0) + sign * share
        self.at += 1
        if self._peek()[1] == "/" and self._peek(1) == ("number", "2"):
            self.at += 2
        else:
            side.squares = {place: 2 * value for place, value in side.squares.items()}

    def _row(self) -> None:
        begun = self.at
        name = self._label(f"row_{len(self.found.row_lower) + 1}")
        if name in self.found.rows:
            line = self._line(begun)
            raise InvalidProblem(
                f"{self.name}, line {line}: a second row has the name {name[:40]!r}; name it otherwise"
            )
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
        left = self._signed() if self._peek()[0] != "name" else None
        sign = self._sign() if left is not None else ""
        column = self._variable()
        if left is not None:
            self._hold(column, {"<=": ">=", ">=": "<=", "=": "="}[sign], left)
        elif self._peek()[1] not in ("<=", ">=", "="):
            raise self._wrong("follows a variable among the bounds")
        if self._peek()[1] in ("<=", ">=", "="):
            sign = self._sign()
            right = self._signed()
            if right is None or self.tokens[self.at - 1][0] != "number":
                raise self._wrong("is no limit")
            self._hold(column, sign, right)

    def _sign(self) -> str:
        sign = self._peek()[1]
        if sign not in ("<=", ">=", "="):
            raise self._wrong("stands where <=, >= or = should")
        self.at += 1
        return sign

    def _hold(self, column: int, sign: str, value: float) -> None:
        if sign != "<=":
            self.found.lower[column] = value
        if sign != ">=":
            self.found.upper[column] = value
