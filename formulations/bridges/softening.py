"""A ranking under soft constraints: its widened program, or a ranking without soft rows, with the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.bridges.bridge import Back, NotApplicable, Point
from formulations.bridges.crossover import WHOLE
from formulations.bridges.narrowing import ASKED, quick_proof
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.constraints.rows import widened
from formulations.constraints.structure import candidates
from formulations.errors import FractionalSolutionError, SolverError
from formulations.problems.linear_program import LinearProgram
from formulations.problems.program import Program


def cells_alone(problem: PenalizedRanking) -> tuple[ConstrainedRanking, Back]:
    """Where all that may be broken are bans and pins, the profit of their cells is reduced by the penalty."""
    if any(one.constraint.rows for one in problem.admissible.soft_constraints):
        raise NotApplicable("some rows are soft (penalized), so it is neither an assignment nor a flow over its cells")
    return ConstrainedRanking(problem.worth, problem.admissible.hard), lambda x, y: (x, y)


def why_cells(problem: PenalizedRanking) -> str:
    return "only bans and pins are soft: the profit of their cells is reduced by the penalty"


def relaxed(problem: PenalizedRanking) -> tuple[LinearProgram, Back]:
    """The widened linear program."""
    return _program(problem, integer=False)


def in_whole_numbers(problem: PenalizedRanking) -> tuple[LinearProgram, Back]:
    """The widened integer program; its dual is that of the relaxation."""
    return _program(problem, integer=True)


def _program(problem: PenalizedRanking, integer: bool) -> tuple[LinearProgram, Back]:
    stated = problem.compiled
    needed = candidates(stated, problem.worth)
    program = widened(stated, problem.worth, integer, needed)
    cell = stated.cell if needed is None else stated.cell[needed]

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        return _order(problem, program, cell, x), None if y is None else -y[stated.shape[0] :]

    return LinearProgram.from_program(program), back


def _order(problem: PenalizedRanking, program: Program, cell: Ints, x: Floats) -> Ints:
    """The ranking at a point of the program. For a fractional point, the best ranking of its cells if it has the same
    value (a face may have integral and fractional vertices), else `FractionalSolutionError`."""
    from scipy.optimize import Bounds, LinearConstraint, milp

    k, n = problem.positions, problem.documents
    mass = x[: cell.size]
    held = np.bincount(cell // n, mass, k)
    if not np.abs(held - 1.0).max() <= 0.05:
        raise SolverError(f"a position holds {held[np.abs(held - 1.0).argmax()]:.3g} documents where it should hold 1")
    if np.abs(mass - np.round(mass)).max() < WHOLE:
        return _placed(cell[mass > 0.5], k, n)
    used = np.concatenate([mass > WHOLE, np.ones(x.size - cell.size, dtype=bool)])
    integral = np.concatenate([np.ones(cell.size, dtype=bool), np.zeros(x.size - cell.size, dtype=bool)])
    scale = max(problem.scale, 1e-300)
    found = milp(
        -program.objective[used] / scale,
        constraints=LinearConstraint(program.matrix[:, np.flatnonzero(used)], program.row_lower, program.row_upper),
        bounds=Bounds(program.lower[used], program.upper[used]),
        integrality=integral[used],
    )
    worth = float(program.objective @ x)
    if found.x is None or -found.fun * scale < worth - 1e-7 * k * max(scale, abs(worth)):
        raise FractionalSolutionError(
            f"the best vertex of the relaxation is fractional (value {worth:.9g}): the rows, widened, are not totally "
            "unimodular; use an integer solver, 'highs' or 'cp_sat'"
        )
    chosen = np.flatnonzero(used[: cell.size])
    return _placed(cell[chosen[found.x[: chosen.size] > 0.5]], k, n)


def _placed(cells: Ints, k: int, n: int) -> Ints:
    order = np.full(k, -1)
    order[cells // n] = cells % n
    return order


def why_relaxed(problem: PenalizedRanking) -> str:
    stated = problem.compiled
    proof = quick_proof(stated) if stated.matrix.nnz <= ASKED else None
    if proof is None:
        return "this vertex of the widened program is integral (verify_integrality tests all vertices)"
    return f"the rows, widened by what they may be broken by, are totally unimodular ({proof.kind})"


def why_whole(problem: PenalizedRanking) -> str:
    return "soft (penalized) rows: integer search"
