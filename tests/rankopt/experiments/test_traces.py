"""Traces: forms of any kind are read back as they were, and a recorded run is the run that it records."""

import numpy as np
import pytest

from formulations import RankingSet, constrained_ranking, margin_dual, ranking, solve
from formulations.problems.assignment import Assignment
from formulations.testing.instances import FORMS, instances
from rankopt.constraints import Admissible
from rankopt.data import load_sample
from rankopt.errors import DataError, OptionError
from rankopt.experiments import Outcome, ProblemTrace, SolverSwap
from rankopt.experiments.recording import Log, Recorder, argmax_trace
from rankopt.experiments.replay import tied_pairs
from rankopt.experiments.traces import RecordedProblem
from rankopt.rankers import LargeMarginRanker


@pytest.fixture(scope="module")
def train():
    return load_sample("les-miserables").train.select(range(6))


@pytest.mark.parametrize("form", FORMS)
def test_a_trace_of_any_form_is_read_back_as_it_was(form, tmp_path):
    problems = [problem for _, problem, _ in instances(form)]
    trace = ProblemTrace.from_problems(problems)
    trace.save(tmp_path / "trace.npz")
    again = ProblemTrace.load(tmp_path / "trace.npz")
    assert again.name == trace.name
    assert [taped.known for taped in again.problems] == [taped.known for taped in trace.problems]
    for one, other in zip(trace.problems, again.problems, strict=True):
        assert one.form.shape_text == other.form.shape_text
        assert solve(other.form).value == pytest.approx(one.known[0], abs=1e-9)


def test_sets_are_stored_once_and_what_is_no_problem_is_not(tmp_path):
    shared = RankingSet(4, 2).at_most(1, by=["a", "a", "b", None])
    trace = ProblemTrace.from_problems([constrained_ranking(np.full((2, 4), float(i)), shared) for i in range(3)])
    trace.save(tmp_path / "trace.npz")
    assert (tmp_path / "trace.npz").read_bytes().count(b'"record": "RankingSet"') == 1
    back = [one.form for one in ProblemTrace.load(tmp_path / "trace.npz").problems]
    assert back[0].admissible is back[2].admissible
    with pytest.raises(DataError, match="needs a name and a form"):
        RecordedProblem("x", object())
    with pytest.raises(OptionError, match="cannot be saved because a Own is not data; restate the problem as one of"):
        ProblemTrace.from_problems([Own([[1.0, 2.0]])]).save(tmp_path / "own.npz")


class Own(Assignment):
    """A problem class that no table lists."""


def test_a_damaged_trace_is_an_error(tmp_path):
    (tmp_path / "trace.npz").write_bytes(b"nothing")
    with pytest.raises(DataError, match="record it again"):
        ProblemTrace.load(tmp_path / "trace.npz")


def test_a_recorded_run_meets_what_training_asks_and_changes_nothing(train):
    log = Log(most=8)
    options = {"bound": "convex", "lam": 1.0, "max_iter": 20, "tol": 1e-9, "engine": "serial"}
    with pytest.warns(match="stopped before"):
        usual = LargeMarginRanker("nDCG@5", **options).fit(train)
    with pytest.warns(match="stopped before"):
        ranker = LargeMarginRanker("nDCG@5", argmax_solver=Recorder(log), callbacks=[log.stepped], **options).fit(train)
    np.testing.assert_array_equal(ranker.coef_, usual.coef_)
    assert min(log.heard) == 0
    assert max(log.heard) == 20  # the last evaluation, after 20 steps
    assert len(log.heard) <= 9
    trace = argmax_trace(log, 9, seed=0)
    assert len(trace.problems) == 9
    assert len({taped.step for taped in trace.problems}) == 3
    assert [taped.name for taped in trace.problems] == [taped.name for taped in argmax_trace(log, 9, seed=0).problems]
    first = trace.problems[0]
    assert first.known == (solve(first.form).value, solve(first.form).bound)


@pytest.mark.study
def test_traces_under_constraints_hold_the_sets(train):
    ranker = LargeMarginRanker("nDCG@3", constraints=Admissible(k=3).at_most(2, by="community"), max_iter=3, tol=0.5)
    rows = SolverSwap(
        train, argmax_solvers=("highs",), master_solvers=(), methods=(), ranker=ranker, problems=3, repeats=1
    ).run()
    argmax = [row for row in rows if row.kind == "argmax"]
    assert len(argmax) == 3
    assert {row.status for row in argmax} == {Outcome.SOLVED}
    assert "under" in argmax[0].shape_text
    assert [row.role for row in rows if row.kind == "training"] == ["argmax", "argmax"]


def test_ties_are_pairs_whose_exchange_costs_nothing():
    distinct = ranking([3.0, 2.0, 1.0], [0.0, 0.0, 0.0], discount=[1.0, 1.0, 1.0], position_weights=[3.0, 2.0, 1.0])
    assert tied_pairs(distinct, np.arange(3)) == 0
    tied = ranking([3.0, 2.0, 2.0, 2.0], np.zeros(4), discount=[1.0, 1.0], position_weights=[3.0, 2.0])
    assert tied_pairs(tied, np.array([0, 1])) == 2  # document 1 with 2 or 3; that 2 and 3 are left out changes nothing
    flat = ranking(np.zeros(3), np.zeros(3), discount=[1.0, 0.5, 0.2], position_weights=[3.0, 2.0, 1.0])
    assert tied_pairs(flat, np.arange(3)) == 3
    blocks = RankingSet(4, 2).at_most(1, by=["a", "a", "b", "b"])
    equal = constrained_ranking(np.ones((2, 4)), blocks)
    # 0 and 2 may change places, 0 may go for 1, 2 for 3; 0 for 3 or 2 for 1 would take two documents of one block.
    assert tied_pairs(equal, np.array([0, 2])) == 3
    assert tied_pairs(margin_dual([[1.0]], [1.0], lam=1.0), np.ones(1)) is None
