"""`rankopt train`: options come from the rankers, models are those of Python, every command takes them."""

import json
import re
from html import unescape

import numpy as np
import pytest
from click.testing import CliRunner
from problems.training import made

from rankopt.cli import rankopt as command
from rankopt.commands.options import CLI_NAMES, EXCLUDED, EXTRA, RANKERS, TRIED, options_of, parameters_of
from rankopt.commands.training_run import MANIFEST, Training
from rankopt.data import Queries, load_sample, read_svmlight, write_svmlight
from rankopt.errors import OptionError
from rankopt.experimental import DirectBoostedRanker
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
        (("smooth", "--bound", "convex"), "--bound is an option of --ranker margin and boosted, not of smooth"),
        (("pairwise", "--bandwidth", 1), "--bandwidth is an option of --ranker smooth, not of pairwise"),
        (("pairwise", "--loss", "rescaled"), "--loss is an option of --ranker loss, not of pairwise"),
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
