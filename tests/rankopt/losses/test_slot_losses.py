"""Bounds of the loss of a matching are their definitions over all matchings, written out."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems.slots import benefit_of, drawn, matchings

from rankopt.losses import BOUNDS, get_bound
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_slots import SlotArgmax


def loss_of(benefit, offsets, bound):
    return MarginLoss.build(SlotArgmax(benefit, offsets), get_bound(bound))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_their_definitions_and_rise_from_loss_to_convex(seed, tied):
    slot, offsets, scores = drawn(seed, tied=tied)
    benefit = benefit_of(slot)
    at = {bound: loss_of(benefit, offsets, bound).at(scores) for bound in BOUNDS}
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        every = list(matchings(high - low))
        s, b = scores[low:high], benefit[low:high]
        best = max((p * b).sum() for p in every)
        augmented = max((p * (s - b)).sum() for p in every)
        tallest = max((p * s).sum() for p in every)
        lost = max(best - (p * b).sum() for p in every if (p * s).sum() >= tallest - 1e-12)
        maximisers = [p for p in every if (p * b).sum() >= best - 1e-12]
        aware = max((p * s).sum() for p in maximisers)
        shared = np.mean(maximisers, axis=0)
        assert at["nonconvex"].value[q] == pytest.approx(augmented + best - tallest, abs=1e-12)
        assert at["tie-aware"].value[q] == pytest.approx(augmented + best - aware, abs=1e-12)
        assert at["convex"].value[q] == pytest.approx(augmented + best - (at["convex"].reference[low:high] * s).sum())
        assert ((at["convex"].reference[low:high] > 0) <= (shared > 0)).all()
        rising = [lost, *(at[bound].value[q] for bound in ("nonconvex", "tie-aware", "convex"))]
        assert (np.diff(rising) >= -1e-12).all()


@pytest.mark.parametrize("seed", range(12))
def test_the_shared_reference_is_a_mean_of_best_matchings(seed):
    """It fills what a matching fills and is worth the best: a point of the face that the best matchings span."""
    slot, offsets, _ = drawn(seed, queries=1, largest=7)
    n, benefit = slot.size, benefit_of(slot)
    loss = loss_of(benefit, offsets, "convex")
    assert (loss.fixed >= 0).all()
    assert_allclose(loss.fixed.sum(axis=0), 1.0, atol=1e-12) if n >= 3 else None
    assert_allclose(loss.fixed.sum(axis=1), 1.0, atol=1e-12) if n <= 3 else None
    assert (loss.fixed.sum(axis=0) <= 1 + 1e-12).all()
    assert (loss.fixed.sum(axis=1) <= 1 + 1e-12).all()
    assert (loss.fixed * benefit).sum() == pytest.approx(loss.argmax.best[0])
    assert loss.argmax.best[0] == pytest.approx(max((p * benefit).sum() for p in matchings(n)))


@pytest.mark.parametrize("bound", BOUNDS)
def test_planes_lie_below_the_majorant_and_touch_it(bound):
    rng = np.random.default_rng(3)
    for trial in range(10):
        slot, offsets, scores = drawn(20 + trial, tied=trial % 2 == 0)
        loss = loss_of(benefit_of(slot), offsets, bound)
        majorant = loss.majorant(scores)
        here = majorant.at(scores)
        slope = here.assigned - here.reference
        assert_allclose(here.value, loss.at(scores).value, atol=1e-12)
        plane = here.height + np.add.reduceat((slope * scores).sum(axis=1), offsets[:-1])
        assert_allclose(plane, here.value, atol=1e-12)
        elsewhere = scores + rng.normal(size=scores.shape)
        plane = here.height + np.add.reduceat((slope * elsewhere).sum(axis=1), offsets[:-1])
        there = majorant.at(elsewhere).value
        assert (plane <= there + 1e-12).all()
        assert (loss.at(elsewhere).value <= there + 1e-12).all()
        assert (here.bound >= here.value).all()
        alone = loss.only(1, 3).at(scores[offsets[1] : offsets[3]]).value
        assert_allclose(alone, loss.at(scores).value[1:3], atol=1e-12)
        rows = np.concatenate([rng.permutation(np.arange(low, high)) for low, high in pairwise(offsets.tolist())])
        shuffled = loss_of(benefit_of(slot)[rows], offsets, bound).at(scores[rows]).value
        assert_allclose(shuffled, loss.at(scores).value, atol=1e-12)
