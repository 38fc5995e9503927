"""Constraints of your own: the best ranking, duals, integrality, cvxpy, a conflict and its repair.

python examples/custom_constraints.py
"""

import cvxpy as cp
import numpy as np

from formulations import (
    InfeasibleError,
    RankingSet,
    certify,
    check_evidence,
    constrained_ranking,
    solve,
    suggest_changes,
    verify_integrality,
)

n, k = 9, 5
rng = np.random.default_rng(1)
profit = np.outer(1 / np.log2(np.arange(2, k + 2)), np.sort(rng.normal(size=n))[::-1])
sites = ["a.org"] * 4 + ["b.org"] * 3 + ["c.org"] * 2
new = np.array([0, 0, 1, 0, 0, 1, 0, 1, 1], dtype=bool)

diverse = RankingSet(n, k).at_most(2, by=sites, name="site")
quotas = diverse.at_least(2, documents=new, name="new")
admissible = quotas.at_least(1, documents=new, positions=range(2), name="new on top").precedes(1, 0)
problem = constrained_ranking(profit, admissible)
solution = solve(problem)
print(f"best ranking {solution.order}, value {solution.value:.6f}, bound {solution.bound:.6f}")
print(f"gap, computed again from the data: {certify(problem, solution).gap:.0e}")
for name in ("site", "new", "new on top"):
    print(f"  dual variables of {name!r}: {np.round(solution.dual[name], 4)}")

print("\nAre all vertices of the linear program rankings?")
for name, one in (("disjoint groups", diverse), ("groups that overlap", quotas)):
    answer = verify_integrality(one)
    check_evidence(one, answer)  # checked again from the matrix alone
    print(f"  {name}: {answer}".partition(";")[0])
print("  Changes that make it integral:", *suggest_changes(quotas), sep="\n    ")

π = cp.Variable((k, n))  # the same set in cvxpy
constraints = [
    *[(cp.sum(π[:, [j for j in range(n) if sites[j] == s]]) <= 2).set_label(s) for s in dict.fromkeys(sites)],
    (cp.sum(π[:, new]) >= 2).set_label("new"),
    (cp.sum(π[:2, new]) >= 1).set_label("new on top"),
    *[cp.sum(π[: p + 1, 0]) <= cp.sum(π[:p, 1]) for p in range(k)],
]
same = solve(constrained_ranking(profit, RankingSet.from_cvxpy(π, constraints)))
print(f"\nStated in cvxpy: {same.order}, value {same.value:.6f}")

strict = quotas.at_most(1, documents=new, name="few new")
try:
    strict.check_nonempty()
except InfeasibleError as error:
    print(f"\nInfeasible: {error}")
print(f"Least violation: {strict.repair(penalties={'new': 1.0, 'few new': 2.0})}")
