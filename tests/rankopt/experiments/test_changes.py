"""Two runs of one tape: intervals hold the true factor as often as they say, outcomes are what they became."""

import json
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import pytest

from formulations import RankingSet, constrained_ranking, ranking
from rankopt.errors import DataError, OptionError
from rankopt.experiments import Against, Limits, Outcome, Row, SolverSwap, Tape, changes, read_rows
from rankopt.experiments.regression import Kind, _tails, by_solver, mean_factor, repeats_factor

ROW = Row(kind="argmax", solver="highs", status=Outcome.SOLVED, problem="p", tape="argmax:1", value=1.0, bound=1.0,
          scale=1.0, tolerance=1e-6, seconds=1.0, times=(1.0, 1.01, 0.99, 1.0, 1.02), repeats=5)  # fmt: skip


def became(**after):
    before = after.pop("before", ROW)
    return changes([before], [replace(ROW, **after)])[0].kind


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 3), (2, 5), (4, 3)])
def test_the_count_of_mann_and_whitney_is_that_of_enumeration(m, n):
    counts = np.zeros(m * n + 1)
    for places in combinations(range(m + n), m):
        counts[sum(places) - m * (m - 1) // 2] += 1
    np.testing.assert_allclose(_tails(m, n), np.cumsum(counts) / comb(m + n, m))


def test_three_repeats_on_either_side_show_ninety_per_cent_and_no_more():
    factor, (low, high), sure = repeats_factor([1.0, 1.1, 1.2], [2.0, 2.2, 2.4])
    assert sure == pytest.approx(0.9)
    assert (low, high) == (pytest.approx(2.0 / 1.2), pytest.approx(2.4))
    assert low <= factor <= high


@pytest.mark.parametrize(("m", "n"), [(3, 3), (5, 5), (5, 7)])
def test_intervals_hold_the_true_factor_as_often_as_they_say(m, n):
    rng = np.random.default_rng(0)
    held, sure = 0, 0.0
    for _ in range(2000):
        before, after = np.exp(rng.normal(size=m)), 1.7 * np.exp(rng.normal(size=n))
        _, (low, high), sure = repeats_factor(before, after)
        held += low <= 1.7 <= high
    assert sure >= 0.9
    assert held / 2000 == pytest.approx(sure, abs=0.025)


def test_each_outcome_has_its_name():
    assert became() is Kind.SAME
    assert became(times=(2.0, 2.1, 2.2, 2.0, 2.1)) is Kind.SLOWER
    assert became(times=(0.5, 0.5, 0.4, 0.5, 0.5)) is Kind.FASTER
    assert became(times=(0.5, 1.5, 1.0, 2.0, 0.9)) is Kind.UNDECIDED
    assert became(times=()) is Kind.UNDECIDED
    assert became(status=Outcome.GIVEN_UP) is Kind.UNDECIDED
    assert became(status=Outcome.WRONG) is Kind.WRONG
    assert became(status=Outcome.CRASHED) is Kind.LOST
    assert became(status=Outcome.INEXACT, bound=1.5) is Kind.LOST
    assert became(before=replace(ROW, status=Outcome.TIMED_OUT)) is Kind.MENDED
    assert became(before=replace(ROW, status=Outcome.FAILED), status=Outcome.CRASHED) is Kind.UNSOLVED
    assert became(value=1.1, bound=1.1) is Kind.WRONG  # beyond the bound that the other run proved
    assert became(value=0.9, bound=0.9) is Kind.WRONG
    open_ = replace(ROW, status=Outcome.INEXACT, bound=2.0)
    assert changes([open_], [open_])[0].kind is Kind.SAME
    assert changes([open_], [replace(open_, value=0.9)])[0].kind is Kind.LOST
    assert changes([open_], [replace(open_, value=1.1)])[0].kind is Kind.MENDED
    least = replace(ROW, maximises=False)
    assert changes([least], [replace(least, value=1.1, bound=1.1)])[0].kind is Kind.WRONG


def test_options_stand_beside_the_usual_ones_and_strangers_are_left_out():
    other = replace(ROW, solver="highs(presolve='off')", times=(3.0,) * 5)
    found = changes([ROW], [ROW, other, replace(ROW, solver="scipy"), replace(ROW, kind="training")])
    assert [(one.after.solver, one.kind) for one in found] == [("highs", Kind.SAME), (other.solver, Kind.SLOWER)]


@pytest.mark.parametrize(
    "forged",
    [{"value": "5"}, {"times": [-1.0]}, {"times": [0.0]}, {"scale": -1.0}, {"tolerance": 1e9}, {"bound": True}],
)
def test_forged_rows_are_refused(forged, tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(json.loads(ROW.as_line()) | forged) + "\n")
    with pytest.raises(DataError, match="line 1 is no row of an experiment"):
        read_rows(file)


def test_rows_of_others_cannot_start_code_of_their_own(tmp_path, monkeypatch):
    (tmp_path / "planted.py").write_text("raise SystemExit('started')")
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "rows.jsonl").write_text(replace(ROW, solver="planted:X").as_line() + "\n")
    with pytest.raises(OptionError, match="code of its own that rows may not start"):
        list(Against(tmp_path / "rows.jsonl").rows())


