"""Both blocks: optima against cvxpy on 5 users and 8 films, bounds that are bounds, and slopes that are gradients."""

import itertools
import pickle
import weakref
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import permutations

import cvxpy as cp
import numpy as np
import pytest
from problems.rated import few, tastes

from formulations.parallel import at_most
from rankopt.collaborative import least_squares, plane_blocks, user_block
from rankopt.collaborative.alternation import Alternation, alternated
from rankopt.collaborative.encoded_ratings import EncodedRatings, compact
from rankopt.collaborative.item_block import FEW, UserPlanes
from rankopt.collaborative.least_squares import RidgesFor
from rankopt.collaborative.linear_algebra import solve_ridges
from rankopt.collaborative.plane_blocks import RatingPlanesEvaluation
from rankopt.collaborative.problem import Factors, ModelState, block_bounds
from rankopt.collaborative.regularization import Penalties, start_of
from rankopt.collaborative.user_block import UserBundles, mix
from rankopt.collaborative.user_loss import UserLoss
from rankopt.engines import Serial
from rankopt.ratings import Ratings

LOSSES = ["regression", "nDCG@3", "ERU(d=2)", "ordinal", "preferences"]


def made(loss, ratings, by_counts=False, bound="convex"):
    known = UserLoss.named(loss, bound, "shifted(0.25)")
    rated = known.seen(EncodedRatings.from_ratings(ratings))
    penalties = Penalties(0.1, 3.0, 2.0 if known.sees_levels else None, by_counts)
    return known.blocks(penalties.problem(rated), Serial()).at_strength(0.7, 0.4)


def slopes_of(planes):
    """One array a plane."""
    sizes = np.repeat(np.diff(planes.bounds), planes.counts)
    return np.split(planes.slopes, np.cumsum(sizes)[:-1])


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
    decay, gain, discount = argmax.problem.position_weights, argmax.problem.gain, argmax.problem.discount
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
            blocks.at(replace(factors, **{name: getattr(factors, name) + step * direction})).value
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
        assert blocks.at(replace(now.factors, users=moved)).value >= now.users
        moved = checked.factors.items + size * draws.normal(size=checked.factors.items.shape)
        assert blocks.at(replace(checked.factors, items=moved)).value >= checked.items


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
    best = blocks.complete(done.best)
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
    rated = blocks.problem.rated
    blocks.with_items(blocks.begun(drawn(blocks)), 1e-3)
    assert told
    for given in told:
        arrays = [one for part in given for one in (vars(part).values() if hasattr(part, "mixed") else [part])]
        for one in arrays:
            assert one is None or not np.shares_memory(one, rated.stored)
            same = np.shape(one)[-1:] == rated.stored.shape
            assert not same or not np.array_equal(one, np.broadcast_to(rated.stored, one.shape))


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
    again = planes.writable().with_weight()
    for name, array in vars(planes).items():
        np.testing.assert_allclose(getattr(again, name), array, rtol=1e-15)


def test_a_block_that_begins_with_planes_asks_the_loss_less_often(monkeypatch):
    blocks, asked = made("nDCG@3", tastes(users=12, items=10, each=6)), []
    real = RatingPlanesEvaluation.__call__
    monkeypatch.setattr(RatingPlanesEvaluation, "__call__", lambda *given: (asked.append(1), real(*given))[1])
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
    gone = [weakref.ref(one.slopes) for one in now.planes]
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
    at, real = blocks.begun(drawn(blocks, d=8)), UserBundles.with_capacity
    monkeypatch.setattr(
        UserBundles, "with_capacity", lambda self, room: (widths.append((self.capacity, room)), real(self, room))[1]
    )
    found = blocks.with_users(at, 1e-10)
    assert widths == [(12, 24)]
    monkeypatch.setattr(user_block, "FEW", user_block.MAX_PLANES)
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
    bounds, wrong = blocks.problem.rated.bounds, planes.weights.copy()
    assert blocks.planes_of([vars(planes)])[0].weights is planes.weights
    wrong[0] += 0.5
    for name, array, told in (
        ("counts", planes.counts[1:], "users"),
        ("slopes", planes.slopes[1:], "shape"),
        ("slopes", planes.slopes.astype(np.float32), "shape"),
        ("gram", np.zeros(3), "shape"),
        ("heights", np.full_like(planes.heights, np.nan), "finite"),
        ("weights", wrong, "weights"),
        ("counts", -planes.counts, "users"),
        ("bounds", planes.bounds[:-1], "other ratings"),
    ):
        with pytest.raises(ValueError, match=told):
            replace(planes, **{name: array}).check(bounds)
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
        terms = float(np.abs(now.slopes) @ np.abs(rated.values)) + size
        for found, bound in zip(
            (now.users, now.items), exact_bounds(blocks.problem, factors, now.slopes, now.heights), strict=True
        ):
            below.append(float(bound - Fraction(found)))
            assert 0.0 <= below[-1] <= 1e-12 * terms
        for u in range(rated.n_users):
            own = slice(*rated.bounds[u : u + 2])
            psi, y = ([Fraction(one) for one in part[own].tolist()] for part in (now.slopes, rated.values))
            exact = -sum(p * p / 2 + p * v for p, v in zip(psi, y, strict=True))
            below.append(float(exact - Fraction(now.heights[u])))
            assert 0.0 <= below[-1] <= 1e-12 * terms
    assert max(below) > 0.0


