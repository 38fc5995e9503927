"""Feature maps against all orders: the loss-augmented one, the references, the bounds of the regret, slopes at ties."""

import pickle
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from problems.means import is_mean
from problems.pattern_orders import arranged, batch, every_order

from formulations.solvers import get_solver
from rankopt.data import Queries
from rankopt.errors import OptionError
from rankopt.losses import BOUNDS, FEATURE_MAPS, MarginLoss, get_feature_map
from rankopt.losses.margin import Convex
from rankopt.losses.oracle import Criterion
from rankopt.losses.oracle_positional import with_distinct_grades
from rankopt.losses.oracle_relevance import PairwiseArgmax
from rankopt.losses.pairwise import PairwiseHinge
from rankopt.losses.position_weights import parse_position_weights
from rankopt.losses.regret import RegretBound
from rankopt.measures import evaluate, parse
from rankopt.rankers import LargeMarginRanker
from rankopt.testing import check_loss

MEASURES = (
    "AUC", "AP", "AP@2", "RR", "RR@2", "nDCG(gain='binary')", "nDCG@3", "nDCG(discount='letor')@3", "nDCG", "P@2",
    "P@3", "WTA", "ERR", "ERR@2", "DCG(gain=(0, 1, 1))@2", "AP(rel=2)", "R@2", "RBP(p=0.5)@3",
)  # fmt: skip
PAIRS = [(text, name) for text in MEASURES for name in FEATURE_MAPS if get_feature_map(name).supports(parse(text))]
SOME = [pair for pair in PAIRS if pair[0] in ("AUC", "AP", "RR@2", "nDCG@3", "P@2", "ERR@2")]


def argmax_of(text, name, relevance, offsets, solver="exact"):
    queries, measure = arranged(relevance, offsets), parse(text)
    return get_feature_map(name).from_queries(
        queries, measure, parse_position_weights("power(0.5)"), get_solver(solver)
    )


def drawn(text, seed, largest=5):
    """Argmaxes need queries with something to order; scores with many ties, with some, and with none."""
    rng = np.random.default_rng(seed)
    relevance, offsets = batch(rng, grades=2 + seed % 2, largest=largest)
    if "rel=2" in text:
        relevance *= 3 - relevance.max()  # of grades 0 and 1, or 0 to 2: 2 is there
    queries = with_distinct_grades(arranged(relevance, offsets), parse(text))
    scores = (rng.integers(-1, 2, queries.graded.size) * 1.0, rng.normal(size=queries.graded.size))
    return queries.graded, queries.offsets, scores


@pytest.mark.every(4)
@pytest.mark.parametrize(("text", "name"), PAIRS)
def test_the_argmax_is_that_of_all_orders_and_bounds_are_above_the_regret(text, name):
    for seed in range(4):
        relevance, offsets, every = drawn(text, seed)
        argmax = argmax_of(text, name, relevance, offsets)
        losses = {bound: MarginLoss(argmax, bound) for bound in BOUNDS}
        for scores in every:
            found, proved = argmax.at(scores), argmax.at(scores, prove=True)
            values = {bound: loss.at(scores).value for bound, loss in losses.items()}
            assert (values["nonconvex"] <= values["tie-aware"] + 1e-12).all()
            assert (values["tie-aware"] <= values["convex"] + 1e-12).all()
            for q, (low, high) in enumerate(pairwise(offsets.tolist())):
                orders, slopes, gains = every_order(name, parse(text), relevance[low:high])
                own = scores[low:high]
                worth = slopes @ own - gains
                best = worth >= worth.max() - 1e-12
                assert found.value[q] + argmax.best[q] == pytest.approx(worth.max() + gains.max(), abs=1e-12)
                assert found.earned[q] - argmax.best[q] == pytest.approx(
                    found.slope[low:high] @ own - worth.max() - gains.max(), abs=1e-12
                )
                assert found.value[q] <= found.bound[q] <= found.value[q] + 1e-9
                assert found.value[q] - 1e-12 <= proved.bound[q] <= found.value[q] + 1e-9
                assert is_mean(found.slope[low:high], slopes[best])
                falling = [i for i, order in enumerate(orders) if (np.diff(own[order]) <= 0).all()]
                assert values["nonconvex"][q] >= gains.max() - gains[falling].min() - 1e-12


