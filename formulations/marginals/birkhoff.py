"""Lotteries over rankings: what a marginal ranking means, drawn up by Birkhoff and von Neumann.

    P[i, j] = Σ_r probability[r] [order r has document j at position i]

Every k × n matrix P >= 0 whose rows sum to 1 and whose columns sum to 1 at most (to 1 if k = n) is such a sum, of
k (n - 1) + 1 rankings at most, or (n - 1)² + 1 if k = n. Few are wanted: each step takes a ranking whose least P[i, j]
is nearly as large as it can be, and as much of it as can be taken. (To find the fewest is NP-hard: Dufossé and Uçar
2016.)

>>> lottery = birkhoff_decomposition([[0.6, 0.4, 0.0], [0.4, 0.0, 0.6]])
>>> print(lottery)
2 rankings of 3 documents at 2 positions
0.6  0 2
0.4  1 0
>>> lottery.expected([[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
3.6

From a matrix that is nearly a marginal ranking to one that is.

>>> near_marginal_ranking(np.array([[0.5, 0.5 + 2e-9], [0.5, 0.5]]), 1e-6).sum(axis=0).round(12)
array([1., 1.])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Bools, Floats, Ints, finite, frozen
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblemError

NOISE = (1e-12, 1e-6)
"""Entries up to the first count as zero however well the sums agree, above the second never."""


def near_marginal_ranking(P: Floats, tolerance: float) -> Floats:
    """A (k, n) matrix near P: not negative, rows of sum 1, columns of sum 1 at most (1 if k = n), to rounding.

    After Altschuler, Weed and Rigollet 2017, algorithm 2: columns and rows too heavy are scaled down, then what rows
    lack is put where columns have room, in a row's largest entries first (theirs is an outer product, which leaves
    no zero). Entries no larger than the worst violation count as zero, as long as that is rounding.

    Raises `InvalidProblemError`, naming the place, where P is further than `tolerance` from its limits.
    """
    k, n = P.shape
    if k == 0 or k > n:
        raise InvalidProblemError(
            f"P has shape {P.shape}, but needs a row a position, and a column for each of as many documents"
        )
    violation = _checked(P, tolerance)
    near = np.where(np.clip(violation, *NOISE) < P, P, 0.0)
    near /= np.maximum(near.sum(axis=0), 1.0)
    near /= np.maximum(near.sum(axis=1, keepdims=True), 1.0)
    room = np.maximum(1.0 - near.sum(axis=0), 0.0)
    lacking = 1.0 - near.sum(axis=1)
    for i in np.flatnonzero(lacking > 0.0):
        largest = np.argsort(-near[i], kind="stable")
        before = np.cumsum(room[largest]) - room[largest]
        put = np.clip(lacking[i] - before, 0.0, room[largest])
        near[i, largest] += put
        room[largest] -= put
    return near


def _checked(P: Floats, tolerance: float) -> float:
    """The worst violation, if it is within the tolerance."""
    k, n = P.shape
    rows, columns = P.sum(axis=1), P.sum(axis=0)
    least = int(P.argmin())
    row = int(np.abs(rows - 1.0).argmax())
    over = columns - 1.0 if k < n else np.abs(columns - 1.0)
    column = int(over.argmax())
    violations = {
        f"position {least // n} has document {least % n} with probability {P.flat[least]:.9g}": -float(P.flat[least]),
        f"position {row} holds {rows[row]:.9g} documents, but must hold 1": abs(float(rows[row]) - 1.0),
        f"document {column} has total probability {columns[column]:.9g}, but must have 1"
        + (" at most" if k < n else ""): float(over[column]),
    }
    place = max(violations, key=lambda words: violations[words])
    if not violations[place] <= tolerance:
        raise InvalidProblemError(
            f"P is no marginal ranking: {place}; solve it more accurately, or raise the tolerance of {tolerance:g}"
        )
    return max(violations[place], 0.0)


SHRINK = 0.8
"""A step's ranking has at least this part of the largest least probability that a ranking could have."""

NOTHING = 1e-15
"""Probability that is only rounding."""

SHOWN = 10
"""How many rankings are printed."""


