"""The exact argmax agrees with brute force, with scipy and with itself on shuffled documents, by every way it takes."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems.few import few
from scipy.optimize import linear_sum_assignment

from formulations import ranking, solve, solve_batch
from formulations.argmax.assignment import assign, greedy_order, order_prices
from formulations.argmax.layout import WAYS, find_cones
from formulations.problems.ranking import RankTwoBatch
from formulations.solvers.exact import ExactArgmax
from formulations.testing.instances import brute_force
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures.notation import parse

DECAYS = {
    "linear": lambda n, k: np.maximum(k + 1 - np.arange(1.0, n + 1), 0),
    "power": lambda n, k: np.arange(1.0, n + 1) ** -0.5,
    "reciprocal": lambda n, k: 1 / np.arange(1.0, n + 1),
    "log": lambda n, k: 1 / np.log2(np.arange(2.0, n + 2)),
    "loglog": lambda n, k: 1 / np.log2(np.log2(np.arange(2.0, n + 2)) + 1),
    "cut": lambda n, k: (1 / np.log2(np.arange(2.0, n + 2)))[: min(k, n)],
}

DISCOUNTS = {
    "nDCG": lambda n, k: 1 / np.log2(np.arange(2.0, n + 2)),
    "nDCG@k": lambda n, k: (1 / np.log2(np.arange(2.0, n + 2)))[: min(k, n)],
    "P@k": lambda n, k: np.full(min(k, n), 1 / k),
    "WTA": lambda n, k: np.ones(1),
    "ERU": lambda n, k: 2.0 ** ((1 - np.arange(1.0, n + 1)) / 4),
    "AUC": lambda n, k: n - np.arange(1.0, n + 1),
}


def query(random, n, grades, ties):
    """Scores (on a grid of 4 values where `ties`) and gains 2^y - 1 of falling frequency."""
    scores = random.integers(0, 4, n) / 4 if ties else random.normal(size=n)
    return scores, 2.0 ** np.minimum(random.geometric(0.5, n) - 1, grades - 1) - 1


weights = st.lists(st.sampled_from([0.0, 0.1, 0.3, 0.5, 1.0, 3.0]), min_size=1, max_size=7).map(
    lambda values: sorted(values, reverse=True)
)
numbers = st.one_of(st.sampled_from([0.0, 1.0, -1.0, 0.1, 0.3]), st.floats(-4, 4, width=16))


@settings(max_examples=300, derandomize=True, deadline=None)
@given(
    documents=st.lists(st.tuples(numbers, st.sampled_from([0.0, 1.0, 3.0, 0.5])), min_size=1, max_size=6),
    discount=weights,
    position_weights=weights,
    exponent=st.sampled_from([0, 0, -30, 30]),
    lift=st.sampled_from([0.0, 0.0, -0.6]),
)
def test_no_order_beats_the_argmax(documents, discount, position_weights, exponent, lift):
    scores, gain = np.array(documents).T * 2.0**exponent
    if lift:  # beyond the end of an array weights are zero, which must not be a rise
        discount, position_weights = zip(*zip(discount, position_weights, strict=False), strict=True)
    problem = ranking(
        scores, gain, discount=np.array(discount) + lift, position_weights=np.array(position_weights) + lift
    )
    solution = solve(problem, "exact")
    assert solution.value == pytest.approx(brute_force(problem), abs=problem.rounding)
    assert -problem.rounding <= solution.gap <= problem.rounding


@pytest.mark.every(5)
@pytest.mark.parametrize(("position_weights", "discount"), list(product(DECAYS, DISCOUNTS)))
def test_exact_and_scipy_agree_on_longer_lists(position_weights, discount):
    random = np.random.default_rng([len(position_weights), len(discount), 11])
    for n, k, grades, ties in ((40, 10, 2, False), (40, 10, 5, True), (90, 5, 3, True), (25, 40, 4, False)):
        scores, gain = query(random, n, grades, ties)
        problem = ranking(
            scores, gain, discount=DISCOUNTS[discount](n, k), position_weights=DECAYS[position_weights](n, k)
        )
        exact, scipy = solve(problem, "exact"), solve(problem, "scipy")
        assert exact.value == pytest.approx(scipy.value, abs=problem.rounding)
        assert exact.gap <= problem.rounding


def batch(random, sizes, position_weights="power", discount="nDCG", grades=3, ties=False):
    parts = [query(random, n, grades, ties) for n in sizes]
    scores, gain = (np.concatenate(column) for column in zip(*parts, strict=True))
    return ranking(
        scores, gain, offsets=np.cumsum([0, *sizes]),
        discount=lambda n: DISCOUNTS[discount](n, 10), position_weights=lambda n: DECAYS[position_weights](n, 10),
    )  # fmt: skip


@pytest.mark.parametrize("solver", ["exact", "scipy", "ortools"])
def test_a_batch_is_its_queries_one_by_one(solver):
    sizes = [1, 2, 7, 30, 1, 13]
    problems = batch(np.random.default_rng(1), sizes, ties=True)
    answer = solve_batch(problems, solver)
    assert len(answer) == len(problems) == len(sizes)
    for q, n in enumerate(sizes):
        alone = solve(problems[q], "exact")
        rows = slice(problems.offsets[q], problems.offsets[q + 1])
        assert answer.value[q] == pytest.approx(alone.value, abs=problems[q].rounding)
        assert answer.bound[q] >= alone.value - problems[q].rounding
        assert answer[q].value == pytest.approx(answer.value[q], abs=problems[q].rounding)
        assert sorted(answer.order[rows]) == list(range(n))
        assert answer.position[rows][answer.order[rows]].tolist() == list(range(n))


def test_a_batch_at_other_scores_is_the_batch_made_anew():
    random = np.random.default_rng(2)
    problems = batch(random, [5, 9])
    scores = random.normal(size=14)
    moved = problems.with_scores(scores)
    anew = ranking(
        scores, problems.gain, offsets=problems.offsets,
        discount=lambda n: DISCOUNTS["nDCG"](n, 9), position_weights=lambda n: DECAYS["power"](n, 9),
    )  # fmt: skip
    np.testing.assert_array_equal(solve_batch(moved).value, solve_batch(anew).value)
    for wrong in (scores[:3], np.full(14, np.nan), np.full(14, 1e151)):
        with pytest.raises(ValueError, match=r"scores|profits"):
            problems.with_scores(wrong)


REACHED = {
    "any order": {"position_weights": np.ones(8), "discount": np.ones(8)},
    "one sort": {"position_weights": DECAYS["log"](8, 8), "discount": 2 * DECAYS["log"](8, 8)},
    "two sorts": {"position_weights": DECAYS["power"](8, 8), "discount": DECAYS["log"](8, 8)},
    "merge": {"position_weights": DECAYS["linear"](8, 8), "discount": DECAYS["log"](8, 8)},
    "order ideals": {"position_weights": DECAYS["linear"](8, 8), "discount": DECAYS["log"](8, 8)},
}


@few(range(60), every=4, name="turns")
@pytest.mark.parametrize("way", REACHED)
def test_every_way_is_reached_and_right(way, turns):
    random = np.random.default_rng(3)
    seen = set()
    for _ in turns:
        n = 7
        scores, gain = query(random, n, 2 if way == "merge" else 4, ties=False)
        if way in ("merge", "order ideals"):
            scores = scores / 10
        part = {name: values[:n] for name, values in REACHED[way].items()}
        problem = ranking(scores, gain / 8, **part)
        solution = solve(problem, "exact")
        seen.add(solution.message)
        assert solution.value == pytest.approx(brute_force(problem), abs=problem.rounding)
    assert way in seen


@pytest.mark.study
@pytest.mark.parametrize(("cut", "way"), [(None, "assignment"), (8, "few candidates")])
def test_without_room_for_states_an_assignment_is_solved(cut, way):
    random = np.random.default_rng(4)
    ways = set()
    for _ in range(30):
        scores, gain = query(random, 60, 5, ties=False)
        weights = [DECAYS["linear"](60, 70) / 20, DISCOUNTS["nDCG"](60, 60)]
        discount, decay = weights[1][:cut], weights[0][:cut]
        problems = ranking(scores, gain, discount=discount, position_weights=decay, offsets=[0, 60])
        small, large = solve_batch(problems, ExactArgmax(max_states=2)), solve_batch(problems, ExactArgmax())
        ways.update(small.algorithm)
        np.testing.assert_allclose(small.value, large.value, atol=problems[0].rounding)
        assert small.value <= small.bound <= small.value + problems[0].rounding * 60
        assert sorted(small.order) == list(range(60))
        assert large.algorithm[0] not in ("assignment", "few candidates")
    assert way in ways
    assert ways <= {*WAYS[:-2], way}


@pytest.mark.parametrize(("position_weights", "ties"), list(product(DECAYS, [False, True])))
def test_shuffling_documents_changes_no_value(position_weights, ties):
    random = np.random.default_rng(5)
    problems = batch(random, [50, 31], position_weights=position_weights, ties=ties)
    value = solve_batch(problems).value
    for _ in range(5):
        new = np.concatenate([random.permutation(50), 50 + random.permutation(31)])
        shuffled = ranking(
            problems.scores[new], problems.gain[new], offsets=problems.offsets,
            discount=lambda n: DISCOUNTS["nDCG"](n, 10), position_weights=lambda n: DECAYS[position_weights](n, 10),
        )  # fmt: skip
        np.testing.assert_allclose(solve_batch(shuffled).value, value, rtol=1e-13, atol=problems[0].rounding)


def test_the_bound_of_a_batch_holds_in_rational_numbers():
    from fractions import Fraction

    from formulations.certificates.rational import rank_two_evidence

    random = np.random.default_rng(6)
    for decay, discount in product(DECAYS, DISCOUNTS):
        problems = batch(random, [30, 12], position_weights=decay, discount=discount, ties=True)
        near = problems.with_scores(problems.scores + random.normal(size=42) * 1e-15)
        for each in (problems, near):
            answer = solve_batch(each)
            for q in range(2):
                optimum = rank_two_evidence(each[q], answer[q].x, None).bound
                assert Fraction(answer.bound[q]) >= optimum


def test_queries_without_scores_or_weights_are_solved():
    problems = ranking(np.zeros(6), [1, 0, 0, 3, 1, 0], offsets=[0, 2, 6], discount=[1.0, 0.5], position_weights=[0.0])
    np.testing.assert_allclose(solve_batch(problems).value, [-0.5, 0.0])
    silent = ranking(np.ones(3), np.ones(3), offsets=[0, 3], discount=[0.0], position_weights=[0.0])
    assert solve_batch(silent).value.tolist() == [0.0]
    assert solve_batch(silent)[0].gap == 0.0


# The exact argmax where position weights end in numbers whose products are zero.


def best(scores, gain, discount, position_weights):
    profit = np.outer(position_weights, scores) - np.outer(discount, gain)
    return profit[linear_sum_assignment(profit, maximize=True)].sum()


def test_a_last_step_of_the_least_number_there_is():
    numbers = ([1.08530387, -0.01305833, 0.17019067, 1.5943308], [0.0, 0.0, 4.0, 4.0])
    weights = {"discount": [0.4, 0.0, 0.0, 0.0], "position_weights": [1.0, 0.5, 5e-324, 0.0]}
    solution = solve(ranking(*numbers, **weights), "exact")
    assert solution.value == pytest.approx(best(*numbers, *weights.values()), rel=1e-12)
    assert solution.bound == pytest.approx(solution.value, rel=1e-12)


@pytest.mark.parametrize(("alpha", "documents"), [(1.5, 540), (2, 1080), (2, 1500)])
def test_discounts_that_halve_at_every_position(alpha, documents):
    rng = np.random.default_rng(documents)
    measure, decay = parse(f"ERU(alpha={alpha})"), parse_position_weights("power(0.5)@10")
    scores = rng.normal(size=documents)
    gain = np.maximum(rng.integers(0, 5, documents) - 3.0, 0.0)
    discount, weights = measure.discount(documents), decay.weights(documents, measure)
    solution = solve(ranking(scores, gain, discount=discount, position_weights=weights), "exact")
    assert solution.value == pytest.approx(best(scores, gain, discount, weights), rel=1e-12)


@pytest.mark.study
@pytest.mark.parametrize("fall", [0.5, 3.0, 40.0])
def test_exponential_weights_of_any_pace(fall):
    """Both weights, or one of them, fall by e^fall a position, with level stretches and a negative end."""
    rng = np.random.default_rng(0)
    for trial in range(60):
        n = int(rng.integers(2, 60))
        pace = np.exp(-np.minimum(fall * np.arange(n), 745.0))
        other = [pace, 1 / np.sqrt(1.0 + np.arange(n)), np.where(np.arange(n) < n // 2, pace, pace[-1])][trial % 3]
        other = np.append(other[:-1], -other[0]) if trial % 5 == 4 else other
        discount, decay = (pace, other) if trial % 2 else (other, pace)
        scores, gain = rng.normal(size=n), rng.integers(0, [2, 3, 30][trial % 3], n).astype(float)
        batch = RankTwoBatch(scores, gain, discount, decay, np.array([0, n]))
        answer = solve_batch(batch, "exact")
        optimum = best(scores, gain, discount, decay)
        assert answer.value[0] == pytest.approx(optimum, rel=1e-12, abs=1e-12)
        assert answer.bound[0] >= optimum - 1e-15 * abs(optimum)
        order = answer.order
        assert answer.value[0] == pytest.approx(decay @ scores[order] - discount @ gain[order], rel=1e-12, abs=1e-13)


# An assignment by shortest paths among all documents: the value of scipy for any gains, ties and cuts.


POSITIONS = np.arange(1.0, 500.0)
WEIGHTS = {
    "power": lambda n: POSITIONS[:n] ** -0.5,
    "log": lambda n: 1 / np.log2(POSITIONS[:n] + 1),
    "steps": lambda n: 1.0 * (POSITIONS[:n] <= n / 3) + (POSITIONS[:n] <= n / 9) + (POSITIONS[:n] <= 2),
    "cut": lambda n: np.where(POSITIONS[:n] <= 6, 1 / POSITIONS[:n], 0.0),
    "level": lambda n: np.where(POSITIONS[:n] <= 4, 1.0, 0.0),
}


@pytest.mark.every(7)
@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("position_weights", WEIGHTS)
@pytest.mark.parametrize("discount", WEIGHTS)
def test_any_gains_are_assigned_as_well_as_by_scipy(position_weights, discount, anew):
    random = np.random.default_rng([len(position_weights), len(discount)])
    for n, levels in ((2, 2), (6, 3), (9, 2), (17, 0), (40, 4), (70, 0)):
        for _ in range(5):
            scores, gain = random.normal(size=n), random.normal(size=n)
            if levels:
                scores, gain = np.round(scores * levels) / levels, random.integers(0, levels, n) / 2.0
            a, c = WEIGHTS[discount](n), WEIGHTS[position_weights](n)
            stop = find_cones(a, c, np.zeros(n, np.int32), np.zeros(n, np.int32))
            if stop == 0:
                continue
            order = np.zeros(n, np.int64)
            left_open = assign(scores, gain, a, c, stop, anew, order)
            assert sorted(order) == list(range(n))
            problem = ranking(scores, gain, discount=a, position_weights=c)
            value = c @ scores[order] - a @ gain[order]
            assert value == pytest.approx(solve(problem, "scipy").value, abs=problem.rounding)
            assert 0 <= left_open <= problem.rounding


@pytest.mark.parametrize(("position_weights", "discount"), [("power", "log"), ("cut", "power"), ("steps", "cut")])
def test_prices_of_an_order_let_no_position_want_one_before_it(position_weights, discount):
    random = np.random.default_rng(len(position_weights))
    for n in (3, 12, 50):
        scores, gain, order = random.normal(size=n), random.normal(size=n), np.zeros(n, np.int64)
        a, c = WEIGHTS[discount](n), WEIGHTS[position_weights](n)
        stop = find_cones(a, c, np.zeros(n, np.int32), np.zeros(n, np.int32))
        above_a, above_c = a - a[stop], c - c[stop]
        for ahead in (0, 2):
            value = greedy_order(scores, gain, a, c, stop, ahead, order)
            assert sorted(order) == list(range(n))
            assert value == pytest.approx(above_c @ scores[order] - above_a @ gain[order], abs=1e-12)
        s, b, price = scores[order], gain[order], np.zeros(n)
        order_prices(s, b, above_a, above_c, stop, price)
        profit = np.outer(above_c, s) - np.outer(above_a, b) - price
        assert price.min() >= 0
        assert not price[stop:].any()
        for p in range(stop):
            assert np.all(profit[p, :p] <= profit[p, p] + 1e-12)


@pytest.mark.parametrize("position_weights", WEIGHTS)
@pytest.mark.parametrize("gains", [17, 100, 0])
def test_many_gains_are_proved_by_prices(position_weights, gains):
    """More distinct gains than are merged, in one batch with short lists of few."""
    random = np.random.default_rng([gains, len(position_weights)])
    lengths = np.array([120, 20, 35, 3])
    n = lengths.sum()
    gain = random.integers(0, gains, n) / gains if gains else random.normal(size=n)
    gain[120:] = np.round(gain[120:])
    problems = ranking(
        0.3 * random.normal(size=n), gain, discount=lambda n: 1 / np.log2(POSITIONS[:n] + 1),
        position_weights=WEIGHTS[position_weights],
        offsets=np.append(0, np.cumsum(lengths)),
    )  # fmt: skip
    answer = solve_batch(problems)
    proved = answer.proved().bound
    for query in range(len(problems)):
        rounding = problems[query].rounding
        assert answer.value[query] == pytest.approx(solve(problems[query], "scipy").value, abs=rounding)
        assert proved[query] == pytest.approx(answer.value[query], abs=rounding)
        assert answer.value[query] <= answer.bound[query] <= answer.value[query] + rounding * lengths[query]
