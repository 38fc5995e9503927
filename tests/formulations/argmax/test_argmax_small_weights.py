"""The exact argmax where position weights end in numbers whose products are zero."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from formulations import ranking, solve, solve_batch
from formulations.problems.ranking import RankTwoBatch
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures.notation import parse


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
