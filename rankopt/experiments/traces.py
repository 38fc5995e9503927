"""Traces: the problems of a training run, recorded for replay with any solver.

A trace file is one of `formulations.serialization`: trace.json, plain arrays and their digests. It is validated when
loaded: nothing is unpickled or evaluated, sizes are bounded, and anything that `ProblemTrace.save` does not write
raises a DataError that names the file. Parts that problems share (a set of rankings) are stored once.

`traces_of` makes traces of custom problems: forms, files of programs and statements, traces.
"""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from formulations.arrays import as_path
from formulations.display import CompactReprMixin
from formulations.errors import FormulationError, SerializationError
from formulations.io.toml_file import read_program, read_ranking_set
from formulations.problems.cvxpy_problem import as_form, is_model
from formulations.problems.problem import Problem
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.serialization import Decoder, Encoder, FileFormat
from formulations.solving.solve import solve
from rankopt.errors import DataError, OptionError, UnreadableModelWarning

NAME_LIMIT, PROBLEM_LIMIT = 400, 1 << 18  # limits of a trace: characters of a name, problems

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
    "ShareLimit": "formulations.constraints.constraint:ShareLimit",
    "SoftConstraint": "formulations.constraints.rows:SoftConstraint",
    "PenalizedRanking": "formulations.constraints.constrained_ranking:PenalizedRanking",
    "ProblemTrace": "rankopt.experiments.traces:ProblemTrace",
    "RecordedProblem": "rankopt.experiments.traces:RecordedProblem",
}
"""The classes that can be stored, `name: "module:class"`."""

TRACE = FileFormat(
    "rankopt trace",
    version=1,
    manifest="trace.json",
    classes=lambda: FORMS,
    rule=f"restate the problem as one of {', '.join(name for name in FORMS)}, with numbers and strings as labels",
    is_printable=True,
    json_limit=1 << 27,
    value_limit=1 << 28,
    directory_limit=1 << 26,
)


@dataclass(frozen=True, eq=False)
class RecordedProblem(CompactReprMixin):
    """A problem of a trace. step: the step of the recorded run. known: an attained value and a proven bound from our
    own solvers, against which the claims of other solvers are checked."""

    name: str
    form: Problem
    step: int | None = None
    known: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not _is_name(self.name) or not isinstance(self.form, Problem):
            raise DataError(f"a problem of a trace needs a name and a form; got {self.name!r:.80}")
        if self.step is not None and (type(self.step) is not int or self.step < 0):
            raise DataError(f"a step must be a count; got {self.step!r:.80}")
        if self.known is not None and not (len(self.known) == 2 and all(isinstance(one, float) for one in self.known)):
            raise DataError(f"known must be a value and a bound; got {self.known!r:.80}")
        if not np.isfinite(self.form.scale):
            raise DataError("the numbers of a problem overflow")

    @classmethod
    def judged(cls, name: str, form: Problem, step: int | None = None, seconds: float | None = None) -> RecordedProblem:
        """The problem with the value and bound that the automatic solvers prove, within these seconds."""
        try:
            solution = solve(form, time_limit=seconds)
        except FormulationError:
            return cls(name, form, step)
        known = (float(solution.value), float(solution.bound))
        return cls(name, form, step, None if any(map(math.isnan, known)) else known)


