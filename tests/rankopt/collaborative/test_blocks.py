"""Both blocks: optima against cvxpy on 5 users and 8 films, bounds that are bounds, and slopes that are gradients."""

import weakref
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import permutations

import cvxpy as cp
import numpy as np
import pytest
from problems.rated import few, tastes

from rankopt.collaborative import plane_blocks
from rankopt.collaborative import user_block as user_masters
from rankopt.collaborative.alternation import Alternation, alternated
from rankopt.collaborative.encoded_ratings import EncodedRatings
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.problem import ModelState, block_bounds
from rankopt.collaborative.regularization import Penalties
from rankopt.collaborative.shards import CodedPlanesAt
from rankopt.collaborative.user_block import UserBundles, mix
from rankopt.collaborative.user_loss import UserLoss
from rankopt.collaborative.user_planes import FEW
from rankopt.engines.threads import Serial
from rankopt.ratings import Ratings

LOSSES = ["regression", "nDCG@3", "ERU(d=2)", "ordinal", "preferences"]


def made(loss, ratings, by_counts=False, bound="convex"):
    known = UserLoss.named(loss, bound, "shifted(0.25)")
    rated = known.seen(EncodedRatings.of(ratings))
    penalties = Penalties(0.1, 3.0, 2.0 if known.sees_levels else None, by_counts)
    return known.blocks(penalties.problem(rated), Serial()).at_strength(0.7, 0.4)


def slopes_of(planes):
    """One array a plane."""
    sizes = np.repeat(np.diff(planes.bounds), planes.counts)
    kept = planes.plain if planes.plain.size else planes._as_plain().plain
    return np.split(kept, np.cumsum(sizes)[:-1])


def drawn(blocks, d=2, seed=0):
    draws, rated = np.random.default_rng(seed), blocks.problem.rated
    n, m = rated.n_users, rated.n_items
    own = draws.normal(size=n) if blocks.problem.of_user_offsets.size else np.zeros(n)
    return Factors(draws.normal(size=(n, d)), draws.normal(size=(m, d)), draws.normal(size=m), own)


def loss_of(name, relevance):
    """l_u as a function of a cvxpy expression of a user's scores."""
    if name == "regression":
        return lambda f: cp.sum_squares(f - relevance) / 2
    n = relevance.size
    known = UserLoss.named(name, "convex", "shifted(0.25)")
    argmax = known._loss(relevance, np.array([0, n])).argmax
    decay, gain, discount = argmax.problem.decay, argmax.problem.gain, argmax.problem.discount
    orders = [np.array(order) for order in permutations(range(n))]
    worth = np.array([discount @ gain[order] for order in orders])
    slopes = np.zeros((len(orders), n))
    for row, order in zip(slopes, orders, strict=True):
        row[order] = decay
    reference = slopes[np.isclose(worth, worth.max())].mean(axis=0)
    return lambda f: cp.max((slopes - reference) @ f + worth.max() - worth)


def solved(blocks, name, users=None, items=None):
    """min J over the other block by cvxpy: M, b where `users` is given, U, b_u where `items` is."""
    problem, rated = blocks.problem, blocks.problem.rated
    n, m, d = rated.n_users, rated.n_items, (users if items is None else items).items.shape[1]
    U, M, b, own = cp.Variable((n, d)), cp.Variable((m, d)), cp.Variable(m), cp.Variable(n)
    fixed = []
    if users is not None:
        U, own = users.users, users.user_offsets
    else:
        M, b = items.items, items.offsets
        if not problem.of_user_offsets.size:
            fixed.append(own == 0)
    cost = 0.5 * cp.sum(cp.multiply(problem.of_users, cp.sum(cp.square(U), axis=1)))
    cost += 0.5 * cp.sum(cp.multiply(problem.of_items, cp.sum(cp.square(M), axis=1)))
    cost += 0.5 * cp.sum(cp.multiply(problem.of_offsets, cp.square(b - problem.prior)))
    if problem.of_user_offsets.size:
        cost += 0.5 * cp.sum(cp.multiply(problem.of_user_offsets, cp.square(own)))
    for u in range(n):
        rows = slice(rated.bounds[u], rated.bounds[u + 1])
        seen = rated.columns[rows]
        f = b[seen] + M[seen] @ U[u] + own[u]
        cost += loss_of(name, rated.values[rows])(f)
    return cp.Problem(cp.Minimize(cost), fixed).solve(solver="CLARABEL")


