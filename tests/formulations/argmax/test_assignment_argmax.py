"""Small batches are solved without compiled code: the same values, bounds that hold, and orders as good."""

from itertools import pairwise, permutations

import numpy as np
import pytest

from formulations import diverse_retrieval, ranking, solve, solve_batch
from formulations.argmax import batch as batch_module
from formulations.argmax.assignment import augment, lift, take_nearest
from formulations.argmax.diverse import diverse_argmax
from formulations.argmax.layout import find_cones
from formulations.argmax.pruned_search import loose_positions, open_slack, price_between, raise_prices
from formulations.compiled import PAIRS, ROWS, is_small
from formulations.solvers.exact import ExactArgmax

WEIGHTS = {
    "power": lambda n: np.arange(1.0, n + 1) ** -0.5,
    "log": lambda n: 1.0 / np.log2(np.arange(n) + 2.0),
    "halved": lambda n: 2.0 ** (-np.arange(n) / 4),
    "cut": lambda n: np.where(np.arange(n) < 3, 1.0 / np.arange(1.0, n + 1), 0.0),
    "level": lambda n: np.full(n, 0.5),
    "negative": lambda n: -np.arange(n) / n,
    "nothing": np.zeros,
}


def batch_of(random, position_weights, discount, lengths, ties=False):
    n = int(np.sum(lengths))
    scores = random.integers(-1, 2, n) / 2 if ties else random.normal(size=n)
    gain = random.integers(0, 4, n) / 4.0
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return ranking(
        scores, gain, discount=WEIGHTS[discount], position_weights=WEIGHTS[position_weights], offsets=offsets
    )


@pytest.mark.every(3)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("position_weights", WEIGHTS)
@pytest.mark.parametrize("discount", ["power", "cut", "level"])
def test_value_and_bound_enclose_the_best_of_all_orders(position_weights, discount, ties):
    random = np.random.default_rng(1)
    problems = batch_of(random, position_weights, discount, random.integers(1, 7, 25), ties)
    answer = solve_batch(problems, ExactArgmax(compiled=False))
    for q in range(len(problems)):
        rows = slice(*problems.offsets[[q, q + 1]].tolist())
        s, b, a, c = (getattr(problems, name)[rows] for name in ("scores", "gain", "discount", "position_weights"))
        best = max(c @ s[list(order)] - a @ b[list(order)] for order in permutations(range(s.size)))
        order = answer.order[rows]
        assert sorted(order) == list(range(s.size))
        assert answer.value[q] == pytest.approx(c @ s[order] - a @ b[order], abs=1e-12)
        assert answer.value[q] == pytest.approx(best, abs=1e-12)
        assert answer.value[q] <= best + 1e-13
        assert best <= answer.bound[q] + 1e-15 * abs(best)


@pytest.mark.parametrize("position_weights", ["power", "cut"])
def test_the_compiled_ways_find_the_same_values(position_weights):
    random = np.random.default_rng(2)
    problems = batch_of(random, position_weights, "power", random.integers(1, 60, 30))
    plain, compiled = (solve_batch(problems, ExactArgmax(compiled=flag)) for flag in (False, True))
    assert np.allclose(plain.value, compiled.value, rtol=1e-12, atol=1e-12)
    assert set(plain.algorithm) <= {"few candidates", "assignment", "one sort", "any order"}


def test_queries_that_merging_leaves_open_may_go_to_scipy(monkeypatch):
    random = np.random.default_rng(3)
    n, offsets = 40 * 20, np.arange(0, 801, 40)
    gain, weights = (
        random.integers(0, 8, n) / 8.0,
        {"position_weights": WEIGHTS["power"], "discount": WEIGHTS["halved"]},
    )
    problems = ranking(gain + random.normal(size=n) / 4, gain, offsets=offsets, **weights)
    compiled = solve_batch(problems, ExactArgmax(compiled=True))
    monkeypatch.setattr(batch_module, "FEW_OPEN", 32)
    few = solve_batch(problems, ExactArgmax(compiled=True))
    assert np.allclose(few.value, compiled.value, rtol=1e-12, atol=1e-12)
    assert "assignment" in set(few.algorithm)


