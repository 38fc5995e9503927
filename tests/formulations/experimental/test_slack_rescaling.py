"""The product of loss and margin: true bounds, good orders, every solver of rankings, one query and many."""

from itertools import permutations

import numpy as np
import pytest
from problems.few import few

from formulations import InvalidProblemError, RankTwoAssignment, certify, function_solver
from formulations.experimental import slack_rescaled_ranking, solve_slack_rescaled


def drawn(seed, documents=None):
    """Scores, gains, discount and decay; ties, cuts and scores that agree with the gains are among them."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8)) if documents is None else documents
    gain = 2.0 ** rng.integers(0, 4, n) - 1
    scores = rng.normal(size=n) if seed % 3 else rng.integers(-1, 2, n).astype(float)
    scores = gain + 0.1 * scores if seed % 7 == 0 else scores * 10.0 ** rng.integers(-3, 4)
    k = int(rng.integers(1, n + 1))
    discount = np.where(np.arange(n) < k, 1.0 / np.log2(np.arange(n) + 2), 0.0)
    decay = np.arange(1.0, n + 1) ** -0.5 if seed % 2 else np.maximum(k - np.arange(n), 0.0)
    return scores, gain, discount, decay


def made(seed, documents=None):
    scores, gain, discount, decay = drawn(seed, documents)
    return slack_rescaled_ranking(scores, gain, discount=discount, position_weights=decay)


def brute(problem):
    orders = permutations(range(problem.documents), problem.positions)
    return max(problem.value(np.array(order)) for order in orders)


@few(range(140), every=5)
def test_the_bound_is_always_true_and_the_order_nearly_always_best(seeds):
    best, gaps, calls = 0, [], []
    for seed in seeds:
        problem = made(seed)
        solution, optimum = solve_slack_rescaled(problem), brute(problem)
        slack = 1e-9 * max(optimum, problem.scale * 1e-6)
        assert solution.value <= optimum + slack <= solution.bound + 2 * slack, seed
        best += solution.value >= optimum - slack
        if seed % 7:  # else the scores agree with the gains, and there is next to nothing to be had
            gaps.append(solution.gap / max(solution.bound, 1e-300))
        certify(problem, solution)
        calls.append(int(solution.message.split()[0]))
    assert best >= 27 / 28 * len(seeds)
    assert np.mean(calls) <= 9
    assert np.median(gaps) <= 0.02


def test_longer_lists_leave_a_smaller_gap():
    for documents, most in ((20, 5e-3), (100, 5e-4)):
        gaps = []
        for seed in (seed for seed in range(20) if seed % 7):
            solution = solve_slack_rescaled(made(seed, documents))
            gaps.append(solution.gap / max(solution.bound, 1e-300))
        assert np.mean(gaps) <= most


def test_every_solver_of_rankings_finds_the_vertices():
    problem = made(5, 6)
    answers = {spec: solve_slack_rescaled(problem, spec) for spec in ("exact", "scipy", "highs", "networkx")}
    for spec, solution in answers.items():
        assert solution.value == pytest.approx(answers["exact"].value, rel=1e-9), spec
        assert solution.bound == pytest.approx(answers["exact"].bound, rel=1e-6), spec
        certify(problem, solution)
    mine = function_solver(lambda ranking: np.arange(ranking.positions), accepts=RankTwoAssignment)
    solution = solve_slack_rescaled(problem, mine)
    assert solution.value <= brute(problem) <= solution.bound


def test_a_batch_is_its_queries():
    parts = [drawn(seed, 3 + seed) for seed in range(1, 12)]
    offsets = np.cumsum([0] + [part[0].size for part in parts])
    scores, gain = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    sizes = {part[0].size: part for part in parts}
    batch = slack_rescaled_ranking(
        scores, gain, discount=lambda n: sizes[n][2], position_weights=lambda n: sizes[n][3], offsets=offsets
    )
    answer = solve_slack_rescaled(batch)
    assert len(answer) == len(parts)
    for q, part in enumerate(parts):
        alone = slack_rescaled_ranking(part[0], part[1], discount=part[2], position_weights=part[3])
        solution = solve_slack_rescaled(alone)
        assert answer.value[q] == pytest.approx(solution.value, rel=1e-12)
        assert answer.bound[q] == pytest.approx(solution.bound, rel=1e-9)
        order = answer.order[offsets[q] : offsets[q + 1]]
        assert sorted(order.tolist()) == list(range(part[0].size))
        assert alone.value(order[: alone.positions]) == pytest.approx(answer.value[q], rel=1e-12)
        assert answer[q].bound == pytest.approx(answer.bound[q], rel=1e-9)
    foreign = solve_slack_rescaled(batch, "scipy")
    np.testing.assert_allclose(foreign.value, answer.value, rtol=1e-9)


def test_nothing_to_order_costs_nothing():
    solution = solve_slack_rescaled(
        slack_rescaled_ranking([3.0, 1.0], [1.0, 1.0], discount=[1.0, 0.5], position_weights=[2.0, 1.0])
    )
    assert solution.value == 0.0
    assert solution.bound <= 1e-9
    right = solve_slack_rescaled(
        slack_rescaled_ranking([3.0, 1.0], [1.0, 0.0], discount=[1.0, 0.0], position_weights=[1.0, 0.0])
    )
    assert right.value == 0.0  # (D, M) is (0, 1), or (1, -1) the wrong way round
    assert right.bound == pytest.approx(1 / 8)  # half-way between the two, three quarters towards the first


def test_a_margin_is_measured_from_the_reference():
    problem = slack_rescaled_ranking([1.0, 2.0, 0.0], [1.0, 1.0, 0.0], discount=[1.0, 0.5], position_weights=[2.0, 1.0])
    assert problem.reference.tolist() == [1.5, 1.5, 0.0]
    assert problem.margin(np.array([1, 0])) == pytest.approx(1.0 + 5.0 - 4.5)
    with pytest.raises(InvalidProblemError, match="reference has 2 entries"):
        slack_rescaled_ranking([1.0] * 3, [1.0] * 3, discount=[1.0], position_weights=[1.0], reference=[0.0, 1.0])
    with pytest.raises(InvalidProblemError, match="increase"):
        slack_rescaled_ranking([1.0] * 2, [1.0] * 2, discount=[0.5, 1.0], position_weights=[1.0, 1.0])
