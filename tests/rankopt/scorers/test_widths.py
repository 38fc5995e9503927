"""Products of parts that do not go together are refused, dense and sparse, of one score and of slots."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from rankopt.data import Queries
from rankopt.errors import DataError
from rankopt.explanations.contributions import Explanation
from rankopt.rankers import LargeMarginRanker, MatchingRanker
from rankopt.rankers.deployment import Deployment
from rankopt.scorers.linear import Linear, Slots, linear_scores, pair_sums, row_scores, row_sums, slot_scores

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
    shown = Deployment(PARTS, None)
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
