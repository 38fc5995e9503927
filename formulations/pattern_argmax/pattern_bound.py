"""What no order of a pattern problem exceeds where its lattice is too large to be written out: the argmax itself.

Its way is exact by proof (`pattern_layout`), so its value and what double precision may have hidden from it are a
bound, whoever found the order that is judged. It is worked out from the problem's data alone.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from formulations.errors import Unsupported
from formulations.forms.form import Form, Solution, status_of
from formulations.forms.pattern_edges import MOST_STATES
from formulations.forms.pattern_ranking import PatternRanking
from formulations.pattern_argmax.pattern_layout import layout_of

__all__ = ["searched_bound", "with_searched_bound"]


def searched_bound(problem: PatternRanking) -> float:
    """The value of the best order, rounded up; infinite where potentials prove more, being written out, and where the
    argmax has too many states itself."""
    if problem.chains.states <= MOST_STATES:
        return float("inf")
    from formulations.pattern_argmax.pattern_batch import argmax_of_patterns

    batch = problem.alone()
    layout = layout_of(batch)
    try:
        _, told = argmax_of_patterns(batch, layout, layout.way)
    except Unsupported:
        return float("inf")
    left = np.maximum(layout.hidden(batch, layout.way), 2.0 * batch.left)
    return float(np.nextafter(told.value[0] + left[0], np.inf))


def with_searched_bound(problem: Form, solution: Solution) -> Solution:
    """The solution with this bound, where that is better."""
    if not isinstance(problem, PatternRanking) or solution.bound - solution.value <= problem.rounding:
        return solution
    bound = min(solution.bound, max(searched_bound(problem), solution.value))
    status = status_of(bound - solution.value, solution.violation, problem.rounding, problem.tolerance)
    return replace(solution, bound=bound, status=status)
