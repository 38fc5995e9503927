"""Bounds of programs from any prices, and what is no program."""

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import permutations
from operator import attrgetter

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array

import formulations
from formulations import (
    GALLERY,
    CertificateError,
    InvalidProblemError,
    RankingSet,
    Status,
    UnsupportedProblemError,
    certify,
    compatible_solvers,
    constrained_ranking,
    item_block_dual,
    matching,
    ranking,
    solve,
    user_block_dual,
)
from formulations.compiled import Kernel
from formulations.gallery.masters import unpack_step
from formulations.problems import ranking_duals
from formulations.problems.linear_program import LinearProgram
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.problems.ranking_duals import (
    GainLevels,
    RankedQueries,
    bound_by,
    bound_of_prices,
    bounds_of_orders,
    judged,
    prices_of,
)


def test_a_price_on_a_missing_limit_counts_as_none():
    program = LinearProgram(
        np.array([1.0, 1.0]), csr_array(np.ones((1, 2))), np.array([1.0]), np.array([np.inf]), np.zeros(2),
        np.full(2, np.inf), is_maximization=False,
    )  # fmt: skip
    assert program.bound(np.array([1.0])) == 1.0
    assert program.bound(np.array([-5.0])) == 0.0
    assert program.bound(np.array([1.0 + 1e-6])) == 1.0  # of the nearest dual without a false price
    assert program.bound(np.array([1.0 + 2**-52])) == pytest.approx(1.0)


def test_the_bound_of_a_quadratic_program_holds_for_any_prices():
    random = np.random.default_rng(0)
    root = random.normal(size=(3, 2))
    problem = QuadraticProgram(
        csr_array(root @ root.T), random.normal(size=3), csr_array(random.normal(size=(2, 3))),
        np.full(2, -1.0), np.full(2, 1.0), np.full(3, -2.0), np.full(3, 2.0),
    )  # fmt: skip
    best = solve(problem)
    assert best.gap <= 1e-6
    for _ in range(50):
        assert problem.bound(random.normal(size=5)) <= best.value + problem.rounding


def test_what_is_no_problem_is_refused():
    with pytest.raises(UnsupportedProblemError, match="problem cannot be a list"):
        solve([1.0, 2.0])
    row, two = csr_array(np.ones((1, 2))), np.ones(2)
    with pytest.raises(InvalidProblemError, match="hessian has shape"):
        QuadraticProgram(csr_array(np.eye(3)), two, row, np.zeros(1), np.ones(1), np.zeros(2), two)


def test_forms_of_many_arrays_print_as_a_line():
    admissible = RankingSet(30, 20).at_most(2, documents=range(9), name="few")
    for made in (
        constrained_ranking(np.ones((20, 30)), admissible),
        constrained_ranking(np.ones((20, 30)), admissible.penalized("few", penalty=1.0)),
        admissible.program,
    ):
        assert repr(made).startswith(f"<{type(made).__name__} of ")
        assert len(repr(made)) < 100


# The two blocks of a factor model: as any solver has them, against the primal written out in cvxpy.


SOLVERS = ["active_set", "qpsolvers:piqp", "cvxpy:CLARABEL"]
USERS, ITEMS, WIDTH = 5, 8, 3


