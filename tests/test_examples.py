"""Every example runs and prints something."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

NEEDS = {"mlflow_model": "mlflow", "train_a_network": "torch"}
"""Packages of extras that an example needs."""

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
EXAMPLES = [path for path in EXAMPLES if path.stem != "pictures"]  # tests/test_pictures.py runs it


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example, tmp_path):
    if example.stem in NEEDS and find_spec(NEEDS[example.stem]) is None:
        pytest.skip(f"{NEEDS[example.stem]} is not installed")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
