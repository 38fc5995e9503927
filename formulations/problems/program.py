"""A linear or quadratic program as plain data, for printing, files and integrality proofs of any problem.

    maximize (or minimize)   objective · x + ½ xᵀ hessian x
    subject to               row_lower <= matrix x <= row_upper
                             lower <= x <= upper,   x[j] integer where integer[j]

Every problem class converts itself to a `Program`. Names of variables and rows are computed from their index. Files are
in free MPS or LP format, with ASCII names (π[0, 1] becomes pi_0_1), and numbers read back to the same double.

>>> block = Block("π", (2, 3))
>>> block.name(4), block.size
('π[1, 1]', 6)
>>> Block("block", ("a.org", "b.org")).name(1)
"block['b.org']"
>>> Block("document", (4, 7), by_label=True).name(1), Block("π", ((0, 2),)).name(0)
('document[7]', 'π[0, 2]')
>>> from formulations.problems.assignment import Assignment
>>> print(Assignment(np.array([[3.0, 2.0]])))
maximize    3 π[0, 0] + 2 π[0, 1]
subject to  position[0]: π[0, 0] + π[0, 1] = 1
            document[0]: π[0, 0] <= 1
            document[1]: π[0, 1] <= 1
            0 <= π[0, 0], π[0, 1] <= 1
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, tril

from formulations.arrays import Bools, Floats
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblemError, UnsupportedProblemError

AUXILIARY = "cvxpy auxiliary"  # variables and rows of cvxpy's canonicalization
CONSTANT = "objective constant"  # a variable fixed at one; names of files have no blank, or at most 8 characters


@dataclass(frozen=True)
class Block:
    """A named, indexed family of variables or rows.

    `index` is a tuple of integers (the extent of each dimension, C order) or a tuple of labels, one per member;
    `by_label` must be True if the labels are integers.
    """

    label: str
    index: tuple[Hashable, ...]
    by_label: bool = False

    def check_stored(self) -> None:
        """Raise InvalidProblemError for what is no name, or no extents or labels."""
        if not isinstance(self.label, str) or not isinstance(self.index, tuple):
            raise InvalidProblemError(f"a block needs a name and a tuple of extents or labels; got {self.index!r:.80}")
        if not self.by_label and any(isinstance(part, int) and part < 0 for part in self.index):
            raise InvalidProblemError(f"an extent of block {self.label!r} is negative: {self.index!r:.80}")
        hash(self.index)  # raises for a label that is no label

    @property
    def labeled(self) -> bool:
        return self.by_label or any(not isinstance(part, int | np.integer) for part in self.index)

    @property
    def shape(self) -> tuple[int, ...]:
        if self.labeled:
            return (len(self.index),)
        return tuple(int(part) for part in self.index if isinstance(part, int | np.integer))

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def name(self, member: int) -> str:
        """The name of the member with this flat index."""
        if self.labeled:
            one = self.index[member]
            return f"{self.label}[{', '.join(map(repr, one)) if isinstance(one, tuple) else repr(one)}]"
        if not self.index:
            return self.label
        return f"{self.label}{[int(i) for i in np.unravel_index(member, self.shape)]}"


def name_at(blocks: Sequence[Block], index: int) -> str:
    """The name of one variable or row, counted through all blocks."""
    for block in blocks:
        if index < block.size:
            return block.name(index)
        index -= block.size
    raise IndexError(index)


def named(blocks: tuple[Block, ...], usual: str, size: int) -> tuple[Block, ...]:
    """`blocks`, or one block of the usual name; raises `InvalidProblemError` unless they name `size` members."""
    if isinstance(blocks, tuple) and not blocks:
        return (Block(usual, (size,)),)
    if not isinstance(blocks, tuple) or not all(isinstance(block, Block) for block in blocks):
        raise InvalidProblemError(f"names must be a tuple of Block instances; got {blocks!r:.80}")
    if sum(block.size for block in blocks) != size:
        raise InvalidProblemError(f"the blocks name {sum(block.size for block in blocks)} members; there are {size}")
    return blocks


def split_by_block(blocks: Sequence[Block], values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """A flat vector as one array a block, in the block's shape, or a number for a block without dimensions."""
    parts: dict[str, NDArray[Any]] = {}
    start = 0
    for block in blocks:
        parts[block.label] = values[start : start + block.size].reshape(block.shape)[()]
        start += block.size
    return parts


