"""The ways of pattern rankings: all agree with the grid or lattice, whatever the data, and which is taken is read off
numbers. The long run over all orders is `python -m benchmarks faults relevance`."""

from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
import pytest
from problems.few import few

from formulations import (
    CertificateError,
    RelevanceRanking,
    SolverResult,
    UnsupportedProblemError,
    certify,
    first_relevant_ranking,
    pairwise_ranking,
    relevance_ranking,
    solve,
    solve_batch,
)
from formulations.argmax.relevance_batch import argmax_of_patterns
from formulations.argmax.relevance_layout import GRID, LATTICE, PATTERN_WAYS, TAIL, RelevanceLayout
from formulations.problems.relevance_losses import Discounted, StepwiseLoss, TableLoss, get_relevance_loss
from formulations.solvers.exact import ExactArgmax


def letor(n):
    """1, 1, 1 / log2 i."""
    return 1 / np.log2(np.maximum(np.arange(1, n + 1), 2))


def falling(n):
    return 1.0 - np.arange(n) ** 0.8


LOSSES = {
    **{name: name for name in ("AUC", "AP", "AP@7", "RR", "RR@4", "nDCG", "nDCG@5", "P@6", "ERR", "ERR@4")},
    "LETOR": Discounted(letor, normalized=True),
    "LETOR, binary": Discounted(letor, graded=False),
    "gains that nobody loses": Discounted(letor, gain=lambda grade: grade + 0.5, graded=False),
    "cells": TableLoss(lambda good, bads, relevant, others: np.exp(-good - 0.3 * bads)),
}
MAPS = {
    "pairwise": pairwise_ranking,
    "first-relevant": first_relevant_ranking,
    "positional": lambda *given, **offsets: relevance_ranking(*given, position_weights=falling, **offsets),
}


def queries(random, sizes, grades, whole):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = random.integers(-4, 5, offsets[-1]).astype(float) if whole else random.normal(size=offsets[-1])
    return scores, random.integers(0, grades, offsets[-1]).astype(float), offsets


def by_the_whole_lattice(batch):
    layout = RelevanceLayout.from_batch(batch)
    ways = np.where((layout.algorithm == LATTICE) | (layout.algorithm == TAIL), LATTICE, GRID).astype(np.int8)
    return argmax_of_patterns(batch, layout, ways)


@pytest.mark.parametrize("map_", MAPS)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_way_finds_what_the_whole_lattice_finds(loss, map_):
    random = np.random.default_rng(5)
    for grades, sizes in ((2, [1, 2, 40, 300, 7, 90]), (3, [3, 17, 30, 24]), (5, [12, 9, 14])):
        for whole in (False, True):
            scores, relevance, offsets = queries(random, sizes, grades, whole)
            batch = MAPS[map_](scores, relevance, LOSSES[loss], offsets=offsets)
            answer = solve_batch(batch, ExactArgmax(compiled=True), directed_rounding=False)
            _, told = by_the_whole_lattice(batch)
            np.testing.assert_allclose(answer.value, told.value, rtol=0, atol=1e-13 * batch.reach.max())
            judged = batch.judged(answer.order)
            np.testing.assert_allclose(answer.slope, judged.slope, atol=1e-14)
            np.testing.assert_allclose(answer.earned, judged.earned, atol=1e-13)
            outward = solve_batch(batch, ExactArgmax(compiled=True))
            assert (outward.value <= told.value).all()
            assert (told.value <= outward.bound).all()


@pytest.mark.parametrize("map_", MAPS)
@pytest.mark.parametrize("loss", LOSSES)
def test_small_batches_are_answered_by_whole_arrays_in_the_same_orders(loss, map_):
    random = np.random.default_rng(6)
    scores, relevance, offsets = queries(random, [1, 4, 9, 20, 2, 13, 30], 2, whole=False)
    batch = MAPS[map_](scores, relevance, LOSSES[loss], offsets=offsets)
    small, compiled = (solve_batch(batch, ExactArgmax(compiled=how), directed_rounding=False) for how in (False, True))
    np.testing.assert_allclose(small.value, compiled.value, rtol=0, atol=1e-13 * batch.reach.max())
    np.testing.assert_array_equal(small.order, compiled.order)
    assert set(small.algorithm) <= {"grid", "lattice", "sort"}


