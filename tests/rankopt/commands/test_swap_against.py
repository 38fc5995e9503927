"""`rankopt swap --against`, problems in files, and `rankopt tape inspect`."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from formulations import LinearProgram, QuadraticProgram, RankingSet, constrained_ranking
from formulations.problems.program import write
from rankopt.cli import rankopt
from rankopt.experiments import Tape, read_rows
from rankopt.experiments.regression import changes
from rankopt.experiments.rows import written
from rankopt.report.changes_page import page_of_changes


def run(*arguments):
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
    done = run("swap", here / "set.mps", "--argmax", "highs", "--repeats", 3, "--output", here / "rows.jsonl")
    assert done.exit_code == 0, done.output
    return here


@pytest.mark.study
def test_a_problem_in_a_file_is_swapped_without_learning(folder):
    assert [(row.problem, row.solver) for row in read_rows(folder / "rows.jsonl")] == [("set.mps", "highs")]
    both = run("swap", folder / "small.lp", "--argmax", "highs,highs(presolve='off', method='ipm')", "--json")
    assert both.exit_code == 0, both.output
    assert [line["solver"] for line in json.loads(both.stdout)["summary"]] == [
        "highs", "highs(method='ipm', presolve='off')",
    ]  # fmt: skip
    assert run("swap", folder / "small.lp", "--method", "bundle").exit_code == 2


@pytest.mark.study
def test_problems_in_several_files_are_swapped_together(folder, tmp_path):
    """Of one name in two folders the second has its number; statements and tapes stand beside programs."""
    (tmp_path / "small.lp").write_bytes((folder / "small.lp").read_bytes())
    text = "documents = 3\npositions = 2\nweights = [2, 1]\nscores = [3, 2, 1]\n"
    (tmp_path / "first.toml").write_text(text, encoding="utf-8")
    tape = next((folder / "rows.tapes").glob("*.npz"))
    files = [folder / "small.lp", tmp_path / "small.lp", tmp_path / "first.toml", tape]
    rows = tmp_path / "rows.jsonl"
    done = run("swap", *files, "--argmax", "highs,highs(presolve='off')", "--repeats", 1, "--output", rows)
    assert done.exit_code == 0, done.output
    named = ["small.lp", "small.lp 001", "first.toml"]
    found = read_rows(rows)
    assert [row.problem for row in found] == [*named, *named, "set.mps", "set.mps"]
    assert {row.status.name for row in found} == {"SOLVED"}
    assert {row.tape for row in found if row.problem == "set.mps"} == {Tape.load(tape).name}


@pytest.mark.study
def test_of_several_files_each_part_takes_its_own(folder):
    done = run("swap", folder / "small.lp", folder / "square.lp", "--argmax", "highs", "--master", "qpsolvers:piqp",
               "--repeats", 1, "--json")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert {line["solver"]: line["solved"] for line in json.loads(done.stdout)["summary"]} == {
        "highs": 1, "qpsolvers:piqp": 1,
    }  # fmt: skip
    fit = run("swap", folder / "small.lp", folder / "set.mps", "--master", "qpsolvers:piqp")
    assert fit.exit_code == 2
    assert "set.mps have no quadratic programs, which --master is for" in " ".join(fit.output.split())


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("small.lp", "rows.jsonl"),
            "rows.jsonl is one of 2 files and no problem; give files that end with one of .mps",
        ),
        (("rows.jsonl", "rows.jsonl"), "or queries alone, in one file"),
        (("--ratings", "small.lp", "set.mps"), "--ratings reads one file"),
        (("small.lp", "nowhere.mps"), "'nowhere.mps' does not exist"),
    ],
)
def test_several_files_are_of_problems(folder, monkeypatch, words, said):
    monkeypatch.chdir(folder)
    done = run("swap", *words)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


@pytest.mark.study
@pytest.mark.parametrize(
    "named", [("--master", "qpsolvers:piqp"), pytest.param((), marks=pytest.mark.study)], ids=["piqp", "usual"]
)
def test_a_quadratic_program_in_a_file_is_swapped(folder, named):
    square = run("swap", folder / "square.lp", "--json", *named)
    assert square.exit_code == 0, square.output
    assert "qpsolvers:piqp" in [line["solver"] for line in json.loads(square.stdout)["summary"]]


@pytest.mark.study
def test_what_changed_is_printed_and_drawn(folder, tmp_path):
    report, output = tmp_path / "page.html", tmp_path / "now.jsonl"
    done = run("swap", "--against", folder / "rows.jsonl", "--argmax", "highs,highs(presolve='off')", "--repeats", 3,
               "--output", output, "--report", report)  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "now / before" in done.stdout
    assert "highs(presolve='off')" in done.stdout
    page = report.read_text(encoding="utf-8")
    assert "What changed" in page
    assert "highs(presolve=&#x27;off&#x27;)" in page
    said = run("swap", "--against", output, "--repeats", 1, "--json")
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["problems"] == 2


@pytest.mark.study
def test_a_wrong_answer_is_named_on_page_and_terminal_and_is_exit_code_1(folder, tmp_path):
    rows = read_rows(folder / "rows.jsonl")
    higher = [row.__class__(**{**vars(row), "value": row.value + 1, "bound": row.bound + 1}) for row in rows]
    (tmp_path / "rows.jsonl").write_text(written(higher), encoding="utf-8")
    (tmp_path / "rows.tapes").symlink_to(folder / "rows.tapes")
    done = run("swap", "--against", tmp_path / "rows.jsonl", "--repeats", 1)
    assert done.exit_code == 1, done.output
    assert "wrong: highs, set.mps:" in done.stdout
    page = page_of_changes(changes(higher, rows), 1.1)
    assert "do not change to it as it is: 1 wrong of 1 problems" in page


@pytest.mark.parametrize("words", [["set.mps"], ["--test", "small.lp"], ["--method", "bundle"], ["--ratings"]])
def test_an_earlier_run_stands_alone(folder, monkeypatch, words):
    monkeypatch.chdir(folder)
    done = run("swap", "--against", "rows.jsonl", *words)
    assert done.exit_code == 2
    assert "leave DATA" in done.output


def test_a_tape_is_looked_into(folder, tmp_path):
    path = next((folder / "rows.tapes").glob("*.npz"))
    done = run("tape", "inspect", path)
    assert done.exit_code == 0, done.output
    assert "set.mps  LinearProgram" in done.stdout
    assert json.loads(run("tape", "inspect", path, "--json").stdout)["tape"] == Tape.load(path).name
    assert run("tape", "inspect", path, "--solve").exit_code == 0
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    for known, word in (([[9.0, 9.0]], "is not attained"), ([[-9.0, -9.0]], "is no bound")):
        np.savez(tmp_path / "lie.npz", **{**parts, "known": np.array(known)})
        lie = run("tape", "inspect", tmp_path / "lie.npz", "--solve")
        assert lie.exit_code == 1
        assert word in lie.stdout
