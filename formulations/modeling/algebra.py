"""Problems as a reader would write them: small ones in algebra, large ones in one line.

>>> from formulations.modeling.assignment import Assignment
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

from formulations.modeling.form import Form
from formulations.modeling.grouped_simplex import GroupedSimplexQP
from formulations.modeling.linear_program import LinearProgram
from formulations.modeling.quadratic_program import QuadraticProgram

__all__ = ["algebra"]

SMALL = 400
"""Most numbers in a problem that is printed in full."""


def algebra(problem: Form) -> str:
    """The problem in algebra if it is small, else its kind and size."""
    from formulations.modeling.bridges import restated

    if problem.size > SMALL:
        return f"{type(problem).__name__} of {problem.extent}"
    if isinstance(problem, GroupedSimplexQP):
        return _margin_dual(problem)
    if isinstance(problem, QuadraticProgram):
        linear = problem.linearised(problem.linear)
        names = [linear.variable_name(j) for j in range(problem.linear.size)]
        squares = problem.hessian.tocoo()
        curved = [
            (weight, f"{names[i]}²" if i == j else f"{names[i]} {names[j]}")
            for i, j, weight in zip(*squares.coords, squares.data, strict=True)
        ]
        objective = f"{_sum(zip(problem.linear, names, strict=True))} + ½ ({_sum(curved)})"
        return _laid_out("minimise", objective, _constraints(linear))
    program = restated(problem, LinearProgram)
    names = [program.variable_name(j) for j in range(program.objective.size)]
    goal = "maximise" if program.maximises else "minimise"
    return _laid_out(goal, _sum(zip(program.objective, names, strict=True)), _constraints(program))


def _margin_dual(problem: GroupedSimplexQP) -> str:
    names = [f"α[{i}]" for i in range(problem.values.size)]
    steps = [_sum(zip(column, names, strict=True)) for column in problem.slopes.T]
    squares = " + ".join(f"({step})²" for step in steps)
    objective = f"{_sum(zip(problem.values, names, strict=True))} - {_number(0.5 / problem.lam)} ({squares})"
    groups = [
        f"group[{g}]: {_sum((1.0, names[i]) for i in np.flatnonzero(problem.group == g))} <= {_number(capacity)}"
        for g, capacity in enumerate(problem.capacity)
    ]
    return _laid_out("maximise", objective, [*groups, f"0 <= {', '.join(names)}"])


def _constraints(program: LinearProgram) -> list[str]:
    names = [program.variable_name(j) for j in range(program.objective.size)]
    lines = []
    for i, (low, high) in enumerate(zip(program.row_lower, program.row_upper, strict=True)):
        entries = slice(program.matrix.indptr[i], program.matrix.indptr[i + 1])
        terms = zip(program.matrix.data[entries], (names[j] for j in program.matrix.indices[entries]), strict=True)
        lines.append(f"{program.row_name(i)}: {_between(low, _sum(terms), high)}")
    limits = zip(program.lower, program.upper, names, strict=True)
    for (low, high), members in groupby(limits, key=lambda limit: limit[:2]):
        lines.append(_between(low, ", ".join(name for _, _, name in members), high))
    if program.integer is not None:
        lines.append(f"whole: {', '.join(names[j] for j in np.flatnonzero(program.integer))}")
    return lines


def _between(low: float, middle: str, high: float) -> str:
    if low == high:
        return f"{middle} = {_number(low)}"
    left = f"{_number(low)} <= " if np.isfinite(low) else ""
    right = f" <= {_number(high)}" if np.isfinite(high) else ""
    return f"{left}{middle}{right}" if left or right else f"{middle} free"


def _sum(terms: Iterable[tuple[float, str]]) -> str:
    """3 x - y, zero terms left out."""
    text = ""
    for weight, name in terms:
        if weight:
            size = "" if abs(weight) == 1 else f"{_number(abs(weight))} "
            sign = ("-" if weight < 0 else "") if not text else " - " if weight < 0 else " + "
            text += f"{sign}{size}{name}"
    return text or "0"


def _number(value: float) -> str:
    return f"{value:.6g}"


def _laid_out(goal: str, objective: str, constraints: Sequence[str]) -> str:
    lines = [f"{goal:<12}{objective}"]
    lines += [f"{'' if i else 'subject to':<12}{line}" for i, line in enumerate(constraints)]
    return "\n".join(lines)