@pytest.mark.parametrize("map_", MAPS)
@pytest.mark.parametrize("loss", ["AP", "AUC", "RR@4", "nDCG@5", "nDCG", "ERR@4"])
def test_the_order_of_the_input_changes_nothing(loss, map_):
    """Values, and slopes where documents of equal score and grade share theirs."""
    random = np.random.default_rng(7)
    scores, relevance, offsets = queries(random, [40, 3, 25], 3, whole=True)
    query = np.repeat(np.arange(3), np.diff(offsets))
    new = np.lexsort((random.random(scores.size), query))
    for compiled in (False, True):
        solver = ExactArgmax(compiled=compiled)
        one = solve_batch(MAPS[map_](scores, relevance, LOSSES[loss], offsets=offsets), solver)
        other = solve_batch(MAPS[map_](scores[new], relevance[new], LOSSES[loss], offsets=offsets), solver)
        np.testing.assert_allclose(other.value, one.value, atol=1e-12)
        grade = one.problems.grade
        shared, again = (
            averaged(part, np.stack([query, scores, grade])) for part in (one.slope, undone(other.slope, new))
        )
        np.testing.assert_allclose(again, shared, atol=1e-12)


def undone(values, new):
    back = np.empty(values.size)
    back[new] = values
    return back


def averaged(values, keys):
    _, kind = np.unique(keys, axis=1, return_inverse=True)
    kind = kind.ravel()
    return (np.bincount(kind, values) / np.bincount(kind))[kind]


def way(loss, map_="pairwise", relevance=None, n=60):
    grades = (np.arange(n) % 3 == 0) if relevance is None else relevance
    batch = MAPS[map_](np.arange(n, dtype=float), grades, loss, offsets=[0, n])
    return PATTERN_WAYS[RelevanceLayout.from_batch(batch).algorithm[0]]


def test_the_way_is_chosen_by_proof():
    each, cut = "independent choices", "triangle and tail"
    assert {loss: way(loss) for loss in ("AP", "AUC", "nDCG")} == dict.fromkeys(("AP", "AUC", "nDCG"), each)
    assert {loss: way(loss) for loss in ("AP@10", "P@10", "nDCG@10")} == dict.fromkeys(
        ("AP@10", "P@10", "nDCG@10"), cut
    )
    assert way("RR") == way("RR@10") == "one pass"
    assert way("AP", "first-relevant") == way("nDCG@10", "first-relevant") == "one pass"
    assert way("AP", "positional") == "grid"
    assert way("AP@5", "positional") == cut
    # LETOR's discount falls by nothing, then by more: its rows are not concave. So is one that a user gives.
    assert way(Discounted(letor)) == "grid"
    assert way(Discounted([5.0, 4.0, 3.0, *np.zeros(57)])) == cut
    assert way(Discounted(60.0 - np.arange(60) - 0.01 * np.arange(60) ** 2)) == "grid"
    assert way(Discounted(0.9 ** np.arange(60))) == each
    # A single relevant document makes AP the reciprocal rank.
    assert way("AP", relevance=np.arange(60) == 7) == "one pass"
    # A loss that pays for being low, and a table that looks like AUC: nothing is known of their cells.
    assert way(Discounted(60.0 - np.arange(60), gain=lambda grade: -grade)) == "grid"
    assert way(TableLoss(lambda good, bads, relevant, others: (others - bads) / (relevant * others))) == "grid"
    assert way("nDCG", relevance=np.arange(60) % 4) == "lattice"
    assert way("nDCG@10", relevance=np.arange(60) % 4) == "lattice and tail"


def greedy_by_good(scores, relevance, discount, share):
    """Every good, from the highest, at its best place below the one before: what Fact 3.4 of paper 4 calls optimal."""
    good, bad = (np.sort(scores[relevance == kind])[::-1] for kind in (1, 0))
    passed, b, value = np.append(0.0, np.cumsum(bad)), np.arange(bad.size + 1), 0.0
    reached = 0
    for g, s in enumerate(good):
        row = -(b * s - passed) / (good.size * bad.size) - share[g] * discount[g + b]
        at = reached + int(np.argmax(row[reached:]))
        value, reached = value + row[at], at
    return value


