"""A few tries of the attacks of `benchmarks/faults`."""

import subprocess
import sys
from pathlib import Path

FAULTS = Path(__file__).parents[2] / "benchmarks" / "faults"


def assert_survived(name, tries, seed):
    """The script of this name survives so many tries."""
    call = [sys.executable, str(FAULTS / f"{name}.py"), "--tries", str(tries), "--seed", str(seed)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout.splitlines()[-1:] == [f"tries {tries}, survived {tries}"], done.stdout + done.stderr
    assert done.returncode == 0
