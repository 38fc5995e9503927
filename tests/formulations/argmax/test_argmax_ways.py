"""The ways of the argmax, each on problems that it takes: values of brute force and scipy at any room or threads."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import ranking, solve, solve_batch
from formulations.argmax.batch import RANGE_ROWS
from formulations.argmax.layout import LOCAL, Answers, Layout, find_cones
from formulations.argmax.local_search import SEVERAL, search_range
from formulations.argmax.order_ideals import CHAINS
from formulations.errors import CertificateError
from formulations.parallel import at_most
from formulations.problems.ranking import RankTwoBatch
from formulations.solvers.exact import ExactArgmax
from formulations.testing.instances import brute_force

POSITIONS = np.arange(1.0, 2001.0)
DECAYS = {
    "linear": lambda n: (n + 1 - POSITIONS[:n]) / n,
    "power": lambda n: POSITIONS[:n] ** -0.5,
    "reciprocal": lambda n: 1 / POSITIONS[:n],
    "plateaus": lambda n: np.floor((n - POSITIONS[:n]) / 4) / n,
    "cut": lambda n: np.where(POSITIONS[:n] <= 7, 1 / POSITIONS[:n], 0.0),
}
LOG = 1 / np.log2(POSITIONS + 1)
DISCOUNTS = {
    "nDCG": lambda n: LOG[:n],
    "nDCG@7": lambda n: np.where(POSITIONS[:n] <= 7, LOG[:n], 0.0),
    "P@5": lambda n: np.where(POSITIONS[:n] <= 5, 0.2, 0.0),
    "ERU": lambda n: 2.0 ** ((1 - POSITIONS[:n]) / 4),
}


def drawn(random, n, gains, position_weights="power", discount="nDCG", scale=1.0):
    """One query: n documents, `gains` distinct gains at most, scores of their size."""
    gain = random.integers(0, gains, n) / max(gains - 1, 1)
    scores = scale * (gain * random.normal(1, 0.5) + random.normal(size=n)) / 2
    return ranking(
        scores, gain, discount=DISCOUNTS[discount](n), position_weights=DECAYS[position_weights](n), offsets=[0, n]
    )


def assert_scipy_agrees(problems, solver="exact"):
    answer = solve_batch(problems, solver)
    for query in range(len(problems)):
        known = solve(problems[query], "scipy").value
        assert answer.value[query] == pytest.approx(known, abs=problems[query].rounding)
    return answer


steps = st.lists(st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0, 2.0]), min_size=2, max_size=9)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(decay_steps=steps, discount_steps=steps)
def test_cones_span_the_steps_that_remain(decay_steps, discount_steps):
    n = min(len(decay_steps), len(discount_steps))
    decay, discount = (np.cumsum(values[:n][::-1])[::-1].copy() for values in (decay_steps, discount_steps))
    low, high = np.zeros(n, np.int32), np.zeros(n, np.int32)
    stop = find_cones(discount, decay, low, high)
    moves = np.column_stack([-np.diff(decay), -np.diff(discount)])
    assert not moves[stop:].any()
    assert stop == 0 or moves[stop - 1].any()
    for p in range(stop):
        angles = np.arctan2(moves[:, 1], moves[:, 0])
        left = [i for i in range(p, n - 1) if moves[i].any()]
        assert angles[low[p]] == pytest.approx(angles[left].min())
        assert angles[high[p]] == pytest.approx(angles[left].max())
        assert min(low[p], high[p]) >= p


numbers = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.5, -0.25, 0.3, 2.0])
falling = st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.3, 1.0, 1.5]), min_size=1, max_size=9).map(
    lambda values: sorted(values, reverse=True)
)


@settings(max_examples=250, derandomize=True, deadline=None)
@given(
    documents=st.lists(st.tuples(numbers, st.sampled_from([0.0, 1.0, -1.0, 0.5, -3.0])), min_size=1, max_size=6),
    discount=falling,
    position_weights=falling,
    room=st.sampled_from([2, 12, 40, None]),
    scale=st.sampled_from([1.0, 1e-9, 1e9]),
)
def test_no_order_beats_any_way(documents, discount, position_weights, room, scale):
    """Negative gains, more weights than documents, ties and zeros everywhere; scores and gains of different size."""
    scores, gain = np.array(documents).T
    problem = ranking(scores * scale, gain, discount=discount, position_weights=position_weights)
    solution = solve(problem, ExactArgmax(max_states=room))
    assert solution.value == pytest.approx(brute_force(problem), abs=problem.rounding)
    assert -problem.rounding <= solution.gap <= problem.rounding


WAYS = {
    "any order": lambda random: ranking(
        random.normal(size=6), random.normal(size=6), discount=np.ones(6), position_weights=np.ones(6), offsets=[0, 6]
    ),
    "one sort": lambda random: drawn(random, 30, 3).with_scores(np.full(30, random.normal())),
    "two sorts": lambda random: drawn(random, 9, 3, scale=8.0),
    "merge": lambda random: drawn(random, 60, 2, "linear"),
    "order ideals": lambda random: drawn(random, 60, 5, "power", "nDCG"),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_agrees_with_scipy_where_it_is_taken(way):
    random = np.random.default_rng([7, len(way)])
    answers = [assert_scipy_agrees(WAYS[way](random)) for _ in range(25)]
    assert way in {answer.algorithm[0] for answer in answers}


@pytest.mark.parametrize(("position_weights", "way"), [("reciprocal", "assignment"), ("cut", "few candidates")])
@pytest.mark.parametrize("room", [2, 40, 200, 1000])
def test_a_cap_on_states_changes_no_value(position_weights, way, room):
    random = np.random.default_rng(room)
    discount = {"assignment": "ERU", "few candidates": "P@5"}[way]
    taken = set()
    for _ in range(12):
        problems = drawn(random, 70, 5, position_weights, discount)
        taken.add(assert_scipy_agrees(problems, ExactArgmax(max_states=room)).algorithm[0])
    assert room > 40 or way in taken


@pytest.mark.every(3)
@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("position_weights", DECAYS)
def test_long_lists_of_few_and_of_many_gains(position_weights, discount):
    random = np.random.default_rng([len(position_weights), len(discount)])
    for n, gains in ((150, 2), (150, 6), (80, CHAINS), (60, 200)):
        assert_scipy_agrees(drawn(random, n, gains, position_weights, discount))


def test_many_gains_are_split_and_merged_part_by_part():
    """More distinct gains than a merge takes, but parts that have few."""
    random = np.random.default_rng(3)
    gain = np.repeat(np.arange(3.0 * CHAINS), 6)
    n, ways = gain.size, set()
    for _ in range(10):
        scores = -4 * gain + random.normal(size=n) * 3
        problems = ranking(
            scores, gain, discount=DISCOUNTS["nDCG"](n), position_weights=DECAYS["linear"](n), offsets=[0, n]
        )
        ways.add(assert_scipy_agrees(problems).algorithm[0])
    assert ways & {"merge", "order ideals"}


@pytest.mark.study
def test_a_thousand_documents():
    random = np.random.default_rng(11)
    for decay in ("power", "reciprocal"):
        answer = assert_scipy_agrees(drawn(random, 1000, 5, decay))
        assert answer.algorithm[0] in ("order ideals", "assignment")
        assert answer.proved().bound[0] == pytest.approx(answer.value[0], abs=answer.problems[0].rounding)


def searched(problems):
    """Orders, values and bounds by local search, whatever the lengths of the queries."""
    layout = Layout.from_arrays(problems.gain, problems.discount, problems.position_weights, problems.offsets)
    found = Answers.empty(problems.offsets, LOCAL)
    search_range(problems.scores, layout, 0, len(problems), 0, found)
    return found[:3]


@settings(max_examples=250, derandomize=True, deadline=None)
@given(
    documents=st.lists(st.tuples(numbers, st.sampled_from([0.0, 1.0, -1.0, 0.5, -3.0])), min_size=2, max_size=7),
    discount=falling,
    position_weights=falling,
    scale=st.sampled_from([1.0, 1e-9, 1e9]),
)
def test_no_order_beats_local_search(documents, discount, position_weights, scale):
    scores, gain = np.array(documents).T
    weights = {"discount": [*discount, 0.0], "position_weights": [*position_weights, 0.0]}
    problems = ranking(scores * scale, gain, **weights, offsets=[0, gain.size])
    if not (np.diff(problems.discount).any() or np.diff(problems.position_weights).any()):
        return
    order, (value,), (bound,) = searched(problems)
    best, rounding = brute_force(problems[0]), problems[0].rounding
    assert sorted(order) == list(range(gain.size))
    assert value == pytest.approx(best, abs=rounding)
    assert best - rounding <= bound <= best + 100 * rounding


@pytest.mark.every(3)
@pytest.mark.parametrize("discount", DISCOUNTS)
@pytest.mark.parametrize("position_weights", DECAYS)
@pytest.mark.parametrize("scores", ["real", "few values", "those of the gains", "equal in a gain"])
def test_local_search_is_as_good_as_an_assignment(scores, position_weights, discount):
    random = np.random.default_rng([len(scores), len(position_weights), len(discount)])
    for n, gains in ((50, SEVERAL), (100, 3), (200, 5), (400, 2)):
        problems = drawn(random, n, gains, position_weights, discount, scale=random.choice([0.01, 0.3, 3.0]))
        values = {
            "real": problems.scores,
            "few values": np.round(2 * problems.scores) / 2,
            "those of the gains": problems.gain,
            "equal in a gain": -np.round(2 * problems.gain) / 2,
        }
        problems = problems.with_scores(values[scores])
        _, (value,), (bound,) = searched(problems)
        known, rounding = solve(problems[0], "scipy").value, problems[0].rounding
        assert value == pytest.approx(known, abs=rounding)
        assert known - rounding <= bound


def test_the_search_of_a_query_does_not_depend_on_those_before():
    small = drawn(np.random.default_rng(13), 300, 4)
    large = small.with_scores(1e60 * small.scores)
    names = ("scores", "gain", "discount", "position_weights")
    for n in (10, 300):  # a shorter query leaves scores of the one before in the buffer
        last = drawn(np.random.default_rng(14), n, 4)
        both = [np.append(getattr(large, name), getattr(last, name)) for name in names]
        order, value, bound = searched(RankTwoBatch(*both, offsets=np.array([0, 300, 300 + n])))
        alone = searched(last)
        np.testing.assert_array_equal(order[300:], alone[0])
        assert (value[1], bound[1]) == (alone[1][0], alone[2][0])


def test_long_lists_without_a_cutoff_are_proved():
    """Forty thousand documents of three and of five gains; the proof is that of `solve`, not the search's."""
    random = np.random.default_rng(12)
    positions = np.arange(1.0, 40001.0)
    for gains, exponent in ((3, 0.5), (5, 1.0)):
        gain = np.minimum(random.geometric(0.5, positions.size) - 1.0, gains - 1)
        problems = ranking(
            random.normal(size=gain.size) / 10, gain, discount=1 / np.log2(positions + 1) / 1000,
            position_weights=positions**-exponent, offsets=[0, gain.size],
        )  # fmt: skip
        assert solve_batch(problems).algorithm[0] == "local search"
        solution = solve(problems[0])
        assert solution.gap <= problems[0].rounding