def test_facts_of_the_paper_that_are_wrong_are_not_believed():
    """[paper 4, Facts 3.3 and 3.4]: greedy columns, and relevant documents beyond the cut left out of the choice."""
    share = np.zeros(6)
    for scores, relevance, loss, discount, earned in (
        ([0.5, 1.0, 0.5, 0.5, -0.5], [1, 0, 1, 1, 0], "nDCG@2", [1, 1 / np.log2(3), 0, 0, 0, 0], None),
        ([1.0, 1.0, -1.0, -1.0, 0.5], [0, 1, 0, 0, 1], "RR@2", [1, 0.5, 0, 0, 0, 0], [1, 0, 0, 0]),
    ):
        best_gain = 1 + 1 / np.log2(3)
        share = np.full(6, 1 / best_gain) if earned is None else np.array(earned, dtype=float)
        problem = pairwise_ranking(scores, relevance, loss)
        found = greedy_by_good(np.array(scores), np.array(relevance), np.array(discount), share)
        most = max(problem.value(np.array(order)) for order in permutations(range(len(scores))))
        assert found < most - 1e-3
        assert solve(problem).value == pytest.approx(most, abs=1e-12)
    scores, relevance = np.array([0.5, -0.5, 0.5, 1.0, 0.5, -1.0]), np.array([1, 0, 0, 1, 1, 0])
    problem = pairwise_ranking(scores, relevance, "nDCG@2")
    most = max(problem.value(np.array(order)) for order in permutations(range(6)))
    assert solve(problem).value == pytest.approx(most, abs=1e-12)
    # Only the first two relevant documents choose, and their best choice leaves the third none as good.
    trimmed = -0.4444444444444444
    assert trimmed < most - 1e-3


def test_proofs_are_checked_again_and_forged_ones_refused():
    problem = pairwise_ranking([0.5, 0.2, 0.1, -1.0, 0.4], [0, 1, 1, 0, 0], "AP")
    solution = solve(problem)
    assert certify(problem, solution, exact=True).gap == 0
    for forged in (
        replace(solution, value=solution.value + 0.1),
        replace(solution, bound=solution.bound - 0.1),
        replace(solution, x=solution.x[::-1].copy()),
        replace(solution, x=np.array([0, 0, 1, 2, 3])),
        replace(solution, y=solution.y[:-1]),
    ):
        with pytest.raises(CertificateError):
            certify(problem, forged, exact=True)
    without = replace(solution, y=np.zeros(0))
    assert certify(problem, without, exact=True).gap == 0
    worse = problem.solution(np.arange(5))
    assert certify(problem, worse, exact=True).gap > 0
    with pytest.raises(CertificateError, match="optimal"):
        certify(problem, replace(worse, status=solution.status))


@pytest.mark.parametrize("map_", MAPS)
@pytest.mark.parametrize("loss", ["AP", "AUC", "RR@4", "nDCG@5", "ERR", "LETOR"])
def test_batches_are_proved_by_potentials_and_in_rational_numbers(loss, map_):
    random = np.random.default_rng(8)
    batch = MAPS[map_](*queries(random, [9, 14, 4], 3, whole=True)[:2], LOSSES[loss], offsets=[0, 9, 23, 27])
    proved = solve_batch(batch).proved(exactly=2)
    assert (proved.bound - proved.value <= 3 * batch.left).all()
    assert proved[0].status.name == "OPTIMAL"


def test_large_batches_are_proved_by_the_compiled_lattice():
    random = np.random.default_rng(9)
    scores, relevance, offsets = queries(random, [400, 30, 900, 1, 1200], 2, whole=False)
    for loss in ("AP", "nDCG@5"):
        batch = pairwise_ranking(scores, relevance, loss, offsets=offsets)
        answer = solve_batch(batch)
        proved = answer.proved(exactly=1)
        assert (proved.bound - proved.value <= 6 * batch.left).all()
        wrong = replace(answer, order=np.concatenate([np.arange(n) for n in batch.sizes]), known=None).proved()
        assert (wrong.bound >= answer.value).all()
        np.testing.assert_allclose(wrong.slope, batch.judged(wrong.order).slope, atol=1e-15)
        again = replace(solve_batch(batch, directed_rounding=False), known=None)
        np.testing.assert_array_equal(again.slope, answer.slope)
        np.testing.assert_array_equal(again.earned, answer.earned)
        assert wrong.bound[2] - wrong.value[2] > 0.01


