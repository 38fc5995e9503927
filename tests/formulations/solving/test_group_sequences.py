"""Nested groups with limits over all positions: the tree of groups is that of the set, its flow the best ranking."""

from itertools import permutations

import numpy as np
import pytest
from problems.few import few

from formulations import RankingSet, solve
from formulations.argmax.group_limits import FOUND, assign_nested
from formulations.constraints.structure import NestedGroups
from formulations.errors import InfeasibleError
from formulations.solving import branch_and_bound
from formulations.solving.constrained_batch import SetBatch, solve_sets


def drawn(seed, most=6):
    """Scores, gains and weights, ties among them, and a set of nested groups with all kinds of limits."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, most + 1))
    k = int(rng.integers(1, n + 1))
    admissible = RankingSet(n, k)
    site = rng.integers(0, max(1, n // 2) + 1, n)
    topic = site // 2
    if rng.random() < 0.8:
        admissible = admissible.at_most(int(rng.integers(1, 3)), by=site, name="site")
    if rng.random() < 0.6:
        admissible = admissible.at_most(int(rng.integers(1, k + 1)), by=topic, name="topic")
    if rng.random() < 0.5:
        admissible = admissible.at_least(int(rng.integers(1, 3)), documents=site == site[0], name="floor")
    if rng.random() < 0.3:
        admissible = admissible.exactly(int(rng.integers(0, k + 1)), documents=topic == 0, name="exact")
    if rng.random() < 0.3:
        admissible = admissible.forbid([int(rng.integers(n))], positions=[int(rng.integers(k))])
    if rng.random() < 0.2:
        admissible = admissible.fix(int(rng.integers(n)), int(rng.integers(k)))
    tied = rng.random() < 0.5

    def draw(size):
        return rng.integers(-2, 3, size).astype(float) if tied else rng.normal(size=size)

    return admissible, draw(n), draw(n), draw(k), draw(k)


def batch_of(*problems):
    sets, scores, gain, discount, decay = zip(*problems, strict=True)
    offsets = np.cumsum([0, *(one.size for one in scores)])
    places = np.cumsum([0, *(one.size for one in decay)])
    parts = [np.concatenate(part).astype(float) for part in (scores, gain, discount, decay)]
    return SetBatch(sets, *parts, offsets, places)


def feasible(seeds, most=6):
    """Those of the drawn problems that have a ranking and no quicker way."""
    for seed in seeds:
        problem = drawn(seed, most)
        try:
            problem[0].check_nonempty()
        except InfeasibleError:
            continue
        if problem[0].compiled.blocks_of is None:
            yield seed, problem


@few(range(300), every=5)
def test_no_ranking_beats_the_answer_and_its_prices_prove_it(seeds):
    seen = 0
    for seed, problem in feasible(seeds, most=5):
        batch = batch_of(problem)
        answer = solve_sets(batch)
        if answer.algorithm[0] != "groups":  # limits of rank-one profits on all positions
            continue
        seen += 1
        form = batch[0]
        orders = [np.array(order) for order in permutations(range(form.documents), form.positions)]
        best = max(form.value(order) for order in orders if form.admissible.is_feasible(order))
        assert form.admissible.is_feasible(answer.order), seed
        assert answer.value[0] == pytest.approx(form.value(answer.order), abs=form.rounding), seed
        assert answer.value[0] == pytest.approx(best, abs=form.rounding), seed
        assert best - form.rounding <= answer.bound[0] <= best + 1e-9 * (1.0 + form.scale), seed
    assert seen > len(seeds) / 3


@few(range(50), every=3)
def test_larger_ones_agree_with_the_flow_of_the_usual_solver(seeds):
    seen = 0
    for seed, problem in feasible(seeds, most=30):
        batch = batch_of(problem)
        answer, usual = solve_sets(batch), solve(batch[0])
        seen += answer.algorithm[0] == "groups"
        assert answer.value[0] == pytest.approx(usual.value, abs=1e-9 * (1.0 + batch[0].scale)), seed
        assert batch[0].admissible.is_feasible(answer.order)
    assert seen > 0.3 * len(seeds)


def crossing(seed, most):
    """As `drawn`, but with groups that cross, as genres do."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, most + 1))
    k = int(rng.integers(2, n))
    admissible = RankingSet(n, k)
    for _ in range(int(rng.integers(2, 5))):
        held = rng.random(n) < 0.6
        if rng.random() < 0.25:
            admissible = admissible.at_least(1, documents=held)
        elif held.any():
            admissible = admissible.at_most(int(rng.integers(1, k + 1)), documents=held)
    tied = rng.random() < 0.4
    draw = (lambda size: rng.integers(-2, 3, size).astype(float)) if tied else (lambda size: rng.normal(size=size))
    return admissible, draw(n), draw(n), draw(k), draw(k)


