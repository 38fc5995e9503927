"""Bounds of the regret under a set are their definitions over its rankings, written out."""

from dataclasses import dataclass, replace
from itertools import pairwise, permutations
from typing import ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose
from problems.admissible import SETS, SOFT_SETS, batch_of, drawn, paid_out, written_out
from problems.means import is_mean
from problems.slots import benefit_of, matchings
from problems.slots import drawn as drawn_slots
from scipy.optimize import minimize

from formulations.constraints.ranking_set import RankingSet
from formulations.gallery.rankings import ranking
from formulations.solvers import get_solver
from rankopt.constraints import Admissible
from rankopt.errors import OptionError
from rankopt.explanations.tightness import bounds_at, max_regret_of
from rankopt.losses import BOUNDS, get_bound
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_constrained import AdmissibleArgmax
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.oracle_slots import SlotArgmax
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures import parse
from rankopt.rankers import LargeMarginRanker, load_model
from rankopt.rankers.deployment import log_weights
from rankopt.testing import check_loss


def loss_of(bound, batch):
    return MarginLoss(batch, bound)


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
        alone = loss.select_queries(1, 2).at(scores[offsets[1] : offsets[2]])
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

    def select_queries(self, first, last):
        low, high = self.offsets[[first, last]]
        return InOrder(
            self.loss.select_queries(first, last), self.rows[low:high] - low, self.offsets[first : last + 1] - low
        )


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
        free = MarginLoss(PositionalOracle(problem, get_solver("exact")), bound)
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


# Bounds of the regret under soft constraints: their definitions over all rankings, and what rankers make of them.


@dataclass(frozen=True)
class Halfway:
    """Half-way between the convex and the tie-aware bound."""

    convex: ClassVar[bool] = False

    def __call__(self, argmax, scores):
        return (argmax.mean_of_best() + argmax.best_then_score(scores)) / 2


@pytest.mark.every(5)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", SOFT_SETS)
@pytest.mark.parametrize("seed", range(3))
def test_bounds_are_their_definitions_with_what_is_paid_taken_off(name, seed, tied):
    grades, attributes, offsets, scores = drawn(seed, tied=tied)
    measure, decay = [("nDCG@3", "power(0.5)"), ("P@2", "linear"), ("DCG", "power(1)@2")][seed]
    batch = batch_of(SOFT_SETS[name], grades, attributes, offsets, measure, decay)
    at = {bound: MarginLoss(batch, bound).at(scores) for bound in BOUNDS}
    between = MarginLoss(batch, Halfway()).at(scores).value
    for q in range(3):
        orders = paid_out(batch, q)
        s = scores[offsets[q] : offsets[q + 1]]
        top = max(worth - paid for worth, _, paid in orders)
        best = [(worth, c, paid) for worth, c, paid in orders if worth - paid >= top - 1e-12]
        assert batch.best[q] == pytest.approx(max(worth for worth, _, _ in orders))
        augmented = max(c @ s - worth - paid for worth, c, paid in orders)
        tallest = max(c @ s - paid for _, c, paid in orders)
        regret = max(batch.best[q] - worth for worth, c, paid in orders if c @ s - paid >= tallest - 1e-12)
        aware = max(c @ s - paid for _, c, paid in best)
        assert at["nonconvex"].value[q] == pytest.approx(augmented + batch.best[q] - tallest, abs=1e-11)
        assert at["tie-aware"].value[q] == pytest.approx(augmented + batch.best[q] - aware, abs=1e-11)
        fixed = at["convex"].reference[offsets[q] : offsets[q + 1]]
        paid = at["convex"].value[q] - augmented - batch.best[q] + fixed @ s
        assert any(paid == pytest.approx(pays, abs=1e-11) for _, _, pays in best)
        assert is_mean(fixed, [c for _, c, pays in best if pays == pytest.approx(paid, abs=1e-9)])
        rising = [regret, *(at[bound].value[q] for bound in ("nonconvex", "tie-aware", "convex"))]
        assert min(rising) >= -1e-9
        assert (np.diff(rising) >= -1e-9).all()
        assert between[q] == pytest.approx((at["convex"].value[q] + at["tie-aware"].value[q]) / 2, abs=1e-11)


