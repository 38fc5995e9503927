"""Pareto fronts of two limits and curves of a quota: against enumeration, and against the linear program."""

from itertools import permutations

import numpy as np
import pytest

from formulations import (
    InfeasibleError,
    InvalidProblemError,
    RankingSet,
    UnsupportedProblemError,
    certify,
    constrained_ranking,
    integrality_gap,
    ranking,
    solve,
)
from formulations.experimental import LimitValueFunction, nearest_integral, pareto_front

N, K = 6, 3
EVERY = [np.array(order) for order in permutations(range(N), K)]


def best(profit, kept):
    values = [profit[np.arange(K), order].sum() for order in EVERY if kept(order)]
    return max(values, default=np.nan)


def held(order, documents):
    return int(np.isin(order, documents).sum())


@pytest.mark.every(3)
@pytest.mark.parametrize("seed", range(4))
def test_pareto_fronts_against_enumeration(seed):
    rng = np.random.default_rng(seed)
    profit = rng.normal(size=(K, N)) if seed % 2 else np.outer([3.0, 2.0, 1.0], rng.normal(size=N))
    both = RankingSet(N, K).at_most(3, documents=[0, 1, 2], name="old").at_least(0, documents=[2, 5], name="new")
    found = pareto_front(constrained_ranking(profit, both), ("old", range(4)), ("new", range(3)))
    truth = np.array([
        [best(profit, lambda o, x=x, y=y: held(o, [0, 1, 2]) <= x and held(o, [2, 5]) >= y) for y in range(3)]
        for x in range(4)
    ])  # fmt: skip
    np.testing.assert_allclose(found.value, truth, atol=1e-9)
    points = [(x, y, truth[x, y]) for x in range(4) for y in range(3) if not np.isnan(truth[x, y])]

    def beaten(point):
        x, y, value = point
        return any(
            a <= x and b >= y and c >= value - 1e-9 and (a < x or b > y or c > value + 1e-9) for a, b, c in points
        )

    assert {(x, y) for x, y, _ in found.points} == {point[:2] for point in points if not beaten(point)}
    assert str(found).splitlines()[0].split() == ["old", "at", "most", "new", "at", "least", "value"]


