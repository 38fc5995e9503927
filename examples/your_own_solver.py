"""A solver of your own: a function. It is not believed, and it may train a ranker.

python examples/your_own_solver.py
"""

import numpy as np

from formulations import Assignment, RankTwoAssignment, certify, function_solver, ranking, solve
from formulations.testing import check_solver
from rankopt.data import load_sample
from rankopt.rankers import LargeMarginRanker


def auction(problem):
    """Bertsekas' auction: a position without a document bids for the best one, and raises its price by ε at least.

    The result is within k ε of the optimum: it may be inexact, and what is proved of it will say so.
    """
    benefit = problem.masked_profit()
    k, n = benefit.shape
    price, owner, placed = np.zeros(n), np.full(n, -1), np.full(k, -1)
    epsilon = np.ptp(benefit) / 1000
    while (placed < 0).any():
        position = int(np.argmin(placed))  # the first that has none
        worth = benefit[position] - price
        second, best = np.argsort(worth)[-2:]
        price[best] += worth[best] - worth[second] + epsilon
        if owner[best] >= 0:
            placed[owner[best]] = -1
        owner[best], placed[position] = position, best
    return placed


def by_score(problem):
    """Sort by score: what one would show, but no most violated ranking."""
    return np.argsort(-problem.scores, kind="stable")[: problem.positions]


rng = np.random.default_rng(0)
problem = ranking(
    scores=rng.normal(size=12),
    gain=rng.integers(0, 3, 12),
    discount=1 / np.log2(np.arange(2, 7)),
    position_weights=np.arange(1, 6) ** -0.5,
)
for solver in (
    "exact",
    function_solver(auction, accepts=Assignment),
    function_solver(by_score, accepts=RankTwoAssignment),
):
    solution = solve(problem, solver)
    gap = certify(problem, solution).gap
    print(f"{solution.value:.9f}  gap {gap:.0e}  {solution.status.name:<13} {solution.solver}")

sample = load_sample("les-miserables")
few = sample.train.select(range(4))
print("\ntraining on 4 queries, the same problem twice")
for argmax in ("exact", function_solver(auction, accepts=Assignment)):
    ranker = LargeMarginRanker(
        "nDCG@3", bound="convex", position_weights="linear", lam=1.0, tol=1e-2, argmax_solver=argmax
    ).fit(few)
    print(f"{argmax if isinstance(argmax, str) else argmax.spec:<14}{ranker.certificate_}")

try:
    check_solver(function_solver(by_score, accepts=RankTwoAssignment))
except AssertionError as error:
    print(f"\nthe checks of formulations.testing refuse by_score: {error}")
