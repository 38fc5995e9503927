"""Documents that say nothing or contradict another are dropped, both of a pair, whatever their order."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from rankopt.data import Queries
from rankopt.data import contradictions as module
from rankopt.errors import DataError, OptionError


def drawn(seed, n=60, queries=8, d=3):
    """Small whole numbers: many documents are equal, parallel or all zero."""
    rng = np.random.default_rng(seed)
    features = rng.integers(-1, 3, (n, d)) * rng.choice([0, 1, 1, 2], (n, 1)) * 1.0
    return features, rng.integers(0, 3, n).astype(float), np.sort(rng.integers(0, queries, n))


def by_hand(features, grades, qid, cosine):
    """Pair by pair, as the definition says."""
    zero = ~features.any(axis=1)
    against = np.zeros(grades.size, dtype=bool)
    for i, j in combinations(range(grades.size), 2):
        lengths = np.linalg.norm(features[i]) * np.linalg.norm(features[j])
        if qid[i] == qid[j] and grades[i] != grades[j] and lengths:
            against[[i, j]] |= features[i] @ features[j] >= (cosine - 1e-9) * lengths
    return zero, against


@pytest.mark.every(7)
@pytest.mark.parametrize("cosine", [1.0, 0.99, 0.9, 0.5, 0.0])
@pytest.mark.parametrize("kind", [np.asarray, csr_array, np.float32])
@pytest.mark.parametrize("block", [1024, 3])
def test_what_is_dropped_is_what_the_definition_says(cosine, kind, block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    for seed in range(6):
        features, grades, qid = drawn(seed)
        zero, against = by_hand(features, grades, qid, cosine)
        found = Queries.from_arrays(
            kind(features), grades, qid=qid, documents=range(60), attributes={"row": np.arange(60)}
        ).without_contradictions(cosine)
        kept = np.flatnonzero(~(zero | against))
        assert_array_equal(found.kept, ~(zero | against))
        assert_array_equal(found.queries.row_order, kept)
        assert_array_equal(found.queries.attributes["row"], kept)
        assert found.queries.document_ids == tuple(kept)
        assert_array_equal(found.queries.relevance, grades[kept])
        table = found.queries.features
        assert table.dtype == kind(features).dtype
        assert_array_equal(table.toarray() if hasattr(table, "toarray") else table, features[kept])
        names = np.unique(qid)
        assert found.queries.query_ids == tuple(np.unique(qid[kept]).tolist())
        assert_array_equal(found.zeros, [zero[qid == q].sum() for q in names])
        assert_array_equal(found.contradicting, [against[qid == q].sum() for q in names])
        left = [len({*grades[kept][qid[kept] == q]}) for q in names]
        before = [len({*grades[qid == q]}) for q in names]
        assert_array_equal(found.unordered, [b > 1 >= a for b, a in zip(before, left, strict=True)])
        assert found.dropped == 60 - kept.size
        assert not found.queries.without_contradictions(cosine).dropped


@pytest.mark.parametrize("sparse", [False, True])
def test_the_order_of_documents_and_their_lengths_play_no_part(sparse):
    rng = np.random.default_rng(0)
    for seed in range(10):
        features, grades, qid = drawn(seed)
        rows = rng.permutation(60)
        scale = 10.0 ** rng.integers(-300, 300, (60, 1))
        straight, moved = (
            Queries.from_arrays(csr_array(X) if sparse else X, y, qid=q).without_contradictions(0.9)
            for X, y, q in [(features, grades, qid), ((features * scale)[rows], grades[rows], qid[rows])]
        )
        assert {*straight.queries.row_order} == {*rows[moved.queries.row_order]}
        of = dict(zip(np.unique(qid), straight.contradicting, strict=True))
        names = dict.fromkeys(qid[rows].tolist())
        assert [of[q] for q in names] == moved.contradicting.tolist()


def test_both_of_a_pair_go_and_documents_of_one_grade_stay():
    queries = Queries.from_arrays([[1, 2], [2, 4], [1, 2], [5, -1], [0, 0]], [1, 0, 1, 0, 0], group=[5])
    found = queries.without_contradictions()
    assert_array_equal(found.queries.row_order, [3])
    assert str(found) == (
        "4 of 5 documents dropped (1 all zero, 3 contradicting), 0 of 1 queries gone, 1 with nothing to order any "
        "more: Queries(1 query, 1 document (1 a query), 2 features float64, grades 0: 1)"
    )
    same = Queries.from_arrays([[1, 2], [2, 4]], [1, 1], group=[2]).without_contradictions()
    assert (same.dropped, same.unordered.tolist()) == (0, [False])
    apart = Queries.from_arrays([[1, 2], [2, 4]], [1, 0], group=[1, 1]).without_contradictions()
    assert apart.dropped == 0


def test_what_cannot_be_is_refused():
    queries = Queries.from_arrays([[1, 2], [2, 4]], [1, 0], group=[2])
    with pytest.raises(DataError, match=r"because all 2 documents contradict another; raise cosine = 0\.99"):
        queries.without_contradictions()
    with pytest.raises(DataError, match="another; normalise"):
        queries.without_contradictions(1.0)
    nothing = Queries.from_arrays([[0.0, 0], [0, 0]], [1, 0], group=[2])
    with pytest.raises(DataError, match="features of all 2 documents are zero; give features that tell"):
        nothing.without_contradictions()
    both = Queries.from_arrays([[0.0, 0], [1, 2], [1, 2]], [1, 1, 0], group=[3])
    with pytest.raises(DataError, match="1 of 3 documents are all zero and the other 2 contradict another; raise"):
        both.without_contradictions()
    for cosine in (1.1, -2, np.nan, "near", None, True):
        with pytest.raises(OptionError, match="no cosine"):
            queries.without_contradictions(cosine)
    with pytest.raises(DataError, match="no relevance"):
        queries.with_(relevance=None).without_contradictions()


def test_memory_of_a_long_list_is_bounded(monkeypatch):
    """No table is larger than a block of cosines, and one half of all pairs of blocks is looked at."""
    asked = []
    products = module._products

    def noted(one, other):
        asked.append((len(one), len(other)))
        return products(one, other)

    monkeypatch.setattr(module, "_products", noted)
    rng = np.random.default_rng(0)
    n = 3500
    features = rng.normal(size=(n, 4))
    features[-1] = features[0]
    found = Queries.from_arrays(features, np.arange(n) % 2, group=[n]).without_contradictions(1.0)
    assert_array_equal(np.flatnonzero(~found.kept), [0, n - 1])
    assert len(asked) == 10
    assert max(max(pair) for pair in asked) == 1024