def test_bounds_without_factors_are_rounded_down_too():
    """The offsets of many users cost more than their sum shows, though no factor counts."""
    n = 20_000
    rated = EncodedRatings.from_ratings(Ratings.from_arrays(np.arange(n), np.zeros(n, dtype=int), np.ones(n)))
    problem = Penalties(0.0, 1.0, 1.0).problem(rated)
    own = np.full(n, np.sqrt(1.01 * 2.0**-53))
    own[0] = 1.0
    factors = Factors(np.zeros((n, 0)), np.zeros((1, 0)), problem.prior, own)
    found = ModelState.at(problem, factors, 0.0, np.zeros(n), np.zeros(n)).items
    assert Fraction(found) <= sum(Fraction(one) ** 2 for one in own.tolist()) / 2


def unusual(loss):
    """Ratings that no other number equals by chance: each its own, or for a loss of pairs five grades."""
    ratings, draws = tastes(users=12, items=10, each=6), np.random.default_rng(0)
    values = ratings.values + 0.1 * draws.random(len(ratings))
    if loss == "ordinal":
        values = np.sqrt([2.0, 3.0, 5.0, 7.0, 11.0])[ratings.values.astype(int) - 1]
    return Ratings.from_arrays(ratings.users[ratings.user_of()], ratings.items[ratings.columns], values)


class Recorded(Serial):
    """Sends questions and answers as pickled bytes, as an engine of other machines does."""

    def __init__(self):
        object.__setattr__(self, "sent", [])
        object.__setattr__(self, "came", [])

    def map(self, question, shards):
        self.sent.append(pickle.dumps(question))
        answers = super().map(pickle.loads(self.sent[-1]), shards)
        self.came += [pickle.dumps(answer) for answer in answers]
        return answers


@pytest.mark.parametrize("loss", ["ordinal", "nDCG@3", "regression"])
def test_messages_of_the_items_block_hold_no_rating(loss, monkeypatch):
    monkeypatch.setattr(plane_blocks, "CHUNK", 20)  # several shards
    monkeypatch.setattr(least_squares, "SHARD_ROWS", 20)
    known, draws = UserLoss.named(loss, "convex", "shifted(0.25)"), np.random.default_rng(1)
    rated, engine = known.seen(EncodedRatings.from_ratings(unusual(loss))), Recorded()
    problem = Penalties(0.1, 3.0, 2.0 if known.sees_levels else None).problem(rated).at_strength(0.7, 0.4)
    blocks = known.blocks(problem, engine)
    n, m = rated.n_users, rated.n_items
    at = blocks.at(Factors(draws.normal(size=(n, 2)), draws.normal(size=(m, 2)), draws.normal(size=m), np.zeros(n)))
    blocks.with_users(at, 1e-3)
    engine.sent.clear()
    engine.came.clear()
    blocks.with_items(at, 1e-3)
    grades = [one.tobytes() for one in np.unique(rated.values)]
    lists = [rated.stored[low:high].tobytes() for low, high in itertools.pairwise(rated.bounds)]
    lists = [one for one in lists if len(one) >= 4 and len(set(one)) > 1]
    for secret, where in ((grades, rated.values), (lists, rated.stored)):
        assert any(one in pickle.dumps(where) for one in secret)  # so they would be found
    assert engine.sent
    assert len(engine.came) >= 3
    for message in (*engine.sent, *engine.came):
        assert not any(secret in message for secret in (*grades, *lists))
    assert {type(pickle.loads(message)) for message in engine.sent} == {
        RidgesFor if loss == "regression" else RatingPlanesEvaluation
    }
    shapes = {
        # of items their factors and offsets; of users v l_u, δ_u and ψ, of which Σ ψ_uj U_u is made
        ((s.last - s.first, 2), (s.last - s.first,))
        if loss == "regression"
        else ((s.last - s.first,), (s.last - s.first,), s.columns.shape)
        for s in blocks._shards
        if loss != "regression" or s.side == "items"
    }
    answers = [pickle.loads(message) for message in engine.came]
    assert {tuple(one.shape for one in answer) for answer in answers if answer is not None} <= shapes