def test_what_is_small_is_asked_of_the_whole():
    assert is_small(np.arange(0, ROWS + 1, 16))
    assert not is_small(np.arange(0, ROWS + 17, 16))
    long = int(PAIRS**0.5)
    assert is_small(np.array([0, long]))
    assert not is_small(np.array([0, long + 1]))
    random = np.random.default_rng(4)
    whole = ExactArgmax().for_batch(np.array([0, ROWS + 1]))
    part = batch_of(random, "cut", "cut", [5, 6])
    assert whole.compiled is True
    assert set(solve_batch(part, whole).algorithm) != set(solve_batch(part, ExactArgmax(compiled=False)).algorithm)


# From any order shortest paths lead to the best one, and the prices at their end prove it.


POSITIONS = np.arange(1.0, 1100.0)
WEIGHTS_PATHS = {
    "power": lambda n: POSITIONS[:n] ** -0.5,
    "log": lambda n: 1 / np.log2(POSITIONS[:n] + 1),
    "plateaus": lambda n: np.floor((n - POSITIONS[:n]) / 3) / n,
    "cut": lambda n: np.where(POSITIONS[:n] <= 6, 1 / POSITIONS[:n], 0.0),
    "level": lambda n: np.where(POSITIONS[:n] <= 4, 1.0, 0.0),
    "halved": lambda n: 2.0 ** ((1 - POSITIONS[:n]) / 4),
}
PAIRS_PATHS = [
    ("power", "log"), ("power", "halved"), ("plateaus", "cut"), ("cut", "cut"), ("cut", "power"), ("level", "cut"),
    ("power", "level"),
]  # fmt: skip


class Case:
    """Chains of documents with weights and a random order of them, priced."""

    def __init__(self, random, n, chains, position_weights, discount, ties):
        gain = np.sort(random.integers(-1, chains - 1, n) / 4.0)
        scores = random.integers(0, 4, n) / 4 if ties else gain + random.normal(size=n) / 2
        by_chain = np.lexsort((-scores, gain))
        self.height, self.gain = scores[by_chain], gain[by_chain]
        self.position_weights, self.discount = WEIGHTS_PATHS[position_weights](n), WEIGHTS_PATHS[discount](n)
        low, high = np.zeros(n, np.int32), np.zeros(n, np.int32)
        self.stop = find_cones(self.discount, self.position_weights, low, high)
        start = np.flatnonzero(np.diff(self.gain, prepend=np.nan) != 0)
        size = np.minimum(np.diff(np.append(start, n)), self.stop + 1)
        kept = np.concatenate([np.arange(low, low + size) for low, size in zip(start, size, strict=True)])
        self.label = np.zeros(n, np.int8)
        self.label[: self.stop] = random.permutation(np.repeat(np.arange(start.size), size))[: self.stop]
        self.chains, self.kept = (
            (self.height, self.gain[start], start, size, self.discount, self.position_weights),
            kept,
        )
        self.price, self.most, self.placed = np.zeros(n), np.zeros(n), np.zeros(start.size, np.int64)
        position_weights, discount = (
            self.position_weights - self.position_weights[self.stop],
            self.discount - self.discount[self.stop],
        )
        self.profit = (np.outer(position_weights, self.height) - np.outer(discount, self.gain))[: self.stop]

    def priced(self, raised=False):
        value = price_between(*self.chains, self.stop, self.label, self.placed, self.price)
        if raised:
            raise_prices(*self.chains, self.stop, self.label, self.placed, self.price)
        return open_slack(*self.chains, self.stop, self.price, value, np.zeros(len(self.gain), np.int64), self.most)

    def augmented(self):
        n = len(self.gain)
        room = (np.zeros(n, np.int8), np.zeros((n, self.placed.size), np.int32))
        augment(*self.chains, self.stop, self.price, self.most, 1e-14, self.label, *room)

    def held(self):
        """The slot at each position."""
        at, slots = self.chains[2].copy(), []
        for g in self.label[: self.stop]:
            slots.append(at[g])
            at[g] += 1
        return np.array(slots)


