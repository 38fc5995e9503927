"""scikit-learn's search over λ and the bound, folds of whole queries, in a pipeline that scales the features.

python examples/grid_search.py
"""

import warnings

import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankopt.data import load_sample
from rankopt.errors import NoProgressWarning
from rankopt.measures import evaluate
from rankopt.rankers import LargeMarginRanker

sklearn.set_config(enable_metadata_routing=True)  # so that qid= reaches the ranker through pipeline and search

warnings.simplefilter("ignore", NoProgressWarning)  # a search may try strengths that leave w0 as it is

sample = load_sample("les-miserables")
train, test = sample.train, sample.test
qid = train.qid  # the query of each row

search = GridSearchCV(
    make_pipeline(StandardScaler(), LargeMarginRanker("nDCG@10", position_weights="linear")),
    {"largemarginranker__bound": ["convex", "nonconvex"], "largemarginranker__lam": [1.0, 0.1, 0.01]},
    cv=GroupKFold(3),
)
search.fit(train.features, train.relevance, qid=qid, groups=qid)

print(f"{'bound':<11}{'λ':>6}{'nDCG@10':>10}{'rank':>6}")
found = search.cv_results_
for tried, mean, rank in zip(found["params"], found["mean_test_score"], found["rank_test_score"], strict=True):
    bound, lam = (tried[f"largemarginranker__{name}"] for name in ("bound", "lam"))
    print(f"{bound:<11}{lam:>6g}{mean:>10.4f}{rank:>6}")

best = search.best_estimator_
print(f"\nchosen, fitted on all training queries: {best[-1].certificate_}")
print(f"test queries: nDCG@10 = {evaluate(test, best.predict(test.features), 'nDCG@10').mean():.4f}")