@pytest.mark.parametrize(("value", "kind"), [(0.5, np.float32), (0.1, np.float64), (1e300, np.float64)])
def test_values_are_stored_in_single_precision_where_that_loses_nothing(value, kind):
    given = np.array([1.0, -0.0, 3.5, value])
    assert compact(given).dtype == kind
    assert compact(given).astype(np.float64).tobytes() == given.tobytes()


@pytest.mark.parametrize("loss", ["regression", "nDCG@5"])
def test_pairs_are_those_of_the_dual_state_at_the_best_offsets(loss):
    known = UserLoss.named(loss, "convex", "shifted(0.25)")
    penalties = Penalties(0.1, 10.0, 10.0 if known.sees_levels else None)
    blocks = penalties.blocks(known, known.seen(EncodedRatings.from_ratings(tastes())), Serial())[0]
    start = start_of(blocks, 3)
    dense = blocks.problem.rated.table(blocks.offsets_only().slopes).toarray()
    left, size, right = np.linalg.svd(dense)
    assert start.lam_max == pytest.approx(size[0])
    best = -(left[:, :3] * size[:3]) @ right[:3]
    np.testing.assert_allclose(start.factors.users @ start.factors.items.T, best, atol=1e-9)


@pytest.mark.parametrize("d", [0, 1, 3, 4, 9, 17])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("offset", [False, True])
def test_every_row_is_the_solution_of_its_system(d, weighted, offset):
    draws = np.random.default_rng(d)
    sizes = np.array([0, 1, 2, 5, 8, 17, 18, 19, 70, 131, 0])
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    columns = draws.integers(0, 40, bounds[-1]).astype(np.int32)
    target, other = draws.normal(size=bounds[-1]), draws.normal(size=(40, d))
    weights = draws.uniform(0.1, 3.0, bounds[-1]) if weighted else np.zeros(0)
    penalty, own = draws.uniform(0.1, 5.0, sizes.size), draws.uniform(0.1, 5.0, sizes.size if offset else 0)
    found, offsets = solve_ridges(bounds, columns, target, weights, other, penalty, own)
    for i in range(sizes.size):
        rows = slice(bounds[i], bounds[i + 1])
        A = np.column_stack([other[columns[rows]], np.ones((sizes[i], int(offset)))])
        W = np.diag(weights[rows] if weighted else np.ones(sizes[i]))
        wanted = np.linalg.solve(
            A.T @ W @ A + np.diag([penalty[i]] * d + [own[i]] * offset if offset else [penalty[i]] * d),
            A.T @ W @ target[rows],
        )
        np.testing.assert_allclose(found[i], wanted[:d], atol=1e-12)
        assert offsets[i] == pytest.approx(wanted[d] if offset else 0.0, abs=1e-12)


def test_threads_change_no_bit():
    draws = np.random.default_rng(0)
    bounds = np.arange(0, 20001, 20)
    columns = draws.integers(0, 50, bounds[-1]).astype(np.int32)
    given = bounds, columns, draws.normal(size=bounds[-1]), np.zeros(0), draws.normal(size=(50, 6))
    penalty = np.ones(bounds.size - 1)
    with at_most(1):
        one = solve_ridges(*given, penalty, penalty)
    with at_most(4):
        four = solve_ridges(*given, penalty, penalty)
    assert [part.tobytes() for part in one] == [part.tobytes() for part in four]


# Planes of users grow where they carry weight, and mix as sums say.


BOUNDS = np.array([0, 4, 4, 7, 12])


