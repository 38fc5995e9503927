"""α-nDCG and subtopic recall of documents with attributes, over all orders and ties."""

from itertools import permutations
from math import log2
from types import SimpleNamespace

import numpy as np
import pytest

from rankopt.errors import MeasureError
from rankopt.measures import evaluate

QUERIES = [
    ((1, "a"), (1, "a"), (0, "b"), (1, "b"), (2, "c")),
    ((0, "a"), (1, ("a", "b")), (1, ("b",)), (1, ()), (1, None)),
    ((1, {"a", "b", "c"}), (1, {"c", "d"}), (1, "d"), (0, {"e"})),
    ((0, "a"), (0, "b")),
    ((2, "z"),),
]
"""Documents: grade, and what they are about."""


def topics(document):
    grade, about = document
    if not grade or about is None:
        return set()
    return {about} if isinstance(about, str) else set(about)


def gain(order, k, alpha):
    seen, total = {}, 0.0
    for i, document in enumerate(order[:k], 1):
        for topic in topics(document):
            total += (1 - alpha) ** seen.get(topic, 0) / log2(i + 1)
            seen[topic] = seen.get(topic, 0) + 1
    return total


def alpha_ndcg(order, k, alpha):
    best = max(gain(other, k, alpha) for other in permutations(order))
    return gain(order, k, alpha) / best if best else 0.0


def subtopic_recall(order, k):
    every = set().union(*map(topics, order))
    return len(set().union(*map(topics, order[:k]))) / len(every) if every else 0.0


DEFINITIONS = {
    "alpha_nDCG(by='topic')": lambda order: alpha_ndcg(order, 99, 0.5),
    "alpha_nDCG(by='topic')@2": lambda order: alpha_ndcg(order, 2, 0.5),
    "alpha_nDCG(by='topic', alpha=0.9)@3": lambda order: alpha_ndcg(order, 3, 0.9),
    "alpha_nDCG(by='topic', alpha=1)@3": lambda order: alpha_ndcg(order, 3, 1),
    "StRecall(by='topic')@1": lambda order: subtopic_recall(order, 1),
    "StRecall(by='topic')@3": lambda order: subtopic_recall(order, 3),
}


def judged(queries):
    documents = [document for query in queries for document in query]
    about = np.empty(len(documents), dtype=object)
    about[:] = [topic for _, topic in documents]
    return SimpleNamespace(
        relevance=np.array([float(grade) for grade, _ in documents]), offsets=np.cumsum([0, *map(len, queries)]),
        query_ids=tuple(range(len(queries))), document_ids=None, attributes={"topic": about},
    )  # fmt: skip


@pytest.mark.parametrize("text", DEFINITIONS)
def test_every_order_has_the_value_of_the_definition(text):
    for query in QUERIES:
        orders = list(permutations(query))
        scores = -np.arange(len(orders) * len(query), dtype=float)
        if not any(grade for grade, _ in query):
            continue
        found = evaluate(judged(orders), scores, text).values_of()
        assert found == pytest.approx([DEFINITIONS[text](order) for order in orders], abs=1e-12)


@pytest.mark.parametrize("text", DEFINITIONS)
@pytest.mark.parametrize("seed", range(3))
def test_ties_count_the_mean_over_their_orders(text, seed):
    data = judged(QUERIES)
    scores = np.random.default_rng(seed).integers(0, 1 + seed, size=len(data.relevance)).astype(float)
    found = evaluate(data, scores, text)
    for q, query in enumerate(QUERIES):
        s = scores[data.offsets[q] : data.offsets[q + 1]]
        orders = [order for order in permutations(range(len(query))) if all(np.diff(s[list(order)]) <= 0)]
        values = [DEFINITIONS[text]([query[j] for j in order]) for order in orders]
        if any(grade for grade, _ in query):
            assert found.values_of()[q] == pytest.approx(np.mean(values), abs=1e-12)
        else:
            assert np.isnan(found.values_of()[q])


def test_without_the_attribute_it_is_named():
    for text, message in (
        ("StRecall@3", r"write StRecall\(by='site'\)"),
        ("StRecall(by='site')@3", r"reads the attribute 'site', .*\(there is 'topic'\)"),
        ("alpha_nDCG(by='site')@3", "give it to the Queries"),
    ):
        with pytest.raises(MeasureError, match=message):
            evaluate(judged(QUERIES), np.zeros(17), text)