@dataclass(frozen=True, eq=False)
class Program(CompactReprMixin):
    """`objective`, `lower`, `upper` and `integer` have one entry a variable, `row_lower` and `row_upper` one a row of
    `matrix`; a missing limit is infinite. No hessian means a linear objective. `variables` and `rows` name
    columns and rows by block; without names they are x[j] and row[i]."""

    objective: Floats
    matrix: csr_array
    row_lower: Floats
    row_upper: Floats
    lower: Floats
    upper: Floats
    is_maximization: bool = True
    integer: Bools | None = None
    variables: tuple[Block, ...] = ()
    rows: tuple[Block, ...] = ()
    hessian: csr_array | None = None

    def variable_name(self, column: int) -> str:
        return name_at(self.variables or (Block("x", (self.objective.size,)),), column)

    def row_name(self, row: int) -> str:
        return name_at(self.rows or (Block("row", (self.row_lower.size,)),), row)

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """The names of all variables and of all rows."""
        blocks = (named(self.variables, "x", self.objective.size), named(self.rows, "row", self.row_lower.size))
        columns, rows = ([one.name(member) for one in held for member in range(one.size)] for held in blocks)
        return columns, rows


class BlockNames:
    """Names of variables or rows as blocks, made unique."""

    def __init__(self, usual: str) -> None:
        self.usual, self.size = usual, 0
        self.blocks: list[Block] = []
        self.taken: set[str] = set()

    def add(self, name: str | None, index: tuple[Any, ...] = (), by_label: bool = False) -> None:
        """A block of this name; without one, of the usual name and the number of the member."""
        label = wanted = name or f"{self.usual}[{self.size}]"
        copy = 2
        while label in self.taken:
            label, copy = f"{wanted} ({copy})", copy + 1
        self.taken.add(label)
        self.blocks.append(Block(label, index, by_label))
        self.size += self.blocks[-1].size

    @classmethod
    def scalars(cls, usual: str, names: Iterable[str | None]) -> BlockNames:
        """A block for each name."""
        found = cls(usual)
        for name in names:
            found.add(name)
        return found


def with_constant(program: Program, constant: float) -> Program:
    """The program with this constant, unless 0, as the cost of a variable fixed at 1, an integer if all others are."""
    if not constant:
        return program
    size = program.objective.size
    matrix, hessian = program.matrix.copy(), None if program.hessian is None else program.hessian.copy()
    matrix.resize((matrix.shape[0], size + 1))
    if hessian is not None:
        hessian.resize((size + 1, size + 1))
    return replace(
        program,
        objective=np.append(program.objective, constant),
        matrix=matrix,
        lower=np.append(program.lower, 1.0),
        upper=np.append(program.upper, 1.0),
        integer=None if program.integer is None else np.append(program.integer, program.integer.all()),
        variables=(*named(program.variables, "x", size), Block(CONSTANT, ())),
        hessian=hessian,
    )


def without_constant(program: Program) -> tuple[Program, float]:
    """The program without its variable "objective constant", and this constant."""
    if not program.variables or program.variables[-1] != Block(CONSTANT, ()):
        return program, 0.0
    rest = slice(0, program.objective.size - 1)
    return replace(
        program,
        objective=program.objective[rest],
        matrix=csr_array(program.matrix[:, rest]),
        lower=program.lower[rest],
        upper=program.upper[rest],
        integer=None if program.integer is None else program.integer[rest],
        variables=program.variables[:-1],
        hessian=None if program.hessian is None else csr_array(program.hessian[rest][:, rest]),
    ), float(program.objective[-1])


def algebra(program: Program) -> str:
    """The program in full: a line for the objective, one a row, then the limits of the variables."""
    names = [program.variable_name(j) for j in range(program.objective.size)]
    objective = sum_text(zip(program.objective, names, strict=True))
    if program.hessian is not None:
        squares = program.hessian.tocoo()
        curved = [
            (weight, f"{names[i]}²" if i == j else f"{names[i]} {names[j]}")
            for i, j, weight in zip(*squares.coords, squares.data, strict=True)
        ]
        objective = f"{objective} + ½ ({sum_text(curved)})"
    return program_text("maximize" if program.is_maximization else "minimize", objective, _constraints(program, names))