@pytest.mark.every(3)
@pytest.mark.parametrize(("position_weights", "discount"), PAIRS_PATHS)
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("raised", [False, True])
def test_shortest_paths_lead_from_any_order_to_the_best(position_weights, discount, ties, raised):
    random = np.random.default_rng([len(position_weights), len(discount), ties])
    for n, chains in ((2, 2), (7, 3), (12, 12), (30, 2), (45, 5), (80, 16)):
        for _ in range(4):
            case = Case(random, n, chains, position_weights, discount, ties)
            if case.stop == 0:
                continue
            case.priced(raised)
            case.augmented()
            slots = case.held()
            assert np.unique(slots).size == case.stop
            value = case.profit[np.arange(case.stop), slots].sum()
            problem = ranking(case.height, case.gain, discount=case.discount, position_weights=case.position_weights)
            rest = case.position_weights[case.stop] * case.height.sum() - case.discount[case.stop] * case.gain.sum()
            assert value + rest == pytest.approx(solve(problem, "scipy").value, abs=1e-12)


@pytest.mark.parametrize(("position_weights", "discount"), PAIRS_PATHS)
def test_no_position_wants_a_document_before_it_once_prices_are_raised(position_weights, discount):
    random = np.random.default_rng([len(discount), 3])
    for n, chains in ((9, 3), (40, 4)):
        case = Case(random, n, chains, position_weights, discount, ties=False)
        before = case.priced()
        prices = case.price.copy()
        after = case.priced(raised=True)
        assert np.all(case.price[case.kept] >= prices[case.kept])
        slots = case.held()
        for p in range(case.stop):
            here = case.profit[p] - case.price
            assert np.all(here[slots[:p]] <= here[slots[p]] + 1e-12)
        assert min(before, after) >= -1e-12
        loose = sum((case.profit[p] - case.price)[case.kept].max() > here + 1e-9 for p, here in enumerate(
            case.profit[np.arange(case.stop), slots] - case.price[slots]
        ))  # fmt: skip
        height, worth, start, _, a, c = case.chains
        told = loose_positions(
            height, worth, start, a, c, case.stop, case.label, case.placed, case.price, case.most, 1e-9
        )
        assert told == loose


def test_the_heap_gives_slots_by_distance():
    random = np.random.default_rng(0)
    distance = random.integers(0, 30, 60).astype(float)
    heap, place = np.zeros(60, np.int64), np.zeros(60, np.int64)
    for slot in range(60):
        heap[slot], place[slot] = slot, slot
        lift(heap, place, distance, slot)
    for slot in range(0, 60, 7):
        distance[slot] -= 9
        lift(heap, place, distance, place[slot])
    taken = [take_nearest(heap, place, distance, held) for held in range(60, 0, -1)]
    assert sorted(taken) == list(range(60))
    np.testing.assert_array_equal(distance[taken], np.sort(distance))


@pytest.mark.parametrize(("position_weights", "room"), [(1.0, 2), (1.0, None), (0.5, 2), (0.5, 3000)])
def test_a_thousand_documents_without_room_are_proved_by_shortest_paths(position_weights, room):
    """Five gains drawn from noisy scores, discounts of nDCG and ERU: states without end, an assignment all the same."""
    random = np.random.default_rng(5)
    n = 400
    height = random.normal(size=n)
    gain = 2.0 ** np.searchsorted([-1.0, -0.3, 0.3, 1.0], height + 0.7 * random.normal(size=n)) - 1
    for discount in (WEIGHTS_PATHS["log"], WEIGHTS_PATHS["halved"]):
        a = discount(n) / (discount(n) @ np.sort(gain)[::-1])
        problems = ranking(
            0.1 * height, gain, discount=a, position_weights=POSITIONS[:n] ** -position_weights, offsets=[0, n]
        )
        answer = solve_batch(problems, ExactArgmax(max_states=room))
        assert answer.value[0] == pytest.approx(solve(problems[0], "scipy").value, abs=problems[0].rounding)
        assert answer.proved().bound[0] == pytest.approx(answer.value[0], abs=problems[0].rounding)


