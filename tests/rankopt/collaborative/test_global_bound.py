"""The bound of the whole against the convex problem of the trace norm [paper 5, footnote 4]; below every descent."""

from collections import namedtuple
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array, random_array

from rankopt.collaborative import singular_value
from rankopt.collaborative.global_bound import global_bound
from rankopt.collaborative.singular_value import (
    frobenius_bound,
    largest_singular_value,
    weighted_bound,
)
from rankopt.collaborative.verification import verify_global_bound
from rankopt.errors import DataError, OptionError

USERS, ITEMS, LAM_U, LAM_M, LAM_B = 5, 8, 0.12, 0.08, 0.5

State = namedtuple("State", ["psi", "height", "curvature"])


def of_squares(bounds, columns, targets, residual, weights=1.0):
    """The dual state of Σ (v/2)(f - y)²: slopes v (f - y) of residuals f - y, and what their planes cost."""
    slope = weights * residual
    psi = csr_array((slope, columns, bounds), shape=(USERS, ITEMS))
    return State(psi, -(slope * targets).sum(), (slope * slope / weights).sum())


def rated(seed, least=3, most=4):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(least, most + 1, USERS)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.concatenate([np.sort(rng.permutation(ITEMS)[:n]) for n in sizes]).astype(np.int32)
    return bounds, columns, rng.integers(1, 6, bounds[-1]).astype(float), 0.3 * rng.normal(size=ITEMS)


def pieces(loss, y):
    """The planes of one user's loss, in groups: the loss is the sum over groups of the highest plane or 0."""
    pairs = [(i, j) for i in range(y.size) for j in range(y.size) if y[i] < y[j]]
    if loss == "ndcg":
        gain = 2.0**y - 1
        discount, decay = 1 / np.log2(np.arange(2, y.size + 2)), np.arange(2.0, y.size + 2) ** -0.25
        best = np.sort(gain)[::-1] @ discount
        orders = [list(order) for order in permutations(range(y.size))]
        placed = np.zeros((len(orders), y.size))
        for row, order in zip(placed, orders, strict=True):
            row[order] = decay
        regret = np.array([1 - discount @ gain[order] / best for order in orders])
        return [(regret, placed - placed[np.abs(regret) < 1e-12].mean(axis=0))]
    cost = {"ordinal": y, "preferences": 2.0**y}[loss]
    found = []
    for i, j in pairs:
        slope = np.zeros((1, y.size))
        slope[0, i], slope[0, j] = 1.0, -1.0
        found.append((np.ones(1) * (cost[j] - cost[i]) / len(pairs), slope * (cost[j] - cost[i]) / len(pairs)))
    return found


def every_piece(loss, bounds, y):
    """All planes of all users, with slopes over all ratings, and where each group begins."""
    heights, slopes, starts = [], [], []
    for low, high in pairwise(bounds.tolist()):
        for own, steep in pieces(loss, y[low:high]):
            starts.append(len(heights))
            heights.extend(own)
            slopes.extend(np.concatenate([np.zeros(low), row, np.zeros(y.size - high)]) for row in steep)
    return np.array(heights), np.array(slopes), np.array(starts)


def relaxed(loss, bounds, columns, y, prior, user_offsets=None):
    """min L(F) + √(λ_U λ_M) ‖F‖_* + ... by cvxpy: its value, and the dual state of its optimum."""
    import cvxpy as cp

    matrix, offset = cp.Variable((USERS, ITEMS)), cp.Variable(ITEMS)
    own = cp.Variable(USERS) if user_offsets else np.zeros(USERS)
    rows = np.repeat(np.arange(USERS), np.diff(bounds))
    scores = cp.hstack([matrix[u, j] + offset[j] + own[u] for u, j in zip(rows, columns, strict=True)])
    penalty = np.sqrt(LAM_U * LAM_M) * cp.normNuc(matrix) + LAM_B / 2 * cp.sum_squares(offset - prior)
    penalty += user_offsets / 2 * cp.sum_squares(own) if user_offsets else 0
    limits = []
    if loss == "squared":
        risk = 0.5 * cp.sum_squares(scores - y)
    else:
        slacks = []
        for low, high in pairwise(bounds.tolist()):
            for heights, slopes in pieces(loss, y[low:high]):
                slack = cp.Variable(nonneg=True)
                limits.append((slack >= heights + slopes @ scores[low:high], low, heights, slopes))
                slacks.append(slack)
        risk = sum(slacks)
    problem = cp.Problem(cp.Minimize(risk + penalty), [limit[0] for limit in limits])
    problem.solve(solver="CLARABEL")
    if loss == "squared":
        state = of_squares(bounds, columns, y, scores.value - y)
        return problem.value, state.psi, state.height, state.curvature
    psi, height = np.zeros(y.size), 0.0
    for limit, low, heights, slopes in limits:
        share = np.maximum(np.atleast_1d(limit.dual_value), 0.0)
        share /= max(1.0, share.sum())
        height += share @ heights
        psi[low : low + slopes.shape[1]] += share @ slopes
    return problem.value, csr_array((psi, columns, bounds), shape=(USERS, ITEMS)), height, 0.0