def several(random, lengths, position_weights="power", discount="nDCG"):
    parts = [drawn(random, n, 4, position_weights, discount) for n in lengths]
    columns = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("scores", "gain", "discount", "position_weights")
    )
    return RankTwoBatch(*columns, offsets=np.append(0, np.cumsum(lengths)))


@pytest.mark.parametrize("discount", DISCOUNTS)
def test_threads_and_neighbors_change_no_bit(discount):
    random = np.random.default_rng(5)
    lengths = random.integers(1, 90, 3 * RANGE_ROWS // 40)
    problems = several(random, lengths, discount=discount)
    assert problems.scores.size > 2 * RANGE_ROWS
    answers = []
    for threads in (1, 3):
        with at_most(threads):
            answer = solve_batch(problems)
            answers.append((answer.order, answer.value, answer.bound, answer.ways, answer.proved().bound))
    for one, three in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, three)
    order, value = answers[0][:2]
    for query in range(0, lengths.size, 37):
        low, high = problems.offsets[query : query + 2]
        columns = (getattr(problems, name)[low:high] for name in ("scores", "gain", "discount", "position_weights"))
        alone = solve_batch(RankTwoBatch(*columns, offsets=[0, high - low]))
        np.testing.assert_array_equal(alone.order, order[low:high])
        assert alone.value[0] == value[query]


