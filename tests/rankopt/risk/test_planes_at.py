"""The planes of a shard are subgradients in the weights."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems.slots import benefit_of, drawn

from rankopt.losses import get_bound
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_slots import SlotArgmax
from rankopt.risk.risk import CuttingPlaneEvaluation, Shard
from rankopt.scorers.linear import Linear, Slots


@pytest.mark.parametrize("merged", [True, False])
def test_the_planes_of_a_shard_are_subgradients_in_the_weights(merged):
    rng = np.random.default_rng(4)
    slot, offsets, _ = drawn(5)
    features, weights = rng.normal(size=(slot.size, 4)), np.array([0.5, 0.3, 0.2])
    loss = MarginLoss.build(SlotArgmax(benefit_of(slot), offsets), get_bound("convex"))
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