LOSSES = ["ordinal", "preferences", "ndcg", "squared"]


@pytest.mark.parametrize("loss", LOSSES)
def test_from_the_best_dual_state_it_is_the_trace_norms_optimum(loss):
    for seed in range(2):
        bounds, columns, y, prior = rated(seed)
        best, psi, height, curvature = relaxed(loss, bounds, columns, y, prior)
        found = global_bound(psi, height, prior, LAM_U, LAM_M, LAM_B, curvature=curvature)
        assert found.value <= best * (1 + 1e-7) + 1e-9
        assert found.value >= best * (1 - 2e-4)
        assert found.shrink == pytest.approx(1.0, abs=1e-3)


def test_offsets_of_users_are_in_it():
    bounds, columns, y, prior = rated(3)
    best, psi, height, curvature = relaxed("squared", bounds, columns, y, prior, user_offsets=0.7)
    found = global_bound(psi, height, prior, LAM_U, LAM_M, LAM_B, 0.7, curvature=curvature)
    assert best * (1 - 2e-4) <= found.value <= best * (1 + 1e-7)


@pytest.mark.study
@pytest.mark.parametrize("loss", LOSSES)
def test_it_is_below_the_best_of_fifty_descents_from_any_dual_state(loss):
    bounds, columns, y, prior = rated(4)
    rows, rng = np.repeat(np.arange(USERS), np.diff(bounds)), np.random.default_rng(5)
    width = 3

    heights, slopes, begins = (None, None, None) if loss == "squared" else every_piece(loss, bounds, y)

    def risk(scores):
        if loss == "squared":
            return 0.5 * ((scores - y) ** 2).sum(), scores - y
        planes = heights + slopes @ scores
        ends = np.append(begins[1:], planes.size)
        top = [low + int(planes[low:high].argmax()) for low, high in zip(begins, ends, strict=True)]
        top = [plane for plane in top if planes[plane] > 0]
        return planes[top].sum(), slopes[top].sum(axis=0)

    def objective(x):
        U, M = x[: USERS * width].reshape(USERS, width), x[USERS * width : -ITEMS].reshape(ITEMS, width)
        value, r = risk((U[rows] * M[columns]).sum(axis=1) + x[-ITEMS:][columns])
        value += LAM_U / 2 * (U**2).sum() + LAM_M / 2 * (M**2).sum() + LAM_B / 2 * ((x[-ITEMS:] - prior) ** 2).sum()
        slope = csr_array((r, columns, bounds), shape=(USERS, ITEMS))
        of_offsets = slope.sum(axis=0) + LAM_B * (x[-ITEMS:] - prior)
        parts = slope @ M + LAM_U * U, slope.T @ U + LAM_M * M, of_offsets
        return value, np.concatenate([part.ravel() for part in parts])

    starts = rng.normal(size=(50, (USERS + ITEMS) * width + ITEMS))
    best = min(minimize(objective, x, jac=True, method="L-BFGS-B", options={"maxiter": 80}).fun for x in starts)
    relaxed_best, *_ = relaxed(loss, bounds, columns, y, prior)
    assert relaxed_best <= best + 1e-6
    for _ in range(40):  # whatever planes are mixed, and however steeply
        scores = rng.normal(size=y.size) * rng.choice([0.1, 1.0, 10.0])
        psi, height, curvature = np.zeros(y.size), 0.0, 0.0
        if loss == "squared":
            state = of_squares(bounds, columns, y, scores - y)
            psi, height, curvature = state.psi.data, state.height, state.curvature
        else:
            for low, high in pairwise(bounds.tolist()):
                for heights, slopes in pieces(loss, y[low:high]):
                    share = rng.dirichlet(np.ones(heights.size)) * rng.random()
                    height, psi[low:high] = height + share @ heights, psi[low:high] + share @ slopes
        matrix = csr_array((psi, columns, bounds), shape=(USERS, ITEMS))
        found = global_bound(matrix, height, prior, LAM_U, LAM_M, LAM_B, curvature=curvature)
        assert found.value <= relaxed_best * (1 + 1e-6) + 1e-9
        assert found.value >= -1e-12
        assert found.shrink * found.singular.bound <= 1.0


