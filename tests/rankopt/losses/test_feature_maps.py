"""Feature maps against all orders: the loss-augmented one, the references, the bounds of the regret, slopes at ties."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
from problems.means import is_mean
from problems.pattern_orders import arranged, batch, every_order

from formulations.solvers import get_solver
from rankopt.errors import OptionError
from rankopt.losses import BOUNDS, FEATURE_MAPS, MarginLoss, get_bound, get_feature_map
from rankopt.losses.margin import Convex
from rankopt.losses.oracle import Criterion
from rankopt.losses.oracle_positional import with_distinct_grades
from rankopt.losses.oracle_relevance import PairwiseArgmax
from rankopt.losses.pairwise import PairwiseHinge
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures import parse
from rankopt.testing import check_loss

MEASURES = (
    "AUC", "AP", "AP@2", "RR", "RR@2", "nDCG(gain='binary')", "nDCG@3", "nDCG(discount='letor')@3", "nDCG", "P@2",
    "P@3", "WTA", "ERR", "ERR@2", "DCG(gain=(0, 1, 1))@2", "AP(rel=2)", "R@2", "RBP(p=0.5)@3",
)  # fmt: skip
PAIRS = [(text, name) for text in MEASURES for name in FEATURE_MAPS if get_feature_map(name).takes(parse(text))]
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
        losses = {bound: MarginLoss.build(argmax, get_bound(bound)) for bound in BOUNDS}
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
            above = MarginLoss.build(argmax, Convex(reference)).at(scores).value
            assert (MarginLoss.build(argmax, get_bound("tie-aware")).at(scores).value <= above + 1e-12).all()


@pytest.mark.every(4)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("text", "name"), SOME)
def test_losses_of_every_map_are_losses(text, name, bound):
    check_loss(lambda relevance, offsets: MarginLoss.build(argmax_of(text, name, relevance, offsets), get_bound(bound)))


@pytest.mark.every(5)
@pytest.mark.parametrize(("text", "name"), SOME)
def test_slopes_are_gradients(text, name):
    """Finite differences, where no two orders are equally good."""
    for seed in range(4):
        relevance, offsets, (_, scores) = drawn(text, seed)
        argmax = argmax_of(text, name, relevance, offsets)
        for bound in BOUNDS:
            loss, step = MarginLoss.build(argmax, get_bound(bound)), 1e-6
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
        loss = MarginLoss.build(argmax_of("AUC", "pairwise", relevance, offsets), get_bound("convex"))
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
    part = pickle.loads(pickle.dumps(argmax.only(1, 3)))
    np.testing.assert_array_equal(part.at(scores[low:high]).slope, whole.slope[low:high])
    np.testing.assert_array_equal(part.at(scores[low:high]).value, whole.value[1:3])


@pytest.mark.parametrize("text", ["RR", "AP"])
def test_any_solver_of_the_form_finds_the_orders(text):
    relevance, offsets, (_, scores) = drawn(text, 3)
    for name in FEATURE_MAPS:
        if get_feature_map(name).takes(parse(text)):
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
    assert (criterion.inner_product, criterion.best.tolist(), criterion.worst.tolist()) == (
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

    import rankopt.losses as room

    known = {get_feature_map(name) for name in FEATURE_MAPS}
    for path in Path(room.__file__).parent.glob("argmax_*.py"):
        module = import_module(f"rankopt.losses.{path.stem}")
        own = [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]
        assert {kind for kind in own if "takes" in vars(kind)} <= known
