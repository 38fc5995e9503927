"""Advice is proved: sets become whole by it, optima too, and no smaller change of the kind does it."""

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linprog

from formulations import (
    Infeasible,
    RankingSet,
    Unsupported,
    Witness,
    advice,
    certify,
    confirm,
    constrained_ranking,
    integrality_gap,
    verify_integrality,
)
from formulations.solving.suggested_changes import nearest_whole


def vertices_are_whole(admissible, rng, tries=8):
    """Whether the simplex method meets whole vertices only."""
    program = admissible.program
    for _ in range(tries):
        found = linprog(
            rng.integers(-3, 4, program.objective.size),
            A_ub=np.vstack([program.matrix.toarray(), -program.matrix.toarray()]),
            b_ub=np.nan_to_num(np.concatenate([program.row_upper, -program.row_lower]), posinf=1e3, neginf=1e3),
            bounds=(0, 1),
            method="highs-ds",
        )
        if found.status == 0 and np.abs(found.x - np.round(found.x)).max() > 1e-6:
            return False
    return True


def drawn(rng):
    n = int(rng.integers(4, 7))
    k = int(rng.integers(2, min(n, 4) + 1))
    stated = RankingSet(n, k)
    for number in range(int(rng.integers(1, 4))):
        name, documents = f"c{number}", np.flatnonzero(rng.random(n) < 0.5)
        positions = range(int(rng.integers(1, k + 1))) if rng.random() < 0.6 else None
        word = int(rng.integers(5))
        if word < 2:
            stated = stated.at_most(int(rng.integers(1, 3)), documents=documents, positions=positions, name=name)
        elif word == 2:
            stated = stated.at_least(1, documents=documents, positions=positions, name=name)
        elif word == 3:
            stated = stated.at_most(1, by=rng.integers(0, 3, n).tolist(), positions=positions, name=name)
        else:
            stated = stated.precedes(*rng.permutation(n)[:2].tolist(), name=name)
    return stated


@pytest.mark.every(3)
@pytest.mark.parametrize("seed", range(8))
def test_advice_makes_refuted_sets_whole(seed):
    rng = np.random.default_rng(seed)
    while True:
        admissible = drawn(rng)
        try:
            answer = verify_integrality(admissible)
        except Infeasible:
            continue
        if isinstance(answer, Witness):
            break
    found = advice(admissible, answer)
    assert found
    for one in found:
        confirm(one.admissible, one.proof)
        assert vertices_are_whole(one.admissible, rng)
        one.admissible.check_nonempty()
        for held in admissible.constraints:  # what is not named stays as it is
            if held.name not in one.changes:
                assert held in one.admissible.constraints
            elif one.changes[held.name] == "left out":
                assert not any(c.name == held.name and c.rows for c in one.admissible.constraints)
    several = found[0] if len(found[0].changes) > 1 else None
    if several is not None:
        for name in several.changes:  # none of them can be spared
            fewer = [c for c in admissible.constraints if c.name == name or c in several.admissible.constraints]
            fewer += [c for c in several.admissible.constraints if c.name in several.changes and c.name != name]
            again = RankingSet(admissible.documents, admissible.positions, tuple(fewer))
            if again.max_positions == again.positions:
                assert isinstance(verify_integrality(again), Witness)


def test_each_kind_of_change_is_found_and_said():
    top = RankingSet(6, 4).at_most(1, documents=[0, 1, 2], positions=range(2), name="top")
    assert [one.changes for one in advice(top)] == [{"top": "all positions"}, {"top": "left out"}]
    assert str(advice(top)[0]).startswith("Count 'top' over all positions: then the matrix is totally unimodular (")
    crossing = RankingSet(8, 3).at_most(1, by=[*"aabbccdd"], name="site").at_most(1, documents=[1, 2], name="new")
    assert {"new": "nested groups"} in [one.changes for one in advice(crossing)]
    site = RankingSet(10, 4).at_most(1, by=[*"aabbccddee"], name="site").at_most(1, documents=[0, 2], positions=[0, 1])
    assert {"at_most": "both"} in [one.changes for one in advice(site)]
    banned = RankingSet(5, 3).precedes(3, 0, name="first")
    assert all(one.admissible.allowed_cells[0, 0] == 0 for one in advice(banned))


