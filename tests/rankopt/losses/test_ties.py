"""Slopes at ties: a mean of maximisers, and the same for a document wherever it stands in the input."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from problems import admissible, slots
from problems.means import is_mean

from formulations import RankingSet, ranking
from formulations.solvers import get_solver
from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.losses import BOUNDS, get_bound
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_constrained import AdmissibleArgmax
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.oracle_slots import SlotArgmax
from rankopt.losses.position_weights import parse_position_weights
from rankopt.losses.segment_ops import alike, shared
from rankopt.measures import parse
from rankopt.rankers import LargeMarginRanker, MatchingRanker

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
        straight = MarginLoss.build(positional(grades, offsets, position_weights), get_bound(bound)).at(scores)
        moved = MarginLoss.build(positional(grades[rows], offsets, position_weights), get_bound(bound)).at(scores[rows])
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
        straight = MarginLoss.build(SlotArgmax(benefit, offsets), get_bound(bound)).at(scores)
        moved = MarginLoss.build(SlotArgmax(benefit[rows], offsets), get_bound(bound)).at(scores[rows])
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
def test_slopes_of_rankings_are_means_of_maximisers(solver, at):
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
def test_slopes_under_a_set_are_means_of_maximisers(seed, name, tied):
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
def test_slopes_of_matchings_are_means_of_maximisers(seed, tied):
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
        assert objective.regulariser(w) + objective.risk.at(w).value >= ranker.certificate_.bound - 1e-12