def test_pairs_of_limits_that_admit_the_same_rankings_are_one_problem(monkeypatch):
    solved = []
    monkeypatch.setattr("formulations.experimental.quotas.solve", lambda *given: solved.append(1) or solve(*given))
    both = RankingSet(N, K).at_most(3, documents=[0, 1, 2], name="old").between(0, 2, documents=[2, 5], name="new")
    profit = np.outer([3.0, 2.0, 1.0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    problem = constrained_ranking(profit, both)
    found = pareto_front(problem, ("old", range(50)), ("new", range(3)), sides=(None, "at least"))
    assert len(solved) <= 12
    assert found.names == ("old at most", "new at least")
    for x in (0, 2, 3, 49):
        truth = [best(profit, lambda o, x=x, y=y: held(o, [0, 1, 2]) <= x and y <= held(o, [2, 5])) for y in range(3)]
        np.testing.assert_allclose(found.value[x], truth)
    assert max(x for x, _, _ in found.points) <= 3
    with pytest.raises(InvalidProblemError, match="new' cannot be at least 40: its other limit is 2"):
        pareto_front(problem, ("old", [1]), ("new", [40]), sides=(None, "at least"))
    with pytest.raises(InvalidProblemError, match="limits on both sides"):
        pareto_front(problem, ("old", [1]), ("new", [1]))
    with pytest.raises(InvalidProblemError, match="are not two"):
        pareto_front(problem, ("old", [1]), ("new", [1]), sides="at most")


def test_what_has_no_front_is_refused():
    site = constrained_ranking(np.zeros((K, N)), RankingSet(N, K).at_most(2, by=list("aabbcc"), name="site"))
    for second in ("site", "site['a']"):
        with pytest.raises(InvalidProblemError, match="are the same limit"):
            pareto_front(site, ("site", [1]), (second, [2]))
    for quota in ("site", ("site", [1], "at most"), None):
        with pytest.raises(InvalidProblemError, match="a quota must be the name and the limits"):
            pareto_front(site, ("site['a']", [1]), quota)
    assert pareto_front(site, ("site['a']", [1]), ("site['b']", [2])).value.shape == (1, 1)
    with pytest.raises(InvalidProblemError, match=r"pareto_front\(\) needs a problem"):
        pareto_front(RankingSet(N, K), ("some", [1]), ("never", [2]))
    with pytest.raises(InvalidProblemError, match="one or more finite numbers"):
        pareto_front(site, ("site['a']", [np.nan]), ("site['b']", [2]))
    with pytest.raises(InvalidProblemError, match="1000 × 100 pairs of limits are more than 10000"):
        pareto_front(site, ("site['a']", range(1000)), ("site['b']", range(100)))


def drawn(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 7))
    k = int(random.integers(2, min(n, 4) + 1))
    discount, decay = (-np.sort(-random.integers(0, 6, k)) for _ in range(2))
    problem = ranking(random.integers(-3, 4, n), random.integers(0, 3, n), discount=discount, position_weights=decay)
    return problem, random.random(n) < 0.5, int(random.integers(1, problem.positions + 1))


@pytest.mark.every(6)
@pytest.mark.parametrize("seed", range(25))
def test_the_curve_is_that_of_enumeration(seed):
    problem, group, prefix = drawn(seed)
    best = np.full(prefix + 1, -np.inf)
    for order in map(np.array, permutations(range(problem.documents), problem.positions)):
        held = int(group[order[:prefix]].sum())
        best[held] = max(best[held], problem.value(order))
    assert LimitValueFunction.from_problem(problem, group, prefix).best == pytest.approx(best)


@pytest.mark.every(6)
@pytest.mark.parametrize("seed", range(25))
def test_the_envelope_is_what_the_linear_program_is_worth(seed):
    problem, group, prefix = drawn(seed)
    curve = LimitValueFunction.from_problem(problem, group, prefix)
    for low, high in ((0, 1), (1, prefix), (1, 1), (0, 0)):
        where = {"documents": group, "positions": range(prefix)}
        inside = RankingSet(problem.documents, problem.positions).at_least(low, **where).at_most(high, **where)
        try:
            stated = constrained_ranking(problem, inside)
        except InfeasibleError:
            assert curve.integral(low, high) == -np.inf
            continue
        assert solve(stated.linear_program(), "highs").value == pytest.approx(curve.relaxed(low, high), abs=1e-7)
        assert solve(stated).value == pytest.approx(curve.integral(low, high), abs=1e-9)
        assert curve.gap(low, high) >= 0.0


def test_the_smallest_gap_known():
    problem = ranking([3, 0, 1, 2], [2, 0, 1, 3], discount=[5, 2, 2], position_weights=[4, 4, 3])
    curve = LimitValueFunction.from_problem(problem, [0, 1], 2)
    assert not curve.concave
    assert (curve.relaxed(0, 1), curve.integral(0, 1), curve.gap(0, 1)) == (7.5, 7.0, 0.5)
    assert curve.gap(0, 2) == 0.0  # 2 of them is best
    assert (curve.integral(-3, 1), curve.integral(0, 99), curve.integral(0, -3)) == (7.0, curve.best.max(), -np.inf)
    for low, high, wrong in (
        ("a", 1, "low must .*; got 'a'"),
        (0, None, "high must .*; got None"),
        (0.5, 1, "low must .*; got 0.5"),
    ):
        for ask in (curve.gap, curve.relaxed, curve.integral):
            with pytest.raises(InvalidProblemError, match=wrong):
                ask(low, high)
    assert LimitValueFunction.from_problem(
        ranking([3, 0, 1, 2], [2, 0, 1, 3], discount=[4, 4, 3], position_weights=[4, 4, 3]), [0, 1], 2
    ).concave


def test_what_is_too_large_or_no_curve_is_refused():
    problem = ranking(np.arange(40.0), np.arange(40.0), discount=np.ones(20), position_weights=np.ones(20))
    with pytest.raises(UnsupportedProblemError, match="chains of equal gains"):
        LimitValueFunction.from_problem(problem, range(3), 5)
    with pytest.raises(InvalidProblemError, match="prefix must be from 1 to 20"):
        LimitValueFunction.from_problem(problem, range(3), 21)
    below = ranking([1.0, 2.0, 3.0], [0, 1, 0], discount=[1.0, 0.0], position_weights=[1.0, -1.0])
    with pytest.raises(UnsupportedProblemError, match="position_weights must be nonnegative"):
        LimitValueFunction.from_problem(below, [0], 1)


# The nearest integral optimum is proved, and no smaller change of the kind makes it so.


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
