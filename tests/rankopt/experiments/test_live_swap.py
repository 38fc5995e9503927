"""Live runs: training with one part swapped, held against the usual one, and stopped where it hangs."""

from dataclasses import replace

import pytest
from planted import solvers as planted
from problems.swaps import QUICK

from formulations import RankTwoAssignment, function_solver
from rankopt.data import load_sample
from rankopt.experiments import Limits, Outcome, SolverSwap
from rankopt.rankers import LargeMarginRanker, PairwiseRanker


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
    # Training proves every ranking when it ends: a lying argmax leaves its gap open, and no false certificate.
    assert (liar.status, liar.certified) == (Outcome.INEXACT, True)
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
