"""What a quota costs, what if it may be broken, what if it cannot hold, and what would make its program whole.

python examples/price_of_a_quota.py
"""

import numpy as np

from formulations import RankingSet, constrained_ranking, sensitivity, solve, suggest_changes

n, k = 9, 5
profit = np.outer(1 / np.log2(np.arange(2, k + 2)), np.sort(np.random.default_rng(1).normal(size=n))[::-1])
sites, women = [*"aaaabbbcc"], np.array([2, 5, 7, 8])
quotas = RankingSet(n, k).at_most(3, by=sites, name="site").at_least(1, documents=women, name="women")
problem = constrained_ranking(profit, quotas)

print("The best value against each limit; the price proves what the next unit gains at most:")
print(sensitivity(problem, "site", range(1, 5)))
print(sensitivity(problem, "women", range(5)))

print("\nThe quota on sites at a price, in place of a limit:")
for price in (0.05, 0.2, 1.0):
    solution = solve(
        constrained_ranking(profit, quotas.at_most(1, by=sites, name="one").penalized("one", penalty=price))
    )
    print(f"  {price}: {solution.order}, worth {solution.value:.4f}, breaks {solution.violations or 'nothing'}")

strict = quotas.at_most(1, by=sites, name="one")
print(f"\nOne document a site leaves no ranking of {k}. The least broken one, sites at 1 a unit:")
print(f"  {strict.repair(penalties={'one': 1.0, 'women': 2.0})}")

top = quotas.at_least(1, documents=women, positions=range(2), name="women on top")
print("\nWith a quota on the first two the matrix is not totally unimodular. What would make it so:")
for one in suggest_changes(top):
    print(f"  {one}")
