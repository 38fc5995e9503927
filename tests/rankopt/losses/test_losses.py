"""The bounds: above the regret, below each other, convex where they say so, blind to shuffling."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from formulations.compiled import CACHE_GAIN, PAYS, Kernel
from formulations.gallery.rankings import ranking
from formulations.parallel import at_most
from formulations.solvers import get_solver
from formulations.sorting import alike
from rankopt.constraints import Admissible
from rankopt.data.queries import Queries
from rankopt.errors import DataError
from rankopt.losses import BOUNDS, get_bound, oracle_positional, segment_ops
from rankopt.losses import pairwise as pairwise_module
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.pairwise import PairwiseHinge
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures import parse
from rankopt.rankers import LargeMarginRanker

MEASURES = ["nDCG@3", "nDCG", "P@2", "DCG@2", "ERU(alpha=3, d=0)", "WTA", "R@2", "RBP(p=0.5)"]
DECAYS = ["linear", "linear@2", "power(0.5)", "power(1)@3", "log", "loglog", "discount"]


def batch(rng, queries=4, largest=6, tied=False):
    """Grades, offsets and scores of a few small queries; `tied` scores repeat often."""
    sizes = rng.integers(1, largest + 1, queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    grades = rng.integers(0, 3, offsets[-1]).astype(float)
    scores = rng.integers(-1, 2, offsets[-1]).astype(float) if tied else rng.normal(size=offsets[-1])
    return grades, offsets, scores


def loss_of(bound, measure, position_weights, grades, offsets, **options):
    measure, position_weights = parse(measure), parse_position_weights(position_weights)
    problem = ranking(
        np.zeros(grades.size),
        measure.gain(grades, offsets),
        discount=measure.discount,
        position_weights=lambda n: position_weights.weights(n, measure),
        offsets=offsets,
    )
    return MarginLoss(PositionalOracle(problem, get_solver("exact")), get_bound(bound, **options))


def all_orders(problem, q):
    """Every order of query q as (measure part, score weights): a[π]ᵀb and c[π] by document."""
    rows = slice(problem.offsets[q], problem.offsets[q + 1])
    gain, discount, decay = problem.gain[rows], problem.discount[rows], problem.position_weights[rows]
    found = []
    for order in permutations(range(gain.size)):
        weights = np.empty(gain.size)
        weights[list(order)] = decay
        found.append((float(discount @ gain[list(order)]), weights))
    return found


def by_definition(bound, problem, q, scores):
    """The bound written down: maxima over all orders."""
    orders = all_orders(problem, q)
    s = scores[problem.offsets[q] : problem.offsets[q + 1]]
    augmented = max(c @ s - worth for worth, c in orders)
    best = max(worth for worth, _ in orders)
    maximizers = [c for worth, c in orders if worth >= best - 1e-12]
    subtracted = {
        "tie-aware": max(c @ s for c in maximizers),
        "nonconvex": max(c @ s for _, c in orders),
    }[bound]
    return augmented + best - subtracted


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("position_weights", DECAYS)
@pytest.mark.parametrize("measure", MEASURES)
def test_bounds_are_their_definitions(measure, position_weights, tied):
    rng = np.random.default_rng(1)
    grades, offsets, scores = batch(rng, largest=5, tied=tied)
    for bound in ("tie-aware", "nonconvex"):
        loss = loss_of(bound, measure, position_weights, grades, offsets)
        expected = [by_definition(bound, loss.argmax.problem, q, scores) for q in range(4)]
        np.testing.assert_allclose(loss.at(scores).value, expected, atol=1e-12)


@pytest.mark.every(5)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("position_weights", DECAYS)
@pytest.mark.parametrize("measure", MEASURES)
def test_regret_nonconvex_tie_aware_convex_rise_in_this_order(measure, position_weights, tied):
    rng = np.random.default_rng(2)
    for _ in range(10):
        grades, offsets, scores = batch(rng, tied=tied)
        losses = [
            loss_of("nonconvex", measure, position_weights, grades, offsets),
            loss_of("tie-aware", measure, position_weights, grades, offsets),
            loss_of("convex", measure, position_weights, grades, offsets),
        ]
        first = loss_of("convex", measure, position_weights, grades, offsets, reference="first")
        at = [loss.at(scores).value for loss in losses]
        problem = losses[0].argmax.problem
        for q in range(len(problem)):
            rows = slice(offsets[q], offsets[q + 1])
            s = scores[rows]
            orders = all_orders(problem, q)
            best = max(worth for worth, _ in orders)
            allowed = [  # the orders by score, whichever way ties fall
                best - float(problem.discount[rows] @ problem.gain[rows][list(order)])
                for order in permutations(range(s.size))
                if all(s[x] >= s[y] for x, y in pairwise(order))
            ]
            assert max(allowed) <= at[0][q] + 1e-12
        assert (at[0] <= at[1] + 1e-12).all()
        assert (at[1] <= at[2] + 1e-12).all()
        assert (at[1] <= first.at(scores).value + 1e-12).all()


@pytest.mark.parametrize("bound", BOUNDS)
def test_planes_lie_below_the_majorant_and_touch_it(bound):
    rng = np.random.default_rng(3)
    for trial in range(40):
        grades, offsets, scores = batch(rng, tied=trial % 2 == 0)
        loss = loss_of(bound, "nDCG@3", "power(0.5)", grades, offsets)
        majorant = loss.majorant(scores)
        here = majorant.at(scores)
        slope = here.assigned - here.reference
        np.testing.assert_allclose(here.value, loss.at(scores).value, atol=1e-12)
        np.testing.assert_allclose(here.height + np.add.reduceat(slope * scores, offsets[:-1]), here.value, atol=1e-12)
        elsewhere = scores + rng.normal(size=scores.size)
        there = majorant.at(elsewhere).value
        assert (here.height + np.add.reduceat(slope * elsewhere, offsets[:-1]) <= there + 1e-12).all()
        assert (loss.at(elsewhere).value <= there + 1e-12).all()
        assert (here.bound >= here.value).all()


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("tied", [False, True])
def test_shuffling_documents_moves_values_nowhere(bound, tied):
    rng = np.random.default_rng(4)
    grades, offsets, scores = batch(rng, queries=12, largest=30, tied=tied)
    shuffle = np.concatenate([rng.permutation(np.arange(a, b)) for a, b in pairwise(offsets)])
    straight = loss_of(bound, "nDCG@5", "linear", grades, offsets)
    shuffled = loss_of(bound, "nDCG@5", "linear", grades[shuffle], offsets)
    np.testing.assert_allclose(shuffled.at(scores[shuffle]).value, straight.at(scores).value, rtol=1e-12, atol=1e-13)
    # The reference is the same for the same document, also where scores and gains tie.
    np.testing.assert_allclose(
        shuffled.reference_weights(scores[shuffle]), straight.reference_weights(scores)[shuffle], rtol=1e-12, atol=1e-13
    )


def test_average_reference_is_the_mean_of_all_best_orders_when_gains_differ_by_position():
    """On an untruncated measure the maximizers are the orders by gain, and documents of equal gain share alike."""
    grades, offsets = np.array([2.0, 1.0, 1.0, 0.0, 0.0]), np.array([0, 5])
    loss = loss_of("convex", "nDCG", "power(1)", grades, offsets)
    orders = all_orders(loss.argmax.problem, 0)
    best = max(worth for worth, _ in orders)
    mean = np.mean([c for worth, c in orders if worth >= best - 1e-12], axis=0)
    np.testing.assert_allclose(loss.reference_weights(np.zeros(5)), mean, atol=1e-15)


def test_pairwise_hinge_is_its_definition():
    rng = np.random.default_rng(5)
    for trial in range(30):
        sizes = rng.integers(2, 9, 3)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        grades = np.concatenate([np.append(rng.integers(0, 4, n - 2), [0, 3]) for n in sizes]).astype(float)
        scores = np.round(2 * rng.normal(size=grades.size), trial % 3)
        here = PairwiseHinge(grades, offsets).at(scores)
        for q, (a, b) in enumerate(pairwise(offsets)):
            pairs = [(i, j) for i in range(a, b) for j in range(a, b) if grades[i] > grades[j]]
            expected = np.mean([max(0.0, 1 - (scores[i] - scores[j])) for i, j in pairs])
            assert here.value[q] == pytest.approx(expected, abs=1e-12)
        elsewhere = scores + rng.normal(size=scores.size)
        plane = here.height + np.add.reduceat((here.assigned - here.reference) * elsewhere, offsets[:-1])
        assert (plane <= PairwiseHinge(grades, offsets).at(elsewhere).value + 1e-12).all()


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("linear@3", [3, 2, 1, 0]),
        ("power(1)", [1, 1 / 2, 1 / 3, 1 / 4]),
        ("power(2)@2", [1, 1 / 4, 0, 0]),
        ("log", 1 / np.log2(np.arange(2, 6))),
        ("loglog", 1 / np.log2(np.log2(np.arange(2, 6)) + 1)),
        ("discount", [1, 1 / np.log2(3), 0, 0]),
        ([5, 2.5, 2.5], [5, 2.5, 2.5, 0]),
    ],
)
def test_decay_families(spec, expected):
    decay = parse_position_weights(spec)
    np.testing.assert_allclose(decay.weights(4, parse("nDCG@2")), expected, atol=1e-15)
    assert (np.diff(decay.weights(50, parse("nDCG@2"))) <= 0).all()
    if isinstance(spec, str):
        assert parse_position_weights(str(decay)) == decay


@pytest.mark.parametrize("spec", ["linea", "power(-1)", "log(2)", "linear@0", [], [1, 2], [np.nan], [[1.0]]])
def test_bad_decays_are_refused(spec):
    with pytest.raises(ValueError, match="position_weights"):
        parse_position_weights(spec)


# What NumPy does while compiling does not pay, kernels do bit for bit.


@pytest.fixture(params=range(12))
def case(request):
    random = np.random.default_rng(request.param)
    lengths = random.integers(1, 30, 12)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n = int(offsets[-1])
    scores = random.normal(size=n) if request.param % 3 else random.integers(-2, 3, n) / 2.0
    scores[random.random(n) < 0.1] = -0.0
    gain = random.integers(0, 4, n) / 3.0
    return random, offsets, scores, gain


def compiled(monkeypatch, yes):
    monkeypatch.setattr("formulations.compiled.PAYS", -1 if yes else 1 << 60)


def both(monkeypatch, work):
    """What `work` returns with the kernels and with NumPy."""
    found = []
    for yes in (True, False):
        compiled(monkeypatch, yes)
        with at_most(1):
            found.append(work())
    return found


def assert_same_bits(one, other):
    assert len(one) == len(other)
    for x, y in zip(one, other, strict=True):
        assert np.array_equal(np.asarray(x) + 0.0, np.asarray(y) + 0.0)
        assert x.tobytes() == y.tobytes() or not (np.asarray(x) != 0).all()  # only zeros may differ, in their sign


def argmax_of(offsets, gain, position_weights):
    weights = {"power": lambda n: np.arange(1.0, n + 1) ** -0.5, "cut": lambda n: (np.arange(n) < 3) * 1.0}
    problem = ranking(
        np.zeros(gain.size), gain, discount=weights["cut"], position_weights=weights[position_weights], offsets=offsets
    )
    return PositionalOracle(problem, get_solver("exact"))


@pytest.mark.parametrize("position_weights", ["power", "cut"])
@pytest.mark.parametrize("bound", ["convex", "tie-aware", "nonconvex"])
def test_a_margin_loss_is_the_same_to_the_bit(case, position_weights, bound, monkeypatch):
    _, offsets, scores, gain = case
    argmax = argmax_of(offsets, gain, position_weights)

    def work():
        at = MarginLoss(argmax, bound).at(scores)
        return at.value, at.bound, at.height, at.assigned, at.reference

    assert_same_bits(*both(monkeypatch, work))


def test_shared_slopes_are_the_same_to_the_bit(case, monkeypatch):
    random, offsets, scores, gain = case
    slope = random.random(scores.size) * (random.random(scores.size) < 0.7)
    kind = alike(offsets, gain)
    assert_same_bits(*both(monkeypatch, lambda: (segment_ops.shared(slope.copy(), scores, kind, offsets),)))


def test_pairs_are_counted_alike(case, monkeypatch):
    random, offsets, scores, _ = case
    scores = np.round(scores * 4) / 4  # many differences of exactly one
    relevance = random.integers(0, 3, scores.size).astype(float)
    relevance[offsets[:-1]] = 3.0
    keep = np.diff(offsets) > 1
    rows = np.repeat(keep, np.diff(offsets))
    offsets = np.concatenate([[0], np.cumsum(np.diff(offsets)[keep])])
    loss = PairwiseHinge(relevance[rows], offsets)

    def work():
        at = loss.at(scores[rows])
        return at.value, at.height, at.assigned

    assert_same_bits(*both(monkeypatch, work))


def test_a_kernel_is_compiled_once_it_pays(monkeypatch):
    monkeypatch.setattr("formulations.compiled.PAYS", 30_000)
    monkeypatch.setattr("formulations.compiled.CALL", 0)
    monkeypatch.setattr("formulations.compiled.CACHE_GAIN", 0)
    for kernel in (oracle_positional._scatter, pairwise_module.count_violations, segment_ops.share_range):
        monkeypatch.setattr(kernel, "_spared", 0)
        assert [kernel.pays(10_000) for _ in range(5)] == [False, False, False, True, True]


def test_code_on_disk_pays_sooner(monkeypatch):
    monkeypatch.setattr("formulations.compiled.CALL", 0)
    kernel = oracle_positional._scatter
    kernel.ready()
    for kept, sooner in ((True, True), (False, False)):
        monkeypatch.setattr(kernel, "_spared", PAYS / CACHE_GAIN)
        monkeypatch.setitem(kernel.__dict__, "_is_cached", kept)
        assert kernel.pays(1) == sooner
        monkeypatch.setattr(Kernel, "running", False)
        assert not kernel.pays(1)
        monkeypatch.undo()
        monkeypatch.setattr("formulations.compiled.CALL", 0)


# Which queries count under constraints: those in which admissible rankings differ in worth, whatever others do.


def queries_of(*grades):
    X = np.random.default_rng(0).normal(size=(sum(map(len, grades)), 3))
    return Queries.from_arrays(X, np.concatenate(grades), group=[len(own) for own in grades])


def risk_of(queries, k, **options):
    ranker = LargeMarginRanker("P@2", bound="convex", constraints=Admissible(k), **options)
    return ranker.objective(queries).risk


def test_the_choice_of_the_one_that_is_shown_is_worth_something():
    """P@2 finds both rankings of two documents equal; of one position each choice is a ranking of its own."""
    risk = risk_of(queries_of([1.0, 0.0]), 1)
    assert risk.weights.tolist() == [1.0]
    assert risk.at(np.zeros(3)).value == pytest.approx(0.5)
    with pytest.raises(DataError, match="distinguishes"):
        risk_of(queries_of([1.0, 0.0]), 2)


def test_no_query_vanishes_beside_others():
    """J, weights and their number are of all queries in which the set leaves a choice."""
    one, two = queries_of([1.0, 0.0, 1.0]), queries_of([1.0, 0.0], [1.0, 0.0, 1.0])
    assert risk_of(one, 1).weights.size == 1
    risk = risk_of(two, 1)
    assert risk.weights.tolist() == [0.5, 0.5]
    assert sorted(risk.at(np.zeros(3)).losses) == pytest.approx(sorted([0.5, risk_of(one, 1).at(np.zeros(3)).value]))


def test_queries_of_one_grade_are_left_out_before_the_set_is_asked():
    """Three positions with one document a site: the second query has two sites, and nothing to learn."""
    site = np.array(["a", "b", "c", "d", "a", "b", "a"])
    queries = Queries.from_arrays(
        np.arange(7.0)[:, None], np.array([1.0, 0, 0, 1, 0, 0, 0]), group=[4, 3], attributes={"site": site}
    )
    rule = Admissible(3).at_most(1, by="site")
    ranker = LargeMarginRanker("P@2", bound="convex", constraints=rule)
    assert ranker.objective(queries).risk.weights.size == 1
