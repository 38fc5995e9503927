"""Choose λ and the bound with scikit-learn's grid search, in a pipeline that scales the features.

python examples/grid_search.py

The column `qid` of the data frame names the query of each row. The scaler passes it on, rankers do not use it as a
feature, and GroupKFold keeps the rows of a query together.
"""

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankopt import LargeMarginRanker, load_sample

sample = load_sample("les-miserables")
train, test = sample.train.to_frame(), sample.test.to_frame()  # or your own data frames
X, X_test = (frame.drop(columns=["relevance", "docid", "community"]) for frame in (train, test))
scaler = make_column_transformer(
    ("passthrough", ["qid"]), remainder=StandardScaler(), verbose_feature_names_out=False
).set_output(transform="pandas")

search = GridSearchCV(
    make_pipeline(scaler, LargeMarginRanker("nDCG@10", position_weights="linear", w0="zeros")),
    {"largemarginranker__bound": ["convex", "nonconvex"], "largemarginranker__lam": [1.0, 0.1, 0.01]},
    cv=GroupKFold(3),
)
search.fit(X, train["relevance"], groups=X["qid"])

found = pd.DataFrame(search.cv_results_)
found = found[["param_largemarginranker__bound", "param_largemarginranker__lam", "mean_test_score", "rank_test_score"]]
print(found.set_axis(["bound", "lam", "nDCG@10", "rank"], axis=1).to_string(index=False))
print(f"\nThe best one on the test queries: nDCG@10 = {search.score(X_test, test['relevance']):.4f}")
