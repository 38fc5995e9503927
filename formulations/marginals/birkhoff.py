"""Decomposition of a marginal ranking into a distribution over rankings (Birkhoff and von Neumann).

    P[i, j] = Σ_r probability[r] [order r has document j at position i]

Every k × n matrix P >= 0 with row sums 1 and column sums at most 1 (1 if k = n) is such a sum, of at most k (n - 1) + 1
rankings, or (n - 1)² + 1 if k = n. Each step takes a ranking whose least P[i, j] is nearly as large as possible, with
the largest possible probability, so that few rankings suffice. (To find the fewest is NP-hard: Dufossé and Uçar 2016.)

>>> lottery = birkhoff_decomposition([[0.6, 0.4, 0.0], [0.4, 0.0, 0.6]])
>>> print(lottery)
2 rankings of 3 documents at 2 positions
0.6  0 2
0.4  1 0
>>> lottery.expected([[3.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
3.6

A matrix that is a marginal ranking up to a tolerance is first replaced by one that is exactly.

>>> near_marginal_ranking(np.array([[0.5, 0.5 + 2e-9], [0.5, 0.5]]), 1e-6).sum(axis=0).round(12)
array([1., 1.])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Bools, Floats, Ints, as_integer, check_type, finite, frozen, generator
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblemError

NOISE = (1e-12, 1e-6)  # entries up to the first value count as zero for any sums, above the second never


def near_marginal_ranking(P: Floats, tolerance: float) -> Floats:
    """A (k, n) matrix near P: nonnegative, row sums 1, column sums at most 1 (1 if k = n), up to rounding.

    After Altschuler, Weed and Rigollet 2017, algorithm 2: columns and rows with too large sums are scaled down, then
    the deficit of each row is added where columns have slack, in the row's largest entries first (theirs is an outer
    product, which leaves no zero). Entries no larger than the worst violation count as zero, if that is rounding.

    Raises `InvalidProblemError` with the position if P violates its limits by more than `tolerance`.
    """
    k, n = P.shape
    if k == 0 or k > n:
        raise InvalidProblemError(f"P must have shape (positions, documents), positions <= documents; got {P.shape}.")
    violation = _check_marginals(P, tolerance)
    near = np.where(np.clip(violation, *NOISE) < P, P, 0.0)
    near /= np.maximum(near.sum(axis=0), 1.0)
    near /= np.maximum(near.sum(axis=1, keepdims=True), 1.0)
    slack = np.maximum(1.0 - near.sum(axis=0), 0.0)
    lacking = 1.0 - near.sum(axis=1)
    for i in np.flatnonzero(lacking > 0.0):
        largest = np.argsort(-near[i], kind="stable")
        before = np.cumsum(slack[largest]) - slack[largest]
        put = np.clip(lacking[i] - before, 0.0, slack[largest])
        near[i, largest] += put
        slack[largest] -= put
    return near


def _check_marginals(P: Floats, tolerance: float) -> float:
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
    worst = max(violations, key=lambda words: violations[words])
    if not violations[worst] <= tolerance:
        raise InvalidProblemError(
            f"P is no marginal ranking: {worst}; solve it more accurately, or raise the tolerance of {tolerance:g}"
        )
    return max(violations[worst], 0.0)


MOST_DRAWN = 1 << 28
SHRINK = 0.8  # A step's ranking has at least this fraction of the largest possible least probability
NOTHING = 1e-15  # probabilities below this are rounding
SHOWN = 10  # number of rankings that are printed


@dataclass(frozen=True, eq=False)
class RankingDistribution(CompactReprMixin):
    """Rankings and their probabilities, the likeliest first.

    orders: (m, k) the document at each position. probabilities: (m,) positive, of sum 1. documents: n. moved: the
    largest change of an entry of the input matrix that made it a marginal ranking; `marginals()` differs from the input
    by that plus 1e-12.
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
        """(k, n): the probability of each document at each position."""
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
        """A random order (k,), or `size` of them (size, k); reproducible only with `random_state`."""
        if size is not None:
            size = as_integer("size", size)
            if size > MOST_DRAWN:
                raise InvalidProblemError(f"size must be at most {MOST_DRAWN}; got {size}. Draw in parts.")
        drawn = generator("random_state", random_state).choice(len(self), size, p=self.probabilities)
        return np.asarray(self.orders[drawn])


def birkhoff_decomposition(P: ArrayLike, *, tolerance: float = 1e-6, accuracy: float = 1e-12) -> RankingDistribution:
    """The distribution with the marginals P (Birkhoff and von Neumann).

    Args:
        P: (k, n), P[i, j] the probability that document j is at position i. Solver errors are repaired first;
            `RankingDistribution.moved` is the largest change.
        tolerance: the most by which an entry may be negative, a row's sum may differ from 1 and a column's exceed it.
        accuracy: stop when no entry can differ by more than this from the repaired P. A larger one gives fewer
            rankings: interior-point solvers leave tiny values in many entries, which 1e-6 ignores.

    Raises:
        InvalidProblemError: P contains NaN or infinity, has more rows than columns, or violates the tolerance.
    """
    check_type("accuracy", accuracy, float, int)
    if not 0.0 <= accuracy < 1.0:
        raise InvalidProblemError(f"accuracy must be at least 0 and below 1; got {accuracy}.")
    check_type("tolerance", tolerance, float, int)
    matrix = finite("P", P, 2)
    mended = near_marginal_ranking(matrix, tolerance)
    orders, taken = _decompose(mended, accuracy)
    likeliest = np.argsort(-taken, kind="stable")
    probabilities = taken[likeliest] / taken.sum()
    moved = float(np.abs(mended - matrix).max())
    return RankingDistribution(frozen(orders[likeliest]), frozen(probabilities), matrix.shape[1], moved)


def _decompose(P: Floats, accuracy: float) -> tuple[Ints, Floats]:
    """Orders, and the probability of each; less than `accuracy` of P remains.

    The remainder of P has row sums `left`; `idle` is the slack of its columns. A ranking can be subtracted as long as
    nothing becomes negative: it must use every column without slack. Each step makes a cell or the slack of a column
    zero; these stay zero. Hence all rankings are distinct, and there are at most the dimension of the polytope plus
    one.
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
        reduced = rest[rows, order] - step
        rest[rows, order] = np.where(reduced > NOTHING, reduced, 0.0)
        idle[unused] = np.where(idle[unused] - step > NOTHING, idle[unused] - step, 0.0)
        left -= step
        orders.append(order)
        taken.append(step)
    return np.array(orders), np.array(taken)


def _order_above(rest: Floats, idle: Floats, least: float) -> Ints | None:
    """An order of cells above `least` that uses every column with no more slack than that; None if there is none."""
    from scipy.optimize import linear_sum_assignment

    needed: Bools = idle <= least
    try:
        _, order = linear_sum_assignment(np.where(rest > least, needed.astype(np.float64), -np.inf), maximize=True)
    except ValueError:  # no assignment of cells above
        return None
    return np.asarray(order, dtype=np.int64) if needed[order].sum() == needed.sum() else None