def test_few_documents_of_many_grades_are_cut_too(monkeypatch):
    """With no code on disk, a small batch is searched whole, without compiled code, only where its lattices are small
    too."""
    monkeypatch.setattr("formulations.compiled.Deferral.ends", lambda *_: False)
    random = np.random.default_rng(12)
    relevance = np.tile(np.arange(400) % 5, 2).astype(float)
    for loss, sizes in (("ERR@10", [400]), ("nDCG@10", [120, 60]), ("nDCG@5", [8, 8])):
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        for map_ in MAPS.values():
            n = int(offsets[-1])
            batch = map_(random.normal(size=n), relevance[:n], loss, offsets=offsets)
            answer = solve_batch(batch)
            assert (answer.bound - answer.value <= 4 * batch.left).all()
            cut = "lattice and tail" if n > 16 and map_ is not first_relevant_ranking else None
            assert cut is None or set(answer.algorithm) == {cut}
            assert n > 16 or set(answer.algorithm) == {"lattice"}
            single = solve(batch[0])
            assert single.value == pytest.approx(answer.value[0], abs=4 * batch.left[0])


def test_a_proof_goes_through_few_states_only(monkeypatch):
    """What the argmax finds in a tenth of a millisecond is not proved for seconds: the way's bound stands then."""
    random = np.random.default_rng(11)
    for grades, n in ((5, 40), (3, 60)):
        relevance = np.tile(np.arange(n) % grades, 3).astype(float)
        batch = pairwise_ranking(random.normal(size=3 * n), relevance, "nDCG@10", offsets=np.arange(4) * n)
        answer = solve_batch(batch, ExactArgmax(compiled=True))
        asked: list[int] = []
        monkeypatch.setattr(
            "formulations.solvers.batch_solution.certify", lambda *_, asked=asked, **__: asked.append(1)
        )
        proved = answer.proved(exactly=3)
        assert not asked
        np.testing.assert_array_equal(proved.bound, answer.bound)


def test_a_wrong_order_is_not_proved():
    batch = pairwise_ranking([0.0, 3.0, 1.0, 2.0], [1, 0, 1, 0], "AP", offsets=[0, 4])
    wrong = replace(solve_batch(batch), order=np.array([0, 2, 1, 3]), known=None).proved()
    assert wrong.bound[0] - wrong.value[0] > 0.1


def test_what_is_too_large_is_refused_with_what_helps():
    grades = np.repeat(np.arange(8.0), 40)
    batch = pairwise_ranking(np.zeros(320), grades, "nDCG", offsets=[0, 320])
    with pytest.raises(UnsupportedProblemError, match="Use a loss with a cutoff"):
        solve_batch(batch, ExactArgmax(compiled=True))
    with pytest.raises(
        UnsupportedProblemError,
        match=r"no installed solver .* exact: .* query 0 \(320 documents\) .* Use a loss with a cutoff",
    ):
        solve(batch[0])
    cut = pairwise_ranking(np.zeros(320), grades, "nDCG@5", offsets=[0, 320])
    assert solve_batch(cut, ExactArgmax(compiled=True)).algorithm.tolist() == ["lattice and tail"]


def test_long_queries_have_a_bound_without_their_lattice():
    random = np.random.default_rng(10)
    for n, relevant in ((60, 20), (3000, 1500)):
        grades = (np.arange(n) < relevant).astype(float)
        for loss in ("AP", "AUC"):
            problem = pairwise_ranking(random.normal(size=n) + 0.3 * grades, grades, loss)
            found = solve_batch(problem.alone(), ExactArgmax(compiled=True), directed_rounding=False)
            bound = problem.bound(np.zeros(0))
            assert found.value[0] <= bound <= found.value[0] + 1e-7
    assert solve(problem).value <= solve(problem).bound <= bound
    assert certify(problem, solve(problem)).gap < 1e-7
    assert pairwise_ranking([0.0, 1.0], [0, 1], "nDCG").bound(np.zeros(0)) == np.inf


@pytest.mark.parametrize(("n", "relevant"), [(1000, 100), (2000, 1000), (5000, 500), (3000, 1500)])
def test_long_queries_are_proved_without_their_potentials(n, relevant):
    """Of AP, by the bound that needs none, or by that of the search; neither is below the dual bound."""
    random = np.random.default_rng(n)
    grades = random.permutation(np.arange(n) < relevant).astype(float)
    problem = pairwise_ranking(random.normal(size=n) + 0.3 * grades, grades, "AP")
    found = solve(problem)
    assert found.status.name == "OPTIMAL"
    assert problem.bound(np.zeros(0)) >= found.value
    assert 0.0 <= certify(problem, found).gap <= problem.rounding
    if problem.chains.states <= 1 << 18:
        assert found.bound >= found.value >= problem.lattice().bound(problem.lattice().potentials) - problem.rounding


