"""The command line: a ranker trained, applied and measured through files; errors with their exit codes."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from problems.command import called

from rankopt.cli import COMMANDS, main, rankopt
from rankopt.commands.train import train
from rankopt.data import load_sample, read_svmlight, write_svmlight
from rankopt.engines import ENGINES
from rankopt.losses import BOUNDS, LOSSES
from rankopt.optimize import METHODS, PENALTIES
from rankopt.optimize.method import Clock
from rankopt.rankers import LargeMarginRanker, LossRanker, load_model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    sample = load_sample("digits")
    write_svmlight(sample.train, folder / "train.txt")
    write_svmlight(sample.test, folder / "test.txt.gz")
    return folder


def run(*arguments, code=0):
    """The output of the command, which must end with this exit code."""
    return told_by(called(*arguments), code)


def run_apart(*arguments, code=0):
    """The same of the installed command, in a process of its own."""
    words = [sys.executable, "-m", "rankopt", *map(str, arguments)]
    return told_by(subprocess.run(words, capture_output=True, text=True, timeout=300), code)


def told_by(done, code):
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def test_train_predict_evaluate(files):
    model, scores = files / "m.rankopt", files / "scores.txt"
    trained = json.loads(
        run(
            "train", files / "train.txt", "--model", model, "--validate", files / "test.txt.gz",
            "--lam", 1, "--lam", 0.1, "--measure", "nDCG@5", "--decay", "linear",
            "--argmax", "scipy", "--master", "qpsolvers:piqp", "--json",
        )
    )  # fmt: skip
    assert [row["lam"] for row in trained["tried"]] == [1.0, 0.1]
    assert trained["chosen"]["validation"] == max(row["validation"] for row in trained["tried"])
    for row in trained["tried"]:
        assert row["bound"] <= row["objective"]
    run("predict", model, files / "test.txt.gz", "--output", scores)
    test = read_svmlight(files / "test.txt.gz")
    written = np.array([float(line) for line in scores.read_text().splitlines()])
    np.testing.assert_array_equal(written, load_model(model).predict(test))
    by_scores = json.loads(run_apart("evaluate", files / "test.txt.gz", "--scores", scores, "--json"))
    by_model = json.loads(run("evaluate", files / "test.txt.gz", "--model", model, "--json"))
    assert by_scores["runs"][str(scores)]["measures"] == by_model["runs"][str(model)]["measures"]


def test_a_loss_is_trained_by_its_name(files):
    model = files / "pairwise.rankopt"
    run("train", files / "train.txt", "--model", model, "--loss", "pairwise", "--lam", 0.1)
    trained = load_model(model)
    assert trained.certificate_.kind == "global"
    own = LossRanker("pairwise", lam=0.1).fit(read_svmlight(files / "train.txt"))
    np.testing.assert_array_equal(trained.coef_, own.coef_)


@pytest.mark.study
def test_decays_are_tried_with_each_lam_and_features_are_left_out(files):
    model = files / "sparse.rankopt"
    trained = json.loads(
        run(
            "train", files / "train.txt", "--model", model, "--validate", files / "test.txt.gz", "--json",
            "--penalty", "l1", "--lam", 0.02, "--lam", 0.005, "--decay", "log@10", "--decay", "linear",
        )
    )  # fmt: skip
    tried = [(row["decay"], row["lam"]) for row in trained["tried"]]
    assert tried == [(decay, lam) for decay in ("log@10", "linear") for lam in (0.02, 0.005)]
    assert trained["chosen"]["validation"] == max(row["validation"] for row in trained["tried"])
    kept = load_model(model)
    assert kept.penalty == "l1"
    assert (kept.decay, kept.lam_) == (trained["chosen"]["decay"], trained["chosen"]["lam"])
    assert kept.get_support().sum() == trained["chosen"]["features"] < kept.n_features_in_
    told = run("train", files / "train.txt", "--model", model, "--decay", "log", "--decay", "linear", code=2)
    assert "several --decay need --validate FILE" in told


def test_choices_are_those_of_the_tables():
    chosen = {option.name: option.type for option in train.params}
    tables = {"bound": BOUNDS, "loss": LOSSES, "method": METHODS, "engine": ENGINES, "penalty": PENALTIES}
    assert {name: list(chosen[name].choices) for name in tables} == {name: [*table] for name, table in tables.items()}


def test_several_runs_are_compared_in_pairs(files):
    rng = np.random.default_rng(0)
    test = read_svmlight(files / "test.txt.gz")
    for name, noise in (("good", 0.1), ("bad", 100.0)):
        values = test.to_caller(test.relevance + noise * rng.normal(size=test.n_documents))
        (files / name).write_text("".join(f"{value!r}\n" for value in values.tolist()))
    told = json.loads(
        run("evaluate", files / "test.txt.gz", "--scores", files / "bad", "--scores", files / "good", "--json")
    )
    assert all(pair["difference"] > 0 and pair["p_randomization"] < 0.05 for pair in told["compared"])
    shown = run("evaluate", files / "test.txt.gz", "--scores", files / "bad", "--scores", files / "good")
    assert "95% interval" in shown
    assert "against" in shown


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["train", "{train}"], 2, "--model"),
        (["train", "{missing}", "--model", "{out}"], 2, "does not exist"),
        (["train", "{train}", "--model", "{out}", "--lam", "1", "--lam", "2"], 2, "--validate"),
        (["train", "{train}", "--model", "{out}", "--lam", "-1"], 5, "positive"),
        (["train", "{train}", "--model", "{out}", "--measure", "nDGC@10"], 5, "nDCG"),
        (["train", "{train}", "--model", "{out}", "--argmax", "gurobi"], 5, "known are"),
        (["train", "{broken}", "--model", "{out}"], 3, "line 2"),
        (["train", "{train}", "--model", "{missing}/m"], 2, "there is no folder"),
        (["predict", "{train}", "{train}", "--output", "-"], 4, "ModelError"),
        (["predict", "{train}", "{train}", "--output", "-", "--json"], 2, "standard output"),
        (["evaluate", "{train}", "--scores", "{short}", "--scores", "{short}"], 2, "twice"),
        (["evaluate", "{train}"], 2, "--scores"),
        (["evaluate", "{train}", "--scores", "{broken}"], 3, "one score a line"),
        (["evaluate", "{train}", "--scores", "{short}"], 3, "2 scores"),
        (["evaluate", "{train}", "--scores", "{short}", "--convention", "leto"], 5, "letor2"),
        (["frobnicate"], 2, "No such command"),
        (["train", "{train}", "--model", "{out}", "--loss", "listnet"], 2, "'pairwise'"),
        (["train", "{train}", "--model", "{out}", "--loss", "pairwise", "--bound", "convex"], 2, "--bound is"),
    ],
)
def test_errors_name_the_cure_and_have_codes(files, arguments, code, message):
    (files / "broken.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:nan\n")
    (files / "short.txt").write_text("0.5\n0.25\n")
    places = {
        "train": files / "train.txt", "missing": files / "missing", "out": files / "out.rankopt",
        "broken": files / "broken.txt", "short": files / "short.txt",
    }  # fmt: skip
    told = run(*(argument.format(**places) for argument in arguments), code=code)
    assert message in told
    assert "Traceback" not in told
    assert not (files / "out.rankopt").exists()


@pytest.mark.study
def test_exit_codes_and_words_leave_the_process(files):
    told = run_apart("train", files / "train.txt", "--model", files / "none.rankopt", "--lam", -1, code=5)
    assert "positive" in told
    assert "Traceback" not in told
    assert not (files / "none.rankopt").exists()


@pytest.mark.study
def test_scores_go_down_a_pipe_and_leave_it_a_pipe(files):
    model, pipe = files / "piped.rankopt", files / "pipe"
    LargeMarginRanker(bound="convex", lam=0.1).fit(read_svmlight(files / "train.txt")).save(model)
    os.mkfifo(pipe)
    command = [
        sys.executable,
        "-m",
        "rankopt",
        "predict",
        str(model),
        str(files / "test.txt.gz"),
        "--output",
        str(pipe),
    ]
    with subprocess.Popen(command) as process, open(pipe) as written:
        scores = written.read().split()
        assert process.wait(timeout=60) == 0
    assert len(scores) == read_svmlight(files / "test.txt.gz").n_documents
    assert pipe.is_fifo()


def test_the_doctor_finds_every_solver_healthy():
    report = json.loads(run("doctor", "--json"))
    assert report["healthy"], [row for row in report["solvers"] if not row["works"]]
    assert {"exact", "scipy", "ortools", "highs", "networkx", "active_set"} <= {r["solver"] for r in report["solvers"]}


def test_help_loads_nothing_heavy():
    told = run_apart("--help")
    assert all(name in told for name in COMMANDS)
    code = (
        "import sys; from rankopt.cli import rankopt; rankopt(['--help'], standalone_mode=False);"
        "sys.exit(', '.join({'numpy', 'sklearn', 'cvxpy', 'numba', 'scipy', 'matplotlib'} & {*sys.modules}) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command):
    told = CliRunner().invoke(rankopt, [command, "--help"])
    assert told.exit_code == 0
    assert "--json" in told.output


def test_ctrl_c_saves_the_best_weights(files, monkeypatch, capsys):
    model = files / "interrupted.rankopt"
    record = Clock.record

    def interrupted(clock, state):
        if len(clock.steps) == 5:
            raise KeyboardInterrupt
        return record(clock, state)

    monkeypatch.setattr(Clock, "record", interrupted)
    monkeypatch.setattr(
        sys,
        "argv",
        ["rankopt", "train", str(files / "train.txt"), "--model", str(model), "--w0", "regression", "--lam", "0.1"],
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert "interrupted" in capsys.readouterr().err
    certificate = load_model(model).certificate_
    assert certificate.stop == "interrupted from the keyboard"
    assert certificate.bound <= certificate.primal
