"""The page of rows: every solver and outcome is on it, what is left out is said, and hostile rows change nothing."""

import re
from dataclasses import replace
from functools import cache
from html import unescape

import pytest
from browser import NAMES, Browser, installed
from click.testing import CliRunner
from problems.swap_rows import sample_rows

from rankopt.cli import rankopt
from rankopt.commands.swap import summary
from rankopt.experiments.rows import BenchmarkRow, Outcome
from rankopt.report import write
from rankopt.report.swap_page import MOST_LINES, page_of_swap

ROWS = sample_rows()


@cache
def the_page():
    return page_of_swap(ROWS, "rankopt swap data.txt")


def text(page):
    """The words of a page outside its figures, style and script."""
    bare = re.sub(r"<(svg|style|script).*?</\1>", " ", page, flags=re.DOTALL)
    return unescape(re.sub("<[^>]*>", " ", bare))


def cells(page, caption):
    """The body of the table under a caption, row by row."""
    body = page[page.index(caption) :].split("<tbody>")[1].split("</tbody>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", body, flags=re.DOTALL)
    return [[unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows]


@pytest.mark.study
def test_every_solver_trace_and_outcome_is_on_the_page():
    words = text(the_page())
    for row in ROWS:
        assert row.solver in words or row.kind == "integrality"
        assert row.trace in words
    for outcome in {row.status for row in ROWS} - {Outcome.SOLVED}:
        assert outcome.words in words
    assert "rankopt swap data.txt" in words


@pytest.mark.study
def test_solved_problems_are_counted():
    solved = {row[0]: row[2] for row in cells(the_page(), "Trace argmax")}
    for solver in solved:
        own = [row for row in ROWS if row.kind == "argmax" and row.solver == solver]
        assert solved[solver] == f"{sum(row.status is Outcome.SOLVED for row in own)} of 12"


def test_the_fastest_solver_stands_first_and_untried_ones_last():
    order = [row[0] for row in cells(the_page(), "Trace argmax")]
    assert order[0] == "exact"
    assert order[-1] == "cvxpy:MOSEK"


def test_a_solver_that_solved_nothing_has_no_time():
    seconds = {row[0]: row[4] for row in cells(the_page(), "Trace argmax")}
    assert seconds["cvxpy:MOSEK"] == seconds["own:faulty"] == "-"
    assert "-" not in (seconds["exact"], seconds["scipy"])
    lines = {line["solver"]: line for line in summary([row for row in ROWS if row.kind == "argmax"])}
    assert lines["cvxpy:MOSEK"]["seconds"] is None
    assert lines["own:faulty"]["seconds"] is None
    assert lines["exact"]["seconds"] > 0


def test_what_went_wrong_is_listed_with_what_the_solver_said():
    listed = cells(the_page(), "Tried and not solved")
    wrong = [row for row in ROWS if row.kind == "argmax" and row.message == "planted"]
    assert [(row[0], row[2], row[5]) for row in listed] == [(row.problem, row.solver, row.message) for row in wrong]


def test_a_long_table_says_what_it_leaves_out():
    one = next(row for row in ROWS if row.status is Outcome.CRASHED)
    many = [replace(one, problem=f"q{i}") for i in range(MOST_LINES + 5)]
    page = page_of_swap(many)
    assert f"the first {MOST_LINES} of {MOST_LINES + 5}" in text(page)
    assert len(cells(page, "Tried and not solved")) == MOST_LINES


@pytest.mark.study
def test_rows_of_one_kind_and_no_rows_make_pages():
    for kind in ("argmax", "master", "training", "integrality"):
        headings = re.findall("<h2>(.*?)</h2>", page_of_swap([row for row in ROWS if row.kind == kind]))
        assert len(headings) == 2
    assert re.findall("<h2>(.*?)</h2>", page_of_swap([])) == ["What was run"]


def test_rows_that_know_little_make_pages():
    bare = [
        BenchmarkRow(kind="argmax", solver="s", status=Outcome.CRASHED),
        BenchmarkRow(kind="training", solver="s", status=Outcome.TIMED_OUT, role="argmax"),
        BenchmarkRow(kind="training", solver="t", status=Outcome.SOLVED, role="argmax", history={
            "step": [1, 2], "round": [0, 0], "seconds": [0.0, 0.0], "primal": [None, 0.0], "bound": [None, 0.0]}),
        BenchmarkRow(kind="integrality", solver="verify_integrality", status=Outcome.UNDECIDED),
    ]  # fmt: skip
    assert "killed at the time limit" in text(page_of_swap(bare))


@pytest.mark.study
def test_hostile_rows_are_escaped():
    evil = "</script><script>alert(1)</script>"
    hostile = [
        replace(row, solver=evil + row.solver, problem=evil, message=evil, trace=evil, shape_text=evil) for row in ROWS
    ]
    assert "<script>alert" not in page_of_swap(hostile, evil)


def test_verify_writes_its_evidence(tmp_path):
    file, page = tmp_path / "set.toml", tmp_path / "new" / "set.html"
    file.write_text(
        "documents = 6\npositions = 3\nweights = [1, 0.9, 0.8]\nscores = [3, 3, 3, 0, 0, 0]\n[attributes]\n"
        'topic = [["a", "<b>"], ["<b>", "c"], ["c", "a"], [], [], []]\n[[constraint]]\nat_most = 1\nby = "topic"\n'
    )
    done = CliRunner().invoke(rankopt, ["verify", str(file), "--report", str(page)])
    assert done.exit_code == 1, done.output
    written = page.read_text()
    assert "Refuted" in written
    submatrix = cells(written, "The witness: determinant")
    assert len(submatrix) == 3
    assert sum(cell == "1" for row in submatrix for cell in row) == 6
    assert {row[0]: row[1] for row in cells(written, "with and without integers")} == {"real": "4.35", "integer": "3"}
    assert "topic['<b>']" in text(written)


@pytest.mark.study
@pytest.mark.skipif(installed() is None, reason=f"no browser: none of {', '.join(NAMES)} is installed")
@pytest.mark.parametrize("width", [400, 1400])
def test_the_page_opens_and_sorts_in_a_browser(tmp_path, width):
    page = write(ROWS, tmp_path / "report.html", "rankopt swap").read_text(encoding="utf-8")
    script = (
        "const table = document.querySelectorAll('table')[2], button = table.querySelectorAll('button')[4];"
        "const seconds = () => Array.from(table.tBodies[0].rows, (row) => row.cells[0].textContent);"
        "button.click(); button.click();"
        "return [seconds(), document.documentElement.scrollWidth, document.querySelectorAll('svg').length];"
    )
    (order, scroll, drawn), console = Browser(tmp_path).ask(page, script, width=width)
    assert console == []
    assert order == ["cvxpy:CLARABEL", "scipy", "exact", "own:faulty", "cvxpy:MOSEK"]
    assert scroll <= width
    assert drawn >= 10
