import numpy as np
import pandas as pd
import pytest

from rankopt.clicks import ClickLog


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def shuffled(rng):
    """A log of two rankers, the same from shuffled records, and the row of each document of the first in the second."""
    X, records = rng.normal(size=(12, 8, 3)), []
    for session in range(600):
        q = session % 12
        order = np.argsort(-X[q, :, 0] if rng.random() < 0.5 else X[q, :, 1])[:5]
        clicks = rng.random(5) < 1 / (1 + np.exp(-X[q, order, 2])) / np.arange(1, 6)
        records += [(session, q, d, p + 1, int(clicks[p]), *X[q, d]) for p, d in enumerate(order)]
    frame = pd.DataFrame(records, columns=["session", "qid", "docid", "position", "click", "a", "b", "c"])
    one, two = ClickLog.from_frame(frame), ClickLog.from_frame(frame.sample(frac=1, random_state=1))
    names = [list(zip(log.queries.qid.tolist(), log.queries.document_ids, strict=True)) for log in (one, two)]
    return one, two, np.array([names[1].index(name) for name in names[0]])
