"""What orders earn, as losses see it, is what the measure says of them."""

from itertools import permutations

import numpy as np
import pytest

from rankopt.data import Queries
from rankopt.losses.oracle import Criterion
from rankopt.measures import evaluate, parse
from rankopt.rankers import LargeMarginRanker

MEASURES = ["RR", "RR@2", "Success@2", "WTA", "nDCG@2", "R@2", "RBP(p=0.5)", "AUC", "AP", "ERR"]


@pytest.mark.parametrize("text", MEASURES)
@pytest.mark.parametrize("grades", [(0.0, 1.0, 0.0, 0.0), (1.0,), (0.0, 0.0, 1.0)], ids=str)
def test_an_order_earns_its_value(text, grades):
    """Also RR of one relevant document, an inner product whose best orders are told more simply than its value."""
    measure, offsets = parse(text), np.array([0, len(grades)])
    criterion = Criterion.from_measure(measure, np.array(grades), offsets)
    for order in permutations(range(len(grades))):
        rows = np.array(order)
        shown = np.array(grades)[rows]
        scores = -np.arange(len(grades), dtype=float)
        wanted = evaluate(shown, scores, measure, convention="burges").mean()
        if text == "AUC" and len(grades) == 1:
            continue
        assert (criterion.earned(rows) - criterion.constant)[0] == pytest.approx(wanted, abs=1e-12)
    tied = np.zeros(len(grades))
    values = [criterion.earned(np.array(order))[0] for order in permutations(range(len(grades)))]
    worst, mean = criterion.worst_and_mean(tied)
    assert (worst[0], mean[0]) == (pytest.approx(min(values)), pytest.approx(np.mean(values)))


@pytest.mark.filterwarnings("ignore:the optimum is at w0")
@pytest.mark.parametrize("name", ["positional", "pairwise", "first-relevant"])
def test_the_regret_of_rr_is_that_of_the_evaluation_where_one_document_is_relevant(name):
    rng = np.random.default_rng(0)
    features, grades = rng.normal(size=(30, 2)), np.zeros(30)
    grades[np.arange(5) * 6 + rng.integers(0, 6, 5)] = 1
    queries = Queries.from_arrays(features, grades, qid=np.repeat(np.arange(5), 6))
    ranker = LargeMarginRanker("RR", feature_map=name, bound="convex", w0="ridge", lam=0.01).fit(queries)
    table = ranker.bound_tightness(queries).columns()
    regret = 1 - evaluate(queries, ranker.predict(queries), "RR").per_query()
    assert table["regret"] == pytest.approx(regret)
    assert np.all(table["convex"] >= regret - 1e-9)
