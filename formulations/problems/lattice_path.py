"""Longest paths in a lattice of counts (used documents of each chain), and the lattice of a relevance ranking."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints, finite, numbers
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblemError
from formulations.problems.directed_rounding import above, added, below
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.problem import EPSILON, Problem, checked_dual, integers_below
from formulations.problems.program import Block, Program, with_constant
from formulations.problems.relevance_values import DOCUMENT, FIRST, PAIRWISE, POSITIONAL, RANK, FeatureMap, GainTable


class LatticeLevels:
    """The states of a lattice by the sum of their counts, from 0 to n."""

    def __init__(self, lengths: tuple[int, ...]) -> None:
        self.lengths, shape = lengths, tuple(length + 1 for length in lengths)
        counts = np.indices(shape).reshape(len(lengths), -1)
        self.strides: Ints = np.array([int(np.prod(shape[h + 1 :], dtype=np.int64)) for h in range(len(lengths))])
        self.there: Bools = counts < np.array(lengths)[:, None]
        """(G, states): whether an edge of the chain leads on."""
        self.level: Ints = counts.sum(axis=0)
        """(states,)"""
        by_level = np.argsort(self.level, kind="stable")
        cuts = np.searchsorted(self.level[by_level], np.arange(sum(lengths) + 2))
        self.states = [by_level[cuts[level] : cuts[level + 1]] for level in range(sum(lengths) + 1)]
        """The states of each level."""

    def path(self, edges: NDArray[Any], reached: NDArray[Any]) -> Ints:
        """The chain of each edge of a longest path: among ties the one with low chains as late as possible,
        traced from the end with the lowest tied chain as the last edge."""
        chains = np.empty(len(self.states) - 1, dtype=np.int64)
        state, strides = self.level.size - 1, self.strides.tolist()
        counts = list(self.lengths)
        for step in range(chains.size - 1, -1, -1):
            for chain, stride in enumerate(strides):
                before = state - stride
                if counts[chain] and reached[before] + edges[chain, before] == reached[state]:
                    break
            else:  # pragma: no cover - one of them made it
                raise AssertionError("no edge leads to the longest path's state")
            chains[step] = chain
            counts[chain] -= 1
            state = before
        return chains


def farthest(edges: NDArray[Any], levels: LatticeLevels) -> NDArray[Any]:
    """(states,) the length of the longest path from the first state to each, level by level. edges (G, states) may be
    floats or Python numbers."""
    reached = np.zeros(edges.shape[1], dtype=edges.dtype)
    seen = np.zeros(edges.shape[1], dtype=bool)
    seen[0] = True
    for states in levels.states[:-1]:
        for chain, stride in enumerate(levels.strides.tolist()):
            tail = states[levels.there[chain, states]]
            head = tail + stride
            offered = reached[tail] + edges[chain, tail]
            better = ~seen[head] | (offered > reached[head])
            reached[head[better]] = offered[better]
            seen[head] = True
    return reached


@dataclass(frozen=True, eq=False)
class LatticePath(Problem):
    """max over paths from (0, ..., 0) to (N_0, ..., N_{G-1}) of the sum of their edges, and a constant.

    An edge leads from a state to the one with one more of chain h. profit has shape (G, N_0 + 1, ..., N_{G-1} + 1):
    profit[h, state] is what the edge of chain h out of the state earns; if the chain is exhausted there is no
    edge, and the entry is ignored. With two chains that is a grid of n₋ + 1 by n₊ + 1 states.

    A point x is the path: the chain of each of its edges. A dual y holds one potential a state, flat: no path earns
    more than y rises from the first state to the last and, at each level (of states with equal sums), the most by which
    an edge earns more than y rises along it.
    """

    profit: Floats
    constant: float = 0.0

    always_feasible = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "profit", finite("profit", self.profit, numbers("profit", self.profit).ndim))
        if self.profit.ndim < 2 or self.profit.shape[0] != self.profit.ndim - 1:
            raise InvalidProblemError(f"profit must have shape (G, N_0 + 1, ..., N_G-1 + 1); got {self.profit.shape}.")
        if self.profit.size == 0 or not sum(self.lengths):
            raise InvalidProblemError("a lattice path needs at least one edge")
        object.__setattr__(self, "constant", float(finite("constant", [self.constant], 1)[0]))

    @property
    def lengths(self) -> tuple[int, ...]:
        """The length of each chain."""
        return tuple(extent - 1 for extent in self.profit.shape[1:])

    @property
    def states(self) -> int:
        return int(self.profit[0].size)

    @cached_property
    def levels(self) -> LatticeLevels:
        return LatticeLevels(self.lengths)

    @property
    def edges(self) -> Floats:
        """(G, states) the gain of each edge, flat."""
        return self.profit.reshape(self.profit.shape[0], -1)

    @property
    def scale(self) -> float:
        """The largest edge in magnitude."""
        return float(max(np.abs(self.edges[self.levels.there]).max(), abs(self.constant)))

    @property
    def rounding(self) -> float:
        return 16.0 * EPSILON * self.scale * (2.0 * sum(self.lengths) + 1.0)

    @property
    def shape_text(self) -> str:
        return f"{' × '.join(str(length + 1) for length in self.lengths)} states"

    @property
    def size(self) -> int:
        return int(self.levels.there.sum())

    @property
    def program(self) -> Program:
        program = self.flow().program
        return replace(program, objective=-program.objective, is_maximization=True)

    @property
    def full_program(self) -> Program:
        return with_constant(self.program, self.constant)

    def flow(self) -> MinCostFlow:
        """One unit from the first state to the last; costs of arcs are gains negated, without the constant."""
        levels = self.levels
        chain, tail = np.nonzero(levels.there)
        supply = np.zeros(self.states, dtype=np.int64)
        supply[0], supply[-1] = 1, -1
        return MinCostFlow(
            tail=tail,
            head=tail + levels.strides[chain],
            capacity=np.ones(tail.size, dtype=np.int64),
            cost=-self.edges[chain, tail],
            supply=supply,
            arcs=tuple(Block(f"chain {h}", (int(held.sum()),)) for h, held in enumerate(levels.there)),
            nodes=(Block("state", self.profit.shape[1:]),),
        )

    def value(self, x: NDArray[Any]) -> float:
        return float(self._path_profits(x).sum()) + self.constant

    def value_lower_bound(self, x: NDArray[Any]) -> float:
        return below(self._path_profits(x), self.constant)

    def _path_profits(self, x: NDArray[Any]) -> Floats:
        """The gain of each edge of the path."""
        chain = np.asarray(x, dtype=np.int64)
        passed = np.concatenate([[0], np.cumsum(self.levels.strides[chain])[:-1]])
        return np.asarray(self.edges[chain, passed])

    def violation(self, x: NDArray[Any]) -> float:
        chain = integers_below(x, sum(self.lengths), len(self.lengths))
        complete = chain is not None and tuple(np.bincount(chain, minlength=len(self.lengths))) == self.lengths
        return 0.0 if complete else float("inf")

    def bound(self, y: Floats) -> float:
        potential, levels = checked_dual(y, self.states, "states"), self.levels
        most = np.full(sum(self.lengths), -np.inf)
        for chain, stride in enumerate(levels.strides.tolist()):
            tail = np.flatnonzero(levels.there[chain])
            gained, digits = added(self.edges[chain, tail], potential[tail])
            reduced, more_digits = added(gained, -potential[tail + stride])
            dropped = digits + more_digits
            # The sum of the digits may round once more, and so may the sum it is added to.
            over = np.nextafter(np.nextafter(reduced + dropped, np.inf) + EPSILON * np.abs(dropped), np.inf)
            np.maximum.at(most, levels.level[tail], np.where((digits == 0.0) & (more_digits == 0.0), reduced, over))
        return above(most, potential[-1], -potential[0], self.constant)

    @cached_property
    def potentials(self) -> Floats:
        """(states,) the length of the longest path to each state: the dual that proves the optimum."""
        return farthest(self.edges, self.levels)

    def recover_dual(self, x: NDArray[Any]) -> Floats:
        return self.potentials

    def named_primal(self, x: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {"chain": x}

    def named_dual(self, y: Floats) -> dict[str, NDArray[Any]]:
        return {"state": y.reshape(self.profit.shape[1:])}


MOST_STATES = 1 << 21  # maximum number of states of an explicit lattice


@dataclass(frozen=True, eq=False)
class Chains(CompactReprMixin):
    """members: the documents of each chain in path order, chains by rising grade. grade, share, passing: (G,), the
    common value of a chain. heights: the scores of its members."""

    members: tuple[Ints, ...]
    heights: tuple[Floats, ...]
    grade: Floats
    share: Floats
    passing: Floats

    @classmethod
    def from_scores(cls, scores: Floats, grade: Floats, map: FeatureMap, earnings: GainTable) -> Chains:
        apart = [grade]
        if earnings.kind == DOCUMENT:
            apart += [earnings.share, earnings.passing]
        kinds, chain = np.unique(np.stack(apart, axis=1), axis=0, return_inverse=True)
        chain = chain.reshape(-1)
        rows = np.lexsort((-scores, chain))
        falling = np.split(rows, np.cumsum(np.bincount(chain))[:-1])
        upwards = (map.kind == FIRST) & (kinds[:, 0] > 0)
        members = tuple(part[::-1] if up else part for part, up in zip(falling, upwards.tolist(), strict=True))
        parts = [kinds[:, k] if kinds.shape[1] > k else np.ones(len(kinds)) for k in range(3)]
        return cls(members, tuple(scores[part] for part in members), *parts)

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(part.size for part in self.members)

    @property
    def states(self) -> int:
        return int(np.prod([float(length + 1) for length in self.lengths]))

    def order(self, path: Ints) -> Ints:
        """The document at each position, for the chain of each edge of a path."""
        order = np.empty(path.size, dtype=np.int64)
        for chain, part in enumerate(self.members):
            order[path == chain] = part
        return order


def edges_of(
    chains: Chains, map: FeatureMap, earnings: GainTable, number: Callable[[Any], NDArray[Any]] = np.asarray
) -> NDArray[Any]:
    """(G, N_0 + 1, ...) the gain of each edge, 0 where there is none, without the constant. number: converts arrays of
    doubles first, for exact rational arithmetic."""
    lengths = chains.lengths
    counts = np.indices(tuple(length + 1 for length in lengths))
    position = np.minimum(counts.sum(axis=0), sum(lengths) - 1)
    earned = _gain_function(chains, earnings, counts, position, number)
    zero = number(np.zeros(1))[0]
    edges = []
    for chain, heights in enumerate(chains.heights):
        slope = _slope(chains, map, chain, counts, position, number)
        height = number(np.append(heights, 0.0))[counts[chain]]
        edge = slope * height - earned(chain)
        edges.append(np.where(counts[chain] < lengths[chain], edge, zero))
    return np.stack(edges)


def _slope(
    chains: Chains, map: FeatureMap, chain: int, counts: Ints, position: Ints, number: Callable[[Any], NDArray[Any]]
) -> NDArray[Any]:
    """r of the document that each edge of a chain adds."""
    weight, grade = number(map.weight), chains.grade
    if map.kind == POSITIONAL:
        return np.asarray(weight[position])
    if map.kind == PAIRWISE:
        pairs = np.zeros(position.shape, dtype=np.int64)
        for other, length in enumerate(chains.lengths):
            if grade[other] > grade[chain]:
                pairs += length - counts[other]
            elif grade[other] < grade[chain]:
                pairs -= counts[other]
        return np.asarray(weight[0] * _integers_like(pairs, weight))
    good = grade > 0
    others = counts[~good].sum(axis=0) if (~good).any() else np.zeros(position.shape, dtype=np.int64)
    none = counts[good].sum(axis=0) == 0 if good.any() else np.ones(position.shape, dtype=bool)
    return np.asarray(weight[0] * _integers_like(np.where(none, -others if good[chain] else 1, 0), weight))


def _gain_function(
    chains: Chains, earnings: GainTable, counts: Ints, position: Ints, number: Callable[[Any], NDArray[Any]]
) -> Callable[[int], NDArray[Any]]:
    """A function from a chain to the gain of its next document at each state."""
    if earnings.kind == RANK:
        discount, share = number(earnings.discount), number(np.append(earnings.share, 0.0))
        return lambda chain: (
            share[counts[chain]] * discount[position] if chains.grade[chain] > 0 else 0 * discount[position]
        )
    if earnings.kind == DOCUMENT:
        discount, worth, passing = number(earnings.discount), number(chains.share), number(chains.passing)
        here = discount[position]
        for chain, count in enumerate(counts):
            if chains.passing[chain] != 1.0:
                here = here * _powers(passing[chain], chains.lengths[chain])[count]
        return lambda chain: worth[chain] * here
    table = number(earnings.table).reshape(counts.shape)
    return lambda chain: table[chain]


def _powers(base: Any, most: int) -> NDArray[Any]:
    powers = [base * 0 + 1]
    for _ in range(most):
        powers.append(powers[-1] * base)
    return np.array(powers)


def _integers_like(values: Ints, like: NDArray[Any]) -> NDArray[Any]:
    """Integers in the type of `like`: Python integers among rationals (NumPy integers give doubles)."""
    return values.astype(object) if like.dtype == object else values.astype(np.float64)
