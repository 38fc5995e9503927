"""Minimum-cost flow in a network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from formulations.arrays import Floats, Ints, finite, integers
from formulations.errors import InfeasibleError, InvalidProblemError
from formulations.problems.directed_rounding import above, added, below, products
from formulations.problems.problem import EPSILON, Problem, checked_dual
from formulations.problems.program import Block, Program, name_at, named, split_by_block

LARGEST_INTEGER = 2.0**53  # largest limit up to which doubles represent every integer


@dataclass(frozen=True, eq=False)
class MinCostFlow(Problem):
    """min Σ cost[a] f[a] over flows f with 0 <= f[a] <= capacity[a] and, at each node, outflow - inflow = supply.

    `tail`, `head`, `capacity` and `cost` have one entry an arc, `supply` one a node (integers that sum to 0). An
    infinite capacity is replaced by the largest flow that a cheapest solution needs.
    Every vertex is integral (network matrix, integer capacities and supplies). A dual y has one potential a node:
    arc a has the reduced cost cost[a] - y[tail] + y[head].
    """

    tail: Ints
    head: Ints
    capacity: Ints
    cost: Floats
    supply: Ints
    arcs: tuple[Block, ...] = ()
    nodes: tuple[Block, ...] = ()

    is_maximization = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", finite("cost", self.cost, 1))
        for name in ("tail", "head", "supply"):
            object.__setattr__(self, name, integers(name, getattr(self, name)))
        object.__setattr__(self, "capacity", integers("capacity", self._finite_capacity()))
        count, nodes = self.cost.size, self.supply.size
        if any(array.size != count for array in (self.tail, self.head, self.capacity)):
            raise InvalidProblemError("tail, head, capacity and cost need one entry an arc")
        if count and not (0 <= min(self.tail.min(), self.head.min()) <= max(self.tail.max(), self.head.max()) < nodes):
            raise InvalidProblemError(f"tail and head must be between 0 and {nodes - 1}")
        object.__setattr__(self, "arcs", named(self.arcs, "flow", count))
        object.__setattr__(self, "nodes", named(self.nodes, "node", nodes))
        negative = np.flatnonzero(self.capacity < 0)
        if negative.size:
            raise InfeasibleError(f"{name_at(self.arcs, int(negative[0]))} has a negative capacity")
        if self.supply.sum() != 0:
            raise InfeasibleError(f"supplies must sum to 0; got {int(self.supply.sum())}.")

    def _finite_capacity(self) -> ArrayLike:
        """The capacities, infinite ones replaced by what a cheapest flow needs at most: all supplies, and the
        capacities of the arcs of negative cost, round which a cheapest flow may circulate."""
        try:
            capacity = np.asarray(self.capacity)
        except ValueError:  # no array; `integers` says so
            return self.capacity
        endless = np.isposinf(capacity) if capacity.dtype.kind == "f" else np.zeros(capacity.shape, dtype=bool)
        if not endless.any() or capacity.shape != self.cost.shape:
            return capacity
        negative = np.flatnonzero(endless & (self.cost < 0.0))
        if negative.size:
            raise InvalidProblemError(
                f"capacity[{negative[0]}] must be finite, because its arc has a negative cost; got inf. "
                "Write the largest flow that it may carry, such as the sum of the positive supplies."
            )
        needed = np.maximum(self.supply, 0).sum() + capacity[(self.cost < 0.0) & ~endless].sum()
        return np.where(endless, needed, capacity)

    @cached_property
    def units(self) -> int:
        """A bound on the flow over arcs of nonzero cost: outflow is at most inflow plus supply."""
        nodes, costly = self.supply.size, self.cost != 0
        leaving = np.bincount(self.tail[costly], self.capacity[costly], nodes)
        arriving = np.bincount(self.head, self.capacity, nodes) + np.maximum(self.supply, 0)
        return int(np.minimum(leaving, arriving).sum())

    @cached_property
    def path_order(self) -> Ints | None:
        """The nodes in topological order, if one unit flows from one node to another through a network without cycles:
        cheapest flows are then shortest paths (`shortest_paths`). None for other problems."""
        ends = np.flatnonzero(self.supply)
        if ends.size != 2 or set(self.supply[ends].tolist()) != {1, -1}:
            return None
        usable = self.capacity > 0
        tail, head = self.tail[usable], self.head[usable]
        entering = np.bincount(head, minlength=self.supply.size)
        leaving = [head[tail == node] for node in range(self.supply.size)]
        order, reached = np.flatnonzero(entering == 0).tolist(), {int(np.argmax(self.supply))}
        for node in order:  # grows while it is read
            for following in leaving[node].tolist():
                entering[following] -= 1
                if not entering[following]:
                    order.append(following)
            if node in reached:
                reached.update(leaving[node].tolist())
        complete = len(order) == self.supply.size and int(np.argmin(self.supply)) in reached
        return np.array(order) if complete else None

    @property
    def program(self) -> Program:
        count, nodes = self.cost.size, self.supply.size
        ends = np.concatenate([self.tail, self.head]), np.tile(np.arange(count), 2)
        matrix = csr_array((np.repeat([1.0, -1.0], count), ends), shape=(nodes, count))
        supply, ceiling = self.supply.astype(np.float64), self.capacity.astype(np.float64)
        return Program(
            self.cost, matrix, supply, supply, np.zeros(count), ceiling,
            is_maximization=False, variables=self.arcs, rows=self.nodes,
        )  # fmt: skip

    @property
    def shape_text(self) -> str:
        return f"{self.supply.size} nodes and {self.cost.size} arcs"

    @property
    def size(self) -> int:
        return self.cost.size

    @property
    def scale(self) -> float:
        """The largest cost in magnitude."""
        return float(np.abs(self.cost).max(initial=0.0))

    @property
    def rounding(self) -> float:
        return 16.0 * EPSILON * self.scale * (self.units + self.supply.size)

    def value(self, x: NDArray[Any]) -> float:
        return float(self.cost @ x)

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        return above(*products(self.cost, np.asarray(x, dtype=np.float64)))

    def violation(self, x: NDArray[Any]) -> float:
        if np.shape(x) != self.cost.shape:
            return float("inf")
        net = np.bincount(self.tail, x, self.supply.size) - np.bincount(self.head, x, self.supply.size)
        off = float(np.abs(net - self.supply).max(initial=0.0))
        return max(off, float(np.max(-x, initial=0.0)), float(np.max(x - self.capacity, initial=0.0)))

    def bound(self, y: Floats) -> float:
        potential = checked_dual(y, self.supply.size, "nodes")
        gained, digits = added(self.cost, -potential[self.tail])
        reduced, more_digits = added(gained, potential[self.head])
        pressed = np.flatnonzero(reduced + (digits + more_digits) < 0.0)
        terms = products(self.supply.astype(np.float64), potential)
        capacity = self.capacity[pressed].astype(np.float64)
        capacity = np.where(capacity > LARGEST_INTEGER, np.nextafter(capacity, np.inf), capacity)
        parts = [products(part[pressed], capacity) for part in (reduced, digits, more_digits)]
        off = terms[2] + sum(part[2] for part in parts)
        return below(*terms[:2], *(numbers for part in parts for numbers in part[:2]), -off)

    def recover_dual(self, x: NDArray[Any]) -> Floats:
        noise = 4.0 * EPSILON * self.scale
        return np.asarray(residual_potentials(self, x, self.cost, noise), dtype=np.float64)

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return split_by_block(self.arcs, x)

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return split_by_block(self.nodes, y)


def residual_potentials(problem: MinCostFlow, x: NDArray[Any], cost: NDArray[Any], noise: float) -> NDArray[Any]:
    """Potentials from shortest paths on the residual network (Bellman-Ford, at most one pass a node).

    `cost` may hold floats or Python integers; decreases up to `noise` count as rounding.
    """
    flow = np.round(np.clip(np.asarray(x, dtype=np.float64), -1.0, 2.0**62)).astype(np.int64)
    forward, backward = flow < problem.capacity, flow > 0
    start = np.concatenate([problem.tail[forward], problem.head[backward]])
    end = np.concatenate([problem.head[forward], problem.tail[backward]])
    length = np.concatenate([cost[forward], -cost[backward]])
    distance = np.zeros(problem.supply.size, dtype=cost.dtype)
    for _ in range(problem.supply.size):
        offered = distance.copy()
        np.minimum.at(offered, end, distance[start] + length)
        if not (offered < distance - noise).any():
            break
        distance = offered
    return -distance


def shortest_paths(problem: MinCostFlow, costs: Floats) -> tuple[Floats, Floats]:
    """(m, arcs) 0/1 flows of least cost under each row of costs (m, arcs), and (m,) lower bounds from potentials, up to
    rounding: a dynamic program over the nodes, for all rows at once. The problem has a `path_order`."""
    assert problem.path_order is not None
    rows, source, target = np.arange(len(costs)), int(np.argmax(problem.supply)), int(np.argmin(problem.supply))
    usable, far = problem.capacity > 0, 4.0 * np.abs(costs).sum(axis=1) + 1.0  # of nodes that the source cannot reach
    distance, last = np.empty((len(costs), problem.supply.size)), np.zeros((len(costs), problem.supply.size), np.int64)
    for node in problem.path_order.tolist():
        arcs = np.flatnonzero(usable & (problem.head == node))
        if node == source or not arcs.size:
            distance[:, node] = 0.0 if node == source else far
            continue
        lengths = distance[:, problem.tail[arcs]] + costs[:, arcs]
        chosen = lengths.argmin(axis=1)
        distance[:, node], last[:, node] = lengths[rows, chosen], arcs[chosen]
    flows, left = np.zeros(costs.shape), rows
    node = np.full(rows.size, target)
    while left.size:
        arcs = last[left, node]
        flows[left, arcs] = 1.0
        node = problem.tail[arcs]
        left, node = left[node != source], node[node != source]
    pressed = costs + distance[:, problem.tail] - distance[:, problem.head]
    return flows, distance[:, target] - distance[:, source] + np.minimum(pressed, 0.0) @ np.minimum(problem.capacity, 1)
