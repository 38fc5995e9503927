"""Attacks on the packages: tries that must be survived, limited in seconds and memory.

Each attack of this folder is a function `attack(tries, seed)`; `python -m benchmarks faults` runs them by the thousand.
"""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]


def assert_survived(name: str, tries: int, seed: int) -> None:
    """The case of the suite `faults` survives so many tries, in a process of its own."""
    call = [sys.executable, "-m", "benchmarks", "faults", name, "--tries", str(tries), "--seed", str(seed)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout.splitlines()[-1:] == [f"tries {tries}, survived {tries}"], done.stdout + done.stderr
    assert done.returncode == 0


@contextmanager
def memory_limit(extra: int) -> Iterator[None]:
    """Limit the address space to `extra` bytes beyond what is in use; 0: no limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + extra if extra else soft, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def survive(
    tries: int,
    attempt: Callable[[int], str | None],
    report: Callable[[], None] = lambda: None,
    seconds: int = 0,
    memory: int = 0,
) -> bool:
    """Make tries, each limited in seconds and bytes; one that raises or returns a reason did not survive.

    Returns whether any did not; the last line printed says how many did."""

    def late(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} s")

    signal.signal(signal.SIGALRM, late)
    survived = 0
    with memory_limit(memory):
        for number in range(tries):
            signal.alarm(seconds)
            try:
                why = attempt(number)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                why = "".join(traceback.format_exception(error)[-9:])
            finally:
                signal.alarm(0)
            survived += not why
            if why:
                print(f"try {number}: {why}", file=sys.stderr)
    report()
    print(f"tries {tries}, survived {survived}", flush=True)
    return survived != tries
