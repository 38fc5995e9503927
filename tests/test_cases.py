"""Small inputs that once had a wrong answer: each script in `cases` states what is right and ends with status 0."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = sorted((Path(__file__).parent / "cases").glob("case_*.py"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_case_ends_well(case, tmp_path):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", str(case)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
