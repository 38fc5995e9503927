"""Queries with named features, and the file of a ranker that was fitted on them."""

import numpy as np
import pytest

from rankopt.data import Queries
from rankopt.measures import parse
from rankopt.rankers import RegressionRanker


@pytest.fixture
def names():
    """What the features are called."""
    return ("année", "bm25", "age")


@pytest.fixture
def queries(names):
    rng = np.random.default_rng(0)
    return Queries.from_arrays(
        rng.normal(size=(24, 3)), rng.integers(0, 3, 24), qid=np.repeat(list("abcd"), 6), feature_names=names
    )


@pytest.fixture
def saved(queries, tmp_path):
    """The file of a fitted ranker."""
    path = tmp_path / "model.rankopt"
    RegressionRanker(0.5, measure=parse("nDCG(gain='linear')@5")).fit(queries).save(path)
    return path