@dataclass(frozen=True, eq=False)
class ProblemTrace(CompactReprMixin):
    """Problems in the order of replay; `label` names their kind."""

    label: str
    problems: tuple[RecordedProblem, ...]

    def __post_init__(self) -> None:
        if not _is_name(self.label) or not isinstance(self.problems, tuple):
            raise DataError(f"a trace needs a label and problems; got {self.label!r:.80}")
        if not 0 < len(self.problems) <= PROBLEM_LIMIT:
            raise DataError(f"a trace has 1 to {PROBLEM_LIMIT} problems; got {len(self.problems)}")
        if not all(isinstance(one, RecordedProblem) for one in self.problems):
            raise DataError("the problems of a trace are RecordedProblem instances")
        if len({one.name for one in self.problems}) < len(self.problems):
            raise DataError("two problems of a trace have one name")

    @property
    def kind(self) -> str:
        """The kind of its rows: "master" for master programs, else "argmax"."""
        return "master" if self.label.partition(":")[0] == "master" else "argmax"

    @cached_property
    def name(self) -> str:
        """The label and a fingerprint of all its numbers, as in "argmax:1f0c9a27"."""
        packed, arrays = _pack([[one.name, one.step, one.form] for one in self.problems])
        digest = hashlib.sha256(json.dumps([self.label, packed]).encode())
        for array in arrays.values():
            digest.update(array)
        return f"{self.label}:{digest.hexdigest()[:8]}"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the trace to a file of plain arrays, by convention with the ending .npz. Replaced atomically."""
        path = as_path(path, OptionError)
        packed, arrays = _pack(self)
        try:
            TRACE.write(path, {"trace": packed}, arrays)
        except SerializationError as error:
            raise OptionError(f"{fspath(path)} cannot be written because {error}; record fewer problems") from error

    @classmethod
    def load(cls, path: str | PathLike[str]) -> ProblemTrace:
        """The trace that `save` wrote. Raises DataError for any other file, OSError where it cannot be opened.

        Files are validated. The known values of problems are claims; `reevaluate` recomputes them.
        """
        path = as_path(path, DataError)
        try:
            manifest, arrays = TRACE.read(path)
            decoder = Decoder(TRACE, arrays)
            trace = decoder.decode(manifest.get("trace"))
            decoder.check_complete()
        except SerializationError as error:
            raise DataError(f"{fspath(path)} is not a trace file, or is damaged: {error}; record it again") from error
        if not isinstance(trace, cls):
            raise DataError(f"{fspath(path)} is damaged: it holds no trace; record it again")
        return trace

    def reevaluate(self) -> ProblemTrace:
        """The trace with values and bounds recomputed by the automatic solvers of this version."""
        fresh = (RecordedProblem.judged(one.name, one.form, one.step) for one in self.problems)
        return replace(self, problems=tuple(fresh))


def _pack(value: Any) -> tuple[Any, dict[str, bytes]]:
    encoder = Encoder(TRACE)
    try:
        return encoder.encode(value, "a problem of the trace"), encoder.arrays
    except SerializationError as error:
        raise OptionError(str(error)) from error


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= NAME_LIMIT and value.isprintable()


ENDINGS = (".mps", ".lp", ".mps.gz", ".lp.gz", ".toml", ".npz")  # endings of the names of problem files


def problem_files(folder: str | PathLike[str]) -> list[str]:
    """The paths of the problem files in a folder, sorted; none for anything else."""
    if not Path(folder).is_dir():
        return []
    return sorted(str(path) for path in Path(folder).iterdir() if path.name.lower().endswith(ENDINGS))


def traces_of(given: Any, seconds: float | None = None) -> list[ProblemTrace]:
    """One trace of ranking problems and linear programs, one of quadratic programs, and each given trace unchanged.

    given: a problem, a model that `as_problem` reads, a path of a file or folder, a `ProblemTrace`, or several of
    these. Problems are named after their files, else by number. seconds: the limit of our own search for the optimum
    of each, against which claims are checked.
    """
    single = isinstance(given, Problem | ProblemTrace | str | PathLike) or is_model(given)
    listed = [given] if single else given
    if not isinstance(listed, Iterable):
        raise _no_problem(given)
    several: list[Any] = []
    for one in listed:
        found = problem_files(one) if isinstance(one, str | PathLike) else []
        several += [path for path in found if _is_readable(path)] if found else [one]
    traces: list[ProblemTrace] = []
    problems: dict[str, list[RecordedProblem]] = {"argmax": [], "master": []}
    for number, one in enumerate(several):
        if isinstance(one, str | PathLike) and fspath(one).endswith(".npz"):
            traces.append(ProblemTrace.load(one))
            continue
        if isinstance(one, ProblemTrace):
            traces.append(one)
            continue
        form = one if isinstance(one, Problem) else as_form(one) if is_model(one) else _read(one)
        kind = "master" if isinstance(form, GroupedSimplexQP | QuadraticProgram) else "argmax"
        name = Path(one).name if isinstance(one, str | PathLike) else f"problem {number:03d}"
        taken = {entry.name for entry in problems[kind]}
        free = name if name not in taken else f"{name} {number:03d}"
        problems[kind].append(RecordedProblem.judged(free, form, seconds=seconds))
    made = [ProblemTrace(kind, tuple(entry)) for kind, entry in problems.items() if entry]
    if not made and not traces:
        raise DataError("a swap needs at least one problem; got none; give one or more problems")
    return [*made, *traces]


def _is_readable(path: str) -> bool:
    """Whether a file of a folder can be read; warns if not, so that it does not cost the rows of the others."""
    try:
        if not path.endswith(".npz"):
            _read(path)
    except (FormulationError, DataError, OptionError) as error:
        warnings.warn(f"{Path(path).name} is left out: {error}", UnreadableModelWarning, stacklevel=2)
        return False
    return True


def _read(path: Any) -> Problem:
    if not isinstance(path, str | PathLike):
        raise _no_problem(path)
    file = fspath(path)
    if not file.lower().endswith(ENDINGS):
        raise OptionError(f"{file!r} is not a problem file; give one whose name ends with one of {', '.join(ENDINGS)}")
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
