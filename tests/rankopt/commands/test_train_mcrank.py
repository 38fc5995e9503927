"""`rankopt train --ranker mcrank`: a classifier of grades goes through every command that a linear one does."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from problems.training import made

from rankopt.cli import rankopt
from rankopt.data import Queries, read_svmlight, write_svmlight
from rankopt.rankers import McRanker, load_model

CLASSES = ("--ranker", "mcrank")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mcrank")
    for seed, name in enumerate(["train.txt", "test.txt"]):
        X, y, qid = made(seed, queries=12, documents=10)
        write_svmlight(Queries.from_arrays(X, y, qid=qid), folder / name)
    return folder


def run(*arguments, code=0):
    done = CliRunner().invoke(rankopt, [*map(str, arguments)])
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.parametrize("expected", ["grade", "gain"])
def test_a_model_is_trained_saved_and_used(files, expected):
    model, scores = files / f"{expected}.rankopt", files / "scores.txt"
    given = (*CLASSES, "--expected", expected, "--measure", "nDCG@5", "--normalize", "rank", "--json")
    trained = json.loads(run("train", files / "train.txt", "--model", model, *given))
    ranker, test = load_model(model), read_svmlight(files / "test.txt")
    own = McRanker(expected=expected, measure="nDCG@5", normalize="rank").fit(read_svmlight(files / "train.txt"))
    assert (trained["rounds"], trained["grades"]) == (own.n_rounds_, own.classes_.tolist())
    np.testing.assert_array_equal(ranker.predict(test), own.predict(test))
    run("predict", model, files / "test.txt", "--output", scores)
    written = np.array([float(line) for line in scores.read_text().splitlines()])
    np.testing.assert_array_equal(written, own.predict(test))
    by_scores = json.loads(run("evaluate", files / "test.txt", "--scores", scores, "--json"))
    by_model = json.loads(run("evaluate", files / "test.txt", "--model", model, "--json"))
    assert by_scores["runs"][str(scores)]["measures"] == by_model["runs"][str(model)]["measures"]
    assert len(run("rank", model, files / "test.txt", "--k", 2).splitlines()) == 24


def test_validation_says_how_many_rounds(files):
    model = files / "validated.rankopt"
    said = run("train", files / "train.txt", "--model", model, *CLASSES, "--validate", files / "test.txt")
    ranker = load_model(model)
    assert f"{ranker.n_rounds_} rounds on 3 grades" in said
    assert f"nDCG@10 on validation {ranker.eval_score_:.4f}" in said


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((*CLASSES, "--lam", 1), "--lam is an option of --ranker margin and pairwise and smooth"),
        ((*CLASSES, "--bound", "convex"), "--bound is an option of --ranker margin and boosted, not of mcrank"),
        ((*CLASSES, "--decay", "log"), "--decay is an option of --ranker margin and boosted, not of mcrank"),
        (("--ranker", "boosted", "--expected", "gain"), "--expected is an option of --ranker mcrank, not of boosted"),
        (("--expected", "gain"), "--expected is an option of --ranker mcrank, not of margin"),
    ],
)
def test_options_of_other_rankers_are_refused(files, given, says):
    assert says in run("train", files / "train.txt", "--model", files / "none", *given, code=2)
