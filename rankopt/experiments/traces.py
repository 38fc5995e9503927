"""Traces: the problems of a training run, recorded for replay with any solver.

A trace file is an .npz of plain arrays. It is validated when loaded: nothing is unpickled or evaluated, sizes are
bounded, and anything that `ProblemTrace.save` does not write raises a DataError that names the file.

Problems are stored as arrays and JSON records of a closed list of classes. Records refer to each other by number, so
shared parts (a set of rankings) are stored once. Invariants that the classes do not check themselves are checked here.

`tapes_of` makes traces of custom problems: forms, files of programs and statements, traces.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from formulations.constraints.constraint import Constraint
from formulations.display import CompactReprMixin
from formulations.errors import FormulationError
from formulations.io.toml_file import read_program, read_ranking_set
from formulations.problems.problem import Problem
from formulations.problems.program import Block
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking import RankTwoAssignment
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.registry import load
from formulations.solving.solve import solve
from rankopt.errors import DataError, OptionError

FORMAT = "rankopt tape 1"

BYTES, TEXT, PROBLEMS, WORD = 1 << 31, 1 << 27, 1 << 18, 400
"""Limits of a trace: bytes unpacked, bytes of its JSON, problems and records, characters of a name."""

_UNREADABLE = (
    zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, ValueError, KeyError, EOFError, RuntimeError, TypeError,
    NotImplementedError, OverflowError, RecursionError, SyntaxError, IndexError, AttributeError, MemoryError,
)  # fmt: skip


def members(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The JSON of a trace file and its arrays by name. OSError where the file cannot be opened."""
    try:
        with zipfile.ZipFile(path) as file:
            listed = file.infolist()
            if sum(one.file_size for one in listed) > BYTES or len({one.filename for one in listed}) != len(listed):
                raise DataError(
                    f"{fspath(path)} is not a trace file: it unpacks to more than {BYTES} bytes or has duplicate parts;"
                    " record it again"
                )
            arrays = {one.filename.removesuffix(".npy"): _array(file, one) for one in listed}
        meta = arrays.pop("meta")
        if meta.dtype != np.uint8 or meta.size > TEXT:
            raise ValueError("its JSON is no text, or too long")
        return json.loads(meta.tobytes().decode()), arrays
    except _UNREADABLE as error:
        why = f"{type(error).__name__} {error}"[:200].strip()
        raise DataError(f"{fspath(path)} is not a trace file, or is damaged: {why}; record it again") from error