@dataclass(frozen=True, eq=False)
class RankingDistribution(CompactReprMixin):
    """Rankings and their probabilities, the likeliest first.

    orders: (m, k) the document at each position. probabilities: (m,) positive, of sum 1. documents: n.
    moved: the most by which an entry of the given matrix was changed to make it a marginal ranking before it was
    decomposed; `marginals()` is as far from the given matrix as that, but for 1e-12.
    """

    orders: Ints
    probabilities: Floats
    documents: int
    moved: float = 0.0

    def __len__(self) -> int:
        return int(self.probabilities.size)

    def __iter__(self) -> Iterator[tuple[float, Ints]]:
        """Pairs of a probability and its order."""
        return zip(self.probabilities.tolist(), self.orders, strict=True)

    def __str__(self) -> str:
        count, positions = self.orders.shape
        lines = [f"{count} ranking{'s' * (count > 1)} of {self.documents} documents at {positions} positions"]
        chances = [f"{probability:.3g}" for probability in self.probabilities[:SHOWN]]
        width = max(map(len, chances))
        lines += [
            f"{chance:<{width}}  {' '.join(map(str, order.tolist()))}"
            for chance, order in zip(chances, self.orders, strict=False)
        ]
        if count > SHOWN:
            lines.append(f"{self.probabilities[SHOWN:].sum():.3g}  {count - SHOWN} more")
        return "\n".join(lines)

    def marginals(self) -> Floats:
        """(k, n): how likely each document is at each position."""
        positions = self.orders.shape[1]
        cells = np.arange(positions) * self.documents + self.orders
        weights = np.repeat(self.probabilities, positions)
        summed = np.bincount(cells.ravel(), weights, positions * self.documents)
        return np.asarray(summed, dtype=np.float64).reshape(positions, self.documents)

    def expected(self, profit: ArrayLike) -> float:
        """Mean profit of a drawn ranking; profit: (k, n)."""
        worth = finite("profit", profit, 2)
        if worth.shape != (self.orders.shape[1], self.documents):
            raise InvalidProblemError(f"profit has shape {worth.shape}, not {(self.orders.shape[1], self.documents)}")
        values = worth[np.arange(worth.shape[0]), self.orders].sum(axis=1)
        return float(self.probabilities @ values)

    def sample(self, size: int | None = None, *, random_state: int | np.random.Generator | None = None) -> Ints:
        """A drawn order (k,), or `size` of them (size, k). Other draws every time, unless `random_state` says which."""
        drawn = np.random.default_rng(random_state).choice(len(self), size, p=self.probabilities)
        return np.asarray(self.orders[drawn])


def birkhoff_decomposition(P: ArrayLike, *, tolerance: float = 1e-6, accuracy: float = 1e-12) -> RankingDistribution:
    """The lottery with the marginals P (Birkhoff and von Neumann).

    Args:
        P: (k, n), P[i, j] the probability that document j is at position i. What a solver leaves of rounding is
            mended first; `RankingDistribution.moved` tells by how much.
        tolerance: the most by which an entry may be negative, a row's sum may differ from 1 and a column's exceed it.
        accuracy: stop when no entry can be off by more than this from the mended P. A larger one gives
            fewer rankings: interior-point solvers leave dust in many entries, which 1e-6 spares.

    Raises:
        InvalidProblemError: P holds NaN or infinity, has more rows than columns, or breaks the tolerance; names where.
    """
    if not 0.0 <= accuracy < 1.0:
        raise InvalidProblemError(f"accuracy is {accuracy}, but must be at least 0 and below 1")
    given = finite("P", P, 2)
    mended = near_marginal_ranking(given, tolerance)
    orders, taken = _taken_apart(mended, accuracy)
    likeliest = np.argsort(-taken, kind="stable")
    probabilities = taken[likeliest] / taken.sum()
    moved = float(np.abs(mended - given).max())
    return RankingDistribution(frozen(orders[likeliest]), frozen(probabilities), given.shape[1], moved)


def _taken_apart(P: Floats, accuracy: float) -> tuple[Ints, Floats]:
    """Orders, and how much of P was taken in each; less than `accuracy` remains.

    The rest of P has rows of sum `left`; `idle` is what its columns lack of that. A ranking can be taken as long as it
    leaves nothing negative: it must use every column that is not idle. Each step empties a cell, or what a column is
    idle; they stay empty. Hence no ranking comes twice, and no more come than the dimension of the polytope plus one.
    """
    rest, (positions, documents) = P.copy(), P.shape
    rows, left = np.arange(positions), 1.0
    idle = np.maximum(1.0 - rest.sum(axis=0), 0.0) if positions < documents else np.zeros(documents)
    orders: list[Ints] = []
    taken: list[float] = []
    least = SHRINK
    while left > accuracy and least > NOTHING:
        order = _order_above(rest, idle, least)
        if order is None:
            least *= SHRINK
            continue
        unused = np.ones(documents, dtype=bool)
        unused[order] = False
        step = min(left, float(rest[rows, order].min()), float(idle[unused].min(initial=np.inf)))
        kept = rest[rows, order] - step
        rest[rows, order] = np.where(kept > NOTHING, kept, 0.0)
        idle[unused] = np.where(idle[unused] - step > NOTHING, idle[unused] - step, 0.0)
        left -= step
        orders.append(order)
        taken.append(step)
    return np.array(orders), np.array(taken)


def _order_above(rest: Floats, idle: Floats, least: float) -> Ints | None:
    """An order of cells above `least` that uses every column with no more than that idle; None if there is none."""
    from scipy.optimize import linear_sum_assignment

    needed: Bools = idle <= least
    try:
        _, order = linear_sum_assignment(np.where(rest > least, needed.astype(np.float64), -np.inf), maximize=True)
    except ValueError:  # no assignment of cells above
        return None
    return np.asarray(order, dtype=np.int64) if needed[order].sum() == needed.sum() else None