@pytest.mark.every(5)
@pytest.mark.parametrize(("text", "name"), PAIRS)
def test_references_are_those_of_all_orders(text, name):
    for seed in range(4):
        relevance, offsets, every = drawn(text, seed)
        argmax = argmax_of(text, name, relevance, offsets)
        for low, high in pairwise(offsets.tolist()):
            orders, slopes, gains = every_order(name, parse(text), relevance[low:high])
            best = gains >= gains.max() - 1e-12
            worth, _ = parse(text).optimal_rankings(relevance[low:high], np.array([0, high - low]))
            if name == "positional":  # the orders that sort by gain, as in the papers
                best_by_gain = [(np.diff(worth[order]) <= 0).all() for order in orders]
                mean = slopes[best_by_gain].mean(axis=0)
            else:
                mean = slopes[best].mean(axis=0)
                assert not argmax.mean_of_best("ideal").any()
            np.testing.assert_allclose(argmax.mean_of_best("average")[low:high], mean, rtol=0, atol=1e-12)
            for scores in every:
                own = scores[low:high]
                falling = [i for i, order in enumerate(orders) if (np.diff(own[order]) <= 0).all()]
                assert argmax.best_then_score(scores)[low:high] @ own == pytest.approx(
                    (slopes[best] @ own).max(), abs=1e-12
                )
                reached = argmax.top_scoring(scores)[low:high]
                np.testing.assert_allclose(slopes[falling] @ own, reached @ own, rtol=0, atol=1e-12)
                if name != "first-relevant":
                    np.testing.assert_allclose(reached, slopes[falling].mean(axis=0), rtol=0, atol=1e-12)
                    assert reached @ own == pytest.approx((slopes @ own).max(), abs=1e-12)


@pytest.mark.parametrize("reference", ["ideal", "average"])
@pytest.mark.parametrize("text", ["P@2", "nDCG@2", "RR", "AP"])
def test_convex_bounds_of_pairs_are_above_the_others_with_either_reference(text, reference):
    for seed in range(8):
        relevance, offsets, every = drawn(text, seed, largest=6)
        argmax = argmax_of(text, "pairwise", relevance, offsets)
        for scores in every:
            above = MarginLoss(argmax, Convex(reference)).at(scores).value
            assert (MarginLoss(argmax, "tie-aware").at(scores).value <= above + 1e-12).all()


@pytest.mark.every(4)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("text", "name"), SOME)
def test_losses_of_every_map_are_losses(text, name, bound):
    check_loss(lambda relevance, offsets: MarginLoss(argmax_of(text, name, relevance, offsets), bound))


@pytest.mark.every(5)
@pytest.mark.parametrize(("text", "name"), SOME)
def test_slopes_are_gradients(text, name):
    """Finite differences, where no two orders are equally good."""
    for seed in range(4):
        relevance, offsets, (_, scores) = drawn(text, seed)
        argmax = argmax_of(text, name, relevance, offsets)
        for bound in BOUNDS:
            loss, step = MarginLoss(argmax, bound), 1e-6
            there = loss.at(scores)
            slope = there.assigned - there.reference
            for j in range(scores.size):
                moved = [loss.at(scores + sign * step * (np.arange(scores.size) == j)).value.sum() for sign in (1, -1)]
                assert (moved[0] - moved[1]) / (2 * step) == pytest.approx(slope[j], abs=1e-6)


