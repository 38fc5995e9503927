"""Is this optimum whole? A question apart from total unimodularity, asked of a problem with its objective.

The relaxation (every variable real) is worth at least as much as the best whole point, of a maximum; the difference is
the integrality gap. It can be 0 for a matrix that is not totally unimodular, and of a problem whose own variables may
be real it says what their wholeness would cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from formulations.errors import Unsupported
from formulations.forms.form import Form, Solution
from formulations.forms.linear_program import LinearProgram
from formulations.integrality.statement import stated
from formulations.notebook_view import lines
from formulations.solving.solve import solve

__all__ = ["IntegralityGap", "integrality_gap"]


@dataclass(frozen=True, eq=False)
class IntegralityGap:
    """The relaxation's optimum against the best whole point, values and bounds recomputed from the data.

    integral   whether the gap is no more than rounding: the values agree, and the whole point's is proved best
    absolute   by how much the relaxation overestimates a maximum (underestimates a minimum)
    relative   the same as a share of the whole point's value; of 1 where that is smaller
    """

    relaxed: Solution
    whole: Solution
    integral: bool
    absolute: float
    relative: float

    def _repr_html_(self) -> str:
        return lines(str(self))

    def __str__(self) -> str:
        if self.integral:
            return f"This optimum is whole: {self.whole.value:g} with and without integers"
        return (
            f"This optimum is not whole: {self.relaxed.value:g} without integers, {self.whole.value:g} with them, "
            f"{self.absolute:g} ({self.relative:.2%}) apart"
        )


def integrality_gap(problem: Form | Any, solver: Any = "highs") -> IntegralityGap:
    """Solve a problem with real and with whole variables, and compare.

    problem  a form, or anything that has a linear `program`; its objective is asked about
    solver   one that accepts linear programs with integers

    Raises what `solve` raises; `Unsupported` for a bare matrix, which has no objective.
    """
    said = stated(problem).program
    if said is None:
        raise Unsupported("a bare matrix has no objective, so no optimum; give a problem, or ask verify_integrality")
    program = LinearProgram.of(said)
    relaxed = solve(replace(program, integer=None), solver)
    whole = solve(replace(program, integer=np.ones(program.objective.size, dtype=np.bool_)), solver)
    absolute = max(0.0, (relaxed.value - whole.value) * (1.0 if program.maximises else -1.0))
    slack = 1e-7 * max(1.0, abs(whole.value)) + program.rounding
    return IntegralityGap(relaxed, whole, absolute <= slack, absolute, absolute / max(1.0, abs(whole.value)))
