"""The first places are searched by counts, the rest is one sort: values of brute force, scipy and the other ways."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import ranking, solve, solve_batch
from formulations.argmax.layout import Layout, find_cones, prefix_length
from formulations.argmax.order_ideals import best_labels
from formulations.argmax.truncated import SortedChains, best_first_prefixes
from formulations.arrays import frozen

POSITIONS = np.arange(1.0, 1001.0)
FALLING = {
    "power": POSITIONS**-0.5,
    "reciprocal": 1 / POSITIONS,
    "log": 1 / np.log2(POSITIONS + 1),
    "lifted": 3 - np.sqrt(POSITIONS) / 40,
}


def cut(weights, n, k):
    return np.where(POSITIONS[:n] <= k, weights[:n], 0.0)


class Case:
    """One query as the kernels take it: chains of documents by rising gain and falling score."""

    def __init__(self, scores, gain, discount, position_weights):
        n = scores.size
        by_chain = np.lexsort((-scores, gain))
        self.n, self.height, gain = n, scores[by_chain], gain[by_chain]
        self.start = np.flatnonzero(np.diff(gain, prepend=np.nan) != 0)
        self.worth = gain[self.start]
        self.low, self.high = np.zeros(n, np.int32), np.zeros(n, np.int32)
        self.stop = find_cones(discount, position_weights, self.low, self.high)
        self.size = np.minimum(np.diff(np.append(self.start, n)), self.stop + 1)
        self.turn = prefix_length(self.low, self.high, self.stop)
        weights = frozen(discount), frozen(position_weights)
        self.chains = SortedChains(self.height, frozen(self.worth), self.start, self.size, *weights)
        self.profit = np.outer(position_weights - position_weights[self.stop], self.height) - np.outer(
            discount - discount[self.stop], gain
        )

    def placed(self, room=1 << 16):
        slot, label = np.full(1 << 16, -1, np.int32), np.zeros(self.n, np.int8)
        shorts = [np.zeros(room, np.int32) for _ in range(3)]
        found = best_first_prefixes(
            self.chains, self.low, self.high, self.stop, self.turn, slot,
            np.zeros(room, np.int64), np.zeros(room), np.zeros(room), *shorts,
            np.zeros(room, np.int8), label,
        )  # fmt: skip
        assert (slot == -1).all()
        return found, label

    def merged(self, room=1 << 16):
        shape, label = (self.worth.size, room + 1), np.zeros(self.n, np.int8)
        lists = (np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape, np.int32))
        states = (np.zeros(room, np.int64), np.zeros(room), np.zeros(room, np.int32), np.zeros(room, np.int8))
        found = best_labels(*self.chains, self.low, self.high, self.stop, *lists, *states, label)
        return found, label

    def value(self, label):
        at, total = self.start.copy(), 0.0
        for p in range(self.stop):
            total += self.profit[p, at[label[p]]]
            at[label[p]] += 1
        return total

    def best(self):
        places = range(self.n)
        return max(self.profit[places, list(order)].sum() for order in permutations(places))


def drawn(random, n, gains, k, discount="log", position_weights="power", scale=1.0, ties=False):
    scores = scale * (random.integers(0, 4, n) / 4 if ties else random.normal(size=n))
    return Case(scores, random.integers(0, gains, n) / 2.0, cut(FALLING[discount], n, k), FALLING[position_weights][:n])


grid = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.5, 0.3, 2.0])


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    documents=st.lists(st.tuples(grid, st.sampled_from([0.0, 1.0, -1.0, 0.5])), min_size=3, max_size=6),
    k=st.integers(1, 4),
    position_weights=st.sampled_from(sorted(FALLING)),
    swapped=st.booleans(),
    scale=st.sampled_from([1.0, 1e-9, 1e9, 0.01]),
)
def test_no_order_beats_the_first_places(documents, k, position_weights, swapped, scale):
    """Either weight may be the one that is cut; ties, zeros, negative scores and gains."""
    scores, gain = np.array(documents).T
    weights = cut(FALLING["log"], scores.size, k), FALLING[position_weights][: scores.size]
    case = Case(scores * scale, gain, *(weights[::-1] if swapped else weights))
    if case.turn:
        found, label = case.placed()
        assert found > 0
        assert case.value(label) == pytest.approx(case.best(), abs=1e-12 * np.abs(case.profit).sum())


@pytest.mark.parametrize("position_weights", FALLING)
@pytest.mark.parametrize("ties", [False, True])
def test_they_agree_with_a_search_position_by_position(position_weights, ties):
    random = np.random.default_rng([len(position_weights), ties])
    for n, gains, k in ((20, 5, 10), (40, 3, 5), (120, 5, 5), (120, 2, 10), (300, 3, 10), (300, 4, 7)):
        for scale in (0.01, 0.3, 3.0):
            case = drawn(random, n, gains, k, position_weights=position_weights, scale=scale, ties=ties)
            assert case.turn == k
            found, label = case.placed()
            assert found > 0
            other, searched = case.merged()
            if other > 0:
                assert case.value(label) == pytest.approx(case.value(searched), abs=1e-12 * np.abs(case.profit).max())


@pytest.mark.parametrize("sizes", [(20, 120), pytest.param((20, 120, 300), marks=pytest.mark.study)])
@pytest.mark.parametrize(("measure", "k"), [("nDCG", 5), ("nDCG", 10), ("P", 5)])
def test_scipy_agrees_and_the_bound_is_proved(measure, k, sizes):
    random = np.random.default_rng(k)
    for n in sizes:
        for scale in (0.001, 0.1, 1.0):
            discount = cut(FALLING["log"] if measure == "nDCG" else np.full(1000, 1 / k), n, k)
            problems = ranking(
                scale * random.normal(size=3 * n), random.integers(0, 5, 3 * n) / 4.0, offsets=[0, n, 2 * n, 3 * n],
                discount=discount, position_weights=FALLING["power"][:n],
            )  # fmt: skip
            answer = solve_batch(problems)
            proved = answer.proved(exactly=1)
            for query in range(3):
                known = solve(problems[query], "scipy").value
                assert answer.value[query] <= known + problems[query].rounding
                assert answer.bound[query] >= known - problems[query].rounding
                assert proved.bound[query] == pytest.approx(known, abs=2 * problems[query].rounding)


def test_places_are_few_and_see_one_cone():
    """Cut discounts turn at the cut; whole-list weights, and cones that narrow on the way, are for other ways."""
    random = np.random.default_rng(1)
    assert drawn(random, 50, 3, 10).turn == 10
    assert drawn(random, 50, 3, 40).turn == 0
    n = 50
    whole = ranking(
        random.normal(size=n), random.integers(0, 3, n) / 1.0, offsets=[0, n],
        discount=FALLING["log"][:n], position_weights=FALLING["power"][:n],
    )  # fmt: skip
    layout = Layout.from_arrays(whole.gain, whole.discount, whole.position_weights, whole.offsets)
    assert prefix_length(layout.low, layout.high, int(layout.stop[0])) == 0


def test_without_room_other_ways_are_asked():
    case = drawn(np.random.default_rng(2), 60, 5, 10, scale=0.1)
    assert case.placed(room=20)[0] == -1
    assert case.placed()[0] > 1
