"""The smallest swap: its document ties by recomputed scores, less of it leaves the order, no other is smaller."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from rankopt.constraints import Admissible
from rankopt.errors import DataError, OptionError
from rankopt.experimental import counterfactual_change, shadow_prices
from rankopt.rankers import LargeMarginRanker, MatchingRanker, RegressionRanker

NAMES = tuple("abcdef")


def drawn(seed, limited=True):
    """Weights (some 0), two documents, units, and limits around both."""
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=6) * (rng.random(6) < 0.8)
    x, y, units = rng.normal(size=6), rng.normal(size=6), rng.uniform(0.2, 3.0, 6)
    if not limited:
        return coef, x, y, units, np.full(6, -np.inf), np.full(6, np.inf)
    low, high = np.minimum(x, y) - rng.uniform(0, 2, 6), np.maximum(x, y) + rng.uniform(0, 2, 6)
    low[rng.random(6) < 0.3] = -np.inf
    return coef, x, y, units, low, high


def change_of(coef, x, y, names=NAMES, **options):
    """The counterfactual of two documents under a ranker with these weights."""
    frame = pd.DataFrame([x, y], columns=names)
    ranker = RegressionRanker(1.0).fit(frame, [0, 1])
    ranker.coef_ = np.array(coef, dtype=float)
    return counterfactual_change(ranker, frame.iloc[0], frame.iloc[1], **options)


def score(coef, document):
    return float(coef @ document)


@pytest.mark.parametrize("moves", ["x", "y"])
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_exactly_this_change_ties_and_less_of_it_does_not(seed, limited, moves):
    coef, x, y, units, low, high = drawn(seed, limited)
    swap = change_of(coef, x, y, low=low, high=high, units=units, moves=moves)
    fixed, moving = (x, y) if moves == "y" else (y, x)
    before = score(coef, moving) - score(coef, fixed)
    assert swap.missing == pytest.approx(-before)
    documents = [swap.joint_document] if swap.feasible else []
    if swap.best is not None:
        documents.append(swap.single_document)
        assert (swap.single_document != moving).sum() == 1
        assert swap.distance <= swap.cost * (1 + 1e-12)
    for after in documents:
        assert ((after >= low - 1e-12) & (after <= high + 1e-12)).all()
        assert score(coef, after) == pytest.approx(score(coef, fixed), abs=1e-12)
        less, more = moving + 0.999 * (after - moving), moving + 1.001 * (after - moving)
        assert np.sign(score(coef, less) - score(coef, fixed)) == np.sign(before)
        assert np.sign(score(coef, more) - score(coef, fixed)) == -np.sign(before)


@pytest.mark.parametrize("seed", range(25))
def test_each_feature_alone_is_possible_exactly_within_its_limits(seed):
    coef, x, y, units, low, high = drawn(seed)
    swap = change_of(coef, x, y, low=low, high=high, units=units)
    for j in range(6):
        wanted = (score(coef, x) - score(coef, y)) / coef[j] if coef[j] else np.nan
        fits = bool(coef[j]) and low[j] <= y[j] + wanted <= high[j]
        assert fits == (not np.isnan(swap.single[j]))
        if fits:
            assert swap.single[j] == pytest.approx(wanted)
            assert swap.cost <= abs(wanted) / units[j] + 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_no_other_change_of_all_is_smaller(seed):
    """Against a solver of the quadratic program, and against random feasible changes."""
    coef, x, y, units, low, high = drawn(seed)
    swap = change_of(coef, x, y, low=low, high=high, units=units)
    lacks = score(coef, x) - score(coef, y)
    ends = [[coef[j] * (limit[j] - y[j]) if coef[j] else 0.0 for limit in (low, high)] for j in range(6)]
    reach = np.max(np.sign(lacks) * np.array(ends), axis=1).sum()
    assert swap.reach == pytest.approx(reach, rel=1e-9)
    assert swap.feasible == (reach >= abs(lacks))
    if not swap.feasible:
        assert swap.distance == np.inf
        assert_array_equal(swap.joint_document, y)
        return
    found = minimize(
        lambda e: e @ e, np.zeros(6), jac=lambda e: 2 * e, method="SLSQP",
        bounds=list(zip((low - y) / units, (high - y) / units, strict=True)),
        constraints={"type": "eq", "fun": lambda e: (coef * units) @ e - lacks, "jac": lambda e: coef * units},
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert swap.distance <= np.sqrt(found.fun) + 1e-6
    assert_allclose(swap.joint / units, found.x, atol=1e-4)


def test_the_unlimited_change_is_the_projection_on_the_tie():
    coef, x, y, units, *_ = drawn(3, limited=False)
    swap = change_of(coef, x, y, units=units)
    v = coef * units
    assert swap.distance == pytest.approx(abs(coef @ (x - y)) / np.linalg.norm(v))
    assert_allclose(swap.joint, units * v * (coef @ (x - y)) / (v @ v))


def test_margins_units_limits_and_features_by_name():
    def change(**options):
        return change_of([2.0, -1.0, 0.0], [3.0, 0, 0], np.zeros(3), ("a", "b", "c"), **options)

    alone = change(features="b")
    assert (alone.best, alone.single[1], alone.cost) == (1, -6.0, 6.0)
    assert_array_equal(np.isnan(alone.single), [True, False, True])
    assert_array_equal(alone.joint, [0.0, -6.0, 0.0])
    wide = change(units={"a": 0.5, "b": 6.0})
    assert (wide.best, wide.cost) == (1, 1.0)
    assert change(features=["a"], margin=1.0).single[0] == 3.5
    assert change(features=["a"], margin=1.0, moves="x").single[0] == -3.5
    short = change(low={"b": -2.0}, high={"a": 1.5})
    assert not short.feasible
    assert short.best is None
    assert short.reach == 5.0
    assert_array_equal(change(low={"b": -2.0}, high={"a": 2.0}).joint, [2.0, -2.0, 0.0])
    assert not change(features=["c"]).feasible
    constant = change(units=[0.0, 1.0, 1.0])
    assert np.isnan(constant.single[0])
    assert constant.best == 1


def test_documents_that_tie_need_no_change():
    swap = change_of([1.0, 1.0], [1.0, 0.0], [0.0, 1.0], ("a", "b"))
    assert swap.feasible
    assert swap.missing == swap.distance == 0.0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"features": ["z"]}, "features must name features .*got 'z'"),
        ({"low": {"z": 0}}, "low must name features .*got 'z'"),
        ({"low": 1.0}, "must contain the document as it is; a = 0 is not within"),
        ({"high": [1.0, 2.0, 3.0]}, "high must be a number, 2 numbers"),
        ({"high": "far"}, "high must be a number"),
        ({"high": float("nan")}, "high must not contain nan"),
        ({"units": -1.0}, "units must be finite"),
        ({"moves": "z"}, "moves must be 'x' or 'y'"),
        ({"margin": -1.0}, "margin must be a finite number >= 0; got -1.0"),
    ],
)
def test_invalid_options_are_refused(options, says):
    with pytest.raises(OptionError, match=says):
        change_of(np.ones(2), np.ones(2), np.zeros(2), ("a", "b"), **options)


def test_columns_stand_in_the_order_of_the_data_and_scores_are_the_rankers_own():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 4)), columns=["w", "x", "y", "z"])
    ranker = RegressionRanker(1.0).fit(frame, rng.integers(0, 3, 60), qid=np.repeat(range(6), 10))
    for first, second in ((0, 1), (1, 0), (5, 9)):
        swap = counterfactual_change(ranker, frame.iloc[first], frame.iloc[second], features=["z", "x"])
        assert swap.features == ("w", "x", "y", "z")
        for document in (swap.single_document, swap.joint_document):
            scores = ranker.predict(pd.DataFrame([frame.iloc[first].to_numpy(), document], columns=frame.columns))
            assert scores[0] == pytest.approx(scores[1], abs=1e-12)
            assert (document[[0, 2]] == frame.iloc[second].to_numpy()[[0, 2]]).all()


def test_a_slot_has_swaps_of_its_own():
    rng = np.random.default_rng(1)
    features, slot, qid = rng.normal(size=(40, 3)), np.tile([0, 1, 2, 0], 10), np.repeat(range(10), 4)
    ranker = MatchingRanker(lam=1.0, w0="regression").fit(features, slot, qid=qid)
    after = counterfactual_change(ranker, features[0], features[1], slot=2).joint_document
    assert ranker.predict(after[None])[0, 1] == pytest.approx(ranker.predict(features[:1])[0, 1])


# Prices of limits: a limit that is one looser gains no more than its price, by solving again and by all orders.


SITES = ("a", "b", "c")


def drawn_prices(seed, queries=4, n=6):
    rng = np.random.default_rng(seed)
    features, grades = rng.normal(size=(queries * n, 3)), rng.integers(0, 3, queries * n)
    attributes = {"site": rng.choice(SITES, queries * n), "new": rng.random(queries * n) < 0.4}
    attributes["new"][::n] = True
    ranker = RegressionRanker().fit(features, grades, qid=np.repeat(np.arange(queries), n))
    return ranker, features, np.repeat(np.arange(queries), n), attributes


def optimum(scores, k, allowed):
    """max Σ c_i s_π(i) over the orders that are allowed, c = 1 / log2(i + 1), by writing them all out."""
    weights = 1 / np.log2(np.arange(2.0, k + 2.0))
    found = [weights @ scores[list(order)] for order in permutations(range(scores.size), k) if allowed(order)]
    return max(found, default=-np.inf)


def counts(site, order):
    chosen = site[list(order)]
    return {name: int((chosen == name).sum()) for name in SITES}


@pytest.mark.every(5)
@pytest.mark.parametrize("seed", range(6))
def test_no_limit_gains_more_than_its_price_and_the_others_gain_nothing(seed):
    ranker, features, qid, attributes = drawn_prices(seed)
    limits = {"a": 1, "b": 1, "c": 2}
    admissible = (
        Admissible(4, on_infeasible="truncate")
        .at_most(limits, by="site")
        .at_least(1, documents="new", positions=range(2))
    )
    found = shadow_prices(ranker, features, qid=qid, attributes=attributes, constraints=admissible)
    scores = ranker.predict(features)
    priced = {(one.query, one.row, one.side): one.price for one in found.limits}
    gained = {(one.query, one.row, one.side): one.gain for one in found.limits}
    assert all(price > 0 for price in priced.values())
    for query in range(4):
        own = qid == query
        s, site, new = scores[own], attributes["site"][own], attributes["new"][own]
        k = admissible.for_query({name: values[own] for name, values in attributes.items()}, 6).positions

        def allowed(order, looser=None, least=1, site=site, new=new):
            held = counts(site, order)
            most = {name: limits[name] + (name == looser) for name in SITES}
            return all(held[name] <= most[name] for name in SITES) and new[list(order[:2])].sum() >= least

        value = optimum(s, k, allowed)
        place = found.queries.index(query)
        assert found.value[place] == pytest.approx(value)
        assert found.cost[place] == pytest.approx(optimum(s, k, lambda order: True) - value, abs=1e-12)
        for name in SITES:
            gain = optimum(s, k, lambda order, name=name: allowed(order, looser=name)) - value
            key = (query, f"site[{name!r}]", "at most")
            assert -1e-9 <= gain <= priced.get(key, 0.0) + found.gap[place] + 1e-9
            assert gained.get(key, gain) == pytest.approx(gain, abs=1e-9)
        gain, key = optimum(s, k, lambda order: allowed(order, least=0)) - value, (query, "new", "at least")
        assert gain <= priced.get(key, 0.0) + found.gap[place] + 1e-9
        assert gained.get(key, gain) == pytest.approx(gain, abs=1e-9)


@pytest.mark.study
def test_solving_again_with_a_looser_limit_gains_no_more_than_the_price():
    """On lists longer than can be written out, through the rankers' own program."""
    rng = np.random.default_rng(1)
    features, qid = rng.normal(size=(120, 3)), np.repeat(np.arange(3), 40)
    site = rng.choice(list("abcdefgh"), 120)
    ranker = LargeMarginRanker("nDCG@8", lam=1.0).fit(features, rng.integers(0, 3, 120), qid=qid)
    limits = dict.fromkeys("abcdefgh", 1)
    asked = {"qid": qid, "attributes": {"site": site}}
    found = shadow_prices(ranker, features, constraints=Admissible(8).at_most(limits, by="site"), **asked)
    assert len(found.limits) > 3
    assert not found.gap.any()
    frame = found.to_frame()
    assert frame.columns.tolist() == ["query", "constraint", "row", "side", "gain", "price"]
    assert frame.price.tolist() == [one.price for one in found.limits]
    title, head, *lines = str(found).splitlines()
    assert title == f"{len(frame)} binding limits in {frame['query'].nunique()} of 3 queries"
    assert head.split()[:2] == ["query", "limit"]
    assert [line.split()[1] for line in lines] == frame.row.tolist()
    for one in found.limits:
        name, place = one.row[len("site['") : -2], found.queries.index(one.query)
        looser = Admissible(8).at_most({**limits, name: 2}, by="site")
        gain = shadow_prices(ranker, features, constraints=looser, **asked).value[place] - found.value[place]
        assert -1e-9 <= gain <= one.price + 1e-9
        assert one.gain == pytest.approx(gain, abs=1e-9)
    assert sum(one.gain > 0 for one in found.limits) > 3
    freed = shadow_prices(
        ranker, features, constraints=Admissible(8).at_most(dict.fromkeys(limits, 2), by="site"), **asked
    )
    for place, query in enumerate(found.queries):
        total = sum(one.price for one in found.limits if one.query == query)
        assert freed.value[place] - found.value[place] <= total + 1e-9