@pytest.mark.parametrize(
    ("n", "grades", "loss", "map_"),
    [
        (3000, 2, "nDCG@10", "pairwise"),
        (3000, 2, "P@10", "pairwise"),
        (400, 5, "ERR@5", "pairwise"),
        (3000, 2, "RR", "first-relevant"),
        (3000, 2, "RR", "positional"),
    ],
)
def test_a_single_long_query_has_the_bound_of_a_batch(n, grades, loss, map_):
    random = np.random.default_rng(13)
    relevance = (np.arange(n) % grades).astype(float)
    problem = MAPS[map_](random.normal(size=n) + 0.3 * relevance, relevance, loss)
    found, batch = solve(problem), solve_batch(problem.alone())
    assert found.value <= found.bound
    assert found.bound - found.value <= 4 * problem.alone().left[0]
    assert found.bound == pytest.approx(batch.bound[0], abs=4 * problem.alone().left[0])
    assert certify(problem, found).gap <= 4 * problem.alone().left[0]
    with pytest.raises(CertificateError):
        certify(problem, replace(found, bound=found.value - 1e-3))
    if map_ != "first-relevant":
        worse = solve(problem, Backwards())
        assert worse.value < worse.bound
        assert worse.bound == pytest.approx(found.bound, abs=1e-9)
        assert worse.status.name == "BOUNDED_GAP"


@dataclass(frozen=True)
class Backwards:
    """A solver that takes the worst scores first."""

    accepts = (RelevanceRanking,)
    package = "numpy"
    spec = "backwards"

    def reason_unsupported(self, problem):
        return None

    def solve(self, problem, warm_start=None):
        return SolverResult(np.argsort(problem.scores))


@pytest.mark.parametrize("loss", ["AP", "AUC", "nDCG"])
def test_bounds_of_batches_are_tight_for_long_queries(loss):
    """Nothing but rounding is open, which grows as n does: a few parts in 10^10 at 5,000 documents."""
    random = np.random.default_rng(14)
    for n in (500, 5000):
        relevance = (random.random(n) < 0.3).astype(float)
        batch = pairwise_ranking(random.normal(size=n) + relevance, relevance, loss, offsets=[0, n])
        answer = solve_batch(batch, ExactArgmax(compiled=True))
        assert set(answer.algorithm) == {"independent choices"}
        assert answer.bound[0] - answer.value[0] <= 1e-12 * n * max(1.0, batch.reach[0])
        assert answer.bound[0] >= batch[0].value_lower_bound(answer.order)
        if n == 500:
            whole = answer.proved(exactly=1)
            assert answer.bound[0] >= whole.value[0]
            assert whole.bound[0] >= answer.value[0]


@few(range(200), every=5, name="turns")
@pytest.mark.parametrize("loss", [*LOSSES])
def test_reach_is_above_what_any_order_earns(loss, turns):
    random = np.random.default_rng(15)
    scores, relevance, offsets = queries(random, [1, 5, 6, 40], 3, whole=True)
    batch = pairwise_ranking(scores, relevance, LOSSES[loss], offsets=offsets)
    for _ in turns:
        order = np.concatenate([random.permutation(n) for n in batch.sizes])
        judged = batch.judged(order)
        assert (np.abs(judged.value) <= batch.reach * (1 + 1e-12)).all()
    best = pairwise_ranking(np.zeros(scores.size), relevance, LOSSES[loss], offsets=offsets)
    assert (batch.reach >= -solve_batch(best.with_scores(-1e-9 * scores)).value - 1e-6).all()


def test_losses_have_names():
    with pytest.raises(ValueError, match="loss must be a name"):
        pairwise_ranking([1.0], [1.0], 7)
    named = get_relevance_loss("AP@3")
    assert (named.name, named.cutoff, get_relevance_loss(named)) == ("AP", 3, named)
    for wrong in ("MAP", "AUC@3", "AP@", "AP@0", "AP@x", ""):
        with pytest.raises(ValueError, match=r"unknown relevance loss|no cutoff"):
            get_relevance_loss(wrong)
    with pytest.raises(ValueError, match="max_grade"):
        pairwise_ranking([1.0], [5.0], "ERR")
    with pytest.raises(ValueError, match="must return"):
        pairwise_ranking([1.0, 2.0], [0, 1], TableLoss(lambda *counts: np.zeros(7)))
    steps = StepwiseLoss(lambda grade, grades, above: grade / (1.0 + above.sum(axis=0)))
    assert solve(pairwise_ranking([1.0, 2.0], [0, 1], steps)).value == pytest.approx(-1.0)
