"""The nearest integral optimum is proved, and no smaller change of the kind makes it so."""

from itertools import permutations

import numpy as np
import pytest

from formulations import RankingSet, certify, constrained_ranking, integrality_gap
from formulations.experimental import nearest_integral


def triangle(count=1, n=6):
    stated = RankingSet(n, 3)
    for name, pair in zip("abc", ([0, 1], [1, 2], [0, 2]), strict=True):
        stated = stated.at_most(count, documents=pair, name=name)
    return constrained_ranking(np.outer([1.0, 0.9, 0.8], [3.0, 3.0, 3.0, 0.0, 0.0, 0.0]), stated)


def test_the_nearest_whole_optimum_is_proved():
    problem = triangle()
    found = nearest_integral(problem)
    assert found.gap == pytest.approx(integrality_gap(problem).absolute)
    assert {(one.row, one.side, one.step) for one in found.limits} >= {(row, "at most", 1) for row in "abc"}
    for one in (*found.limits, found.objective):
        assert integrality_gap(one.problem).absolute <= 1e-7
        certify(one.problem, one.solution, exact=True)
    change = np.abs(found.objective.problem.profit - problem.profit).max()
    assert change == pytest.approx(found.objective.largest)
    assert found.objective.least == pytest.approx(found.gap / 6)
    assert found.objective.least <= change
    assert "no change below" in str(found)


def test_a_moved_limit_makes_the_linear_program_whole_and_not_only_its_best_ranking_provable():
    """Moving "at most of c1" by +1 leaves a gap of .5 that cases close: a proof of the ranking, none of the program."""
    admissible = RankingSet(4, 3).at_least(1, documents=[0, 3], positions=[1, 2], name="c0")
    admissible = admissible.at_most(1, documents=[0], positions=[0, 1], name="c1")
    admissible = admissible.at_least(1, documents=[0, 2], positions=[0], name="c2")
    problem = constrained_ranking([[-2.0, -2, -2, 0], [0, 0, 3, -1], [2, 3, -1, 0]], admissible)
    found = nearest_integral(problem)
    assert len(found.limits) == 4
    assert ("c1", "at most", 1) not in {(one.row, one.side, one.step) for one in found.limits}
    for one in found.limits:
        assert integrality_gap(one.problem).integral
        assert one.solution.bound == pytest.approx(one.problem.bound(one.solution.y))


@pytest.mark.every(5)
@pytest.mark.parametrize("seed", range(3))
def test_no_smaller_change_of_the_objective_makes_the_best_ranking_an_optimum(seed):
    rng = np.random.default_rng(seed)
    problem = triangle(n=6)
    scores = np.array([3.0, 2.8, 2.9, 0.3, 0.2, 0.1]) + 0.2 * rng.random(6)
    problem = constrained_ranking(np.outer([1.0, 0.9, 0.8], scores), problem.admissible)
    found = nearest_integral(problem)
    if found.gap == 0.0:
        return
    assert integrality_gap(found.objective.problem).absolute <= 1e-6
    best = found.objective.solution.order
    step = found.objective.problem.profit - problem.profit
    fewer = constrained_ranking(problem.profit + 0.99 * step, problem.admissible)
    gap = integrality_gap(fewer)
    assert gap.absolute > 1e-9 or gap.integer.value > fewer.value(best)
    for _ in range(5):  # nor does any other of that size
        other = 0.98 * found.objective.largest * rng.uniform(-1, 1, step.shape)
        moved = constrained_ranking(problem.profit + other, problem.admissible)
        gap = integrality_gap(moved)
        assert gap.relaxed.value > moved.value(best) + 1e-9


def test_a_whole_optimum_needs_no_change():
    whole = constrained_ranking(np.outer([3.0, 2.0], [4.0, 3.0, 2.0]), RankingSet(3, 2).at_most(1, by=[*"aab"]))
    assert str(nearest_integral(whole)).startswith("nothing changed")
    assert nearest_integral(whole).limits == ()
    orders = [np.array(order) for order in permutations(range(3), 2)]
    assert max(whole.value(order) for order in orders if whole.admissible.is_feasible(order)) == 16.0
