"""A set of rankings of your own, in two languages; the best ranking in it, the price of each quota, and a conflict.

python examples/custom_constraints.py
"""

import cvxpy as cp
import numpy as np

from formulations import InfeasibleError, RankingSet, certify, compatible_solvers, constrained_ranking, solve

n, k = 9, 5
rng = np.random.default_rng(1)
profit = np.outer(1 / np.log2(np.arange(2, k + 2)), np.sort(rng.normal(size=n))[::-1])
sites = ["a.org"] * 4 + ["b.org"] * 3 + ["c.org"] * 2
women = np.array([0, 0, 1, 0, 0, 1, 0, 1, 1], dtype=bool)

admissible = (
    RankingSet(n, k)
    .at_most(2, by=sites, name="site")
    .at_least(2, documents=women, name="women")
    .at_least(1, documents=women, positions=range(2), name="women on top")
    .precedes(1, 0)
    .forbid(documents=3, positions=0)
)
print(admissible)

problem = constrained_ranking(profit, admissible)
solution = solve(problem)
print(f"free: {np.arange(k)}   admissible: {solution.order}   {solution.solver}")
print(
    f"value {solution.value:.6f}, proven bound {solution.bound:.6f}, certified gap {certify(problem, solution).gap:.0e}"
)
print("by how much one more unit of a limit raises the bound at most (negative: what raising a floor takes):")
for name in ("site", "women", "women on top"):
    print(f"  price of {name!r}: {np.round(solution.dual[name], 4)}")

# The same set as cvxpy constraints gives the same program.
π = cp.Variable((k, n))
stated = [
    *[(cp.sum(π[:, [j for j in range(n) if sites[j] == s]]) <= 2).set_label(s) for s in dict.fromkeys(sites)],
    (cp.sum(π[:, women]) >= 2).set_label("women"),
    (cp.sum(π[:2, women]) >= 1).set_label("women on top"),
    *[cp.sum(π[: p + 1, 0]) <= cp.sum(π[:p, 1]) for p in range(1, k)],
    π[0, 0] == 0,
    π[0, 3] == 0,
]
same = solve(constrained_ranking(profit, RankingSet.from_cvxpy(π, stated)))
print(f"stated in cvxpy: {same.order}, value {same.value:.6f}\n")

for solver in compatible_solvers(problem)[:6]:
    print(f"{solve(problem, solver).value:.9f}  {solver}")

try:
    constrained_ranking(profit, admissible.at_most(1, documents=women, name="at most one woman"))
except InfeasibleError as error:
    print(f"\nInfeasible: {error}")
