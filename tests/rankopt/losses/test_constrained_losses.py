"""Bounds of the regret under a set are their definitions over its rankings, written out."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from problems.admissible import SETS, batch_of, drawn, written_out
from problems.means import is_mean

from formulations.constraints.ranking_set import RankingSet
from formulations.gallery.rankings import ranking
from formulations.solvers import get_solver
from rankopt.constraints import Admissible
from rankopt.errors import OptionError
from rankopt.losses import BOUNDS, get_bound
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_constrained import AdmissibleArgmax
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures import parse
from rankopt.testing import check_loss


def loss_of(bound, batch):
    return MarginLoss.build(batch, get_bound(bound))


@pytest.mark.every(7)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_their_definitions_and_rise_from_regret_to_convex(name, seed, tied):
    grades, attributes, offsets, scores = drawn(seed, tied=tied)
    measure, decay = [("nDCG@3", "power(0.5)"), ("P@2", "linear"), ("DCG", "power(1)@2"), ("nDCG@2", "log")][seed]
    batch = batch_of(SETS[name], grades, attributes, offsets, measure, decay)
    at = {bound: loss_of(bound, batch).at(scores) for bound in BOUNDS}
    for q in range(3):
        orders = written_out(batch, q)
        s = scores[offsets[q] : offsets[q + 1]]
        best = max(worth for worth, _ in orders)
        augmented = max(c @ s - worth for worth, c in orders)
        tallest = max(c @ s for _, c in orders)
        regret = max(best - worth for worth, c in orders if c @ s >= tallest - 1e-12)
        aware = max(c @ s for worth, c in orders if worth >= best - 1e-12)
        assert at["nonconvex"].value[q] == pytest.approx(augmented + best - tallest, abs=1e-11)
        assert at["tie-aware"].value[q] == pytest.approx(augmented + best - aware, abs=1e-11)
        fixed = at["convex"].reference[offsets[q] : offsets[q + 1]]
        assert is_mean(fixed, [c for worth, c in orders if worth >= best - 1e-12])
        assert at["convex"].value[q] == pytest.approx(augmented + best - fixed @ s, abs=1e-11)
        rising = [regret, *(at[bound].value[q] for bound in ("nonconvex", "tie-aware", "convex"))]
        assert (np.diff(rising) >= -1e-9).all()
        for bound in BOUNDS:
            assert at[bound].bound[q] >= at[bound].value[q]


@pytest.mark.parametrize("seed", range(6))
def test_ties_of_the_convex_reference_fall_by_the_score_at_the_start(seed):
    grades, attributes, offsets, start = drawn(seed)
    batch = batch_of(SETS["sites"], np.minimum(grades, 1), attributes, offsets, start=start)
    fixed = loss_of("convex", batch).at(np.zeros(start.size)).reference
    for q in range(3):
        s = start[offsets[q] : offsets[q + 1]]
        orders = written_out(batch, q)
        best = max(worth for worth, _ in orders)
        tallest = max(c @ s for worth, c in orders if worth >= best - 1e-12)
        assert fixed[offsets[q] : offsets[q + 1]] @ s == pytest.approx(tallest, abs=1e-5)


@pytest.mark.every(4)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", SETS)
def test_planes_lie_below_the_majorant_and_touch_it(bound, name):
    rng = np.random.default_rng(3)
    for trial in range(4):
        grades, attributes, offsets, scores = drawn(10 + trial, tied=trial % 2 == 0)
        loss = loss_of(bound, batch_of(SETS[name], grades, attributes, offsets))
        majorant = loss.majorant(scores)
        assert majorant.convex
        here = majorant.at(scores)
        slope = here.assigned - here.reference
        np.testing.assert_allclose(here.value, loss.at(scores).value, atol=1e-11)
        np.testing.assert_allclose(here.height + np.add.reduceat(slope * scores, offsets[:-1]), here.value, atol=1e-12)
        elsewhere = scores + rng.normal(size=scores.size)
        there = majorant.at(elsewhere).bound
        assert (here.height + np.add.reduceat(slope * elsewhere, offsets[:-1]) <= there + 1e-12).all()
        assert (loss.at(elsewhere).value <= there + 1e-9).all()
        alone = loss.only(1, 2).at(scores[offsets[1] : offsets[2]])
        np.testing.assert_allclose(alone.value, loss.at(scores).value[1:2], atol=1e-11)


@dataclass(frozen=True)
class InOrder:
    """A loss of documents that stand in another order: `rows` are where the loss has them."""

    loss: MarginLoss
    rows: np.ndarray
    offsets: np.ndarray

    @property
    def convex(self):
        return self.loss.convex

    def at(self, scores, prove=False):
        there, back = self.loss.at(scores[self.rows], prove), np.argsort(self.rows)
        return replace(there, assigned=there.assigned[back], reference=there.reference[back])

    def majorant(self, scores):
        return replace(self, loss=self.loss.majorant(scores[self.rows]))

    def only(self, first, last):
        low, high = self.offsets[[first, last]]
        return InOrder(self.loss.only(first, last), self.rows[low:high] - low, self.offsets[first : last + 1] - low)


@pytest.mark.every(5)
@pytest.mark.parametrize("bound", ["nonconvex", "tie-aware"])
def test_the_loss_passes_the_checks_of_every_loss(bound):
    """Sites that follow the grades move with the documents when these are shuffled; documents stand in the order of
    their contents, as training puts them, so ties between those that the set tells apart fall by these."""
    admissible = Admissible(3, on_infeasible="truncate").at_most(1, by="site")

    def build(grades, offsets):
        rows = np.lexsort((grades, np.repeat(np.arange(offsets.size - 1), np.diff(offsets))))
        batch = batch_of(admissible, grades[rows], {"site": grades[rows]}, offsets)
        return InOrder(loss_of(bound, batch), rows, offsets)

    check_loss(build)


@pytest.mark.parametrize("bound", ["nonconvex", "tie-aware"])
def test_all_rankings_of_k_documents_are_the_measure_and_the_decay_cut_at_k(bound):
    for seed in range(10):
        grades, attributes, offsets, scores = drawn(seed, tied=seed % 2 == 0)
        constrained = loss_of(bound, batch_of(Admissible(3), grades, attributes, offsets, "nDCG@3", "power(0.5)"))
        gain = parse("nDCG@3").gain(grades, offsets)
        problem = ranking(
            np.zeros(grades.size),
            gain,
            discount=parse("nDCG@3").discount,
            position_weights=parse_position_weights("power(0.5)@3").weights,
            offsets=offsets,
        )
        free = MarginLoss.build(PositionalOracle(problem, get_solver("exact")), get_bound(bound))
        np.testing.assert_allclose(constrained.at(scores).value, free.at(scores).value, atol=1e-11)


@pytest.mark.parametrize("solver", ["scipy", "ortools", "highs", "networkx", "cp_sat", "cvxpy:CLARABEL"])
def test_solvers_agree(solver):
    grades, attributes, offsets, scores = drawn(0)
    batch = batch_of(SETS["sites"], grades, attributes, offsets)
    other = batch_of(SETS["sites"], grades, attributes, offsets, solver=get_solver(solver))
    for bound in BOUNDS:
        expected, found = loss_of(bound, batch).at(scores), loss_of(bound, other).at(scores)
        np.testing.assert_allclose(found.value, expected.value, atol=1e-6)
        assert (found.bound >= expected.value - 1e-12).all()


def test_a_solver_that_cannot_take_the_set_is_named_with_those_that_can():
    grades, attributes, offsets, _ = drawn(0)
    with pytest.raises(OptionError, match=r"argmax cannot rank under these constraints.* auto, .*highs"):
        batch_of(SETS["quota"], grades, attributes, offsets, solver=get_solver("scipy"))


def test_a_fractional_relaxation_leaves_the_value_whole():
    """At most one of each of {0, 1}, {1, 2}, {0, 2}: the relaxation takes a half of each, and reaches 4.35."""
    admissible = RankingSet(6, 3)
    for pair in ([0, 1], [1, 2], [0, 2]):
        admissible = admissible.at_most(1, documents=pair)
    decay, scores = np.array([1.0, 0.9, 0.8]), np.array([3.0, 3.0, 3.0, 0.0, 0.0, 0.0])
    batch = AdmissibleArgmax.build((admissible,), np.zeros(6), np.zeros(3), decay, np.array([0, 6]), np.zeros(6))
    found = batch.argmax(np.zeros(1), np.ones(1), scores)
    assert found.value[0] == pytest.approx(3.0)
    assert 3.0 <= found.bound[0] <= 4.35 + 1e-9


def test_queries_whose_admissible_rankings_are_worth_alike_are_not_orderable():
    grades, attributes, offsets, _ = drawn(5, queries=8, largest=3)
    attributes["site"][:] = 0  # one document a list: any may be chosen
    batch = batch_of(SETS["sites"], grades, attributes, offsets)
    spread = [bool(np.ptp(grades[low:high]) > 0) for low, high in pairwise(offsets)]
    assert batch.orderable().tolist() == spread
    assert 0 < sum(spread) < 8
