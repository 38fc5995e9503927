"""Marginals of the Plackett-Luce distribution: rankings drawn document by document in proportion to exp(score)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from formulations.arrays import Floats, as_integer, finite
from formulations.errors import InvalidProblemError

STEP, LEAST, SURE = 0.125, 1e-17, 45.0


def plackett_luce_marginals(scores: ArrayLike, positions: int) -> Floats:
    """(positions, n) the probability of each document at each of the first positions, exact to about 1e-12.

    Documents arrive at independent exponential times of rates u = exp(score), which is the order of the distribution.
    Document j is at position k + 1 if k others are before it:

        P_kj = ∫ u_j exp(-u_j t) Q_jk(t) dt,   Q_jk(t) the probability that k of the others arrive before t

    Q_j is the product of polynomials (1 - p_i + p_i z) of the others, p_i = 1 - exp(-u_i t), of products from the left
    and from the right: O(n k²) for each point of a trapezoid rule in log t, which converges exponentially.

    Args:
        scores: (n,) finite scores, divided by the temperature.
        positions: k <= n.
    """
    s = finite("scores", scores, 1)
    n, k = s.size, as_integer("positions", positions)
    if not n or not 1 <= k <= n:
        raise InvalidProblemError(f"positions must be from 1 to the number of scores, {n}; got {positions}")
    rates = np.exp(np.maximum(s - s.max(), -600.0))
    last = np.sort(rates)[::-1][min(k, n - 1)]  # when the fastest k and one more have arrived, nothing is open
    x = np.arange(np.log(LEAST / rates.sum()), np.log(SURE / last) + STEP, STEP)
    P = np.zeros((k, n))
    for part in np.array_split(x, max(1, x.size * n * k // 2**22)):
        t = np.exp(part)
        stay = np.exp(-rates[:, None] * t)  # (n, points)
        arrive = -np.expm1(-rates[:, None] * t)
        left, right = np.zeros((n + 1, k, t.size)), np.zeros((n + 1, k, t.size))
        left[0, 0] = right[n, 0] = 1.0
        for i in range(n):
            for table, at, before, j in ((left, i + 1, i, i), (right, n - 1 - i, n - i, n - 1 - i)):
                table[at] = table[before] * stay[j]
                table[at, 1:] += table[before, :-1] * arrive[j]
        weight = STEP * rates[:, None] * t * stay  # dt = t dx
        for a in range(k):
            for b in range(k - a):
                P[a + b] += np.einsum("ip,ip,ip->i", weight, left[:-1, a], right[1:, b])
    return P