def drawn(seed):
    """Planes of 5 users on 8 items, each with four items and a few planes, factors and what offsets are pulled to."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(USERS), rng.integers(1, 7, USERS))
    planes = np.zeros((user.size, ITEMS))
    for u in range(USERS):
        rated = rng.permutation(ITEMS)[:4]
        own = np.flatnonzero(user == u)
        planes[np.ix_(own, rated)] = rng.normal(size=(own.size, 4))
    heights, prior = rng.random(user.size), rng.normal(size=ITEMS)
    users, items = rng.normal(size=(USERS, WIDTH)), rng.normal(size=(ITEMS, WIDTH))
    return planes, heights, user, users, items, prior, rng.uniform(0.5, 2.0, USERS)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_users_block_is_that_of_its_primal(solver):
    import cvxpy as cp

    for seed in range(3):
        planes, heights, user, users, items, prior, weights = drawn(seed)
        for u in range(USERS):
            own = user == u
            program = user_block_dual(
                planes[own], heights[own], items, prior, lam=0.7, weight=weights[u], start=users[u] / 9
            )
            solution = solve(program, solver)
            factors = cp.Variable(WIDTH)
            loss = cp.maximum(0, cp.max(heights[own] + planes[own] @ (prior + items @ factors)))
            penalty = 0.35 * cp.sum_squares(factors - users[u] / 9)
            best = cp.Problem(cp.Minimize(penalty + weights[u] * loss)).solve(solver="CLARABEL")
            assert solution.value == pytest.approx(best, abs=1e-6)
            assert solution.value <= best + 1e-9 * (1 + best)
            assert certify(program, solution).gap <= 1e-5
            np.testing.assert_allclose(users[u] / 9 + solution.dual["step"], factors.value, atol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_the_items_block_is_that_of_its_primal(solver):
    import cvxpy as cp

    for seed in range(3):
        planes, heights, user, users, _, prior, weights = drawn(seed)
        program = item_block_dual(planes, heights, user, users, prior, lam=0.7, lam_offsets=3.0, weights=weights)
        solution = solve(program, solver)
        items, offsets = cp.Variable((ITEMS, WIDTH)), cp.Variable(ITEMS)
        scores = users @ items.T + cp.reshape(offsets, (1, ITEMS), order="C")
        at = heights + cp.sum(cp.multiply(planes, scores[user.tolist()]), axis=1)
        losses = [cp.maximum(0, cp.max(at[np.flatnonzero(user == u).tolist()])) for u in range(USERS)]
        penalty = 0.35 * cp.sum_squares(items) + 1.5 * cp.sum_squares(offsets - prior)
        best = cp.Problem(cp.Minimize(penalty + weights @ cp.hstack(losses))).solve(solver="CLARABEL")
        assert solution.value == pytest.approx(best, abs=1e-6)
        found, moved = unpack_step(solution.dual["step"], prior, WIDTH, lam=0.7, lam_offsets=3.0)
        np.testing.assert_allclose(found, items.value, atol=2e-3)
        np.testing.assert_allclose(moved, offsets.value, atol=2e-3)
        alpha = solution.primal["α"]
        state = planes * alpha[:, None]
        np.testing.assert_allclose(found, -(state.T @ users[user]) / 0.7, atol=1e-9)
        np.testing.assert_allclose(moved, prior - state.sum(axis=0) / 3.0, atol=1e-9)


def test_both_blocks_share_a_dual_state():
    """At the optimum of either block its state proves the value: the two bounds are those of section 11."""
    planes, heights, user, users, _, prior, weights = drawn(7)
    program = item_block_dual(planes, heights, user, users, prior, lam=0.7, lam_offsets=3.0, weights=weights)
    solution = solve(program, "active_set")
    psi = np.zeros((USERS, ITEMS))
    np.add.at(psi, user, planes * solution.primal["α"][:, None])
    height = heights @ solution.primal["α"]
    sums = psi.sum(axis=0)
    bound = height + prior @ sums - ((psi.T @ users) ** 2).sum() / 1.4 - (sums**2).sum() / 6.0
    assert bound == pytest.approx(solution.value, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"planes": np.ones((2, 3))}, "need a height each"),
        ({"offsets": [0.0]}, "and a row of items"),
        ({"lam": 0.0}, "positive"),
        ({"items": [[np.nan], [1.0]]}, "items"),
    ],
)
def test_a_users_data_must_fit(change, message):
    usual = {"planes": [[1.0, -1.0]], "heights": [1.0], "items": [[1.0], [2.0]], "offsets": [0.0, 0.0], "lam": 1.0}
    with pytest.raises(InvalidProblemError, match=message):
        user_block_dual(**{**usual, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": [0.0]}, "an entry for each column"),
        ({"user": [1]}, "user must be between 0 and 0"),
        ({"lam_offsets": 0.0}, "lam_offsets must be positive and finite; got 0.0"),
        ({"weights": 0.0}, "positive"),
    ],
)
def test_the_items_data_must_fit(change, message):
    usual = {
        "planes": [[1.0, -1.0]], "heights": [1.0], "user": [0], "users": [[1.0]], "prior": [0.0, 0.0], "lam": 1.0,
        "lam_offsets": 1.0,
    }  # fmt: skip
    with pytest.raises(InvalidProblemError, match=message):
        item_block_dual(**{**usual, **change})


# The gallery: what loads, what its table names, and problems that keep their data.


def test_importing_formulations_loads_no_solver():
    script = "import sys, formulations; print(*{name.split('.')[0] for name in sys.modules})"
    run = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    heavy = {"cvxpy", "ortools", "highspy", "networkx", "numba", "scipy", "qpsolvers"}
    assert heavy.intersection(run.stdout.split()) == set()


def test_the_gallery_is_a_table_of_functions():
    assert {"ranking", "matching", "margin_dual"} <= set(GALLERY) <= set(dir(formulations))
    for name in GALLERY:
        problem = getattr(formulations, name)
        assert callable(problem), f"{name} is the function even after its file was imported"
        assert problem.__name__ == name
        assert "integrality" in problem.__doc__ or name == "margin_dual"
        assert ">>>" in problem.__doc__
    for name in formulations.__all__:
        assert getattr(formulations, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'rankings'"):
        attrgetter("rankings")(formulations)
    assert all(name in formulations.__doc__ for name in GALLERY)


def test_matching_places_by_any_benefit():
    benefit = [[1.0, 5.0, 2.0], [4.0, 6.0, 1.0]]
    assert solve(matching(benefit), "scipy").order.tolist() == [1, 0]
    held = matching(benefit, allowed=[[True, False, True], [True, True, True]])
    solution = solve(held, "ortools")
    assert solution.order.tolist() == [2, 1]
    assert solution.primal["π"].tolist() == [[0, 0, 1], [0, 1, 0]]
    assert certify(held, solution, exact=True).gap == 0
    assert solution.dual["position"].sum() + solution.dual["document"].sum() == pytest.approx(8.0)


@pytest.mark.parametrize("sense", ["max", "min"])
@pytest.mark.parametrize("seed", range(6))
def test_matching_by_costs_and_profits_is_the_best_of_all_orders(seed, sense):
    """Every compatible solver, forbidden cells written in all three ways, at most six documents."""
    rng = np.random.default_rng(seed)
    k, n = 2 + seed % 3, 4 + seed % 3
    table = rng.integers(-5, 6, (k, n)) * (1.0 if seed % 2 else 0.37)
    forbidden = (rng.random((k, n)) < 0.3) & ~np.eye(k, n, dtype=bool)
    never = -np.inf if sense == "max" else np.inf
    written = np.where(forbidden, never, table)
    totals = [written[range(k), order].sum() for order in permutations(range(n), k)]
    best = max(totals) if sense == "max" else min(totals)
    problem = matching(written, sense=sense)
    for other in (
        matching(table, allowed=~forbidden, sense=sense),
        matching(np.ma.array(table, mask=forbidden), sense=sense),
    ):
        assert solve(other).value == pytest.approx(best)
    assert written[linear_sum_assignment(written, maximize=sense == "max")].sum() == pytest.approx(best)
    for solver in compatible_solvers(problem):
        solution = solve(problem, solver)
        assert solution.value == pytest.approx(best)
        assert solution.bound == pytest.approx(best)
        assert solution.status is Status.OPTIMAL
        assert solution.dual["position"].sum() + solution.dual["document"].sum() == pytest.approx(best)
        proved = certify(problem, solution, exact=True)
        assert float(proved.value) == float(proved.bound) == pytest.approx(best)


def test_the_bound_of_costs_is_a_lower_one():
    cost = np.random.default_rng(0).random((4, 6))
    problem, profits = matching(cost, sense="min"), matching(-cost)
    best = solve(problem)
    assert (best.value, best.bound) == (-solve(profits).value, -solve(profits).bound)
    for dual in np.random.default_rng(1).random((50, 6)):
        assert problem.bound(dual) == -profits.bound(dual) <= best.value
        assert problem.bound_float64(dual) == pytest.approx(problem.bound(dual))
    worse = problem.solution(np.array([3, 2, 1, 0]))
    assert worse.bound <= best.value < worse.value
    assert worse.gap == pytest.approx(worse.value - worse.bound)
    with pytest.raises(CertificateError):
        certify(problem, replace(worse, bound=worse.value, status=Status.OPTIMAL))
    assert problem.to_text().startswith("minimize")
    assert replace(problem, profit=2 * cost).sense == "min"


def test_problems_do_not_change_with_the_callers_arrays():
    benefit, allowed = np.eye(3), np.ones((3, 3), dtype=bool) ^ np.eye(3, dtype=bool)
    problem = matching(benefit, allowed=allowed)
    benefit[:], allowed[:] = 7.0, False
    assert problem.profit.tolist() == np.eye(3).tolist()
    assert problem.allowed.sum() == 6
    with pytest.raises(ValueError, match="read-only"):
        problem.profit[0, 0] = 1.0
    rows = csr_array(np.eye(2))
    program = LinearProgram(np.ones(2), rows, np.zeros(2), np.ones(2), np.zeros(2), np.ones(2))
    rows.data[:] = 9.0
    assert program.matrix.toarray().tolist() == np.eye(2).tolist()


# Prices of an order by NumPy and by the kernels are the same to the bit, and what they prove is the same but for round


@pytest.mark.parametrize("seed", range(8))
def test_both_ways_say_the_same(seed, monkeypatch):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 25, 15)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    n = int(offsets[-1])
    weights = {
        "discount": lambda k: (np.arange(k) < 4) / (1.0 + np.arange(k)),
        "position_weights": lambda k: (1.0 + np.arange(k)) ** -0.5,
    }
    scores = random.normal(size=n) if seed % 3 else random.integers(0, 2, n) / 2.0
    problems = ranking(scores, random.integers(0, 3, n) / 2, offsets=offsets, **weights)
    orders = [random.permutation(int(k)) if seed % 2 else np.arange(k) for k in lengths]  # optimal or not
    given = (problems.scores, problems.gain, problems.discount, problems.position_weights)
    found = []
    for small in (False, True):
        monkeypatch.setattr("formulations.compiled.PAYS", 1 << 60 if small else -1)
        monkeypatch.setattr(ranking_duals, "is_small", lambda offsets, small=small: small)
        monkeypatch.setattr(Kernel, "is_ready", property(lambda _, small=small: not small))
        one = tuple(values[: lengths[0]] for values in given)
        prices, order = prices_of(*one, orders[0]), np.concatenate(orders)
        ranked = RankedQueries(*given, offsets, order)
        found.append((prices, bounds_of_orders(ranked), bound_of_prices(*one, prices), *judged(ranked, np.zeros(15))))
    for kernel, numpy in zip(found[0][:3], found[1][:3], strict=True):
        assert np.asarray(kernel).tobytes() == np.asarray(numpy).tobytes()
    for kernel, numpy in zip(found[0][3:], found[1][3:], strict=True):
        assert np.allclose(kernel, numpy, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("compiled", [False, True])
def test_bounds_are_not_below_those_in_rationals_where_documents_almost_tie(compiled, monkeypatch):
    monkeypatch.setattr("formulations.compiled.PAYS", -1 if compiled else 1 << 60)
    monkeypatch.setattr(Kernel, "is_ready", property(lambda _: compiled))
    random = np.random.default_rng(3)
    for _ in range(60):
        scores, gain = 1.0 + random.integers(0, 3, (2, 12)) * 2.0**-52  # products of these round to equal doubles
        discount, weights = -np.sort(-random.choice([0.0, 0.37, 0.8], (2, 12)))
        prices = random.integers(0, 2, 12) / 4.0
        problem = ranking(scores, gain, discount=discount, position_weights=weights)
        s, b, v = (list(map(Fraction, values.tolist())) for values in (scores, gain, prices))
        best = [
            max(c * own - a * worth - price for own, worth, price in zip(s, b, v, strict=True))
            for c, a in zip(map(Fraction, weights.tolist()), map(Fraction, discount.tolist()), strict=True)
        ]
        assert 0 <= Fraction(problem.bound(prices)) - sum(best) - sum(v) <= Fraction(2.0**-47)


@pytest.mark.parametrize("seed", range(6))
def test_bounds_of_few_gains_are_those_of_all_pairs(seed, monkeypatch):
    """Any duals have the same bound over the levels of gain as over all pairs; duals of the levels prove the optimum,
    also where equal weights leave the order within a gain open, weights are negative or documents stay unplaced."""
    random = np.random.default_rng([7, seed])
    for _ in range(60):
        n = int(random.integers(1, 40))
        k = int(random.integers(1, n + 1))
        real = random.random() < 0.5
        scores = random.normal(size=n) if real else random.integers(-3, 4, n) / 2.0
        gain = random.integers(0, random.integers(1, 6), n) / 4.0
        weights = random.normal(size=(2, k)) if real else random.integers(-1, 5, (2, k)) / 2.0
        discount, position_weights = -np.sort(-weights)
        if random.random() < 0.4:  # a tail without weight
            discount[k // 3 :], position_weights[k // 3 :] = np.minimum(discount[k // 3], 0), 0
            position_weights[: k // 3] = np.maximum(position_weights[: k // 3], 0)
        problem = ranking(scores, gain, discount=discount, position_weights=position_weights)
        one = (problem.scores, problem.gain, problem.discount, problem.position_weights)
        order, duals = linear_sum_assignment(problem.assignment().profit, maximize=True)[1], random.normal(size=n)
        with monkeypatch.context() as patch:
            patch.setattr(ranking_duals, "PAIRS", -1)
            patch.setattr(ranking_duals, "LONG", 1)
            levels = GainLevels.of_long_list(*one)
            assert levels is not None
            long, few = bound_of_prices(*one, duals, levels), prices_of(*one, order, levels)
            proved = problem.bound(few)
        every = bound_by(*one, duals)
        assert long == pytest.approx(every, rel=1e-15, abs=1e-14)
        assert real or long == every  # without rounding errors no digit may differ
        value = problem.value_lower_bound(order)
        assert value <= proved <= value + problem.rounding
        assert proved <= problem.bound(prices_of(*one, order)) + problem.rounding