def test_penalties_of_their_own_are_those_of_a_scaled_matrix():
    bounds, columns, y, prior = rated(6)
    rng = np.random.default_rng(7)
    lam_u, lam_m, lam_b = rng.uniform(0.1, 1.0, USERS), rng.uniform(0.1, 1.0, ITEMS), rng.uniform(0.5, 2.0, ITEMS)
    state = of_squares(bounds, columns, y, rng.normal(size=y.size), rng.uniform(0.5, 2.0, y.size))
    found = global_bound(state.psi, state.height, prior, lam_u, lam_m, lam_b, curvature=state.curvature)
    dense = state.psi.toarray()
    norm = np.linalg.norm(dense / np.sqrt(np.outer(lam_u, lam_m)), 2)
    sums = dense.sum(axis=0)
    linear, square = state.height + prior @ sums, state.curvature + (sums**2 / lam_b).sum()
    theta = np.clip(linear / square, 0, 1 / norm)
    assert found.value == pytest.approx(theta * linear - theta**2 / 2 * square, rel=1e-9)
    assert found.shrink == pytest.approx(theta, rel=1e-9)
    fixed = global_bound(state.psi, state.height, prior, lam_u, lam_m, curvature=state.curvature)
    theta = np.clip(linear / state.curvature, 0, 1 / norm)
    assert fixed.value == pytest.approx(theta * linear - theta**2 / 2 * state.curvature, rel=1e-9)


def test_the_plane_of_squares_lies_below_them():
    bounds, columns, y, _ = rated(8)
    rng = np.random.default_rng(9)
    weights = rng.uniform(0.5, 2.0, y.size)
    state = of_squares(bounds, columns, y, rng.normal(size=y.size), weights)
    for theta in (0.3, 1.0, 2.5):
        for scores in rng.normal(size=(50, y.size)) * 5:
            plane = theta * state.height - theta**2 / 2 * state.curvature + theta * state.psi.data @ scores
            assert plane <= 0.5 * (weights * (scores - y) ** 2).sum() + 1e-9


def test_a_gap_and_no_state_at_all():
    nothing = global_bound(csr_array((3, 4)), 0.0, np.zeros(4), 1.0, 1.0, 1.0)
    assert nothing.value == 0.0
    assert nothing.gap(2.0) == 1.0
    assert nothing.gap(0.0) == 0.0
    assert "J >= 0" in str(nothing)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lam_users": 0.0}, "lam_users must be positive"),
        ({"lam_items": [1.0, 2.0]}, "lam_items must be positive, one number or one for each of 4"),
        ({"lam_offsets": np.nan}, "lam_offsets"),
        ({"prior": np.nan}, "prior and height"),
        ({"curvature": -1.0}, "not negative"),
    ],
)
def test_what_is_no_penalty_is_refused(given, message):
    usual = {"prior": 0.0, "lam_users": 1.0, "lam_items": 1.0, "lam_offsets": 1.0}
    with pytest.raises(OptionError, match=message):
        global_bound(csr_array((3, 4)), 0.0, **{**usual, **given})


@pytest.mark.parametrize("seed", range(6))
def test_it_is_verified_and_a_little_more_than_it_is_not(seed):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((30, 20)) < 0.4, rng.normal(size=(30, 20)), 0.0)
    lam_u, lam_m = (rng.uniform(0.5, 2.0, 30), rng.uniform(0.5, 2.0, 20)) if seed % 2 else (3.0, 5.0)
    given = [csr_array(dense), 40.0, rng.normal(size=20), lam_u, lam_m, 20.0, [None, 40.0][seed % 2]]
    options = {"curvature": [0.0, 3.0][seed % 2]}
    claimed = global_bound(*given, **options)
    for widest in (5000, 0):
        narrow = replace(claimed, shrink=claimed.shrink / 4, value=claimed.value / 4) if widest == 0 else claimed
        found = verify_global_bound(narrow, *given, **options, widest=widest)
        assert found.holds
        assert found.norm >= np.linalg.norm(dense / np.sqrt(np.outer(lam_u * np.ones(30), lam_m * np.ones(20))), 2)
    exact = verify_global_bound(claimed, *given, **options)
    assert exact.value == pytest.approx(claimed.value, rel=1e-9)
    assert not verify_global_bound(replace(claimed, value=claimed.value * (1 + 1e-6)), *given, **options)
    steeper = replace(claimed, shrink=claimed.shrink * 3, value=claimed.value * 2)
    assert not verify_global_bound(steeper, *given, **options)


