"""Advice is proved: sets become whole by it, optima too, and no smaller change of the kind does it."""

import numpy as np
import pytest
from scipy.optimize import linprog

from formulations import (
    InfeasibleError,
    RankingSet,
    UnsupportedProblemError,
    Witness,
    check_evidence,
    suggest_changes,
    verify_integrality,
)


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
        except InfeasibleError:
            continue
        if isinstance(answer, Witness):
            break
    found = suggest_changes(admissible, answer)
    assert found
    for one in found:
        check_evidence(one.admissible, one.proof)
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
    assert [one.changes for one in suggest_changes(top)] == [{"top": "all positions"}, {"top": "left out"}]
    assert str(suggest_changes(top)[0]).startswith(
        "Count 'top' over all positions: then the matrix is totally unimodular ("
    )
    crossing = RankingSet(8, 3).at_most(1, by=[*"aabbccdd"], name="site").at_most(1, documents=[1, 2], name="new")
    assert {"new": "nested groups"} in [one.changes for one in suggest_changes(crossing)]
    site = RankingSet(10, 4).at_most(1, by=[*"aabbccddee"], name="site").at_most(1, documents=[0, 2], positions=[0, 1])
    assert {"at_most": "both"} in [one.changes for one in suggest_changes(site)]
    banned = RankingSet(5, 3).precedes(3, 0, name="first")
    assert all(one.admissible.allowed_cells[0, 0] == 0 for one in suggest_changes(banned))


def test_what_is_whole_gets_no_advice_and_what_is_no_set_is_refused():
    assert suggest_changes(RankingSet(5, 3).at_most(1, by=[*"aabbc"])) == ()
    with pytest.raises(UnsupportedProblemError, match="ndarray"):
        suggest_changes(np.eye(3))
