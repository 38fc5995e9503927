"""Problems of the user's own as tapes: forms, files of programs and statements, tapes; nothing is learnt."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

from formulations.forms.form import Form
from formulations.forms.grouped_simplex import GroupedSimplexQP
from formulations.forms.quadratic_program import QuadraticProgram
from formulations.problems.files import read_program, read_statement
from rankopt.errors import DataError, OptionError
from rankopt.experiments.tapes.tape import RecordedProblem, Tape

ENDINGS = (".mps", ".lp", ".mps.gz", ".lp.gz", ".toml", ".npz")
"""How files of problems end."""


def tapes_of(given: Any) -> list[Tape]:
    """One tape of what is solved as rankings and linear programs are, one of quadratic programs, each tape as it is.

    given: a form, a path, a `Tape`, or several of these. Problems are called after their files, else by number.
    """
    several = [given] if isinstance(given, Form | Tape | str | PathLike) else given
    if not isinstance(several, Iterable):
        raise _no_problem(given)
    tapes: list[Tape] = []
    problems: dict[str, list[RecordedProblem]] = {"argmax": [], "master": []}
    for number, one in enumerate(several):
        if isinstance(one, str | PathLike) and fspath(one).endswith(".npz"):
            tapes.append(Tape.load(one))
            continue
        if isinstance(one, Tape):
            tapes.append(one)
            continue
        form = one if isinstance(one, Form) else _read(one)
        kind = "master" if isinstance(form, GroupedSimplexQP | QuadraticProgram) else "argmax"
        name = f"problem {number:03d}" if isinstance(one, Form) else Path(one).name
        taken = {taped.name for taped in problems[kind]}
        problems[kind].append(RecordedProblem.judged(name if name not in taken else f"{name} {number:03d}", form))
    made = [Tape(kind, tuple(taped)) for kind, taped in problems.items() if taped]
    if not made and not tapes:
        raise DataError("a swap without problems measures nothing; give one problem at least")
    return [*made, *tapes]


def _read(path: Any) -> Form:
    """The problem of a file."""
    if not isinstance(path, str | PathLike):
        raise _no_problem(path)
    file = fspath(path)
    if not file.endswith(ENDINGS):
        raise OptionError(f"{file!r} is no file of a problem; its name ends with one of {', '.join(ENDINGS)}")
    if not file.endswith(".toml"):
        return read_program(file)
    stated = read_statement(file)
    if isinstance(stated, np.ndarray) or not isinstance(stated, Form):
        raise OptionError(f"{file} states no profit, and a set alone has nothing to solve; add profit = [...]")
    return stated


def _no_problem(given: Any) -> OptionError:
    return OptionError(
        f"a {type(given).__name__} has no solvers to swap; give Queries, a Sample, a problem of formulations, a file "
        f"({', '.join(ENDINGS)}), several of them, or a Tape"
    )
