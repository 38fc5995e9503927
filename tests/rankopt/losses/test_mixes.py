"""Losses of mixes: sums and maxima of the losses of their parts, with planes that hold."""

import pickle
from itertools import product

import numpy as np
import pytest
from problems.pattern_orders import arranged, batch

from formulations.solvers import get_solver
from rankopt.errors import OptionError
from rankopt.losses import BOUNDS, MarginLoss
from rankopt.losses.regret import RegretBound
from rankopt.testing import check_loss

MIXES = (
    "AP + nDCG@3 + RR",
    "0.5 AP[pairwise] + 2 RR[first-relevant] + P@2",
)


def loss_of(text, bound, relevance, offsets, slack="separate"):
    text = text if slack == "separate" else f"({text})(slack='shared')"
    return RegretBound.named(text, "positional", bound, "power(0.5)").bind(
        arranged(relevance, offsets), get_solver("exact")
    )


@pytest.mark.every(5)
@pytest.mark.parametrize(("text", "bound", "slack"), [*product(MIXES, BOUNDS, ("separate", "shared"))])
def test_mixes_are_losses(text, bound, slack):
    check_loss(lambda relevance, offsets: loss_of(text, bound, relevance, offsets, slack)[1])


@pytest.mark.parametrize("bound", BOUNDS)
def test_they_are_the_sum_and_the_largest_of_their_parts(bound):
    rng = np.random.default_rng(0)
    for _ in range(10):
        relevance, offsets = batch(rng, grades=3)
        relevance[offsets[0] : offsets[1]] = 1.0  # P@2 may tell something apart here, AP does not
        text = "2 AP[pairwise] + P(rel=2)@2 + 0.5 RR"
        queries, together = loss_of(text, bound, relevance, offsets)
        _, largest = loss_of(text, bound, relevance, offsets, "shared")
        sizes = np.diff(queries.offsets)
        scores = rng.normal(size=sizes.sum())
        parts = np.zeros((3, sizes.size))
        for own, (weight, regret) in zip(parts, RegretBound.named(text, "positional", bound, "log").parts, strict=True):
            regret = RegretBound.named(regret.measure, regret.feature_map, bound, "power(0.5)")
            chosen, loss = regret.bind(queries, get_solver("exact"))
            rows = np.isin(queries.rows, chosen.rows)
            own[[queries.query_ids.index(query) for query in chosen.query_ids]] = weight * loss.at(scores[rows]).value
        np.testing.assert_allclose(together.at(scores).value, parts.sum(axis=0), rtol=0, atol=1e-12)
        np.testing.assert_allclose(largest.at(scores).value, parts.max(axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("slack", ["separate", "shared"])
def test_parts_of_a_batch_are_its_parts(slack):
    relevance, offsets = batch(np.random.default_rng(2), queries=6, grades=3)
    queries, loss = loss_of("AP + RR[first-relevant] + P(rel=2)@1", "nonconvex", relevance, offsets, slack)
    scores = np.random.default_rng(3).normal(size=queries.graded.size)
    for one in (loss, loss.majorant(-scores)):
        whole = one.at(scores)
        for first, last in ((0, 1), (1, 4), (4, 6)):
            low, high = queries.offsets[[first, last]].tolist()
            part = pickle.loads(pickle.dumps(one.only(first, last))).at(scores[low:high])
            np.testing.assert_allclose(part.value, whole.value[first:last], rtol=0, atol=1e-12)
            np.testing.assert_allclose(part.assigned, whole.assigned[low:high], rtol=0, atol=1e-12)
            np.testing.assert_allclose(part.reference, whole.reference[low:high], rtol=0, atol=1e-12)


def test_the_first_relevant_document_is_of_the_size_of_the_others_in_a_mix():
    relevance, offsets = batch(np.random.default_rng(4), largest=30)
    _, mix = loss_of("RR[first-relevant] + AP[pairwise]", "convex", relevance, offsets)
    alone = RegretBound.named("RR", "first-relevant", "convex", "log").bind(
        arranged(relevance, offsets), get_solver("exact")
    )[1]
    others = np.add.reduceat(relevance == 0, offsets[:-1])
    scores = np.random.default_rng(5).normal(size=relevance.size)
    shares = scores / np.repeat(others, np.diff(offsets))
    np.testing.assert_allclose(mix.parts[0].loss.at(scores).value, alone.at(shares).value, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(alone.unit, others**2)
    np.testing.assert_array_equal(mix.unit, np.full(others.size, 2.0))


def test_a_mix_of_one_is_its_measure():
    relevance, offsets = batch(np.random.default_rng(6))
    scores = np.random.default_rng(7).normal(size=relevance.size)
    for slack in ("separate", "shared"):
        _, mix = loss_of("AP[pairwise]", "nonconvex", relevance, offsets, slack)
        _, alone = RegretBound.named("AP", "pairwise", "nonconvex", "log").bind(
            arranged(relevance, offsets), get_solver("exact")
        )
        assert isinstance(alone, MarginLoss)
        np.testing.assert_array_equal(mix.at(scores).value, alone.at(scores).value)
        there, here = mix.at(scores), alone.at(scores)
        np.testing.assert_allclose(there.assigned - there.reference, here.assigned - here.reference, rtol=0, atol=1e-15)


def test_what_a_part_cannot_do_is_refused():
    with pytest.raises(OptionError, match="'first-relevant' cannot bound the regret of AP"):
        RegretBound.named("AP[first-relevant] + RR", "pairwise", "convex", "log")
    with pytest.raises(OptionError, match="map 'pairs' is unknown"):
        RegretBound.named("AP[pairs] + RR", "pairwise", "convex", "log")
