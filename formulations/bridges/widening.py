"""Widening: a form restated as one that holds more problems, with the way back. It always applies.

Paths: an order by its pattern as a path of a lattice, a path as a flow of one unit, with the ways back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, Ints
from formulations.bridges.bridge import Back, NotApplicable, Point
from formulations.bridges.crossover import flow_on_support, order_on_support
from formulations.errors import SolverFailed
from formulations.forms.assignment import Assignment
from formulations.forms.grouped_simplex import GroupedSimplexQP
from formulations.forms.lattice_path import MOST_STATES, LatticePath
from formulations.forms.linear_program import LinearProgram
from formulations.forms.min_cost_flow import MinCostFlow
from formulations.forms.pattern_ranking import PatternRanking
from formulations.forms.quadratic_program import QuadraticProgram
from formulations.forms.rank_two_assignment import RankTwoAssignment
from formulations.notation.program import Block


def written_out(problem: RankTwoAssignment) -> tuple[Assignment, Back]:
    return problem.assignment(), lambda x, y: (x, y)


def assignment_to_flow(problem: Assignment) -> tuple[MinCostFlow, Back]:
    """Each position supplies one unit; it flows through a document, which passes one unit at most, to the sink."""
    k, n = problem.positions, problem.documents
    positions, documents = problem.cells
    sink = k + n
    count = positions.size
    flow = MinCostFlow(
        tail=np.concatenate([positions, k + np.arange(n)]),
        head=np.concatenate([k + documents, np.full(n, sink)]),
        capacity=np.ones(count + n, dtype=np.int64),
        cost=np.concatenate([-problem.profit[positions, documents], np.zeros(n)]),
        supply=np.concatenate([np.ones(k, dtype=np.int64), np.zeros(n, dtype=np.int64), [-k]]),
        arcs=(*problem.cell_names, Block("document", (n,))),
        nodes=(Block("position", (k,)), Block("document", (n,)), Block("sink", ())),
    )

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        prices = None if y is None else np.asarray(y[k:sink] - y[sink])
        return order_on_support(problem, positions, documents, x[:count]), prices

    return flow, back


def assignment_to_linear_program(problem: Assignment) -> tuple[LinearProgram, Back]:
    def back(x: NDArray[Any], y: Floats | None) -> Point:
        prices = None if y is None else np.asarray(-y[problem.positions :])
        return order_on_support(problem, *problem.cells, x), prices

    return LinearProgram.of(problem.program), back


def flow_to_linear_program(problem: MinCostFlow) -> tuple[LinearProgram, Back]:
    return LinearProgram.of(problem.program), lambda x, y: (flow_on_support(problem, x), y)


def in_whole_numbers(problem: Assignment | MinCostFlow) -> tuple[LinearProgram, Back]:
    """The same program with every variable declared whole, for solvers that take no others."""
    if isinstance(problem, Assignment):
        program, back = assignment_to_linear_program(problem)
    else:
        program, back = flow_to_linear_program(problem)
    return replace(program, integer=np.ones(program.objective.size, dtype=bool)), back


def margin_dual_to_quadratic_program(problem: GroupedSimplexQP) -> tuple[QuadraticProgram, Back]:
    """In β = α / unit; the step, where it is written out, stands behind β."""
    unit = problem.unit
    return QuadraticProgram.of(problem.program), lambda x, y: (x[: unit.size] * unit, None)


def by_chains(problem: PatternRanking) -> tuple[LatticePath, Back]:
    """Every chain in order of score: what is left to choose is the chain at each position."""
    if problem.chains.states > MOST_STATES:
        raise NotApplicable(f"its lattice has {problem.chains.states} states, and up to {MOST_STATES} are written out")
    return problem.lattice(), lambda x, y: (problem.chains.order(np.asarray(x, dtype=np.int64)), y)


def as_flow(problem: LatticePath) -> tuple[MinCostFlow, Back]:
    """One unit from the first state to the last."""
    flow = problem.flow()
    chain = np.nonzero(problem.levels.there)[0]

    def back(x: NDArray[Any], y: Floats | None) -> Point:
        path = _path(flow, chain, np.asarray(x, dtype=np.float64))
        if np.abs(x - np.round(x)).max(initial=0.0) > 1e-5:
            raise SolverFailed("the flow came back in fractions, and no whole one was found on its support")
        # A longest path's potentials rise where a cheapest path's fall.
        return path, None if y is None else -(y - y[0])

    return flow, back


def _path(flow: MinCostFlow, chain: Ints, x: Floats) -> Ints:
    """The chain of each edge of the path that carries the unit: at every state the arc that carries most of it."""
    by_tail = np.lexsort((-x, flow.tail))
    first = np.searchsorted(flow.tail[by_tail], np.arange(flow.supply.size))
    state, path = 0, []
    while state != flow.supply.size - 1:
        arc = int(by_tail[first[state]])
        path.append(int(chain[arc]))
        state = int(flow.head[arc])
    return np.array(path, dtype=np.int64)