def test_what_is_whole_gets_no_advice_and_what_is_no_set_is_refused():
    assert advice(RankingSet(5, 3).at_most(1, by=[*"aabbc"])) == ()
    with pytest.raises(Unsupported, match="ndarray"):
        advice(np.eye(3))


def triangle(count=1, n=6):
    stated = RankingSet(n, 3)
    for name, pair in zip("abc", ([0, 1], [1, 2], [0, 2]), strict=True):
        stated = stated.at_most(count, documents=pair, name=name)
    return constrained_ranking(np.outer([1.0, 0.9, 0.8], [3.0, 3.0, 3.0, 0.0, 0.0, 0.0]), stated)


def test_the_nearest_whole_optimum_is_proved():
    problem = triangle()
    found = nearest_whole(problem)
    assert found.gap == pytest.approx(integrality_gap(problem).absolute)
    assert {(one.row, one.side, one.step) for one in found.limits} >= {(row, "at most", 1) for row in "abc"}
    for one in (*found.limits, found.objective):
        assert integrality_gap(one.problem).absolute <= 1e-7
        certify(one.problem, one.solution, exact=True)
    change = np.abs(found.objective.problem.profit - problem.profit).max()
    assert change == pytest.approx(found.objective.largest)
    assert found.objective.least == pytest.approx(found.gap / 6)
    assert found.objective.least <= change
    assert "no change below" in str(found)


def test_a_moved_limit_makes_the_linear_program_whole_and_not_only_its_best_ranking_provable():
    """Moving "at most of c1" by +1 leaves a gap of .5 that cases close: a proof of the ranking, none of the program."""
    admissible = RankingSet(4, 3).at_least(1, documents=[0, 3], positions=[1, 2], name="c0")
    admissible = admissible.at_most(1, documents=[0], positions=[0, 1], name="c1")
    admissible = admissible.at_least(1, documents=[0, 2], positions=[0], name="c2")
    problem = constrained_ranking([[-2.0, -2, -2, 0], [0, 0, 3, -1], [2, 3, -1, 0]], admissible)
    found = nearest_whole(problem)
    assert len(found.limits) == 4
    assert ("c1", "at most", 1) not in {(one.row, one.side, one.step) for one in found.limits}
    for one in found.limits:
        assert integrality_gap(one.problem).integral
        assert one.solution.bound == pytest.approx(one.problem.bound(one.solution.y))


@pytest.mark.every(5)
@pytest.mark.parametrize("seed", range(3))
def test_no_smaller_change_of_the_objective_makes_the_best_ranking_an_optimum(seed):
    rng = np.random.default_rng(seed)
    problem = triangle(n=6)
    scores = np.array([3.0, 2.8, 2.9, 0.3, 0.2, 0.1]) + 0.2 * rng.random(6)
    problem = constrained_ranking(np.outer([1.0, 0.9, 0.8], scores), problem.admissible)
    found = nearest_whole(problem)
    if found.gap == 0.0:
        return
    assert integrality_gap(found.objective.problem).absolute <= 1e-6
    best = found.objective.solution.order
    step = found.objective.problem.profit - problem.profit
    fewer = constrained_ranking(problem.profit + 0.99 * step, problem.admissible)
    gap = integrality_gap(fewer)
    assert gap.absolute > 1e-9 or gap.whole.value > fewer.value(best)
    for _ in range(5):  # nor does any other of that size
        other = 0.98 * found.objective.largest * rng.uniform(-1, 1, step.shape)
        moved = constrained_ranking(problem.profit + other, problem.admissible)
        gap = integrality_gap(moved)
        assert gap.relaxed.value > moved.value(best) + 1e-9


def test_a_whole_optimum_needs_no_change():
    whole = constrained_ranking(np.outer([3.0, 2.0], [4.0, 3.0, 2.0]), RankingSet(3, 2).at_most(1, by=[*"aab"]))
    assert str(nearest_whole(whole)).startswith("nothing changed")
    assert nearest_whole(whole).limits == ()
    orders = [np.array(order) for order in permutations(range(3), 2)]
    assert max(whole.value(order) for order in orders if whole.admissible.is_feasible(order)) == 16.0