@pytest.mark.every(5)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("name", SOFT_SETS)
def test_planes_lie_below_the_majorant_and_touch_it_soft(bound, name):
    rng = np.random.default_rng(3)
    grades, attributes, offsets, scores = drawn(10)
    majorant = MarginLoss(batch_of(SOFT_SETS[name], grades, attributes, offsets), bound)
    loss, majorant = majorant, majorant.majorant(scores)
    here = majorant.at(scores)
    slope = here.assigned - here.reference
    np.testing.assert_allclose(here.value, loss.at(scores).value, atol=1e-11)
    np.testing.assert_allclose(here.height + np.add.reduceat(slope * scores, offsets[:-1]), here.value, atol=1e-12)
    for _ in range(3):
        elsewhere = scores + rng.normal(size=scores.size)
        there = majorant.at(elsewhere).bound
        assert (here.height + np.add.reduceat(slope * elsewhere, offsets[:-1]) <= there + 1e-12).all()
        assert (loss.at(elsewhere).value <= there + 1e-9).all()
    alone = majorant.select_queries(1, 2).at(scores[offsets[1] : offsets[2]])
    np.testing.assert_allclose(alone.value, here.value[1:2], atol=1e-11)


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_price_beyond_all_else_is_the_hard_constraint(bound):
    grades, attributes, offsets, scores = drawn(5)
    hard = Admissible(3, on_infeasible="truncate").at_most(1, documents="new", positions=range(2), name="quota")
    dear = hard.penalized("quota", penalty=1e3)
    batches = [batch_of(one, grades, attributes, offsets) for one in (hard, dear)]
    at = [MarginLoss(batch, bound).at(scores) for batch in batches]
    apart = batches[1].best - batches[0].best  # regret is measured from what breaks it too
    np.testing.assert_allclose(at[0].value + apart, at[1].value, atol=1e-10)
    np.testing.assert_allclose(at[0].assigned, at[1].assigned, atol=1e-12)


def learnable(seed=0, queries=8, n=6):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(queries * n, 3))
    grades = (features @ [1.0, 0.5, 0.0] + 0.5 * rng.normal(size=queries * n) > 0.4).astype(int)
    attributes = {"site": rng.integers(0, 2, queries * n), "new": rng.random(queries * n) < 0.4}
    return features, grades, np.repeat(np.arange(queries), n), attributes


@pytest.mark.every(2)
@pytest.mark.parametrize("bound", BOUNDS)
def test_training_closes_its_gap_and_ranking_is_the_best_of_all(bound, tmp_path):
    features, grades, qid, attributes = learnable()
    rules = Admissible(3).at_most(1, by="site").penalized("site", penalty=0.1).at_least(1, documents="new", name="new")
    rules = rules.penalized("new", penalty=0.25)
    assert eval(repr(rules)) == rules
    ranker = LargeMarginRanker("nDCG@3", bound=bound, lam=0.1, tol=1e-3, constraints=rules)
    ranker.fit(features, grades, qid=qid, attributes=attributes)
    assert ranker.certificate_.gap <= 1e-3 * max(1.0, abs(ranker.certificate_.primal))
    orders = ranker.rank(features, qid=qid, attributes=attributes)
    scores = ranker.predict(features)
    weights = ranker._shown_weights(3, 6)
    for q, order in orders.items():
        rows = np.flatnonzero(qid == q)
        own = rules.for_query({name: values[rows] for name, values in attributes.items()}, 6)
        worth = [weights @ scores[rows][list(o)] - own.charge(o) for o in permutations(range(6), 3)]
        shown = np.searchsorted(rows, order)
        assert weights @ scores[rows][shown] - own.charge(shown) == pytest.approx(max(worth))
    ranker.save(tmp_path / "soft.model")
    again = load_model(tmp_path / "soft.model")
    assert again.constraints == rules
    assert ranker.score(features, grades, qid=qid, attributes=attributes) == pytest.approx(
        again.score(features, grades, qid=qid, attributes=attributes)
    )
    assert log_weights(3, 6).shape == (3,)


