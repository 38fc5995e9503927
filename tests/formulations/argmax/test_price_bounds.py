"""Prices of a good order bound all others, and the search that they prune finds the best."""

import numpy as np
import pytest

from formulations.argmax.layout import find_cones
from formulations.argmax.order_ideals import NO_BEAM, best_labels
from formulations.argmax.pruned_search import greedy_labels, open_slack, price_between, searched_labels

POSITIONS = np.arange(1.0, 400.0)
WEIGHTS = {
    "power": lambda n: POSITIONS[:n] ** -0.5,
    "reciprocal": lambda n: 1 / POSITIONS[:n],
    "log": lambda n: 1 / np.log2(POSITIONS[:n] + 1),
    "plateaus": lambda n: np.floor((n - POSITIONS[:n]) / 3) / n,
    "cut": lambda n: np.where(POSITIONS[:n] <= 6, 1 / POSITIONS[:n], 0.0),
    "halved": lambda n: 2.0 ** ((1 - POSITIONS[:n]) / 4),
    "lifted": lambda n: 3 - np.sqrt(POSITIONS[:n]) / 9,
}
PAIRS = [("power", "log"), ("reciprocal", "halved"), ("plateaus", "cut"), ("cut", "cut"), ("lifted", "reciprocal")]


class Case:
    """Chains of documents with weights, as the kernels take them."""

    def __init__(self, random, n, chains, position_weights, discount, ties=False):
        gain = np.sort(random.integers(-1, chains - 1, n) / 4.0)
        scores = random.integers(0, 4, n) / 4 if ties else gain + random.normal(size=n) / 2
        by_chain = np.lexsort((-scores, gain))
        self.n, self.height = n, scores[by_chain]
        self.position_weights, self.discount = WEIGHTS[position_weights](n), WEIGHTS[discount](n)
        self.low, self.high = np.zeros(n, np.int32), np.zeros(n, np.int32)
        self.stop = find_cones(self.discount, self.position_weights, self.low, self.high)
        self.gain = gain[by_chain]
        self.start = np.flatnonzero(np.diff(self.gain, prepend=np.nan) != 0)
        self.worth = self.gain[self.start]
        self.size = np.minimum(np.diff(np.append(self.start, n)), self.stop + 1)
        self.label, self.price, self.most = np.zeros(n, np.int8), np.zeros(n), np.zeros(n)
        self.chains = (self.height, self.worth, self.start, self.size, self.discount, self.position_weights)

    def room(self, states=60_000):
        rows = (self.worth.size, states + 1)
        lists = (np.zeros(rows, np.int64), np.zeros(rows), np.zeros(rows, np.int32))
        return (
            *lists,
            np.zeros(states, np.int64),
            np.zeros(states),
            np.zeros(states, np.int32),
            np.zeros(states, np.int8),
        )

    def searched(self):
        zeros = np.zeros(self.n)
        cones = (self.low, self.high, self.stop)
        assert best_labels(*self.chains, *cones, zeros, zeros, np.inf, NO_BEAM, *self.room(), self.label) > 0
        return self.value()

    def pruned(self):
        spare = (self.price, self.most, np.zeros(self.n), np.zeros(self.n, np.int64))
        more = (np.zeros(self.n, np.int8), np.zeros((self.n, self.worth.size), np.int32), np.zeros(3))
        searched_labels(*self.chains, self.low, self.high, self.stop, *spare, *self.room(), self.label, *more)
        return self.value()

    def value(self):
        """Of the labels, weights counted above those of the last position."""
        at, total = self.start.copy(), 0.0
        for p in range(self.stop):
            slot = at[self.label[p]]
            total += self.profit[p, slot]
            at[self.label[p]] += 1
        return total

    @property
    def profit(self):
        above = slice(0, self.stop)
        decay, discount = (
            self.position_weights[above] - self.position_weights[self.stop],
            self.discount[above] - self.discount[self.stop],
        )
        return np.outer(decay, self.height) - np.outer(discount, self.gain)


@pytest.mark.parametrize(("position_weights", "discount"), PAIRS)
@pytest.mark.parametrize("ties", [False, True])
def test_a_pruned_search_finds_what_a_full_one_finds(position_weights, discount, ties):
    random = np.random.default_rng([len(position_weights), len(discount), ties])
    for n, chains in ((2, 2), (7, 3), (30, 2), (45, 5), (80, 3)):
        for _ in range(4):
            case = Case(random, n, chains, position_weights, discount, ties)
            if case.stop == 0:
                continue
            assert case.pruned() == pytest.approx(case.searched(), abs=1e-12)


@pytest.mark.parametrize(("position_weights", "discount"), PAIRS)
def test_prices_of_any_order_bound_every_order(position_weights, discount):
    random = np.random.default_rng([len(position_weights), 7])
    for n, chains in ((9, 3), (40, 4)):
        case = Case(random, n, chains, position_weights, discount)
        greedy_labels(*case.chains, case.stop, 0, np.zeros(case.worth.size, np.int64), case.label)
        value = case.value()
        told = price_between(*case.chains, case.stop, case.label, np.zeros(case.worth.size, np.int64), case.price)
        assert told == pytest.approx(value, abs=1e-12)
        kept = np.concatenate([np.arange(low, low + size) for low, size in zip(case.start, case.size, strict=True)])
        price = np.zeros(n)
        price[kept] = case.price[kept]
        assert price.min() >= 0
        slack = open_slack(*case.chains, case.stop, case.price, value, np.zeros(n, np.int64), case.most)
        most = (case.profit - price).max(axis=1)
        np.testing.assert_allclose(case.most[: case.stop], most, atol=1e-12)
        assert slack == pytest.approx(most.sum() + price.sum() - value, abs=1e-12)
        assert case.searched() <= value + slack + 1e-12


def test_prices_of_the_best_order_leave_little_to_search():
    """Between neighbours of the best order they are nearly exact: few states where a full search has thousands."""
    case = Case(np.random.default_rng(1), 300, 5, "power", "log")
    zeros, cones = np.zeros(case.n), (case.low, case.high, case.stop)
    widest = best_labels(*case.chains, *cones, zeros, zeros, np.inf, NO_BEAM, *case.room(), case.label)
    best = price_between(*case.chains, case.stop, case.label, np.zeros(case.worth.size, np.int64), case.price)
    slack = open_slack(*case.chains, case.stop, case.price, best, np.zeros(case.n, np.int64), case.most)
    left = best_labels(*case.chains, *cones, case.price, case.most, slack + 1e-12, NO_BEAM, *case.room(), case.label)
    assert case.value() == pytest.approx(best, abs=1e-12)
    assert left * 4 <= widest
