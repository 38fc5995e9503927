"""`rankopt train --ranker`: one option for all; models are those of Python, and what can be is taken up again."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from problems.training import made

from formulations.registry import load
from rankopt.cli import rankopt as command
from rankopt.commands.train import train
from rankopt.commands.training_run import MANIFEST, RANKERS, Training
from rankopt.data import Queries, read_svmlight, write_svmlight
from rankopt.errors import OptionError
from rankopt.experimental import DirectBoostedRanker
from rankopt.rankers import (
    MODEL_CLASSES,
    DirectRanker,
    PairwiseRanker,
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
    return done.output


def test_the_choices_are_the_table_and_the_options_those_of_the_rankers():
    options = {option.name: option for option in train.params}
    assert list(options["ranker"].type.choices) == list(RANKERS)
    for kind in RANKERS.values():
        known = {*load(MODEL_CLASSES[kind.ranker])._get_param_names(), "loss", "every"}
        assert set(kind.takes) <= known & set(options)


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("words", "own"),
    [
        (
            ("smooth", "--sigma", 2, "--sigma", 0.5, "--max-iter", 9),
            SmoothRanker("nDCG@5", sigmas=(2, 0.5), max_iter=9),
        ),
        (("smooth", "--lam", 0, "--w0", "ranksvm"), SmoothRanker("nDCG@5", lam=0.0, w0="ranksvm")),
        (("pairwise", "--lam", 0.1), PairwiseRanker("nDCG@5", lam=0.1)),
        (("pairwise",), PairwiseRanker("nDCG@5")),
        (("regression",), RegressionRanker(measure="nDCG@5")),
        (("direct", "--max-iter", 20), DirectRanker("nDCG@5", max_iter=20)),
        (("direct-trees", "--jobs", 1), DirectBoostedRanker("nDCG@5", n_jobs=1)),
    ],
)
def test_the_model_is_that_of_python(files, words, own):
    model = files / "model"
    given = ("--ranker", *words, "--measure", "nDCG@5", "--validate", files / "test.txt", "--json")
    trained = json.loads(run("train", files / "train.txt", "--model", model, *given))
    own.fit(read_svmlight(files / "train.txt"), eval_set=read_svmlight(files / "test.txt"))
    loaded = load_model(model)
    assert type(loaded) is type(own)
    tested = read_svmlight(files / "test.txt")
    np.testing.assert_array_equal(loaded.predict(tested), own.predict(tested))
    assert trained.get("chosen", trained)["validation"] == own.eval_score_


def test_what_smooth_tells(files):
    model = files / "smooth"
    said = run("train", files / "train.txt", "--model", model, "--ranker", "smooth", "--lam", 1, "--lam", 0.1,
               "--validate", files / "test.txt")  # fmt: skip
    head = said.splitlines()[0]
    assert "gradient" in head
    assert "nDCG@10 in training" in head
    assert "bound" not in head
    assert "chosen" in said
    assert "ended because" not in said
    ranker = load_model(model)
    assert f"{ranker.certificate_.measure:.4f}" in said


def test_a_smooth_training_is_taken_up_again(files, tmp_path):
    (tmp_path / "here").mkdir()
    model, folder = tmp_path / "here" / "model", tmp_path / "here" / "kept"
    words = ("train", files / "train.txt", "--model", model, "--ranker", "smooth", "--sigma", 1, "--sigma", 0.1,
             "--time-limit", 1e-9, "--checkpoint", folder, "--checkpoint-every", 0)  # fmt: skip
    assert "time_limit" in run(*words)
    run("resume", folder, "--time-limit", 1000)
    own = SmoothRanker(sigmas=(1.0, 0.1)).fit(read_svmlight(files / "train.txt"))
    np.testing.assert_array_equal(load_model(model).coef_, own.coef_)
    known = json.loads((folder / MANIFEST).read_text())
    for changes in ({"ranker": "boosted"}, {"ranker": ["smooth"]}, {"options": {**known["options"], "map": "pairwise"}},
                    {"options": {**known["options"], "sigmas": ["1"]}}, {"decay": ["log"]}):  # fmt: skip
        (folder / MANIFEST).write_text(json.dumps({**known, **changes}))
        with pytest.raises(OptionError, match="is not what"):
            Training.kept(folder)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("smooth", "--bound", "convex"), "--bound is an option of --ranker margin and boosted, not of smooth"),
        (("pairwise", "--sigma", 1), "--sigma is an option of --ranker smooth, not of pairwise"),
        (("pairwise", "--loss", "squared"), "--loss is an option of --ranker margin, not of pairwise"),
        (("regression", "--checkpoint", "kept"), "--checkpoint is an option of --ranker margin"),
        (("smooth", "--lam", 1, "--lam", 2), "several --lam need --validate"),
        (("direct-trees", "--tol", 1), "--tol is an option of --ranker margin"),
        (("boosted", "--decay", "log", "--decay", "linear"), "several --decay are tried for --ranker margin"),
        (("oracle",), "is not one of"),
    ],
)
def test_options_of_other_rankers_are_refused(files, words, says):
    assert says in run("train", files / "train.txt", "--model", files / "none", "--ranker", *words, code=2)


def test_a_loss_without_planes_names_the_ranker_that_trains_it(files):
    done = CliRunner().invoke(
        command, [*map(str, ("train", files / "train.txt", "--model", files / "none", "--loss", "smooth"))]
    )
    assert done.exit_code != 0
    assert "SmoothRanker" in f"{done.output} {done.exception}"
