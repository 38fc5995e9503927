"""Sweeps of a limit: each point is solved anew, and each price is a line above the curve."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from math import ceil, floor

import numpy as np
import pytest
from scipy.optimize import linprog

from formulations import (
    InfeasibleError,
    InvalidProblemError,
    LinearProgram,
    RankingSet,
    UnsupportedProblemError,
    Witness,
    check_evidence,
    constrained_ranking,
    integrality_gap,
    matching,
    sensitivity,
    solve,
    suggest_changes,
    verify_integrality,
)
from formulations.solving.sensitivity import SensitivityCurve, limit_of

N, K = 6, 3
EVERY = [np.array(order) for order in permutations(range(N), K)]
SITE = [*"aaabbc"]


def best(profit, kept):
    values = [profit[np.arange(K), order].sum() for order in EVERY if kept(order)]
    return max(values, default=np.nan)


def held(order, documents, positions=K):
    return int(np.isin(order[:positions], documents).sum())


def most(order, labels="abc"):
    return max(sum(SITE[j] == label for j in order) for label in labels)


SWEPT = {
    "at most": (lambda s: s.at_most(3, documents=[0, 1, 2], name="q"), lambda o, at: held(o, [0, 1, 2]) <= at),
    "at least": (lambda s: s.at_least(0, documents=[3, 4, 5], name="q"), lambda o, at: held(o, [3, 4, 5]) >= at),
    "exactly": (lambda s: s.exactly(1, documents=[1, 3], name="q"), lambda o, at: held(o, [1, 3]) == at),
    "by label": (lambda s: s.at_most(3, by=SITE, name="q"), lambda o, at: most(o) <= at),
    "on a prefix": (
        lambda s: s.at_most(2, documents=[0, 1, 2], positions=range(2), name="q"),
        lambda o, at: held(o, [0, 1, 2], 2) <= at,
    ),
}


@pytest.mark.every(3)
@pytest.mark.parametrize("rank_one", [True, False])
@pytest.mark.parametrize("name", SWEPT)
def test_every_point_is_the_best_ranking_there_and_every_price_a_line_above_all(name, rank_one):
    state, kept = SWEPT[name]
    rng = np.random.default_rng(len(name))
    start = state(RankingSet(N, K).forbid(5, 0))
    for _ in range(3):
        profit = rng.normal(size=(K, N))
        if rank_one:
            profit = np.outer([3.0, 2.0, 1.0], rng.normal(size=N))
        curve = sensitivity(constrained_ranking(profit, start), "q", range(4))
        truth = [best(profit, lambda o, at=at: o[0] != 5 and kept(o, at)) for at in range(4)]
        np.testing.assert_allclose(curve.value, truth, atol=1e-9)
        there = ~curve.empty
        assert (curve.bound[there] >= curve.value[there] - 1e-12).all()
        assert (curve.above(curve.limits)[there] >= curve.value[there] - 1e-9).all()
        for at in np.flatnonzero(there).tolist():
            lines = curve.relaxed[at] + curve.price[at] * (curve.limits - curve.limits[at])
            assert (lines[there] >= curve.value[there] - 1e-9).all()
            gap = integrality_gap(constrained_ranking(profit, limit_of(start, "q").at(float(at)))).absolute
            assert curve.relaxed[at] - curve.value[at] == pytest.approx(gap, abs=1e-6)
            assert curve.integral[at] == (gap <= 1e-6)


def test_prices_say_what_the_next_unit_gains_where_the_program_is_whole():
    start = RankingSet(N, K).at_most(1, documents=[0, 1, 2], name="q")
    curve = sensitivity(start, "q", [1, 2, 3], profit=np.outer([3.0, 2.0, 1.0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]))
    np.testing.assert_allclose(curve.price[:2], np.diff(curve.value))
    assert str(curve).splitlines()[0].split() == ["q", "at", "most", "value", "LP", "price", "LP", "integral"]
    floor = RankingSet(N, K).at_least(1, documents=[3, 4, 5], name="q")
    curve = sensitivity(floor, "q", [0, 1, 2, 3], profit=np.outer([3.0, 2.0, 1.0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]))
    np.testing.assert_allclose(-curve.price[1:], -np.diff(curve.value))


def test_the_curve_says_where_the_program_stops_being_whole():
    profit = np.outer([4.0, 4.0, 3.0], [3.0, 0, 1, 2]) - np.outer([5.0, 2, 2], [2.0, 0, 1, 3])
    quota = RankingSet(4, 3).at_most(2, documents=[0, 1], positions=range(2), name="top")
    curve = sensitivity(constrained_ranking(profit, quota), "top", range(3))
    assert curve.value.tolist() == [6.0, 7.0, 9.0]
    assert curve.integral.tolist() == [True, False, True]
    assert curve.relaxed[1] == pytest.approx(7.5)
    assert "no" in str(curve).splitlines()[2]


def test_several_problems_have_mean_and_spread_and_one_row_is_swept_by_its_name():
    rng = np.random.default_rng(4)
    start = RankingSet(N, K).at_most(3, by=SITE, name="site")
    problems = [constrained_ranking(np.outer([3.0, 2.0, 1.0], rng.normal(size=N)), start) for _ in range(5)]
    curves = sensitivity(problems, "site", range(4))
    assert curves.empty.sum(axis=0).tolist() == [5, 0, 0, 0]
    assert curves.shared == 5
    np.testing.assert_array_equal(curves.mean, [np.nan, *curves.value[:, 1:].mean(axis=0)])
    curves = sensitivity(problems, "site", [1, 2, 3])
    values = curves.value
    assert values.shape == (5, 3)
    np.testing.assert_array_equal(sensitivity(problems[1], "site", [1, 2, 3]).value, values[1])
    np.testing.assert_allclose(curves.mean, values.mean(axis=0))
    np.testing.assert_allclose(curves.spread, values.std(axis=0, ddof=1))
    np.testing.assert_allclose(curves.lost[0], (values.max(axis=1)[:, None] - values).mean(axis=0))
    assert "5/5" in str(curves)
    one = sensitivity(problems[0], "site['b']", range(4))
    profit = problems[0].profit
    truth = [best(profit, lambda o, at=at: held(o, [3, 4]) <= at) for at in range(4)]
    np.testing.assert_allclose(one.value, truth, atol=1e-9)


def curve_of(*values):
    """A curve of these values at 0, 1, ..., with prices of 0."""
    known, limits = np.array(values), np.arange(float(len(values)))
    return SensitivityCurve("q at most", limits, known, known, known, 0.0 * known, ~np.isnan(known))


def test_points_without_a_ranking_prove_nothing():
    curve = curve_of(np.nan, np.nan)
    assert curve.above(1.0) == np.inf
    assert curve.above([0.0, 1.0]).tolist() == [np.inf, np.inf]
    assert curve_of(np.nan, 2.0).above([0.0, 1.0]).tolist() == [2.0, 2.0]


def several(*curves):
    return SensitivityCurve.from_curves("q at most", curves[0].limits, curves)


def test_limits_that_few_can_meet_have_no_mean_and_the_others_have():
    nan = np.nan
    every = curve_of(nan, 1.0, 2.0, nan), curve_of(nan, 1.0, nan, nan), curve_of(nan, nan, 2.0, 3.0)
    assert several(*every).excluded.tolist() == [True, False, False, True]
    note = "Means are over the 1 of 3 queries with a ranking at every limit but 0, 3, which too few can meet."
    assert str(several(*every)).endswith(note)
    assert note in several(*every)._repr_html_()
    assert several(*every).columns()["queries"].tolist() == [0, 1, 1, 0]
    assert "At no limit do most queries have a ranking" in several(curve_of(nan, nan)).note
    assert several(curve_of(1.0, 2.0)).note == ""
    assert "7, 8, 9 and 20 more, which" in several(curve_of(*[nan] * 30, 1.0)).note


@pytest.mark.parametrize("seed", range(30))
def test_a_limit_that_all_queries_can_meet_has_a_mean(seed):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((6, 5)) < rng.uniform(0.1, 0.9), np.nan, rng.normal(size=(6, 5)))
    values[:, rng.integers(5)] = rng.normal(size=6)
    curves = several(*(curve_of(*row) for row in values))
    used = ~np.isnan(curves.mean)
    assert used[~np.isnan(values).any(axis=0)].all()
    complete = ~np.isnan(values[:, used]).any(axis=1)
    assert 0 < complete.sum() == curves.shared
    np.testing.assert_allclose(curves.mean[used], values[complete][:, used].mean(axis=0))
    lost = np.nanmax(values[complete], axis=1, keepdims=True) - values[complete]
    np.testing.assert_allclose(curves.lost[0][used], lost[:, used].mean(axis=0))


def test_soft_constraints_are_swept_too():
    profit = np.outer([3.0, 2.0, 1.0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    soft = RankingSet(N, K).at_most(1, documents=[0, 1, 2], name="q").penalized("q", penalty=1.0)
    curve = sensitivity(constrained_ranking(profit, soft), "q", range(4))
    truth = [max(profit[np.arange(K), o].sum() - max(held(o, [0, 1, 2]) - at, 0) for o in EVERY) for at in range(4)]
    np.testing.assert_allclose(curve.value, truth, atol=1e-9)
    assert (curve.price <= 1.0 + 1e-12).all()


FEW, SHARES = [3, 4, 5], [0, 0.2, 1 / 3, 0.4, 0.7, 1]

OF_SHARES = {
    "share at least": (
        lambda s: s.at_least(share=0.4, documents=FEW, name="q"),
        lambda o, share: all(held(o, FEW, p) >= floor(share * p) for p in range(1, K + 1)),
    ),
    "share at most": (
        lambda s: s.at_most(share=1, documents=[0, 2, 3], name="q"),
        lambda o, share: all(held(o, [0, 2, 3], p) <= ceil(share * p) for p in range(1, K + 1)),
    ),
    "share at most by label": (
        lambda s: s.at_most(share={"a": 0.1, "b": 0.9}, by=SITE, prefixes=[2, K], rounding="down", name="q"),
        lambda o, share: all(most(o[:p], "ab") <= floor(share * p) for p in (2, K)),
    ),
}


@pytest.mark.parametrize("name", OF_SHARES)
def test_limits_of_a_share_are_shares_and_each_point_is_the_best_ranking_there(name):
    state, kept = OF_SHARES[name]
    profit = np.outer([3.0, 2.0, 1.0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0]) + np.random.default_rng(8).normal(size=(K, N))
    problem = constrained_ranking(profit, state(RankingSet(N, K).at_most(2, documents=[0, 1], name="q")))
    curve = sensitivity(problem, "q_2", SHARES)
    exact = [Fraction(share).limit_denominator(10) for share in SHARES]
    truth = [best(profit, lambda o, share=share: held(o, [0, 1]) <= 2 and kept(o, share)) for share in exact]
    np.testing.assert_allclose(curve.value, truth, atol=1e-9)
    assert len(set(truth)) > 1
    there = ~curve.empty
    assert curve.name == f"q_2 {name.removesuffix(' by label')}"
    assert np.isnan(curve.price).all()
    assert "price" not in str(curve)
    assert (curve.above(SHARES)[there] >= curve.value[there] - 1e-9).all()
    for limit in (4, -0.1, 1.01):
        with pytest.raises(InvalidProblemError, match="'q_2' limits a share: limits must be from 0 to 1; got "):
            sensitivity(problem, "q_2", [limit])
    with pytest.raises(InvalidProblemError, match="got side='exactly'"):
        sensitivity(problem, "q_2", [0.5], side="exactly")


def test_a_soft_share_costs_its_penalty_and_a_row_of_a_share_is_a_count():
    profit = np.outer([3.0, 2.0, 1.0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    hard = RankingSet(N, K).at_least(share=0.1, documents=FEW, prefixes=K, name="q")
    owed = {share: floor(Fraction(str(share)) * K) for share in (0.1, 0.4, 1)}
    curve = sensitivity(constrained_ranking(profit, hard.penalized("q", penalty=1.5)), "q", owed)
    truth = [max(profit[np.arange(K), o].sum() - 1.5 * max(c - held(o, FEW), 0) for o in EVERY) for c in owed.values()]
    np.testing.assert_allclose(curve.value, truth, atol=1e-9)
    stricter = RankingSet(N, K).at_least(share=0.4, documents=FEW, name="q")
    row = sensitivity(constrained_ranking(profit, stricter), "q[3]", [0, 1, 2])
    np.testing.assert_allclose(row.value, [best(profit, lambda o, at=at: held(o, FEW) >= at) for at in range(3)])


def test_the_means_of_several_problems_show_how_many_problems_they_are_over():
    curves = SensitivityCurve.from_curves("q at most", [0, 1], [curve_of(1.0, 2.0), curve_of(np.nan, 6.0), None])
    assert curves.columns()["queries"].tolist() == [1, 1]
    assert curves.columns()["mean"].tolist() == [1.0, 2.0]
    assert str(curves).splitlines()[0].split()[3:5] == ["queries", "mean"]
    assert "Means are over the 1 of 3 queries with a ranking at every limit." in str(curves)
    complete = SensitivityCurve.from_curves("q at most", [0, 1], [curve_of(1.0, 2.0)])
    assert "Means" not in str(complete)


@pytest.mark.parametrize("dear", [1e3, 1e6, 1e9])
def test_prices_beside_a_dear_constraint_are_lines_above_all_rankings(dear):
    profit = np.outer([1.0, 0.6, 0.5], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    stated = (
        RankingSet(N, K)
        .precedence_chain([5, 0], name="chain")
        .at_most(1, documents=[0, 1], positions=range(2), name="q")
    )
    curve = sensitivity(
        constrained_ranking(profit, stated.penalized("chain", penalty=dear).penalized("q", penalty=0.3)),
        "q",
        [0, 0.5, 1, 2],
    )

    def truth(limit):
        kept = [o for o in map(list, EVERY) if 0 not in o or (5 in o and o.index(5) < o.index(0))]
        return max(profit[np.arange(K), o].sum() - 0.3 * max(held(o[:2], [0, 1]) - limit, 0.0) for o in kept)

    best_there = np.array([truth(limit) for limit in (0, 0.5, 1, 2)])
    assert (curve.value <= best_there + 1e-9).all()  # what HiGHS finds, which at 1e6 and more need not be the best
    assert (curve.bound >= best_there - 1e-9).all()
    if dear < 1e6:
        np.testing.assert_allclose(curve.value, best_there, atol=1e-9)
    if dear <= 1e6:
        assert curve.price[1] == pytest.approx(0.3)
    for limit in (0, 0.5, 1, 1.5, 2, 3):
        assert curve.above(limit) >= truth(limit) - 1e-9


@pytest.fixture
def solved(monkeypatch):
    """How many problems are solved."""
    count = []
    monkeypatch.setattr("formulations.solving.sensitivity.solve", lambda *given: count.append(1) or solve(*given))
    return count


@pytest.mark.parametrize("name", SWEPT)
def test_limits_that_admit_the_same_rankings_are_one_problem(name, solved):
    state, kept = SWEPT[name]
    profit = np.random.default_rng(7).normal(size=(K, N))
    limits = [*range(-5, 20), 10**8]
    curve = sensitivity(constrained_ranking(profit, state(RankingSet(N, K))), "q", limits)
    assert len(solved) <= 8
    np.testing.assert_allclose(curve.value, [best(profit, lambda o, at=at: kept(o, at)) for at in limits], atol=1e-9)
    assert curve.limits.tolist() == limits
    loose = {"at least": curve.limits <= 0, "exactly": np.zeros(len(limits), dtype=bool)}.get(name, curve.limits >= K)
    assert (curve.price[loose] == 0.0).all()
    assert curve.integral[loose].all()
    for at in np.flatnonzero(~curve.empty).tolist():
        lines = curve.relaxed[at] + curve.price[at] * (curve.limits - curve.limits[at])
        assert (lines >= np.where(curve.empty, -np.inf, curve.value) - 1e-9).all()


def test_rows_of_any_weights_are_solved_as_far_as_they_reach(solved):
    weights = np.random.default_rng(3).normal(size=(K, N))
    profit = np.outer([3.0, 2.0, 1.0], np.arange(N))
    start = RankingSet(N, K).add_rows(weights.ravel()[None], upper=[9.0], name="q")
    limits = [-50.0, -9.0, 0.0, 0.1, 1.0, 3.0, 5.0, 9.0, 1e9]
    curve = sensitivity(start, "q", limits, profit=profit)
    truth = [best(profit, lambda o, at=at: weights[np.arange(K), o].sum() <= at) for at in limits]
    np.testing.assert_allclose(curve.value, truth, atol=1e-9)
    assert len(solved) < (curve.limits > -9.0).sum()


def test_a_soft_limit_costs_more_with_every_unit_beyond_what_there_is():
    profit = np.outer([3.0, 2.0, 1.0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    soft = RankingSet(N, K).at_least(1, documents=[3, 4], name="q").penalized("q", penalty=2.0)
    curve = sensitivity(constrained_ranking(profit, soft), "q", [-9, 0, 3, 10, 100])
    truth = [max(profit[np.arange(K), o].sum() - 2.0 * max(at - held(o, [3, 4]), 0) for o in EVERY)
             for at in curve.limits]  # fmt: skip
    np.testing.assert_allclose(curve.value, truth, atol=1e-9)


def test_more_limits_than_are_solved_are_refused():
    problem = constrained_ranking(np.zeros((K, N)), RankingSet(N, K).at_most(2, by=SITE, name="site"))
    for limits in (range(1, 10**8), iter(range(10**8))):
        with pytest.raises(InvalidProblemError, match=r"more than 10000, .*a shorter range, or one with a step"):
            sensitivity(problem, "site", limits)
    with pytest.raises(InvalidProblemError, match="one or more finite numbers"):
        sensitivity(problem, "site", [10**400])
    axes = sensitivity(problem, "site", range(200)).plot()
    assert len(axes.get_xticks()) < 50


def test_what_cannot_be_swept_is_said():
    stated = RankingSet(N, K).between(1, 2, documents=[0, 1], name="some").forbid(3, name="never")
    problem = constrained_ranking(np.zeros((K, N)), stated)
    for name, limits, said in (
        ("none", range(3), r"no constraint is named 'none'.*'some'"),
        ("never", range(3), "forbids cells and has no limit"),
        ("some", range(3), "limits on both sides"),
        ("some", [], "one or more finite numbers"),
    ):
        with pytest.raises(InvalidProblemError, match=said):
            sensitivity(problem, name, limits)
    with pytest.raises(InvalidProblemError, match="its other limit is 1"):
        sensitivity(problem, "some", [0], side="at most")
    with pytest.raises(InvalidProblemError, match=r"'some' counts documents: limits must be integers; got 0.4.*share="):
        sensitivity(problem, "some", [2, 0.4], side="at least")
    with pytest.raises(InvalidProblemError, match="pass profit="):
        sensitivity(stated, "some", [2])
    for limits in (3, None, "12", [np.nan], ["x"]):
        with pytest.raises(InvalidProblemError, match="one or more finite numbers"):
            sensitivity(problem, "some", limits, side="at most")
    with pytest.raises(InvalidProblemError, match=r"must be of constrained_ranking\(\)"):
        sensitivity([stated, stated], "some", [2])
    assigned = matching([[4.0, 1.0], [2.0, 3.0]])
    with pytest.raises(InvalidProblemError, match=r"got <Assignment of 2.*pass problem\.to_cvxpy"):
        sensitivity(assigned, "document", [1])
    np.testing.assert_allclose(sensitivity(assigned.to_cvxpy(), "document", [1], side="exactly").value, [7.0])


def test_prices_of_programs_with_integers_are_those_of_the_relaxation():
    """The cheapest cover: min 3 x + 2 y, 2 x + y >= demand. An upper limit of a minimum has a price of at most 0."""
    cover = LinearProgram(
        [3.0, 2.0], [[2.0, 1.0]], [3.0], [np.inf], np.zeros(2), np.full(2, 9.0), is_maximization=False, integer=[1, 1]
    )
    curve = sensitivity(cover, "row", [2, 3, 4])
    np.testing.assert_allclose(curve.value, [3.0, 5.0, 6.0])
    np.testing.assert_allclose(curve.price, 1.5)
    assert curve.integral.tolist() == [True, False, True]
    assert str(curve).splitlines()[0] == "row at least  value  LP price  LP integral"
    knapsack = replace(cover, objective=[-9.0, -8.0], matrix=[[5.0, 4.0]], row_lower=[-np.inf], row_upper=[5.0])
    packed = sensitivity(knapsack, "row", [7, 8])
    np.testing.assert_allclose(packed.price, -2.0)
    assert np.diff(packed.value) < packed.price[0]  # the integer optimum changes by more


def test_a_set_that_is_empty_as_it_stands_is_swept_to_where_it_holds_a_ranking():
    site = RankingSet(6, 4).at_most(1, by=["a", "a", "a", "a", "b", "b"], name="site")
    profit = np.outer([4.0, 3.0, 2.0, 1.0], [6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    curve = sensitivity(site, "site", [1, 2, 3], profit=profit)
    assert curve.empty.tolist() == [True, False, False]
    assert curve.value[1:].tolist() == [24.0 + 15.0 + 4.0 + 1.0, 24.0 + 15.0 + 8.0 + 2.0]
    with pytest.raises(InfeasibleError):
        sensitivity(site, "site", [1], profit=profit)


@pytest.mark.parametrize(
    ("side", "far", "loose"), [("at least", 1e300, -1e300), ("at least", 1e17, 0.0), ("at most", -1e300, 1e300)]
)
def test_a_limit_that_breaks_a_soft_constraint_beyond_counting_is_named(side, far, loose):
    stated = getattr(RankingSet(N, K), side.replace(" ", "_"))(1, by=SITE, name="site").penalized("site", penalty=2.0)
    problem = constrained_ranking(np.eye(K, N), stated)
    with pytest.raises(InvalidProblemError, match=r"limit -?1e\+\d+ of the soft 'site' is too large"):
        sensitivity(problem, "site", [1, far])
    assert sensitivity(problem, "site", [loose]).value.tolist() == [3.0]


# Advice is proved: sets become whole by it, optima too, and no smaller change of the kind does it.


def vertices_are_whole(admissible, rng, tries=8):
    """Whether the simplex method meets whole vertices only."""
    program = admissible.program
    for _ in range(tries):
        found = linprog(
            rng.integers(-3, 4, program.objective.size),
            A_ub=np.vstack([program.matrix.toarray(), -program.matrix.toarray()]),
            b_ub=np.nan_to_num(np.concatenate([program.row_upper, -program.row_lower]), posinf=1e3, neginf=1e3),
            bounds=(0, 1),
            method="highs-ds",
        )
        if found.status == 0 and np.abs(found.x - np.round(found.x)).max() > 1e-6:
            return False
    return True


def drawn(rng):
    n = int(rng.integers(4, 7))
    k = int(rng.integers(2, min(n, 4) + 1))
    stated = RankingSet(n, k)
    for number in range(int(rng.integers(1, 4))):
        name, documents = f"c{number}", np.flatnonzero(rng.random(n) < 0.5)
        positions = range(int(rng.integers(1, k + 1))) if rng.random() < 0.6 else None
        word = int(rng.integers(5))
        if word < 2:
            stated = stated.at_most(int(rng.integers(1, 3)), documents=documents, positions=positions, name=name)
        elif word == 2:
            stated = stated.at_least(1, documents=documents, positions=positions, name=name)
        elif word == 3:
            stated = stated.at_most(1, by=rng.integers(0, 3, n).tolist(), positions=positions, name=name)
        else:
            stated = stated.precedes(*rng.permutation(n)[:2].tolist(), name=name)
    return stated


@pytest.mark.every(3)
@pytest.mark.parametrize("seed", range(8))
def test_advice_makes_refuted_sets_whole(seed):
    rng = np.random.default_rng(seed)
    while True:
        admissible = drawn(rng)
        try:
            answer = verify_integrality(admissible)
        except InfeasibleError:
            continue
        if isinstance(answer, Witness):
            break
    found = suggest_changes(admissible, answer)
    assert found
    for one in found:
        check_evidence(one.admissible, one.proof)
        assert vertices_are_whole(one.admissible, rng)
        one.admissible.check_nonempty()
        for held in admissible.constraints:  # what is not named stays as it is
            if held.name not in one.changes:
                assert held in one.admissible.constraints
            elif one.changes[held.name] == "left out":
                assert not any(c.name == held.name and c.rows for c in one.admissible.constraints)
            else:  # it still excludes a ranking that the others admit
                rest = tuple(c for c in one.admissible.constraints if c.name != held.name)
                others = RankingSet(admissible.documents, admissible.positions, rest)
                orders = permutations(range(admissible.documents), admissible.positions)
                assert any(others.is_feasible(o) and not one.admissible.is_feasible(o) for o in orders)
    several = found[0] if len(found[0].changes) > 1 else None
    if several is not None:
        for name in several.changes:  # none of them can be spared
            fewer = [c for c in admissible.constraints if c.name == name or c in several.admissible.constraints]
            fewer += [c for c in several.admissible.constraints if c.name in several.changes and c.name != name]
            again = RankingSet(admissible.documents, admissible.positions, tuple(fewer))
            if again.max_positions == again.positions:
                assert isinstance(verify_integrality(again), Witness)


def test_each_kind_of_change_is_found_and_said():
    top = RankingSet(6, 4).at_most(1, documents=[0, 1, 2], positions=range(2), name="top")
    assert [one.changes for one in suggest_changes(top)] == [{"top": "all positions"}, {"top": "left out"}]
    assert str(suggest_changes(top)[0]).startswith(
        "Count 'top' over all positions (at most 1 of 3 documents: 0, 1, 2): then the matrix is totally unimodular ("
    )
    crossing = RankingSet(8, 3).at_most(1, by=[*"aabbccdd"], name="site").at_most(1, documents=[1, 2], name="new")
    assert {"new": "nested groups"} in [one.changes for one in suggest_changes(crossing)]
    site = RankingSet(10, 4).at_most(1, by=[*"aabbccddee"], name="site").at_most(1, documents=[0, 2], positions=[0, 1])
    assert {"at_most": "both"} in [one.changes for one in suggest_changes(site)]
    banned = RankingSet(5, 3).precedes(3, 0, name="first")
    assert all(one.admissible.allowed_cells[0, 0] == 0 for one in suggest_changes(banned))


def test_a_change_that_leaves_a_limit_nothing_to_exclude_is_not_suggested():
    women, age = [0, 2, 4, 5], [*"aaaabbbb"]
    crossing = RankingSet(8, 4).at_least(2, documents=women, name="women").at_most(3, by=age, name="age")
    # Every document's age has a limit, so the women extended to complete groups are all documents: always at least 2.
    assert [one.changes for one in suggest_changes(crossing)] == [{"women": "left out"}, {"age": "left out"}]
    # Without a limit on the other groups the extended limit excludes rankings, and is described as it is now.
    single = RankingSet(10, 4).at_least(2, documents=women, name="women").at_most(3, documents=range(4), name="young")
    extended = next(one for one in suggest_changes(single) if "women" in one.changes)
    assert extended.changes == {"women": "nested groups"}
    (held,) = (one for one in extended.admissible.constraints if one.name == "women")
    assert held.text == "at least 2 of 6 documents"
    assert held.matrix.sum() == 4 * 6
    named = (
        "Extend 'women' to all documents of the groups that it crosses (at least 2 of 6 documents: 0, 1, 2, 3, 4, 5)"
    )
    assert str(extended).startswith(f"{named}: then")


def test_what_is_whole_gets_no_advice_and_what_is_no_set_is_refused():
    assert suggest_changes(RankingSet(5, 3).at_most(1, by=[*"aabbc"])) == ()
    with pytest.raises(UnsupportedProblemError, match="ndarray"):
        suggest_changes(np.eye(3))
