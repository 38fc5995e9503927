"""A linear or quadratic program in a file: .mps or .lp, also packed (.gz).

sets         variables and rows, named by the file
integrality  whole variables where the file says so; nothing is promised of the others
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np

from formulations.errors import InvalidProblem, Unsupported
from formulations.forms.linear_program import LinearProgram
from formulations.forms.quadratic_program import QuadraticProgram
from formulations.notation.lp_reading import read_lp
from formulations.notation.mps_reading import read_mps
from formulations.notation.program import Program

__all__ = ["read_program"]

READERS = {".mps": read_mps, ".lp": read_lp}

CHECKED = 3000
"""Variables up to which a hessian is looked at: whether it is positive semidefinite."""


def read_program(path: str | PathLike[str]) -> LinearProgram | QuadraticProgram:
    """The program of a file.

    Raises InvalidProblem naming file, line and cure for what is none, or is no convex one; Infeasible where limits
    cross; Unsupported for other formats; OSError where the file cannot be read.
    """
    file = Path(path)
    suffix = Path(file.stem).suffix if file.suffix == ".gz" else file.suffix
    if suffix not in READERS:
        raise Unsupported(f"{file.name!r} cannot be read: the format is not known; end the name with .mps or .lp")
    program = READERS[suffix](file)
    if program.hessian is None:
        return LinearProgram.of(program)
    _check_convex(file.name, program)
    return QuadraticProgram.of(program)


def _check_convex(name: str, program: Program) -> None:
    assert program.hessian is not None
    if program.integer is not None:
        raise InvalidProblem(f"{name} has squares and whole variables, which no form here has; leave one of them out")
    if program.maximises:
        raise InvalidProblem(f"{name} maximises with squares; state the minimum of the negative")
    size = program.objective.size
    if size > CHECKED:
        raise InvalidProblem(f"{name}: squares of {size} variables are more than {CHECKED}; state it in Python")
    hessian = program.hessian.toarray()
    values = np.linalg.eigvalsh(hessian)
    if not np.array_equal(hessian, hessian.T) or values[0] < -1e-9 * max(1.0, values[-1]):
        raise InvalidProblem(f"{name}: its squares are not convex (an eigenvalue is {values[0]:.3g}); mend the hessian")
