"""Problems in files: linear and quadratic programs (.mps, .lp, also packed as .gz), and ranking sets in TOML.

A program has the variables, rows and integer variables of its file. A TOML file has a ranking set or a bare matrix:

    documents = 6                       # n
    positions = 3                       # k
    weights = [...]                     # profit[i, j] = weights[i] * scores[j]; or profit = [[...], ...]
    scores = [...]

    [attributes]                        # one value per document, for `by` and `documents`
    site = ["a.org", "a.org", "b.org", "b.org", "c.org", "d.org"]

    [[constraint]]                      # the kinds and their keys: docs/guide/integrality.md
    at_most = 1
    by = "site"

    [solver]                            # or solver = "highs(time_limit=10)", at the top
    name = "highs"
    time_limit = 10

The file only names the solver; reading it solves nothing. The sizes of files, sets and rows are limited (see the
constants below); larger sets are stated in Python.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from os import PathLike
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

import numpy as np

from formulations.arrays import Floats, as_path, finite
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.kinds import KINDS, parameters
from formulations.constraints.ranking_set import RankingSet
from formulations.errors import FormulationError, InfeasibleError, InvalidProblemError, UnsupportedProblemError
from formulations.gallery.assignments import constrained_ranking
from formulations.io.lp_file import read_lp
from formulations.io.mps_file import read_mps
from formulations.problems.linear_program import LinearProgram
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.solvers.solver import LONGEST

READERS = {".mps": read_mps, ".lp": read_lp}


def read_program(path: str | PathLike[str]) -> LinearProgram | QuadraticProgram:
    """The program of a file.

    Raises InvalidProblemError with file, line and cure for a malformed or nonconvex program; InfeasibleError if limits
    cross; UnsupportedProblemError for other formats; OSError if the file cannot be read. Warns with ProgramFileWarning
    of conventions that other programs do not share, such as which of several vectors of an MPS file is read.
    """
    file = Path(as_path(path))
    suffix = (Path(file.stem).suffix if file.suffix == ".gz" else file.suffix).lower()
    if suffix not in READERS:
        raise UnsupportedProblemError(f"the name of a program must end with .mps or .lp; got {file.name!r}.")
    program = READERS[suffix](file)
    if program.hessian is None:
        return LinearProgram.from_program(program)
    if program.integer is not None:
        raise InvalidProblemError(f"{file.name} has squares and integers, which no problem class supports; remove one")
    squared = QuadraticProgram.from_program(program)
    squared.check_curvature(file.name)
    return squared


def solver_of(file: str, stated: dict[str, Any]) -> str | None:
    """The name with its options, None without one; InvalidProblemError for anything but such a word or table."""
    if "solver" not in stated:
        return None
    solver = stated["solver"]
    if isinstance(solver, dict):
        options = dict(solver)
        solver = options.pop("name", None)
        if not isinstance(solver, str) or not solver:
            raise InvalidProblemError(f'{file}: [solver] names no solver; write name = "highs" below it')
        if "(" in solver and options:
            raise InvalidProblemError(f"{file}: [solver] has options in its name {solver[:40]!r} and as keys; use one")
        for name in options:
            if not name.isidentifier():
                raise InvalidProblemError(f"{file}: an option of [solver] must be a word; got {name[:40]!r}.")
        written = ", ".join(f"{name}={_option_text(file, name, value)}" for name, value in options.items())
        solver = f"{solver}({written})" if options else solver
    if not isinstance(solver, str) or not solver:
        raise InvalidProblemError(f'{file}: solver must be a name, such as "highs"; got {str(solver)[:40]!r}.')
    if len(solver) > LONGEST:
        raise InvalidProblemError(f"{file}: the solver and its options have more than {LONGEST} letters; shorten them")
    return solver


def _option_text(file: str, name: str, value: Any) -> str:
    """An option in Python syntax."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_option_text(file, key, part)}" for key, part in value.items()) + "}"
    if not isinstance(value, str | int | float) or not isfinite(value if isinstance(value, float) else 0.0):
        raise InvalidProblemError(f"{file}: [solver] {name} must be a word, number or bool; got {str(value)[:40]}.")
    return repr(value)


KEYS = {"documents", "positions", "profit", "weights", "scores", "attributes", "constraint", "solver"}

BYTES, TABLES = 1 << 23, 1 << 16  # largest number of bytes of a file; of keys, and of lines that begin a table or a row

CELLS, ENTRIES = 1 << 22, 1 << 24
"""Largest number of cells of a set (positions × documents), and of entries in all its rows."""

LONG_KEY = re.compile(r"""(?:^|[\[{,\n])[ \t]*+(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){16}""")
"""A key of more than 16 parts: the parser's cost is quadratic in their number."""

LONG_NUMBER = re.compile(r"\b0[xob][0-9A-Fa-f_]{65}")  # an integer that Python reads and cannot print


