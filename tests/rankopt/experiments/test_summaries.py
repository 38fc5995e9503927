"""Summaries of rows against values worked out by hand."""

import numpy as np
import pytest
from problems.swap_rows import sample_rows

from rankopt.errors import DataError
from rankopt.experiments.rows import KINDS, BenchmarkRow, Outcome, read_rows, written
from rankopt.experiments.summaries import (
    agreement,
    gap_against_time,
    of_kind,
    pairwise_wins,
    performance_profile,
    shifted_geometric_mean,
    shifted_geometric_means,
    solvers_of,
)


def row(solver, problem, seconds=None, value=1.0, status=Outcome.SOLVED):
    return BenchmarkRow("argmax", solver, status, problem, "argmax:0", value=value, bound=value, scale=1.0,
    tolerance=1e-6,
               seconds=seconds)  # fmt: skip


ROWS = [
    row("a", "p", 1.0), row("a", "q", 2.0), row("a", "r", 8.0), row("a", "s", status=Outcome.TIMED_OUT),
    row("b", "p", 2.0), row("b", "q", 1.0), row("b", "r", status=Outcome.CRASHED), row("b", "s", 4.0, value=2.0),
    row("c", "p", 1.0, value=1.5), row("c", "q", 1.0, value=1.0 + 1e-9), row("c", "r", 4.0, status=Outcome.WRONG),
]  # fmt: skip
"""Four problems; c has no row for the last."""


def test_a_file_that_is_no_text_is_named_with_its_line(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_bytes(written(ROWS[:2]).encode() + b'{"kind": "\xff"}\n')
    with pytest.raises(DataError, match=r"rows\.jsonl, line 3 is not valid text: .*; save the file as UTF-8"):
        read_rows(file)


def test_a_shifted_geometric_mean():
    assert shifted_geometric_mean([1.0, 4.0], 0.0) == pytest.approx(2.0)
    assert shifted_geometric_mean([0.0, 3.0], 1.0) == pytest.approx(1.0)  # sqrt(1 · 4) - 1
    assert np.isnan(shifted_geometric_mean([], 1.0))


def test_what_was_not_solved_counts_as_the_penalty():
    means = shifted_geometric_means(ROWS, shift=0.0, penalty=16.0)
    assert means["a"] == pytest.approx((1 * 2 * 8 * 16) ** 0.25)
    assert means["b"] == pytest.approx((2 * 1 * 16 * 4) ** 0.25)
    assert means["c"] == pytest.approx((1 * 1 * 16 * 16) ** 0.25)
    usual = shifted_geometric_means(ROWS, shift=0.0)
    assert usual["a"] == pytest.approx((1 * 2 * 8 * 80) ** 0.25)  # ten times the longest, 8


def test_who_solved_nothing_has_no_time():
    means = shifted_geometric_means(
        [*ROWS, row("d", "p", 2.0, status=Outcome.WRONG), row("e", "p", status=Outcome.MISSING)]
    )
    assert np.isnan(means["d"])
    assert np.isnan(means["e"])
    assert all(np.isfinite(means[solver]) for solver in "abc")


def test_performance_profiles():
    curves = performance_profile(ROWS)
    np.testing.assert_allclose(curves["a"][0], [1.0, 2.0])  # p at once, r alone, q in twice the time
    np.testing.assert_allclose(curves["a"][1], [0.5, 0.75])
    np.testing.assert_allclose(curves["b"][0], [1.0, 2.0])  # q tied and s at once, p in twice the time
    np.testing.assert_allclose(curves["b"][1], [0.5, 0.75])
    np.testing.assert_allclose(curves["c"][0], [1.0])
    np.testing.assert_allclose(curves["c"][1], [0.5])  # a wrong answer is not solved, however fast


def test_pairwise_wins():
    solvers, wins = pairwise_wins(ROWS)
    assert solvers == ["a", "b", "c"]
    np.testing.assert_array_equal(wins, [[0, 2, 1], [2, 0, 1], [1, 1, 0]])


def test_agreement():
    found = agreement(ROWS)
    assert found.solvers == ("a", "b", "c")
    # a and b answered p and q alike; a and c answered p (differing), q (to rounding) and r (c is refuted).
    np.testing.assert_array_equal(found.compared, [[3, 2, 3], [2, 3, 2], [3, 2, 3]])
    np.testing.assert_allclose(found.shares, [[1, 1, 1 / 3], [1, 1, 1 / 2], [1 / 3, 1 / 2, 1]])
    assert [(one.solver, other.solver, one.problem) for one, other in found.differing] == [
        ("a", "c", "p"), ("b", "c", "p"), ("a", "c", "r"),
    ]  # fmt: skip


def test_nothing_to_compare_is_not_a_number():
    found = agreement([row("a", "p", 1.0), row("b", "q", 1.0)])
    assert np.isnan(found.shares[0, 1])
    assert found.compared[0, 1] == 0


def test_gap_against_time():
    run = BenchmarkRow("training", "highs", Outcome.SOLVED, role="argmax", is_maximization=False,
              history={"seconds": [1.0, 2.0, 3.0], "primal": [2.0, 1.0, 1.0], "bound": [None, 0.5, 1.5]})  # fmt: skip
    seconds, gap = gap_against_time([run, row("a", "p")])["argmax: highs"]
    np.testing.assert_array_equal(seconds, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(gap, [np.nan, 0.5, 0.0])


def test_rows_survive_their_file_and_have_keys_of_their_own(tmp_path):
    rows = sample_rows()
    assert {one.kind for one in rows} == set(KINDS)
    (tmp_path / "rows.jsonl").write_text(written(rows))
    assert read_rows(tmp_path / "rows.jsonl") == rows
    assert len({one.key for one in rows}) == len(rows)
    assert solvers_of(of_kind(rows, "master")) == ["active_set", "qpsolvers:piqp", "cvxpy:CLARABEL"]


def test_a_gap_is_relative_to_the_scale_and_knows_which_way_is_better():
    up = BenchmarkRow("argmax", "a", Outcome.INEXACT, value=1.0, bound=3.0, scale=4.0)
    down = BenchmarkRow("training", "a", Outcome.INEXACT, value=3.0, bound=1.0, is_maximization=False)
    assert (up.gap, down.gap) == (0.5, 2.0)
    assert BenchmarkRow("argmax", "a", Outcome.CRASHED).gap is None
