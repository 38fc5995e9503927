"""Every command refuses every bad value of every option by an exit code and one line; nothing ends in a traceback."""

import os
import shutil
import sys
import threading

import click
import numpy as np
import pytest

from formulations import ranking
from formulations.serialization import write_file
from rankopt.cli import COMMANDS, main, rankopt
from rankopt.commands.input_output import OutputPath
from rankopt.data import Queries, write_svmlight
from rankopt.errors import OptionError
from rankopt.experiments import ProblemTrace

GOOD = {
    "train": ["t.txt", "--model", "new", "--max-iter", "2", "--checkpoint", "runs"],
    "train --ranker direct": ["t.txt", "--model", "new", "--init", "ridge", "--max-iter", "2", "--checkpoint", "runs"],
    "train --ranker smooth": ["t.txt", "--model", "new", "--max-iter", "2"],
    "train --ranker loss": ["t.txt", "--model", "new", "--max-iter", "2"],
    "train --ranker regression": ["t.txt", "--model", "new"],
    "convert": ["t.txt", "--output", "new"],
    "resume": ["kept"],
    "predict": ["m", "t.txt", "--output", "new"],
    "rank": ["m", "t.txt", "--k", "2", "--attributes", "a.csv", "--output", "new"],
    "evaluate": ["t.txt", "--model", "m"],
    "explain": ["m", "t.txt"],
    "verify": ["s.toml"],
    "cofi": ["r.csv", "--hold-out", "2", "--model", "new", "--reg", "0.7", "--factors", "2", "--max-iter", "3"],
    "swap": [
        "t.txt",
        "--argmax-solvers",
        "exact",
        "--master-solvers",
        "none",
        "--methods",
        "none",
        "--no-train",
        "--output",
        "new",
    ],
    "trace": ["inspect", "p.npz"],
    "demo": [],
    "compile": [],
    "doctor": [],
}
"""Arguments that each command takes; one of them is spoilt at a time."""

WHOLE = ["-1", "0", "-99999999999999999999", "nan", "1.5", "1e3", "two", ""]
REAL = ["nan", "-inf", "-1", "-1e300", "two", "1,5", ""]
TEXT = ["nonsense", "", "-1", "nan", "=", "nDCG@0", "nDCG@-1", "power(nan)", "log@0", "@", "\udcff", "é\n", "x" * 999]
READ = ["missing", "folder", "empty", "garbage", os.devnull, "t.txt/x", "x" * 300, ""]
FILE = ["folder", "missing/x", "empty/x", "x" * 300, "", "."]
FOLDER = ["empty", "empty/x", "x" * 300, ""]

FINE = {
    ("train", "--n-jobs", "-1"),  # all cores
    ("train", "--tol", "0"),
    ("train", "--random-state", "0"),
    ("train --ranker direct", "--n-jobs", "-1"),
    ("train --ranker direct", "--tol", "0"),
    ("train --ranker direct", "--lam", "0"),
    ("train --ranker direct", "--n-random-directions", "0"),
    ("train --ranker direct", "--random-state", "0"),
    ("train --ranker smooth", "--n-jobs", "-1"),
    ("train --ranker loss", "--n-jobs", "-1"),
    ("train --ranker loss", "--tol", "0"),
    ("train --ranker loss", "--random-state", "0"),
    ("resume", "--n-jobs", "-1"),
    ("verify", "--random-state", "0"),
    ("cofi", "--random-state", "0"),
    ("cofi", "--n-jobs", "-1"),
    ("cofi", "--tol", "0"),
    ("swap", "--argmax-solvers", ""),  # no solver
    ("swap", "--master-solvers", ""),
    ("swap", "--methods", ""),
}
"""What looks bad and is not."""


def options_of(command):
    name, *ranker = command.split()
    found = rankopt.get_command(None, name)
    context = found.make_context(name, ranker, resilient_parsing=True)
    return [p for p in found.get_params(context) if not getattr(p, "is_flag", False) and p.name != "ranker"]


def bad_values(command, option):
    kind = option.type
    if isinstance(kind, OutputPath):
        values = FOLDER if kind.dir_okay else [path for path in FILE if not (kind.made and path == "missing/x")]
        values = [*values, "missing/x"] if kind.dir_okay and not kind.made else values
    elif isinstance(kind, click.Path):
        values = READ
    elif isinstance(kind, click.Choice):
        values = ["nonsense", "", kind.choices[0].upper()]
    elif isinstance(kind, click.types.IntParamType):
        values = WHOLE
    elif isinstance(kind, click.types.FloatParamType):
        values = REAL
    else:
        values = TEXT
    return [value for value in values if (command, option.opts[0], value) not in FINE]


