"""Linear and quadratic programs as files that other programs read: free MPS and LP format.

Names are those of variables and rows in plain letters: π[0, 1] becomes pi_0_1. A row without limits constrains nothing
and is left out. Numbers are written so that they read back to the same double.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, tril

from formulations.errors import Unsupported
from formulations.notation.program import Program

RESERVED = {"st", "bounds", "bound", "free", "inf", "infinity", "max", "min", "maximize", "minimize", "end", "binary"}
RESERVED |= {"general", "generals", "integer", "integers", "binaries", "subject", "objective", "range", "rhs"}
RESERVED |= {"maximise", "maximum", "minimise", "minimum", "gen", "bin", "semi", "semis", "sos", "sos1", "sos2"}
RESERVED |= {"pwlobj", "gencons", "scenario", "nan"}


def write(problem: Program, path: Path) -> None:
    """Write the problem to `path`, in the format that its name ends with: .mps or .lp."""
    formats = {".mps": _mps, ".lp": _lp}
    if path.suffix not in formats:
        raise Unsupported(f"{path.name!r} cannot be written: the format is not known; end the name with .mps or .lp")
    text = "\n".join(formats[path.suffix](problem, _triangle(problem.hessian))) + "\n"
    path.write_text(text, encoding="ascii")


Entries = list[tuple[int, int, float]]


def _triangle(hessian: csr_array | None) -> Entries:
    """The entries of the lower triangle, which formats for symmetric matrices want once."""
    if hessian is None:
        return []
    lower = tril(hessian).tocoo()
    return [(int(i), int(j), float(v)) for i, j, v in zip(*lower.coords, lower.data, strict=True) if v]


def _mps(problem: Program, hessian: Entries) -> Iterator[str]:
    columns, rows = _names(problem)
    yield "NAME formulations"
    yield from ("OBJSENSE", "    MAX" if problem.maximises else "    MIN")
    yield from ("ROWS", " N objective")
    sense: dict[int, str] = {}
    for i, (low, high) in enumerate(zip(problem.row_lower, problem.row_upper, strict=True)):
        if np.isfinite(low) or np.isfinite(high):
            sense[i] = "E" if low == high else "G" if np.isfinite(low) else "L"
            yield f" {sense[i]} {rows[i]}"
    yield "COLUMNS"
    by_column = problem.matrix.tocsc()
    for j, name in enumerate(columns):
        whole = problem.integer is not None and bool(problem.integer[j])
        if whole:
            yield f" MARK{j}A 'MARKER' 'INTORG'"
        yield f" {name} objective {_number(problem.objective[j])}"
        entries = slice(by_column.indptr[j], by_column.indptr[j + 1])
        for i, value in zip(by_column.indices[entries].tolist(), by_column.data[entries], strict=True):
            if i in sense:
                yield f" {name} {rows[i]} {_number(value)}"
        if whole:
            yield f" MARK{j}B 'MARKER' 'INTEND'"
    yield "RHS"
    for i, letter in sense.items():
        yield f" RHS {rows[i]} {_number(problem.row_upper[i] if letter == 'L' else problem.row_lower[i])}"
    yield "RANGES"
    for i, letter in sense.items():
        if letter == "G" and np.isfinite(problem.row_upper[i]):
            yield f" RANGE {rows[i]} {_number(problem.row_upper[i] - problem.row_lower[i])}"
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
    yield "maximize" if problem.maximises else "minimize"
    squares = [
        f"{_number(v)} {columns[i]} ^ 2" if i == j else f"{_number(2 * v)} {columns[i]} * {columns[j]}"
        for i, j, v in hessian
    ]
    half = f" + [ {' + '.join(squares)} ] / 2".replace("+ -", "- ") if squares else ""
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
    return " ".join(f"{'-' if w < 0 else '+'} {_number(abs(w))} {name}" for w, name in zip(weights, names, strict=True))


def _number(value: float) -> str:
    return repr(float(value))


def _names(problem: Program) -> tuple[list[str], list[str]]:
    """Names of columns and rows in letters that every reader takes, each different from all others."""
    taken = set(RESERVED)
    columns = [_unique(_plain(problem.variable_name(j)), taken) for j in range(problem.objective.size)]
    rows = [_unique(_plain(problem.row_name(i)), taken) for i in range(problem.row_lower.size)]
    return columns, rows


def _plain(name: str) -> str:
    """pi_0_1 for π[0, 1]."""
    letters = ("".join(_ascii(letter) for letter in name)).rstrip("]")
    plain = re.sub(r"[^A-Za-z0-9.]+", "_", letters).strip("_.") or "x"
    # A name that begins with a digit, or with e and a digit, reads as a number.
    return f"x_{plain}" if re.match(r"[0-9.]|[eE][0-9]", plain) else plain


def _ascii(letter: str) -> str:
    return letter if letter.isascii() else unicodedata.name(letter, "").split(" ")[-1].lower()


def _unique(name: str, taken: set[str]) -> str:
    chosen, copy = name, 2
    while chosen.lower() in taken:
        chosen, copy = f"{name}_{copy}", copy + 1
    taken.add(chosen.lower())
    return chosen
