"""The ranker of trees keeps our conventions: queries, eval sets, constraints, files, bits."""

import numpy as np
import pytest
from problems.training import made
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankopt.rankers import BoostedRanker

pytest.importorskip("lightgbm", reason="needs rankopt[boosting]")


@parametrize_with_checks([BoostedRanker(n_estimators=4, n_members=2), BoostedRanker(n_estimators=2, normalize="zscore")])
def test_scikit_learn_accepts_the_ranker(estimator, check):
    check(estimator)