def test_a_mean_over_problems_holds_the_true_factor():
    rng = np.random.default_rng(0)
    held = 0
    for trial in range(40):
        rows = [replace(ROW, problem=str(p), times=tuple(np.exp(rng.normal(0, 0.3, 5)))) for p in range(15)]
        now = [replace(row, times=tuple(2.0 * np.exp(rng.normal(0, 0.3, 5)))) for row in rows]
        found = changes(rows, now)
        mean, low, high = mean_factor(found, seed=trial, draws=400)
        assert low <= mean <= high
        held += low <= 2.0 <= high
    assert held >= 34
    assert mean_factor(changes([ROW], [replace(ROW, status=Outcome.WRONG)])) is None
    assert list(by_solver(found)) == [("argmax:1", "highs")]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("swap") / "rows.jsonl"
    rng = np.random.default_rng(0)
    problems = [constrained_ranking(rng.normal(size=(3, 8)), RankingSet(8, 3).at_most(1, by=[0, 0, 1, 1, 2, 2, 3, 3]))]
    problems += [ranking(rng.normal(size=5), np.zeros(5), discount=[1.0, 0.5], decay=[2.0, 1.0]) for _ in range(2)]
    limits = Limits(problem=60.0, tape=300.0)
    SolverSwap(problems=problems, argmax=("exact", "highs"), repeats=3, limits=limits).run(path)
    return path


@pytest.mark.study
def test_the_same_version_replays_the_same_answers(recorded, tmp_path):
    run = Against(recorded, repeats=3, limits=Limits(problem=60.0, tape=300.0))
    rows = list(run.rows(tmp_path / "again.jsonl"))
    before = {row.key: row for row in read_rows(recorded)}
    assert [row.key for row in rows] == list(before)
    assert [(row.status, row.value) for row in rows] == [(row.status, row.value) for row in before.values()]
    solved = [row for row in rows if row.status is Outcome.SOLVED]
    assert len(solved) == 5  # 'exact' takes no set
    assert all(len(row.times) == 3 and row.seconds == np.median(row.times) for row in solved)
    found = run.changes(rows)
    assert not {one.kind for one in found} & {Kind.WRONG, Kind.LOST, Kind.MENDED}
    again = Against(tmp_path / "again.jsonl", argmax=("highs", "highs(presolve='off')"), repeats=1)  # tapes came along
    both = list(again.rows())
    assert [row.solver for row in both] == ["highs"] * 3 + ["highs(presolve='off')"] * 3
    assert len(again.changes(both)) == 6


@pytest.mark.study
def test_what_is_not_there_is_said(recorded, tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(recorded.read_bytes())
    with pytest.raises(DataError, match="put the tapes of"):
        list(Against(tmp_path / "rows.jsonl").rows())
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(DataError, match="has no rows of tapes"):
        list(Against(tmp_path / "none.jsonl").rows())
    with pytest.raises(DataError, match=r"nowhere\.jsonl cannot be read .*`rankopt swap --output` wrote"):
        list(Against(tmp_path / "nowhere.jsonl").rows())


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"path": 3}, "path = 3 is no file; give the file that"),
        ({"margin": 0.5}, r"margin = 0\.5 is no finite number; give one of 1 or more"),
        ({"repeats": "a"}, "repeats = 'a' is no whole number"),
        ({"limits": 3}, r"limits = 3 are none of a run; give Limits\("),
        ({"argmax": "highs"}, r"argmax = 'highs' is no list .*argmax=\('highs',\)"),
        ({"masters": 3}, "masters = 3 is no list"),
    ],
)
def test_what_no_replay_can_be_asked_is_refused_before_it_begins(wrong, said):
    with pytest.raises(OptionError, match=said):
        Against(**{"path": "rows.jsonl", **wrong})


@pytest.mark.study
def test_a_solver_that_changed_its_mind_is_found(recorded):
    rows = [row for row in read_rows(recorded) if row.solver == "highs"]
    worse = [replace(row, value=row.value - 0.5, bound=row.bound - 0.5) for row in rows]
    assert {one.kind for one in changes(rows, worse)} == {Kind.WRONG}
    assert "denies" in changes(rows, worse)[0].why


@pytest.mark.study
def test_tapes_given_as_files_are_replayed_as_they_are(recorded, tmp_path):
    tape = next(recorded.with_suffix(".tapes").glob("*.npz"))
    rows = SolverSwap(problems=[tape], argmax=("scipy",), repeats=1).run()
    assert {row.tape for row in rows} == {Tape.load(tape).name}
    with pytest.raises(OptionError, match="stand alone"):
        SolverSwap(Tape.load(tape), problems=[tape])
    for odd in ([3], [], "p.txt", [object()]):
        with pytest.raises((OptionError, DataError)):
            SolverSwap(problems=odd).run()
