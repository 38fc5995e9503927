"""Diverse lists, Π(B, k): trained under the set, re-ranked afterwards, and what diversity costs.

python examples/diverse_search.py
"""

from rankopt.constraints import Admissible
from rankopt.data import load_sample
from rankopt.rankers import LargeMarginRanker

sample = load_sample("les-miserables")  # a query is a character, a document another one, a block a community
test, community = sample.test, sample.test.attributes["community"]
diverse = Admissible(k=5, on_infeasible="truncate").at_most(1, by="community")
print(diverse, "\n")

under = LargeMarginRanker("nDCG@5", constraints=diverse).fit(sample.train)
free = LargeMarginRanker("nDCG@5").fit(sample.train)
print(f"trained under the set: {under.certificate_}")

query = test.select([0])
blocks = dict(zip(query.document_ids, query.attributes["community"], strict=True))
print(f"\nwho appears with {query.query_ids[0]}?")
for name, ranker, constraints in (("free", free, None), ("diverse", under, diverse)):
    best = ranker.rank(query, k=5, constraints=constraints)
    print(f"  {name:<8}{', '.join(f'{document} [{blocks[document]}]' for document in best)}")

repeats = {"free": 0, "trained under the set": 0, "re-ranked under it": 0}
for q in range(len(test)):
    one = test.select([q])
    of = dict(zip(one.document_ids, one.attributes["community"], strict=True))
    lists = {
        "free": free.rank(one, k=5),
        "trained under the set": under.rank(one),
        "re-ranked under it": free.rank(one, constraints=diverse),
    }
    for name, documents in lists.items():
        repeats[name] += len(documents) - len({of[document] for document in documents})
print(f"\n{'':<24}{'nDCG@5':>8}{'repeated blocks':>18}")
scores = {
    "free": free.score(test),
    "trained under the set": under.score(test),
    "re-ranked under it": free.score(test, constraints=diverse),
}
for name, score in scores.items():
    print(f"{name:<24}{score:>8.4f}{repeats[name]:>18}")
print(f"price of diversity: {scores['free'] - max(score for name, score in scores.items() if name != 'free'):.4f}")
