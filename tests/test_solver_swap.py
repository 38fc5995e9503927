"""Whatever a solver does, it becomes a row: planted faults, hard limits, tapes, resuming."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import planted_solvers as planted
import pytest

from formulations import RankingSet, UnknownSolver, margin_dual, own, ranking, ranking_set, solve
from formulations.instances import FORMS, instances
from formulations.solvers.highs import Highs
from rankopt.constraints import Admissible
from rankopt.data import load_sample
from rankopt.errors import DataError, OptionError
from rankopt.experiments import Limits, Outcome, SolverSwap, Tape, read_rows
from rankopt.experiments.recording import ArgmaxRecorder, Log, argmax_tape
from rankopt.experiments.stored_forms import FORMS as STORED
from rankopt.experiments.stored_forms import Packed, unpacked
from rankopt.experiments.ties import tied_pairs
from rankopt.rankers import LargeMarginRanker, PairwiseRanker

QUICK = Limits(problem=2.0, tape=30.0, training=2.0, memory=1 << 30)
TIMED = {"seconds", "seconds_whole", "memory", "repeats"}
"""Fields of a row that differ from run to run."""


def rankings(sizes=(9, 12, 15)):
    rng = np.random.default_rng(3)
    return [
        ranking(
            rng.normal(size=n), rng.integers(0, 3, n), discount=1 / np.log2(np.arange(2, 7)), decay=6 - np.arange(1, 6)
        )
        for n in sizes
    ]


@pytest.fixture(scope="module")
def train():
    return load_sample("les-miserables").train.select(range(6))


def swapped(problems, *argmax, **options):
    return SolverSwap(problems, argmax=argmax, **{"repeats": 1, "limits": QUICK, **options}).run()


@pytest.mark.parametrize(
    ("function", "outcome"), planted.EXPECTED.items(), ids=lambda one: getattr(one, "__name__", one)
)
def test_every_planted_fault_becomes_its_row(function, outcome):
    problems = rankings((9,))
    (row,) = swapped(problems, own(function, accepts=type(problems[0])))
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


def test_a_batch_is_checked_too_since_training_believes_it():
    (row,) = swapped(rankings((9,)), planted.LiarInBatches())
    assert row.status is Outcome.WRONG
    assert "asked for a batch" in row.message


def test_after_a_crash_the_other_problems_go_on_in_a_fresh_process():
    rows = swapped(rankings((9, 12, 15, 10, 11)), own(planted.once_in_a_while, accepts=type(rankings()[0])))
    found = [(row.sizes["documents"], row.status.name) for row in rows]
    assert found == [(9, "SOLVED"), (12, "CRASHED"), (15, "SOLVED"), (10, "CRASHED"), (11, "SOLVED")]
    assert "exit code 7" in rows[1].message


def test_a_solver_that_breaks_down_too_often_in_a_row_is_given_up():
    limits = replace(QUICK, breakdowns=2)
    rows = swapped(rankings((9, 10, 11, 12)), own(planted.segfaulting, accepts=type(rankings()[0])), limits=limits)
    assert [row.status.name for row in rows] == ["CRASHED", "CRASHED", "GIVEN_UP", "GIVEN_UP"]
    assert "SIGSEGV" in rows[0].message
    assert "2 times in a row" in rows[2].message


def test_a_solver_that_used_up_its_time_for_the_tape_is_given_up():
    limits = replace(QUICK, problem=1.0, tape=1.0)
    rows = swapped(rankings(), own(planted.sleeping, accepts=type(rankings()[0])), limits=limits)
    assert [row.status.name for row in rows] == ["TIMED_OUT", "GIVEN_UP", "GIVEN_UP"]
    assert "after 1 of 3" in rows[1].message


def test_missing_and_unsuited_solvers_are_rows_and_slips_are_errors():
    rows = swapped(rankings((9,)), "cvxpy:NEVERHEARDOF", "active_set")
    assert [row.status.name for row in rows] == ["MISSING", "UNSUPPORTED"]
    with pytest.raises(UnknownSolver, match="did you mean 'highs'"):
        swapped(rankings((9,)), "hihgs")
    with pytest.raises(UnknownSolver, match="no solver is at"):
        swapped(rankings((9,)), "planted_solvers:NEVER")


def test_a_solver_is_given_by_place_or_as_an_object_that_can_be_shipped():
    by_place = swapped(rankings((9,)), "planted_solvers:HONEST")
    by_object = swapped(rankings((9,)), planted.HONEST)
    assert [row.status for row in by_place] == [Outcome.SOLVED]
    assert without_times(by_place) == without_times(by_object)
    with pytest.raises(OptionError, match="top of a module"):
        swapped(rankings((9,)), planted.ASSIGNED)  # a lambda

    def local(problem):
        return by_place

    with pytest.raises(OptionError, match="top of a module"):
        swapped(rankings((9,)), own(local, accepts=type(rankings()[0])))


def test_options_are_part_of_a_name_and_nobody_takes_part_twice():
    rows = swapped(rankings((9,)), "highs", Highs(method="simplex"))
    assert [row.solver for row in rows] == ["highs", "highs(method='simplex')"]
    with pytest.raises(OptionError, match="highs takes part twice"):
        swapped(rankings((9,)), "highs", Highs())
    with pytest.raises(UnknownSolver, match="is no solver"):
        swapped(rankings((9,)), np.argsort)
    with pytest.raises(OptionError, match="method 'bundel' is unknown"):
        swapped(rankings((9,)), "highs", methods=("bundel",))


def test_masters_are_judged_alike():
    rng = np.random.default_rng(0)
    problem = margin_dual(rng.normal(size=(12, 4)), rng.random(12), lam=0.1)
    rows = SolverSwap(problem, masters=("active_set", planted.IDLE_MASTER, "exact"), limits=QUICK).run()
    assert [row.kind for row in rows] == ["master"] * 3
    assert [row.status.name for row in rows] == ["SOLVED", "INEXACT", "UNSUPPORTED"]
    assert rows[0].sizes == {"planes": 12, "features": 4, "groups": 1}


@pytest.mark.parametrize("form", FORMS)
def test_a_tape_of_any_form_is_read_back_as_it_was(form, tmp_path):
    problems = [problem for _, problem, _ in instances(form)]
    tape = Tape.of(problems)
    tape.save(tmp_path / "tape.npz")
    again = Tape.load(tmp_path / "tape.npz")
    assert again.name == tape.name
    assert [taped.known for taped in again.problems] == [taped.known for taped in tape.problems]
    for one, other in zip(tape.problems, again.problems, strict=True):
        assert one.form.extent == other.form.extent
        assert solve(other.form).value == pytest.approx(one.known[0], abs=1e-9)


def test_every_stored_class_is_what_the_table_says_and_sets_are_stored_once():
    shared = RankingSet(4, 2).at_most(1, by=["a", "a", "b", None])
    packed = Packed()
    numbers = [packed.add(ranking_set(np.full((2, 4), float(i)), shared)) for i in range(3)]
    assert [record["class"] for record in packed.records].count("RankingSet") == 1
    back = unpacked(packed.records, packed.arrays, numbers)
    assert back[0].admissible is back[2].admissible
    assert {record["class"] for record in packed.records} <= set(STORED)
    with pytest.raises(OptionError, match="cannot be put on a tape"):
        packed.add(object())


def test_a_damaged_tape_is_an_error(tmp_path):
    (tmp_path / "tape.npz").write_bytes(b"nothing")
    with pytest.raises(DataError, match="record it again"):
        Tape.load(tmp_path / "tape.npz")


def test_a_recorded_run_meets_what_training_asks_and_changes_nothing(train):
    log = Log(most=8)
    options = {"bound": "convex", "lam": 1.0, "max_iter": 20, "tol": 1e-9, "engine": "serial"}
    with pytest.warns(match="stopped before"):
        usual = LargeMarginRanker("nDCG@5", **options).fit(train)
    with pytest.warns(match="stopped before"):
        ranker = LargeMarginRanker("nDCG@5", argmax=ArgmaxRecorder(log), callbacks=[log.stepped], **options).fit(train)
    np.testing.assert_array_equal(ranker.coef_, usual.coef_)
    assert min(log.heard) == 0
    assert max(log.heard) == 20  # the last evaluation, after 20 steps
    assert len(log.heard) <= 9
    tape = argmax_tape(log, 9, seed=0)
    assert len(tape.problems) == 9
    assert len({taped.step for taped in tape.problems}) == 3
    assert [taped.name for taped in tape.problems] == [taped.name for taped in argmax_tape(log, 9, seed=0).problems]
    first = tape.problems[0]
    assert first.known == (solve(first.form).value, solve(first.form).bound)


def test_tapes_under_constraints_hold_the_sets(train):
    ranker = LargeMarginRanker("nDCG@3", constraints=Admissible(k=3).at_most(2, by="community"), max_iter=3, tol=0.5)
    rows = SolverSwap(train, argmax=("highs",), masters=(), methods=(), ranker=ranker, problems=3, repeats=1).run()
    argmax = [row for row in rows if row.kind == "argmax"]
    assert len(argmax) == 3
    assert {row.status for row in argmax} == {Outcome.SOLVED}
    assert "under" in argmax[0].extent
    assert [row.role for row in rows if row.kind == "training"] == ["argmax", "argmax"]


def test_live_runs_swap_each_part_and_are_held_against_each_other(train):
    ranker = LargeMarginRanker("nDCG@5", bound="convex", decay="linear", lam=1.0)
    rows = SolverSwap(
        train, argmax=("exact", "scipy", planted.LiarInBatches()), masters=("block_ascent",),
        methods=("cutting_planes", planted.Boasting()), ranker=ranker, held_out=train, problems=3, repeats=1,
        limits=replace(QUICK, training=3.0),
    ).run()  # fmt: skip
    live = {(row.role, row.solver): row for row in rows if row.kind == "training"}
    assert list(live) == [
        ("argmax", "exact"), ("argmax", "scipy"), ("argmax", "liar"), ("master", "auto"), ("master", "block_ascent"),
        ("method", "bundle"), ("method", "cutting_planes"), ("method", repr(planted.Boasting())),
    ]  # fmt: skip
    liar, boaster = live.pop(("argmax", "liar")), live.pop(("method", repr(planted.Boasting())))
    # Training proves every ranking when it ends: a lying argmax leaves its gap open, and no false certificate.
    assert (liar.status, liar.certified) == (Outcome.INEXACT, True)
    assert (boaster.status, boaster.certified) == (Outcome.WRONG, False)
    assert "nothing is below" in boaster.message
    base = live["argmax", "exact"]
    for row in live.values():
        assert row.status is Outcome.SOLVED, row
        assert row.certified
        assert row.bound <= base.value
        assert list(row.measures) == [f"nDCG@{k}" for k in range(1, 11)]
        lengths = {len(column) for column in row.history.values()}
        assert len(lengths) == 1
        assert row.history["primal"][-1] == pytest.approx(row.value, rel=1e-6)
    assert live["master", "auto"].seconds == base.seconds  # one run, in every role


def test_a_live_run_that_hangs_is_killed_and_its_row_keeps_what_was_known(train):
    rows = SolverSwap(
        train.select(range(2)), argmax=(own(planted.sleeping, accepts=type(rankings()[0])),), masters=(), methods=(),
        ranker=LargeMarginRanker("nDCG@5"), problems=1, repeats=1, limits=Limits(problem=0.5, tape=0.5, training=0.1),
    ).run()  # fmt: skip
    hung = rows[-1]
    assert (hung.kind, hung.status) == ("training", Outcome.TIMED_OUT)
    assert "killed after 5.2 s" in hung.message


def test_a_ranker_without_an_argmax_has_masters_and_methods_only(train):
    rows = SolverSwap(
        train, masters=("active_set",), methods=("bundle",), ranker=PairwiseRanker(lam=1.0), problems=2, repeats=1
    ).run()
    assert [(row.kind, row.role) for row in rows] == [("master", ""), ("training", "master"), ("training", "master"),
                                                      ("training", "method")]  # fmt: skip


def without_times(rows):
    return [{name: value for name, value in vars(row).items() if name not in TIMED} for row in rows]


def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_rows(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from test_solver_swap import rankings\n"
        "from rankopt.experiments import SolverSwap\n"
        "swap = SolverSwap(rankings(range(9, 39)), argmax=('exact', 'scipy'), repeats=1)\n"
        "for row in swap.rows(sys.argv[1]):\n"
        "    print(row.problem, flush=True)\n"
    )
    cut, whole = tmp_path / "cut.jsonl", tmp_path / "whole.jsonl"
    arguments = [sys.executable, "-c", script, str(cut), str(Path(__file__).parent)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(20):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    killed = read_rows(cut)
    assert 20 <= len(killed) < 60
    with cut.open("a", encoding="utf-8") as file:
        file.write('{"kind": "argmax", "sol')  # the line that it was at
    problems = rankings(range(9, 39))
    again = SolverSwap(problems, argmax=("exact", "scipy"), repeats=1)
    assert len(again.run(cut, resume=True)) == 60 - len(killed)
    again.run(whole)
    assert without_times(read_rows(cut)) == without_times(read_rows(whole))
    assert vars(read_rows(cut)[0]) == vars(killed[0])  # what was found is not run again
    with pytest.raises(OptionError, match="resume=True"):
        again.run(whole)


def test_a_worker_dies_with_its_parent(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import planted_solvers as planted\n"
        "from formulations import RankTwoAssignment, own\n"
        "from test_solver_swap import rankings\n"
        "from rankopt.experiments import Limits, SolverSwap\n"
        "import rankopt.experiments.supervisor as supervisor\n"
        "begun = supervisor._Worker.next_row\n"
        "def told(self, *given):\n"
        "    print(self.process.pid, flush=True)\n"
        "    return begun(self, *given)\n"
        "supervisor._Worker.next_row = told\n"
        "solver = own(planted.sleeping, accepts=RankTwoAssignment)\n"
        "SolverSwap(rankings(), argmax=(solver,), limits=Limits(problem=600.0)).run()\n"
    )
    arguments = [sys.executable, "-c", script, str(Path(__file__).parent)]
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


def test_ties_are_pairs_whose_exchange_costs_nothing():
    distinct = ranking([3.0, 2.0, 1.0], [0.0, 0.0, 0.0], discount=[1.0, 1.0, 1.0], decay=[3.0, 2.0, 1.0])
    assert tied_pairs(distinct, np.arange(3)) == 0
    tied = ranking([3.0, 2.0, 2.0, 2.0], np.zeros(4), discount=[1.0, 1.0], decay=[3.0, 2.0])
    assert tied_pairs(tied, np.array([0, 1])) == 2  # document 1 with 2 or 3; that 2 and 3 are left out changes nothing
    flat = ranking(np.zeros(3), np.zeros(3), discount=[1.0, 0.5, 0.2], decay=[3.0, 2.0, 1.0])
    assert tied_pairs(flat, np.arange(3)) == 3
    blocks = RankingSet(4, 2).at_most(1, by=["a", "a", "b", "b"])
    equal = ranking_set(np.ones((2, 4)), blocks)
    # 0 and 2 may change places, 0 may go for 1, 2 for 3; 0 for 3 or 2 for 1 would take two documents of one block.
    assert tied_pairs(equal, np.array([0, 2])) == 3
    assert tied_pairs(margin_dual([[1.0]], [1.0], lam=1.0), np.ones(1)) is None


def test_what_cannot_be_swapped_says_so():
    with pytest.raises(OptionError, match="give Queries, a Sample, a problem"):
        SolverSwap(42).run()
    with pytest.raises(DataError, match="measures nothing"):
        SolverSwap([]).run()
    with pytest.raises(OptionError, match="leaves nothing"):
        Limits(tape=0.0)


def test_rows_are_plain_json(tmp_path):
    rows = SolverSwap(rankings((9,)), argmax=("exact",), repeats=1).run(tmp_path / "rows.jsonl")
    line = json.loads((tmp_path / "rows.jsonl").read_text())
    assert line["status"] == "SOLVED"
    assert read_rows(tmp_path / "rows.jsonl") == rows
    (tmp_path / "rows.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match="line 1"):
        read_rows(tmp_path / "rows.jsonl")
