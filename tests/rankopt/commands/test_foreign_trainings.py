"""`rankopt resume` of a folder that somebody else made: it writes beside it, and asks before it replaces."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from rankopt.cli import main, rankopt
from rankopt.commands.training_run import MANIFEST, Training
from rankopt.data import load_sample, write_svmlight
from rankopt.errors import OptionError
from rankopt.persistence.checkpoint import claimed
from rankopt.rankers import load_model


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
    done = run("train", file, "--model", model, "--checkpoint", folder, "--lam", "0.5", "--max-iter", 2)
    assert done.exit_code == 0, done.output
    return folder, model


def run(*words, input=None):
    return CliRunner().invoke(rankopt, [str(word) for word in words], input=input)


def told(folder, **changes):
    """Let the training of this folder say something else."""
    known = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**known, **changes}))


def test_its_own_model_is_replaced_without_a_question(begun):
    folder, model = begun
    before = model.read_bytes()
    done = run("resume", folder, "--max-iter", 4)
    assert done.exit_code == 0, done.output
    assert model.read_bytes() != before
    assert load_model(model).n_iter_ == 4
    assert run("resume", folder, "--max-iter", 5).exit_code == 0


def test_a_file_that_was_there_when_training_began_is_its_own(file, tmp_path):
    (tmp_path / "model").write_text("of yesterday")
    words = ("train", file, "--model", tmp_path / "model", "--checkpoint", tmp_path / "kept", "--lam", "0.5")
    assert run(*words, "--max-iter", 2).exit_code == 0
    (tmp_path / "model").write_text("of yesterday")  # as if it had been killed before it wrote
    assert run("resume", tmp_path / "kept", "--max-iter", 3).exit_code == 0
    assert load_model(tmp_path / "model").n_iter_ == 3


def test_a_foreign_folder_writes_beside_itself(begun, tmp_path):
    folder, _ = begun
    victim = tmp_path / "victim"
    victim.write_text("precious")
    told(folder, model=str(victim))
    done = run("resume", folder, "--max-iter", 3)
    assert done.exit_code == 0, done.output
    assert "is not beside" in done.output
    assert victim.read_text() == "precious"
    assert load_model(folder.parent / "victim").n_iter_ == 3
    told(folder, model=str(victim))
    assert run("resume", folder, "--max-iter", 3, "--model", tmp_path / "mine").exit_code == 0
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
        done = run(*words, input=answer)
        assert isinstance(done.exception, OptionError)
        assert "did not write it; say --model FILE, or --yes" in str(done.exception)
        assert victim.read_text() == "precious"
        assert not (tmp_path / "nothing").exists()
        assert kind != "file" or there.read_text() == "precious"
    done = run(*words, input="y\n") if kind == "file" else run(*words, "--yes")
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
    run("resume", folder, "--max-iter", 3, "--yes")
    assert victim.read_text() == "precious"
    assert (tmp_path / "training").read_text() == known
    (folder / "lam0").rename(tmp_path / "lam0")
    (folder / "lam0").symlink_to(other)
    done = run("resume", folder, "--max-iter", 4, "--yes")
    assert isinstance(done.exception, OptionError)
    assert "is a link" in str(done.exception)
    assert list(other.iterdir()) == []


@pytest.mark.every(3)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"lam": []}, "lam is empty"),
        ({"lam": ["x"]}, "'x' is no number"),
        ({"lam": [float("nan")]}, "'nan' is no number"),
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
        ({"options": {"measure": "nDCG", "loss": "pairwise", "bound": "convex"}}, "'bound' = 'convex' is no option"),
        ({"more": 1}, "unexpected keyword argument 'more'"),
    ],
)
def test_a_training_that_we_would_not_write_is_refused(changes, words, begun):
    folder, model = begun
    before = model.read_bytes()
    told(folder, **changes)
    with pytest.raises(OptionError, match=r"training\.json is not what `rankopt train` writes .*begin anew") as refused:
        Training.kept(folder)
    assert words in str(refused.value)
    assert isinstance(run("resume", folder).exception, OptionError)
    assert model.read_bytes() == before


@pytest.mark.every(5)
@pytest.mark.parametrize(
    "text", ["", "7", "[]", "{", "[" * 100_000, '{"lam":' + "9" * 5000 + "}", '{"lam": [1]}', " " * (2 << 20), "\xff"]
)
def test_a_training_that_is_not_its_json_is_refused(text, begun):
    folder, _ = begun
    (folder / MANIFEST).write_bytes(text.encode("latin-1"))
    with pytest.raises(OptionError, match="is not what `rankopt train` writes"):
        Training.kept(folder)


@pytest.mark.parametrize("options", [{"n_jobs": "x"}, {"max_iter": 0.5}, {"engine": 7}, {"method": "fast"}, {"w0": 3}])
def test_options_that_cannot_work_end_by_an_error_of_ours(options, begun):
    folder, _ = begun
    told(folder, options={"measure": "nDCG@10", **options})
    assert isinstance(run("resume", folder).exception, OptionError)


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
        assert "in use" in str(run("resume", folder).exception)
        other.kill()
    assert run("resume", folder, "--max-iter", 3).exit_code == 0


def test_a_folder_that_was_moved_goes_on_where_it_is(begun, tmp_path):
    folder, _ = begun
    moved = Path(os.rename(folder.parent, tmp_path / "there") or tmp_path / "there" / "kept")
    done = run("resume", moved, "--max-iter", 3)
    assert done.exit_code == 0, done.output
    assert load_model(tmp_path / "there" / "model").n_iter_ == 3
