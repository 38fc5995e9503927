"""Nested groups with limits over all positions: the tree of groups is that of the set, its flow the best ranking."""

from itertools import permutations

import numpy as np
import pytest
from problems.few import few

from formulations import RankingSet, solve
from formulations.argmax.group_limits import FOUND, assign_nested
from formulations.constraints.structure import NestedGroups
from formulations.errors import InfeasibleError
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
