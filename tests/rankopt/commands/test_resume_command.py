"""`rankopt train --checkpoint` and `rankopt resume`: a killed command continues to the same model; foreign folders are
checked, and files that the training did not write are replaced only by consent."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from problems.command import called
from problems.same_bits import assert_same

from rankopt.cli import main, rankopt
from rankopt.commands.training_run import MANIFEST, Training
from rankopt.data import load_sample, write_svmlight
from rankopt.errors import OptionError
from rankopt.optimize.certificate import Stop
from rankopt.persistence.checkpoint import claimed
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


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "train.txt"
    write_svmlight(load_sample("les-miserables").train, file)
    return file


@pytest.fixture
def begun(file, tmp_path):
    """A training that was ended by a limit: its folder, and its model beside it."""
    (tmp_path / "here").mkdir()
    folder, model = tmp_path / "here" / "kept", tmp_path / "here" / "model"
    done = invoked("train", file, "--model", model, "--checkpoint", folder, "--lam", "0.5", "--max-iter", 2)
    assert done.exit_code == 0, done.output
    return folder, model


def invoked(*words, input=None):
    return CliRunner().invoke(rankopt, [str(word) for word in words], input=input)


def tampered(folder, **changes):
    """Let the training of this folder say something else."""
    known = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**known, **changes}))


def test_its_own_model_is_replaced_without_a_question(begun):
    folder, model = begun
    before = model.read_bytes()
    done = invoked("resume", folder, "--max-iter", 4)
    assert done.exit_code == 0, done.output
    assert model.read_bytes() != before
    assert load_model(model).n_iter_ == 4
    assert invoked("resume", folder, "--max-iter", 5).exit_code == 0


def test_a_file_that_was_there_when_training_began_is_its_own(file, tmp_path):
    (tmp_path / "model").write_text("of yesterday")
    words = ("train", file, "--model", tmp_path / "model", "--checkpoint", tmp_path / "kept", "--lam", "0.5")
    assert invoked(*words, "--max-iter", 2).exit_code == 0
    (tmp_path / "model").write_text("of yesterday")  # as if it had been killed before it wrote
    assert invoked("resume", tmp_path / "kept", "--max-iter", 3).exit_code == 0
    assert load_model(tmp_path / "model").n_iter_ == 3


def test_a_foreign_folder_writes_beside_itself(begun, tmp_path):
    folder, _ = begun
    victim = tmp_path / "victim"
    victim.write_text("precious")
    tampered(folder, model=str(victim))
    done = invoked("resume", folder, "--max-iter", 3)
    assert done.exit_code == 0, done.output
    assert "is not in the folder of" in done.output
    assert victim.read_text() == "precious"
    assert load_model(folder.parent / "victim").n_iter_ == 3
    tampered(folder, model=str(victim))
    assert invoked("resume", folder, "--max-iter", 3, "--model", tmp_path / "mine").exit_code == 0
    assert load_model(tmp_path / "mine").n_iter_ == 3


@pytest.mark.every(5)
@pytest.mark.parametrize("kind", ["file", "link", "link to nothing"])
@pytest.mark.parametrize("where", ["beside", "--model"])
def test_what_it_did_not_write_is_replaced_only_by_consent(kind, where, begun, tmp_path):
    folder, model = begun
    victim, there = tmp_path / "victim", (model if where == "beside" else tmp_path / "mine")
    victim.write_text("precious")
    there.unlink(missing_ok=True)
    if kind == "file":
        there.write_text("precious")
    else:
        there.symlink_to(victim if kind == "link" else tmp_path / "nothing")
    words = ["resume", folder, "--max-iter", 3, *(["--model", there] if where == "--model" else [])]
    for answer in (None, "n\n"):
        done = invoked(*words, input=answer)
        assert isinstance(done.exception, OptionError)
        assert "did not write it; give --model FILE, or --yes" in str(done.exception)
        assert victim.read_text() == "precious"
        assert not (tmp_path / "nothing").exists()
        assert kind != "file" or there.read_text() == "precious"
    done = invoked(*words, input="y\n") if kind == "file" else invoked(*words, "--yes")
    assert done.exit_code == 0, done.output
    assert load_model(there).n_iter_ == 3


def test_links_of_a_foreign_folder_lead_nowhere(begun, tmp_path):
    folder, _ = begun
    victim, other = tmp_path / "victim", tmp_path / "other"
    victim.write_text("precious")
    other.mkdir()
    known = (folder / MANIFEST).read_text()
    (tmp_path / "training").write_text(known)
    for name, place in ((MANIFEST, tmp_path / "training"), ("models.sha256", victim)):
        (folder / name).unlink()
        (folder / name).symlink_to(place)
    invoked("resume", folder, "--max-iter", 3, "--yes")
    assert victim.read_text() == "precious"
    assert (tmp_path / "training").read_text() == known
    (folder / "lam0").rename(tmp_path / "lam0")
    (folder / "lam0").symlink_to(other)
    done = invoked("resume", folder, "--max-iter", 4, "--yes")
    assert isinstance(done.exception, OptionError)
    assert "is a link" in str(done.exception)
    assert list(other.iterdir()) == []


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lam": []}, "lam is empty"),
        ({"lam": ["x"]}, "'x' is no number"),
        ({"lam": [float("nan")]}, "NaN is not JSON"),
        ({"lam": 3}, "not iterable"),
        ({"model": "a\0b"}, "is no file"),
        ({"model": ".."}, "is no file"),
        ({"model": "a/\ud800"}, "surrogates"),
        ({"model": 7}, "'7' is no file"),
        ({"train_file": None}, "'None' is no file"),
        ({"every": "x"}, "'x' is no number"),
        ({"unjudged": True}, "'True' is no number"),
        ({"options": []}, "options name no measure"),
        ({"options": {"measure": "nDCG", "callbacks": "x"}}, "'callbacks' = 'x' is no option"),
        ({"options": {"measure": "nDCG", "verbose": 1}}, "'verbose' = '1' is no option"),
        ({"options": {"measure": ["nDCG"]}}, "is no option"),
        ({"ranker": "loss", "options": {"measure": "nDCG", "bound": "convex"}}, "'bound' = 'convex' is no option"),
        ({"ranker": "boosted"}, "'boosted' is not a ranker that can be resumed"),
        ({"more": 1}, "unexpected keyword argument 'more'"),
    ],
)
def test_a_training_that_we_would_not_write_is_refused(changes, words, begun):
    folder, model = begun
    before = model.read_bytes()
    tampered(folder, **changes)
    with pytest.raises(OptionError, match=r"training\.json is not a file of `rankopt train` .*begin anew") as refused:
        Training.from_folder(folder)
    assert words in str(refused.value)
    assert isinstance(invoked("resume", folder).exception, OptionError)
    assert model.read_bytes() == before


@pytest.mark.every(5)
@pytest.mark.parametrize(
    "text", ["", "7", "[]", "{", "[" * 100_000, '{"lam":' + "9" * 5000 + "}", '{"lam": [1]}', " " * (2 << 20), "\xff"]
)
def test_a_training_that_is_not_its_json_is_refused(text, begun):
    folder, _ = begun
    (folder / MANIFEST).write_bytes(text.encode("latin-1"))
    with pytest.raises(OptionError, match="is not a file of `rankopt train`"):
        Training.from_folder(folder)


@pytest.mark.parametrize("options", [{"n_jobs": "x"}, {"max_iter": 0.5}, {"engine": 7}, {"method": "fast"}, {"w0": 3}])
def test_options_that_cannot_work_end_by_an_error_of_ours(options, begun):
    folder, _ = begun
    tampered(folder, options={"measure": "nDCG@10", **options})
    assert isinstance(invoked("resume", folder).exception, OptionError)


def test_a_second_command_in_one_folder_is_told_so(begun, file, monkeypatch, capsys):
    folder, model = begun
    words = ["train", file, "--model", model, "--checkpoint", folder, "--lam", "0.5"]
    for command in (["resume", folder], words):
        monkeypatch.setattr("sys.argv", ["rankopt", *map(str, command)])
        with claimed(folder), pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 5
        assert "in use: another process" in capsys.readouterr().err
    script = (
        "import sys, time; from rankopt.persistence.checkpoint import claimed\n"
        "with claimed(sys.argv[1]): print('it is mine', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "it is mine\n"
        assert "in use" in str(invoked("resume", folder).exception)
        other.kill()
    assert invoked("resume", folder, "--max-iter", 3).exit_code == 0


def test_a_folder_that_was_moved_goes_on_where_it_is(begun, tmp_path):
    folder, _ = begun
    moved = Path(os.rename(folder.parent, tmp_path / "there") or tmp_path / "there" / "kept")
    done = invoked("resume", moved, "--max-iter", 3)
    assert done.exit_code == 0, done.output
    assert load_model(tmp_path / "there" / "model").n_iter_ == 3
