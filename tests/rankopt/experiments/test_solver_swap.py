"""Whatever a solver does, it becomes a row: planted faults, hard limits, slips."""

import json
from dataclasses import replace

import numpy as np
import pytest
from planted import solvers as planted
from problems.swaps import QUICK, rankings, swapped, without_times

from formulations import RankTwoAssignment, UnknownSolverError, function_solver, margin_dual, solve
from formulations.solvers.highs import Highs
from rankopt.errors import DataError, OptionError
from rankopt.experiments import Limits, Outcome, SolverSwap, read_rows

FIRST = {outcome: function for function, outcome in reversed(planted.EXPECTED.items())}.values()
"""One fault of each outcome."""


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("function", "outcome"),
    [
        pytest.param(function, outcome, marks=() if function in FIRST else pytest.mark.study)
        for function, outcome in planted.EXPECTED.items()
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_every_planted_fault_becomes_its_row(function, outcome):
    problems = rankings((9,))
    (row,) = swapped(problems, function_solver(function, accepts=RankTwoAssignment))
    assert row.status is Outcome[outcome], row
    assert row.solver == f"own:{function.__name__}"
    if outcome == "SOLVED":
        assert row.value == solve(problems[0]).value
        assert row.certified
        assert row.integral
    if outcome == "INEXACT":
        assert row.gap > 0.1
    if outcome in ("CRASHED", "WRONG"):
        assert row.message


@pytest.mark.study
def test_a_batch_is_checked_too_since_training_believes_it():
    (row,) = swapped(rankings((9,)), planted.LiarInBatches())
    assert row.status is Outcome.WRONG
    assert "solving a batch" in row.message


@pytest.mark.study
def test_after_a_crash_the_other_problems_go_on_in_a_fresh_process():
    rows = swapped(rankings((9, 12, 15, 10, 11)), function_solver(planted.once_in_a_while, accepts=RankTwoAssignment))
    found = [(row.sizes["documents"], row.status.name) for row in rows]
    assert found == [(9, "SOLVED"), (12, "CRASHED"), (15, "SOLVED"), (10, "CRASHED"), (11, "SOLVED")]
    assert "exit code 7" in rows[1].message


@pytest.mark.study
def test_a_solver_that_breaks_down_too_often_in_a_row_is_given_up():
    limits = replace(QUICK, max_crashes=2)
    rows = swapped(
        rankings((9, 10, 11, 12)), function_solver(planted.segfaulting, accepts=RankTwoAssignment), limits=limits
    )
    assert [row.status.name for row in rows] == ["CRASHED", "CRASHED", "GIVEN_UP", "GIVEN_UP"]
    assert "SIGSEGV" in rows[0].message
    assert "2 times in a row" in rows[2].message


@pytest.mark.study
def test_a_solver_that_used_up_its_time_for_the_trace_is_given_up():
    limits = replace(QUICK, problem=1.0, trace=1.0)
    rows = swapped(rankings(), function_solver(planted.sleeping, accepts=RankTwoAssignment), limits=limits)
    assert [row.status.name for row in rows] == ["TIMED_OUT", "GIVEN_UP", "GIVEN_UP"]
    assert "after 1 of 3" in rows[1].message


@pytest.mark.study
@pytest.mark.parametrize(
    ("function", "found", "words"),
    [
        (planted.always_sleeping, ["TIMED_OUT", "GIVEN_UP", "GIVEN_UP"], "a tiny first problem was not solved in 12 s"),
        (planted.always_segfaulting, ["CRASHED", "GIVEN_UP", "GIVEN_UP"], "SIGSEGV"),
        (planted.always_greedy, ["OUT_OF_MEMORY"] * 3, ""),
    ],
)
def test_limits_hold_from_the_first_problem_on(function, found, words):
    """A worker asks something tiny first; a solver that fails there already takes no more than the limits either."""
    limits = replace(QUICK, start=12.0, memory=1 << 28)
    rows = swapped(rankings(), function_solver(function, accepts=RankTwoAssignment), limits=limits)
    assert [row.status.name for row in rows] == found
    assert words in rows[0].message
    assert all(row.memory is None or row.memory < 2 << 30 for row in rows)


def test_experiments_that_ask_nothing_are_slips():
    with pytest.raises(OptionError, match="must be an integer >= 1"):
        SolverSwap(rankings(), problems=0)
    with pytest.raises(OptionError, match="nothing to swap"):
        SolverSwap(rankings(), argmax_solvers=(), master_solvers=(), methods=())
    for problems in (3, None, 2.5):
        with pytest.raises(OptionError, match=rf"problems = {problems} needs data; give Queries or a Sample"):
            SolverSwap(problems=problems)
    for wrong, said in (
        ({"repeats": "a"}, "repeats must be an integer"),
        ({"tolerance": -1.0}, "tolerance must be a number >= 0"),
        ({"limits": 3}, "limits must be a Limits instance; got 3"),
        ({"argmax_solvers": "highs"}, r"give a tuple: argmax_solvers=\('highs',\)"),
    ):
        with pytest.raises(OptionError, match=said):
            SolverSwap(rankings(), **wrong)


@pytest.mark.study
def test_missing_and_unsuited_solvers_are_rows_and_slips_are_errors():
    rows = swapped(rankings((9,)), "cvxpy:NEVERHEARDOF", "active_set")
    assert [row.status.name for row in rows] == ["MISSING", "UNSUPPORTED"]
    with pytest.raises(UnknownSolverError, match="did you mean 'highs'"):
        swapped(rankings((9,)), "hihgs")
    with pytest.raises(UnknownSolverError, match="no solver is at"):
        swapped(rankings((9,)), "planted.solvers:NEVER")


@pytest.mark.study
def test_a_solver_is_given_by_place_or_as_an_object_that_can_be_shipped():
    by_place = swapped(rankings((9,)), "planted.solvers:HONEST")
    by_object = swapped(rankings((9,)), planted.HONEST)
    assert [row.status for row in by_place] == [Outcome.SOLVED]
    assert without_times(by_place) == without_times(by_object)
    with pytest.raises(OptionError, match="top level of an importable module"):
        swapped(rankings((9,)), planted.ASSIGNED)  # a lambda

    def local(problem):
        return by_place

    with pytest.raises(OptionError, match="top level of an importable module"):
        swapped(rankings((9,)), function_solver(local, accepts=RankTwoAssignment))


@pytest.mark.study
def test_options_are_part_of_a_name_and_nobody_takes_part_twice():
    rows = swapped(rankings((9,)), "highs", Highs(method="simplex"))
    assert [row.solver for row in rows] == ["highs", "highs(method='simplex')"]
    with pytest.raises(OptionError, match="highs occurs twice"):
        swapped(rankings((9,)), "highs", Highs())
    with pytest.raises(UnknownSolverError, match="is no solver"):
        swapped(rankings((9,)), np.argsort)
    with pytest.raises(OptionError, match="method 'bundel' is unknown"):
        swapped(rankings((9,)), "highs", methods=("bundel",))
    with pytest.raises(OptionError, match="active_set occurs twice"):
        SolverSwap(rankings((9,)), argmax_solvers=(), master_solvers=("active_set", "block_ascent"), limits=QUICK).run()


@pytest.mark.study
def test_masters_are_judged_alike():
    rng = np.random.default_rng(0)
    problem = margin_dual(rng.normal(size=(12, 4)), rng.random(12), lam=0.1)
    rows = SolverSwap(problem, master_solvers=("active_set", planted.IDLE_MASTER, "exact"), limits=QUICK).run()
    assert [row.kind for row in rows] == ["master"] * 3
    assert [row.status.name for row in rows] == ["SOLVED", "INEXACT", "UNSUPPORTED"]
    assert rows[0].sizes == {"planes": 12, "features": 4, "groups": 1}


def test_what_cannot_be_swapped_says_so():
    with pytest.raises(OptionError, match="give Queries, a Sample, a problem"):
        SolverSwap(42).run()
    with pytest.raises(DataError, match="needs at least one problem"):
        SolverSwap([]).run()
    with pytest.raises(OptionError, match="must be positive"):
        Limits(trace=0.0)


@pytest.mark.study
def test_rows_are_plain_json(tmp_path):
    rows = SolverSwap(rankings((9,)), argmax_solvers=("exact",), repeats=1).run(tmp_path / "rows.jsonl")
    line = json.loads((tmp_path / "rows.jsonl").read_text())
    assert line["status"] == "SOLVED"
    assert read_rows(tmp_path / "rows.jsonl") == rows
    (tmp_path / "rows.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match="line 1"):
        read_rows(tmp_path / "rows.jsonl")