def test_the_bound_of_auc_over_pairs_is_the_pairwise_hinge():
    rng = np.random.default_rng(0)
    for _ in range(100):
        relevance, offsets = batch(rng, largest=30)
        hinge = PairwiseHinge(relevance, offsets)
        loss = MarginLoss(argmax_of("AUC", "pairwise", relevance, offsets), "convex")
        for scores in (rng.normal(size=relevance.size), 3 * rng.normal(size=relevance.size)):
            ours, theirs = loss.at(scores), hinge.at(scores)
            np.testing.assert_allclose(ours.value, theirs.value, rtol=0, atol=1e-12)
            np.testing.assert_allclose(ours.assigned - ours.reference, theirs.assigned, rtol=0, atol=1e-12)
        tied = rng.integers(-1, 2, relevance.size) * 0.5  # margins of exactly 1: one value, but many slopes
        np.testing.assert_allclose(loss.at(tied).value, hinge.at(tied).value, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_parts_of_a_batch_are_its_parts(name):
    relevance, offsets, (scores, _) = drawn("RR", 1)
    argmax = argmax_of("RR", name, relevance, offsets)
    whole, low, high = argmax.at(scores), *offsets[[1, 3]].tolist()
    part = pickle.loads(pickle.dumps(argmax.select_queries(1, 3)))
    np.testing.assert_array_equal(part.at(scores[low:high]).slope, whole.slope[low:high])
    np.testing.assert_array_equal(part.at(scores[low:high]).value, whole.value[1:3])


@pytest.mark.parametrize("text", ["RR", "AP"])
def test_any_solver_of_the_form_finds_the_orders(text):
    relevance, offsets, (_, scores) = drawn(text, 3)
    for name in FEATURE_MAPS:
        if get_feature_map(name).supports(parse(text)):
            ours = argmax_of(text, name, relevance, offsets).at(scores)
            theirs = argmax_of(text, name, relevance, offsets, "highs").at(scores)
            np.testing.assert_allclose(theirs.value, ours.value, rtol=0, atol=1e-9)


def test_what_a_map_cannot_do_is_refused_with_what_would():
    with pytest.raises(
        OptionError, match=r"map 'first-relevant' cannot bound the regret of AP.*'positional' or 'pairwise'"
    ):
        get_feature_map("first-relevant", parse("AP"))
    with pytest.raises(OptionError, match=r"MeanNDCG.*train another measure"):
        get_feature_map("pairwise", parse("MeanNDCG"))
    with pytest.raises(OptionError, match="known are positional, pairwise, first-relevant"):
        get_feature_map("pairs")
    with pytest.raises(OptionError, match="is no feature map"):
        get_feature_map(3)
    argmax = argmax_of("AP", "pairwise", *batch(np.random.default_rng(0)))
    assert get_feature_map(PairwiseArgmax) is type(argmax)
    with pytest.raises(OptionError, match="neither 'ideal' nor 'average'"):
        argmax.mean_of_best("first")


def test_what_a_measure_tells_apart():
    criterion = Criterion.from_measure(parse("RR"), np.array([1.0, 0.0, 1.0, 0.0, 1.0]), np.array([0, 3, 5]))
    assert (criterion.is_inner_product, criterion.best.tolist(), criterion.worst.tolist()) == (
        False,
        [1.0, 1.0],
        [0.5, 0.5],
    )
    assert criterion.kind.tolist() == [1, 0, 1, 0, 1]


def test_few_documents_of_many_grades_are_compiled():
    """Their lattice is large, although they are few; a cut leaves few states of it."""
    rng = np.random.default_rng(0)
    relevance, offsets = rng.integers(0, 5, 300).astype(float), np.array([0, 300])
    argmax = argmax_of("nDCG@10", "pairwise", relevance, offsets)
    assert argmax.solver.compiled
    found = argmax.at(rng.normal(size=300))
    assert found.value <= found.bound <= found.value + 1e-9
    assert not argmax_of("AP", "pairwise", relevance, offsets).solver.compiled


def test_every_map_is_in_its_table():
    from importlib import import_module
    from pathlib import Path

    import rankopt.losses as losses_module

    known = {get_feature_map(name) for name in FEATURE_MAPS}
    for path in Path(losses_module.__file__).parent.glob("argmax_*.py"):
        module = import_module(f"rankopt.losses.{path.stem}")
        own = [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]
        assert {kind for kind in own if "supports" in vars(kind)} <= known


# What orders earn, as losses see it, is what the measure says of them.


MEASURES_CRITERIA = ["RR", "RR@2", "Success@2", "WTA", "nDCG@2", "R@2", "RBP(p=0.5)", "AUC", "AP", "ERR"]


@pytest.mark.parametrize("text", MEASURES_CRITERIA)
@pytest.mark.parametrize("grades", [(0.0, 1.0, 0.0, 0.0), (1.0,), (0.0, 0.0, 1.0)], ids=str)
def test_an_order_earns_its_value(text, grades):
    """Also RR of one relevant document, an inner product whose best orders are told more simply than its value."""
    measure, offsets = parse(text), np.array([0, len(grades)])
    criterion = Criterion.from_measure(measure, np.array(grades), offsets)
    for order in permutations(range(len(grades))):
        rows = np.array(order)
        shown = np.array(grades)[rows]
        scores = -np.arange(len(grades), dtype=float)
        wanted = evaluate(shown, scores, measure, convention="burges").mean()
        if text == "AUC" and len(grades) == 1:
            continue
        assert (criterion.earned(rows) - criterion.constant)[0] == pytest.approx(wanted, abs=1e-12)
    tied = np.zeros(len(grades))
    values = [criterion.earned(np.array(order))[0] for order in permutations(range(len(grades)))]
    worst, mean = criterion.worst_and_mean(tied)
    assert (worst[0], mean[0]) == (pytest.approx(min(values)), pytest.approx(np.mean(values)))


@pytest.mark.filterwarnings("ignore:the optimum is at w0")
@pytest.mark.parametrize("name", ["positional", "pairwise", "first-relevant"])
def test_the_regret_of_rr_is_that_of_the_evaluation_where_one_document_is_relevant(name):
    rng = np.random.default_rng(0)
    features, grades = rng.normal(size=(30, 2)), np.zeros(30)
    grades[np.arange(5) * 6 + rng.integers(0, 6, 5)] = 1
    queries = Queries.from_arrays(features, grades, qid=np.repeat(np.arange(5), 6))
    ranker = LargeMarginRanker("RR", feature_map=name, bound="convex", w0="ridge", lam=0.01).fit(queries)
    table = ranker.bound_tightness(queries).columns()
    regret = 1 - evaluate(queries, ranker.predict(queries), "RR").per_query()
    assert table["regret"] == pytest.approx(regret)
    assert np.all(table["convex"] >= regret - 1e-9)


# Losses of mixes: sums and maxima of the losses of their parts, with planes that hold.


MIXES = (
    "AP + nDCG@3 + RR",
    "0.5 AP[pairwise] + 2 RR[first-relevant] + P@2",
)


def loss_of(text, bound, relevance, offsets, slack="separate"):
    text = text if slack == "separate" else f"({text})(slack='shared')"
    return RegretBound.named(text, "positional", bound, "power(0.5)").bind(
        arranged(relevance, offsets), get_solver("exact")
    )


@pytest.mark.every(5)
@pytest.mark.parametrize(("text", "bound", "slack"), [*product(MIXES, BOUNDS, ("separate", "shared"))])
def test_mixes_are_losses(text, bound, slack):
    check_loss(lambda relevance, offsets: loss_of(text, bound, relevance, offsets, slack)[1])


@pytest.mark.parametrize("bound", BOUNDS)
def test_they_are_the_sum_and_the_largest_of_their_parts(bound):
    rng = np.random.default_rng(0)
    for _ in range(10):
        relevance, offsets = batch(rng, grades=3)
        relevance[offsets[0] : offsets[1]] = 1.0  # P@2 may tell something apart here, AP does not
        text = "2 AP[pairwise] + P(rel=2)@2 + 0.5 RR"
        queries, together = loss_of(text, bound, relevance, offsets)
        _, largest = loss_of(text, bound, relevance, offsets, "shared")
        sizes = np.diff(queries.offsets)
        scores = rng.normal(size=sizes.sum())
        parts = np.zeros((3, sizes.size))
        for own, (weight, regret) in zip(parts, RegretBound.named(text, "positional", bound, "log").parts, strict=True):
            regret = RegretBound.named(regret.measure, regret.feature_map, bound, "power(0.5)")
            chosen, loss = regret.bind(queries, get_solver("exact"))
            rows = np.isin(queries.rows, chosen.rows)
            own[[queries.query_ids.index(query) for query in chosen.query_ids]] = weight * loss.at(scores[rows]).value
        np.testing.assert_allclose(together.at(scores).value, parts.sum(axis=0), rtol=0, atol=1e-12)
        np.testing.assert_allclose(largest.at(scores).value, parts.max(axis=0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("slack", ["separate", "shared"])
def test_parts_of_a_batch_are_its_parts_mixes(slack):
    relevance, offsets = batch(np.random.default_rng(2), queries=6, grades=3)
    queries, loss = loss_of("AP + RR[first-relevant] + P(rel=2)@1", "nonconvex", relevance, offsets, slack)
    scores = np.random.default_rng(3).normal(size=queries.graded.size)
    for one in (loss, loss.majorant(-scores)):
        whole = one.at(scores)
        for first, last in ((0, 1), (1, 4), (4, 6)):
            low, high = queries.offsets[[first, last]].tolist()
            part = pickle.loads(pickle.dumps(one.select_queries(first, last))).at(scores[low:high])
            np.testing.assert_allclose(part.value, whole.value[first:last], rtol=0, atol=1e-12)
            np.testing.assert_allclose(part.assigned, whole.assigned[low:high], rtol=0, atol=1e-12)
            np.testing.assert_allclose(part.reference, whole.reference[low:high], rtol=0, atol=1e-12)


def test_the_first_relevant_document_is_of_the_size_of_the_others_in_a_mix():
    relevance, offsets = batch(np.random.default_rng(4), largest=30)
    _, mix = loss_of("RR[first-relevant] + AP[pairwise]", "convex", relevance, offsets)
    alone = RegretBound.named("RR", "first-relevant", "convex", "log").bind(
        arranged(relevance, offsets), get_solver("exact")
    )[1]
    others = np.add.reduceat(relevance == 0, offsets[:-1])
    scores = np.random.default_rng(5).normal(size=relevance.size)
    shares = scores / np.repeat(others, np.diff(offsets))
    np.testing.assert_allclose(mix.parts[0].loss.at(scores).value, alone.at(shares).value, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(alone.unit, others**2)
    np.testing.assert_array_equal(mix.unit, np.full(others.size, 2.0))


def test_a_mix_of_one_is_its_measure():
    relevance, offsets = batch(np.random.default_rng(6))
    scores = np.random.default_rng(7).normal(size=relevance.size)
    for slack in ("separate", "shared"):
        _, mix = loss_of("AP[pairwise]", "nonconvex", relevance, offsets, slack)
        _, alone = RegretBound.named("AP", "pairwise", "nonconvex", "log").bind(
            arranged(relevance, offsets), get_solver("exact")
        )
        assert isinstance(alone, MarginLoss)
        np.testing.assert_array_equal(mix.at(scores).value, alone.at(scores).value)
        there, here = mix.at(scores), alone.at(scores)
        np.testing.assert_allclose(there.assigned - there.reference, here.assigned - here.reference, rtol=0, atol=1e-15)


def test_what_a_part_cannot_do_is_refused():
    with pytest.raises(OptionError, match="'first-relevant' cannot bound the regret of AP"):
        RegretBound.named("AP[first-relevant] + RR", "pairwise", "convex", "log")
    with pytest.raises(OptionError, match="map 'pairs' is unknown"):
        RegretBound.named("AP[pairs] + RR", "pairwise", "convex", "log")