def _array(file: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """One array; its header is checked before memory is allocated."""
    content = io.BytesIO(file.read(member))
    version = npy.read_magic(content)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    shape, by_columns, dtype = read[version](content)
    if dtype.kind not in "biuf" or content.tell() + math.prod(shape) * dtype.itemsize != member.file_size:
        raise ValueError(f"its part {member.filename[:40]!r} is no array of numbers, or of another size")
    flat = np.frombuffer(content.read(), dtype=dtype)
    return flat.reshape(shape, order="F" if by_columns else "C")


def checked_meta(path: str | PathLike[str], meta: Any) -> tuple[str, list[tuple[str, int | None, int]]]:
    """The label, and name, step and number of each problem. Raises DataError for invalid data."""
    file = fspath(path)
    found = meta.get("format") if isinstance(meta, dict) else None
    if found != FORMAT:
        raise DataError(f"{file} has the format {str(found)[:40]!r}, not {FORMAT!r}; record it again")
    label, problems, records = (meta.get(name) for name in ("label", "problems", "records"))
    if not (_is_word(label) and isinstance(problems, list) and isinstance(records, list)):
        raise DataError(f"{file} is damaged: a trace needs a label, problems and records; record it again")
    if not 0 < len(problems) <= PROBLEMS or len(records) > PROBLEMS:
        raise DataError(f"{file} has {len(problems)} problems, {len(records)} records; a trace has 1 to {PROBLEMS}")
    for problem in problems:
        fits = isinstance(problem, list) and len(problem) == 3 and _is_word(problem[0])
        if not fits or not (problem[1] is None or _is_count(problem[1])) or not _is_count(problem[2]):
            raise DataError(f"{file} is damaged: a problem is a name, a step and a number of a record; record it again")
    if len({problem[0] for problem in problems}) < len(problems):
        raise DataError(f"{file} has two problems of one name; record it again")
    return label, [(name, step, number) for name, step, number in problems]


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= WORD and value.isprintable()


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def check_parts(kind: type, parts: dict[str, Any]) -> None:
    """Check the parts of an object of this class before it is built."""
    check = CHECKS.get(kind.__name__)
    if check is not None:
        check(parts)
    for part in parts.values():
        if isinstance(part, str) and not part.isprintable():
            raise ValueError("its text has characters that cannot be printed")


def _block(parts: dict[str, Any]) -> None:
    _hold(isinstance(parts["label"], str) and isinstance(parts["index"], tuple), "a block is a word and its index")
    flat = [part for one in parts["index"] for part in (one if isinstance(one, tuple) else (one,))]
    _hold(
        all(isinstance(part, str | int | float | None) for part in flat), "the labels of a block are words or numbers"
    )
    _hold(
        all(part >= 0 for part in parts["index"] if isinstance(part, int)) or parts.get("by_label"), "a block below 0"
    )


def _constraint(parts: dict[str, Any]) -> None:
    matrix, lower, upper = (parts[name] for name in ("matrix", "lower", "upper"))
    labels, forbids, says = parts.get("labels"), parts.get("forbids"), parts["says"]
    _hold(issparse(matrix) and bool(np.isfinite(matrix.data).all()), "the rows of a constraint are a sparse matrix")
    for limit in (lower, upper):
        fits = isinstance(limit, np.ndarray) and limit.dtype == np.float64 and limit.shape == matrix.shape[:1]
        _hold(fits and not np.isnan(limit).any(), "a constraint has one limit a row")
    described = isinstance(says, str) or (isinstance(says, tuple) and len(says) == lower.size)
    _hold(isinstance(parts["name"], str) and described, "a constraint has a name and a description")
    _hold(labels is None or (isinstance(labels, tuple) and len(labels) == lower.size), "a label a row")
    if forbids is not None:
        fits = isinstance(forbids, np.ndarray) and forbids.dtype == np.bool_ and forbids.size == matrix.shape[1]
        _hold(fits, "forbidden cells are a mask of all cells")


def _ranking_set(parts: dict[str, Any]) -> None:
    cells = parts["documents"] * parts["positions"]
    constraints = parts.get("constraints", ())
    _hold(isinstance(constraints, tuple), "the constraints of a set are a list")
    for one in constraints:
        _hold(isinstance(one, Constraint) and one.matrix.shape[1] == cells, "a constraint is over the cells of its set")
        shape = (parts["positions"], parts["documents"])
        _hold(one.forbids is None or one.forbids.shape in (shape, (cells,)), "a mask has the shape of its set")


def _constrained_ranking(parts: dict[str, Any]) -> None:
    ranked = parts.get("ranked")
    if ranked is None:
        return
    _hold(isinstance(ranked, RankTwoAssignment), "without its set the problem is a ranking")
    same = np.shape(parts["profit"]) == (ranked.positions, ranked.documents)
    _hold(same and np.allclose(ranked.assignment().profit, parts["profit"]), "the ranking without the set is another")


def _linear_program(parts: dict[str, Any]) -> None:
    rows, columns = np.shape(parts["matrix"])
    _named(parts.get("variables"), columns)
    _named(parts.get("rows"), rows)


def _min_cost_flow(parts: dict[str, Any]) -> None:
    _named(parts.get("arcs"), np.size(parts["cost"]))
    _named(parts.get("nodes"), np.size(parts["supply"]))


def _grouped_simplex(parts: dict[str, Any]) -> None:
    gram, slopes = parts.get("known_gram"), parts["slopes"]
    if gram is not None:
        _hold(np.allclose(gram, slopes @ slopes.T), "the Gram matrix is that of other planes")


def _named(blocks: Any, size: int) -> None:
    if blocks:
        _hold(isinstance(blocks, tuple) and all(isinstance(one, Block) for one in blocks), "names are blocks")
        _hold(sum(block.size for block in blocks) == size, "there are more names than what they name, or fewer")


def _hold(true: Any, why: str) -> None:
    if not true:
        raise ValueError(why)


CHECKS = {
    "Block": _block,
    "ConstrainedRanking": _constrained_ranking,
    "Constraint": _constraint,
    "GroupedSimplexQP": _grouped_simplex,
    "LinearProgram": _linear_program,
    "MinCostFlow": _min_cost_flow,
    "RankingSet": _ranking_set,
}
"""Checks by class; the other classes check themselves."""


FORMS = {
    "Assignment": "formulations.problems.assignment:Assignment",
    "Block": "formulations.problems.program:Block",
    "ConstrainedRanking": "formulations.constraints.constrained_ranking:ConstrainedRanking",
    "Constraint": "formulations.constraints.constraint:Constraint",
    "GainTable": "formulations.problems.relevance_values:GainTable",
    "FeatureMap": "formulations.problems.relevance_values:FeatureMap",
    "GroupedSimplexQP": "formulations.problems.simplex_qp:GroupedSimplexQP",
    "LatticePath": "formulations.problems.lattice_path:LatticePath",
    "LinearProgram": "formulations.problems.linear_program:LinearProgram",
    "MinCostFlow": "formulations.problems.min_cost_flow:MinCostFlow",
    "RelevanceRanking": "formulations.problems.relevance_ranking:RelevanceRanking",
    "GroupSequence": "formulations.problems.group_sequence:GroupSequence",
    "QuadraticProgram": "formulations.problems.quadratic_program:QuadraticProgram",
    "RankTwoAssignment": "formulations.problems.ranking:RankTwoAssignment",
    "RankingSet": "formulations.constraints.ranking_set:RankingSet",
    "SoftConstraint": "formulations.constraints.rows:SoftConstraint",
    "PenalizedRanking": "formulations.constraints.constrained_ranking:PenalizedRanking",
}
"""The classes that can be stored, `name: "module:class"`."""


LARGEST = range(1 << 31)
"""Valid numbers of rows or columns of a matrix."""


_DAMAGE = (
    FormulationError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, MemoryError,
)  # fmt: skip


class Packed:
    """Collects records as JSON and their arrays."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.arrays: list[NDArray[Any]] = []
        self._known: dict[int, tuple[int, Any]] = {}

    def add(self, record: Any) -> int:
        """The index of the record."""
        if id(record) in self._known:
            return self._known[id(record)][0]
        name = type(record).__name__
        if name not in FORMS or load(FORMS[name]) is not type(record):
            raise OptionError(
                f"a {name} cannot be stored in a trace; restate the problem as one of {', '.join(sorted(FORMS))}"
            )
        parts = {part.name: self._plain(getattr(record, part.name)) for part in fields(record) if part.init}
        self.records.append({"class": name, "fields": parts})
        number = len(self.records) - 1
        self._known[id(record)] = number, record  # a reference, so that its id is not reused
        return number

    def _plain(self, value: Any) -> Any:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.ndarray):
            if value.dtype.kind not in "biuf":
                raise OptionError(f"an array of {value.dtype} cannot be stored in a trace; give numbers")
            self.arrays.append(value)
            return {"array": len(self.arrays) - 1}
        if isinstance(value, csr_array):
            parts = [self._plain(part) for part in (value.data, value.indices, value.indptr)]
            return {"csr": parts, "shape": list(map(int, value.shape))}
        if isinstance(value, tuple | list):
            return {"tuple": [self._plain(item) for item in value]}
        if is_dataclass(value):
            return {"record": self.add(value)}
        raise OptionError(f"a {type(value).__name__} cannot be stored in a trace; use numbers and strings as labels")


def unpacked(records: list[dict[str, Any]], arrays: list[NDArray[Any]], wanted: list[int]) -> list[Problem]:
    """The problems with these indices. Raises DataError for invalid records."""
    made: list[Any] = []

    def restored(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        if "array" in value:
            return arrays[_index(value["array"], arrays)]
        if "csr" in value:
            return _matrix([restored(part) for part in value["csr"]], value["shape"])
        if "record" in value:
            return made[_index(value["record"], made)]
        return tuple(restored(item) for item in value["tuple"])

    try:
        for record in records:
            parts = {name: restored(value) for name, value in record["fields"].items()}
            kind = load(FORMS[record["class"]])
            check_parts(kind, parts)
            made.append(kind(**parts))
        forms = [made[_index(number, made)] for number in wanted]
        for form in forms:
            if not isinstance(form, Problem):
                raise TypeError(f"a {type(form).__name__} is no problem")
            if not np.isfinite(form.scale):
                raise ValueError("its numbers overflow")
    except (
        FormulationError,
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        if isinstance(error, DataError):
            raise
        why = f"{type(error).__name__} {error}"[:200]
        raise DataError(f"the trace is damaged, or not written by this version: {why}; record it again") from error
    return forms


def _index(number: Any, among: Sequence[Any]) -> int:
    """A nonnegative index into a sequence. Raises IndexError for an invalid one."""
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < len(among):
        raise IndexError(f"{str(number)[:40]} is not an index below {len(among)}")
    return number


def _matrix(parts: list[Any], shape: Any) -> csr_array:
    """A sparse matrix with checked indices."""
    data, indices, starts = parts
    rows, columns = (_index(side, LARGEST) for side in shape)
    if data.ndim != 1 or data.dtype.kind != "f" or indices.dtype.kind != "i" or starts.dtype.kind != "i":
        raise TypeError("a sparse matrix has entries, columns and starts")
    if indices.shape != data.shape or starts.shape != (rows + 1,) or starts[0] != 0 or starts[-1] != data.size:
        raise ValueError("a sparse matrix whose rows do not fit its entries")
    if (np.diff(starts) < 0).any() or (data.size and not 0 <= indices.min() <= indices.max() < columns):
        raise ValueError("a sparse matrix with entries outside of it")
    return csr_array((data, indices, starts), shape=(rows, columns))


@dataclass(frozen=True, eq=False)
class RecordedProblem(CompactReprMixin):
    """A problem of a trace. step: the step of the recorded run. known: an attained value and a proven bound from our
    own solvers, against which the claims of other solvers are checked."""

    name: str
    form: Problem
    step: int | None = None
    known: tuple[float, float] | None = None

    @classmethod
    def judged(cls, name: str, form: Problem, step: int | None = None) -> RecordedProblem:
        """The problem with the value and bound that the automatic solvers prove."""
        try:
            solution = solve(form)
        except FormulationError:
            return cls(name, form, step)
        return cls(name, form, step, (solution.value, solution.bound))


@dataclass(frozen=True, eq=False)
class ProblemTrace(CompactReprMixin):
    """Problems in the order of replay; `label` names their kind."""

    label: str
    problems: tuple[RecordedProblem, ...]

    @classmethod
    def from_problems(cls, forms: Problem | Iterable[Problem], label: str | None = None) -> ProblemTrace:
        """A trace of these problems."""
        several = [forms] if isinstance(forms, Problem) else list(forms)
        if not several:
            raise DataError("a trace needs at least one problem; got none; give one or more problems")
        problems = tuple(RecordedProblem.judged(f"problem {number:03d}", form) for number, form in enumerate(several))
        masters = isinstance(several[0], GroupedSimplexQP | QuadraticProgram)
        return cls(label or ("master" if masters else "argmax"), problems)

    @property
    def kind(self) -> str:
        """The kind of its rows: "master" for master programs, else "argmax"."""
        return "master" if self.label.partition(":")[0] == "master" else "argmax"

    @cached_property
    def _packed(self) -> tuple[bytes, dict[str, Any]]:
        packed = Packed()
        listed = [[taped.name, taped.step, packed.add(taped.form)] for taped in self.problems]
        meta = {"format": FORMAT, "label": self.label, "problems": listed, "records": packed.records}
        return _as_text(meta), {f"a{i}": array for i, array in enumerate(packed.arrays)}

    @cached_property
    def name(self) -> str:
        """The label and a fingerprint of all its numbers, as in "argmax:1f0c9a27"."""
        return _fingerprint(self.label, *self._packed)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the trace to an .npz file of plain arrays."""
        meta, arrays = self._packed
        known = np.array([taped.known or (np.nan, np.nan) for taped in self.problems])
        with Path(path).open("wb") as file:
            np.savez_compressed(file, meta=np.frombuffer(meta, dtype=np.uint8), known=known, **arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> ProblemTrace:
        """The trace that `save` wrote, with the fingerprint of the file. Raises DataError for any other file.

        Files are validated. The known values of problems are claims; `reevaluate` recomputes them.
        """
        meta, arrays = members(path)
        label, listed = checked_meta(path, meta)
        known = arrays.pop("known", np.empty(0))
        names = [f"a{i}" for i in range(len(arrays))]
        if known.shape != (len(listed), 2) or arrays.keys() != {*names}:
            raise DataError(f"{path} is damaged: it lacks arrays, or has others; record it again")
        forms = unpacked(meta["records"], [arrays[name] for name in names], [number for _, _, number in listed])
        pairs = [None if np.isnan(pair).any() else (float(pair[0]), float(pair[1])) for pair in known]
        parts = zip(listed, forms, pairs, strict=True)
        trace = cls(label, tuple(RecordedProblem(name, form, step, pair) for (name, step, _), form, pair in parts))
        trace.__dict__["name"] = _fingerprint(label, _as_text(meta), {name: arrays[name] for name in names})
        return trace

    def reevaluate(self) -> ProblemTrace:
        """The trace with values and bounds recomputed by the automatic solvers of this version."""
        return replace(
            self, problems=tuple(RecordedProblem.judged(one.name, one.form, one.step) for one in self.problems)
        )


def _as_text(meta: dict[str, Any]) -> bytes:
    return json.dumps(meta, ensure_ascii=False).encode()


def _fingerprint(label: str, meta: bytes, arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(meta)
    for array in arrays.values():
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return f"{label}:{digest.hexdigest()[:8]}"


ENDINGS = (".mps", ".lp", ".mps.gz", ".lp.gz", ".toml", ".npz")
"""Endings of the names of problem files."""


def tapes_of(given: Any) -> list[ProblemTrace]:
    """One trace of ranking problems and linear programs, one of quadratic programs, and each given trace unchanged.

    given: a form, a path, a `ProblemTrace`, or several of these. Problems are named after their files, else by number.
    """
    several = [given] if isinstance(given, Problem | ProblemTrace | str | PathLike) else given
    if not isinstance(several, Iterable):
        raise _no_problem(given)
    traces: list[ProblemTrace] = []
    problems: dict[str, list[RecordedProblem]] = {"argmax": [], "master": []}
    for number, one in enumerate(several):
        if isinstance(one, str | PathLike) and fspath(one).endswith(".npz"):
            traces.append(ProblemTrace.load(one))
            continue
        if isinstance(one, ProblemTrace):
            traces.append(one)
            continue
        form = one if isinstance(one, Problem) else _read(one)
        kind = "master" if isinstance(form, GroupedSimplexQP | QuadraticProgram) else "argmax"
        name = f"problem {number:03d}" if isinstance(one, Problem) else Path(one).name
        taken = {taped.name for taped in problems[kind]}
        problems[kind].append(RecordedProblem.judged(name if name not in taken else f"{name} {number:03d}", form))
    made = [ProblemTrace(kind, tuple(taped)) for kind, taped in problems.items() if taped]
    if not made and not traces:
        raise DataError("a swap needs at least one problem; got none; give one or more problems")
    return [*made, *traces]


def _read(path: Any) -> Problem:
    """The problem of a file."""
    if not isinstance(path, str | PathLike):
        raise _no_problem(path)
    file = fspath(path)
    if not file.endswith(ENDINGS):
        raise OptionError(
            f"{file!r} is not a problem file; give a file whose name ends with one of {', '.join(ENDINGS)}"
        )
    if not file.endswith(".toml"):
        return read_program(file)
    stated = read_ranking_set(file)
    if isinstance(stated, np.ndarray) or not isinstance(stated, Problem):
        raise OptionError(f"{file} has no profit, so there is no objective to solve for; add profit = [...]")
    return stated


def _no_problem(value: Any) -> OptionError:
    return OptionError(
        f"a {type(value).__name__} is not a problem; give Queries, a Sample, a problem of formulations, a file "
        f"({', '.join(ENDINGS)}), several of them, or a ProblemTrace"
    )
