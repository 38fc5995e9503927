"""`rankopt swap`: a table, rows, a report, a baseline; problems in files; `rankopt trace inspect`."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from formulations import LinearProgram, QuadraticProgram, RankingSet, constrained_ranking
from formulations.problems.program import write
from rankopt.cli import rankopt
from rankopt.data import load_sample, write_svmlight
from rankopt.errors import UnreadableModelWarning
from rankopt.experiments import Outcome, ProblemTrace, read_rows
from rankopt.experiments.rows import written


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
    common = [data, "--argmax-solvers", "exact,planted.solvers:HONEST", "--master-solvers", "none", "--methods", "none",
              "--lam", "1", "--measure", "nDCG@3", "--problems", "3", "--repeats", "1", "--output", rows]  # fmt: skip
    done = run(*common, "--no-train", "--report", report)
    assert done.exit_code == 0, done.output
    assert [line.split()[:2] for line in done.stdout.splitlines()[2:4]] == [["exact", "3/3"], ["own:honest", "3/3"]]
    assert "own:honest" in report.read_text()
    assert (
        "--argmax-solvers exact,planted.solvers:HONEST --master-solvers none" in report.read_text()
    )  # the command, at the foot
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
    done = run(
        data,
        "--argmax-solvers",
        "planted.solvers:LiarInBatches",
        "--master-solvers",
        "none",
        "--no-train",
        "--problems",
        "1",
    )
    assert done.exit_code == 1, done.output
    assert "wrong" in done.output


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
        ("", ["--master-solvers", "cvxpy:CLARABEL"], "which --master-solvers is for; use --argmax-solvers: highs"),
        ("", ["--argmax-solvers", "none"], "excludes all solvers; name solvers: highs"),
        (
            " + [ x ^ 2 ] / 2",
            ["--argmax-solvers", "highs"],
            "which --argmax-solvers is for; use --master-solvers: cvxpy:CLARABEL",
        ),
        (" + [ x ^ 2 ] / 2", ["--master-solvers", "none"], "excludes all solvers; name solvers: cvxpy:CLARABEL"),
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
    from formulations import GroupedSimplexQP, compatible_solvers
    from rankopt.commands.swap import _choose

    assert _choose("all", (), lambda: compatible_solvers(GroupedSimplexQP)) == tuple(
        compatible_solvers(GroupedSimplexQP)
    )
    assert _choose(None, ("a", "b"), list) == ("a", "b")
    assert _choose("none", ("a",), list) == ()
    assert _choose("x, y", (), list) == ("x", "y")


def test_resuming_needs_a_file(data):
    assert run(data, "--resume").exit_code == 2


def called_with(*arguments):
    return CliRunner().invoke(rankopt, [*map(str, arguments)])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("problems")
    rng = np.random.default_rng(0)
    problem = constrained_ranking(rng.normal(size=(3, 8)), RankingSet(8, 3).at_most(1, by=[0, 0, 1, 1, 2, 2, 3, 3]))
    write(problem.program, here / "set.mps")
    write(LinearProgram([1.0, 2.0], [[1.0, 1.0]], [0.0], [1.0], [0.0] * 2, [1.0] * 2).program, here / "small.lp")
    square = QuadraticProgram(np.eye(2), [-1.0, 0.5], [[1.0, 1.0]], [1.0], [np.inf], [0.0] * 2, [1.0] * 2)
    write(square.program, here / "square.lp")
    done = called_with(
        "swap", here / "set.mps", "--argmax-solvers", "highs", "--repeats", 3, "--output", here / "rows.jsonl"
    )
    assert done.exit_code == 0, done.output
    return here


@pytest.mark.study
def test_a_problem_in_a_file_is_swapped_without_learning(folder):
    assert [(row.problem, row.solver) for row in read_rows(folder / "rows.jsonl")] == [("set.mps", "highs")]
    both = called_with(
        "swap", folder / "small.lp", "--argmax-solvers", "highs,highs(presolve='off', method='ipm')", "--json"
    )
    assert both.exit_code == 0, both.output
    assert [line["solver"] for line in json.loads(both.stdout)["summary"]] == [
        "highs", "highs(method='ipm', presolve='off')",
    ]  # fmt: skip
    assert called_with("swap", folder / "small.lp", "--methods", "bundle").exit_code == 2


@pytest.mark.study
def test_the_table_names_other_solvers_and_why_one_does_not_support_a_problem(folder):
    usual = called_with("swap", folder / "small.lp", "--repeats", 1)
    assert usual.exit_code == 0, usual.output
    (line,) = [line for line in usual.stdout.splitlines() if line.startswith("other compatible solvers: ")]
    assert "cvxpy:SCIPY" in line
    assert "--argmax-solvers all" in line
    named = called_with("swap", folder / "small.lp", "--argmax-solvers", "highs", "--repeats", 1)
    assert "other compatible" not in named.stdout
    refused = called_with("swap", folder / "small.lp", "--argmax-solvers", "scipy", "--repeats", 1)
    assert "scipy, small.lp, unsupported: 'scipy' accepts Assignment" in refused.stdout
    assert "other compatible solvers: highs, " in refused.stdout


@pytest.mark.study
def test_all_solvers_are_those_that_support_a_problem_and_the_others_are_named(tmp_path):
    chosen = LinearProgram([3.0, 2.0], [[2.0, 1.0]], [0.0], [2.5], [0.0] * 2, [1.0] * 2, integer=[True, True])
    write(chosen.program, tmp_path / "chosen.lp")
    found = called_with("swap", tmp_path / "chosen.lp", "--argmax-solvers", "all", "--repeats", 1)
    assert found.exit_code == 0, found.output
    assert "cp_sat" in found.stdout
    (line,) = [line for line in found.stdout.splitlines() if line.startswith("left out, because they support none")]
    assert "cvxpy:CLARABEL" in line
    assert "unsupported" not in found.stdout


@pytest.mark.study
def test_problems_in_several_files_are_swapped_together(folder, tmp_path):
    """Of one name in two folders the second has its number; statements and traces stand beside programs."""
    (tmp_path / "small.lp").write_bytes((folder / "small.lp").read_bytes())
    text = "documents = 3\npositions = 2\nweights = [2, 1]\nscores = [3, 2, 1]\n"
    (tmp_path / "first.toml").write_text(text, encoding="utf-8")
    trace = next((folder / "rows.traces").glob("*.npz"))
    files = [folder / "small.lp", tmp_path / "small.lp", tmp_path / "first.toml", trace]
    rows = tmp_path / "rows.jsonl"
    done = called_with(
        "swap", *files, "--argmax-solvers", "highs,highs(presolve='off')", "--repeats", 1, "--output", rows
    )
    assert done.exit_code == 0, done.output
    named = ["small.lp", "small.lp 001", "first.toml"]
    found = read_rows(rows)
    assert [row.problem for row in found] == [*named, *named, "set.mps", "set.mps"]
    assert {row.status.name for row in found} == {"SOLVED"}
    assert {row.trace for row in found if row.problem == "set.mps"} == {ProblemTrace.load(trace).name}


@pytest.mark.study
def test_of_several_files_each_part_takes_its_own(folder):
    solvers = ("--argmax-solvers", "highs", "--master-solvers", "qpsolvers:piqp")
    done = called_with("swap", folder / "small.lp", folder / "square.lp", *solvers, "--repeats", 1, "--json")
    assert done.exit_code == 0, done.output
    assert {line["solver"]: line["solved"] for line in json.loads(done.stdout)["summary"]} == {
        "highs": 1, "qpsolvers:piqp": 1,
    }  # fmt: skip
    fit = called_with("swap", folder / "small.lp", folder / "set.mps", "--master-solvers", "qpsolvers:piqp")
    assert fit.exit_code == 2
    assert "set.mps have no quadratic programs, which --master-solvers is for" in " ".join(fit.output.split())


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("small.lp", "rows.jsonl"),
            "rows.jsonl is one of 2 files and not a problem; give files that end with one of .mps",
        ),
        (("rows.jsonl", "rows.jsonl"), "or queries alone, in one file"),
        (("small.lp", "nowhere.mps"), "'nowhere.mps' does not exist"),
    ],
)
def test_several_files_are_of_problems(folder, monkeypatch, words, said):
    monkeypatch.chdir(folder)
    done = called_with("swap", *words)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


@pytest.mark.study
@pytest.mark.parametrize(
    "named", [("--master-solvers", "qpsolvers:piqp"), pytest.param((), marks=pytest.mark.study)], ids=["piqp", "usual"]
)
def test_a_quadratic_program_in_a_file_is_swapped(folder, named):
    square = called_with("swap", folder / "square.lp", "--json", *named)
    assert square.exit_code == 0, square.output
    assert "qpsolvers:piqp" in [line["solver"] for line in json.loads(square.stdout)["summary"]]


@pytest.mark.study
def test_what_changed_is_printed(folder, tmp_path):
    output = tmp_path / "now.jsonl"
    words = ("--argmax-solvers", "highs,highs(presolve='off')", "--repeats", 3, "--output", output)
    done = called_with("swap", "--baseline", folder / "rows.jsonl", *words)
    assert done.exit_code == 0, done.output
    assert "now / before" in done.stdout
    assert "highs(presolve='off')" in done.stdout
    said = called_with("swap", "--baseline", output, "--repeats", 1, "--json")  # the traces are stored next to it
    assert said.exit_code == 0, said.output
    assert sum(line["problems"] for line in json.loads(said.stdout)["changes"]) == 2


@pytest.mark.study
def test_a_wrong_answer_is_named_and_is_exit_code_1(folder, tmp_path):
    rows = read_rows(folder / "rows.jsonl")
    higher = [row.__class__(**{**vars(row), "value": row.value + 1, "bound": row.bound + 1}) for row in rows]
    (tmp_path / "rows.jsonl").write_text(written(higher), encoding="utf-8")
    (tmp_path / "rows.traces").symlink_to(folder / "rows.traces")
    done = called_with("swap", "--baseline", tmp_path / "rows.jsonl", "--repeats", 1)
    assert done.exit_code == 1, done.output
    assert "wrong: highs, set.mps:" in done.stdout


@pytest.mark.parametrize("words", [["set.mps"], ["--test", "small.lp"], ["--methods", "bundle"]])
def test_an_earlier_run_stands_alone(folder, monkeypatch, words):
    monkeypatch.chdir(folder)
    done = called_with("swap", "--baseline", "rows.jsonl", *words)
    assert done.exit_code == 2
    assert "leave DATA" in done.output


def test_a_trace_is_looked_into(folder, tmp_path):
    path = next((folder / "rows.traces").glob("*.npz"))
    done = called_with("trace", "inspect", path)
    assert done.exit_code == 0, done.output
    assert "set.mps  LinearProgram" in done.stdout
    assert json.loads(called_with("trace", "inspect", path, "--json").stdout)["trace"] == ProblemTrace.load(path).name
    assert called_with("trace", "inspect", path, "--solve").exit_code == 0
    trace = ProblemTrace.load(path)
    for known, word in ((9.0, "is not attained"), (-9.0, "is no bound")):
        replace(trace, problems=(replace(trace.problems[0], known=(known, known)),)).save(tmp_path / "lie.npz")
        lie = called_with("trace", "inspect", tmp_path / "lie.npz", "--solve")
        assert lie.exit_code == 1
        assert word in lie.stdout


def test_a_folder_of_models_has_a_limit_for_each_of_them(tmp_path):
    """An instance that reaches the limit costs its row and not the time of the others."""
    models = tmp_path / "models"
    models.mkdir()
    rng = np.random.default_rng(0)
    for name, size in (("a-hard", 100), ("b-easy", 12), ("c-easy", 12)):
        weight = rng.integers(1, 100, (5, size)).astype(float)
        profit = weight.mean(axis=0) + rng.integers(0, 30, size)
        limits = np.full(5, -np.inf), weight.sum(axis=1) // 2, np.zeros(size), np.ones(size)
        LinearProgram(profit, weight, *limits, integer=np.ones(size, dtype=bool)).write(models / f"{name}.mps")
    (models / "notes.txt").write_text("not a model")
    (models / "broken.mps").write_text("garbage")
    rows, table = tmp_path / "rows.jsonl", tmp_path / "rows.csv"
    with pytest.warns(UnreadableModelWarning, match=r"broken\.mps is left out: .*line 1"):
        done = run(models, "--argmax-solvers", "highs", "--time-limit", "1", "--repeats", "1", "--output", rows,
                   "--csv", table)  # fmt: skip
    assert done.exit_code == 0, done.output
    found = {row.problem: row for row in read_rows(rows)}
    assert [*found] == ["a-hard.mps", "b-easy.mps", "c-easy.mps"]
    assert found["a-hard.mps"].verdict == "time limit"
    assert found["a-hard.mps"].value <= found["a-hard.mps"].bound
    assert {found[name].verdict for name in ("b-easy.mps", "c-easy.mps")} == {"optimal (claimed)"}
    head, *lines = table.read_text().splitlines()
    assert head.startswith("problem,shape_text,solver")
    assert len(lines) == 3
    assert "with checks" in done.stdout