@pytest.mark.parametrize("name", SOFT_SETS)
def test_tightness_takes_off_what_references_pay(name):
    grades, attributes, offsets, scores = drawn(4)
    batch = batch_of(SOFT_SETS[name], grades, attributes, offsets)
    values, _ = bounds_at(batch, scores, {bound: get_bound(bound) for bound in BOUNDS})
    for bound in BOUNDS:
        trained = MarginLoss(batch, bound).at(scores).value
        np.testing.assert_allclose(values[bound], trained, atol=1e-11)
    most = max_regret_of(batch)
    for q in range(3):
        worths = [worth for worth, _, _ in paid_out(batch, q)]
        assert most[q] == pytest.approx(max(worths) - min(worths))


def test_a_loss_is_not_below_0_where_the_best_ranking_pays_more_than_it_is_worth():
    rules = Admissible(1).at_most(0, documents="bad", name="bad").penalized("bad", penalty=2.5)
    bad = {"bad": np.array([True, False, False])}
    batch = batch_of(rules, np.array([2.0, 1.0, 0.0]), bad, np.array([0, 3]), "DCG@1")
    for bound in BOUNDS:  # net of its price the first document is worth less than the second, and the scores show it
        value = MarginLoss(batch, bound).at(np.array([10.0, 0.0, 0.0])).value
        assert value[0] >= 0.0


def sites_of(seed):
    """Queries of 5 documents on 3 sites, and of each all orders of 3: score weights, worth for DCG@3, units broken."""
    rng = np.random.default_rng(seed)
    features, grades, sites = rng.normal(size=(15, 3)), rng.integers(0, 3, 15), rng.integers(0, 3, 15)
    orders, places = np.array([*permutations(range(5), 3)]), np.arange(1.0, 4.0)
    known = []
    for low in (0, 5, 10):
        worth = (2.0 ** grades[low : low + 5] - 1.0)[orders] @ (1.0 / np.log2(places + 1.0))
        counts = (sites[low : low + 5][orders][:, :, None] == np.arange(3)).sum(axis=1)
        phi = np.einsum("p,opf->of", places**-0.5, features[low : low + 5][orders])
        known.append((phi, worth, np.maximum(counts - 1, 0).sum(axis=1)))
    return features, grades, sites, known


@pytest.mark.parametrize(
    ("method", "bound"),
    [
        ("bundle", "nonconvex"),
        ("bundle", "tie-aware"),
        ("cutting_planes", "nonconvex"),
        ("block_frank_wolfe", "nonconvex"),
    ],
)
def test_bounds_of_majorants_lie_below_them_whatever_was_paid_before(method, bound):
    for seed, price in enumerate([0.3, 1.0]):
        features, grades, sites, known = sites_of(seed)
        rules = Admissible(3).at_most(1, by="site").penalized("site", penalty=price)
        tol = 0.03 if method == "block_frank_wolfe" else 1e-3
        ranker = LargeMarginRanker("DCG@3", bound=bound, lam=0.1, tol=tol, constraints=rules, w0="zeros", method=method)
        ranker.fit(features, grades, qid=np.repeat(np.arange(3), 5), attributes={"site": sites})
        w, parts = ranker.coef_, []
        for phi, worth, units in known:
            net = worth - price * units
            if np.ptp(net) <= 1e-12:
                continue
            allowed = np.flatnonzero(net >= net.max() - 1e-9) if bound == "tie-aware" else np.arange(net.size)
            own = allowed[np.argmax((phi @ w - price * units)[allowed])]
            parts.append((phi, price * units + worth, phi[own], price * units[own] + worth.max()))

        def majorant(v, parts=parts):
            values = [(phi @ v - off).max() - r @ v + more for phi, off, r, more in parts]
            return 0.05 * v @ v + np.mean(values)

        touching = majorant(w)
        assert ranker.certificate_.primal == pytest.approx(touching, abs=1e-9)
        least = minimize(majorant, w, method="Nelder-Mead", options={"maxiter": 400}).fun
        assert ranker.certificate_.bound <= min(touching, least) + 1e-9
        assert ranker.certificate_.gap <= 2.0 * tol * touching


