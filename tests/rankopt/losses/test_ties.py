"""Slopes at ties: a mean of maximizers, and the same for a document at any place of the input."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from problems import admissible, slots
from problems.means import is_mean

from formulations import RankingSet, ranking
from formulations.solvers import get_solver
from formulations.sorting import alike
from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.errors import OptionError
from rankopt.losses import BOUNDS, LOSSES, get_loss
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_constrained import AdmissibleArgmax
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.oracle_slots import SlotArgmax
from rankopt.losses.position_weights import parse_position_weights
from rankopt.losses.segment_ops import shared
from rankopt.losses.smooth import SmoothedRegret
from rankopt.measures import parse
from rankopt.measures.tied_ranking import ranked
from rankopt.rankers import LargeMarginRanker, MatchingRanker
from rankopt.testing import check_loss

DECAYS = ["linear@3", "power(0.5)", "log", "discount", [1.0, 0.0, -1.0, -1.0], [0.0, -0.5, -1.0]]
AT = {
    "all equal": lambda n, rng: np.zeros(n),
    "tied": lambda n, rng: rng.integers(-1, 2, n).astype(float),
    "minus zero": lambda n, rng: rng.choice([0.0, -0.0, 1.0], n),
}


def decay_of(spec):
    """A decay, or weights that go on with their last one: decays may fall below 0."""
    if isinstance(spec, str):
        return parse_position_weights(spec).weights
    return lambda n, measure: np.array((spec + [spec[-1]] * n)[:n])


def positional(grades, offsets, position_weights="power(0.5)", measure="nDCG@3", solver="exact"):
    measure, position_weights = parse(measure), decay_of(position_weights)
    gain = measure.gain(grades, offsets)
    problem = ranking(
        np.zeros(gain.size),
        gain,
        discount=measure.discount,
        position_weights=lambda n: position_weights(n, measure),
        offsets=offsets,
    )
    return PositionalOracle(problem, get_solver(solver))


def shuffled_rows(offsets, rng):
    return np.concatenate([rng.permutation(np.arange(low, high)) for low, high in pairwise(offsets.tolist())])


def batch(rng, queries=6, largest=12):
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, largest + 1, queries))])
    return rng.integers(0, 3, offsets[-1]).astype(float), offsets


@pytest.mark.every(7)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("position_weights", DECAYS, ids=str)
@pytest.mark.parametrize("at", AT)
def test_slopes_of_rankings_are_blind_to_the_order_of_the_input(at, position_weights, bound):
    rng = np.random.default_rng(0)
    for _ in range(10):
        grades, offsets = batch(rng)
        scores, rows = AT[at](grades.size, rng), shuffled_rows(offsets, rng)
        straight = MarginLoss(positional(grades, offsets, position_weights), bound).at(scores)
        moved = MarginLoss(positional(grades[rows], offsets, position_weights), bound).at(scores[rows])
        np.testing.assert_allclose(moved.assigned, straight.assigned[rows], rtol=0, atol=1e-12)
        np.testing.assert_allclose(moved.reference, straight.reference[rows], rtol=0, atol=1e-12)


def test_equal_documents_at_weights_of_zero_and_below_share():
    """Two equal documents at the weights 0 and -1, which a look at the documents with a weight alone would miss."""
    argmax = positional(np.array([1.0, 1.0, 1.0]), np.array([0, 3]), [1.0, 0.0, -1.0], "DCG")
    np.testing.assert_array_equal(argmax.at(np.array([2.0, 1.0, 1.0])).slope, [1.0, -0.5, -0.5])


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("at", ["all equal", "tied"])
def test_slopes_of_matchings_are_blind_to_the_order_of_the_input(at, bound):
    rng = np.random.default_rng(1)
    for seed in range(20):
        slot, offsets, _ = slots.drawn(seed, largest=7)
        scores = AT[at](slot.size * 3, rng).reshape(-1, 3)
        rows, benefit = shuffled_rows(offsets, rng), slots.benefit_of(slot)
        straight = MarginLoss(SlotArgmax(benefit, offsets), bound).at(scores)
        moved = MarginLoss(SlotArgmax(benefit[rows], offsets), bound).at(scores[rows])
        np.testing.assert_allclose(moved.assigned, straight.assigned[rows], rtol=0, atol=1e-12)
        np.testing.assert_allclose(moved.reference, straight.reference[rows], rtol=0, atol=1e-12)


RANKERS = {
    "free": lambda bound: LargeMarginRanker("nDCG@3", bound=bound),
    "sites": lambda bound: LargeMarginRanker("nDCG@3", bound=bound, constraints=admissible.SETS["sites"]),
    "quota": lambda bound: LargeMarginRanker("nDCG@3", bound=bound, constraints=admissible.SETS["quota"]),
    "slots": lambda bound: MatchingRanker(bound=bound),
}


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("kind", RANKERS)
def test_planes_of_the_risk_are_blind_to_the_order_of_the_input(kind, bound):
    """At w = 0, where all scores are equal, and at whole weights of whole features, where many are."""
    rng = np.random.default_rng(2)
    for _ in range(3):
        X = rng.integers(-1, 2, size=(40, 3)).astype(float)
        y = np.minimum(rng.integers(0, 4, 40), 2).astype(float)
        y[::8], y[1::8] = 0.0, 2.0
        qid = np.repeat(np.arange(5), 8)
        columns = {"site": rng.integers(0, 4, 40), "new": rng.random(40) < 0.5}
        rows = rng.permutation(40)
        names = columns if kind in ("sites", "quota") else {}
        straight = Queries.from_arrays(X, y, qid=qid, attributes=names)
        moved = {name: values[rows] for name, values in names.items()}
        other = Queries.from_arrays(X[rows], y[rows], qid=qid[rows], attributes=moved)
        risks = [RANKERS[kind](bound).objective(queries).risk for queries in (straight, other)]
        for w in (np.zeros(risks[0].features), rng.integers(-1, 2, risks[0].features).astype(float)):
            here, there = (risk.at(w) for risk in risks)
            np.testing.assert_allclose(there.slopes, here.slopes, rtol=0, atol=1e-12)
            np.testing.assert_allclose(there.references, here.references, rtol=0, atol=1e-12)


@pytest.mark.every(5)
@pytest.mark.parametrize("at", AT)
@pytest.mark.parametrize("solver", ["exact", "scipy", "networkx"])
def test_slopes_of_rankings_are_means_of_maximizers(solver, at):
    rng = np.random.default_rng(3)
    for trial in range(12):
        grades, offsets = batch(rng, queries=2, largest=6)
        argmax = positional(grades, offsets, DECAYS[trial % 6], ["nDCG@3", "P@2", "DCG"][trial % 3], solver)
        scores = AT[at](grades.size, rng)
        found, problem = argmax.at(scores), argmax.problem
        for q, (low, high) in enumerate(pairwise(offsets.tolist())):
            rows = slice(low, high)
            every = []
            for order in permutations(range(high - low)):
                weights = np.empty(high - low)
                weights[list(order)] = problem.position_weights[rows]
                earned = problem.discount[rows] @ problem.gain[rows][list(order)]
                every.append((weights @ scores[rows] - earned, np.append(weights, earned)))
            assert_mean_of_best(every, np.append(found.slope[rows], found.earned[q]))


def assert_mean_of_best(every, found):
    best = max(value for value, _ in every)
    assert is_mean(found, [point for value, point in every if value >= best - 1e-12])


@pytest.mark.every(7)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", admissible.SETS)
@pytest.mark.parametrize("seed", range(4))
def test_slopes_under_a_set_are_means_of_maximizers(seed, name, tied):
    grades, attributes, offsets, scores = admissible.drawn(seed, tied=tied)
    argmax = admissible.batch_of(admissible.SETS[name], grades, attributes, offsets)
    slopes = {
        "augmented": (argmax.at(scores).slope, lambda s, worth, c: c @ s - worth),
        "by score": (argmax.top_scoring(scores), lambda s, worth, c: c @ s),
        "best by score": (argmax.best_then_score(scores), lambda s, worth, c: 1e9 * worth + c @ s),
    }
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        orders, s = admissible.written_out(argmax, q), scores[low:high]
        for slope, value in slopes.values():
            values = np.array([value(s, worth, c) for worth, c in orders])
            chosen = [c for one, (_, c) in zip(values, orders, strict=True) if one >= values.max() - 1e-6]
            assert is_mean(slope[low:high], chosen)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_slopes_of_matchings_are_means_of_maximizers(seed, tied):
    slot, offsets, scores = slots.drawn(seed, tied=tied)
    argmax = SlotArgmax(slots.benefit_of(slot), offsets)
    found, by_score, best = argmax.at(scores), argmax.top_scoring(scores), argmax.best_then_score(scores)
    for low, high in pairwise(offsets.tolist()):
        s, b, every = scores[low:high], argmax.benefit[low:high], list(slots.matchings(high - low))
        for slope, worth in ((found.slope, s - b), (by_score, s), (best, 1e6 * b + s)):
            values = [(p * worth).sum() for p in every]
            chosen = [p.ravel() for value, p in zip(values, every, strict=True) if value >= max(values) - 1e-6]
            assert is_mean(slope[low:high].ravel(), chosen)


def test_documents_that_a_set_tells_apart_are_not_averaged():
    """At most one of three tied documents, k = 2, c = (2, 1): the mean over all four would lie above the maximum."""
    one_of_three = RankingSet(4, 2).at_most(1, documents=[0, 1, 2])
    nothing, offsets = np.zeros(4), np.array([0, 4])
    argmax = AdmissibleArgmax.build((one_of_three,), nothing, np.zeros(2), np.array([2.0, 1.0]), offsets, nothing)
    slope = argmax.at(nothing).slope
    assert slope[0] == slope[1] == slope[2] != slope[3]
    there = np.array([0.0, 0.0, 0.0, -1.0])
    assert argmax.at(there).value[0] == pytest.approx(-1.0)
    assert slope @ there <= -1.0 + 1e-12
    assert np.full(4, 0.75) @ there > -1.0


@pytest.mark.parametrize("seed", range(20))
def test_shared_is_the_mean_over_equal_documents_of_a_query(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 40, 8))])
    n = int(offsets[-1])
    scores, kind = rng.choice([0.0, -0.0, 0.5, 1e-300, -2.0], n), rng.integers(0, 3, n)
    slope = np.where(rng.random(n) < 0.6, 0.0, rng.random(n))
    kinds, lengths = alike(offsets, kind), np.diff(offsets)
    found = shared(slope.copy(), scores, kinds, offsets)
    monkeypatch.setattr("formulations.compiled.PAYS", -1)
    for key in (-scores, scores, rng.random(n)):  # by falling score, by rising score, and anyhow
        order = np.lexsort((key, np.repeat(np.arange(8), lengths))) - np.repeat(offsets[:-1], lengths)
        np.testing.assert_allclose(shared(slope.copy(), scores, kinds, offsets, order), found, rtol=0, atol=1e-15)
        apart = rng.normal(size=n)
        assert shared(slope.copy(), apart, kinds, offsets, order).tobytes() == slope.tobytes()
    for low, high in pairwise(offsets.tolist()):
        for i in range(low, high):
            same = [j for j in range(low, high) if scores[j] == scores[i] and kind[j] == kind[i]]
            assert found[i] == pytest.approx(slope[same].mean(), abs=1e-15)


def test_documents_are_alike_where_all_traits_agree():
    rng = np.random.default_rng(0)
    one, other, offsets = rng.integers(0, 3, 50), rng.choice([0.0, -0.0, 1.5], 50), np.array([0, 1, 20, 50])
    found = alike(offsets, one, other)
    same = (one[:, None] == one) & (other[:, None] == other)
    for low, high in pairwise(offsets.tolist()):
        own = found[low:high]
        np.testing.assert_array_equal(own[:, None] == own, same[low:high, low:high])
        assert set(own.tolist()) == set(range(own.max() + 1))


@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")
def test_constraints_at_ties_leave_the_bounds_true():
    """The lower bound of a training under a set on heavily tied data is below the objective at random weights."""
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 2, size=(48, 3)).astype(float), rng.integers(0, 3, 48).astype(float)
    data = {"qid": np.repeat(np.arange(6), 8), "attributes": {"site": rng.integers(0, 3, 48)}}
    ranker = LargeMarginRanker("nDCG@3", bound="convex", lam=0.1, constraints=Admissible(3).at_most(1, by="site"))
    ranker.fit(X, y, **data)
    objective = ranker.objective(Queries.from_arrays(X, y, **data))
    for w in [ranker.coef_, *rng.normal(size=(50, 3))]:
        assert objective.regularizer(w) + objective.risk.at(w).value >= ranker.certificate_.bound - 1e-12


# SmoothGrad: the smoothed measure by its formula, its gradient by differences, its limit at σ = 0, ties and order.


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
    whole, part = loss.gradient(scores), loss.select_queries(3, 7).gradient(scores[offsets[3] : offsets[7]])
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
