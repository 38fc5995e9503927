"""Whatever a solver does, it becomes a row: planted faults, hard limits, slips."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from planted import solvers as planted
from problems.swaps import QUICK, rankings, swapped, without_times
from sklearn.exceptions import ConvergenceWarning

from formulations import (
    LinearProgram,
    RankTwoAssignment,
    UnknownSolverError,
    function_solver,
    margin_dual,
    read_program,
    solve,
)
from formulations.solvers.highs import Highs
from rankopt.data import load_sample
from rankopt.data.stored_folder import save_queries
from rankopt.errors import DataError, OptionError
from rankopt.experiments import Limits, Outcome, SolverSwap, read_rows
from rankopt.experiments.replay import Replay, blank_rows, unbeaten
from rankopt.experiments.rows import BenchmarkRow
from rankopt.experiments.solver_swap import LiveRun
from rankopt.experiments.traces import RecordedProblem, traces_of
from rankopt.rankers import LargeMarginRanker, PairwiseRanker

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


def test_a_solver_that_a_time_limit_cut_is_a_row_of_the_time_limit(tmp_path):
    weights = np.random.default_rng(0).integers(10, 99, (6, 40)).astype(float)
    half = weights.sum(axis=1) // 2
    knapsack = LinearProgram(
        weights[0], weights, np.full(6, -np.inf), half, np.zeros(40), np.ones(40), integer=np.ones(40, dtype=bool)
    )
    trace = traces_of(knapsack)[0]
    trace.save(tmp_path / "trace.npz")
    solver = "highs(time_limit=1e-06)"
    job = Replay(str(tmp_path / "trace.npz"), solver, blank_rows(trace, solver, 1e-6, 0, {}), 1, 10.0)
    assert [*job.open()] == []
    row = job.row(0, print)
    assert (row.status, row.verdict) == (Outcome.TIME_LIMIT, "time limit")


@pytest.mark.parametrize(("repeats", "runs"), [(1, 1), (3, 3)])
def test_the_first_run_is_not_timed(tmp_path, repeats, runs):
    calls = []

    def slow_at_first(problem):
        time.sleep(0.0 if calls else 0.4)
        calls.append(problem)
        return np.arange(problem.positions)

    trace = traces_of(rankings((9,)))[0]
    trace.save(tmp_path / "trace.npz")
    solver = function_solver(slow_at_first, accepts=RankTwoAssignment)
    blanks = blank_rows(trace, "own:slow", 1e-6, 0, {})
    job = Replay(str(tmp_path / "trace.npz"), solver, blanks, repeats, 10.0)
    assert [*job.open()] == []
    row = job.row(0, print)
    assert (row.repeats, len(row.times)) == (runs, runs)
    assert max(row.times) < 0.3


@pytest.mark.study
def test_a_solver_that_hangs_in_the_tiny_first_problem_ends_at_its_limit(monkeypatch):
    monkeypatch.setattr("rankopt.experiments.supervisor.WARM_UP", 4.0)
    running = []
    experiment = SolverSwap(
        rankings((9, 12)),
        argmax_solvers=(function_solver(planted.always_sleeping, accepts=RankTwoAssignment),),
        limits=replace(QUICK, problem=1.0),
        announce=running.append,
    )
    rows = experiment.run()
    assert [row.status.name for row in rows] == ["TIMED_OUT", "GIVEN_UP"]
    assert "a tiny first problem was not solved in 6.33 s" in rows[0].message
    assert [words.split(" on ")[0] for words in running] == ["own:always_sleeping"]


def test_training_that_a_time_limit_cut_is_a_row_of_the_time_limit(tmp_path):
    save_queries(load_sample("les-miserables").train.select(range(4)), tmp_path / "train")
    ranker = LargeMarginRanker("nDCG@5", lam=1e-4, tol=1e-9)
    blank = BenchmarkRow("training", "exact", Outcome.GIVEN_UP, role="argmax", is_maximization=False, tolerance=1e-9)
    job = LiveRun(ranker, "argmax", "exact", str(tmp_path / "train"), None, (), blank, seconds=1e-6)
    assert [*job.open()] == []
    with pytest.warns(ConvergenceWarning, match="time_limit passed"):
        row = job.row(0, lambda _: None)
    assert (row.status, row.verdict, row.message) == (Outcome.TIME_LIMIT, "time limit", "time_limit passed")


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
        (planted.always_killed, ["CRASHED", "GIVEN_UP", "GIVEN_UP"], "killed by SIGKILL from outside"),
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
        ({"limits": 3}, "limits must be a Limits; got a int. Give Limits"),
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
    with pytest.raises(UnknownSolverError, match="no solver at"):
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


# Live runs: training with one part swapped, held against the usual one, and stopped where it hangs.


@pytest.fixture(scope="module")
def train():
    return load_sample("les-miserables").train.select(range(6))


@pytest.mark.study
@pytest.mark.parametrize(
    ("masters", "methods"),
    [((), ()), pytest.param(("block_ascent",), ("cutting_planes",), marks=pytest.mark.study)],
    ids=["few", "all"],
)
def test_live_runs_swap_each_part_and_are_held_against_each_other(train, masters, methods):
    ranker = LargeMarginRanker("nDCG@5", bound="convex", position_weights="linear", lam=1.0)
    rows = SolverSwap(
        train, argmax_solvers=("exact", planted.LiarInBatches()), master_solvers=masters,
        methods=(*methods, planted.Boasting()), ranker=ranker, test=train, problems=3, repeats=1,
        limits=replace(QUICK, training_time=3.0),
    ).run()  # fmt: skip
    live = {(row.role, row.solver): row for row in rows if row.kind == "training"}
    assert list(live) == [
        ("argmax", "exact"), ("argmax", "liar"), *(("master", name) for name in masters and ("auto", *masters)),
        ("method", "bundle"), *(("method", name) for name in methods), ("method", repr(planted.Boasting())),
    ]  # fmt: skip
    liar, boaster = live.pop(("argmax", "liar")), live.pop(("method", repr(planted.Boasting())))
    # A lying argmax makes a loss negative, which is an error, or what duals prove of the last weights is stated.
    assert liar.status in (Outcome.WRONG, Outcome.INEXACT)
    if liar.certified:
        assert liar.bound <= live["argmax", "exact"].value <= liar.value
    assert (boaster.status, boaster.certified) == (Outcome.WRONG, False)
    assert "reports the lower bound" in boaster.message
    base = live["argmax", "exact"]
    for row in live.values():
        assert row.status is Outcome.SOLVED, row
        assert row.certified
        assert row.bound <= base.value
        assert list(row.measures) == [f"nDCG@{k}" for k in range(1, 11)]
        lengths = {len(column) for column in row.history.values()}
        assert len(lengths) == 1
        assert row.history["primal"][-1] == pytest.approx(row.value, rel=1e-6)
    usual = [("method", "bundle"), *(("master", "auto") for _ in masters)]
    assert {live[key].seconds for key in usual} == {base.seconds}  # one run, in every role


@pytest.mark.study
def test_a_live_run_that_hangs_is_killed_and_its_row_keeps_what_was_known(train):
    rows = SolverSwap(
        train.select(range(2)), argmax_solvers=(function_solver(planted.sleeping, accepts=RankTwoAssignment),),
        master_solvers=(), methods=(),
        ranker=LargeMarginRanker("nDCG@5"), problems=1, repeats=1, limits=Limits(problem=0.5, trace=0.5,
        training_time=0.1),
    ).run()  # fmt: skip
    hung = rows[-1]
    assert (hung.kind, hung.status) == ("training", Outcome.TIMED_OUT)
    assert "killed after 5.2 s" in hung.message


@pytest.mark.study
def test_a_ranker_without_an_argmax_has_masters_and_methods_only(train):
    rows = SolverSwap(
        train,
        master_solvers=("active_set",),
        methods=("bundle",),
        ranker=PairwiseRanker(lam=1.0),
        problems=2,
        repeats=1,
    ).run()
    assert [(row.kind, row.role) for row in rows] == [("master", ""), ("training", "master"), ("training", "master"),
                                                      ("training", "method")]  # fmt: skip


# Programs in whole numbers whose relaxation is larger, and programs without an optimum: what a swap calls them.


WHOLE = "maximize\n x + y\nst\n c: x + y <= 1.5\ngenerals\n x y\nend\n"
EMPTY = "minimize\n x\nst\n a: x >= 1\n b: x <= 0\nend\n"
ENDLESS = "maximize\n x + y\nst\n a: x - y <= 1\nend\n"


@pytest.mark.study
@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (WHOLE, Outcome.SOLVED),  # the bound 1.5 is rounded to 1
        (WHOLE.replace("x + y", "2 x + 3 y", 1), Outcome.UNBEATEN),
        (EMPTY, Outcome.NO_OPTIMUM),
        pytest.param(ENDLESS, Outcome.NO_OPTIMUM, marks=pytest.mark.study),
    ],
)
def test_what_is_right_is_called_neither_inexact_nor_failed(text, outcome, tmp_path):
    pytest.importorskip("highspy")
    path = tmp_path / "a.lp"
    path.write_text(text)
    rows = SolverSwap(problems=[path], argmax_solvers=("highs", "auto"), repeats=1).run()
    assert [row.status for row in rows] == [outcome] * 2
    assert all(row.solved and row.seconds is not None for row in rows)
    best = {Outcome.SOLVED: 1.0, Outcome.UNBEATEN: 3.0, Outcome.NO_OPTIMUM: None}[outcome]
    assert [row.value for row in rows] == [best] * 2


def test_only_the_best_known_point_is_unbeaten(tmp_path):
    pytest.importorskip("highspy")
    path = tmp_path / "a.lp"
    path.write_text(WHOLE)
    form = read_program(path)
    best = solve(form, "highs")
    entry = RecordedProblem("a", form, None, (1.0, 1.5))
    assert unbeaten(entry, best, 1e-6)
    assert unbeaten(entry, replace(best, details={}), 1e-6)
    assert not unbeaten(entry, replace(best, details={"reported_bound": 1.5}), 1e-6)  # a search that was cut short
    worse = replace(replace(best, details={}), value=0.0)
    assert not unbeaten(entry, worse, 1e-6)
    assert not unbeaten(RecordedProblem("a", form, None, (1.0, 1.0)), best, 1e-6)  # there is a proof, it has none
    assert not unbeaten(
        RecordedProblem("a", form), replace(best, details={}), 1e-6
    )  # nothing is known, nothing is claimed


def test_a_relaxed_program_without_a_proof_stays_inexact(tmp_path):
    pytest.importorskip("highspy")
    path = tmp_path / "a.lp"
    path.write_text(WHOLE.replace("generals\n x y\n", ""))
    form = read_program(path)
    assert not unbeaten(RecordedProblem("a", form, None, (1.0, 1.5)), replace(solve(form, "highs"), details={}), 1e-6)


# The processes of a swap: one that was killed goes on where it was, and no worker outlives its parent.


@pytest.mark.study
def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_rows(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from problems.swaps import rankings\n"
        "from rankopt.experiments import Limits, SolverSwap\n"
        "limits = Limits(problem=120.0, trace=600.0)\n"
        "swap = SolverSwap(rankings(range(9, 39)), argmax_solvers=('exact', 'scipy'), repeats=1, limits=limits)\n"
        "for row in swap.rows(sys.argv[1]):\n"
        "    print(row.problem, flush=True)\n"
    )
    cut, whole = tmp_path / "cut.jsonl", tmp_path / "whole.jsonl"
    arguments = [sys.executable, "-c", script, str(cut), str(Path(__file__).parents[2])]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(20):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    killed = read_rows(cut)
    assert 20 <= len(killed) < 60
    with cut.open("a", encoding="utf-8") as file:
        file.write('{"kind": "argmax", "sol')  # the line that it was at
    problems = rankings(range(9, 39))
    again = SolverSwap(
        problems, argmax_solvers=("exact", "scipy"), repeats=1, limits=Limits(problem=120.0, trace=600.0)
    )
    assert len(again.run(cut, resume=True)) == 60 - len(killed)
    again.run(whole)
    assert without_times(read_rows(cut)) == without_times(read_rows(whole))
    assert vars(read_rows(cut)[0]) == vars(killed[0])  # what was found is not run again
    with pytest.raises(OptionError, match="resume=True"):
        again.run(whole)


@pytest.mark.study
def test_a_worker_dies_with_its_parent(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from planted import solvers as planted\n"
        "from formulations import RankTwoAssignment, function_solver\n"
        "from problems.swaps import rankings\n"
        "from rankopt.experiments import Limits, SolverSwap\n"
        "import rankopt.experiments.supervisor as supervisor\n"
        "begun = supervisor._Worker.next_row\n"
        "def told(self, *given):\n"
        "    print(self.process.pid, flush=True)\n"
        "    return begun(self, *given)\n"
        "supervisor._Worker.next_row = told\n"
        "solver = function_solver(planted.sleeping, accepts=RankTwoAssignment)\n"
        "SolverSwap(rankings(), argmax_solvers=(solver,), limits=Limits(problem=600.0)).run()\n"
    )
    arguments = [sys.executable, "-c", script, str(Path(__file__).parents[2])]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        worker = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
    for _ in range(300):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        state = Path(f"/proc/{worker}/stat")
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":  # dead, and nobody has asked
            return
        time.sleep(0.1)
    os.kill(worker, signal.SIGKILL)
    pytest.fail("the worker outlived its parent")
