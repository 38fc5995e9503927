"""A set without a ranking has no vertices: asking about them says so, and why, at once."""

from time import perf_counter

import pytest

from formulations import InfeasibleError, RankingSet
from formulations.integrality import Proof, verify_integrality

SITE = [f"s{i // 20}" for i in range(100)]

EMPTY = {
    "quota": (RankingSet(6, 3).at_most(1, documents=range(6), name="quota"), {"quota", "position"}),
    "fixed": (RankingSet(50, 10).fix(3, 2).fix(4, 2), {"fix[3, 2]", "fix[4, 2]", "position"}),
    "sites": (
        RankingSet(100, 12).at_most(2, by=SITE, name="site"),
        {*(f"site['s{i}']" for i in range(5)), "position"},
    ),
    "floor": (
        RankingSet(100, 10).at_least(3, documents=range(50), positions=range(2), name="fresh").at_most(2, by=SITE),
        {"fresh", "position"},
    ),
    "precedes": (
        RankingSet(40, 10).precedes(1, 2, name="one").precedes(2, 1, name="two").fix(1, 3),
        {"fix[1, 3]", "position"},
    ),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_set_is_said_to_be_empty_and_why(name):
    admissible, members = EMPTY[name]
    began = perf_counter()
    with pytest.raises(InfeasibleError, match=r"no ranking .* is in the set\. Conflict: ") as raised:
        verify_integrality(admissible)
    assert perf_counter() - began < 5.0  # a tenth of a second where nothing else runs
    assert all(member in str(raised.value) for member in members)


def test_its_matrix_can_still_be_asked_about():
    admissible = EMPTY["quota"][0]
    assert isinstance(verify_integrality(admissible.program.matrix), Proof)
