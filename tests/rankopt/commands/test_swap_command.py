"""`rankopt swap`: a table, rows, a report; refuted answers are an exit code."""

import json

import pytest
from click.testing import CliRunner

from rankopt.cli import rankopt
from rankopt.data import load_sample, write_svmlight
from rankopt.experiments import Outcome, read_rows


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "few.txt"
    write_svmlight(load_sample("les-miserables").train.select(range(4)), path)
    return str(path)


def run(*arguments):
    return CliRunner().invoke(rankopt, ["swap", *map(str, arguments)])


@pytest.mark.study
def test_it_prints_a_table_writes_rows_and_a_report_and_goes_on(data, tmp_path):
    rows, report = tmp_path / "rows.jsonl", tmp_path / "report.html"
    common = [data, "--argmax", "exact,planted.solvers:HONEST", "--master", "none", "--method", "none", "--lam", "1",
              "--measure", "nDCG@3", "--problems", "3", "--repeats", "1", "--output", rows]  # fmt: skip
    done = run(*common, "--no-live", "--report", report)
    assert done.exit_code == 0, done.output
    assert [line.split()[:2] for line in done.stdout.splitlines()[2:4]] == [["exact", "3/3"], ["own:honest", "3/3"]]
    assert "own:honest" in report.read_text()
    assert "--argmax exact,planted.solvers:HONEST --master none" in report.read_text()  # the command, at the foot
    assert [row.status for row in read_rows(rows)] == [Outcome.SOLVED] * 6
    again = run(*common)
    assert again.exit_code == 2
    assert "add --resume" in again.output
    more = run(*common, "--resume", "--test", data, "--time-limit", "20", "--json")
    assert more.exit_code == 0, more.output
    said = json.loads(more.output)
    assert said["rows"] == 8
    live = [line for line in said["summary"] if line["role"] == "argmax"]
    assert [line["solver"] for line in live] == ["exact", "own:honest"]
    assert list(live[0]["measures"]) == [f"nDCG@{k}" for k in range(1, 11)]


@pytest.mark.study
def test_a_refuted_answer_is_exit_code_1(data):
    done = run(data, "--argmax", "planted.solvers:LiarInBatches", "--master", "none", "--no-live", "--problems", "1")
    assert done.exit_code == 1, done.output
    assert "WRONG" in done.output


@pytest.mark.parametrize(
    "words", [["--memory-limit", "nan"], ["--memory-limit", "inf"], ["--time-limit", "-1"], ["--problems", "0"],
              ["--repeats", "-3"], ["--resume"]], ids=" ".join
)  # fmt: skip
def test_numbers_that_are_no_limits_are_usage_errors(words):
    done = run(*words)
    assert done.exit_code == 2
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("squares", "words", "cure"),
    [
        ("", ["--master", "cvxpy:CLARABEL"], "which --master is for; use --argmax: highs"),
        ("", ["--argmax", "none"], "nothing to swap; name solvers: highs"),
        (" + [ x ^ 2 ] / 2", ["--argmax", "highs"], "which --argmax is for; use --master: cvxpy:CLARABEL"),
        (" + [ x ^ 2 ] / 2", ["--master", "none"], "nothing to swap; name solvers: cvxpy:CLARABEL"),
    ],
)
def test_solvers_of_a_part_that_a_problem_lacks_are_a_usage_error(squares, words, cure, tmp_path):
    pytest.importorskip("highspy")
    pytest.importorskip("cvxpy")
    path = tmp_path / "a.lp"
    path.write_text(f"minimize\n x{squares}\nst\n a: x >= 1\nend\n")
    result = run(path, *words)
    assert result.exit_code == 2
    assert cure in " ".join(result.output.split())


def test_all_is_what_is_installed():
    from formulations import GroupedSimplexQP, accepting
    from rankopt.commands.swap import _chosen

    assert _chosen("all", (), lambda: accepting(GroupedSimplexQP)) == tuple(accepting(GroupedSimplexQP))
    assert _chosen(None, ("a", "b"), list) == ("a", "b")
    assert _chosen("none", ("a",), list) == ()
    assert _chosen("x, y", (), list) == ("x", "y")


def test_resuming_needs_a_file(data):
    assert run(data, "--resume").exit_code == 2
