"""Engines in scripts: no guard is needed, and workers go with a parent that is killed."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

SCRIPT = """
import sys
import numpy as np
from rankopt.risk import risk as sharding
from rankopt.rankers import LargeMarginRanker
{extra}
sharding.SHARD_ROWS = 40
rng = np.random.default_rng(0)
X, y = rng.normal(size=(160, 4)), rng.integers(0, 3, 160).astype(float)
ranker = LargeMarginRanker(lam=0.1, engine={engine!r}, n_jobs=2, {options})
ranker.fit(X, y, qid=np.repeat(np.arange(16), 10))
print(ranker.coef_.tobytes().hex())
"""


def script(engine, extra="", options="", file=None):
    """A script without `if __name__ == "__main__"`, from a file or from standard input."""
    text = SCRIPT.format(engine=engine, extra=extra, options=options)
    if file is not None:
        file.write_text(text)
    call = [sys.executable, "-W", "error", "-" if file is None else str(file)]
    given = text if file is None else None
    return subprocess.run(call, input=given, capture_output=True, text=True, timeout=240)


@pytest.mark.study
@pytest.mark.parametrize("place", ["file", "stdin"])
def test_scripts_need_no_guard(place, tmp_path):
    file = None if place == "stdin" else tmp_path / "script.py"
    told, alone = script("dask", file=file), script("threads")
    assert told.returncode == 0, told.stderr
    assert told.stdout == alone.stdout
    assert told.stderr == ""


@pytest.mark.study
def test_a_solver_of_the_script_itself_is_an_error_with_a_cure():
    extra = "from formulations.solvers.exact import ExactArgmax\nclass Own(ExactArgmax): pass"
    told = script("dask", extra, "argmax_solver=Own()")
    assert told.returncode == 1
    assert "OptionError" in told.stderr
    assert "define them in an importable file" in told.stderr


@pytest.mark.study
def test_workers_and_files_go_with_a_parent_that_is_killed(scratch):
    stay = "callbacks=[lambda step, state: print('step', flush=True) or __import__('time').sleep(60)]"
    call = [sys.executable, "-c", SCRIPT.format(engine="dask", extra="", options=stay)]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(scratch)}) as run:
        assert run.stdout.readline() == "step\n"
        workers = psutil.Process(run.pid).children(recursive=True)
        assert len(workers) >= 2
        assert list(scratch.iterdir())
        run.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []
    deadline = time.monotonic() + 10
    while list(scratch.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert list(scratch.iterdir()) == []
