"""Prices of limits: a limit that is one looser gains no more than its price, by solving again and by all orders."""

from itertools import permutations

import numpy as np
import pytest

from rankopt.constraints import Admissible
from rankopt.errors import DataError, OptionError
from rankopt.experimental import shadow_prices
from rankopt.rankers import LargeMarginRanker, RegressionRanker

SITES = ("a", "b", "c")


def drawn(seed, queries=4, n=6):
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
    ranker, features, qid, attributes = drawn(seed)
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
    ranker, *_ = drawn(0)
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
    ranker, features, qid, attributes = drawn(2)
    loose = Admissible(2).at_most(2, by="site")
    free = shadow_prices(ranker, features, qid=qid, attributes=attributes, constraints=loose)
    assert not free.cost.any()
    assert not any(one.gain for one in free.limits)


def test_nothing_constrained_and_missing_attributes_are_refused():
    ranker, features, qid, _ = drawn(3)
    with pytest.raises(OptionError, match=r"got None\. Pass constraints="):
        shadow_prices(ranker, features, qid=qid)
    with pytest.raises(DataError, match="'site', which is missing"):
        shadow_prices(ranker, features, qid=qid, constraints=Admissible(2).at_most(1, by="site"))
    with pytest.raises(OptionError, match="constraints cannot be a int"):
        shadow_prices(ranker, features, qid=qid, constraints=3)
