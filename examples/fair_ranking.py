"""What does a quota cost, and what does equal exposure cost? A study on generated job candidates.

python examples/fair_ranking.py

Women and men are equally able, but the observed scores of women are too low. A moderate quota costs observed score and
raises the true relevance of the lists. Equal exposure of both groups needs several lists, drawn at random.
"""

import numpy as np
import pandas as pd

from formulations import (
    DemographicParity,
    RankingSet,
    birkhoff_decomposition,
    constrained_ranking,
    marginal_ranking,
    sensitivity,
    solve,
)

QUERIES, N, K = 30, 30, 10
rng = np.random.default_rng(0)
women = np.arange(N) % 3 == 0  # ten of thirty candidates
ability = rng.normal(size=(QUERIES, N))
score = ability + 0.5 * rng.normal(size=(QUERIES, N)) - 1.2 * women  # the observed scores are biased
weights = 1 / np.log2(np.arange(2, K + 2))  # attention at each position


def problem(query, limit):
    quota = RankingSet(N, K).at_least(limit, documents=women, name="women")
    return constrained_ranking(np.outer(weights, score[query]), quota)


print("Cost of a quota in observed scores: mean over the queries, and the dual price of one more woman")
print(sensitivity([problem(query, 0) for query in range(QUERIES)], "women", range(6)))

rows = []
for limit in range(6):
    lists = [solve(problem(query, limit)).order for query in range(QUERIES)]
    shown = np.array([women[order] for order in lists])
    true = np.mean([weights @ ability[query, order] for query, order in enumerate(lists)])
    rows.append((limit, shown.sum(axis=1).mean(), (shown @ weights).mean() / weights.sum(), true))
columns = ["women at least", "women shown", "share of exposure", "true relevance"]
print("\n", pd.DataFrame(rows, columns=columns).round(3).to_string(index=False), sep="")

# A quota counts candidates, wherever they are in the list. Exposure limits hold on average over random lists.
exposure = np.r_[weights, np.zeros(N - K)]
fair = marginal_ranking(np.outer(exposure, score[0]), exposure=exposure, constraints=DemographicParity(women))
marginals = solve(fair).primal["P"]
lists = birkhoff_decomposition(marginals)
mean = pd.Series(exposure @ marginals).groupby(np.where(women, "women", "men")).mean()
print(f"\nEqual exposure in query 0: {mean.round(4).to_dict()}, by {len(lists.probabilities)} lists")
print("Three lists drawn, women as capital letters:")
for order in lists.sample(3, random_state=0):
    print(" ", "".join("W" if women[document] else "m" for document in order[:K]))
