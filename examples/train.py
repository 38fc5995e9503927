"""Train a ranker on a measure, see what is proved of it, and use it.

python examples/train.py
"""

from rankopt.data import load_sample
from rankopt.measures import compare, evaluate
from rankopt.rankers import LargeMarginRanker, PairwiseRanker

sample = load_sample("les-miserables")

ranker = LargeMarginRanker("nDCG@10", bound="convex", lam=1.0).fit(sample.train)
print(ranker.certificate_)  # the objective, and a proven bound below every objective

baseline = PairwiseRanker(lam=0.1).fit(sample.train)
ours = evaluate(sample.test, ranker.predict(sample.test), ["nDCG@10", "AP"])
theirs = evaluate(sample.test, baseline.predict(sample.test), ["nDCG@10", "AP"])
print(ours)
print(compare(ours, theirs, measure="nDCG@10"))

query = sample.test.select([0])
best = ranker.rank(query, k=5)
print(f"{query.query_ids[0]} appears most with: {', '.join(best)}")
print(ranker.explain(query.features[query.document_ids.index(best[0])], query.features[-1]))
