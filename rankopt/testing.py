"""Conformance checks for your own measure, loss, bound, feature map or method.

Each takes the object to check and raises `AssertionError` with the reason; all are seeded.

>>> from rankopt.measures import parse
>>> check_measure(parse("nDCG@3"))
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations import get_solver, ranking
from formulations.arrays import Floats, Ints
from formulations.errors import CertificateError
from rankopt.data.canonical_order import Arrangement
from rankopt.data.queries import Queries
from rankopt.losses import get_bound, make_loss
from rankopt.losses.loss import GradientLoss, Loss, is_nonnegative, protocol_of
from rankopt.losses.margin import Bound, MarginLoss
from rankopt.losses.oracle import Criterion, JointFeatureMap
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures.measure import Measure, PositionalMeasure
from rankopt.measures.notation import parse
from rankopt.sweeps.reference import LINES, check_lines, drawn_lines

if TYPE_CHECKING:
    from rankopt.optimize.concave_convex import Method
    from rankopt.rankers.typing import AnyBound

__all__ = ["check_bound", "check_line_search", "check_loss", "check_map", "check_measure", "check_method"]


def small_queries(seed: int = 0, batches: int = 20, largest: int = 6) -> Iterator[tuple[Floats, Ints]]:
    """Grades and offsets of small queries, including ties, single documents and queries of one grade."""
    rng = np.random.default_rng(seed)
    for _ in range(batches):
        sizes = rng.integers(1, largest + 1, 4)
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        yield rng.integers(0, 3, offsets[-1]).astype(np.float64), offsets


def check_measure(measure: PositionalMeasure, grades: Callable[[Floats], Floats] = lambda grades: grades) -> None:
    """A positional measure is an inner product whose best order sorts by grade.

    grades: maps grades 0, 1, 2 to grades that the measure accepts.
    """
    for n in (1, 2, 7, 40):
        discount = measure.discount(n)
        assert discount.shape == (n,), f"discount({n}) must have {n} entries"
        assert np.isfinite(discount).all(), "discounts must be finite"
        assert (np.diff(discount) <= 0).all(), "discounts must not increase"
    for relevance, offsets in small_queries():
        relevance = grades(relevance)
        gain = measure.gain(relevance, offsets)
        assert gain.shape == relevance.shape, "there must be a gain for every document"
        assert np.isfinite(gain).all(), "gains must be finite"
        constant = measure.constant(relevance, offsets)
        best = measure.best(relevance, offsets)
        for q, (low, high) in enumerate(pairwise(offsets.tolist())):
            b, a = gain[low:high], measure.discount(high - low)
            values = [float(a @ b[list(order)]) - constant[q] for order in permutations(range(high - low))]
            assert np.isclose(max(values), best[q], atol=1e-12), "best must be the value of the best order"
            by_grade = np.argsort(-relevance[low:high], kind="stable")
            reached = float(a @ b[by_grade]) - constant[q]
            assert np.isclose(reached, max(values), atol=1e-12), "sorting by grade must be best"
        rows = np.concatenate([np.arange(low, high)[::-1] for low, high in pairwise(offsets.tolist())])
        np.testing.assert_allclose(measure.gain(relevance[rows], offsets), gain[rows], rtol=1e-12, atol=1e-15)


def check_line_search(measure: Measure, grades: Callable[[Floats], Floats] = lambda grades: grades) -> None:
    """The sweep of a measure along lines equals the measure evaluated between all enumerated crossings.

    Lines are random, integer, concurrent, all zero, tied in scores and in slopes, and on scales from 1e-9 to 1e9.
    grades: maps grades 0, 1, 2 to grades that the measure accepts.
    """
    rng = np.random.default_rng(5)
    for turn, (relevance, offsets) in enumerate(small_queries(seed=5, batches=36, largest=8)):
        relevance = grades(relevance)
        scores, slopes = drawn_lines(rng, LINES[turn % len(LINES)], relevance.size)
        check_lines(measure, relevance, offsets, scores, slopes, rng.random(offsets.size - 1))


def check_loss(build: Callable[..., Any], attributes: Callable[[Floats], Mapping[str, Any]] = lambda _: {}) -> None:
    """Check a loss of the scores; `build(relevance, offsets)` constructs it for queries with at least two grades.
    attributes: from relevance (N,) to attributes (N,) for a `build` with a parameter `queries`.

    Its values are nonnegative, or it declares `is_nonnegative = False`. Its planes touch it and lie below its
    majorant. The majorant is convex, above the loss and touches it. Bounds are
    not below values. Values and slopes depend neither on the order of documents nor on other queries. For a loss with a
    gradient, the gradient matches finite differences of its values.
    """

    def make(relevance: Floats, offsets: Ints, rows: Ints | None = None) -> Any:
        rows = np.arange(relevance.size) if rows is None else rows
        input_rows = np.argsort(rows)
        drawn = {name: np.asarray(values)[rows] for name, values in attributes(relevance[input_rows]).items()}
        ones, ids = np.ones(offsets.size - 1), tuple(range(offsets.size - 1))
        return make_loss(
            build, Arrangement(np.zeros((rows.size, 0)), rows, offsets, ones, relevance, ids, drawn, input_order=rows)
        )

    if protocol_of(make(np.array([0.0, 2.0]), np.array([0, 2]))) == "gradient":
        _check_gradient(make)
    else:
        _check_planes(make)


def _check_planes(build: Callable[..., Loss]) -> None:
    rng = np.random.default_rng(1)
    for relevance, offsets in small_queries(seed=1):
        relevance, offsets = _orderable(relevance, offsets)
        starts = offsets[:-1]
        loss = build(relevance, offsets)
        for scores in (rng.normal(size=relevance.size), rng.integers(-1, 2, relevance.size).astype(np.float64)):
            majorant = loss.majorant(scores)
            assert majorant.convex, "a majorant must be convex"
            here, there = loss.at(scores), majorant.at(scores)
            assert (here.bound >= here.value).all(), "a bound must not be below the value"
            sign = here.value.min() >= -1e-12 or not is_nonnegative(loss)
            assert sign, "a loss with negative values must set is_nonnegative = False"
            np.testing.assert_allclose(there.value, here.value, atol=1e-12, err_msg="a majorant must touch the loss")
            slope = there.assigned - there.reference
            touching = there.height + np.add.reduceat(slope * scores, starts)
            np.testing.assert_allclose(touching, there.value, atol=1e-12, err_msg="a plane must touch the loss")
            elsewhere = scores + rng.normal(size=scores.size)
            plane = there.height + np.add.reduceat(slope * elsewhere, starts)
            above = majorant.at(elsewhere).bound  # of a maximum that is found to its optimum this is the value
            assert (plane <= above + 1e-12).all(), "a plane must lie below the majorant"
            assert (loss.at(elsewhere).value <= above + 1e-12).all(), "a majorant must lie above the loss"
            rows = np.concatenate([rng.permutation(np.arange(low, high)) for low, high in pairwise(offsets.tolist())])
            shuffled = build(relevance[rows], offsets, rows).at(scores[rows])
            np.testing.assert_allclose(shuffled.value, here.value, atol=1e-12, err_msg="shuffling changed a value")
            moved, stood = shuffled.assigned - shuffled.reference, (here.assigned - here.reference)[rows]
            np.testing.assert_allclose(moved, stood, atol=1e-12, err_msg="shuffling changed a slope")
            alone = loss.select_queries(1, 2).at(scores[offsets[1] : offsets[2]]).value
            np.testing.assert_allclose(alone, here.value[1:2], atol=1e-12, err_msg="other queries changed a value")


def _check_gradient(build: Callable[..., GradientLoss], step: float = 1e-6) -> None:
    rng = np.random.default_rng(1)
    for relevance, offsets in small_queries(seed=1):
        relevance, offsets = _orderable(relevance, offsets)
        loss, starts = build(relevance, offsets), offsets[:-1]
        for scores in (rng.normal(size=relevance.size), rng.integers(-1, 2, relevance.size).astype(np.float64)):
            here = loss.gradient(scores)
            assert here.value.shape == starts.shape, "there must be a value for every query"
            assert here.slope.shape == scores.shape, "there must be a slope for every document"
            rows = np.concatenate([rng.permutation(np.arange(low, high)) for low, high in pairwise(offsets.tolist())])
            shuffled = build(relevance[rows], offsets, rows).gradient(scores[rows])
            np.testing.assert_allclose(shuffled.value, here.value, atol=1e-12, err_msg="shuffling changed a value")
            np.testing.assert_allclose(
                shuffled.slope, here.slope[rows], atol=1e-12, err_msg="shuffling changed a slope"
            )
            alone = loss.select_queries(1, 2).gradient(scores[offsets[1] : offsets[2]])
            np.testing.assert_allclose(
                alone.value, here.value[1:2], atol=1e-12, err_msg="other queries changed a value"
            )
        scores, along = rng.normal(size=relevance.size), rng.normal(size=relevance.size)  # no two are equal
        above, below = (loss.gradient(scores + sign * step * along).value for sign in (1.0, -1.0))
        slope = np.add.reduceat(loss.gradient(scores).slope * along, starts)
        np.testing.assert_allclose(
            (above - below) / (2 * step), slope, rtol=1e-5, atol=1e-7, err_msg="a slope must be the gradient"
        )


def check_bound(bound: Bound) -> None:
    """A bound of the regret: `bound(argmax, scores)` is the reference that a margin loss subtracts.

    The loss of rankings with it passes `check_loss` and is nowhere below the regret of an order that the scores allow;
    `LargeMarginRanker`, under constraints too, and `MatchingRanker` train it until their gap closes.
    """
    measure, rng = parse("nDCG@3"), np.random.default_rng(3)
    assert isinstance(measure, PositionalMeasure)

    def argmax(relevance: Floats, offsets: Ints) -> PositionalOracle:
        gain, position_weights = measure.gain(relevance, offsets), lambda n: np.arange(1.0, n + 1) ** -0.5
        problem = ranking(
            np.zeros(gain.size), gain, discount=measure.discount, position_weights=position_weights, offsets=offsets
        )
        return PositionalOracle(problem, get_solver("exact"))

    for relevance, offsets in small_queries(seed=3, largest=5):
        rankings = argmax(relevance, offsets)
        scores = rng.integers(-1, 2, relevance.size).astype(np.float64)
        values = MarginLoss(rankings, bound).at(scores).value
        for q, (low, high) in enumerate(pairwise(offsets.tolist())):
            s, discount, gain = scores[low:high], rankings.problem.discount[low:high], rankings.problem.gain[low:high]
            orders = map(list, permutations(range(high - low)))
            allowed = [order for order in orders if (np.diff(s[order]) <= 0).all()]
            regret = rankings.best[q] - min(float(discount @ gain[order]) for order in allowed)
            assert values[q] >= regret - 1e-12, "a bound must not be below the regret"
    check_loss(lambda relevance, offsets: MarginLoss(argmax(relevance, offsets), bound))
    from rankopt.constraints.admissible import Admissible
    from rankopt.rankers.large_margin import LargeMarginRanker
    from rankopt.rankers.matching import MatchingRanker

    rule = Admissible(3, on_infeasible="truncate").at_most(1, by="site")
    for ranker in (
        LargeMarginRanker("nDCG@3", bound=bound, lam=0.1),
        LargeMarginRanker("nDCG@3", bound=bound, lam=0.1, constraints=rule),
        MatchingRanker(bound=bound, lam=0.1),
    ):
        is_global = _close_gap(ranker, seed=4).kind == "global"
        assert is_global == bound.convex, "the certificate must state what is proved"


def check_map(
    feature_map: JointFeatureMap,
    measure: str | Measure,
    bounds: Iterable[AnyBound] = ("convex", "tie-aware", "nonconvex"),
) -> None:
    """Check a feature map for a measure that it accepts. Under each bound its loss passes `check_loss` and is not below
    the regret of any order that the scores allow, and `LargeMarginRanker` closes its gap.

    The convex bound is not below the tie-aware one, which is not below the nonconvex one.
    """
    parsed, position_weights, rng = parse(measure), parse_position_weights("power(0.5)"), np.random.default_rng(5)
    assert feature_map.supports(parsed), f"the map must accept {parsed}"

    def build(bound: str | Bound, relevance: Floats, offsets: Ints) -> MarginLoss:
        n, m = relevance.size, offsets.size - 1
        ones, ids = np.full(m, 1.0 / m), tuple(range(m))
        queries = Arrangement(np.zeros((n, 0)), np.arange(n), offsets, ones, relevance, ids, {})
        return MarginLoss(
            feature_map.from_queries(queries, parsed, position_weights, get_solver("exact")), get_bound(bound)
        )

    known = [*bounds]
    for bound in known:
        check_loss(lambda relevance, offsets, bound=bound: build(bound, relevance, offsets))
    for relevance, offsets in small_queries(seed=5, largest=5):
        relevance, offsets = _orderable(relevance, offsets)
        criterion = Criterion.from_measure(parsed, relevance, offsets)
        scores = rng.integers(-1, 2, relevance.size).astype(float)
        regret = criterion.best - criterion.worst_and_mean(scores)[0]
        values = [build(bound, relevance, offsets).at(scores).value for bound in known]
        for bound, value in zip(known, values, strict=True):
            assert (value >= regret - 1e-12).all(), f"the {bound} bound must not be below the regret"
        for above, below in pairwise(values if known == ["convex", "tie-aware", "nonconvex"] else []):
            assert (above >= below - 1e-12).all(), "a tighter bound must not be above a looser one"
    from rankopt.rankers.large_margin import LargeMarginRanker

    for bound in known:
        _close_gap(LargeMarginRanker(measure, feature_map=feature_map, bound=bound, lam=0.1), seed=6)


def _close_gap(ranker: Any, seed: int) -> Any:
    """The certificate of the ranker, trained on drawn queries with the attribute `site`; its gap must close."""
    rng = np.random.default_rng(seed)
    features = np.round(rng.normal(size=(48, 3)), 1)
    grades = np.digitize(features @ [1.0, -1.0, 0.5] + rng.normal(size=48), [0.3, 1.2]).astype(np.float64)
    queries = Queries.from_arrays(features, grades, qid=np.arange(48) // 8, attributes={"site": rng.integers(0, 4, 48)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an optimum at w0 is no fault of a bound or a map
        ranker.fit(queries)
    assert ranker.certificate_.relative_gap <= ranker.tol, "the gap must close"
    return ranker.certificate_


def check_method(method: Method, tol: float = 1e-4, max_iter: int = 5000) -> None:
    """A method reaches the optimum of a convex problem with valid, monotone bounds."""
    from rankopt.rankers.loss import PairwiseRanker

    rng = np.random.default_rng(2)
    features = rng.normal(size=(60, 3))
    relevance = (features @ [1.0, -1.0, 0.5] + rng.normal(size=60) > 0.5).astype(np.float64)
    queries = Queries.from_arrays(features, relevance, qid=np.arange(60) // 10)
    for lam in (1.0, 0.01):
        best = PairwiseRanker(lam=lam, tol=1e-7).fit(queries).certificate_
        ranker = PairwiseRanker(lam=lam, tol=tol, method=method, max_iter=max_iter)
        try:
            ranker.fit(queries)
        except CertificateError as error:
            raise AssertionError(str(error)) from error
        found, history = ranker.certificate_, ranker.history_
        assert found.relative_gap <= tol, "the gap must close"
        assert abs(found.primal - best.primal) <= found.gap + best.gap, "the objective must be the optimum's"
        assert found.bound <= best.primal, "a bound must be below every objective"
        assert (np.diff(history.bound) >= 0).all(), "bounds must not decrease"
        assert (np.diff(history.primal) <= 0).all(), "the best objective must not rise"


def _orderable(relevance: Floats, offsets: Ints) -> tuple[Floats, Ints]:
    """Each query with two more documents, of the lowest and the highest grade."""
    parts = [np.append(relevance[low:high], [0.0, 2.0]) for low, high in pairwise(offsets.tolist())]
    return np.concatenate(parts), np.concatenate([[0], np.cumsum([part.size for part in parts])])
