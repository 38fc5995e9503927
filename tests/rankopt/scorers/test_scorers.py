"""The two products of a step: what they are, in which precision, and that nothing but the data decides their bits."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems.slots import benefit_of, drawn
from scipy.sparse import csr_array

from formulations.parallel import at_most
from rankopt.data import Queries
from rankopt.errors import DataError
from rankopt.explanations.contributions import Explanation
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_slots import SlotArgmax
from rankopt.rankers import LargeMarginRanker, MatchingRanker
from rankopt.rankers.deployment import Deployment
from rankopt.risk.risk import CuttingPlaneEvaluation, Shard
from rankopt.scorers.linear import Linear, Slots, linear_scores, pair_sums, parts_of, row_scores, row_sums, slot_scores


def table(kind, rows=5000, features=37, seed=0):
    random = np.random.default_rng(seed)
    dense = random.normal(size=(rows, features)) * (random.random((rows, features)) < 0.3)
    return {
        "float64": lambda: dense,
        "float32": lambda: dense.astype(np.float32),
        "csr": lambda: csr_array(dense),
        "csr float32": lambda: csr_array(dense.astype(np.float32)),
        "csr int64": lambda: wide(csr_array(dense)),
        "fortran": lambda: np.asfortranarray(dense),
    }[kind]()


def wide(matrix):
    parts = (matrix.data, matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64))
    return csr_array(parts, shape=matrix.shape)


def dense(features):
    return np.asarray(features.toarray() if hasattr(features, "toarray") else features, dtype=np.float64)


KINDS = ["float64", "float32", "csr", "csr float32", "csr int64", "fortran"]


@pytest.mark.parametrize("kind", KINDS)
def test_products_are_those_of_the_definition_in_double_precision(kind):
    features, random = table(kind), np.random.default_rng(1)
    rows, w, r = random.permutation(5000)[:3000], random.normal(size=37), random.normal(size=3000)
    bounds = np.array([0, 1, 1, 40, 2999, 3000])
    chosen = dense(features)[rows]
    np.testing.assert_allclose(row_scores(features, rows, w), chosen @ w, rtol=1e-13, atol=1e-13)
    expected = [r[low:high] @ chosen[low:high] for low, high in pairwise(bounds)]
    np.testing.assert_allclose(row_sums(features, rows, r, bounds), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_the_visits_changes_no_bit(kind):
    features, random = table(kind), np.random.default_rng(3)
    rows, w = random.permutation(5000)[:4999], random.normal(size=37)
    scores = row_scores(features, rows, w)
    for turns in (np.argsort(rows), random.permutation(4999)):
        np.testing.assert_array_equal(row_scores(features, rows, w, turns), scores)


@pytest.mark.parametrize("kind", KINDS)
def test_two_sums_in_one_pass_are_the_two_sums(kind):
    features, random = table(kind), np.random.default_rng(4)
    rows, r, other = random.permutation(5000)[:3000], random.normal(size=3000), random.normal(size=3000)
    r[::3], other[::2] = 0.0, 0.0
    bounds = np.array([0, 7, 7, 900, 3000])
    for found, weights in zip(pair_sums(features, rows, r, other, bounds), (r, other), strict=True):
        np.testing.assert_allclose(found, row_sums(features, rows, weights, bounds), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_one_thread_and_many_give_the_same_bits(kind):
    features, random = table(kind), np.random.default_rng(2)
    rows, w, r = random.permutation(5000), random.normal(size=37), random.normal(size=5000)
    bounds = parts_of(np.arange(0, 5001, 25), 100)
    answers = []
    for limit in (1, 2, 7):
        with at_most(limit):
            answers.append((row_scores(features, rows, w), row_sums(features, rows, r, bounds)))
    for scores, sums in answers[1:]:
        np.testing.assert_array_equal(scores, answers[0][0])
        np.testing.assert_array_equal(sums, answers[0][1])


@pytest.mark.parametrize("features", [1, 2, 3, 7, 8, 9, 31, 46, 136])
def test_equal_documents_have_equal_scores_wherever_they_stand(features):
    random = np.random.default_rng(features)
    document, w = random.normal(size=features), random.normal(size=features)
    for count in (1, 2, 3, 64, 1001):
        block = np.empty((count + 3, features))
        block[:] = document
        for start in range(3):
            assert np.unique(linear_scores(block[start : start + count], w)).size == 1


def test_dense_and_sparse_rows_of_float32_are_summed_in_double():
    features = np.full((1, 3), 1e8, dtype=np.float32)
    features[0, 1] = 1.0
    w = np.array([1.0, 1.0, -1.0])
    assert linear_scores(features, w) == [1.0]
    assert linear_scores(csr_array(features), w) == [1.0]


def test_parts_hold_whole_queries_and_all_of_them():
    random = np.random.default_rng(3)
    offsets = np.concatenate([[0], np.cumsum(random.integers(1, 90, 300))])
    for rows in (1, 50, 1000, 10**6):
        bounds = parts_of(offsets, rows)
        assert np.isin(bounds, offsets).all()
        assert bounds[0] == 0
        assert bounds[-1] == offsets[-1]
        assert (np.diff(bounds)[:-1] > rows - 90).all()
        assert (np.diff(bounds) < rows + 90).all()


# Sums of rows by NumPy and by the kernels are the same to the bit.


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("columns", [1, 2, 7, 64])
def test_sums_are_the_same_to_the_bit(dtype, columns, monkeypatch):
    random = np.random.default_rng(columns)
    table = random.normal(size=(300, columns)).astype(dtype)
    rows = random.permutation(300)[:200]
    one, other = (random.normal(size=200) * (random.random(200) < 0.6) for _ in range(2))
    bounds = np.array([0, 0, 5, 90, 91, 200])
    found = []
    for pays in (-1, 1 << 60):
        monkeypatch.setattr("formulations.compiled.PAYS", pays)
        found.append((row_sums(table, rows, one, bounds), *pair_sums(table, rows, one, other, bounds)))
    for kernel, numpy in zip(*found, strict=True):
        assert kernel.tobytes() == numpy.tobytes()


# Products of parts that do not go together are refused, dense and sparse, of one score and of slots.


N, D = 9, 4
DENSE = np.random.default_rng(0).normal(size=(N, D))
TABLES = [DENSE, DENSE.astype(np.float32), csr_array(DENSE)]
ROWS, PARTS = np.arange(N), np.array([0, 4, N])


@pytest.mark.parametrize("wrong", [np.ones(D - 1), np.ones(D + 1), np.ones((D, 1)), np.zeros(0), np.float64(1.0)])
@pytest.mark.parametrize("features", TABLES)
def test_weights_have_the_width_of_the_features(features, wrong):
    for product in (
        lambda: linear_scores(features, wrong),
        lambda: row_scores(features, ROWS[2:5], wrong),
        lambda: Linear(features, ROWS).scores(wrong, 0, N),
        lambda: Linear(features, ROWS).scores(wrong, 2, 5),
        lambda: slot_scores(features, np.stack([wrong, wrong])),
    ):
        with pytest.raises(DataError, match="4 features and the weights the shape"):
            product()
    with pytest.raises(DataError, match="4 features for each of 3 slots"):
        Slots(Linear(features, ROWS), 3).scores(np.ones(3 * D - 1), 0, N)


@pytest.mark.parametrize("features", TABLES)
def test_slopes_have_an_entry_a_document(features):
    linear, right = Linear(features, ROWS), np.ones(N)
    for wrong in (np.ones(N - 1), np.ones(N + 1), np.ones((N, 2))):
        for product in (
            lambda wrong=wrong: row_sums(features, ROWS, wrong, PARTS),
            lambda wrong=wrong: pair_sums(features, ROWS, right, wrong, PARTS),
            lambda wrong=wrong: pair_sums(features, ROWS, wrong, right, PARTS),
            lambda wrong=wrong: linear.pull((wrong,), PARTS),
            lambda wrong=wrong: linear.pull((right, wrong), PARTS),
            lambda wrong=wrong: linear.pull((right, right, wrong), PARTS),
        ):
            with pytest.raises(DataError, match="because there are 9 documents"):
                product()
    slots = Slots(linear, 2)
    for wrong in (np.ones(N), np.ones((N, 3))):
        with pytest.raises(DataError, match="there are 2 slots"):
            slots.pull((wrong,), PARTS)
    with pytest.raises(DataError, match="there are 9 documents"):
        slots.pull((np.ones((N - 1, 2)),), PARTS)


@pytest.mark.parametrize("parts", [[0, N + 1], [-1, N], [0, 6, 3], []])
@pytest.mark.parametrize("features", TABLES)
def test_parts_lie_within_the_documents(features, parts):
    parts = np.array(parts, dtype=np.int64)
    with pytest.raises(DataError, match="increase within 9"):
        row_sums(features, ROWS, np.ones(N), parts)
    with pytest.raises(DataError, match="increase within 9"):
        pair_sums(features, ROWS, np.ones(N), np.ones(N), parts)


@pytest.mark.parametrize("rows", [[0, N], [-1, 2], [1 << 40]])
@pytest.mark.parametrize("features", TABLES)
def test_documents_have_rows_that_are_there(features, rows):
    with pytest.raises(DataError, match="because there are 9 rows"):
        Linear(features, np.array(rows))
    with pytest.raises(DataError, match="because there are 9 rows"):
        Linear(None, np.array(rows)).with_features(features)


def test_a_table_whose_parts_were_swapped_is_refused():
    for change in (
        {"indptr": np.zeros(N, dtype=np.int32)},
        {"indices": np.zeros(3, dtype=np.int32)},
        {"indptr": np.full(N + 1, 1 << 20, dtype=np.int32)},
    ):
        table = csr_array(DENSE)
        for name, value in change.items():
            setattr(table, name, value)
        with pytest.raises(DataError, match="build the table anew"):
            linear_scores(table, np.ones(D))
        with pytest.raises(DataError, match="build the table anew"):
            row_sums(table, ROWS, np.ones(N), PARTS)


def test_rankings_take_a_score_a_document_and_reasons_a_weight_a_feature():
    shown = Deployment.from_queries(Queries(np.ones((N, 1)), PARTS), None)
    for wrong in (np.ones(N - 1), np.ones(N + 1), np.ones((N, 2))):
        with pytest.raises(DataError, match="one score a document"):
            shown.orders(wrong)
    names = tuple("abcd")
    for wrong in ((np.ones(3), np.ones(4), np.ones(4)), (np.ones(4), np.ones(4), np.ones(5)), (np.ones(1),) * 3):
        with pytest.raises(DataError, match="4 features are named"):
            Explanation.from_coefficients(names, *wrong)


@pytest.mark.parametrize("ranker", [LargeMarginRanker(engine="serial"), MatchingRanker(n_positions=2, engine="serial")])
@pytest.mark.parametrize("features", TABLES)
def test_an_objective_is_asked_at_weights_of_its_width(ranker, features):
    queries = Queries.from_arrays(features, np.arange(N) % 3, group=[4, 5])
    objective = ranker.objective(queries)
    width = objective.w0.size
    assert np.isfinite(objective.risk.at(np.ones(width)).value)
    for wrong in (np.ones(width - 1), np.ones(width + 1), np.ones((1, width))):
        with pytest.raises(DataError, match=r"4 features .*and the weights the shape"):
            objective.risk.at(wrong)


# The planes of a shard are subgradients in the weights.


@pytest.mark.parametrize("merged", [True, False])
def test_the_planes_of_a_shard_are_subgradients_in_the_weights(merged):
    rng = np.random.default_rng(4)
    slot, offsets, _ = drawn(5)
    features, weights = rng.normal(size=(slot.size, 4)), np.array([0.5, 0.3, 0.2])
    loss = MarginLoss(SlotArgmax(benefit_of(slot), offsets), "convex")
    shard = Shard(Slots(Linear(features, np.arange(slot.size)), 3), offsets, weights, loss)
    w, other = rng.normal(size=12), rng.normal(size=12)
    here, there = CuttingPlaneEvaluation(w, merged)(shard), CuttingPlaneEvaluation(other, merged)(shard)
    heights = np.array([weights @ here.heights]) if merged else here.heights
    values, others = ([weights @ here.value], [weights @ there.value]) if merged else (here.value, there.value)
    slopes = here.slopes - here.references
    assert_allclose(heights + slopes @ w, values, atol=1e-12)
    assert (heights + slopes @ other <= np.array(others) + 1e-12).all()
    scores = shard.scores(w)
    for i in range(3):
        assert_allclose(scores[:, i], features @ w[4 * i : 4 * i + 4])