def _constraints(program: Program, names: Sequence[str]) -> list[str]:
    lines = []
    for i, (low, high) in enumerate(zip(program.row_lower, program.row_upper, strict=True)):
        entries = slice(program.matrix.indptr[i], program.matrix.indptr[i + 1])
        terms = zip(program.matrix.data[entries], (names[j] for j in program.matrix.indices[entries]), strict=True)
        lines.append(f"{program.row_name(i)}: {_between(low, sum_text(terms), high)}")
    limits = zip(program.lower, program.upper, names, strict=True)
    for (low, high), members in groupby(limits, key=lambda limit: limit[:2]):
        lines.append(_between(low, ", ".join(name for _, _, name in members), high))
    if program.integer is not None:
        lines.append(f"integer: {', '.join(names[j] for j in np.flatnonzero(program.integer).tolist())}")
    return lines


def _between(low: float, middle: str, high: float) -> str:
    if low == high:
        return f"{middle} = {number(low)}"
    left = f"{number(low)} <= " if np.isfinite(low) else ""
    right = f" <= {number(high)}" if np.isfinite(high) else ""
    return f"{left}{middle}{right}" if left or right else f"{middle} free"


def sum_text(terms: Iterable[tuple[float, str]]) -> str:
    """3 x - y, zero terms left out."""
    text = ""
    for weight, name in terms:
        if weight:
            size = "" if abs(weight) == 1 else f"{number(abs(weight))} "
            sign = ("-" if weight < 0 else "") if not text else " - " if weight < 0 else " + "
            text += f"{sign}{size}{name}"
    return text or "0"


def number(value: float) -> str:
    """At most six significant digits."""
    return f"{value:.6g}"


def program_text(goal: str, objective: str, constraints: Sequence[str]) -> str:
    """The sense and objective, then one line per constraint."""
    lines = [f"{goal:<12}{objective}"]
    lines += [f"{'' if i else 'subject to':<12}{line}" for i, line in enumerate(constraints)]
    return "\n".join(lines)


DIGITS = Context(prec=60)  # ranges are differences of decimals, so that limits read back to the same double
RESERVED = {"st", "bounds", "bound", "free", "inf", "infinity", "max", "min", "maximize", "minimize", "end", "binary"}
RESERVED |= {"general", "generals", "integer", "integers", "binaries", "subject", "objective", "range", "rhs"}
RESERVED |= {"maximise", "maximum", "minimise", "minimum", "gen", "bin", "semi", "semis", "sos", "sos1", "sos2"}
RESERVED |= {"pwlobj", "gencons", "scenario", "nan", "marker", "s.t"}


def write(problem: Program, path: Path) -> None:
    """Write the problem to `path`, in the format of its suffix: .mps or .lp."""
    formats = {".mps": _mps, ".lp": _lp}
    if path.suffix not in formats:
        raise UnsupportedProblemError(f"the file name must end with .mps or .lp; got {path.name!r}.")
    entries: Entries = []
    if problem.hessian is not None:
        lower = tril(problem.hessian).tocoo()
        entries = [(int(i), int(j), float(v)) for i, j, v in zip(*lower.coords, lower.data, strict=True) if v]
    text = "\n".join(formats[path.suffix](problem, entries)) + "\n"
    path.write_text(text, encoding="ascii")


Entries = list[tuple[int, int, float]]


def _mps(problem: Program, hessian: Entries) -> Iterator[str]:
    columns, rows = _names(problem)
    yield "NAME formulations"
    yield from ("OBJSENSE", "    MAX" if problem.is_maximization else "    MIN")
    yield from ("ROWS", " N objective")
    sense: dict[int, str] = {}
    for i, (low, high) in enumerate(zip(problem.row_lower, problem.row_upper, strict=True)):
        if np.isfinite(low) or np.isfinite(high):
            sense[i] = "E" if low == high else "G" if abs(low) <= abs(high) else "L"  # the smaller limit is exact
            yield f" {sense[i]} {rows[i]}"
    yield "COLUMNS"
    by_column = problem.matrix.tocsc()
    for j, name in enumerate(columns):
        is_integer = problem.integer is not None and bool(problem.integer[j])
        if is_integer:
            yield f" MARK{j}A 'MARKER' 'INTORG'"
        yield f" {name} objective {_number(problem.objective[j])}"
        entries = slice(by_column.indptr[j], by_column.indptr[j + 1])
        for i, value in zip(by_column.indices[entries].tolist(), by_column.data[entries], strict=True):
            if i in sense:
                yield f" {name} {rows[i]} {_number(value)}"
        if is_integer:
            yield f" MARK{j}B 'MARKER' 'INTEND'"
    yield "RHS"
    for i, letter in sense.items():
        yield f" RHS {rows[i]} {_number(problem.row_upper[i] if letter == 'L' else problem.row_lower[i])}"
    yield "RANGES"
    for i, letter in sense.items():
        low, high = float(problem.row_lower[i]), float(problem.row_upper[i])
        if letter != "E" and math.isfinite(low) and math.isfinite(high):
            yield f" RANGE {rows[i]} {DIGITS.subtract(Decimal(repr(high)), Decimal(repr(low)))}"
    yield "BOUNDS"
    for name, low, high in zip(columns, problem.lower, problem.upper, strict=True):
        yield f" LO BOUND {name} {_number(low)}" if np.isfinite(low) else f" MI BOUND {name}"
        yield f" UP BOUND {name} {_number(high)}" if np.isfinite(high) else f" PL BOUND {name}"
    if hessian:
        yield "QUADOBJ"
        yield from (f" {columns[j]} {columns[i]} {_number(value)}" for i, j, value in hessian)
    yield "ENDATA"