@few(range(120), every=5, first=3)
def test_groups_that_cross_ask_tolls_and_what_tolls_leave_open_is_cut_in_cases(seeds):
    ways = {}
    for seed in seeds:
        problem = crossing(seed, 6)
        batch = batch_of(problem)
        try:
            answer = solve_sets(batch)
        except InfeasibleError:
            with pytest.raises(InfeasibleError):
                problem[0].check_nonempty()
            continue
        ways[answer.algorithm[0]] = ways.get(answer.algorithm[0], 0) + 1
        form = batch[0]
        orders = (np.array(order) for order in permutations(range(form.documents), form.positions))
        best = max(form.value(order) for order in orders if form.admissible.is_feasible(order))
        assert form.admissible.is_feasible(answer.order), seed
        assert answer.value[0] == pytest.approx(best, abs=1e-9 * (1.0 + form.scale)), seed
        assert answer.bound[0] >= best - form.rounding, seed
        if answer.algorithm[0].startswith("groups"):
            assert answer.bound[0] <= best + 1e-8 * (1.0 + form.scale), seed
    assert ways["groups"] > len(seeds) / 2
    assert ways["groups, by cases"] > 0


@few(range(20), every=3)
def test_larger_groups_that_cross_agree_with_the_usual_solver_whatever_was_asked_before(seeds):
    seen = 0
    for seed in seeds:
        problem = crossing(seed, 40)
        batch = batch_of(problem)
        try:
            usual = solve(batch[0])
        except InfeasibleError:
            continue
        answer = solve_sets(batch)
        seen += answer.algorithm[0] == "groups"
        assert answer.value[0] == pytest.approx(usual.value, abs=1e-8 * (1.0 + batch[0].scale)), seed
        again = solve_sets(batch_of(problem))  # the set is the same object, and remembers its trees
        assert (answer.order == again.order).all()
        assert answer.bound[0] == again.bound[0]
    assert seen > 0.4 * len(seeds)


def test_interpreted_and_compiled_do_the_same():
    for _, (admissible, scores, gain, discount, decay) in feasible(range(60)):
        groups = NestedGroups.from_rows(admissible.compiled)
        if groups is None:
            continue
        answers = []
        for place in (assign_nested, assign_nested.in_python):
            order, told = np.empty(decay.size, dtype=np.int64), np.empty(2)
            ended = place(
                *(part.astype(float) for part in (scores, gain, discount, decay)),
                np.tile(0.3 * scores, (decay.size, 1)), groups.allowed,
                groups.leaf, groups.parent, groups.low, groups.high, 2.0**-50, order, told,
            )  # fmt: skip
            assert ended == FOUND
            answers.append((order.tolist(), told.tolist()))
        assert answers[0] == answers[1]


def test_what_is_no_tree_of_groups_is_not_taken_for_one():
    base = RankingSet(6, 4)
    held = np.arange(6)
    assert (
        NestedGroups.from_rows(base.at_most(2, documents=held < 4).at_most(1, documents=held < 2).compiled) is not None
    )
    assert NestedGroups.from_rows(base.at_most(2, documents=held < 4).at_most(1, documents=held > 2).compiled) is None
    assert NestedGroups.from_rows(base.at_most(1, documents=held < 3, positions=[0, 1]).compiled) is None
    assert NestedGroups.from_rows(base.precedes(0, 1).compiled) is None
    rows = np.zeros((1, 4, 6))
    rows[0, :, :2] = 0.5
    assert NestedGroups.from_rows(base.add_rows(rows.reshape(1, -1), upper=1.0, name="half").compiled) is None
    below = -np.ones((1, 4, 6)) * (held < 3)
    tree = NestedGroups.from_rows(base.add_rows(below.reshape(1, -1), lower=-2.0, upper=-1.0, name="negative").compiled)
    assert (tree.low.tolist(), tree.high.tolist(), tree.leaf.tolist()) == ([1], [2], [0, 0, 0, 1, 1, 1])


def test_an_empty_set_is_said_to_be_empty():
    admissible = RankingSet(4, 2).at_least(2, documents=[0, 1]).at_least(1, documents=[2])
    with pytest.raises(InfeasibleError):
        solve_sets(batch_of((admissible, *(np.ones(size) * np.arange(size) for size in (4, 4, 2, 2)))))


def test_a_forced_solver_is_asked():
    problem = next(problem for seed, problem in feasible(range(50)) if NestedGroups.from_rows(problem[0].compiled))
    assert solve_sets(batch_of(problem), "highs").algorithm[0].startswith("highs")


# Rows of any kind, hard or soft, ask tolls of a flow: the answer is the best ranking, and its bound is proved.


def drawn_tolls(seed, most=6):
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
        held, batch = drawn_tolls(seed, most)
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
        again = solve_sets(drawn_tolls(seed, 30)[1])  # another object, which has kept nothing
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

    kernels = branch_and_bound.ascend, branch_and_bound.assign_nested
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
