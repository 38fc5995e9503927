"""Two runs of one trace: tests of seconds keep their level, outcomes are what they became."""

import json
from dataclasses import replace

import numpy as np
import pytest

from formulations import RankingSet, constrained_ranking, ranking
from rankopt.errors import DataError, OptionError
from rankopt.experiments import BenchmarkRow, Limits, Outcome, ProblemTrace, SolverSwap, changes, read_rows
from rankopt.experiments.regression import (
    Kind,
    baseline_solvers,
    by_solver,
    compare_times,
    mean_factor,
    read_baseline,
)

ROW = BenchmarkRow(kind="argmax", solver="highs", status=Outcome.SOLVED, problem="p", trace="argmax:1", value=1.0,
bound=1.0,
          scale=1.0, tolerance=1e-6, seconds=1.0, times=(1.0, 1.01, 0.99, 1.0, 1.02), repeats=5)  # fmt: skip


def became(**after):
    before = after.pop("before", ROW)
    return changes([before], [replace(ROW, **after)])[0].kind


def test_three_repeats_of_both_runs_decide():
    assert compare_times([1.0, 1.1, 1.2], [2.0, 2.2, 2.4]) is Kind.SLOWER
    assert compare_times([2.0, 2.2, 2.4], [1.0, 1.1, 1.2]) is Kind.FASTER
    assert compare_times([1.0, 1.1], [2.0, 2.2]) is Kind.UNDECIDED


@pytest.mark.parametrize(("m", "n"), [(3, 3), (5, 5), (5, 7)])
def test_a_change_within_the_tolerance_is_rarely_called_one(m, n):
    rng = np.random.default_rng(0)
    found = []
    for _ in range(2000):
        before = np.exp(rng.normal(size=m))
        found += [compare_times(before, factor * np.exp(rng.normal(size=n)), 1.7) for factor in (1.7, 1 / 1.7)]
    assert found[::2].count(Kind.SLOWER) / 2000 <= 0.065
    assert found[1::2].count(Kind.FASTER) / 2000 <= 0.065
    assert found.count(Kind.SAME) / 4000 <= 0.065


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
    least = replace(ROW, is_maximization=False)
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
    with pytest.raises(DataError, match="line 1 is not a valid row"):
        read_rows(file)


def test_rows_of_others_cannot_start_code_of_their_own():
    with pytest.raises(OptionError, match="code outside rankopt; pass it in --argmax-solvers"):
        baseline_solvers([replace(ROW, solver="planted:X")], "argmax")
    assert baseline_solvers([ROW, replace(ROW, solver="cvxpy:CLARABEL")], "argmax") == ["highs", "cvxpy:CLARABEL"]


def test_the_mean_factor_is_geometric():
    rows = [replace(ROW, problem=str(p)) for p in range(2)]
    now = [replace(row, times=tuple(factor * t for t in row.times)) for row, factor in zip(rows, (2, 8), strict=True)]
    found = changes(rows, now)
    assert mean_factor(found) == pytest.approx(4.0)
    assert mean_factor(changes([ROW], [replace(ROW, status=Outcome.WRONG)])) is None
    assert list(by_solver(found)) == [("argmax:1", "highs")]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("swap") / "rows.jsonl"
    rng = np.random.default_rng(0)
    problems = [constrained_ranking(rng.normal(size=(3, 8)), RankingSet(8, 3).at_most(1, by=[0, 0, 1, 1, 2, 2, 3, 3]))]
    problems += [
        ranking(rng.normal(size=5), np.zeros(5), discount=[1.0, 0.5], position_weights=[2.0, 1.0]) for _ in range(2)
    ]
    limits = Limits(problem=60.0, trace=300.0)
    SolverSwap(problems=problems, argmax_solvers=("exact", "highs"), repeats=3, limits=limits).run(path)
    return path


@pytest.mark.study
def test_the_same_version_replays_the_same_answers(recorded, tmp_path):
    rows, traces = read_baseline(recorded)
    limits = Limits(problem=60.0, trace=300.0)
    argmax = baseline_solvers(rows, "argmax")
    again = SolverSwap(problems=traces, argmax_solvers=argmax, repeats=3, limits=limits).run(tmp_path / "again.jsonl")
    before = {row.key: row for row in read_rows(recorded)}
    assert {row.key: (row.status, row.value) for row in again} == {
        key: (row.status, row.value) for key, row in before.items()
    }
    solved = [row for row in again if row.status is Outcome.SOLVED]
    assert len(solved) == 5  # 'exact' takes no set
    assert not {one.kind for one in changes(rows, again)} & {Kind.WRONG, Kind.LOST, Kind.MENDED}
    rows, traces = read_baseline(tmp_path / "again.jsonl")  # the traces were stored next to it
    both = SolverSwap(problems=traces, argmax_solvers=("highs", "highs(presolve='off')"), repeats=1).run()
    assert len(changes(rows, both)) == 6


@pytest.mark.study
def test_a_missing_baseline_is_an_error(recorded, tmp_path):
    (tmp_path / "rows.jsonl").write_bytes(recorded.read_bytes())
    with pytest.raises(DataError, match="put the traces of"):
        read_baseline(tmp_path / "rows.jsonl")
    (tmp_path / "none.jsonl").write_text("")
    with pytest.raises(DataError, match="has no rows of recorded problems"):
        read_baseline(tmp_path / "none.jsonl")
    with pytest.raises(DataError, match=r"nowhere\.jsonl cannot be read .*`rankopt swap --output` wrote"):
        read_baseline(tmp_path / "nowhere.jsonl")


@pytest.mark.study
def test_a_solver_that_changed_its_mind_is_found(recorded):
    rows = [row for row in read_rows(recorded) if row.solver == "highs"]
    worse = [replace(row, value=row.value - 0.5, bound=row.bound - 0.5) for row in rows]
    assert {one.kind for one in changes(rows, worse)} == {Kind.WRONG}
    assert "denies" in changes(rows, worse)[0].why


@pytest.mark.study
def test_traces_given_as_files_are_replayed_as_they_are(recorded, tmp_path):
    trace = next(recorded.with_suffix(".traces").glob("*.npz"))
    rows = SolverSwap(problems=[trace], argmax_solvers=("scipy",), repeats=1).run()
    assert {row.trace for row in rows} == {ProblemTrace.load(trace).name}
    with pytest.raises(OptionError, match="exclude each other"):
        SolverSwap(ProblemTrace.load(trace), problems=[trace])
    for odd in ([3], [], "p.txt", [object()]):
        with pytest.raises((OptionError, DataError)):
            SolverSwap(problems=odd).run()