def _lp(problem: Program, hessian: Entries) -> Iterator[str]:
    columns, rows = _names(problem)
    yield "maximize" if problem.is_maximization else "minimize"
    squares = [
        f"{_number(v)} {columns[i]} ^ 2" if i == j else f"{_number(2 * v)} {columns[i]} * {columns[j]}"
        for i, j, v in hessian
    ]
    half = "\n  + [ {} ] / 2".format("\n  + ".join(squares)).replace("+ -", "- ") if squares else ""
    yield f" objective: {_expression(problem.objective, columns)}{half}"
    yield "subject to"
    for i, (low, high) in enumerate(zip(problem.row_lower, problem.row_upper, strict=True)):
        entries = slice(problem.matrix.indptr[i], problem.matrix.indptr[i + 1])
        names = [columns[j] for j in problem.matrix.indices[entries]]
        row = _expression(problem.matrix.data[entries], names) if names else f"0 {columns[0]}"
        if low == high:
            yield f" {rows[i]}: {row} = {_number(low)}"
            continue
        both = np.isfinite(low) and np.isfinite(high)
        if np.isfinite(low):
            yield f" {rows[i]}{'_low' if both else ''}: {row} >= {_number(low)}"
        if np.isfinite(high):
            yield f" {rows[i]}{'_high' if both else ''}: {row} <= {_number(high)}"
    yield "bounds"
    for name, low, high in zip(columns, problem.lower, problem.upper, strict=True):
        if np.isfinite(low) or np.isfinite(high):
            left = _number(low) if np.isfinite(low) else "-inf"
            yield f" {left} <= {name}" + (f" <= {_number(high)}" if np.isfinite(high) else "")
        else:
            yield f" {name} free"
    if problem.integer is not None:
        yield "generals"
        yield from (f" {columns[j]}" for j in np.flatnonzero(problem.integer))
    yield "end"


def _expression(weights: np.ndarray[tuple[int], np.dtype[np.float64]], names: list[str]) -> str:
    terms = [f"{'-' if w < 0 else '+'} {_number(abs(w))} {name}" for w, name in zip(weights, names, strict=True)]
    return "\n  ".join(" ".join(terms[i : i + 10]) for i in range(0, len(terms), 10))  # readers limit the line length


def _number(value: float) -> str:
    return repr(float(value))


def _names(problem: Program) -> tuple[list[str], list[str]]:
    """Names of columns and rows in unique portable ASCII names."""
    taken = set(RESERVED)
    columns, rows = ([_unique(_plain(name), taken) for name in names] for names in problem.names)
    return columns, rows


def _plain(name: str) -> str:
    """pi_0_1 for π[0, 1]."""
    ascii_ = (c if c.isascii() else unicodedata.name(c, "").split(" ")[-1].lower() for c in name)
    letters = "".join(ascii_).rstrip("]")
    plain = re.sub(r"[^A-Za-z0-9.]+", "_", letters).strip("_.") or "x"
    plain = plain[:200]  # CPLEX reads 255 letters
    # Readers take e, e and digits, and names that begin with a digit, inf or nan (HiGHS) for parts of a number.
    return f"x_{plain}" if re.match(r"[0-9.]|e[0-9]|e$|inf|nan", plain, re.IGNORECASE) else plain


def _unique(name: str, taken: set[str]) -> str:
    chosen, copy = name, 2
    while chosen.lower() in taken:
        chosen, copy = f"{name}_{copy}", copy + 1
    taken.add(chosen.lower())
    return chosen
