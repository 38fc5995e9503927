"""`rankopt train --ranker boosted`: a model of trees goes through every command that a linear one goes through."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from problems.training import made

from rankopt.cli import rankopt
from rankopt.data import Queries, read_svmlight, write_svmlight
from rankopt.rankers import BoostedRanker, load_model

pytest.importorskip("lightgbm", reason="needs rankopt[boosting]")

TREES = ("--ranker", "boosted")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trees")
    for seed, name in enumerate(["train.txt", "test.txt"]):
        X, y, qid = made(seed, queries=12, documents=10)
        write_svmlight(Queries.from_arrays(X, y, qid=qid), folder / name)
    return folder


def run(*arguments, code=0):
    done = CliRunner().invoke(rankopt, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output


def test_trees_are_trained_saved_and_used(files):
    model, scores = files / "trees.rankopt", files / "scores.txt"
    trained = json.loads(
        run("train", files / "train.txt", "--model", model, *TREES, "--measure", "nDCG@5", "--decay", "log", "--json")
    )
    ranker, test = load_model(model), read_svmlight(files / "test.txt")
    own = BoostedRanker("nDCG@5", decay="log").fit(read_svmlight(files / "train.txt"))
    assert trained["rounds"] == own.n_rounds_
    np.testing.assert_array_equal(ranker.predict(test), own.predict(test))
    run("predict", model, files / "test.txt", "--output", scores)
    written = np.array([float(line) for line in scores.read_text().splitlines()])
    np.testing.assert_array_equal(written, own.predict(test))
    by_scores = json.loads(run("evaluate", files / "test.txt", "--scores", scores, "--json"))
    by_model = json.loads(run("evaluate", files / "test.txt", "--model", model, "--json"))
    assert by_scores["runs"][str(scores)]["measures"] == by_model["runs"][str(model)]["measures"]
    lines = run("rank", model, files / "test.txt", "--k", 2).splitlines()
    assert len(lines) == 24


def test_validation_says_how_many_trees(files):
    model = files / "validated.rankopt"
    said = run("train", files / "train.txt", "--model", model, *TREES, "--validate", files / "test.txt")
    ranker = load_model(model)
    assert f"{len(ranker.trees_)} models of {ranker.n_rounds_} trees" in said
    assert f"nDCG@10 on validation {ranker.eval_score_:.4f}" in said


@pytest.mark.parametrize(
    ("option", "value"), [("--lam", 1), ("--loss", "pairwise"), ("--master", "auto"), ("--w0", "zeros"), ("--tol", 0.1)]
)
def test_options_of_linear_rankers_are_refused(files, option, value):
    said = run("train", files / "train.txt", "--model", files / "none", *TREES, option, value, code=2)
    assert f"{option} is an option of --ranker margin" in said
    assert "not of boosted" in said


def test_where_nothing_can_be_written_is_said_before_training(files):
    run("train", files / "train.txt", "--model", files / "no" / "model", *TREES, code=2)