def grown(seed, rounds=9, weights=True):
    """Planes after so many rounds, and all slopes and heights that went in, user after user, place by place."""
    draws = np.random.default_rng(seed)
    slopes, heights = draws.normal(size=12), draws.normal(size=4)
    planes = UserPlanes.first(BOUNDS, slopes, heights)
    known = [[(slopes[BOUNDS[u] : BOUNDS[u + 1]], heights[u])] if BOUNDS[u + 1] > BOUNDS[u] else [] for u in range(4)]
    for _ in range(rounds):
        if weights:  # the first two planes of each user carry weight, whatever else there is
            owner = np.repeat(np.arange(4), planes.counts)
            number = np.arange(owner.size) - np.repeat(np.cumsum(planes.counts) - planes.counts, planes.counts)
            planes.weights[:] = np.where(number == 0, 0.25, np.where(number == 1, 0.75, 0.0))
            planes.weights[planes.counts[owner] == 1] = 1.0
        slopes, heights = draws.normal(size=12), draws.normal(size=4)
        planes, place = planes.with_plane(slopes, heights)
        for u in (0, 2, 3):
            fresh = (slopes[BOUNDS[u] : BOUNDS[u + 1]], heights[u])
            known[u][place[u] : place[u] + 1] = [fresh]
    return planes, known


@pytest.mark.parametrize("seed", range(3))
def test_planes_are_what_went_in(seed):
    planes, known = grown(seed)
    assert planes.counts.tolist() == [len(one) for one in known]
    assert max(planes.counts) == FEW  # planes without weight make way
    assert planes.slopes.tobytes() == np.concatenate([one for user in known for one, _ in user]).tobytes()
    assert planes.heights.tolist() == [height for user in known for _, height in user]
    slopes, heights = planes.mixed()
    parts = np.split(planes.weights, np.cumsum(planes.counts)[:-1])
    for u, (own, weights) in enumerate(zip(known, parts, strict=True)):
        sums = sum((w * one for w, (one, _) in zip(weights, own, strict=True)), np.zeros(BOUNDS[u + 1] - BOUNDS[u]))
        assert slopes[BOUNDS[u] : BOUNDS[u + 1]] == pytest.approx(sums, abs=1e-14)
        assert heights[u] == pytest.approx(sum(w * h for w, (_, h) in zip(weights, own, strict=True)), abs=1e-14)
    kept = planes.with_weight()
    kept.check(BOUNDS)
    assert kept.counts.tolist() == [2, 0, 2, 2]
    for before, after in zip((slopes, heights), kept.mixed(), strict=True):
        assert after == pytest.approx(before, abs=1e-14)


def test_planes_with_weight_never_make_way():
    draws = np.random.default_rng(3)
    planes = UserPlanes.first(BOUNDS, draws.normal(size=12), draws.normal(size=4))
    for _ in range(3 * FEW):
        before = tables(planes)
        planes, _ = planes.with_plane(draws.normal(size=12), draws.normal(size=4))
        planes.weights[:] = 1.0 / np.repeat(planes.counts, planes.counts)
        for old, new in zip(before, tables(planes), strict=True):
            assert new[:-1].tobytes() == old.tobytes()
    assert set(planes.counts.tolist()) == {0, 3 * FEW + 1}


def test_of_too_many_planes_the_two_lightest_are_joined():
    """Mixtures stay what they were, and Gram matrices those of the planes."""
    planes, _ = grown(0, rounds=FEW - 1, weights=False)
    assert planes.counts.tolist() == [FEW, 0, FEW, FEW]
    planes.weights[:] = np.tile([0.3, 0.2, 0.05, 0.25, 0.12, 0.08], 3)
    planes.gram[:] = np.concatenate([(own @ own.T).ravel() for own in tables(planes)])
    before, heights = planes.mixed(), np.random.default_rng(5).normal(size=4)
    slopes = np.ones(12)
    after, place = planes.with_plane(slopes, heights, most=0)
    assert after.counts.tolist() == planes.counts.tolist()
    assert place[[0, 2, 3]].tolist() == [2, 2, 2]
    assert after.weights[:6] == pytest.approx([0.3, 0.2, 0.0, 0.25, 0.12, 0.13])
    assert after.heights[[2, 8, 14]].tolist() == heights[[0, 2, 3]].tolist()
    for one, other in zip(before, after.mixed(), strict=True):
        assert other == pytest.approx(one, abs=1e-14)
    found = np.split(after.gram, 3)
    stay = np.delete(np.arange(FEW), 2)
    for own, gram in zip(tables(after), found, strict=True):
        square = gram.reshape(FEW, FEW)
        np.testing.assert_allclose(square[np.ix_(stay, stay)], (own @ own.T)[np.ix_(stay, stay)], atol=1e-12)
    assert planes.with_plane(slopes, heights)[0].counts.max() == FEW + 1


def tables(planes):
    """(planes, ratings) slopes of each user who has any."""
    low, found = 0, []
    for count, size in zip(planes.counts, np.diff(planes.bounds), strict=True):
        if count:
            found.append(planes.slopes[low : low + count * size].reshape(count, size))
            low += count * size
    return found
