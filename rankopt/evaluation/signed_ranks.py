"""Wilcoxon's signed-rank test: are differences as often, and as far, above zero as below?

    W = Σ_q [d_q > 0] rank |d_q|          queries with d_q = 0 left out, ranks of equal |d_q| their mean

Were both rankers alike, each sign would fall by a coin. The distribution of W over all signs is counted up to 200
queries, ties of ranks included; beyond it is normal, mean Σ rank / 2, variance Σ rank² / 4. p is twice the lesser tail.

Source: Wilcoxon, Individual comparisons by ranking methods, 1945; [ORM, section 6.1] on sums of nDCG@1 to 10.
"""

from __future__ import annotations

import numpy as np

from rankopt.measures.segments import Floats

__all__ = ["signed_rank_p"]

COUNTED = 200


def signed_rank_p(differences: Floats) -> float:
    """The two-sided p of differences (n,); 1 where all are zero."""
    d = differences[differences != 0]
    if len(d) == 0:
        return 1.0
    _, place, counts = np.unique(np.abs(d), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(counts) - counts + 1)[place]  # twice the mean rank, a whole number
    w, total = int(doubled[d > 0].sum()), int(doubled.sum())
    if len(d) > COUNTED:
        from scipy.special import ndtr

        return float(2 * ndtr(-abs(w - total / 2) / np.sqrt(np.sum(doubled.astype(np.float64) ** 2) / 4)))
    chances, reach = np.zeros(total + 1), 0
    chances[0] = 1.0
    for rank in doubled.tolist():
        chances[: reach + 1] /= 2
        chances[rank : rank + reach + 1] += chances[: reach + 1].copy()
        reach += rank
    lesser = min(chances[: w + 1].sum(), chances[w:].sum())
    return float(min(1.0, 2 * lesser))