@pytest.mark.every(5)
@pytest.mark.parametrize("by_counts", [False, True])
@pytest.mark.parametrize("loss", ["regression", "nDCG@3", "ERU(d=2)"])
def test_each_block_is_solved(loss, by_counts):
    blocks = made(loss, few(), by_counts)
    start = drawn(blocks)
    begun = ModelState.at(blocks.problem, start, *state(blocks, start))
    users = blocks.with_users(begun, 1e-7)
    best = solved(blocks, loss, items=start)
    assert users.value == pytest.approx(best, rel=1e-5)
    assert users.users <= best * (1 + 1e-7)
    assert users.users == pytest.approx(best, rel=1e-5)
    items = blocks.with_items(begun, 1e-7)
    best = solved(blocks, loss, users=start)
    assert items.value == pytest.approx(best, rel=1e-5)
    assert items.items <= best * (1 + 1e-7)
    assert items.items == pytest.approx(best, rel=1e-5)


def state(blocks, factors):
    """Σ l_u with slopes and heights at factors."""
    at = blocks.at(factors)
    loss = at.value - blocks.problem.users_penalty(factors) - blocks.problem.items_penalty(factors)
    return loss, at.slopes, at.heights


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_are_gradients(loss):
    """∂U_u = Σ_j ψ_uj M_j + λ U_u, ∂M_j = Σ_u ψ_uj U_u + λ M_j, ∂b_j = Σ_u ψ_uj + μ (b_j - b⁰_j), by differences."""
    blocks = made(loss, few(seed=3))
    factors, problem = drawn(blocks, seed=4), blocks.problem
    at, table = blocks.at(factors), problem.rated.table(blocks.at(factors).slopes)
    gradients = {
        "users": table @ factors.items + problem.of_users[:, None] * factors.users,
        "items": table.T @ factors.users + problem.of_items[:, None] * factors.items,
        "offsets": problem.rated.per_item(at.slopes) + problem.of_offsets * (factors.offsets - problem.prior),
    }
    if problem.of_user_offsets.size:
        own = problem.rated.per_user(at.slopes) + problem.of_user_offsets * factors.user_offsets
        gradients["user_offsets"] = own
    for name, gradient in gradients.items():
        direction = np.random.default_rng(5).normal(size=gradient.shape)
        ends = [
            blocks.value(replace(factors, **{name: getattr(factors, name) + step * direction}))
            for step in (1e-6, -1e-6)
        ]
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(float((gradient * direction).sum()), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_of_blocks_are_below_everything(loss):
    blocks = made(loss, tastes(users=12, items=10, each=6))
    begun = blocks.begun(drawn(blocks, seed=1))
    checked, now = blocks.around(begun, 1e-3)
    assert now.value <= begun.value
    draws = np.random.default_rng(2)
    for size in (1e-3, 0.1, 1.0):
        moved = now.factors.users + size * draws.normal(size=now.factors.users.shape)
        assert blocks.value(replace(now.factors, users=moved)) >= now.users
        moved = checked.factors.items + size * draws.normal(size=checked.factors.items.shape)
        assert blocks.value(replace(checked.factors, items=moved)) >= checked.items


@pytest.mark.parametrize("bound", ["tie-aware", "nonconvex"])
def test_other_bounds_fall_from_round_to_round(bound):
    blocks = made("nDCG@3", tastes(users=12, items=10, each=6), bound=bound)
    now = blocks.begun(drawn(blocks, seed=1))
    for _ in range(4):
        before, (_, now) = now.value, blocks.around(now, 1e-3)
        assert now.value <= before + 1e-12


@pytest.mark.parametrize(("loss", "seed", "at_best"), [("nDCG@3", 0, 1), ("ordinal", 0, 3), ("ordinal", 1, 2)])
def test_a_best_round_that_is_not_the_last_keeps_its_proof(loss, seed, at_best):
    """Planes that proved it are written to by later rounds."""
    blocks, proved = made(loss, tastes(users=30, items=20, each=12)), []

    def note(step, now):
        proved.append((now.by_planes, now.items, now.factors))

    begin, rounds = partial(blocks.begun, drawn(blocks, seed=seed)), iter(range(100))
    done = alternated(
        blocks, Alternation(1e-9, 8, patience=20), begin, [note], lambda now: -abs(next(rounds) - at_best)
    )
    by_planes, items, factors = proved[at_best - 1]
    assert by_planes
    assert len(proved) == 8
    assert done.best.factors is factors
    best = blocks.whole(done.best)
    assert best.items >= items - 1e-12 * best.value
    assert best.items == block_bounds(blocks.problem, best.factors, *best.of_items)[1]


def test_the_best_mixture_of_planes():
    draws = np.random.default_rng(0)
    for count in (1, 2, 5, 9):
        slopes, value = draws.normal(size=(count, 3)), draws.normal(size=count)
        gram, weight = slopes @ slopes.T, np.eye(1, count).ravel()
        left = mix(gram, value, count, 1e-9, weight, np.empty(count))
        x = cp.Variable(count)
        best = cp.Problem(cp.Maximize(value @ x - cp.sum_squares(slopes.T @ x) / 2), [x >= 0, cp.sum(x) == 1]).solve()
        assert value @ weight - weight @ gram @ weight / 2 == pytest.approx(best, abs=1e-6)
        assert left <= 1e-8
        assert weight.sum() == pytest.approx(1.0)
        assert weight.min() >= 0.0


def test_the_items_block_is_given_planes_and_no_ratings(monkeypatch):
    """The paper's remark on privacy: what users send for the items is Σ r_uj U_u, r of planes, and heights."""
    told = []
    real = plane_blocks.ascend_users
    monkeypatch.setattr(plane_blocks, "ascend_users", lambda *given: (told.append(given), real(*given))[1])
    blocks = made("nDCG@3", few())
    grades = blocks.problem.rated.values
    blocks.with_items(blocks.begun(drawn(blocks)), 1e-3)
    assert told
    for given in told:
        arrays = [one for part in given for one in (vars(part).values() if hasattr(part, "mixed") else [part])]
        for one in arrays:
            assert one is None or not np.shares_memory(one, grades.codes)
            for told_by in (grades[:], grades.codes):
                same = np.shape(one)[-1:] == told_by.shape
                assert not same or not np.array_equal(one, np.broadcast_to(told_by, one.shape))


@pytest.mark.parametrize("loss", ["nDCG@3", "ordinal"])
def test_planes_that_are_kept_are_planes_for_any_users(loss):
    blocks = made(loss, tastes(users=12, items=10, each=6))
    (planes,) = blocks.around(blocks.begun(drawn(blocks)), 1e-3)[1].planes
    rated, at = blocks.problem.rated, blocks.at(other := drawn(blocks, seed=9))
    scores, sizes = other.scores(rated.bounds, rated.columns), np.diff(rated.bounds)
    lost = at.heights + rated.per_user(at.slopes * scores)
    owner = np.repeat(np.arange(sizes.size), planes.counts)
    for u, height, slopes in zip(owner, planes.heights, slopes_of(planes), strict=True):
        assert height + slopes @ scores[slice(*rated.bounds[u : u + 2])] <= lost[u] + 1e-9
    assert np.bincount(owner, planes.weights) == pytest.approx(1.0)
    again = planes.again().with_weight()
    for name, array in vars(planes).items():
        np.testing.assert_allclose(getattr(again, name), array, rtol=1e-15)


def test_a_block_that_begins_with_planes_asks_the_loss_less_often(monkeypatch):
    blocks, asked = made("nDCG@3", tastes(users=12, items=10, each=6)), []
    real = CodedPlanesAt.__call__
    monkeypatch.setattr(CodedPlanesAt, "__call__", lambda *given: (asked.append(1), real(*given))[1])
    _, now = blocks.around(blocks.begun(drawn(blocks)), 1e-5)
    _, now = blocks.around(now, 1e-5)
    values, often = [], []
    for planes in (now.planes, None):
        asked.clear()
        values.append(blocks.with_items(replace(now, planes=planes), 1e-5).value)
        often.append(len(asked))
    assert often[0] < often[1]
    assert values[0] == pytest.approx(values[1], rel=2e-5)


def test_planes_of_the_last_round_are_gone_when_the_block_has_its_own():
    blocks = made("nDCG@3", tastes(users=12, items=10, each=6))
    _, now = blocks.around(blocks.begun(drawn(blocks)), 1e-5)
    before = now.apart()
    gone = [weakref.ref(one.codes) for one in now.planes]
    checked, after = blocks.around(now, 1e-5)
    assert now.planes is after.planes
    assert checked.by_planes
    assert all(one() is not None for one in gone)  # of the list of its own
    del before
    assert all(one() is None for one in gone)


@pytest.mark.parametrize("precision", [1e-3, 1e-6])
def test_the_block_closes_from_any_start(precision):
    """Where it begins J is fifty times what it comes to: what is near is told by where it stands."""
    blocks = made("nDCG@10", tastes(users=12, items=30, each=20))
    at = blocks.begun(drawn(blocks))
    found = blocks.with_items(at, precision)
    assert at.value > 10.0 * found.value
    assert found.value - found.items <= precision * found.value * (1.0 + 1e-6)


def test_room_for_planes_of_users_is_made_when_one_needs_it(monkeypatch):
    """And then all is as if it had been there from the start, to the bit."""
    blocks, widths = made("nDCG@10", tastes(users=12, items=30, each=20)).at_strength(0.05, 0.4), []
    at, real = blocks.begun(drawn(blocks, d=8)), UserBundles.roomier
    monkeypatch.setattr(
        UserBundles, "roomier", lambda self, room: (widths.append((self.room, room)), real(self, room))[1]
    )
    found = blocks.with_users(at, 1e-10)
    assert widths == [(12, 24)]
    monkeypatch.setattr(user_masters, "FEW", user_masters.ROOM)
    wide = blocks.with_users(at, 1e-10)
    assert len(widths) == 1
    assert found.factors.users.tobytes() == wide.factors.users.tobytes()
    assert (found.users, found.slopes.tobytes()) == (wide.users, wide.slopes.tobytes())
    assert found.value - found.users <= 1e-9 * found.value


def test_where_planes_have_no_room_what_is_left_open_is_told(monkeypatch):
    """Lists of few stars need many planes; where these have no room, bounds are bounds still, and nearly meet."""
    blocks = made("nDCG@10", tastes(users=12, items=30, each=20))
    at = blocks.begun(drawn(blocks))
    free = blocks.with_items(at, 1e-5)
    assert max(one.counts.max() for one in free.planes) > FEW
    monkeypatch.setattr(plane_blocks, "CROWD", 0)
    monkeypatch.setattr(plane_blocks, "PASSES", 60)
    crowded = blocks.with_items(at, 1e-5)
    assert max(one.counts.max() for one in crowded.planes) <= FEW
    assert crowded.items <= free.value
    assert free.items <= crowded.value
    assert crowded.value - crowded.items <= 0.01 * crowded.value


def test_planes_that_are_no_mixture_are_refused():
    blocks = made("nDCG@3", tastes(users=12, items=10, each=6))
    (planes,) = blocks.with_items(blocks.begun(drawn(blocks)), 1e-3).planes
    bounds, scale, wrong = blocks.problem.rated.bounds, blocks.weights, planes.weights.copy()
    assert blocks.planes_of([vars(planes)])[0].weights is planes.weights
    wrong[0] += 0.5
    for name, array, told in (
        ("counts", planes.counts[1:], "users"),
        ("codes", planes.codes[1:], "shape"),
        ("codes", planes.codes.astype(np.int64), "shape"),
        ("reference", planes.reference[1:], "shape"),
        ("book", planes.book[:1], "book"),
        ("plain", np.zeros(3), "shape"),
        ("gram", np.zeros(3), "shape"),
        ("heights", np.full_like(planes.heights, np.nan), "finite"),
        ("weights", wrong, "weights"),
        ("counts", -planes.counts, "users"),
        ("book", planes.book[:, None], "book"),
        ("scale", 2.0 * planes.scale, "other ratings"),
        ("bounds", planes.bounds[:-1], "other ratings"),
    ):
        with pytest.raises(ValueError, match=told):
            replace(planes, **{name: array}).check(bounds, scale)
    with pytest.raises(ValueError, match="other ratings"):
        blocks.planes_of([vars(planes)] * 2)


def exact_bounds(problem, factors, slopes, heights):
    """The two bounds of a dual state in rational numbers."""
    rated, whole = problem.rated, np.vectorize(Fraction, otypes=[object])
    psi, seen, users = whole(slopes), rated.columns, rated.user_of()
    n, m, d = rated.n_users, rated.n_items, factors.items.shape[1]
    U, M, b, own = (whole(one) for one in (factors.users, factors.items, factors.offsets, factors.user_offsets))
    prior, of_users, of_items = whole(problem.prior), whole(problem.of_users), whole(problem.of_items)
    of_offsets, of_own = whole(problem.of_offsets), whole(problem.of_user_offsets)
    height = sum(whole(heights))
    rows, columns, of_u, of_m = [0] * n, [0] * m, [[0] * d for _ in range(n)], [[0] * d for _ in range(m)]
    for p, u, j in zip(psi, users, seen, strict=True):
        rows[u] += p
        columns[j] += p
        for a in range(d):
            of_u[u][a] += p * M[j, a]
            of_m[j][a] += p * U[u, a]
    two = Fraction(1, 2)
    cost_u = two * sum(of_users[u] * sum(U[u] ** 2) + of_own[u] * own[u] ** 2 for u in range(n))
    cost_m = two * sum(of_items[j] * sum(M[j] ** 2) + of_offsets[j] * (b[j] - prior[j]) ** 2 for j in range(m))
    block_u = height + sum(columns[j] * b[j] for j in range(m)) + cost_m
    block_u -= two * sum(sum(x * x for x in of_u[u]) / of_users[u] + rows[u] ** 2 / of_own[u] for u in range(n))
    block_m = height + sum(columns[j] * prior[j] for j in range(m)) + cost_u
    block_m += sum(rows[u] * own[u] for u in range(n))
    block_m -= two * sum(sum(x * x for x in of_m[j]) / of_items[j] + columns[j] ** 2 / of_offsets[j] for j in range(m))
    return block_u, block_m


@pytest.mark.parametrize("size", [1.0, 1e8])
def test_bounds_of_blocks_are_rounded_down(size):
    """Ratings far from 0 cancel, and what their sums lose is large beside what is left."""
    below = []
    for seed in range(20):
        plain = few(seed=seed)
        blocks = made("regression", replace(plain, values=plain.values + size))
        factors = drawn(blocks, seed=seed)
        factors = replace(factors, offsets=factors.offsets + size)
        now, rated = blocks.at(factors), blocks.problem.rated
        terms = float(np.abs(now.slopes) @ np.abs(rated.values[:])) + size
        for found, bound in zip(
            (now.users, now.items), exact_bounds(blocks.problem, factors, now.slopes, now.heights), strict=True
        ):
            below.append(float(bound - Fraction(found)))
            assert 0.0 <= below[-1] <= 1e-12 * terms
        for u in range(rated.n_users):
            own = slice(*rated.bounds[u : u + 2])
            psi, y = ([Fraction(one) for one in part[own].tolist()] for part in (now.slopes, rated.values[:]))
            exact = -sum(p * p / 2 + p * v for p, v in zip(psi, y, strict=True))
            below.append(float(exact - Fraction(now.heights[u])))
            assert 0.0 <= below[-1] <= 1e-12 * terms
    assert max(below) > 0.0


def test_bounds_without_factors_are_rounded_down_too():
    """The offsets of many users cost more than their sum shows, though no factor counts."""
    n = 20_000
    rated = EncodedRatings.of(Ratings.of(np.arange(n), np.zeros(n, dtype=int), np.ones(n)))
    problem = Penalties(0.0, 1.0, 1.0).problem(rated)
    own = np.full(n, np.sqrt(1.01 * 2.0**-53))
    own[0] = 1.0
    factors = Factors(np.zeros((n, 0)), np.zeros((1, 0)), problem.prior, own)
    found = ModelState.at(problem, factors, 0.0, np.zeros(n), np.zeros(n)).items
    assert Fraction(found) <= sum(Fraction(one) ** 2 for one in own.tolist()) / 2
