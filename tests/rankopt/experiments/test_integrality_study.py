"""The integrality study finds what is known: which statements are whole, and how far the textbook example is off."""

import numpy as np
import pytest

from formulations import RankingSet
from formulations.problems.linear_program import LinearProgram
from rankopt.experiments import IntegralityStudy, Limits, Outcome
from rankopt.experiments.integrality import OBJECTIVES, STATEMENTS, Study
from rankopt.experiments.rows import BenchmarkRow

PROVED = {"Π(B, k)": "bipartite", "nested quotas": "laminar"}
NEVER_FRACTIONAL = {*PROVED, "quotas on prefixes"}


@pytest.fixture(scope="module")
def rows():
    return IntegralityStudy(documents=(7,), positions=(4,), blocks=(3, 4), objectives=4).run()


@pytest.mark.study
def test_each_statement_is_judged_and_the_evidence_confirmed(rows):
    assert {row.facts["statement"] for row in rows} == set(STATEMENTS)
    for row in rows:
        name = row.facts["statement"]
        if row.status is Outcome.FAILED:
            assert "the set is empty" in row.message
            continue
        assert row.status is (Outcome.PROVED if name in PROVED else Outcome.REFUTED), row
        assert row.certified
        assert row.facts.get("proof") == PROVED.get(name)
        assert row.facts["objectives"] == 4 * len(OBJECTIVES)
        assert row.sizes["n"] == 7


@pytest.mark.study
def test_a_proof_means_that_nothing_is_fractional(rows):
    for row in rows:
        if row.facts["statement"] in NEVER_FRACTIONAL and row.status is not Outcome.FAILED:
            assert row.facts["fractional"] == 0.0
            assert row.facts["overestimate_max"] == 0.0
    assert any(row.facts.get("fractional", 0.0) > 0.0 for row in rows)


def triangle(n, k, blocks):
    """At most one document of each of three pairs among three good documents."""
    stated = RankingSet(n, k)
    for pair in ([0, 1], [1, 2], [0, 2]):
        stated = stated.at_most(1, documents=pair)
    return stated


def test_the_overestimate_is_the_share_of_the_whole_optimum():
    study = Study("triangle", triangle, ((6, 3, 3),), (BenchmarkRow("integrality", "", Outcome.GIVEN_UP),), 1, 0)
    profit = np.outer([1.0, 0.9, 0.8], [3.0, 3.0, 3.0, 0.0, 0.0, 0.0])
    assert study._overestimate(triangle(6, 3, 3).program, profit) == pytest.approx(1.45 - 1.0)  # 4.35 against 3


@pytest.mark.study
def test_a_set_that_is_empty_and_one_that_takes_too_long_are_rows():
    (none,) = IntegralityStudy({"empty": empty}, (6,), (3,), (2,), 1, Limits(problem=120.0)).run()
    assert none.status is Outcome.FAILED
    assert "Conflict" in none.message
    (long,) = IntegralityStudy({"endless": endless}, (6,), (3,), (2,), 1, Limits(problem=1.0)).run()
    assert long.status is Outcome.TIMED_OUT


def empty(n, k, blocks):
    return RankingSet(n, k).at_most(1, by=[0] * n)


def endless(n, k, blocks):
    return Endless(n, k)


class Endless(RankingSet):
    @property
    def program(self):
        while True:
            pass


def test_statements_have_the_sizes_that_they_are_asked_for():
    for name, statement in STATEMENTS.items():
        stated = statement(8, 4, 4)
        shape = stated.variables[0].shape if isinstance(stated, LinearProgram) else stated.shape
        assert tuple(shape) == (4, 8), name


@pytest.mark.study
def test_a_study_goes_on_where_it_was_cut_off(tmp_path):
    study = IntegralityStudy({"Π(B, k)": STATEMENTS["Π(B, k)"]}, (6, 7), (3,), (3, 4), 1)
    rows = study.rows(tmp_path / "rows.jsonl")
    first = next(rows)
    rows.close()
    rest = study.run(tmp_path / "rows.jsonl", resume=True)
    assert len(rest) == 3
    assert first.problem not in {row.problem for row in rest}
