"""The first sentences of report pages say what the numbers below them say."""

import re
from dataclasses import replace
from html import unescape

import pytest
from click.testing import CliRunner
from problems.swap_rows import sample_rows

from rankopt.cli import rankopt
from rankopt.experiments.rows import Outcome
from rankopt.rankers import CofiRanker
from rankopt.ratings import ItemMeanBaseline, PopularityBaseline, evaluate_ratings, load_ratings_sample, weak_split
from rankopt.report.cofi_page import page_of_cofi
from rankopt.report.page import environment
from rankopt.report.swap_page import page_of_swap, swap_finding

ROWS = sample_rows()


def finding(text):
    """What stands first on a page, right under its title."""
    return unescape(re.search(r'<header><h1>[^<]*</h1><p class="finding">(.*?)</p>', text)[1])


def of(kind, **changes):
    return [replace(row, **changes) for row in ROWS if row.kind == kind]


def test_a_finding_stands_first_and_is_escaped():
    base = environment().get_template("base.html")
    text = base.render(finding="a < b", made_by="")
    assert '<header><h1></h1><p class="finding">a &lt; b</p><p></p></header>' in text
    assert 'class="finding"' not in base.render(finding="", made_by="")


@pytest.mark.study
def test_the_quickest_that_solved_all_is_to_be_used_and_the_refuted_is_not():
    told = swap_finding(ROWS)
    assert finding(page_of_swap(ROWS)) == told
    assert "For ranking use exact: of 5 solvers 2 solved all 12 problems" in told
    assert "Do not use own:faulty: 3 answers were refuted." in told
    alone = [row for row in of("argmax") if row.solver == "exact"]
    assert "of 1 solvers it alone solved all 12 problems." in swap_finding(alone)
    none = [replace(row, status=Outcome.TIMED_OUT) for row in alone[:1]] + alone[1:]
    assert "no solver solved all 12 problems; exact solved most, 11." in swap_finding(none)
    assert swap_finding([]) == ""


def test_runs_that_end_further_apart_than_their_gaps_are_told():
    runs = of("training")
    assert "all within it of the best" in swap_finding(runs)
    lower = min(row.bound for row in runs) - 1.0
    apart = [replace(runs[0], value=lower, bound=lower), *runs[1:]]
    assert "further from the best than its gap" in swap_finding(apart)


def test_statements_are_counted():
    assert "3 are proved integral, 3 refuted, 3 open" in swap_finding(of("integrality"))
    assert "any solver of linear programs gives rankings" in swap_finding(of("integrality", status=Outcome.PROVED))


@pytest.mark.parametrize(
    ("limit", "told"),
    [
        (
            'at_most = 1\nby = "topic"\n',
            ["Refuted: the matrix is not totally unimodular", "This optimum is", "'cp_sat'"],
        ),
        ("at_most = 1\ndocuments = [0, 1]\n", ["Proved: every vertex of the linear program is a ranking"]),
    ],
)
def test_verify_says_what_to_do(tmp_path, limit, told):
    file, written = tmp_path / "set.toml", tmp_path / "set.html"
    file.write_text(
        "documents = 6\npositions = 3\nweights = [1, 0.9, 0.8]\nscores = [3, 3, 3, 0, 0, 0]\n[attributes]\n"
        f'topic = [["a", "b"], ["b", "c"], ["c", "a"], [], [], []]\n[[constraint]]\n{limit}'
    )
    CliRunner().invoke(rankopt, ["verify", str(file), "--report", str(written)])
    first = finding(written.read_text())
    for part in told:
        assert part in first


def test_ratings_without_a_test_are_told_how_far_training_came_and_how_to_judge():
    ranker = CofiRanker(reg=0.7).fit(load_ratings_sample())
    first = finding(page_of_cofi(ranker, [], None, "genre", "sample"))
    gap = max(ranker.certificate_.users_gap, ranker.certificate_.items_gap)
    assert f"both blocks' proven gaps were {100 * gap:.2g}% or less" in first
    assert "give --hold-out 10, or --test FILE" in first


def test_who_leads_on_test_ratings_is_to_be_used_there():
    split = weak_split(load_ratings_sample(), 10)
    ranker = CofiRanker(reg=0.7).fit(split.train)
    made = {
        "cofi": ranker,
        "means": ItemMeanBaseline().fit(split.train),
        "popularity": PopularityBaseline().fit(split.train),
    }
    judged = {
        who: [evaluate_ratings(split, one, candidates=among) for among in ("rated", "all")] for who, one in made.items()
    }
    ahead = [max(judged, key=lambda who: judged[who][column].mean) for column in (0, 1)]
    first = finding(page_of_cofi(ranker, list(judged.items()), None, "genre", "sample"))
    told = f"To order items that a user has chosen use: {ahead[0]}. To recommend among all use: {ahead[1]}."
    assert first.endswith(f"Use {ahead[0]}." if ahead[0] == ahead[1] else told)
    alone = finding(page_of_cofi(ranker, [("cofi", judged["cofi"])], None, "genre", "sample"))
    assert alone.endswith("Use cofi.")
