"""networkx: minimum-cost flow by the network simplex method, in integers of any length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from formulations.certificates.rational import exact_costs
from formulations.errors import InfeasibleError, UnboundedError
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.problem import Solution
from formulations.solvers.solver import Solver, SolverResult


@dataclass(frozen=True)
class NetworkX(Solver):
    """`networkx.network_simplex`; costs become integers without rounding, so the solution is exact."""

    accepts = (MinCostFlow,)
    package: ClassVar[str] = "networkx"
    spec = "networkx"

    def solve(self, problem: MinCostFlow, warm_start: Solution | None = None) -> SolverResult:
        import networkx

        costs = exact_costs(problem.cost)
        graph = networkx.MultiDiGraph()
        for node, supply in enumerate(problem.supply.tolist()):
            graph.add_node(node, demand=-supply)
        ends = zip(problem.tail.tolist(), problem.head.tolist(), problem.capacity.tolist(), costs.values, strict=True)
        for arc, (tail, head, capacity, cost) in enumerate(ends):
            graph.add_edge(tail, head, key=arc, capacity=capacity, weight=cost)
        try:
            _, flows = networkx.network_simplex(graph)
        except networkx.NetworkXUnfeasible as error:
            raise InfeasibleError(f"'networkx' found no flow that meets all supplies: {error}") from error
        except networkx.NetworkXUnbounded as error:
            raise UnboundedError(f"'networkx' found the cost unbounded: {error}") from error
        flow = np.zeros(problem.cost.size)
        for heads in flows.values():
            for arcs in heads.values():
                for arc, amount in arcs.items():
                    flow[arc] = amount
        return SolverResult(flow, message="network_simplex returned", details=dict(costs.details))
