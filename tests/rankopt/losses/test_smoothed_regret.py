"""SmoothGrad: the smoothed measure by its formula, its gradient by differences, its limit at σ = 0, ties and order."""

from itertools import pairwise

import numpy as np
import pytest

from rankopt.errors import OptionError
from rankopt.losses import LOSSES, get_loss
from rankopt.losses.smooth import SmoothedRegret
from rankopt.measures import parse
from rankopt.measures.tied_ranking import ranked
from rankopt.testing import check_loss

MEASURES = ["nDCG@3", "nDCG", "DCG@2", "P@2", "AUC", "ERU(alpha=3, d=0)", "nDCG(gain='linear')@4"]


def drawn(seed, queries=12, largest=7, ties=False):
    """Scores of queries of 2 to 7 documents, the first two of which have the lowest and the highest grade."""
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(2, largest + 1, queries))])
    relevance = rng.integers(0, 3, offsets[-1]).astype(float)
    relevance[offsets[:-1]], relevance[offsets[:-1] + 1] = 0.0, 2.0
    scores = rng.normal(size=offsets[-1])
    return relevance, offsets, np.round(scores) if ties else scores


def written_out(measure, relevance, scores, sigma):
    """A of one query, place by place."""
    n = relevance.size
    gain, discount = measure.gain(relevance, np.array([0, n])), measure.discount(n)
    total = 0.0
    for j, s in enumerate(sorted(scores, reverse=True)):
        h = [np.exp(-((other - s) ** 2) / (2 * sigma**2)) for other in scores]
        total += discount[j] * sum(h[i] * gain[i] for i in range(n)) / sum(h)
    return total - measure.constant(relevance, np.array([0, n]))[0]


@pytest.mark.parametrize("small", [True, False], ids=["NumPy", "compiled"])
@pytest.mark.parametrize("ties", [True, False], ids=["ties", "no ties"])
@pytest.mark.parametrize("measure", MEASURES)
def test_the_value_is_the_formula(measure, ties, small):
    relevance, offsets, scores = drawn(1, ties=ties)
    asked = parse(measure)
    for sigma in (4.0, 0.5, 0.05):
        loss = SmoothedRegret(relevance, offsets, measure, sigma, small)
        value = loss.gradient(scores).value
        for q, (low, high) in enumerate(pairwise(offsets.tolist())):
            best = asked.best(relevance[low:high], np.array([0, high - low]))[0]
            expected = best - written_out(asked, relevance[low:high], scores[low:high], sigma)
            assert value[q] == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("small", [True, False], ids=["NumPy", "compiled"])
@pytest.mark.parametrize("measure", MEASURES)
def test_the_slope_is_the_gradient(measure, small):
    """By differences of the fourth order, one document after the other."""
    relevance, offsets, scores = drawn(2)
    for sigma in (2.0, 0.3):
        loss = SmoothedRegret(relevance, offsets, measure, sigma, small)
        slope, step = loss.gradient(scores).slope, 1e-3 * sigma
        for i in range(scores.size):
            apart = np.abs(scores[i] - np.delete(scores, i))
            if apart.min() < 3 * step:  # a place would be exchanged: A is continuous there, and no more
                continue
            unit = np.eye(1, scores.size, i)[0] * step
            once, twice = (
                loss.gradient(scores + far * unit).value.sum() - loss.gradient(scores - far * unit).value.sum()
                for far in (1, 2)
            )
            found = (8 * once - twice) / (12 * step)
            assert found == pytest.approx(slope[i], rel=1e-6, abs=1e-9 * np.abs(slope).max())
        np.testing.assert_allclose(np.add.reduceat(slope, offsets[:-1]), 0.0, atol=1e-12)


