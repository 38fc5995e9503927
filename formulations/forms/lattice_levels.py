"""The states of a lattice of counts, level by level, and the longest paths through them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Ints

__all__ = ["LatticeLevels", "farthest"]


class LatticeLevels:
    """The states of a lattice by the sum of their counts, from 0 to n."""

    def __init__(self, lengths: tuple[int, ...]) -> None:
        shape = tuple(length + 1 for length in lengths)
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
        """The chain of each edge of a longest path: of several the one with low chains as late as may be, which is
        found from the end, where the lowest chain that ties is the last edge."""
        chains = np.empty(len(self.states) - 1, dtype=np.int64)
        state, strides = self.level.size - 1, self.strides.tolist()
        counts = [int(most) for most in np.unravel_index(state, [self._extent(h) for h in range(len(strides))])]
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

    def _extent(self, chain: int) -> int:
        whole = self.level.size if chain == 0 else int(self.strides[chain - 1])
        return whole // int(self.strides[chain])


def farthest(edges: NDArray[Any], levels: LatticeLevels) -> NDArray[Any]:
    """(states,) the length of the longest path from the first state to each, level by level. edges (G, states) may be
    floats or Python's numbers."""
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
