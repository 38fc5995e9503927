"""Summaries of rows against values worked out by hand."""

import json
from dataclasses import replace

import numpy as np
import pytest
from problems.swap_rows import sample_rows

from formulations import RankingSet, constrained_ranking, ranking
from formulations.problems.linear_program import LinearProgram
from rankopt.errors import DataError, OptionError
from rankopt.experiments import IntegralityStudy, Limits, ProblemTrace, SolverSwap, changes
from rankopt.experiments.integrality import OBJECTIVES, STATEMENTS, Study
from rankopt.experiments.regression import Kind, baseline_solvers, by_solver, compare_times, mean_factor, read_baseline
from rankopt.experiments.rows import KINDS, BenchmarkRow, Outcome, read_rows, written
from rankopt.experiments.summaries import (
    agreement,
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
    with pytest.raises(DataError, match=r"rows\.jsonl, line 3 is no text: .*; save the file as UTF-8"):
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


def test_what_a_solver_does_not_support_is_not_in_its_mean():
    partly = [row("d", "p", 3.0), row("d", "q", 12.0), *(row("d", one, status=Outcome.UNSUPPORTED) for one in "rs")]
    assert shifted_geometric_means([*ROWS, *partly], shift=0.0)["d"] == pytest.approx(6.0)


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


def test_performance_profiles_are_the_shares_within_each_factor():
    """Against the definition of Dolan and Moré, counted problem by problem."""
    rng = np.random.default_rng(0)
    times = {solver: rng.choice([1.0, 2.0, 3.0, 7.0, np.inf], size=20) for solver in "abc"}
    rows = [
        row(solver, str(p), None if np.isinf(t) else t, status=Outcome.TIMED_OUT if np.isinf(t) else Outcome.SOLVED)
        for solver, own in times.items()
        for p, t in enumerate(own)
    ]
    best = np.min([*times.values()], axis=0)
    for solver, (factors, shares) in performance_profile(rows).items():
        counted = [
            sum(t <= factor * b < np.inf for t, b in zip(times[solver], best, strict=True)) for factor in factors
        ]
        np.testing.assert_array_equal(shares, np.array(counted) / 20)
        assert shares[-1] == np.isfinite(times[solver]).mean()


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


# The integrality study finds what is known: which statements are whole, and how far the textbook example is off.


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


# Two runs of one trace: tests of seconds keep their level, outcomes are what they became.


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
    with pytest.raises(OptionError, match="custom problems need no data; leave the data out"):
        SolverSwap(ProblemTrace.load(trace), problems=[trace])
    for odd in ([3], [], "p.txt", [object()]):
        with pytest.raises((OptionError, DataError)):
            SolverSwap(problems=odd).run()
