"""Google OR-Tools: assignment and minimum-cost flow, in integers."""

from __future__ import annotations

import importlib
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from formulations.arrays import check_type
from formulations.bridges.widening import assignment_to_flow, rounded_costs
from formulations.errors import InfeasibleError, SolverError, UnknownSolverError
from formulations.problems.assignment import Assignment
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.problem import Problem, Solution
from formulations.solvers.solver import Solver, SolverResult

WIDE = 1.2  # documents per position from which an assignment is faster as a flow


@dataclass(frozen=True)
class OrTools(Solver):
    """`SimpleLinearSumAssignment` for assignments, `SimpleMinCostFlow` for flows; costs are rounded to 64 bits.

    Assignments of more documents than positions are solved as flows, which is faster than padding them to a square.
    flow: solve all assignments as flows ("ortools:flow").
    """

    flow: bool = False

    package: ClassVar[str] = "ortools"

    @classmethod
    def with_backend(cls, name: str) -> OrTools:
        check_type("name", name, str, error=UnknownSolverError)
        if name != "flow":
            raise UnknownSolverError(f"'ortools' has one variant, 'ortools:flow', and not {name!r}")
        return cls(flow=True)

    @classmethod
    def backends(cls) -> tuple[str, ...]:
        return "", "flow"

    @property
    def spec(self) -> str:
        return "ortools:flow" if self.flow else "ortools"

    @property
    def accepts(self) -> tuple[type[Problem], ...]:
        return (MinCostFlow,) if self.flow else (Assignment, MinCostFlow)

    def solve(self, problem: Assignment | MinCostFlow, warm_start: Solution | None = None) -> SolverResult:
        return _assigned(problem) if isinstance(problem, Assignment) else _routed(problem)


def _assigned(problem: Assignment) -> SolverResult:
    """Rows of zeros pad the matrix to a square, unless it is much wider than high."""
    k, n = problem.positions, problem.documents
    if n > WIDE * k:
        flow, back = assignment_to_flow(problem)
        found = _routed(flow)
        order, prices = back(found.x, None)
        return SolverResult(order, prices, message=f"{found.message}, as a flow", details=found.details)
    rows, columns = problem.cells
    costs = rounded_costs(-problem.gains[rows, columns], k, n, shift=True)
    spare = n - k
    rows = np.concatenate([rows, np.repeat(np.arange(k, n), n)])
    columns = np.concatenate([columns, np.tile(np.arange(n), spare)])
    values = np.concatenate([np.asarray(costs.values), np.zeros(spare * n, dtype=np.int64)])
    solver = load("graph.python.linear_sum_assignment").SimpleLinearSumAssignment()
    solver.add_arcs_with_cost(rows.astype(np.int32), columns.astype(np.int32), values)
    status = solver.solve()
    # Reading a mate after any other status ends the process.
    if status != solver.OPTIMAL:
        raise SolverError(f"'ortools' did not solve a feasible assignment (status {status})")
    order = np.array([solver.right_mate(i) for i in range(k)], dtype=np.int64)
    return SolverResult(order, message=f"OPTIMAL, integer costs times 2^{costs.exponent}", details=dict(costs.details))


def _routed(problem: MinCostFlow) -> SolverResult:
    terms = problem.units
    costs = rounded_costs(problem.cost, terms, problem.supply.size, shift=False)
    solver = load("graph.python.min_cost_flow").SimpleMinCostFlow()
    arcs = solver.add_arcs_with_capacity_and_unit_cost(
        problem.tail.astype(np.int32), problem.head.astype(np.int32), problem.capacity, np.asarray(costs.values)
    )
    solver.set_nodes_supplies(np.arange(problem.supply.size, dtype=np.int32), problem.supply)
    status = solver.solve()
    if status in (solver.INFEASIBLE, solver.UNBALANCED):
        raise InfeasibleError(f"'ortools' found no flow that meets all supplies within the capacities ({status.name})")
    if status != solver.OPTIMAL:
        raise SolverError(f"'ortools' did not solve the flow ({getattr(status, 'name', status)})")
    flow = np.asarray(solver.flows(arcs), dtype=np.float64)
    return SolverResult(flow, message=f"OPTIMAL, integer costs times 2^{costs.exponent}", details=dict(costs.details))


def load(name: str) -> Any:
    """The module ortools.`name`; its loading warns of SWIG's own types."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(f"ortools.{name}")
