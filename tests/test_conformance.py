"""Every measure, loss and method of the tables passes the checks that users are given; planted faults do not."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from planted.losses import Halfway

from formulations.gallery.rankings import ranking
from formulations.solvers import get_solver
from rankopt.losses import BOUNDS, LOSSES, get_bound, get_feature_map, get_loss
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.pairwise import PairwiseHinge
from rankopt.measures import parse
from rankopt.measures.dcg import DiscountedGain
from rankopt.optimize import METHODS, get_method
from rankopt.optimize.bundle import Bundle
from rankopt.testing import check_bound, check_loss, check_map, check_measure, check_method

POSITIONAL = [
    "nDCG",
    "nDCG@3",
    "nDCG(gain='linear')@5",
    "DCG@2",
    "P@3",
    "WTA",
    "ERU(alpha=5, d=0)",
    "NERU(alpha=3, d=0)@4",
    "R@3",
    "RBP(p=0.7)",
]


@pytest.mark.parametrize("measure", POSITIONAL)
def test_positional_measures(measure):
    check_measure(parse(measure))


def margin(bound):
    def build(relevance, offsets):
        measure = parse("nDCG@3")
        problem = ranking(
            np.zeros(relevance.size),
            measure.gain(relevance, offsets),
            discount=measure.discount,
            position_weights=lambda n: np.arange(1.0, n + 1) ** -0.5,
            offsets=offsets,
        )
        return MarginLoss.build(PositionalOracle(problem, get_solver("exact")), get_bound(bound))

    return build


@pytest.mark.parametrize("bound", BOUNDS)
def test_margin_losses(bound):
    check_loss(margin(bound))


@pytest.mark.parametrize("bound", [*BOUNDS, Halfway()], ids=str)
def test_bounds(bound):
    check_bound(get_bound(bound))


@pytest.mark.parametrize("loss", LOSSES)
def test_losses(loss):
    check_loss(get_loss(loss))


@pytest.mark.parametrize("method", METHODS)
def test_methods(method):
    check_method(get_method(method))


@pytest.mark.parametrize(("name", "measure"), [("positional", "ERR@3"), ("pairwise", "AP"), ("first-relevant", "RR")])
def test_maps(name, measure):
    check_map(get_feature_map(name), measure)


def test_planted_faults_are_found():
    @dataclass(frozen=True, repr=False)
    class Rising(DiscountedGain):
        def discount(self, n):
            return super().discount(n)[::-1]

    with pytest.raises(AssertionError, match="increase"):
        check_measure(Rising())

    class Overstated(PairwiseHinge):
        def at(self, scores, prove=False):
            there = super().at(scores, prove)
            return replace(there, height=there.height + 0.1)

    with pytest.raises(AssertionError, match="touch"):
        check_loss(Overstated)

    @dataclass(frozen=True)
    class TooMuch:
        """Twice what the scores like most: no upper bound."""

        convex = False

        def __call__(self, argmax, scores):
            return 2.0 * argmax.top_scoring(scores)

    with pytest.raises(AssertionError, match="below the regret"):
        check_bound(TooMuch())

    class Boasting(Bundle):
        def step(self, state, objective):
            return replace(super().step(state, objective), bound=state.bound + 0.2)

    with pytest.raises(AssertionError):
        check_method(Boasting(), max_iter=50)
