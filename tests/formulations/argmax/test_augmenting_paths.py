"""From any order shortest paths lead to the best one, and the prices at their end prove it."""

import numpy as np
import pytest

from formulations import ranking, solve, solve_batch
from formulations.argmax.assignment import augment, lift, take_nearest
from formulations.argmax.layout import find_cones
from formulations.argmax.pruned_search import loose_positions, open_slack, price_between, raise_prices
from formulations.solvers.exact import ExactArgmax

POSITIONS = np.arange(1.0, 1100.0)
WEIGHTS = {
    "power": lambda n: POSITIONS[:n] ** -0.5,
    "log": lambda n: 1 / np.log2(POSITIONS[:n] + 1),
    "plateaus": lambda n: np.floor((n - POSITIONS[:n]) / 3) / n,
    "cut": lambda n: np.where(POSITIONS[:n] <= 6, 1 / POSITIONS[:n], 0.0),
    "level": lambda n: np.where(POSITIONS[:n] <= 4, 1.0, 0.0),
    "halved": lambda n: 2.0 ** ((1 - POSITIONS[:n]) / 4),
}
PAIRS = [
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
        self.position_weights, self.discount = WEIGHTS[position_weights](n), WEIGHTS[discount](n)
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
@pytest.mark.parametrize(("position_weights", "discount"), PAIRS)
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


@pytest.mark.parametrize(("position_weights", "discount"), PAIRS)
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
    for discount in (WEIGHTS["log"], WEIGHTS["halved"]):
        a = discount(n) / (discount(n) @ np.sort(gain)[::-1])
        problems = ranking(
            0.1 * height, gain, discount=a, position_weights=POSITIONS[:n] ** -position_weights, offsets=[0, n]
        )
        answer = solve_batch(problems, ExactArgmax(max_states=room))
        assert answer.value[0] == pytest.approx(solve(problems[0], "scipy").value, abs=problems[0].rounding)
        assert answer.proved().bound[0] == pytest.approx(answer.value[0], abs=problems[0].rounding)