def test_a_program_that_is_not_whole_says_by_how_much():
    """Three blocks that overlap: the relaxation takes halves."""
    ranker, *_ = drawn_prices(0)
    ranker.coef_ = np.array([1.0, 0.0, 0.0])
    features = np.zeros((6, 3))
    features[:, 0] = [3.0, 3.0, 3.0, 0.0, 0.0, 0.0]
    topic = np.empty(6, dtype=object)
    topic[:] = [("news", "sport"), ("sport", "film"), ("film", "news"), None, None, None]
    admissible = Admissible(3).at_most(1, by="topic")
    found = shadow_prices(ranker, features, qid=np.zeros(6), attributes={"topic": topic}, constraints=admissible)
    assert found.value[0] == pytest.approx(3.0)
    assert found.gap[0] > 0.1
    assert {one.constraint for one in found.limits} <= {"topic"}


def test_limits_that_do_not_bind_cost_nothing():
    ranker, features, qid, attributes = drawn_prices(2)
    loose = Admissible(2).at_most(2, by="site")
    free = shadow_prices(ranker, features, qid=qid, attributes=attributes, constraints=loose)
    assert not free.cost.any()
    assert not any(one.gain for one in free.limits)


def test_nothing_constrained_and_missing_attributes_are_refused():
    ranker, features, qid, _ = drawn_prices(3)
    with pytest.raises(OptionError, match=r"got None\. Pass constraints="):
        shadow_prices(ranker, features, qid=qid)
    with pytest.raises(DataError, match="'site', which is missing"):
        shadow_prices(ranker, features, qid=qid, constraints=Admissible(2).at_most(1, by="site"))
    with pytest.raises(OptionError, match="constraints cannot be a int"):
        shadow_prices(ranker, features, qid=qid, constraints=3)
