"""`rankopt cofi`: what it prints is what the library says, protocol included."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from rankopt.cli import rankopt
from rankopt.data import Ratings, load_ratings_sample, read_ratings
from rankopt.errors import DataError
from rankopt.evaluation import ItemMean, evaluate_ratings, given_split, weak_split
from rankopt.rankers import load_model


def written(folder, ratings, name):
    users, items = ratings.users[ratings.user_of()], ratings.items[ratings.columns]
    rows = np.column_stack([users, items, ratings.values.astype(int)])
    np.savetxt(folder / name, rows, "%d", "\t")
    return folder / name


def run(*words):
    return CliRunner().invoke(rankopt, ["cofi", *map(str, words), "--strength", "0.7", "--factors", "3"])


def test_given_files_are_judged_beside_the_baselines(tmp_path):
    split = weak_split(load_ratings_sample(), 10)
    train, test = written(tmp_path, split.train, "train.tsv"), written(tmp_path, split.test, "test.tsv")
    told = json.loads(run(train, "--test", test, "--json", "--model", tmp_path / "m").output)
    same = given_split(read_ratings(train), read_ratings(test))
    model = load_model(tmp_path / "m")
    rows = {(row["ranker"], row["protocol"]): row["mean"] for row in told["accuracy"]}
    assert len(rows) == 8
    for candidates in ("rated", "all"):
        for name, one in (("CofiRanker(regression)", model), ("item mean, shrunk by 5", ItemMean().fit(same.train))):
            found = evaluate_ratings(same, one, candidates=candidates)
            assert rows[name, found.protocol] == pytest.approx(found.mean, abs=1e-12)
    assert told["certificate"]["users_gap"] <= 1e-3
    assert told["users"] == same.train.n_users


def test_the_sample_and_its_page(tmp_path, monkeypatch):
    monkeypatch.setattr("rankopt.commands.cofi.USERS", 3)
    page = tmp_path / "page.html"
    done = run("--report", page)
    assert done.exit_code == 0, done.output
    assert "weak generalisation, n = 10, 128 users, seed 0; rated items only; ties averaged" in done.output
    text = page.read_text()
    for word in ("What a quota costs", "no quota", "popularity", "gaps of both blocks", "slowest"):
        assert word in text


def test_a_pair_of_both_files_is_refused(tmp_path):
    one = Ratings.of([1, 2], [1, 2], [3, 4])
    with pytest.raises(DataError, match="user 2 rates item 2 in training and in the test"):
        given_split(one, Ratings.of([2, 5], [2, 5], [1, 1]))
    assert run("--test", written(tmp_path, one, "x"), "--hold-out", 3).exit_code == 2


def test_masters_of_ratings_are_replayed_by_several_solvers():
    words = [
        "swap",
        "--ratings",
        "--problems",
        "3",
        "--repeats",
        "1",
        "--master",
        "active_set,qpsolvers:piqp",
        "--json",
    ]
    done = CliRunner().invoke(rankopt, words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.output)
    assert {(line["solver"], line["problems"], line["solved"]) for line in told["summary"]} == {
        ("active_set", 4, 4),
        ("qpsolvers:piqp", 4, 4),
    }
    assert CliRunner().invoke(rankopt, ["swap", "--ratings", "--argmax", "exact"]).exit_code == 2
