"""An assignment by shortest paths among all documents: the value of scipy for any gains, ties and cuts."""

import numpy as np
import pytest

from formulations import ranking, solve, solve_batch
from formulations.argmax.assignment import assign, greedy_order, order_prices
from formulations.argmax.layout import find_cones

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
