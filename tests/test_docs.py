"""Every block of the documentation runs, page by page, and prints what stands below it."""

import contextlib
import doctest
import importlib
import io
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from problems.command import called
from problems.printed import NUMBER, difference

import formulations
import rankopt

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
FENCE = re.compile(
    r"(?:^<!-- varies: ([^\n]*) -->\n)?^```(\w+)(?: title=\"(.*?)\")?\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL
)

NOT_RUN = ("pip install . && rankopt demo",)
"""How blocks begin that do not run here: .ci/run runs this one, in a new environment."""


OURS = re.compile(r"rankopt [^|<>&;$`\\]*")
"""A line of shell that is one command of ours, and nothing of the shell's."""

NEEDS = {
    "guide/constraints.md": ("pandas", "pyarrow"),
    "guide/integrality.md": ("pandas",),
    "guide/serve.md": ("onnxruntime",),
    "guide/solvers.md": ("pandas",),
    "guide/train.md": ("lightgbm", "pyarrow", "pyterrier"),
}
"""Packages of extras that the blocks of a page need."""


class Block(NamedTuple):
    varies: tuple[str, ...]
    language: str
    title: str
    text: str


def blocks(page):
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [Block(tuple(filter(None, varies.split(", "))), *rest) for varies, *rest in found]


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


LONG = {"extend.md", "solvers.md"}
"""Slow pages, of which each part is tested elsewhere too."""

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
    for package in NEEDS.get(page.relative_to(DOCS).as_posix(), ()):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    monkeypatch.chdir(tmp_path)
    names, printed = {"__name__": "documentation"}, None
    for block in blocks(page):
        if block.language != "text":
            printed = printed_by(block, names, shell)
            continue
        assert printed is not None, f"no block that runs stands before: {block.text}"
        differs = difference(block.text, printed, block.varies)
        assert differs is None, f"{differs}: it says\n{block.text}but prints\n{printed}"


def test_every_block_is_of_a_kind_that_is_run_or_checked():
    assert len(PAGES) >= 5
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert len(blocks(page)) * 2 == len(re.findall("^```", text, flags=re.MULTILINE)), page
        assert {block.language for block in blocks(page)} <= {"python", "sh", "text", "toml"}, page
        assert all(block.title for block in blocks(page) if block.language == "toml"), page


def test_numbers_that_vary_stand_below_where_they_are_listed():
    for page in PAGES:
        marked = [block for block in blocks(page) if block.varies]
        assert len(marked) == page.read_text(encoding="utf-8").count("<!-- varies"), page
        for block in marked:
            assert block.language == "text", block
            assert set(block.varies) <= set(NUMBER.findall(block.text)), block


def test_nothing_is_left_out_of_what_is_shown():
    """Dots in printed output would hide what a program prints."""
    dotted = [
        f"{page.name}: {line}"
        for page in PAGES
        for block in blocks(page)
        for line in block.text.splitlines()
        if block.language == "text" and re.search(r"\.\.\.|…", line)
    ]
    assert dotted == []


SAID = "7 of 9 in 0.902 s"


@pytest.mark.parametrize(
    ("said", "printed", "varies"),
    [
        ("loss 0.12345", "loss  0.12346\n", []),
        (SAID, "7 of 9 in 12.1 s", ["0.902"]),
        (SAID, "7 of 9 in 1e-3 s", ["0.902"]),
        ("gap -7e-16", "gap 2e-15", ["-7e-16"]),
        ("argmax:6495d6fe", "argmax:2f94542b", ["6495d6fe"]),
        ("highs 1.14.0", "highs 1.15.1", ["1.14.0"]),
    ],
)
def test_what_varies_may(said, printed, varies):
    assert difference(said, printed, varies) is None


@pytest.mark.parametrize("varies", [[], ["7", "9", "0.902"]])
@pytest.mark.parametrize(
    "printed", ["7 of 9 by 0.902 s", "7 of 9 in 0.902", f"{SAID} at least", "7 of 9 in ... s", "7 of in 0.902 s", ""]
)
def test_a_wrong_word_is_found_whatever_varies(printed, varies):
    assert difference(SAID, printed, varies) is not None
    assert difference(printed, SAID, varies) is not None


@pytest.mark.parametrize(
    ("said", "printed", "varies"),
    [
        ("loss 0.876", "loss 0.874", []),
        ("loss 0.876", "loss -0.876", []),
        ("step 2000", "step 2001", []),
        ("step 2", "step 2.0", []),
        ("argmax:6495d6fe", "argmax:2f94542b", []),
        (SAID, "8 of 9 in 0.902 s", ["0.902"]),
    ],
)
def test_a_wrong_number_is_found(said, printed, varies):
    assert difference(said, printed, varies) is not None


# Every example in a docstring of the installed packages prints what it says.


MODULES = [
    module
    for package in (rankopt, formulations)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
]


def source(module: pkgutil.ModuleInfo) -> str:
    return module.module_finder.find_spec(module.name).loader.get_source(module.name)


@pytest.mark.parametrize("name", ["rankopt", "formulations", *(one.name for one in MODULES if ">>>" in source(one))])
def test_examples_print_what_they_say(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert outcome.failed == 0


# Every Python block of the README runs as it stands.


README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=[f"block {i}" for i in range(len(BLOCKS))])
def test_block_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})


def test_the_two_commands_stand_alone():
    assert len(re.findall(r"^pip install .* && .*$", README, flags=re.MULTILINE)) == 2


# Links lead to files of the repository, and pages stay short.


ROOT = Path(__file__).parent.parent
WRITTEN = [*ROOT.glob("*.md"), *PAGES, *(ROOT / "benchmarks").glob("*.md")]
HEADING = re.compile(r"^#+ (.*?)(?: \{.*\})?$", flags=re.MULTILINE)


def anchors(page):
    headings = HEADING.findall(
        re.sub("^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_links_lead_to_files_and_headings():
    """On disk; the strict build checks the site."""
    missing = []
    for page in WRITTEN:
        text = re.sub("^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            target, _, heading = link.partition("#")
            place = page.parent / target if target else page
            if not link.startswith("https://") and not (place.exists() and (not heading or heading in anchors(place))):
                missing.append(f"{page.relative_to(ROOT)}: {link}")
    assert missing == []


def test_readme_and_documentation_stay_short():
    assert len(README.splitlines()) <= 120
    for pages, most in ((PAGES, 25_000), ((ROOT / "benchmarks").glob("*.md"), 5_800)):
        assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= most
    entries = re.findall(r"^ +- [^:]+: \S+\.md$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert 10 < len(entries) <= 21


def test_pictures_have_an_alternative_text():
    for page in PAGES:
        for words, file in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert len(words.split()) >= 4, file
