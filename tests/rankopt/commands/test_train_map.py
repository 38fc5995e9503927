"""`rankopt train --map` and mixes of measures on the command line: trained, saved, taken up again, explained."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from rankopt.cli import rankopt
from rankopt.commands.train import train
from rankopt.data import load_sample, read_svmlight, write_svmlight
from rankopt.losses import MAPS
from rankopt.rankers import LargeMarginRanker, load_model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("maps")
    sample = load_sample("digits")
    write_svmlight(sample.train, folder / "train.txt")
    write_svmlight(sample.test, folder / "test.txt")
    return folder


def run(*words, code=0):
    """What a command says."""
    done = CliRunner().invoke(rankopt, [*map(str, words)])
    assert done.exit_code == code, done.output
    return done.output


def test_the_choices_are_those_of_the_table():
    (option,) = [one for one in train.params if one.name == "map"]
    assert [*option.type.choices] == [*MAPS]


@pytest.mark.study
@pytest.mark.parametrize(
    ("measure", "name"),
    [
        ("AP", "pairwise"),
        *(
            pytest.param(measure, name, marks=pytest.mark.study)
            for measure, name in [("RR", "first-relevant"), ("AP + 2 nDCG@5[positional]", "pairwise")]
        ),
    ],
)
def test_a_model_of_a_map_goes_through_every_command(files, measure, name, tmp_path):
    model = tmp_path / "model"
    told = json.loads(
        run("train", files / "train.txt", "--model", model, "--measure", measure, "--map", name, "--json",
            "--validate", files / "test.txt", "--lam", 0.1, "--lam", 1, "--checkpoint", tmp_path / "kept")
    )  # fmt: skip
    trained, queries = load_model(model), read_svmlight(files / "train.txt")
    assert (trained.map, str(trained.measure)) == (name, measure)
    one = LargeMarginRanker(measure, map=name, lam=told["chosen"]["lam"])
    np.testing.assert_array_equal(trained.coef_, one.fit(queries, eval_set=read_svmlight(files / "test.txt")).coef_)
    again = json.loads(run("resume", tmp_path / "kept", "--json", "--yes"))
    assert again["chosen"]["objective"] == told["chosen"]["objective"]
    assert measure in run("evaluate", files / "test.txt", "--model", model, "--measure", measure)
    run("explain", model, files / "test.txt", "--report", tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000


def test_what_does_not_go_together_is_a_usage_error_or_an_option_error(files, tmp_path):
    words = ["train", files / "train.txt", "--model", tmp_path / "model"]
    assert "--map is an option of the bounds" in run(*words, "--loss", "pairwise", "--map", "pairwise", code=2)
    assert "Invalid value for '--map'" in run(*words, "--map", "pairs", code=2)
    told = CliRunner().invoke(rankopt, [*map(str, words), "--map", "first-relevant"])
    assert told.exit_code != 0
    assert "'positional' or 'pairwise'" in told.output + str(told.exception)


@pytest.mark.study
@pytest.mark.parametrize(
    ("named", "solvers"),
    [
        (("--argmax", "exact"), ("exact",)),
        pytest.param((), ("exact", "ortools", "highs", "cvxpy:CLARABEL"), marks=pytest.mark.study),
    ],
)
def test_the_usual_solvers_that_take_the_form_are_swapped_under_a_map(named, solvers):
    words = ["swap", "--map", "pairwise", "--measure", "AP", "--master", "none", "--json", *named]
    told = json.loads(run(*words, "--method", "none", "--problems", 3, "--repeats", 1, "--no-live"))
    solved = {row["solver"]: row["solved"] for row in told["summary"]}
    assert solved == dict.fromkeys(solvers, 3)