@pytest.mark.parametrize("small", [True, False], ids=["NumPy", "compiled"])
@pytest.mark.parametrize("ties", [True, False], ids=["ties", "no ties"])
@pytest.mark.parametrize("measure", MEASURES)
def test_as_the_width_falls_to_0_it_becomes_the_measure_ties_averaged(measure, ties, small):
    relevance, offsets, scores = drawn(3, ties=ties)
    asked = parse(measure)
    regret = asked.best(relevance, offsets) - asked.values(ranked(relevance, scores, offsets))
    loss = SmoothedRegret(relevance, offsets, measure, small=small)
    at_zero = loss.gradient(scores, 0.0)
    np.testing.assert_allclose(at_zero.value, regret, atol=1e-12)
    assert not at_zero.slope.any()
    np.testing.assert_allclose(loss.gradient(scores, 1e-9).value, regret, atol=1e-12)
    apart = [np.abs(loss.gradient(scores, sigma).value - regret).max() for sigma in (0.3, 0.03, 0.003)]
    assert apart[2] <= apart[1] <= apart[0]


def test_documents_of_one_score_share_the_slope_of_their_place():
    relevance, offsets = np.array([0.0, 2.0, 2.0, 1.0, 0.0]), np.array([0, 5])
    for small in (True, False):
        slope = SmoothedRegret(relevance, offsets, "nDCG@2", 0.5, small).gradient(np.array([1.0, 0, 0, 1, 0])).slope
        assert slope[1] == slope[2]
        all_tied = SmoothedRegret(relevance, offsets, "nDCG@2", 0.5, small).gradient(np.zeros(5)).slope
        assert not all_tied.any()  # why w = 0 is no start


def test_compiled_code_and_numpy_agree():
    for ties in (True, False):
        relevance, offsets, scores = drawn(4, queries=200, largest=30, ties=ties)
        for sigma in (0.0, 1e-3, 0.2, 5.0, 1e200):
            one, other = (
                SmoothedRegret(relevance, offsets, "nDCG@10", small=small).gradient(scores, sigma)
                for small in (True, False)
            )
            np.testing.assert_allclose(one.value, other.value, atol=1e-12)
            np.testing.assert_allclose(one.slope, other.slope, atol=1e-12 * max(np.abs(one.slope).max(), 1.0))


def test_scores_far_apart_are_no_numbers_that_are_none():
    for scale in (1e-300, 1e200, 1.7e308):
        for small in (True, False):
            loss = SmoothedRegret(np.array([0.0, 1, 2]), np.array([0, 3]), "nDCG", 1.0, small)
            there = loss.gradient(np.array([-1.0, 0.5, 1.0]) * scale)
            assert np.isfinite(there.value).all()
            assert np.isfinite(there.slope).all()


def test_queries_are_each_their_own():
    relevance, offsets, scores = drawn(5)
    loss = SmoothedRegret(relevance, offsets, "nDCG@3", 0.4)
    whole, part = loss.gradient(scores), loss.only(3, 7).gradient(scores[offsets[3] : offsets[7]])
    np.testing.assert_array_equal(part.value, whole.value[3:7])
    np.testing.assert_array_equal(part.slope, whole.slope[offsets[3] : offsets[7]])


@pytest.mark.parametrize("measure", MEASURES)
def test_it_passes_the_checks_of_losses(measure):
    assert LOSSES["smooth"]
    check_loss(get_loss("smooth").of_measure(measure))


def test_planted_faults_are_found():
    class Steeper(SmoothedRegret):
        def gradient(self, scores, sigma=None):
            there = super().gradient(scores, sigma)
            return type(there)(there.value, 1.01 * there.slope)

    with pytest.raises(AssertionError, match="must be the gradient"):
        check_loss(Steeper)

    class FirstOfEqual(SmoothedRegret):
        def gradient(self, scores, sigma=None):
            there = super().gradient(scores, sigma)
            return type(there)(there.value, there.slope + 1e-3 * np.arange(scores.size))

    with pytest.raises(AssertionError, match="shuffling changed a slope"):
        check_loss(FirstOfEqual)


@pytest.mark.parametrize("measure", ["AP", "RR", "ERR@10", "AP + nDCG@10"])
def test_measures_that_are_no_inner_product_are_refused(measure):
    with pytest.raises(OptionError, match="cannot be smoothed"):
        get_loss("smooth").of_measure(measure)(np.array([0.0, 1.0, 1.0]), np.array([0, 3])).gradient(np.zeros(3))