@pytest.mark.parametrize("position_weights", DECAYS)
def test_shuffling_moves_the_answer_with_the_documents(position_weights):
    """Where no two documents tie, each keeps its position; equal ones share theirs."""
    random = np.random.default_rng(8)
    problems = drawn(random, 80, 3, position_weights)
    twins = np.concatenate([problems.scores[:40], problems.scores[:40]])
    gains = np.concatenate([problems.gain[:40], problems.gain[:40]])
    for scores, gain, share in ((problems.scores, problems.gain, 1), (twins, gains, 2)):
        base = RankTwoBatch(scores, gain, problems.discount, problems.position_weights, problems.offsets)
        answer = solve_batch(base)
        new = random.permutation(80)
        moved = solve_batch(RankTwoBatch(scores[new], gain[new], base.discount, base.position_weights, base.offsets))
        assert moved.value[0] == pytest.approx(answer.value[0], rel=1e-13)
        back = np.empty(80)
        back[new] = base.position_weights[moved.position]
        weights = base.position_weights[answer.position], back
        total, other = (np.sort(one.reshape(share, -1), axis=0) for one in weights)
        np.testing.assert_array_equal(total, other)


def test_prices_prove_all_answers_and_a_sample_in_rational_numbers():
    random = np.random.default_rng(9)
    problems = several(random, [1, 2, 30, 7, 45, 12], position_weights="reciprocal", discount="ERU")
    answer = solve_batch(problems).proved(exactly=6)
    for query in range(len(problems)):
        rounding = problems[query].rounding
        assert abs(answer.bound[query] - answer.value[query]) <= rounding
        assert answer[query].bound == pytest.approx(answer.bound[query], abs=rounding)


