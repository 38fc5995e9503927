"""The two blocks of a factor model: as any solver has them, against the primal written out in cvxpy."""

import numpy as np
import pytest

from formulations import InvalidProblemError, certify, item_block_dual, solve, user_block_dual
from formulations.gallery.masters import unpacked

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
        found, moved = unpacked(solution.dual["step"], prior, WIDTH, lam=0.7, lam_offsets=3.0)
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
