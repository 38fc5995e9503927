"""Every example runs and prints something."""

import contextlib
import io
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import sklearn

NEEDS = {"mlflow_model": "mlflow", "train_a_network": "torch"}
"""Packages of extras that an example needs."""

STARTS = ("swap_solvers", "swap_versions")
"""Examples that start processes, which know the script by its place."""

LONG = (*STARTS, "price_of_a_quota", "grid_search")
"""Examples that take more than a second."""

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
EXAMPLES = [path for path in EXAMPLES if path.stem != "pictures"]  # tests/test_pictures.py runs it
EACH = pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)


def skip_without_its_package(example):
    if example.stem in NEEDS and find_spec(NEEDS[example.stem]) is None:
        pytest.skip(f"{NEEDS[example.stem]} is not installed")


@pytest.mark.parametrize(
    "example",
    [pytest.param(path, marks=pytest.mark.study if path.stem in LONG else ()) for path in EXAMPLES],
    ids=lambda path: path.stem,
)
def test_example_runs(example, tmp_path, monkeypatch):
    """In this process, where it starts none: warnings are errors here too."""
    skip_without_its_package(example)
    if example.stem in STARTS:
        return alone(example, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example)])
    with sklearn.config_context(), contextlib.redirect_stdout(io.StringIO()) as output:
        runpy.run_path(str(example), run_name="__main__")
    assert output.getvalue().strip()
    return None


def alone(example, folder):
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)], capture_output=True, text=True, timeout=120, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.study
@EACH
def test_example_runs_in_an_interpreter_of_its_own(example, tmp_path):
    skip_without_its_package(example)
    alone(example, tmp_path)
