"""The public door: the ranker's loss at anybody's scores, in anybody's order of rows."""

import pickle
from itertools import pairwise, permutations

import numpy as np
import pytest
from planted.losses import Halfway
from problems import admissible, slots
from problems.training import BOUNDS, made

from formulations import ranking
from formulations.solvers import get_solver
from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.errors import DataError, MeasureError, OptionError
from rankopt.losses import ScoreLoss
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.oracle_slots import SlotArgmax
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures import evaluate, parse
from rankopt.rankers import LargeMarginRanker, MatchingRanker

CASES = [
    (measure, bound, decay)
    for measure, decay in [("nDCG@3", "power(0.5)"), ("nDCG", "linear@4"), ("P@2", "log"), ("DCG@2", "discount")]
    for bound in BOUNDS
]


def drawn(seed, queries=9, largest=9, grades=3):
    """Grades and query ids of rows in disorder; some queries have one grade, or one document."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(queries), rng.integers(1, largest + 1, queries))
    rng.shuffle(qid)
    return rng.integers(0, grades, qid.size).astype(float), qid, rng


def scores_of(rng, n, tied):
    return rng.integers(-1, 2, n).astype(float) if tied else rng.normal(size=n)


@pytest.mark.parametrize(("measure", "bound", "position_weights"), CASES)
def test_the_mean_is_the_rankers_risk_and_the_slope_its_gradient(measure, bound, position_weights):
    X, y, qid = made(seed=1, queries=10)
    y[qid == 4] = 0.0
    shuffle = np.random.default_rng(2).permutation(y.size)
    X, y, qid = X[shuffle], y[shuffle], qid[shuffle]
    ranker = LargeMarginRanker(measure, bound=bound, position_weights=position_weights)
    risk = ranker.objective(Queries.from_arrays(X, y, qid=qid)).risk
    loss = ScoreLoss(measure, bound, position_weights).bind(y, qid=qid)
    for w in (np.zeros(X.shape[1]), np.array([1.0, -1.0, 0.5, 0.0])):
        found, planes = loss.at(X @ w), risk.at(w)
        assert found.mean == pytest.approx(planes.value, abs=1e-12)
        assert np.count_nonzero(found.counted) == risk.weights.size
        pulled = X.T @ found.slope / np.count_nonzero(found.counted)
        np.testing.assert_allclose(pulled, (planes.slopes - planes.references)[0], atol=1e-12)


@pytest.mark.parametrize(("measure", "bound", "position_weights"), CASES)
def test_slopes_are_derivatives_where_there_are_any(measure, bound, position_weights):
    y, qid, rng = drawn(3)
    loss = ScoreLoss(measure, bound, position_weights).bind(y, qid=qid)
    scores, step = rng.normal(size=y.size), 1e-7
    slope = loss.at(scores).slope
    for row in range(y.size):
        aside = np.zeros(y.size)
        aside[row] = step
        rise = (loss.at(scores + aside).value - loss.at(scores - aside).value).sum() / (2 * step)
        assert slope[row] == pytest.approx(rise, abs=1e-6)


@pytest.mark.every(5)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("measure", "bound", "position_weights"), CASES)
def test_rows_in_any_order_have_the_same_slope_to_the_bit(measure, bound, position_weights, tied):
    for seed in range(6):
        y, qid, rng = drawn(seed, largest=14)
        scores, rows = scores_of(rng, y.size, tied), rng.permutation(y.size)
        straight = ScoreLoss(measure, bound, position_weights).bind(y, qid=qid)
        moved = ScoreLoss(measure, bound, position_weights).bind(y[rows], qid=qid[rows])
        np.testing.assert_array_equal(moved.at(scores[rows]).slope, straight.at(scores).slope[rows])
        place = [straight.query_ids.index(name) for name in moved.query_ids]
        np.testing.assert_allclose(moved.at(scores[rows]).value, straight.at(scores).value[place], atol=1e-14)
        np.testing.assert_allclose(moved.regret(scores[rows]), straight.regret(scores)[place], atol=1e-14)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("bound", BOUNDS)
def test_rows_in_any_order_have_the_same_slope_in_compiled_code_too(bound, tied):
    rng = np.random.default_rng(11)
    qid = rng.integers(0, 40, 2500)
    y, scores, rows = rng.integers(0, 5, qid.size).astype(float), scores_of(rng, qid.size, tied), rng.permutation(2500)
    straight = ScoreLoss("nDCG@10", bound).bind(y, qid=qid).at(scores)
    moved = ScoreLoss("nDCG@10", bound).bind(y[rows], qid=qid[rows]).at(scores[rows])
    np.testing.assert_array_equal(moved.slope, straight.slope[rows])


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("measure", "bound", "position_weights"), CASES)
def test_slopes_of_a_query_sum_to_nothing_and_equal_documents_share_them(measure, bound, position_weights, tied):
    y, qid, rng = drawn(5, largest=20)
    scores = scores_of(rng, y.size, tied)
    slope = ScoreLoss(measure, bound, position_weights).bind(y, qid=qid).at(scores).slope
    np.testing.assert_allclose(np.bincount(qid, slope), 0.0, atol=1e-13)
    for i, j in zip(*np.nonzero((qid[:, None] == qid) & (y[:, None] == y) & (scores[:, None] == scores)), strict=True):
        assert slope[i] == slope[j]


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("measure", "position_weights"), [(m, d) for m, b, d in CASES if b == "convex"])
def test_regret_nonconvex_tie_aware_convex_rise_in_this_order(measure, position_weights, tied):
    for seed in range(5):
        y, qid, rng = drawn(seed, largest=6)
        scores = scores_of(rng, y.size, tied)
        losses = {bound: ScoreLoss(measure, bound, position_weights).bind(y, qid=qid) for bound in BOUNDS}
        regret = losses["convex"].regret(scores)
        values = [losses[bound].at(scores).value for bound in ("nonconvex", "tie-aware", "convex")]
        for low, high in pairwise([np.where(losses["convex"].counted, regret, 0.0), *values]):
            assert (low <= high + 1e-12).all()
        parsed = parse(measure)
        for q, name in enumerate(losses["convex"].query_ids):
            b, s = parsed.gain(y[qid == name], np.array([0, (qid == name).sum()])), scores[qid == name]
            a = parsed.discount(s.size)
            orders = [list(order) for order in permutations(range(s.size)) if (np.diff(s[list(order)]) <= 0).all()]
            lost = a @ -np.sort(-b) - np.array([a @ b[order] for order in orders])
            assert regret[q] == pytest.approx(lost.mean(), abs=1e-12)
            assert lost.max() <= values[0][q] + 1e-12


def test_regret_is_what_evaluation_says_is_lost():
    y, qid, rng = drawn(7)
    queries = Queries.from_arrays(np.zeros((y.size, 1)), y, qid=qid)
    scores = scores_of(rng, y.size, tied=True)
    reached = evaluate(queries, scores, "nDCG@3")["nDCG@3"]
    regret = ScoreLoss("nDCG@3").bind(y, qid=qid).regret(scores)
    defined = np.maximum.reduceat(queries.relevance, queries.offsets[:-1]) > 0
    np.testing.assert_allclose(regret[defined], 1.0 - reached[defined], atol=1e-12)
    assert (regret[~defined] == 0).all()


def test_queries_with_nothing_to_order_are_zero_and_may_be_empty():
    loss = ScoreLoss("nDCG@2").bind([1, 1, 0, 2, 0, 0], offsets=[0, 2, 2, 4, 6, 6])
    found = loss.at([3.0, 1.0, 2.0, 2.0, 0.0, 5.0])
    assert found.counted.tolist() == [False, False, True, False, False]
    assert (found.value > 0).tolist() == found.counted.tolist()
    assert np.flatnonzero(found.slope).tolist() == [2, 3] or not found.slope.any()
    assert found.mean == found.value[2]
    nothing = ScoreLoss().bind([1, 1], offsets=[0, 2])
    assert nothing.at([0.0, 1.0]).mean == 0.0
    assert not nothing.at([0.0, 1.0]).slope.any()
    assert len(ScoreLoss().bind([], offsets=[0, 0]).at([]).value) == 1


def test_a_loss_is_data():
    y, qid, rng = drawn(8)
    loss, scores = ScoreLoss("nDCG@3", "tie-aware").bind(y, qid=qid), rng.normal(size=y.size)
    again = pickle.loads(pickle.dumps(loss))
    np.testing.assert_array_equal(again.at(scores).slope, loss.at(scores).slope)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"measure": "MeanNDCG"}, OptionError, "cannot bound the regret of MeanNDCG"),
        ({"measure": "AP", "feature_map": "first-relevant"}, OptionError, "use feature_map 'positional' or 'pairwise'"),
        ({"feature_map": "pairs"}, OptionError, "known are positional"),
        ({"measure": "nDGC"}, MeasureError, "nDGC"),
        ({"bound": "convexx"}, OptionError, "known are convex"),
        ({"position_weights": "steep"}, OptionError, "position_weights = 'steep'"),
    ],
)
def test_what_cannot_be_trained_is_refused_by_name(options, error, said):
    with pytest.raises(error, match=said):
        ScoreLoss(**options)


@pytest.mark.parametrize(
    ("relevance", "given", "said"),
    [
        ([1, 0], {}, "pass either qid="),
        ([1, 0], {"qid": [1, 1], "offsets": [0, 2]}, "pass either qid="),
        ([1, 0], {"qid": [1]}, "qid has 1 entries"),
        ([1, np.nan], {"qid": [1, 1]}, r"relevance\[1\] is nan"),
        ([1, -1], {"qid": [1, 1]}, r"relevance\[1\] is -1"),
        ([[1, 0]], {"qid": [1, 1]}, "relevance has shape"),
        (["good", "bad"], {"qid": [1, 1]}, "relevance cannot be read"),
        ([1, 0], {"offsets": [0, 1]}, "do not cut 2 rows"),
        ([1, 0], {"offsets": [0, 2, 1, 2]}, "do not cut 2 rows"),
        ([1, 0], {"offsets": [0, 0.5, 2]}, "do not cut 2 rows"),
        ([1, 0], {"offsets": [0, np.nan, 2]}, "do not cut 2 rows"),
        ([1, 0], {"offsets": "all"}, "do not cut 2 rows"),
    ],
)
def test_grades_and_queries_that_cannot_be_used_are_refused(relevance, given, said):
    with pytest.raises(DataError, match=said):
        ScoreLoss().bind(relevance, **given)


def test_reciprocal_rank_takes_any_number_of_relevant_documents():
    loss = ScoreLoss("RR").bind([1, 1, 0], offsets=[0, 3])
    assert (loss.regret([0.0, 2.0, 1.0]), loss.regret([0.0, 1.0, 2.0])) == ([0.0], [0.5])


@pytest.mark.parametrize(
    ("scores", "said"),
    [([1.0], "scores has shape"), ([1.0, np.nan], r"scores\[1\] is nan"), ([np.inf, 0.0], r"scores\[0\] is inf")],
)
def test_scores_that_cannot_be_used_are_refused(scores, said):
    loss = ScoreLoss().bind([1, 0], offsets=[0, 2])
    with pytest.raises(DataError, match=said):
        loss.at(scores)
    with pytest.raises(DataError, match=said):
        loss.regret(scores)


# A bound of one's own is one function, and holds for every feature map: written out over all orders.


def halfway(every, mean, scores):
    """From (worth, slope) of every y: H + best - (mean of the best + best of the best by score)ᵀs / 2."""
    best = max(worth for worth, _ in every)
    tallest = max((r * scores).sum() for worth, r in every if worth >= best - 1e-12)
    return max((r * scores).sum() - worth for worth, r in every) + best - ((mean * scores).sum() + tallest) / 2


@pytest.mark.parametrize("tied", [False, True])
def test_of_rankings(tied):
    rng = np.random.default_rng(0)
    measure, decay = parse("nDCG"), parse_position_weights("power(0.5)")
    for _ in range(20):
        offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 6, 3))])
        grades = rng.integers(0, 3, offsets[-1]).astype(float)
        scores = rng.integers(-1, 2, offsets[-1]).astype(float) if tied else rng.normal(size=offsets[-1])
        gain = measure.gain(grades, offsets)
        problem = ranking(
            np.zeros(gain.size), gain, discount=measure.discount, position_weights=decay.weights, offsets=offsets
        )
        loss = MarginLoss(PositionalOracle(problem, get_solver("exact")), Halfway())
        for q, (low, high) in enumerate(pairwise(offsets.tolist())):
            every = []
            for order in permutations(range(high - low)):
                weights = np.empty(high - low)
                weights[list(order)] = problem.position_weights[low:high]
                every.append((problem.discount[low:high] @ gain[low:high][list(order)], weights))
            best = max(worth for worth, _ in every)
            mean = np.mean([r for worth, r in every if worth >= best - 1e-12], axis=0)
            assert loss.at(scores).value[q] == pytest.approx(halfway(every, mean, scores[low:high]), abs=1e-12)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("name", admissible.SETS)
def test_under_a_set(name, tied):
    grades, attributes, offsets, scores = admissible.drawn(3, tied=tied)
    argmax = admissible.batch_of(admissible.SETS[name], grades, attributes, offsets)
    loss, mean = MarginLoss(argmax, Halfway()), argmax.mean_of_best()
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        expected = halfway(admissible.written_out(argmax, q), mean[low:high], scores[low:high])
        assert loss.at(scores).value[q] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("tied", [False, True])
def test_of_slots(tied):
    slot, offsets, scores = slots.drawn(4, tied=tied)
    argmax = SlotArgmax(slots.benefit_of(slot), offsets)
    loss, mean = MarginLoss(argmax, Halfway()), argmax.mean_of_best()
    for q, (low, high) in enumerate(pairwise(offsets.tolist())):
        b = argmax.benefit[low:high]
        every = [((p * b).sum(), p) for p in slots.matchings(high - low)]
        assert loss.at(scores).value[q] == pytest.approx(halfway(every, mean[low:high], scores[low:high]), abs=1e-12)


def trained(bound, kind):
    X, y, qid = made(queries=8)
    if kind == "slots":
        return MatchingRanker(bound=bound, lam=0.1).fit(X, y, qid=qid), Queries.from_arrays(X, y, qid=qid)
    columns = {"site": np.random.default_rng(0).integers(0, 3, len(y))} if kind == "set" else {}
    rule = Admissible(3, on_infeasible="truncate").at_most(1, by="site") if kind == "set" else None
    ranker = LargeMarginRanker("nDCG@3", bound=bound, lam=0.1, constraints=rule, w0="zeros")
    queries = Queries.from_arrays(X, y, qid=qid, attributes=columns)
    return ranker.fit(queries), queries


@pytest.mark.parametrize("kind", ["free", "set", "slots"])
def test_every_ranker_trains_it_and_says_that_it_is_stationary(kind):
    """Its objective lies between those of its two halves at every w, and a mean of theirs it is nearly everywhere."""
    rankers = {name: trained(bound, kind) for name, bound in (("half", Halfway()), ("tie", "tie-aware"))}
    ranker, queries = rankers["half"]
    assert ranker.certificate_.kind == "stationary"
    assert ranker.certificate_.relative_gap <= ranker.tol
    half, tie = (one.objective(queries) for one, _ in rankers.values())
    convex = trained("convex", kind)[0].objective(queries)
    for w in np.random.default_rng(1).normal(size=(5, half.risk.features)):
        mean = (convex.risk.at(w).value + tie.risk.at(w).value) / 2
        assert half.risk.at(w).value == pytest.approx(mean, rel=1e-9)


@pytest.mark.parametrize("kind", ["free", "set", "slots"])
@pytest.mark.parametrize("bound", ["convexx", Halfway, 3, lambda argmax, scores: scores])
def test_what_is_no_bound_is_refused_everywhere(kind, bound):
    with pytest.raises(OptionError, match="bound"):
        trained(bound, kind)
