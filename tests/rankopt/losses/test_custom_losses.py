"""Custom losses see attributes, the caller's rows and the caller's order of documents; ours do not depend on it."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest

from rankopt.errors import OptionError
from rankopt.losses.loss import ConvexLoss, LossValue
from rankopt.losses.pairwise import OrdinalHinge
from rankopt.rankers import Checkpoint, LossRanker
from rankopt.testing import check_loss

LAM = 0.1


@dataclass(frozen=True, eq=False)
class WeightedSquares(ConvexLoss):
    """½ Σ_j a_j (s_j - y_j)², a an attribute of the documents."""

    weight: np.ndarray

    def at(self, scores, prove=False):
        away, starts = scores - self.relevance, self.offsets[:-1]
        value = np.add.reduceat(0.5 * self.weight * away**2, starts)
        slope = self.weight * away
        height = value - np.add.reduceat(slope * scores, starts)
        return LossValue(value, value, height, slope, np.zeros(scores.size), 0.0)

    def select_queries(self, first, last):
        rows = slice(*self.offsets[[first, last]].tolist())
        return replace(super().select_queries(first, last), weight=self.weight[rows])


def by_attribute(relevance, offsets, queries):
    return WeightedSquares(relevance, offsets, queries.attributes["weight"])


def by_position(relevance, offsets, queries):
    """A planted fault: what belongs to a document is taken from where it lies."""
    return WeightedSquares(relevance, offsets, 1.0 + np.arange(relevance.size))


def data(seed=0):
    """Rows of queries are interleaved."""
    rng = np.random.default_rng(seed)
    X, y, qid = rng.normal(size=(40, 3)), rng.integers(0, 3, 40).astype(float), np.tile(np.arange(5), 8)
    return X, y, qid, rng.uniform(0.5, 2.0, 40)


def solution(X, y, weight, queries=5):
    return np.linalg.solve(LAM * np.eye(3) + X.T * weight @ X / queries, X.T * weight @ y / queries)


@pytest.mark.parametrize("lam", [LAM, "auto"])
def test_a_custom_loss_sees_the_rows_of_the_caller(lam):
    X, y, qid, weight = data()
    seen = []

    def recorded(relevance, offsets, queries):
        seen.append(queries)
        np.testing.assert_array_equal(relevance, queries.relevance)
        np.testing.assert_array_equal(offsets, queries.offsets)
        return by_attribute(relevance, offsets, queries)

    names = np.array([f"d{i}" for i in range(40)])
    LossRanker(recorded, lam=lam).fit(X, y, qid=qid, attributes={"weight": weight, "name": names})
    assert len(seen) > (lam == "auto")
    for queries in seen:
        rows = queries.input_order
        np.testing.assert_array_equal(queries.features[queries.rows], X[rows])
        np.testing.assert_array_equal(queries.relevance, y[rows])
        np.testing.assert_array_equal(queries.attributes["weight"], weight[rows])
        np.testing.assert_array_equal(queries.attributes["name"], names[rows])
        for q, query in enumerate(queries.query_ids):
            own = rows[queries.offsets[q] : queries.offsets[q + 1]]
            assert own.tolist() == np.flatnonzero(qid == query).tolist()


def test_attributes_and_data_by_row_train_the_same_model():
    X, y, qid, weight = data()
    exact = solution(X, y, weight)
    ranker = LossRanker(by_attribute, lam=LAM, tol=1e-8).fit(X, y, qid=qid, attributes={"weight": weight})
    np.testing.assert_allclose(ranker.coef_, exact, atol=2e-3)

    def by_row(relevance, offsets, queries):
        return WeightedSquares(relevance, offsets, weight[queries.input_order])

    again = LossRanker(by_row, lam=LAM, tol=1e-8).fit(X, y, qid=qid)
    np.testing.assert_allclose(again.coef_, exact, atol=2e-3)
    order = np.random.default_rng(1).permutation(40)
    moved = {"qid": qid[order], "attributes": {"weight": weight[order]}}
    shuffled = LossRanker(by_attribute, lam=LAM, tol=1e-8).fit(X[order], y[order], **moved)
    np.testing.assert_allclose(shuffled.coef_, exact, atol=2e-3)


@pytest.mark.parametrize("loss", ["pairwise", "ordinal", OrdinalHinge, partial(OrdinalHinge, cost="one")], ids=str)
def test_losses_of_ours_give_the_same_bits_in_any_order(loss):
    X, y, qid, weight = data()
    order = np.random.default_rng(1).permutation(40)
    plain = LossRanker(loss, lam=LAM).fit(X, y, qid=qid)
    moved = LossRanker(loss, lam=LAM).fit(X[order], y[order], qid=qid[order], attributes={"weight": weight[order]})
    np.testing.assert_array_equal(plain.coef_, moved.coef_)


def test_check_loss_draws_attributes():
    check_loss(by_attribute, attributes=lambda relevance: {"weight": 1.0 + np.arange(relevance.size) % 3})
    with pytest.raises(AssertionError, match="shuffling changed a value"):
        check_loss(by_position)


def test_a_checkpoint_is_of_its_attributes(tmp_path):
    X, y, qid, weight = data()
    ranker = LossRanker(by_attribute, lam=LAM, checkpoint=Checkpoint(tmp_path, every=0))
    ranker.fit(X, y, qid=qid, attributes={"weight": weight})
    with pytest.raises(OptionError, match="data differ"):
        ranker.fit(X, y, qid=qid, attributes={"weight": 2.0 * weight})