def read_ranking_set(path: str | PathLike[str]) -> ConstrainedRanking | RankingSet | Floats:
    """The content of a TOML file: a ranking problem if it has a profit, else a set, or a matrix.

    Raises InvalidProblemError with the file, the constraint (counted from 1) and the cure; InfeasibleError for a profit
    over an empty set; OSError if the file cannot be read.
    """
    file = as_path(path)
    stated = _parse(file)
    if "matrix" in stated:
        _only(file, stated, {"matrix"}, "a file with a matrix states nothing else")
        return finite(f"{file}: matrix", stated["matrix"], 2)
    admissible, profit = _set_of(file, stated)
    try:
        return admissible if profit is None else constrained_ranking(profit, admissible)
    except (InvalidProblemError, InfeasibleError) as error:
        raise type(error)(f"{file}: {error}") from None


def read_set(path: str | PathLike[str]) -> tuple[RankingSet, Floats | None]:
    """The set of a TOML file, also an empty one, and its profit, if any; InvalidProblemError for a matrix."""
    file = as_path(path)
    return _set_of(file, _parse(file))


def _set_of(file: str, stated: dict[str, Any]) -> tuple[RankingSet, Floats | None]:
    _only(file, stated, KEYS, f"known are {', '.join(sorted(KEYS))}")
    for name in ("documents", "positions"):
        if name not in stated:
            raise InvalidProblemError(f"{file} has no number of {name}; write, for example, {name} = 6")
    try:
        admissible = RankingSet(stated["documents"], stated["positions"])
    except InvalidProblemError as error:
        raise InvalidProblemError(f"{file}: {error}") from None
    k, n = admissible.shape
    if k * n > CELLS:
        raise InvalidProblemError(f"{file}: {k} positions × {n} documents exceed {CELLS} cells; state it in Python")
    reader = _Reader(file, _table(file, "attributes", stated.get("attributes", {})), admissible)
    constraints = stated.get("constraint", [])
    if not isinstance(constraints, list):
        raise InvalidProblemError(f"{file}: constraints are tables [[constraint]], with two brackets")
    for number, constraint in enumerate(constraints, 1):
        reader.add(number, _table(file, f"constraint {number}", constraint))
    solver_of(file, stated)
    return reader.admissible, _profit(file, stated)


def read_solver(path: str | PathLike[str]) -> str | None:
    """The solver of a TOML file, with its options in its name, as `solve` and `get_solver` accept it; None without one.
    The name and options are checked by these. Errors as `read_ranking_set`."""
    file = as_path(path)
    return solver_of(file, _parse(file))


