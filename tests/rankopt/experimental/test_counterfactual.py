"""The smallest swap: its document ties by recomputed scores, less of it leaves the order, no other is smaller."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from rankopt.explanations.counterfactual import chance_in_order, noise_at
from scipy.optimize import minimize

from rankopt.errors import OptionError
from rankopt.explanations.contributions import Explanation, deviations_within
from rankopt.rankers import MatchingRanker, RegressionRanker

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


def score(coef, document):
    return float(coef @ document)


@pytest.mark.parametrize("moves", ["x", "y"])
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_exactly_this_change_ties_and_less_of_it_does_not(seed, limited, moves):
    coef, x, y, units, low, high = drawn(seed, limited)
    reasons = Explanation.of(NAMES, coef, x, y)
    swap = reasons.swap(low=low, high=high, units=units, moves=moves)
    fixed, moving = (x, y) if moves == "y" else (y, x)
    before = score(coef, moving) - score(coef, fixed)
    assert swap.lacks == pytest.approx(-before)
    documents = [swap.document_together] if swap.possible else []
    if swap.feature is not None:
        documents.append(swap.document_alone)
        assert (swap.document_alone != moving).sum() == 1
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
    swap = Explanation.of(NAMES, coef, x, y).swap(low=low, high=high, units=units)
    for j in range(6):
        wanted = (score(coef, x) - score(coef, y)) / coef[j] if coef[j] else np.nan
        fits = bool(coef[j]) and low[j] <= y[j] + wanted <= high[j]
        assert fits == (swap.why[j] == "") == (not np.isnan(swap.alone[j]))
        if fits:
            assert swap.alone[j] == pytest.approx(wanted)
            assert swap.cost <= abs(wanted) / units[j] + 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_no_other_change_of_all_is_smaller(seed):
    """Against a solver of the quadratic program, and against random feasible changes."""
    coef, x, y, units, low, high = drawn(seed)
    swap = Explanation.of(NAMES, coef, x, y).swap(low=low, high=high, units=units)
    lacks = score(coef, x) - score(coef, y)
    ends = [[coef[j] * (limit[j] - y[j]) if coef[j] else 0.0 for limit in (low, high)] for j in range(6)]
    reach = np.max(np.sign(lacks) * np.array(ends), axis=1).sum()
    assert swap.reach == pytest.approx(reach, rel=1e-9)
    assert swap.possible == (reach >= abs(lacks))
    if not swap.possible:
        assert "can change by" in swap.reason
        assert swap.distance == np.inf
        assert_array_equal(swap.document_together, y)
        return
    found = minimize(
        lambda e: e @ e, np.zeros(6), jac=lambda e: 2 * e, method="SLSQP",
        bounds=list(zip((low - y) / units, (high - y) / units, strict=True)),
        constraints={"type": "eq", "fun": lambda e: (coef * units) @ e - lacks, "jac": lambda e: coef * units},
        options={"ftol": 1e-14, "maxiter": 500},
    )  # fmt: skip
    assert swap.distance <= np.sqrt(found.fun) + 1e-6
    assert_allclose(swap.together / units, found.x, atol=1e-4)


def test_the_unlimited_change_is_the_projection_on_the_tie():
    coef, x, y, units, *_ = drawn(3, limited=False)
    swap = Explanation.of(NAMES, coef, x, y).swap(units=units)
    v = coef * units
    assert swap.distance == pytest.approx(abs(coef @ (x - y)) / np.linalg.norm(v))
    assert_allclose(swap.together, units * v * (coef @ (x - y)) / (v @ v))


def test_margins_units_limits_and_features_by_name():
    reasons = Explanation.of(("a", "b", "c"), np.array([2.0, -1.0, 0.0]), np.array([3.0, 0, 0]), np.zeros(3))
    assert reasons.total == 6.0
    alone = reasons.swap(features="b")
    assert (alone.feature, alone.change, alone.cost) == ("b", -6.0, 6.0)
    assert alone.why == ("it may not move", "", "it may not move")
    assert_array_equal(alone.together, [0.0, -6.0, 0.0])
    wide = reasons.swap(units={"a": 0.5, "b": 6.0})
    assert (wide.feature, wide.cost) == ("b", 1.0)
    beyond = reasons.swap(features=["a"], margin=1.0)
    assert beyond.change == 3.5
    assert reasons.swap(features=["a"], margin=1.0, moves="x").change == -3.5
    short = reasons.swap(low={"b": -2.0}, high={"a": 1.5})
    assert not short.possible
    assert short.reach == 5.0
    assert short.why[0] == "it would have to be 3, above high = 1.5"
    assert short.why[1] == "it would have to be -6, below low = -2"
    assert short.why[2] == "its weight is 0"
    assert "can change by 5 of the 6 that it lacks" in str(short)
    exact = reasons.swap(low={"b": -2.0}, high={"a": 2.0})
    assert_array_equal(exact.together, [2.0, -2.0, 0.0])
    assert "one feature alone: none" in str(exact)
    still = reasons.swap(features=["c"])
    assert not still.possible
    assert "weight 0" in still.reason
    constant = reasons.swap(units=[0.0, 1.0, 1.0])
    assert constant.why[0].startswith("it does not vary")
    assert constant.feature == "b"


def test_documents_that_tie_need_no_change():
    reasons = Explanation.of(("a", "b"), np.array([1.0, 1.0]), np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    swap = reasons.swap()
    assert swap.possible
    assert swap.lacks == swap.distance == 0.0
    assert "they tie" in str(swap)
    assert reasons.chance(0.0) == 0.5


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"features": ["z"]}, "features names 'z'"),
        ({"low": {"z": 0}}, "low names 'z'"),
        ({"low": 1.0}, "exclude the document as it is: a = 0 is not within"),
        ({"high": [1.0, 2.0, 3.0]}, "high must be a number, 2 numbers"),
        ({"high": "far"}, "high must be a number"),
        ({"high": float("nan")}, "high holds nan"),
        ({"units": -1.0}, "units must be finite"),
        ({"moves": "z"}, "names neither document"),
        ({"margin": -1.0}, "margin = -1.0"),
    ],
)
def test_what_cannot_be_asked_is_refused(given, says):
    reasons = Explanation.of(("a", "b"), np.ones(2), np.ones(2), np.zeros(2))
    with pytest.raises(OptionError, match=says):
        reasons.swap(**given)


def test_columns_stand_in_the_order_of_the_data_and_scores_are_the_rankers_own():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 4)), columns=["w", "x", "y", "z"])
    ranker = RegressionRanker(1.0).fit(frame, rng.integers(0, 3, 60), qid=np.repeat(range(6), 10))
    for first, second in ((0, 1), (1, 0), (5, 9)):
        reasons = ranker.explain(frame.iloc[first], frame.iloc[second])
        assert_array_equal(ranker.coef_[reasons.column], reasons.coef)
        swap = reasons.swap(features=["z", "x"])
        assert swap.features == ("w", "x", "y", "z")
        for document in (swap.document_alone, swap.document_together):
            scores = ranker.predict(pd.DataFrame([frame.iloc[first].to_numpy(), document], columns=frame.columns))
            assert scores[0] == pytest.approx(scores[1], abs=1e-12)
            assert (document[[0, 2]] == frame.iloc[second].to_numpy()[[0, 2]]).all()


def test_a_slot_has_swaps_of_its_own():
    rng = np.random.default_rng(1)
    features, slot, qid = rng.normal(size=(40, 3)), np.tile([0, 1, 2, 0], 10), np.repeat(range(10), 4)
    ranker = MatchingRanker(lam=1.0, w0="regression").fit(features, slot, qid=qid)
    after = ranker.explain(features[0], features[1], slot=2).swap().document_together
    assert ranker.predict(after[None])[0, 1] == pytest.approx(ranker.predict(features[:1])[0, 1])


@pytest.mark.parametrize(("lead", "noise"), [(0.5, 1.0), (-0.3, 0.4), (2.0, 1.0), (0.0, 1.0), (0.1, 3.0)])
def test_the_chance_is_that_of_draws(lead, noise):
    draws = np.random.default_rng(0).normal(scale=noise, size=(2, 400_000))
    drawn_chance = (lead + draws[0] > draws[1]).mean()
    assert chance_in_order(lead, noise) == pytest.approx(drawn_chance, abs=4 * 0.5 / np.sqrt(400_000))


def test_chances_turn_back_into_noise_and_refuse_what_is_none():
    assert_array_equal(chance_in_order([1.0, 0.0, -1.0], 0.0), [1.0, 0.5, 0.0])
    assert chance_in_order(1e-300, 1e-300) == pytest.approx(chance_in_order(1.0, 1.0))
    for chance in (0.6, 0.9, 0.999):
        assert chance_in_order(0.7, noise_at(0.7, chance)) == pytest.approx(chance)
    for noise in (-1.0, np.nan, np.inf):
        with pytest.raises(OptionError, match="no deviation"):
            chance_in_order(1.0, noise)
    for chance in (0.5, 1.0, np.nan):
        with pytest.raises(OptionError, match="between 1/2 and 1"):
            noise_at(1.0, chance)


@pytest.mark.parametrize("sparse", [False, True])
def test_deviations_are_those_within_the_queries(sparse):
    from scipy.sparse import csr_array

    rng = np.random.default_rng(2)
    features = rng.normal(size=(5000, 4)) * (rng.random((5000, 4)) < 0.5)
    sizes = rng.integers(1, 40, 400)
    offsets = np.append(0, np.minimum(np.cumsum(sizes), 5000))
    offsets = np.unique(np.append(offsets, 5000))
    query = np.repeat(range(offsets.size - 1), np.diff(offsets))
    features[:, 3] = query  # constant inside each
    centred = features - np.stack([features[query == q].mean(axis=0) for q in range(offsets.size - 1)])[query]
    found = deviations_within(csr_array(features) if sparse else features, offsets)
    assert_allclose(found[:3], np.sqrt((centred[:, :3] ** 2).mean(axis=0)), rtol=1e-9)
    assert found[3] == 0.0
