"""`rankopt train --checkpoint` and `rankopt resume`: a command that dies at any moment goes on to the same model."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from problems.command import called
from problems.same_bits import assert_same

from rankopt.data import load_sample, write_svmlight
from rankopt.optimize.certificate import Stop
from rankopt.rankers import load_model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A training of two λ on files, and the model and report that it leads to without any trouble."""
    folder = tmp_path_factory.mktemp("cli")
    sample = load_sample("digits")
    write_svmlight(sample.train, folder / "train.txt")
    write_svmlight(sample.test, folder / "test.txt")
    done = called(*words(folder, folder / "whole"))
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def words(folder, model, *more):
    options = ["--lam", "0.1", "--lam", "0.01", "--tol", "1e-4", "--validate", folder / "test.txt", "--json"]
    return ["train", folder / "train.txt", "--model", model, *options, *more]


def apart(words):
    """The command of these words as a process of its own."""
    return [sys.executable, "-m", "rankopt", *map(str, words)]


INTERRUPTED = """
import os, signal, sys, threading
from rankopt.cli import main

written = 0

def hook(event, given):
    global written
    if event == "os.rename" and os.path.basename(given[1]).startswith("standing"):
        written += 1
        if written == 2:
            threading.Timer(0.0, os.kill, (os.getpid(), signal.SIGINT)).start()

sys.addaudithook(hook)
main()
"""
"""The command as a process that has Ctrl-C pressed when it has written its second checkpoint: whoever waits for that
outside comes too late for a short run."""


def without_seconds(report):
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in [report["chosen"], *report["tried"]]]
    return rows, report["interrupted"]


@pytest.mark.study
def test_a_command_killed_at_any_moment_goes_on_to_the_same_model(files, tmp_path):
    """SIGKILL at random moments: before the first step, between two, in the midst of writing, at the end."""
    folder, whole = files
    kept, model = tmp_path / "kept", tmp_path / "model"
    rng = np.random.default_rng(0)
    command, kills = apart(words(folder, model, "--checkpoint", kept, "--checkpoint-every", 0)), 0
    while True:
        before = newest(kept)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and kills < 4 and newest(kept) == before:
                time.sleep(0.002)
            time.sleep(rng.uniform(0, 0.15))
            if kills < 4 and process.poll() is None:
                process.kill()
                kills += 1
            told, errors = process.communicate(timeout=300)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, errors
        command = apart(["resume", kept, "--json"])
    assert kills >= 3
    assert without_seconds(json.loads(told)) == without_seconds(whole)
    assert_same(load_model(model), load_model(folder / "whole"))


def newest(kept):
    """What tells one checkpoint from the next."""
    found = []
    for file in kept.glob("lam*/standing*.zip"):
        try:
            found.append(file.stat().st_mtime_ns)
        except FileNotFoundError:
            continue
    return max(found, default=0)


def test_ctrl_c_saves_the_model_so_far_and_the_run_goes_on(files, tmp_path):
    folder, whole = files
    model = tmp_path / "model"
    for attempt in range(8):  # on a busy machine a short run may be over before the signal is sent
        kept = tmp_path / f"kept{attempt}"
        given = words(folder, model, "--checkpoint", kept, "--checkpoint-every", 0)
        process = subprocess.run(
            [sys.executable, "-c", INTERRUPTED, *map(str, given)], capture_output=True, text=True, timeout=300
        )
        told, errors = process.stdout, process.stderr
        if process.returncode == 130 and load_model(model).certificate_.stop == Stop.INTERRUPTED:
            break
    assert process.returncode == 130, errors
    assert f"rankopt resume {kept}" in errors
    assert json.loads(told)["interrupted"]
    certificate = load_model(model).certificate_
    assert certificate.stop == "interrupted from the keyboard"
    assert certificate.bound <= certificate.primal
    done = called("resume", kept, "--json")
    assert done.returncode == 0, done.stderr
    assert without_seconds(json.loads(done.stdout)) == without_seconds(whole)
    assert_same(load_model(model), load_model(folder / "whole"))


def test_limits_of_a_command_may_be_raised(files, tmp_path):
    folder, whole = files
    kept, model = tmp_path / "kept", tmp_path / "model"
    first = called(*words(folder, model, "--checkpoint", kept, "--max-iter", 3))
    assert [row["steps"] for row in json.loads(first.stdout)["tried"]] == [3, 3]
    assert all(row["stop"] == "max_iter steps were taken" for row in json.loads(first.stdout)["tried"])
    more = called("resume", kept, "--json", "--max-iter", 2000)
    assert without_seconds(json.loads(more.stdout)) == without_seconds(whole)
    assert_same(load_model(model), load_model(folder / "whole"))


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        (["resume", "{empty}"], 5, "rankopt train --checkpoint"),
        (["resume", "{empty}/missing"], 2, "does not exist"),
        (["train", "{train}", "--model", "{model}", "--lam", "0.5", "--checkpoint", "{other}"], 5, "another training"),
        (["train", "{train}", "--model", "{model}", "--checkpoint", "{train}/x"], 2, "choose another path"),
    ],
)
def test_folders_that_do_not_fit_are_errors_with_codes(command, code, told, files, tmp_path):
    folder, _ = files
    other = tmp_path / "other"
    if "{other}" in command:
        begun = called(*words(folder, tmp_path / "model", "--checkpoint", other, "--max-iter", 1))
        assert begun.returncode == 0
    places = {"empty": tmp_path, "train": folder / "train.txt", "model": tmp_path / "model", "other": other}
    done = called(*(word.format(**places) for word in command))
    assert done.returncode == code, done.stdout + done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