@pytest.mark.parametrize("position_weights", ["power", "cut"])
def test_an_order_that_is_not_optimal_is_refuted(position_weights):
    problems = drawn(np.random.default_rng(10), 40, 3, position_weights)
    answer = solve_batch(problems)
    swapped = answer.order.copy()
    swapped[[0, 6]] = swapped[[6, 0]]
    wrong = replace(answer, order=swapped)
    problem = problems[0]
    rounding = problem.rounding
    assert problem.value(swapped[: problem.positions]) < answer.value[0] - 1e-6
    assert wrong.proved().bound[0] >= answer.value[0] - rounding
    with pytest.raises(CertificateError):
        wrong.proved(exactly=1)


def test_an_honest_answer_that_is_not_optimal_keeps_its_gap():
    problems = drawn(np.random.default_rng(10), 40, 3, "power")
    answer = solve_batch(problems)
    swapped = answer.order.copy()
    swapped[[0, 6]] = swapped[[6, 0]]
    value = problems[0].value(swapped[: problems[0].positions])
    honest = replace(answer, order=swapped, value=np.where(np.arange(len(answer)) == 0, value, answer.value))
    proved = honest.proved(exactly=len(answer))
    assert proved.bound[0] >= answer.value[0] - problems[0].rounding


def test_weak_duality_holds_for_any_prices_without_the_matrix():
    random = np.random.default_rng(12)
    for n, k in ((9, 9), (9, 4)):
        gain, scores = random.normal(size=n), random.normal(size=n)
        problem = ranking(scores, gain, discount=DISCOUNTS["nDCG"](k), position_weights=DECAYS["power"](k))
        for _ in range(5):
            prices = random.normal(size=n)
            assert problem.bound(prices) == pytest.approx(problem.assignment().bound(prices), rel=1e-13)
        order = solve(problem).order
        assert problem.bound(problem.recover_dual(order)) == pytest.approx(problem.value(order), abs=problem.rounding)
        for worse in pairwise(random.permutation(n) for _ in range(4)):
            assert problem.bound(problem.recover_dual(worse[0][:k])) >= problem.value(order) - problem.rounding
