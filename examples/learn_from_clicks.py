"""Learn a ranker from a log of clicks, and estimate its value before it is shown to anyone.

The log is a data frame with a row for each document that a user saw: session, query, document, position, click and
features. Two rankers were live, so that some documents were shown at several positions.

python examples/learn_from_clicks.py
"""

import numpy as np
import pandas as pd

from rankopt import LargeMarginRanker
from rankopt.clicks import ClickLog, PositionBias, evaluate_policy

rng = np.random.default_rng(0)
weights = np.array([1.0, -1.0, 0.5])  # of relevance, which no one knows
rows = []
for session in range(4000):
    query = session % 100
    features = np.random.default_rng(query).normal(size=(12, 3))
    relevance = 1 / (1 + np.exp(1 - 2 * features @ weights))
    old = features[:, 0] if rng.random() < 0.5 else features[:, 0] - features[:, 1]  # one of two rankers
    for position, document in enumerate(np.argsort(-old)[:8], start=1):
        click = rng.random() < relevance[document] / position  # examined with probability 1 / position
        rows.append((session, query, f"{query}-{document}", position, int(click), *features[document]))
columns = ["session", "query_id", "doc_id", "position", "click", "x0", "x1", "x2"]
log = ClickLog.from_frame(pd.DataFrame(rows, columns=columns), session="session")
print(log)

bias = PositionBias.from_swaps(log)
print(bias)
train, held_out = log.select(slice(0, 60)), log.select(slice(60, None))  # queries
new = LargeMarginRanker("DCG@5").fit(train, propensities=bias)
print("weights in proportion to", (new.coef_ / new.coef_[0]).round(1), "and", weights)
for name, ranker in (("first feature", held_out.queries.features[:, 0]), ("new ranker", new)):
    print(f"{name}: {evaluate_policy(held_out, ranker, 'DCG@5', propensities=bias)}")