# The compiled argmax over Π(B, k): the value of brute force, its own proof, and the same answer as the statement.


def batch(rng, sizes, draw):
    """Queries with blocks counted from 0, up to four positions each."""
    blocks = [np.unique(rng.integers(0, max(2, n // 2), n), return_inverse=True)[1] for n in sizes]
    places = np.cumsum([0, *(min(4, block.max() + 1) for block in blocks)])
    offsets = np.cumsum([0, *sizes])
    scores, gain = draw(offsets[-1]), np.abs(draw(offsets[-1]))
    falling = [np.sort(np.abs(draw(places[-1])))[::-1].copy() for _ in range(2)]
    weights = [np.concatenate([part[: high - low] for low, high in pairwise(places.tolist())]) for part in falling]
    return scores, gain, np.concatenate(blocks), offsets, *weights, places


def solved(queries):
    places = queries[-1]
    order, value, bound = np.empty(places[-1], dtype=np.int64), np.empty(places.size - 1), np.empty(places.size - 1)
    diverse_argmax(*queries, order, value, bound)
    return order, value, bound


DRAWS = {
    "normal": lambda rng: lambda size: rng.normal(size=size),
    "tied": lambda rng: lambda size: rng.integers(-1, 2, size).astype(float),
    "zero": lambda rng: lambda size: np.zeros(size),
    "1e9": lambda rng: lambda size: 1e9 * rng.normal(size=size),
    "1e-9": lambda rng: lambda size: 1e-9 * rng.normal(size=size),
}


@pytest.mark.parametrize("name", DRAWS)
def test_no_admissible_order_beats_it_and_prices_prove_it(name):
    rng = np.random.default_rng(3)
    queries = batch(rng, rng.integers(1, 7, 40), DRAWS[name](rng))
    scores, gain, block, offsets, discount, decay, places = queries
    order, value, bound = solved(queries)
    for q in range(offsets.size - 1):
        rows, spots = slice(offsets[q], offsets[q + 1]), slice(places[q], places[q + 1])
        profit = np.outer(decay[spots], scores[rows]) - np.outer(discount[spots], gain[rows])
        k, n = profit.shape
        admissible = [p for p in permutations(range(n), k) if np.unique(block[rows][list(p)]).size == k]
        best = max(profit[np.arange(k), list(p)].sum() for p in admissible)
        rounding = 1e-13 * (np.abs(profit).max() + 1e-300) * n
        assert value[q] == pytest.approx(best, abs=rounding)
        assert tuple(order[spots]) in admissible
        assert profit[np.arange(k), order[spots]].sum() == pytest.approx(best, abs=rounding)
        assert best - rounding <= bound[q] <= best + rounding


def test_the_statement_has_the_same_value():
    rng = np.random.default_rng(4)
    queries = batch(rng, rng.integers(20, 90, 15), DRAWS["normal"](rng))
    scores, gain, block, offsets, discount, decay, places = queries
    _, value, _ = solved(queries)
    for q in range(offsets.size - 1):
        rows, spots = slice(offsets[q], offsets[q + 1]), slice(places[q], places[q + 1])
        profit = np.outer(decay[spots], scores[rows]) - np.outer(discount[spots], gain[rows])
        assert value[q] == pytest.approx(solve(diverse_retrieval(profit, block[rows])).value, abs=1e-12)
