"""The exact argmax agrees with brute force, with scipy and with itself on shuffled documents, by every way it takes."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problems.few import few

from formulations import ranking, solve, solve_batch
from formulations.argmax.layout import WAYS
from formulations.solvers.exact import ExactArgmax
from formulations.testing.instances import brute_force

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
        np.testing.assert_array_equal(answer.placed_weights[rows][answer.order[rows]], problems.position_weights[rows])


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

    from formulations.certificates.rational import ranked

    random = np.random.default_rng(6)
    for decay, discount in product(DECAYS, DISCOUNTS):
        problems = batch(random, [30, 12], position_weights=decay, discount=discount, ties=True)
        near = problems.with_scores(problems.scores + random.normal(size=42) * 1e-15)
        for each in (problems, near):
            answer = solve_batch(each)
            for q in range(2):
                optimum = ranked(each[q], answer[q].x, None).bound
                assert Fraction(answer.bound[q]) >= optimum


def test_queries_without_scores_or_weights_are_solved():
    problems = ranking(np.zeros(6), [1, 0, 0, 3, 1, 0], offsets=[0, 2, 6], discount=[1.0, 0.5], position_weights=[0.0])
    np.testing.assert_allclose(solve_batch(problems).value, [-0.5, 0.0])
    silent = ranking(np.ones(3), np.ones(3), offsets=[0, 3], discount=[0.0], position_weights=[0.0])
    assert solve_batch(silent).value.tolist() == [0.0]
    assert solve_batch(silent)[0].gap == 0.0
