"""The command `rankopt` as `python -m rankopt` runs it, in this process: a start of the interpreter costs seconds."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

from rankopt.cli import main


class Done(NamedTuple):
    """How a command ended, as `subprocess.run` tells it."""

    returncode: int
    stdout: str
    stderr: str


def called(*words):
    """What the command of these words prints, and its exit code."""
    told = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)]
    with patch.object(sys, "argv", ["rankopt", *map(str, words)]), redirect_stdout(told[0]), redirect_stderr(told[1]):
        try:
            main()
            code = 0
        except SystemExit as ended:
            code = ended.code
    return Done(code, *(one.buffer.getvalue().decode() for one in told))
