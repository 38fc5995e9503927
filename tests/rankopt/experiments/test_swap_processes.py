"""The processes of a swap: one that was killed goes on where it was, and no worker outlives its parent."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from problems.swaps import rankings, without_times

from rankopt.errors import OptionError
from rankopt.experiments import Limits, SolverSwap, read_rows


@pytest.mark.study
def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_rows(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from problems.swaps import rankings\n"
        "from rankopt.experiments import Limits, SolverSwap\n"
        "limits = Limits(problem=120.0, trace=600.0)\n"
        "swap = SolverSwap(rankings(range(9, 39)), argmax_solvers=('exact', 'scipy'), repeats=1, limits=limits)\n"
        "for row in swap.rows(sys.argv[1]):\n"
        "    print(row.problem, flush=True)\n"
    )
    cut, whole = tmp_path / "cut.jsonl", tmp_path / "whole.jsonl"
    arguments = [sys.executable, "-c", script, str(cut), str(Path(__file__).parents[2])]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(20):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    killed = read_rows(cut)
    assert 20 <= len(killed) < 60
    with cut.open("a", encoding="utf-8") as file:
        file.write('{"kind": "argmax", "sol')  # the line that it was at
    problems = rankings(range(9, 39))
    again = SolverSwap(
        problems, argmax_solvers=("exact", "scipy"), repeats=1, limits=Limits(problem=120.0, trace=600.0)
    )
    assert len(again.run(cut, resume=True)) == 60 - len(killed)
    again.run(whole)
    assert without_times(read_rows(cut)) == without_times(read_rows(whole))
    assert vars(read_rows(cut)[0]) == vars(killed[0])  # what was found is not run again
    with pytest.raises(OptionError, match="resume=True"):
        again.run(whole)


@pytest.mark.study
def test_a_worker_dies_with_its_parent(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from planted import solvers as planted\n"
        "from formulations import RankTwoAssignment, function_solver\n"
        "from problems.swaps import rankings\n"
        "from rankopt.experiments import Limits, SolverSwap\n"
        "import rankopt.experiments.supervisor as supervisor\n"
        "begun = supervisor._Worker.next_row\n"
        "def told(self, *given):\n"
        "    print(self.process.pid, flush=True)\n"
        "    return begun(self, *given)\n"
        "supervisor._Worker.next_row = told\n"
        "solver = function_solver(planted.sleeping, accepts=RankTwoAssignment)\n"
        "SolverSwap(rankings(), argmax_solvers=(solver,), limits=Limits(problem=600.0)).run()\n"
    )
    arguments = [sys.executable, "-c", script, str(Path(__file__).parents[2])]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as process:
        worker = int(process.stdout.readline())
        os.kill(process.pid, signal.SIGKILL)
    for _ in range(300):
        try:
            os.kill(worker, 0)
        except ProcessLookupError:
            return
        state = Path(f"/proc/{worker}/stat")
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":  # dead, and nobody has asked
            return
        time.sleep(0.1)
    os.kill(worker, signal.SIGKILL)
    pytest.fail("the worker outlived its parent")
