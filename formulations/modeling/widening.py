"""Widening: a form restated as one that holds more problems, with the way back. It always applies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array, hstack, vstack

from formulations.arrays import Floats, Ints
from formulations.modeling.assignment import Assignment
from formulations.modeling.crossing import Back, Point
from formulations.modeling.flow import MinCostFlow
from formulations.modeling.grouped_simplex import GroupedSimplexQP
from formulations.modeling.linear_program import LinearProgram
from formulations.modeling.names import Block
from formulations.modeling.quadratic_program import QuadraticProgram
from formulations.modeling.rank_two import RankTwoAssignment
from formulations.modeling.vertex import flow_on_support, order_on_support

__all__ = [
    "assignment_to_flow",
    "assignment_to_linear_program",
    "flow_to_linear_program",
    "in_whole_numbers",
    "margin_dual_to_quadratic_program",
    "written_out",
]


def written_out(problem: RankTwoAssignment) -> tuple[Assignment, Back]:
    return problem.assignment(), lambda x, y: (x, y)


def _cells(problem: Assignment) -> tuple[Ints, Ints]:
    """Position and document of every allowed cell, in C order."""
    mask = np.ones(problem.profit.shape, dtype=bool) if problem.allowed is None else problem.allowed
    positions, documents = np.nonzero(mask)
    return positions, documents


def _cell_blocks(problem: Assignment) -> tuple[Block, ...]:
    if problem.allowed is None:
        return (Block("π", problem.profit.shape),)
    return (Block("π", tuple((int(i), int(j)) for i, j in zip(*_cells(problem), strict=True))),)


def assignment_to_flow(problem: Assignment) -> tuple[MinCostFlow, Back]:
    """Each position supplies one unit; it flows through a document, which passes one unit at most, to the sink."""
    k, n = problem.positions, problem.documents
    positions, documents = _cells(problem)
    sink = k + n
    count = positions.size
    flow = MinCostFlow(
        tail=np.concatenate([positions, k + np.arange(n)]),
        head=np.concatenate([k + documents, np.full(n, sink)]),
        capacity=np.ones(count + n, dtype=np.int64),
        cost=np.concatenate([-problem.profit[positions, documents], np.zeros(n)]),
        supply=np.concatenate([np.ones(k, dtype=np.int64), np.zeros(n, dtype=np.int64), [-k]]),
        arcs=(*_cell_blocks(problem), Block("document", (n,))),
        nodes=(Block("position", (k,)), Block("document", (n,)), Block("sink", ())),
    )

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        prices = None if y is None else np.asarray(y[k:sink] - y[sink])
        return order_on_support(problem, positions, documents, x[:count]), prices

    return flow, back


def assignment_to_linear_program(problem: Assignment) -> tuple[LinearProgram, Back]:
    k, n = problem.positions, problem.documents
    positions, documents = _cells(problem)
    count = positions.size
    column = np.arange(count)
    matrix = csr_array(
        (np.ones(2 * count), (np.concatenate([positions, k + documents]), np.concatenate([column, column]))),
        shape=(k + n, count),
    )
    program = LinearProgram(
        objective=problem.profit[positions, documents],
        matrix=matrix,
        row_lower=np.concatenate([np.ones(k), np.full(n, -np.inf if n > k else 1.0)]),
        row_upper=np.ones(k + n),
        lower=np.zeros(count),
        upper=np.ones(count),
        variables=_cell_blocks(problem),
        rows=(Block("position", (k,)), Block("document", (n,))),
    )

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        return order_on_support(problem, positions, documents, x), None if y is None else np.asarray(-y[k:])

    return program, back


def flow_to_linear_program(problem: MinCostFlow) -> tuple[LinearProgram, Back]:
    count, nodes = problem.cost.size, problem.supply.size
    arc = np.arange(count)
    matrix = csr_array(
        (
            np.concatenate([np.ones(count), -np.ones(count)]),
            (np.concatenate([problem.tail, problem.head]), np.concatenate([arc, arc])),
        ),
        shape=(nodes, count),
    )
    supply = problem.supply.astype(np.float64)
    program = LinearProgram(
        problem.cost, matrix, supply, supply, np.zeros(count), problem.capacity.astype(np.float64),
        maximises=False, variables=problem.arcs, rows=problem.nodes,
    )  # fmt: skip
    return program, lambda x, y: (flow_on_support(problem, x), y)


def in_whole_numbers(problem: Assignment | MinCostFlow) -> tuple[LinearProgram, Back]:
    """The same program with every variable declared whole, for solvers that take no others."""
    if isinstance(problem, Assignment):
        program, back = assignment_to_linear_program(problem)
    else:
        program, back = flow_to_linear_program(problem)
    return replace(program, integer=np.ones(program.objective.size, dtype=bool)), back


def margin_dual_to_quadratic_program(problem: GroupedSimplexQP) -> tuple[QuadraticProgram, Back]:
    """In β = α / (capacity · usual share), the objective scaled to order one: through the Gram matrix when there are no
    more planes than features or it is known, else with the step slopesᵀα as further variables, and the whole Gram
    matrix is never formed."""
    unit = problem.capacity[problem.group] * problem.usual_share
    values = problem.values * unit
    planes, features = problem.slopes.shape
    groups = problem.capacity.size
    squares = np.einsum("ij,ij->i", problem.slopes, problem.slopes) * (unit * unit / problem.lam)
    scale = max(float(squares.max()), float(np.abs(values).max()), 1e-300)
    held = csr_array((np.ones(planes), (problem.group, np.arange(planes))), (groups, planes))
    no_floor, limit = np.full(groups, -np.inf), np.full(groups, 1.0 / problem.usual_share)
    zeros, no_limit = np.zeros(planes), np.full(planes, np.inf)
    if planes <= features or problem.known_gram is not None:
        gram = csr_array(problem.gram * np.outer(unit, unit) / (problem.lam * scale))
        program = QuadraticProgram(gram, -values / scale, held, no_floor, limit, zeros, no_limit)
    else:
        step = problem.slopes.T * (unit / np.sqrt(problem.lam * scale))
        still, free = np.zeros(features), np.full(features, np.inf)
        held.resize((groups, planes + features))
        program = QuadraticProgram(
            csr_array(diags_array(np.concatenate([zeros, np.ones(features)]))),
            np.concatenate([-values / scale, still]),
            csr_array(vstack([held, hstack([csr_array(step), -eye_array(features)])])),
            np.concatenate([no_floor, still]),
            np.concatenate([limit, still]),
            np.concatenate([zeros, -free]),
            np.concatenate([no_limit, free]),
        )
    return program, lambda x, y: (x[:planes] * unit, None)
