"""The process that solves: takes a job from its standard input, and tells what it finds line by line.

    {"ready": true}            it has come up, and its limit of memory holds
    {"warm": true}             it got through what is loaded and compiled on first use
    {"begin": 3}               it is at problem 3
    {"partial": {...}}         what is known so far of problem 3: fields of its row
    {"row": {...}}             the row of problem 3
    {"missing": "..."}         the solver's package is not there

Lines go to the standard output that it was born with; what solvers print goes to standard error.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TextIO

from rankopt.experiments.isolation.limits import hold_memory
from rankopt.experiments.rows import Row

Tell = Callable[[dict[str, Any]], None]


class Job(Protocol):
    """What is to be done, in items that stand alone; pickled, so each of its parts can be imported."""

    def open(self) -> Iterator[str]:
        """Load what is needed; yields, before anything is done, why it cannot be (the package is missing)."""
        ...

    def warm(self) -> None:
        """Let what is loaded or compiled on first use be loaded now: it is asked something tiny."""
        ...

    def row(self, item: int, partial: Callable[[dict[str, Any]], None]) -> Row:
        """The row of one item. partial: told fields of the row that are known already."""
        ...


def main() -> None:
    """Do the job on standard input: its length and the limit of memory in one line, the bytes, the items in a line."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    head = json.loads(sys.stdin.buffer.readline())
    job: Job = pickle.loads(sys.stdin.buffer.read(head["length"]))
    threading.Thread(target=_die_with_parent, daemon=True).start()
    _work(job, head["items"], head["memory"], out)
    os._exit(0)  # some solvers hang or crash when their process ends in good order


def _work(job: Job, items: list[int], memory: int | None, out: TextIO) -> None:
    def tell(message: dict[str, Any]) -> None:
        out.write(json.dumps(message) + "\n")
        out.flush()

    warnings.simplefilter("ignore")
    for missing in job.open():
        tell({"missing": missing})
        return
    if memory is not None:
        hold_memory(memory)
    tell({"ready": True})
    job.warm()
    if memory is not None:  # what is loaded on first use does not count
        hold_memory(memory)
    tell({"warm": True})
    for item in items:
        tell({"begin": item})
        row = job.row(item, lambda fields: tell({"partial": fields}))
        out.write('{"row": ' + row.as_line() + "}\n")
        out.flush()


def _die_with_parent() -> None:
    """Standard input stays open while the parent lives; a worker without a parent would never be stopped."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    try:
        main()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
