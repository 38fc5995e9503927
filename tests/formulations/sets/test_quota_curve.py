"""F(r), the best ranking with exactly r of a group in a prefix: against enumeration, and its envelope against the
linear program."""

from itertools import permutations

import numpy as np
import pytest

from formulations import (
    Infeasible,
    InvalidProblem,
    QuotaCurve,
    RankingSet,
    Unsupported,
    constrained_ranking,
    ranking,
    solve,
)


def drawn(seed):
    random = np.random.default_rng(seed)
    n = int(random.integers(3, 7))
    k = int(random.integers(2, min(n, 4) + 1))
    discount, decay = (-np.sort(-random.integers(0, 6, k)) for _ in range(2))
    problem = ranking(random.integers(-3, 4, n), random.integers(0, 3, n), discount=discount, decay=decay)
    return problem, random.random(n) < 0.5, int(random.integers(1, problem.positions + 1))


@pytest.mark.every(6)
@pytest.mark.parametrize("seed", range(25))
def test_the_curve_is_that_of_enumeration(seed):
    problem, group, prefix = drawn(seed)
    best = np.full(prefix + 1, -np.inf)
    for order in map(np.array, permutations(range(problem.documents), problem.positions)):
        held = int(group[order[:prefix]].sum())
        best[held] = max(best[held], problem.value(order))
    assert QuotaCurve.of(problem, group, prefix).best == pytest.approx(best)


@pytest.mark.every(6)
@pytest.mark.parametrize("seed", range(25))
def test_the_envelope_is_what_the_linear_program_is_worth(seed):
    problem, group, prefix = drawn(seed)
    curve = QuotaCurve.of(problem, group, prefix)
    for low, high in ((0, 1), (1, prefix), (1, 1), (0, 0)):
        where = {"documents": group, "positions": range(prefix)}
        inside = RankingSet(problem.documents, problem.positions).at_least(low, **where).at_most(high, **where)
        try:
            stated = constrained_ranking(problem, inside)
        except Infeasible:
            assert curve.whole(low, high) == -np.inf
            continue
        assert solve(stated.linear_program(), "highs").value == pytest.approx(curve.relaxed(low, high), abs=1e-7)
        assert solve(stated).value == pytest.approx(curve.whole(low, high), abs=1e-9)
        assert curve.gap(low, high) >= 0.0


def test_the_smallest_gap_known():
    problem = ranking([3, 0, 1, 2], [2, 0, 1, 3], discount=[5, 2, 2], decay=[4, 4, 3])
    curve = QuotaCurve.of(problem, [0, 1], 2)
    assert not curve.concave
    assert (curve.relaxed(0, 1), curve.whole(0, 1), curve.gap(0, 1)) == (7.5, 7.0, 0.5)
    assert curve.gap(0, 2) == 0.0  # 2 of them is best
    assert (curve.whole(-3, 1), curve.whole(0, 99), curve.whole(0, -3)) == (7.0, curve.best.max(), -np.inf)
    for low, high, wrong in (("a", 1, "low = 'a'"), (0, None, "high = None"), (0.5, 1, "low = 0.5")):
        for ask in (curve.gap, curve.relaxed, curve.whole):
            with pytest.raises(InvalidProblem, match=f"{wrong} is no limit .* give a whole number"):
                ask(low, high)
    assert QuotaCurve.of(ranking([3, 0, 1, 2], [2, 0, 1, 3], discount=[4, 4, 3], decay=[4, 4, 3]), [0, 1], 2).concave


def test_what_is_too_large_or_no_curve_is_refused():
    problem = ranking(np.arange(40.0), np.arange(40.0), discount=np.ones(20), decay=np.ones(20))
    with pytest.raises(Unsupported, match="chains of equal gains"):
        QuotaCurve.of(problem, range(3), 5)
    with pytest.raises(InvalidProblem, match="none of the 20 positions"):
        QuotaCurve.of(problem, range(3), 21)
    below = ranking([1.0, 2.0, 3.0], [0, 1, 0], discount=[1.0, 0.0], decay=[1.0, -1.0])
    with pytest.raises(Unsupported, match="below 0"):
        QuotaCurve.of(below, [0], 1)
