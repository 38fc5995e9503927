"""Several runs beside each other: intervals, Holm over all tests, frames and LaTeX; the signed-rank test of paper 1."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from rankopt.errors import DataError, MeasureError, OptionError
from rankopt.evaluation.comparison import signed_rank_p
from rankopt.evaluation.evaluation import interval_of
from rankopt.evaluation.export import latex_text
from rankopt.measures import compare, compare_runs, evaluate, holm

MEASURES = ["nDCG@3", "RR", "Success@1"]


def evaluations(names=("a", "b", "c_2"), m=30, seed=0):
    rng = np.random.default_rng(seed)
    relevance, offsets = rng.integers(0, 3, 6 * m).astype(float), np.arange(0, 6 * m + 1, 6)
    relevance[::6] = 1  # something is relevant in each
    return {
        name: evaluate(relevance, relevance + (1 + i) * rng.normal(size=6 * m), MEASURES, offsets=offsets)
        for i, name in enumerate(names)
    }


@pytest.mark.parametrize("n", [1, 5, 11])
@pytest.mark.parametrize("rounded", [1, 9])
def test_few_signed_ranks_are_counted_over_all_signs_ties_too(n, rounded):
    d = np.round(np.random.default_rng(n).normal(size=n) + 0.3, rounded)
    kept = d[d != 0]
    ranks = stats.rankdata(np.abs(kept))
    sums = np.array([np.dot(signs, ranks) for signs in product((0, 1), repeat=len(kept))])
    w = ranks[kept > 0].sum()
    assert signed_rank_p(d) == pytest.approx(min(1, 2 * min(np.mean(sums <= w), np.mean(sums >= w))))


@pytest.mark.parametrize("n", [12, 40, 200, 700])
def test_signed_ranks_are_those_of_scipy(n):
    d = np.random.default_rng(n).normal(size=n) + 0.1
    method = "exact" if n <= 200 else "approx"
    assert signed_rank_p(d) == pytest.approx(stats.wilcoxon(d, method=method).pvalue, rel=1e-9)


def test_no_differences_are_no_evidence():
    assert signed_rank_p(np.zeros(4)) == 1.0


def test_sums_over_cutoffs_are_tested_as_in_paper_one():
    rng = np.random.default_rng(3)
    relevance, offsets = rng.integers(0, 3, 240).astype(float), np.arange(0, 241, 12)
    cutoffs = [f"nDCG@{k}" for k in range(1, 11)]
    a, b = (evaluate(relevance, relevance + s * rng.normal(size=240), cutoffs, offsets=offsets) for s in (1, 2))
    found = compare(a, b, measure=cutoffs, test="wilcoxon")
    d = sum(a[one] - b[one] for one in cutoffs)
    assert found.p == found.p_wilcoxon == pytest.approx(stats.wilcoxon(d, method="exact").pvalue)
    assert found.difference == pytest.approx(d.mean())
    assert found.measure == " + ".join(cutoffs)
    assert "by Wilcoxon's signed ranks" in str(found)
    with pytest.raises(MeasureError, match="was not evaluated"):
        compare(a, b, measure=["nDCG@1", "AP"])
    with pytest.raises(DataError, match="name one or several"):
        compare(a, b, measure=[])


def test_the_bootstrap_is_paired_and_repeats_itself():
    rng = np.random.default_rng(0)
    b = rng.normal(size=60)
    a = b + 0.1 + 0.01 * rng.normal(size=60)
    found = compare(a, b, interval="bootstrap")
    assert found.interval[1] - found.interval[0] < 0.01  # the queries' own spread does not matter
    assert found.interval == pytest.approx(compare(a, b).interval, abs=1e-3)
    assert found == compare(a, b, interval="bootstrap")
    assert found.interval_method == "bootstrap"
    assert "interval by the bootstrap" in str(found)


@pytest.mark.parametrize("by", ["t", "bootstrap"])
def test_an_interval_of_a_mean_covers_it_as_often_as_it_says(by):
    rng = np.random.default_rng(1)
    covered = []
    for _ in range(300):
        low, high = interval_of(rng.exponential(size=50), by, 0.9, 500, 0)
        covered.append(low <= 1 <= high)
    assert 0.83 < np.mean(covered) < 0.95


@pytest.mark.parametrize(("option", "value"), [("test", "sign"), ("interval", "jackknife"), ("confidence", 1.0)])
def test_what_is_no_test_is_refused(option, value):
    with pytest.raises(OptionError):
        compare([1.0, 2.0], [2.0, 1.0], **{option: value})


@pytest.mark.parametrize("test", ["randomization", "t", "wilcoxon"])
def test_all_p_values_are_raised_together(test):
    runs = evaluations()
    found = compare_runs(runs, test=test)
    single = {
        (name, one): compare(runs[name], runs["a"], measure=one, test=test) for name in ("b", "c_2") for one in MEASURES
    }
    assert found.comparisons == single
    assert list(found.p_holm.values()) == holm([one.p for one in single.values()]).tolist()
    assert "raised by Holm for 6 tests" in str(found)
    assert len(str(found).splitlines()) == 1 + 9 + 1
    for name, run in runs.items():
        for one in MEASURES:
            assert found.intervals[name, one] == run.interval(one)


def test_runs_of_different_queries_are_tested_on_those_that_both_have():
    runs = evaluations(("a", "b"))
    part = runs["b"].for_queries(runs["b"].query_ids[5:])
    found = compare_runs({"a": runs["a"], "b": part}, "RR")
    assert found.comparisons["b", "RR"].queries == 25
    assert found.runs["a"].n_evaluated("RR") == 30
    assert found.runs["b"].mean("RR") == part.mean("RR")
    with pytest.raises(DataError, match="1 queries in common"):
        compare_runs({"a": runs["a"], "b": runs["b"].for_queries([3])})
    with pytest.raises(DataError, match="pass evaluations"):
        compare_runs({})


def test_one_test_is_one():
    assert "raised by Holm for 1 test\n" in str(compare_runs(evaluations(("a", "b")), "RR")) + "\n"


def test_one_run_has_means_and_nothing_to_compare():
    found = compare_runs(evaluations(("a",)))
    assert found.comparisons == {}
    assert "Holm" not in str(found)
    assert [row["p"] for row in found.rows()] == [None] * 3


def test_frames_hold_what_is_printed():
    pytest.importorskip("pandas")
    runs = evaluations()
    table = runs["a"].to_frame()
    assert list(table.columns) == MEASURES
    assert table["RR"].tolist() == runs["a"]["RR"].tolist()
    found = compare_runs(runs)
    frame = found.to_frame()
    assert frame.shape[0] == 9
    own = frame[(frame["run"] == "b") & (frame["measure"] == "RR")].iloc[0]
    assert own["p_holm"] == found.p_holm["b", "RR"]
    assert (
        compare(runs["a"], runs["b"], measure="RR").to_frame().loc[0, "wins"]
        == compare(runs["a"], runs["b"], measure="RR").wins
    )


def test_latex_is_a_table_that_says_how_it_was_made():
    runs = evaluations()
    text = compare_runs(runs).to_latex(digits=3)
    lines = text.splitlines()
    assert lines[0].startswith("% convention default; 95% intervals by Student's t")
    assert lines[1] == r"\begin{tabular}{lrrr}"
    assert lines[3] == r"run & nDCG@3 & RR & Success@1 \\"
    assert lines[7].startswith(r"c\_2 & ")
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    for number, measure in enumerate(MEASURES, 1):
        cells = {name: lines[5 + row].rstrip("\\ ").split(" & ")[number] for row, name in enumerate(runs)}
        best = max(runs, key=lambda name: runs[name].mean(measure))
        assert cells[best].startswith(rf"\textbf{{{runs[best].mean(measure):.3f}}}")
        for name in ("b", "c_2"):
            assert (r"$^\dagger$" in cells[name]) == (compare_runs(runs).p_holm[name, measure] < 0.05)
    for one in (runs["a"].to_latex(), compare(runs["a"], runs["b"], measure="RR").to_latex()):
        assert one.count("{") == one.count("}")
        widths = {line.count("&") for line in one.splitlines() if line.endswith(r"\\")}
        assert len(widths) == 1


def test_letters_that_latex_reads_as_commands_are_written_out():
    assert latex_text("a_b & 5% #1 $x$ {y} ~ ^ \\z") == (
        r"a\_b \& 5\% \#1 \$x\$ \{y\} \textasciitilde{} \textasciicircum{} \textbackslash{}z"
    )


def test_plots_show_means_and_differences():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    runs = evaluations()
    assert [text.get_text() for text in runs["a"].plot().get_yticklabels()] == MEASURES
    assert len(compare_runs(runs).plot().get_legend().get_texts()) == 3
    found = compare(runs["a"], runs["b"], measure="nDCG@3")
    heights = [bar.get_height() for bar in found.plot().patches[: found.queries]]
    assert heights == sorted(found.differences.tolist(), reverse=True)
    plt.close("all")
