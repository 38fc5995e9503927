"""A solver of your own is a function: its answers are recomputed, and it can train a ranker.

python examples/own_solver.py
"""

import numpy as np

from formulations import Assignment, RankTwoAssignment, certify, function_solver, ranking, solve
from formulations.testing import check_solver
from rankopt.data import load_sample
from rankopt.rankers import LargeMarginRanker


def auction(problem):
    """Bertsekas' auction: a free position bids for its best document and raises the document's price by ε or more.

    The result is within k ε of the optimum.
    """
    profit = problem.masked_profit()
    k, n = profit.shape
    price, owner, document_of = np.zeros(n), np.full(n, -1), np.full(k, -1)
    epsilon = np.ptp(profit) / 1000
    while (document_of < 0).any():
        position = int(np.argmin(document_of))  # the first free position
        second, best = np.argsort(profit[position] - price)[-2:]
        price[best] += profit[position, best] - price[best] - (profit[position, second] - price[second]) + epsilon
        if owner[best] >= 0:
            document_of[owner[best]] = -1
        owner[best], document_of[position] = position, best
    return document_of


def by_score(problem):
    """Sort by score: the ranking that users see, but not the loss-augmented argmax that training needs."""
    return np.argsort(-problem.scores, kind="stable")[: problem.positions]


rng = np.random.default_rng(0)
discount, weights = 1 / np.log2(np.arange(2, 7)), np.arange(1, 6) ** -0.5
problem = ranking(rng.normal(size=12), gain=rng.integers(0, 3, 12), discount=discount, position_weights=weights)
own = function_solver(auction, accepts=Assignment)
wrong = function_solver(by_score, accepts=RankTwoAssignment)
for solver in ("exact", own, wrong):
    solution = solve(problem, solver)
    gap = certify(problem, solution).gap
    print(f"{solution.value:.9f}  gap {gap:.0e}  {solution.status.name:<12} {solution.solver}")

few = load_sample("les-miserables").train.select(range(4))
print("\nThe same training problem with two solvers:")
for solver in ("exact", own):
    ranker = LargeMarginRanker("nDCG@3", bound="convex", lam=1.0, tol=1e-2, argmax_solver=solver)
    print(ranker.fit(few).certificate_)

try:
    check_solver(wrong)
except AssertionError as error:
    print(f"\ncheck_solver refuses by_score: {error}")
