"""What a solver claims beside its point, held against what is proven: never needed, but a false claim is told."""

from __future__ import annotations

import numpy as np

from formulations.forms.form import Solution
from formulations.forms.grouped_simplex import GroupedSimplexQP
from formulations.forms.pattern_ranking import PatternRanking
from formulations.forms.quadratic_program import QuadraticProgram
from formulations.forms.rank_two_assignment import RankTwoAssignment, RankTwoBatch
from formulations.solvers.batch_solution import BatchSolution
from formulations.solvers.pattern_solution import PatternSolution
from formulations.solvers.solver import BatchSolver, Solver
from rankopt.experiments.tapes.tape import RecordedProblem

__all__ = ["batch_claim", "refuted_claim", "unbeaten"]

LOOSE = 1e-6
"""By how much of the scale a claim may be off: solvers round, and their tolerances are their own."""


def refuted_claim(taped: RecordedProblem, solution: Solution) -> str | None:
    """Which claim in `details` is false: told_value, told_bound, or a told_status of "OPTIMAL".

    What the tape says is attained counts up to the bound that is proven of this answer: tapes may be another's.
    """
    form, told = taped.form, solution.details
    sign, slack = (1.0 if form.maximises else -1.0), LOOSE * (form.scale or 1.0)
    attained = max(sign * solution.value, *(min(sign * value, sign * solution.bound) for value in _attained(taped)))
    value, bound = (_number(told.get(name)) for name in ("told_value", "told_bound"))
    if value is not None and not abs(value - solution.value) <= slack:
        return f"it says that the value is {value:.9g}, and it is {solution.value:.9g}"
    if bound is not None and sign * bound < attained - slack:
        return f"it says that nothing beats {bound:.9g}, but {sign * attained:.9g} is attained"
    if told.get("told_status") == "OPTIMAL" and sign * solution.value < attained - slack:
        return f"it calls {solution.value:.9g} optimal, but {sign * attained:.9g} is attained"
    return None


def unbeaten(taped: RecordedProblem, solution: Solution, tolerance: float) -> bool:
    """Whether an answer in whole numbers with a gap is the best that is known: our own best proof leaves a gap too, and
    no point of ours is better. What the solver's search claims to be the bound, where it tells one, is its value."""
    form = taped.form
    if isinstance(form, GroupedSimplexQP | QuadraticProgram):
        return False
    whole = form.program.integer
    if whole is None or not whole.any():
        return False
    sign, slack = (1.0 if form.maximises else -1.0), tolerance * (form.scale or 1.0)
    told = _number(solution.details.get("told_bound"))
    if told is not None and not abs(told - solution.value) <= slack:
        return False
    if taped.known is None:
        return told is not None
    value, bound = taped.known
    return sign * (bound - value) > slack and sign * solution.value >= sign * value - slack


def batch_claim(taped: RecordedProblem, solver: Solver) -> str | None:
    """Which claim is false of a solver that takes whole batches."""
    form = taped.form
    if not isinstance(solver, BatchSolver) or type(form) not in solver.accepts:
        return None
    answer: BatchSolution | PatternSolution
    if isinstance(form, PatternRanking):
        answer = solver.solve_batch(form.alone())
    elif isinstance(form, RankTwoAssignment):
        spare = form.documents - form.positions
        if spare and min(form.discount[-1], form.decay[-1]) < 0:
            return None
        discount, decay = (np.pad(weights, (0, spare)) for weights in (form.discount, form.decay))
        answer = solver.solve_batch(
            RankTwoBatch(form.scores, form.gain, discount, decay, np.array([0, form.documents]))
        )
    else:
        return None
    order = answer.order[: form.positions]
    if not np.isfinite(form.violation(order)):
        return f"asked for a batch, it returns {order}, which is no ranking"
    value, slack = form.value(order), LOOSE * (form.scale or 1.0)
    attained = max((value, *_attained(taped)))
    if not abs(float(answer.value[0]) - value) <= slack:
        return f"asked for a batch, it says that the value is {answer.value[0]:.9g}, and it is {value:.9g}"
    if not float(answer.bound[0]) >= attained - slack:
        return f"asked for a batch, it says that nothing beats {answer.bound[0]:.9g}, but {attained:.9g} is attained"
    return None


def _number(told: object) -> float | None:
    return float(told) if isinstance(told, float | int) else None


def _attained(taped: RecordedProblem) -> tuple[float, ...]:
    return () if taped.known is None else (taped.known[0],)
