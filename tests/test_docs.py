"""Every block of the documentation runs, page by page, and prints what stands below it."""

import contextlib
import doctest
import io
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from problems.command import called

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FENCE = re.compile(r"^```(\w+)(?: title=\"(.*?)\")?\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

NOT_RUN = ("pip install . && rankopt demo", "rankopt swap train.txt --test test.txt --argmax all")
"""How blocks begin that do not run here: the walk of .ci/run does the first, in a new environment; the second takes
minutes, on data that may not come along."""


OURS = re.compile(r"rankopt [^|<>&;$`\\]*")
"""A line of shell that is one command of ours, and nothing of the shell's."""

NEEDS = {
    "expectations.md": "pandas",
    "tutorials/boosting.md": "lightgbm",
    "tutorials/serving.md": "onnxruntime",
    "tutorials/torch.md": "torch",
    "walks.md": "lightgbm",
}
"""Packages of extras that the blocks of a page need."""


class Block(NamedTuple):
    language: str
    title: str
    text: str


def blocks(page):
    return [Block(*found) for found in FENCE.findall(page.read_text(encoding="utf-8"))]


def printed_by(block, names, shell):
    """Run a block in the current folder and return what it printed; None for one that is not to be run.

    shell: a block of commands, which are run one by one in this process else, if they are all ours.
    """
    if block.title:
        Path(block.title).write_text(block.text, encoding="utf-8")
        return None
    if block.language == "python":
        with contextlib.redirect_stdout(io.StringIO()) as output:
            exec(compile(block.text, "documentation", "exec"), names)
        return output.getvalue()
    if block.language == "sh" and not block.text.startswith(NOT_RUN):
        lines = block.text.splitlines()
        if not shell and all(OURS.fullmatch(line) for line in lines):
            return "".join(printed_here(line) for line in lines)
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            capture_output=True, text=True, timeout=300, env={**os.environ, "PATH": path},
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    return None


def printed_here(line):
    done = called(*shlex.split(line)[1:])
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


LONG = {"walks.md", "adding.md"}
"""Pages that run whole walks, or all checks, of which each is tested elsewhere too."""

COMMANDS = [page for page in PAGES if any(block.language == "sh" for block in blocks(page))]


@pytest.mark.parametrize(
    ("page", "shell"),
    [
        *(
            pytest.param(
                page, False, id=str(page.relative_to(DOCS)), marks=[pytest.mark.study] if page.name in LONG else []
            )
            for page in PAGES
        ),
        *(pytest.param(page, True, id=f"{page.relative_to(DOCS)}-shell", marks=pytest.mark.study) for page in COMMANDS),
    ],
)
def test_blocks_run_and_print_what_they_say(page, shell, tmp_path, monkeypatch):
    package = NEEDS.get(page.relative_to(DOCS).as_posix())
    if package is not None and find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    names, printed = {"__name__": "documentation"}, None
    for block in blocks(page):
        if block.language != "text":
            printed = printed_by(block, names, shell)
            continue
        assert printed is not None, f"no block that runs stands before: {block.text}"
        same = doctest.OutputChecker().check_output(block.text, printed, SAME)
        assert same, f"it says\n{block.text}but prints\n{printed}"


def test_every_block_is_of_a_kind_that_is_run_or_checked():
    assert len(PAGES) >= 5
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert len(blocks(page)) * 2 == len(re.findall("^```", text, flags=re.MULTILINE)), page
        assert {block.language for block in blocks(page)} <= {"python", "sh", "text", "toml"}, page
        assert all(block.title for block in blocks(page) if block.language == "toml"), page
