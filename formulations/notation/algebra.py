"""Programs as a reader would write them, in algebra.

>>> from formulations.forms.assignment import Assignment
>>> print(Assignment(np.array([[3.0, 2.0, -1.0]])))
maximise    3 π[0, 0] + 2 π[0, 1] - π[0, 2]
subject to  position[0]: π[0, 0] + π[0, 1] + π[0, 2] = 1
            document[0]: π[0, 0] <= 1
            document[1]: π[0, 1] <= 1
            document[2]: π[0, 2] <= 1
            0 <= π[0, 0], π[0, 1], π[0, 2] <= 1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np

from formulations.notation.program import Program


def algebra(program: Program) -> str:
    """The program in full: a line for the objective, one a row, then the limits of the variables."""
    names = [program.variable_name(j) for j in range(program.objective.size)]
    objective = summed(zip(program.objective, names, strict=True))
    if program.hessian is not None:
        squares = program.hessian.tocoo()
        curved = [
            (weight, f"{names[i]}²" if i == j else f"{names[i]} {names[j]}")
            for i, j, weight in zip(*squares.coords, squares.data, strict=True)
        ]
        objective = f"{objective} + ½ ({summed(curved)})"
    return laid_out("maximise" if program.maximises else "minimise", objective, _constraints(program, names))


def _constraints(program: Program, names: Sequence[str]) -> list[str]:
    lines = []
    for i, (low, high) in enumerate(zip(program.row_lower, program.row_upper, strict=True)):
        entries = slice(program.matrix.indptr[i], program.matrix.indptr[i + 1])
        terms = zip(program.matrix.data[entries], (names[j] for j in program.matrix.indices[entries]), strict=True)
        lines.append(f"{program.row_name(i)}: {_between(low, summed(terms), high)}")
    limits = zip(program.lower, program.upper, names, strict=True)
    for (low, high), members in groupby(limits, key=lambda limit: limit[:2]):
        lines.append(_between(low, ", ".join(name for _, _, name in members), high))
    if program.integer is not None:
        lines.append(f"whole: {', '.join(names[j] for j in np.flatnonzero(program.integer).tolist())}")
    return lines


def _between(low: float, middle: str, high: float) -> str:
    if low == high:
        return f"{middle} = {number(low)}"
    left = f"{number(low)} <= " if np.isfinite(low) else ""
    right = f" <= {number(high)}" if np.isfinite(high) else ""
    return f"{left}{middle}{right}" if left or right else f"{middle} free"


def summed(terms: Iterable[tuple[float, str]]) -> str:
    """3 x - y, zero terms left out."""
    text = ""
    for weight, name in terms:
        if weight:
            size = "" if abs(weight) == 1 else f"{number(abs(weight))} "
            sign = ("-" if weight < 0 else "") if not text else " - " if weight < 0 else " + "
            text += f"{sign}{size}{name}"
    return text or "0"


def number(value: float) -> str:
    """Six digits, no more than it needs."""
    return f"{value:.6g}"


def laid_out(goal: str, objective: str, constraints: Sequence[str]) -> str:
    """The objective behind its goal, and below it the constraints, a line each."""
    lines = [f"{goal:<12}{objective}"]
    lines += [f"{'' if i else 'subject to':<12}{line}" for i, line in enumerate(constraints)]
    return "\n".join(lines)
