"""`rankopt train`: options come from the rankers, models are those of Python, every command takes them."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from html import unescape
from pathlib import Path
from zipfile import is_zipfile

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from problems.command import called
from problems.same_bits import assert_same
from problems.training import made

from rankopt.cli import main, rankopt
from rankopt.cli import rankopt as command
from rankopt.commands.options import CLI_NAMES, EXCLUDED, EXTRA, RANKERS, TRIED, options_of, parameters_of
from rankopt.commands.training_run import MANIFEST, Training
from rankopt.constraints import Admissible
from rankopt.data import Queries, load_sample, read_svmlight, read_table, write_svmlight
from rankopt.errors import OptionError
from rankopt.experimental import DirectBoostedRanker
from rankopt.optimize.certificate import Stop
from rankopt.persistence.checkpoint import Checkpoint
from rankopt.rankers import (
    BoostedRanker,
    DirectRanker,
    LargeMarginRanker,
    PairwiseRanker,
    RandomDirections,
    RegressionRanker,
    SmoothRanker,
    load_model,
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rankers")
    for seed, name in enumerate(["train.txt", "test.txt"]):
        X, y, qid = made(seed, queries=12, documents=10)
        write_svmlight(Queries.from_arrays(X, y, qid=qid), folder / name)
    return folder


def run(*arguments, code=0):
    done = CliRunner().invoke(command, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.output


def trained(files, model, *words):
    return json.loads(run("train", files / "train.txt", "--model", model, *words, "--json"))


@pytest.mark.parametrize("name", RANKERS)
def test_every_parameter_has_an_option_with_help(name):
    parameters, options = parameters_of(RANKERS[name]), options_of(RANKERS[name])
    assert {*parameters} - {"directions"} <= {*options} | {*EXCLUDED}
    for option in options.values():
        assert option.help or option.name == "window", option
        expected = CLI_NAMES.get(option.name, option.name.replace("_", "-"))
        assert option.opts[0].removeprefix("--") in (expected, "checkpoint-every")
        assert option.multiple == (option.name in TRIED or option.name == "bandwidths")
    said = run("train", "--ranker", name, "--help")
    assert all(option.opts[0] in said for option in options.values())
    assert all(option.name in options for key in EXTRA if key in parameters for option in EXTRA[key])


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("words", "own"),
    [
        (
            ("smooth", "--bandwidth", 2, "--bandwidth", 0.5, "--max-iter", 9),
            SmoothRanker("nDCG@5", bandwidths=(2, 0.5), max_iter=9),
        ),
        (("smooth", "--lam", 0, "--init", "ranksvm"), SmoothRanker("nDCG@5", lam=0.0, w0="ranksvm")),
        (("pairwise", "--lam", 0.1), PairwiseRanker("nDCG@5", lam=0.1)),
        (("pairwise",), PairwiseRanker("nDCG@5")),
        (("regression",), RegressionRanker(measure="nDCG@5")),
        (("regression", "--target", "gain"), RegressionRanker(target="gain", measure="nDCG@5")),
        (("direct", "--max-iter", 20), DirectRanker("nDCG@5", max_iter=20)),
        (
            ("direct", "--init", "ridge", "--step-rule", "middle", "--powell", "--n-random-directions", 2,
             "--random-state", 3),
            DirectRanker("nDCG@5", init="ridge", step_rule="middle", directions=("coordinates", "powell",
            RandomDirections(2)),
                         random_state=3),
        ),
        (
            ("direct", "--init", "zeros", "--n-restarts", 3, "--aggregate", "best", "--selection", "greedy"),
            DirectRanker("nDCG@5", init="zeros", n_restarts=3, aggregate="best", selection="greedy"),
        ),
        (("direct-trees", "--n-estimators", 5), DirectBoostedRanker("nDCG@5", n_estimators=5)),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:the start w0 was best")  # of some of these
def test_the_model_is_that_of_python(files, words, own, tmp_path):
    given = ("--ranker", *words, "--measure", "nDCG@5", "--validate", files / "test.txt")
    told = trained(files, tmp_path / "model", *given)
    own.fit(read_svmlight(files / "train.txt"), eval_set=read_svmlight(files / "test.txt"))
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(own)
    tested = read_svmlight(files / "test.txt")
    np.testing.assert_array_equal(loaded.predict(tested), own.predict(tested))
    assert told["chosen"]["validation"] == own.best_score_


def test_what_direct_reports_and_its_checkpoint(files, tmp_path):
    words = ("--ranker", "direct", "--init", "ridge", "--n-restarts", 2, "--checkpoint", tmp_path / "kept")
    page = tmp_path / "page.html"
    told = trained(files, tmp_path / "model", *words, "--report", page)["chosen"]
    own = load_model(tmp_path / "model")
    assert (told["measure"], told["epsilon"]) == (own.certificate_.value, own.certificate_.epsilon)
    again = json.loads(run("resume", tmp_path / "kept", "--json"))["chosen"]  # from the checkpoint of its end
    assert {**again, "seconds": 0} == {**told, "seconds": 0}
    text = unescape(page.read_text(encoding="utf-8"))
    assert str(own.certificate_) in text
    assert text.count("<svg") == 2  # the climb and the weights
    assert "nDCG@10 on other queries is not known" in re.search(r'class="finding">(.*?)</p>', text)[1]


@pytest.mark.parametrize("name", ["margin", "regression"])
def test_the_page_of_other_rankers(files, name, tmp_path):
    page = tmp_path / "page.html"
    words = ("--ranker", name, "--validate", files / "test.txt", "--report", page)
    told = trained(files, tmp_path / "model", *words)["chosen"]
    text = unescape(page.read_text(encoding="utf-8"))
    assert f"nDCG@10 on validation is {told['validation']:.4f}" in text
    assert text.count("<svg") == (2 if name == "margin" else 1)


def test_what_smooth_tells(files, tmp_path):
    model = tmp_path / "smooth"
    said = run("train", files / "train.txt", "--model", model, "--ranker", "smooth", "--lam", 1, "--lam", 0.1,
               "--validate", files / "test.txt")  # fmt: skip
    head = said.splitlines()[0]
    assert "gradient" in head
    assert "nDCG@10 in training" in head
    assert "bound" not in head
    assert "chosen" in said
    assert "ended because" not in said
    assert f"{load_model(model).certificate_.measure:.4f}" in said


def test_a_smooth_training_is_taken_up_again(files, tmp_path):
    (tmp_path / "here").mkdir()
    model, folder = tmp_path / "here" / "model", tmp_path / "here" / "kept"
    words = ("train", files / "train.txt", "--model", model, "--ranker", "smooth", "--bandwidth", 1, "--bandwidth", 0.1,
             "--time-limit", 1e-9, "--checkpoint", folder, "--checkpoint-every", 0)  # fmt: skip
    assert "time_limit" in run(*words)
    run("resume", folder, "--time-limit", 1000)
    own = SmoothRanker(bandwidths=(1.0, 0.1)).fit(read_svmlight(files / "train.txt"))
    np.testing.assert_array_equal(load_model(model).coef_, own.coef_)
    known = json.loads((folder / MANIFEST).read_text())
    for changes in ({"ranker": "boosted"}, {"ranker": ["smooth"]},
                    {"options": {**known["options"], "feature_map": "pairwise"}},
                    {"options": {**known["options"], "bandwidths": ["1"]}}, {"position_weights": ["log"]}):  # fmt: skip
        (folder / MANIFEST).write_text(json.dumps({**known, **changes}))
        with pytest.raises(OptionError, match="is not a file of"):
            Training.from_folder(folder)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("smooth", "--bound", "convex"), "--bound is an option of --ranker margin and boosted, not smooth"),
        (("pairwise", "--bandwidth", 1), "--bandwidth is an option of --ranker smooth, not pairwise"),
        (("pairwise", "--loss", "rescaled"), "--loss is an option of --ranker loss, not pairwise"),
        (("loss", "--feature-map", "pairwise"), "--feature-map is an option of --ranker margin and boosted"),
        (("regression", "--checkpoint", "kept"), "--checkpoint is an option of --ranker margin"),
        (("regression", "--lam", 1), "--lam is an option of --ranker margin and loss and pairwise and smooth"),
        (
            ("regression", "--position-weights", "log"),
            "--position-weights is an option of --ranker margin and boosted, not",
        ),
        (("boosted", "--init", "zeros"), "--init is an option of --ranker margin"),
        (("direct-trees", "--tol", 1), "--tol is an option of --ranker margin"),
        (("smooth", "--lam", 1, "--lam", 2), "several --lam need --validate"),
        (("boosted", "--position-weights", "log", "--position-weights", "linear"), "several --position-weights need"),
        (("direct", "--n-random-directions", -1), "--n-random-directions"),
        (("oracle",), "is not one of"),
        (("margin", "--no-such-option"), "No such option"),
    ],
)
def test_options_of_other_rankers_are_refused(files, words, says):
    said = run("train", files / "train.txt", "--model", files / "none", "--ranker", *words, code=2)
    assert says in " ".join(said.split())


def test_where_nothing_can_be_written_is_said_before_training(files):
    run("train", files / "train.txt", "--model", files / "no" / "model", "--ranker", "regression", code=2)


def test_a_start_that_validation_likes_best_is_said_and_progress_ends_with_the_last_step(tmp_path):
    X, y, qid = made(seed=1, queries=24)
    for name, rows in (("train", qid < 12), ("valid", qid >= 12)):
        write_svmlight(Queries.from_arrays(X[rows], y[rows], qid=qid[rows]), tmp_path / f"{name}.txt")
    words = ("--measure", "nDCG@5", "--bound", "tie-aware", "--lam", "1e-3", "--validate", tmp_path / "valid.txt")
    done = called("train", tmp_path / "train.txt", "--model", tmp_path / "m", *words)
    model = load_model(tmp_path / "m")
    assert np.array_equal(model.coef_, model.w0_)
    assert "The start (ridge) was best on --validate: training did not improve it." in done.stdout
    assert "the start w0 was best on --validate, and weights and gap are of the start" in done.stdout
    assert f"step {model.n_iter_}: objective" in done.stderr.splitlines()[-1]


def test_a_loss_without_planes_names_the_ranker_that_trains_it(files):
    words = ("train", files / "train.txt", "--model", files / "none", "--loss", "smooth")
    done = CliRunner().invoke(command, [*map(str, words)])
    assert done.exit_code != 0
    assert "SmoothRanker" in f"{done.output} {done.exception}"


def goes_through_every_command(files, tmp_path, words, own):
    """Train, predict, evaluate, rank; returns the row of the report."""
    model, scores = tmp_path / "model", tmp_path / "scores.txt"
    told = trained(files, model, *words)["chosen"]
    own.fit(read_svmlight(files / "train.txt"))
    ranker, test = load_model(model), read_svmlight(files / "test.txt")
    np.testing.assert_array_equal(ranker.predict(test), own.predict(test))
    run("predict", model, files / "test.txt", "--output", scores)
    written = np.array([float(line) for line in scores.read_text().splitlines()])
    np.testing.assert_array_equal(written, own.predict(test))
    by_scores = json.loads(run("evaluate", files / "test.txt", "--scores", scores, "--json"))
    by_model = json.loads(run("evaluate", files / "test.txt", "--model", model, "--json"))
    assert by_scores["runs"][str(scores)]["measures"] == by_model["runs"][str(model)]["measures"]
    assert len(run("rank", model, files / "test.txt", "--k", 2).splitlines()) == 24
    return told


def test_trees_are_trained_saved_and_used(files, tmp_path):
    pytest.importorskip("lightgbm", reason="needs rankopt[boosting]")
    words = ("--ranker", "boosted", "--measure", "nDCG@5", "--position-weights", "log")
    own = BoostedRanker("nDCG@5", position_weights="log")
    assert goes_through_every_command(files, tmp_path, words, own)["rounds"] == own.n_rounds_
    model = next(path for path in tmp_path.iterdir() if is_zipfile(path))
    head, _, first, *_ = run("explain", model, files / "test.txt").splitlines()
    assert head == "What the trees split by"
    assert first.split()[-1] == f"{own.feature_importances_.max():.1%}"


def test_validation_says_how_many_rounds(files, tmp_path):
    pytest.importorskip("lightgbm", reason="needs rankopt[boosting]")
    words = ("--model", tmp_path / "model", "--ranker", "boosted", "--validate", files / "test.txt")
    head, row, *_ = run("train", files / "train.txt", *words).splitlines()
    ranker = load_model(tmp_path / "model")
    assert row.split() == [str(len(ranker.estimators_)), str(ranker.n_rounds_),
                           row.split()[-2], f"{ranker.best_score_:.4f}"]  # fmt: skip
    assert head.endswith("nDCG@10 on validation")


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder, sample = tmp_path_factory.mktemp("maps"), load_sample("digits")
    write_svmlight(sample.train, folder / "train.txt")
    write_svmlight(sample.test, folder / "test.txt")
    return folder


@pytest.mark.study
@pytest.mark.filterwarnings("ignore:the start w0 was best")
@pytest.mark.parametrize(
    ("measure", "name"), [("AP", "pairwise"), ("RR", "first-relevant"), ("AP + 2 nDCG@5[positional]", "pairwise")]
)
def test_a_model_of_a_map_goes_through_every_command(digits, measure, name, tmp_path):
    model = tmp_path / "model"
    told = trained(digits, model, "--measure", measure, "--feature-map", name, "--validate", digits / "test.txt",
                   "--lam", 0.1, "--lam", 1, "--checkpoint", tmp_path / "kept")  # fmt: skip
    loaded, queries = load_model(model), read_svmlight(digits / "train.txt")
    assert (loaded.feature_map, str(loaded.measure)) == (name, measure)
    one = LargeMarginRanker(measure, feature_map=name, lam=told["chosen"]["lam"])
    np.testing.assert_array_equal(loaded.coef_, one.fit(queries, eval_set=read_svmlight(digits / "test.txt")).coef_)
    again = json.loads(run("resume", tmp_path / "kept", "--json", "--yes"))
    assert again["chosen"]["objective"] == told["chosen"]["objective"]
    assert measure in run("evaluate", digits / "test.txt", "--model", model, "--measure", measure)
    run("explain", model, digits / "test.txt", "--report", tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000


def test_maps_that_do_not_fit_are_option_errors(digits, tmp_path):
    words = ["train", digits / "train.txt", "--model", tmp_path / "model"]
    for name in ("first-relevant", "pairs"):
        told = CliRunner().invoke(command, [*map(str, words), "--feature-map", name])
        assert isinstance(told.exception, OptionError)
        assert "positional" in str(told.exception)


@pytest.mark.study
@pytest.mark.parametrize(
    ("named", "solvers"),
    [
        (("--argmax-solvers", "exact"), ("exact",)),
        pytest.param((), ("exact", "ortools", "highs", "cvxpy:CLARABEL"), marks=pytest.mark.study),
    ],
)
def test_the_usual_solvers_that_take_the_form_are_swapped_under_a_map(named, solvers):
    words = ["swap", "--feature-map", "pairwise", "--measure", "AP", "--master-solvers", "none", "--json", *named]
    told = json.loads(run(*words, "--methods", "none", "--problems", 3, "--repeats", 1, "--no-train"))
    solved = {row["solver"]: row["solved"] for row in told["summary"]}
    assert solved == dict.fromkeys(solvers, 3)


# `rankopt train --checkpoint` and `rankopt resume`: a killed command continues to the same model; foreign folders are


@pytest.fixture(scope="module")
def files_resumed(tmp_path_factory):
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
def test_a_command_killed_at_any_moment_goes_on_to_the_same_model(files_resumed, tmp_path):
    """SIGKILL at random moments: before the first step, between two, in the midst of writing, at the end."""
    folder, whole = files_resumed
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


def test_ctrl_c_saves_the_model_so_far_and_the_run_goes_on(files_resumed, tmp_path):
    folder, whole = files_resumed
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


def test_limits_of_a_command_may_be_raised(files_resumed, tmp_path):
    folder, whole = files_resumed
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
def test_folders_that_do_not_fit_are_errors_with_codes(command, code, told, files_resumed, tmp_path):
    folder, _ = files_resumed
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
    for line in (["resume", folder], words):
        monkeypatch.setattr("sys.argv", ["rankopt", *map(str, line)])
        with Checkpoint(folder).claimed(), pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 5
        assert "in use: another process" in capsys.readouterr().err
    script = (
        "import sys, time; from rankopt.persistence.checkpoint import Checkpoint\n"
        "with Checkpoint(sys.argv[1]).claimed(): print('it is mine', flush=True); time.sleep(60)"
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


def test_rankers_that_ignore_quotas_and_shared_queries_are_named(tmp_path):
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 2)) * [1.0, 1e4]
    table = pd.DataFrame(features, columns=["f", "g"]).assign(qid=np.repeat(np.arange(5), 8), shop=list("aaaaabbb") * 5)
    table["relevance"] = rng.integers(0, 3, 40)
    table.to_csv(data := tmp_path / "t.csv", index=False)
    words = ["train", data, "--model", tmp_path / "m", "--k", 4, "--at-most", "1:shop", "--on-infeasible", "truncate"]
    ignored = [*words, "--ranker", "pairwise", "--validate", data, "--lam", 1, "--lam", "scale"]
    done = CliRunner().invoke(rankopt, [*map(str, ignored)])
    assert "--ranker pairwise is trained without the quotas" in done.stderr
    assert "validation: 5 of 5 lists are shorter than 4 (shortest: 2)" in done.stderr
    assert done.stderr.count("warning: 5 of 5 queries of --validate are training queries") == 1
    assert "fit 2 of 2: --lam scale" in done.stderr
    assert "on validation under the quotas" in done.stdout
    assert "scale = " in done.stdout
    assert "The features are of very different scale (deviations" in done.stdout
    assert "without the quotas" not in CliRunner().invoke(rankopt, [*map(str, words)]).stderr


def test_training_under_quotas_is_that_of_python_and_can_be_resumed(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(40, 2)), columns=["f", "g"]).assign(
        qid=np.repeat(np.arange(5), 8), relevance=rng.integers(0, 3, 40), group=list("aaabbbbb") * 5
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["--measure", "nDCG@3", "--lam", 0.1, "--k", 3, "--at-least", "60%:group=a"]
    data = tmp_path / "t.csv"
    run("train", data, "--model", tmp_path / "m", *words, "--checkpoint", tmp_path / "c", "--max-iter", 1)
    rules = Admissible(3).at_least(share=0.6, documents={"group": "a"})
    assert load_model(tmp_path / "m").constraints == rules
    run("resume", tmp_path / "c", "--max-iter", 500)
    expected = LargeMarginRanker("nDCG@3", lam=0.1, constraints=rules, max_iter=500).fit(read_table(data))
    np.testing.assert_array_equal(load_model(tmp_path / "m").coef_, expected.coef_)
    assert "takes no quotas; use one of margin" in run(
        "train", data, "--model", tmp_path / "m", "--ranker", "regression", *words[4:], code=2
    )
    assert "need a table with the column 'sex'" in run(
        "train", data, "--model", tmp_path / "m", "--k", 3, "--at-most", "1:sex", code=2
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [("(0, None)", (0, None)), ("[[0, 1], [null, 0]]", [(0, 1), (None, 0)]), ("{'b': (None, 0)}", {"b": (None, 0)})],
)
def test_limits_of_weights_are_written_as_in_python_or_json(written, read, tmp_path):
    X, y, qid = made(3, queries=12, documents=10)
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(qid=qid, relevance=y)
    frame.to_csv(tmp_path / "train.csv", index=False)
    begun = ("--coef-bounds", written, "--checkpoint", tmp_path / "kept")
    run("train", tmp_path / "train.csv", "--model", tmp_path / "model", *begun)
    expected = LargeMarginRanker(coef_bounds=read).fit(read_table(tmp_path / "train.csv"))
    for _ in range(2):
        np.testing.assert_array_equal(load_model(tmp_path / "model").coef_, expected.coef_)
        run("resume", tmp_path / "kept")


def test_monotone_constraints_are_a_list_or_a_mapping(files, tmp_path):
    words = ("train", files / "train.txt", "--model", tmp_path / "model", "--ranker", "boosted", "--n-estimators", "2")
    run(*words, "--monotone-constraints", "[1, 0, 0, -1]")
    assert load_model(tmp_path / "model").monotone_constraints == [1, 0, 0, -1]
    assert "no list or mapping" in run(*words, "--monotone-constraints", "up", code=2)
