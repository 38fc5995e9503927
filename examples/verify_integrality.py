"""Is the linear program of a set of rankings whole? A proof or a witness, and what the difference costs.

python examples/verify_integrality.py
"""

import numpy as np

from formulations import RankingSet, check_evidence, constrained_ranking, integrality_gap, solve, verify_integrality

sites = ["a.org", "a.org", "a.org", "b.org", "b.org", "c.org", "d.org", "d.org"]
topics = [("news", "sport"), ("sport", "film"), ("film", "news"), "news", None, None, None, None]
every = RankingSet(documents=8, positions=4)

sets = {
    "one document a site": every.at_most(1, by=sites, name="site"),
    "two a site, one of them new": every.at_most(2, by=sites, name="site").at_least(1, documents=[3, 4], name="new"),
    "document 3 before document 0": every.precedes(3, 0),
    "a quota on the first two positions": every.at_most(1, documents=[0, 1, 2], positions=range(2), name="top"),
    "one document a topic, topics overlap": every.at_most(1, by=topics, name="topic"),
}
for name, admissible in sets.items():
    answer = verify_integrality(admissible)
    check_evidence(admissible, answer)  # checked again from the matrix alone
    print(f"{name}:\n  {str(answer).replace(chr(10), chr(10) + '  ')}\n")

# Not totally unimodular does not mean fractional for every objective: that is a question of its own.
weights = np.array([1.0, 0.9, 0.8, 0.7])
for scores in ([3.0, 3.0, 3.0, 0, 0, 0, 0, 0], [8.0, 7, 6, 5, 4, 3, 2, 1]):
    problem = constrained_ranking(np.outer(weights, scores), sets["one document a topic, topics overlap"])
    solution = solve(problem)
    print(f"scores {scores}: {integrality_gap(problem)}")
    print(f"  best ranking {solution.order}, value {solution.value:g}, proven bound {solution.bound:g}")
    print(f"  {solution.solver}: {solution.message}")