def test_one_bound_from_an_estimate_that_was_too_small_is_refused():
    """A norm taken from an iteration that missed the top pair would allow too little shrinking."""
    psi = csr_array(np.diag([5.0, 1.0, 1.0]))
    given = (psi, 10.0, np.zeros(3), 1.0, 1.0, 100.0)
    honest = global_bound(*given)
    assert honest.shrink == pytest.approx(0.2)
    assert honest.value == pytest.approx(0.2 * 10 - 0.02 * 27 / 100)
    assert not verify_global_bound(replace(honest, value=9.0, shrink=1.0), *given)
    assert verify_global_bound(honest, *given)


# The largest singular value from above: never below the truth, close to it.


def drawn(seed, rows, columns, density=0.5):
    rng = np.random.default_rng(seed)
    return csr_array(random_array((rows, columns), density=density, rng=rng, data_sampler=rng.normal))


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (5, 8), (60, 40), (30, 300)])
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150, 3e-320])
def test_it_is_the_largest_and_never_below_it(shape, scale):
    for seed in range(4):
        psi = drawn(seed, *shape, density=1.0 if 1 in shape else 0.3) * scale
        found, plain = largest_singular_value(psi), largest_singular_value(psi, widest=0)
        true = np.linalg.norm((psi * (1 / scale if scale > 1e-300 else 1e300)).toarray(), 2)
        true *= scale if scale > 1e-300 else 1e-300
        slack = 1e-14 if scale > 1e-300 else 1e-2
        assert true * (1 - slack) <= found.bound <= true * (1 + 1e-9 + slack) + 5e-324
        assert found.estimate == pytest.approx(true, rel=1e-11 + slack)
        assert plain.bound >= found.bound * (1 - 1e-12)
        assert plain.proof == "norms"


def test_equal_matrices_of_integers_are_enclosed_tightly():
    """Known exactly: n ones in a row are √n, and a matrix of ones is √(mn)."""
    for m, n in ((1, 9), (3, 5), (40, 17)):
        found = largest_singular_value(csr_array(np.ones((m, n))))
        assert found.bound**2 >= m * n
        assert found.bound == pytest.approx(np.sqrt(m * n), rel=1e-10)


def test_what_no_iteration_found_the_factor_does_not_deny(monkeypatch):
    """An estimate that is far too low costs tightness, never the bound."""
    psi = drawn(4, 40, 30)
    true = np.linalg.norm(psi.toarray(), 2)
    monkeypatch.setattr(singular_value, "top_pairs", lambda table, count: (None, np.array([1e-2]), None))
    found = largest_singular_value(psi)
    assert found.estimate < true / 10
    assert true <= found.bound <= 2.01 * true


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9])
def test_close_pairs_are_enclosed_too(gap):
    rng = np.random.default_rng(1)
    left, right = (np.linalg.qr(rng.normal(size=(n, 12)))[0] for n in (40, 30))
    values = np.concatenate([[1.0, 1.0 - gap, 1.0 - gap], np.linspace(0.9, 0.1, 9)])
    found = largest_singular_value(csr_array((left * values) @ right.T))
    assert 1.0 - 1e-14 <= found.bound <= 1.0 + max(1e-8, 4 * gap)


def test_other_names_for_rows_and_columns_change_nothing():
    psi = drawn(2, 40, 60)
    rng = np.random.default_rng(3)
    rows, columns = rng.permutation(40), rng.permutation(60)
    here, there = largest_singular_value(psi), largest_singular_value(csr_array(psi[rows][:, columns]))
    assert here.bound == pytest.approx(there.bound, rel=1e-12)


def test_norms_are_upper_bounds_and_better_than_rows_and_columns():
    for seed in range(5):
        psi = drawn(seed, 30, 50, 0.2)
        true = np.linalg.norm(psi.toarray(), 2) ** 2
        assert true <= frobenius_bound(psi)
        assert true <= np.linalg.norm(abs(psi).toarray(), 2) ** 2 <= weighted_bound(psi)
        assert weighted_bound(psi) <= np.linalg.norm(psi.toarray(), 1) * np.linalg.norm(psi.toarray(), np.inf)
    positive = abs(drawn(9, 30, 50, 0.5))
    assert weighted_bound(positive) == pytest.approx(np.linalg.norm(positive.toarray(), 2) ** 2, rel=1e-3)


def test_nothing_and_what_is_no_number():
    nothing = largest_singular_value(csr_array((4, 3)))
    assert (nothing.bound, nothing.estimate) == (0.0, 0.0)
    with pytest.raises(DataError, match="NaN or infinite"):
        largest_singular_value(csr_array(np.array([[np.nan, 1.0]])))
