"""Every suite of benchmarks/ registers its cases, its cheapest case runs, and every documented command exists."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CHEAPEST = {
    "accuracy": "few_queries", "argmax": "generated", "training": "step", "criteria": "smooth",
    "direct": "line_search", "trees": "rounds", "clicks": "policies", "ratings": "growth", "sets": "prefixes",
    "exposure": "held_out", "decisions": "regret", "solvers": "overhead", "faults": "statements",
}  # fmt: skip
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").glob("*.md")]
COMMAND = re.compile(r"python -m\s+benchmarks (\w+)(?: (\w+))?")


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line in this process; its exit status and output."""
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.delenv("RANKOPT_DATA", raising=False)
    from benchmarks.__main__ import main

    def call(*arguments):
        return main(list(arguments)), capsys.readouterr().out

    return call


def cases():
    """Names of the decorated functions by suite, read from the sources."""
    found = {}
    for path in (ROOT / "benchmarks").glob("*.py"):
        functions = [
            node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)
        ]
        names = [one.name for one in functions if any(ast.unparse(d).startswith("case(") for d in one.decorator_list)]
        if names:
            found[path.stem] = names
    return found


def test_suites_are_listed(run):
    status, output = run()
    assert status == 0
    assert [line.split()[0] for line in output.splitlines()] == list(CHEAPEST)
    assert (
        set(cases()) == set(CHEAPEST) == {path.stem for path in PAGES if path.parent.name == "benchmarks"} - {"README"}
    )


@pytest.mark.parametrize("suite", CHEAPEST)
def test_a_suite_registers_its_cases_and_the_cheapest_one_runs(run, suite):
    if suite == "trees" and not (find_spec("lightgbm") and find_spec("xgboost")):
        pytest.skip("LightGBM and XGBoost are not installed")
    status, listed = run(suite, "--list")
    assert status == 0
    assert [line.split()[0] for line in listed.splitlines()] == cases()[suite]
    tries = ["--tries", "5"] if suite == "faults" else []
    status, output = run(suite, CHEAPEST[suite], "--quick", *tries)
    assert status == 0
    assert "tries 5, survived 5" in output if suite == "faults" else "\n|---|" in output


def test_every_command_on_a_page_names_a_case():
    known = cases()
    for page in PAGES:
        for suite, case in COMMAND.findall(page.read_text(encoding="utf-8")):
            assert suite in known, f"{page}: {suite}"
            assert case in ("", *known[suite]), f"{page}: {suite} {case}"


README = (ROOT / "README.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([^|]+?) \|((?: [\d.]+ ± [\d.]+ \|){3}) ([\d.]+) \|$", flags=re.MULTILINE)
CELL = re.compile(r"([\d.]+) ± ([\d.]+)")


def rows_of(text):
    """The (mean, standard error) of each set by ranker, and the relative seconds."""
    return {name: ([*CELL.findall(cells)], float(seconds)) for name, cells, seconds in ROW.findall(text)}


@pytest.mark.study
def test_every_number_of_the_readme_is_printed_by_its_command(monkeypatch, capsys, data_folder):
    """Within .01: rounding differs between processors, and a nonconvex objective leads elsewhere after another one."""
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.__main__ import main

    assert main(["accuracy", "readme"]) == 0
    printed = capsys.readouterr().out
    stated, measured = rows_of(README), rows_of(printed)
    assert len(stated) == 3
    assert set(stated) == set(measured)
    for name, (cells, _) in stated.items():  # seconds are not compared: they depend on the machine and its load
        for (value, error), (found, found_error) in zip(cells, measured[name][0], strict=True):
            assert float(value) == pytest.approx(float(found), abs=0.01), name
            assert float(error) == pytest.approx(float(found_error), abs=0.002), name
    marks = [float(p) for line in re.findall(r"^p of .*: (.*)$", printed, flags=re.MULTILINE) for p in line.split(", ")]
    assert len(marks) == 6
    assert marks[0] < 0.05 < min(marks[1:])  # "ahead of ridge on MQ2008; no other difference is significant"
    others = re.sub(r"\]\([^)]*\)|```.*?```|`[^`]*`", "", ROW.sub("", README), flags=re.DOTALL)
    assert re.findall(r"(?<![\w.])0?\.\d{2,}", others) == []
