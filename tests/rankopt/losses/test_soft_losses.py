"""Bounds of the regret under soft constraints: their definitions over all rankings, and what rankers make of them."""

from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

import numpy as np
import pytest
from problems.admissible import SETS, SOFT_SETS, batch_of, drawn, paid_out
from problems.means import is_mean
from scipy.optimize import minimize

from rankopt.constraints import Admissible
from rankopt.errors import OptionError
from rankopt.explanations.tightness import bounds_at, most_lost
from rankopt.losses import BOUNDS, get_bound
from rankopt.losses.margin import MarginLoss
from rankopt.rankers import LargeMarginRanker, load_model
from rankopt.rankers.deployment import log_weights


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
    at = {bound: MarginLoss.build(batch, get_bound(bound)).at(scores) for bound in BOUNDS}
    between = MarginLoss.build(batch, Halfway()).at(scores).value
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
def test_planes_lie_below_the_majorant_and_touch_it(bound, name):
    rng = np.random.default_rng(3)
    grades, attributes, offsets, scores = drawn(10)
    majorant = MarginLoss.build(batch_of(SOFT_SETS[name], grades, attributes, offsets), get_bound(bound))
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
    alone = majorant.only(1, 2).at(scores[offsets[1] : offsets[2]])
    np.testing.assert_allclose(alone.value, here.value[1:2], atol=1e-11)


@pytest.mark.parametrize("bound", BOUNDS)
def test_a_price_beyond_all_else_is_the_hard_constraint(bound):
    grades, attributes, offsets, scores = drawn(5)
    hard = Admissible(3, on_infeasible="truncate").at_most(1, documents="new", positions=range(2), name="quota")
    dear = hard.penalized("quota", penalty=1e3)
    batches = [batch_of(one, grades, attributes, offsets) for one in (hard, dear)]
    at = [MarginLoss.build(batch, get_bound(bound)).at(scores) for batch in batches]
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
        trained = MarginLoss.build(batch, get_bound(bound)).at(scores).value
        np.testing.assert_allclose(values[bound], trained, atol=1e-11)
    most = most_lost(batch)
    for q in range(3):
        worths = [worth for worth, _, _ in paid_out(batch, q)]
        assert most[q] == pytest.approx(max(worths) - min(worths))


def test_a_loss_is_not_below_0_where_the_best_ranking_pays_more_than_it_is_worth():
    rules = Admissible(1).at_most(0, documents="bad", name="bad").penalized("bad", penalty=2.5)
    bad = {"bad": np.array([True, False, False])}
    batch = batch_of(rules, np.array([2.0, 1.0, 0.0]), bad, np.array([0, 3]), "DCG@1")
    for bound in BOUNDS:  # net of its price the first document is worth less than the second, and the scores show it
        value = MarginLoss.build(batch, get_bound(bound)).at(np.array([10.0, 0.0, 0.0])).value
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
    assert (found.broken, found.cost) == ({"site['a']": 1.0}, 1.0)
    assert (
        strict.penalized("site", penalty=0.5).for_query({"site": np.array(["a", "a", "b"])}, 3).charge([0, 1, 2]) == 0.5
    )