def test_names_and_prices_of_rules_are_checked_and_empty_sets_repaired():
    with pytest.raises(OptionError, match=r"No constraint is named 'genre'.*'site'"):
        SETS["sites"].penalized("genre", penalty=1.0)
    with pytest.raises(OptionError, match=r"penalty of 'site' must be a number.*got nan"):
        SETS["sites"].penalized("site", penalty=float("nan"))
    strict = Admissible(3).at_most(1, by="site")
    found = strict.repair({"site": np.array(["a", "a", "b"])}, 3)
    assert (found.violations, found.cost) == ({"site['a']": 1.0}, 1.0)
    assert (
        strict.penalized("site", penalty=0.5).for_query({"site": np.array(["a", "a", "b"])}, 3).charge([0, 1, 2]) == 0.5
    )


# Bounds of the loss of a matching are their definitions over all matchings, written out.


def loss_of_slots(benefit, offsets, bound):
    return MarginLoss(SlotArgmax(benefit, offsets), bound)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_bounds_are_their_definitions_and_rise_from_loss_to_convex(seed, tied):
    slot, offsets, scores = drawn_slots(seed, tied=tied)
    benefit = benefit_of(slot)
    at = {bound: loss_of_slots(benefit, offsets, bound).at(scores) for bound in BOUNDS}
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        every = list(matchings(high - low))
        s, b = scores[low:high], benefit[low:high]
        best = max((p * b).sum() for p in every)
        augmented = max((p * (s - b)).sum() for p in every)
        tallest = max((p * s).sum() for p in every)
        lost = max(best - (p * b).sum() for p in every if (p * s).sum() >= tallest - 1e-12)
        maximizers = [p for p in every if (p * b).sum() >= best - 1e-12]
        aware = max((p * s).sum() for p in maximizers)
        shared = np.mean(maximizers, axis=0)
        assert at["nonconvex"].value[q] == pytest.approx(augmented + best - tallest, abs=1e-12)
        assert at["tie-aware"].value[q] == pytest.approx(augmented + best - aware, abs=1e-12)
        assert at["convex"].value[q] == pytest.approx(augmented + best - (at["convex"].reference[low:high] * s).sum())
        assert ((at["convex"].reference[low:high] > 0) <= (shared > 0)).all()
        rising = [lost, *(at[bound].value[q] for bound in ("nonconvex", "tie-aware", "convex"))]
        assert (np.diff(rising) >= -1e-12).all()


@pytest.mark.parametrize("seed", range(12))
def test_the_shared_reference_is_a_mean_of_best_matchings(seed):
    """It fills what a matching fills and is worth the best: a point of the face that the best matchings span."""
    slot, offsets, _ = drawn_slots(seed, queries=1, largest=7)
    n, benefit = slot.size, benefit_of(slot)
    loss = loss_of_slots(benefit, offsets, "convex")
    assert (loss.fixed >= 0).all()
    assert_allclose(loss.fixed.sum(axis=0), 1.0, atol=1e-12) if n >= 3 else None
    assert_allclose(loss.fixed.sum(axis=1), 1.0, atol=1e-12) if n <= 3 else None
    assert (loss.fixed.sum(axis=0) <= 1 + 1e-12).all()
    assert (loss.fixed.sum(axis=1) <= 1 + 1e-12).all()
    assert (loss.fixed * benefit).sum() == pytest.approx(loss.argmax.best[0])
    assert loss.argmax.best[0] == pytest.approx(max((p * benefit).sum() for p in matchings(n)))


@pytest.mark.parametrize("bound", BOUNDS)
def test_planes_lie_below_the_majorant_and_touch_it_slots(bound):
    rng = np.random.default_rng(3)
    for trial in range(10):
        slot, offsets, scores = drawn_slots(20 + trial, tied=trial % 2 == 0)
        loss = loss_of_slots(benefit_of(slot), offsets, bound)
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
        alone = loss.select_queries(1, 3).at(scores[offsets[1] : offsets[3]]).value
        assert_allclose(alone, loss.at(scores).value[1:3], atol=1e-12)
        rows = np.concatenate([rng.permutation(np.arange(low, high)) for low, high in pairwise(offsets.tolist())])
        shuffled = loss_of_slots(benefit_of(slot)[rows], offsets, bound).at(scores[rows]).value
        assert_allclose(shuffled, loss.at(scores).value, atol=1e-12)
