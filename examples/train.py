"""Train a ranker from a data frame, compare it with a baseline, explain a score, save and load the model.

python examples/train.py
"""

from rankopt import LargeMarginRanker, PairwiseRanker, compare, evaluate, load_model, load_sample
from rankopt.data import read_table

sample = load_sample("les-miserables")  # a query is a character of the novel, its documents are the others
frame = sample.train.to_frame()  # or your own: columns qid, relevance, perhaps docid, and features
train, test = read_table(frame), read_table(sample.test.to_frame())

ranker = LargeMarginRanker("nDCG@10", bound="convex", lam=1.0).fit(train)
print(ranker.certificate_)  # the objective, and a proven lower bound of every objective

baseline = PairwiseRanker(lam=0.1).fit(train)
ours, theirs = (evaluate(test, model.predict(test), ["nDCG@10", "AP"]) for model in (ranker, baseline))
print(ours)
print(compare(ours, theirs, measure="nDCG@10"))

query = test.select([0])
best = ranker.rank(query, k=5)
print(f"Predicted to appear most with {query.query_ids[0]}: {', '.join(best)}")
print(ranker.explain(query.features[query.document_ids.index(best[0])], query.features[-1]))

ranker.save("model.rankopt")
same = load_model("model.rankopt").predict(test) == ranker.predict(test)
print(f"The loaded model gives the same scores: {same.all()}")