def spoilt(command, option, value, arguments):
    """The arguments with this value in place of that of the option."""
    arguments, name = list(arguments), option.opts[0]
    if isinstance(option, click.Argument):
        before = [p for p in options_of(command) if isinstance(p, click.Argument)]
        arguments[before.index(option)] = value
    elif name in arguments and not option.multiple:
        arguments[arguments.index(name) + 1] = value
    else:
        arguments += [name, value]
    return arguments


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arguments")
    rng = np.random.default_rng(0)
    features, grades = rng.normal(size=(12, 3)), rng.integers(0, 3, 12)
    names = [f"d{i}" for i in range(12)]
    queries = Queries.from_arrays(features, grades, qid=np.repeat([1, 2, 3], 4)).replace(document_ids=names)
    write_svmlight(queries, folder / "t.txt")
    rows = [f"{1 + i // 4},d{i},{'ab'[i % 2]}\n" for i in range(12)]
    (folder / "a.csv").write_text("qid,docid,site\n" + "".join(rows), encoding="utf-8")
    (folder / "s.toml").write_text("documents = 4\npositions = 2\n", encoding="utf-8")
    rated = [f"{u},{i},{1 + (u * i + u + i) % 5}\n" for u in range(6) for i in range(13) if (u + i) % 7]
    (folder / "r.csv").write_text("user,item,rating\n" + "".join(rated), encoding="utf-8")
    ProblemTrace.from_problems(ranking([2.0, 1.0], [0.0, 1.0], discount=[1.0], position_weights=[1.0])).save(
        folder / "p.npz"
    )
    (folder / "empty").write_bytes(b"")
    (folder / "garbage").write_bytes(rng.integers(0, 256, 400, dtype=np.uint8).tobytes())
    (folder / "folder").mkdir()
    here = os.getcwd()
    try:
        os.chdir(folder)
        for arguments in (
            ["train", "t.txt", "--model", "m"],
            ["train", "t.txt", "--model", "n", "--checkpoint", "kept"],
        ):
            assert ended([*arguments, "--max-iter", "2"]) == 0
    finally:
        os.chdir(here)
    return folder


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch):
    """A copy of the prepared files, as the current folder."""
    shutil.copytree(prepared, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def ended(arguments):
    """The exit code of the command, run in this process; whatever else it raises is a fault."""
    before, sys.argv = sys.argv, ["rankopt", *arguments]
    try:
        with pytest.raises(SystemExit) as end:
            main()
    finally:
        sys.argv = before
    return end.value.code


ASIDE = ("Usage: ", "Try '", "the model is written to ")
"""How lines begin that stand beside the one that says what is wrong."""


def check_refused(arguments, capfd):
    capfd.readouterr()
    code = ended(arguments)
    said = capfd.readouterr().err
    assert code in range(1, 7), f"{arguments} ended with {code}: {said}"
    lines = [line for line in said.splitlines() if line and not line.startswith(ASIDE)]
    assert len(lines) == 1, f"{arguments}: {said}"
    kind, _, message = lines[0].partition(": ")
    assert kind.isidentifier(), said
    assert len(message) > 15, said


def test_every_command_is_walked():
    assert {name.split()[0] for name in GOOD} == set(COMMANDS)


@pytest.mark.every(5)
@pytest.mark.parametrize("command", [name for name in GOOD if options_of(name)])
def test_every_bad_value_is_refused_in_one_line(command, folder, capfd):
    for option in options_of(command):
        for value in bad_values(command, option):
            check_refused([*command.split(), *spoilt(command, option, value, GOOD[command])], capfd)


@pytest.mark.parametrize("command", [name for name in GOOD if options_of(name)])
def test_several_at_once_are_refused_too(command, folder, capfd):
    rng = np.random.default_rng(len(command))
    options = options_of(command)
    for _ in range(20):
        arguments = GOOD[command]
        for place in rng.permutation(len(options))[: rng.integers(1, 4)]:
            values = bad_values(command, options[place])
            arguments = spoilt(command, options[place], values[rng.integers(len(values))], arguments)
        check_refused([*command.split(), *arguments], capfd)


@pytest.mark.parametrize("command", GOOD)
def test_what_is_unknown_or_missing_is_wrong_usage(command, capfd):
    check_refused([*command.split(), *GOOD[command], "--no-such-option"], capfd)
    if GOOD[command][:1] and not GOOD[command][0].startswith("-") and command not in ("swap", "cofi"):
        check_refused(command.split(), capfd)


def test_an_interval_of_checkpoints_needs_a_folder(folder, capfd):
    check_refused(["train", "t.txt", "--model", "new", "--checkpoint-every", "5"], capfd)


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no file names that are no text")
def test_a_report_on_a_file_whose_name_is_no_text(folder):
    shutil.copy("s.toml", "s\udcff.toml")
    assert ended(["verify", "s\udcff.toml", "--report", "page.html"]) == 0
    assert "s?.toml" in (folder / "page.html").read_text(encoding="utf-8")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_file(pipe, b"model")
    reader.join(10)
    assert got == [b"model"]
    assert pipe.is_fifo()


def test_too_many_features_are_a_typed_error(folder):
    from rankopt.data import read_svmlight

    for count in (0, -1, 10**20):
        with pytest.raises(OptionError, match=r"n_features cannot be .*; it must be an integer from 1 to"):
            read_svmlight("t.txt", n_features=count)
