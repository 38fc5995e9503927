"""Every measure that a line search knows is climbed by `DirectRanker` as it comes, on queries of several relevant
documents; what cannot be smoothed says what to do."""

import numpy as np
import pytest

from rankopt.data import Queries
from rankopt.errors import OptionError
from rankopt.losses.smooth import smoothable
from rankopt.measures import evaluate, parse
from rankopt.rankers import DirectRanker, SmoothRanker

RNG = np.random.default_rng(5)
X, Y, QID = RNG.normal(size=(70, 4)), RNG.integers(0, 4, 70).astype(float), np.repeat(np.arange(10), 7)
QUERIES = Queries.from_arrays(X, Y, qid=QID)

SMOOTH = (
    "nDCG@3", "nDCG", "nDCG(discount='letor')@5", "DCG@2", "P@2", "WTA", "AUC", "ERU(alpha=3, d=1)",
    "NERU(alpha=3, d=1)@4", "Custom(discount=(3, 3, 1), gain=(0, 1, 5, 9))",
)  # fmt: skip
ROUGH = ("RR", "RR@2", "AP", "AP@3", "ERR", "ERR@2", "MeanNDCG", "0.5 RR + 0.5 nDCG@3")


@pytest.mark.every(5)
@pytest.mark.parametrize("measure", [*SMOOTH, *ROUGH])
def test_it_climbs_every_measure_as_it_comes(measure):
    taken = smoothable(measure, QUERIES.relevance, QUERIES.offsets)
    assert taken == (measure in SMOOTH)
    ranker = DirectRanker(measure).fit(X, Y, qid=QID)
    start = SmoothRanker(measure if taken else "nDCG@10").fit(X, Y, qid=QID)
    begun = evaluate(QUERIES, start.predict(X), measure).mean()
    assert ranker.certificate_.value == pytest.approx(evaluate(QUERIES, ranker.predict(X), measure).mean(), abs=1e-12)
    assert ranker.certificate_.value >= begun - 1e-12
    assert ranker.verify().holds


@pytest.mark.parametrize("measure", ROUGH)
def test_what_cannot_be_smoothed_names_the_ranker_that_climbs_it(measure):
    with pytest.raises(OptionError, match=r"cannot be smoothed.*DirectRanker") as told:
        SmoothRanker(measure).fit(X, Y, qid=QID)
    assert repr(str(parse(measure))) in str(told.value)


def test_reciprocal_rank_is_smoothed_where_queries_that_can_be_ordered_have_one_relevant_document():
    grades, offsets = np.array([0.0, 1.0, 0.0, 1.0, 1.0]), np.array([0, 3, 5])
    assert smoothable("RR", grades, offsets)  # in the second query all orders are equal
    assert not smoothable("RR", np.array([0.0, 1.0, 1.0, 1.0, 1.0]), offsets)
    X, qid = np.array([[1.0], [0.0], [2.0], [0.0], [1.0]]), [0, 0, 0, 1, 1]
    assert SmoothRanker("RR").fit(X, grades, qid=qid).coef_[0] < 0.0
    assert DirectRanker("RR").fit(X, grades, qid=qid).certificate_.value == 1.0
