"""Programs in whole numbers whose relaxation is larger, and programs without an optimum: what a swap calls them."""

from dataclasses import replace

import pytest

from formulations import read_program, solve
from rankopt.experiments import Outcome, SolverSwap
from rankopt.experiments.replay import unbeaten
from rankopt.experiments.traces import RecordedProblem

WHOLE = "maximize\n x + y\nst\n c: x + y <= 1.5\ngenerals\n x y\nend\n"
EMPTY = "minimize\n x\nst\n a: x >= 1\n b: x <= 0\nend\n"
ENDLESS = "maximize\n x + y\nst\n a: x - y <= 1\nend\n"


@pytest.mark.study
@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (WHOLE, Outcome.UNBEATEN),
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
    assert [row.value for row in rows] == [1.0 if text is WHOLE else None] * 2


def test_only_the_best_known_point_is_unbeaten(tmp_path):
    pytest.importorskip("highspy")
    path = tmp_path / "a.lp"
    path.write_text(WHOLE)
    form = read_program(path)
    best = solve(form, "highs")
    taped = RecordedProblem("a", form, None, (1.0, 1.5))
    assert unbeaten(taped, best, 1e-6)
    assert unbeaten(taped, best.with_metadata(details={}), 1e-6)
    assert not unbeaten(taped, best.with_metadata(details={"reported_bound": 1.5}), 1e-6)  # a search that was cut short
    worse = replace(best.with_metadata(details={}), value=0.0)
    assert not unbeaten(taped, worse, 1e-6)
    assert not unbeaten(RecordedProblem("a", form, None, (1.0, 1.0)), best, 1e-6)  # there is a proof, it has none
    assert not unbeaten(
        RecordedProblem("a", form), best.with_metadata(details={}), 1e-6
    )  # nothing is known, nothing is claimed


def test_a_relaxed_program_without_a_proof_stays_inexact(tmp_path):
    pytest.importorskip("highspy")
    path = tmp_path / "a.lp"
    path.write_text(WHOLE.replace("generals\n x y\n", ""))
    form = read_program(path)
    assert not unbeaten(
        RecordedProblem("a", form, None, (1.0, 1.5)), solve(form, "highs").with_metadata(details={}), 1e-6
    )