def _parse(file: str) -> dict[str, Any]:
    """The TOML of a file, after its size and number of keys are checked."""
    with open(file, "rb") as opened:
        content = opened.read(BYTES + 1)
    if len(content) > BYTES:
        raise InvalidProblemError(f"{file} has more than {BYTES} bytes; state the set in Python")
    try:
        text = content.decode("utf-8-sig")
        if max(text.count("="), len(re.findall(r"^[ \t]*\[", text, re.MULTILINE))) > TABLES:
            raise InvalidProblemError(f"{file} has more than {TABLES} keys, tables or rows; state the set in Python")
        for pattern, cure in (
            (LONG_KEY, "a key has more than 16 parts; none of a statement has three"),
            (LONG_NUMBER, "a number has more than 64 digits; none of a statement has ten"),
        ):
            long = pattern.search(text)
            if long is not None:
                raise InvalidProblemError(f"{file}, line {text.count(chr(10), 0, long.end()) + 1}: {cure}")
        return tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidProblemError(f"{file}, line {line} is no TOML: {error.reason}; save the file as UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise InvalidProblemError(f"{file} is no TOML: {error}") from None
    except RecursionError:
        raise InvalidProblemError(f"{file} is nested too deep; use rows of numbers or labels") from None
    except FormulationError:
        raise
    except ValueError as error:  # of numbers, such as 5,000 digits
        line = max(enumerate(content.split(b"\n"), 1), key=lambda numbered: len(numbered[1]))[0]
        raise InvalidProblemError(f"{file}, line {line} or so holds what is no number or date: {error}") from None


def _profit(file: str, stated: dict[str, Any]) -> Floats | None:
    if "profit" in stated:
        return finite(f"{file}: profit", stated["profit"], 2)
    if ("weights" in stated) != ("scores" in stated):
        raise InvalidProblemError(f"{file}: weights (a position) and scores (a document) need each other")
    if "weights" not in stated:
        return None
    weights, scores = (finite(f"{file}: {name}", stated[name], 1) for name in ("weights", "scores"))
    return np.outer(weights, scores)


def _table(file: str, name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidProblemError(f"{file}: {name} must be a table of keys, not a {type(value).__name__}")
    return value


def _only(file: str, stated: dict[str, Any], known: set[str], cure: str) -> None:
    unknown = sorted(stated.keys() - known)
    if unknown:
        raise InvalidProblemError(f"{file} has a key {unknown[0]!r}; {_hint(unknown[0], known)}{cure}")


def _hint(key: str, known: Iterable[str]) -> str:
    """The known key of similar spelling, if there is one."""
    near = get_close_matches(key, known, n=1)
    return f"did you mean {near[0]!r}? " if near else ""


SEQUENCES = ("precedes", "precedence_chain", "implies")  # kinds whose arguments are a list of documents or sets


@dataclass
class _Reader:
    """Adds the constraints to a set one by one."""

    file: str
    attributes: dict[str, Any]
    admissible: RankingSet
    entries: int = 0

    def add(self, number: int, table: dict[str, Any]) -> None:
        location = f"{self.file}, constraint {number}"
        kind, args, where = self._call(location, table)
        name = where.get("name")
        where["name"] = _title(table) if name is None else str(name)
        self.entries += self._entries(kind, args, where)
        if self.entries > ENTRIES:
            raise InvalidProblemError(f"{location}: the rows up to here exceed {ENTRIES} entries; state it in Python")
        try:
            self.admissible = self.admissible.add(kind, *args, **where)
        except FormulationError as error:
            raise InvalidProblemError(f"{location}: {error}") from None
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidProblemError(f"{location}: {kind}() cannot read {shortened(args)} ({error}).") from None

    def _call(self, location: str, table: dict[str, Any]) -> tuple[str, list[Any], dict[str, Any]]:
        """The kind, the arguments and the keywords of a table: `at_most = 2`, or `kind = "at_most"` and `count = 2`."""
        kinds = [kind for kind in KINDS if kind in table]
        named = table.get("kind")
        if "kind" in table and not kinds and isinstance(named, str) and named in KINDS:
            kind, arguments = named, {key: value for key, value in table.items() if key != "kind"}
        elif len(kinds) == 1 and "kind" not in table:
            kind, first = kinds[0], parameters(kinds[0])[0]
            arguments = {key: value for key, value in table.items() if key != kind}
            if first in arguments:
                raise InvalidProblemError(f"{location}: {kind} = ... is its {first}; got a key {first!r}. Remove one.")
            arguments[first] = table[kind]
        else:
            got = " and ".join(kinds) or (f"kind = {named!r}" if "kind" in table else "none")
            hint = "" if kinds else next(filter(None, (_hint(str(key), KINDS) for key in (named, *table))), "")
            raise InvalidProblemError(f"{location}: {hint}it needs one of the kinds {', '.join(KINDS)}; got {got}.")
        known = parameters(kind)
        _only(location, arguments, {*known, "name", "penalty"}, f"{kind} takes {', '.join(known)}, name and penalty")
        needed = parameters(kind, required=True)
        for key in needed:
            if key not in arguments:
                raise InvalidProblemError(f"{location}: {kind} needs {' and '.join(needed)}; got no {key}.")
        arguments = {key: self._value(location, key, value) for key, value in arguments.items()}
        first = known[0]
        if first not in arguments:
            return kind, [], arguments
        value = arguments.pop(first)
        if kind in SEQUENCES:
            if not isinstance(value, list):
                raise InvalidProblemError(f"{location}: {kind} needs a list of documents; got {shortened(value)}.")
            return kind, [self._value(location, "documents", part) for part in value], arguments
        return kind, [value], arguments

    def _entries(self, kind: str, args: list[Any], arguments: dict[str, Any]) -> int:
        """An upper bound of the entries, and of the bits of a mask, of a constraint."""
        k, n = self.admissible.shape
        if kind in ("fix", "forbid", "position_in"):
            return k * n // 8
        if kind in ("precedes", "precedence_chain"):
            sizes = (len(part) if isinstance(part, list | np.ndarray) else 1 for part in args)
            return k * n // 8 + k * k * sum(sizes) // (2 if kind == "precedes" else 1)  # most of a chain are in two
        if kind == "implies":
            return k * n * n
        if kind == "min_distance" or "share" in arguments:
            k *= k  # a row for each window or prefix
        high = len(arguments["positions"]) if isinstance(arguments.get("positions"), list) else k
        if isinstance(arguments.get("by"), list):
            return high * sum(len(labels) if isinstance(labels, tuple) else 1 for labels in arguments["by"])
        documents = arguments.get("documents")
        return high * (len(documents) if isinstance(documents, list) else n)

    def _value(self, location: str, key: str, value: Any) -> Any:
        """Names of attributes become their values; { site = "c.org" } becomes the documents with that value."""
        if key == "by" and isinstance(value, str):
            return [tuple(v) if isinstance(v, list) else v for v in self._attribute(location, value)]
        if key == "documents" and isinstance(value, dict):
            if len(value) != 1:
                raise InvalidProblemError(f'{location}: documents = {{ attribute = "value" }} names one attribute')
            (name, wanted), *_ = value.items()
            return np.array(
                [wanted == v or (isinstance(v, list) and wanted in v) for v in self._attribute(location, name)]
            )
        return value

    def _attribute(self, location: str, name: str) -> list[Any]:
        values = self.attributes.get(name)
        if not isinstance(values, list):
            known = ", ".join(map(repr, self.attributes)) or "none"
            raise InvalidProblemError(f"{location}: there is no list {name!r} under [attributes]; there are {known}")
        return values


def _title(stated: dict[str, Any]) -> str | None:
    """The name of a constraint after its attribute."""
    if isinstance(stated.get("by"), str):
        return str(stated["by"])
    if isinstance(stated.get("documents"), dict):
        return " and ".join(f"{name}[{value!r}]" for name, value in stated["documents"].items())
    return None
