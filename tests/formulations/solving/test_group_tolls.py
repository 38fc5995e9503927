"""Rows of any kind, hard or soft, ask tolls of a flow: the answer is the best ranking, and its bound is proved."""

from itertools import permutations

import numpy as np
import pytest
from problems.few import few

from formulations import RankingSet, solve
from formulations.errors import InfeasibleError
from formulations.solving import branch_and_bound as group_prices
from formulations.solving.constrained_batch import SetBatch, solve_sets


def drawn(seed, most=6):
    """A set of rows of all kinds, some of them soft, with scores, gains, weights and how much prices count."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, most + 1))
    k = int(rng.integers(2, n + 1))
    held = RankingSet(n, k)
    if rng.random() < 0.7:
        held = held.at_most(1, documents=rng.random(n) < 0.6, positions=range(int(rng.integers(1, k + 1))), name="top")
    if rng.random() < 0.6:
        held = held.at_least(1, documents=rng.random(n) < 0.6, positions=range(int(rng.integers(1, k + 1))), name="one")
    if rng.random() < 0.5:
        held = held.at_most(int(rng.integers(1, 3)), by=rng.integers(0, 2, n), name="site")
    if rng.random() < 0.4:
        held = held.precedes(0, 1, name="order")
    if rng.random() < 0.4:
        held = held.add_rows(rng.normal(size=(1, k * n)), lower=-0.5, upper=0.7, name="any")
    if rng.random() < 0.3:
        held = held.exactly(int(rng.integers(0, k)), documents=rng.random(n) < 0.5, name="exact")
    if rng.random() < 0.3:
        held = held.forbid([int(rng.integers(n))], positions=[int(rng.integers(k))], name="ban")
    for name in [one.name for one in held.constraints]:
        if rng.random() < 0.5:
            held = held.penalized(name, penalty=float(rng.choice([0.0, 0.2, 1.0, 5.0])))
    tied = rng.random() < 0.4
    draw = (lambda size: rng.integers(-2, 3, size).astype(float)) if tied else (lambda size: rng.normal(size=size))
    batch = SetBatch(
        [held],
        draw(n),
        draw(n),
        draw(k),
        draw(k),
        np.array([0, n]),
        np.array([0, k]),
        np.array([rng.choice([1.0, 0.5])]),
    )
    return held, batch


def without_quicker_ways(seeds, most):
    """Those of the drawn that are no matching of positions and blocks."""
    for seed in seeds:
        held, batch = drawn(seed, most)
        if held.soft_constraints or held.compiled.blocks_of is None:
            yield seed, held, batch


@few(range(150), every=5)
def test_no_ranking_beats_the_answer_less_what_it_pays_and_the_bound_holds(seeds):
    ways = {}
    for seed, held, batch in without_quicker_ways(seeds, 5):
        try:
            answer = solve_sets(batch)
        except InfeasibleError:
            with pytest.raises(InfeasibleError):
                held.check_nonempty()
            continue
        form, way = batch[0], answer.algorithm[0]
        ways[way] = ways.get(way, 0) + 1
        orders = (np.array(order) for order in permutations(range(form.documents), form.positions))
        best = max(form.value(order) for order in orders if form.violation(order) == 0.0)
        near = 1e-9 * (1.0 + form.scale)
        assert form.violation(answer.order) == 0.0, seed
        assert answer.value[0] == pytest.approx(form.value(answer.order), abs=near), seed
        assert answer.value[0] == pytest.approx(best, abs=near), seed
        assert answer.bound[0] >= best - form.rounding, seed
        if way.startswith("groups"):
            assert answer.bound[0] <= best + 1e-8 * (1.0 + form.scale), seed
    assert ways["groups"] > 0.4 * len(seeds)
    assert ways["groups, by cases"] > len(seeds) / 30


@few(range(40, 56), every=3)
def test_larger_ones_agree_with_the_usual_solver_whatever_was_asked_before(seeds):
    seen = 0
    for seed, _, batch in without_quicker_ways(seeds, 30):
        try:
            usual = solve(batch[0])
        except InfeasibleError:
            continue
        answer = solve_sets(batch)
        seen += answer.algorithm[0].startswith("groups")
        assert answer.value[0] == pytest.approx(usual.value, abs=1e-7 * (1.0 + batch[0].scale)), seed
        again = solve_sets(drawn(seed, 30)[1])  # another object, which has kept nothing
        assert (answer.order == again.order).all()
        assert answer.bound[0] == again.bound[0]
    assert seen > 0.375 * len(seeds)


def test_shuffled_documents_have_the_same_best_rankings():
    rng = np.random.default_rng(3)
    n, k = 12, 6
    score, gain = rng.normal(size=n), rng.integers(0, 3, n).astype(float)
    flags = rng.random((4, n)) < 0.5
    weights = np.linspace(1.0, 0.2, k), 1.0 / np.log2(np.arange(2.0, k + 2.0))
    found = []
    for shuffle in (np.arange(n), rng.permutation(n), rng.permutation(n)):
        held = RankingSet(n, k)
        for at, flag in enumerate(flags):
            held = held.at_most(2, documents=flag[shuffle], name=f"genre {at}").penalized(
                f"genre {at}", penalty=0.2 * at
            )
        held = held.at_most(1, documents=flags[0][shuffle], positions=range(3), name="top")
        ends = np.array([0, n]), np.array([0, k])
        answer = solve_sets(SetBatch([held], score[shuffle], gain[shuffle], weights[1], weights[0], *ends))
        assert answer.algorithm[0].startswith("groups")
        found.append((shuffle[answer.order].tolist(), round(float(answer.value[0]), 9)))
    assert found[1:] == found[:1] * 2


def test_interpreted_and_compiled_give_the_same_bits(monkeypatch):
    cases = [batch for _, _, batch in without_quicker_ways(range(30), 5)]

    def told():
        found = []
        for batch in cases:
            try:
                answer = solve_sets(batch)
            except InfeasibleError:
                continue
            found.append((answer.order.tolist(), answer.bound.tolist(), answer.algorithm.tolist()))
        return found

    kernels = group_prices.ascend, group_prices.assign_nested
    for kernel in kernels:
        monkeypatch.setattr(kernel, "pays", lambda nanoseconds: True)
    compiled = told()
    for kernel in kernels:
        monkeypatch.setattr(kernel, "pays", lambda nanoseconds: False)
    assert compiled == told()


def test_an_empty_set_of_blocks_is_refused():
    held, ends = RankingSet(4, 3).at_most(1, by=[0, 0, 1, 1]), (np.array([0, 4]), np.array([0, 3]))
    with pytest.raises(InfeasibleError, match="lower k to 2"):
        solve_sets(SetBatch([held], np.arange(4.0), np.zeros(4), np.zeros(3), np.ones(3), *ends))


def test_a_toll_never_rises_above_the_price_and_nothing_is_paid_that_counts_nothing():
    n = 6
    held = RankingSet(n, 3).at_most(1, documents=[0, 1, 2], name="site")
    scores, none = np.array([6.0, 4.0, 2.5, 1.2, 1.1, 1.0]), np.zeros(n)
    decay, ends = np.array([1.0, 0.6, 0.5]), (np.array([0, n]), np.array([0, 3]))
    for price, order, value in ((0.5, [0, 1, 2], 8.65), (1.0, [0, 1, 3], 8.0), (4.0, [0, 3, 4], 7.27)):
        batch = SetBatch([held.penalized("site", penalty=price)], scores, none, none[:3], decay, *ends)
        answer = solve_sets(batch)
        assert (answer.order.tolist(), answer.algorithm[0]) == (order, "groups")
        assert answer.value[0] == pytest.approx(value) == answer.bound[0]
        free = solve_sets(
            SetBatch([held.penalized("site", penalty=price)], scores, none, none[:3], decay, *ends, np.zeros(1))
        )
        assert free.value[0] == pytest.approx(9.65)
