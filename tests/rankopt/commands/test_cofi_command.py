"""`rankopt cofi`: what it prints is what the library says, protocol included."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from rankopt.cli import rankopt
from rankopt.errors import DataError
from rankopt.rankers import load_model
from rankopt.ratings import (
    ItemMeanBaseline,
    Ratings,
    evaluate_ratings,
    given_split,
    load_ratings_sample,
    read_ratings,
    weak_split,
)


def written(folder, ratings, name):
    users, items = ratings.users[ratings.user_of()], ratings.items[ratings.columns]
    rows = np.column_stack([users, items, ratings.values.astype(int)])
    np.savetxt(folder / name, rows, "%d", "\t")
    return folder / name


def run(*words):
    return CliRunner().invoke(rankopt, ["cofi", *map(str, words), "--reg", "0.7", "--factors", "3"])


def test_options_that_train_repeats_are_single_here():
    words = ("cofi", "--loss", "nDCG@5", "--position-weights", "log", "--lam", "2", "--factors", "2", "--max-iter", "1")
    done = CliRunner().invoke(rankopt, [*words, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["lam"] == pytest.approx(2.0)


def test_given_files_are_judged_beside_the_baselines(tmp_path):
    split = weak_split(load_ratings_sample(), 10)
    train, test = written(tmp_path, split.train, "train.tsv"), written(tmp_path, split.test, "test.tsv")
    printed = json.loads(run(train, "--test", test, "--json", "--model", tmp_path / "m").output)
    same = given_split(read_ratings(train), read_ratings(test))
    model = load_model(tmp_path / "m")
    rows = {(row["ranker"], row["protocol"]): row["mean"] for row in printed["accuracy"]}
    assert len(rows) == 10
    assert {(row["candidates"], row["n_users"]) for row in printed["accuracy"]} == {("rated", 128), ("all", 128)}
    assert printed["certificate"]["stop"] == "the gaps of both blocks are within the tolerance"
    plus = evaluate_ratings(same, model, candidates="all", popularity=1.0)
    assert rows["CofiRanker(regression) plus popularity (1)", plus.protocol] == pytest.approx(plus.mean, abs=1e-12)
    for candidates in ("rated", "all"):
        for name, one in (
            ("CofiRanker(regression)", model),
            ("item mean shrunk by 5", ItemMeanBaseline().fit(same.train)),
        ):
            found = evaluate_ratings(same, one, candidates=candidates)
            assert rows[name, found.protocol] == pytest.approx(found.mean, abs=1e-12)
    assert printed["certificate"]["users_gap"] <= 1e-3
    assert printed["users"] == same.train.n_users


def test_how_training_ended_is_said_and_what_it_warns_of():
    done = run("--max-iter", 1)
    assert "training ended: max_iter steps were taken\n" in done.stdout
    assert done.stderr.count("training stopped before its gaps closed") == 1
    quick = CliRunner().invoke(rankopt, ["cofi", "--time-limit", "0.0001", "--factors", "2", "--json"])
    assert json.loads(quick.stdout)["reg"] == pytest.approx(1.0)
    assert quick.stderr.count("half of time_limit was over when reg='auto' had tried 1;") == 1
    whole = run()
    assert "training ended: the gaps of both blocks are within the tolerance\n" in whole.stdout
    assert re.fullmatch(r"step \d+: objective .*\n", whole.stderr)  # the last step, and no warning


def test_a_model_without_factors_says_so():
    done = CliRunner().invoke(rankopt, ["cofi", "--reg", "1"])
    assert "  0 of 15  " in done.output
    assert "0 of 15 factors are used: scores are offsets alone" in done.output
    assert "factors are used" not in run().output


def test_one_user_has_a_mean_and_no_error(tmp_path):
    split = weak_split(load_ratings_sample(), 10)
    user = split.test.user_of()[0]
    train = written(tmp_path, split.train, "train.tsv")
    test = written(tmp_path, split.test.select(split.test.user_of() == user), "test.tsv")
    done = run(train, "--test", test, "--model", tmp_path / "m", "--report", tmp_path / "page.html")
    assert "given files, 1 user with test ratings; rated items only" in done.stdout
    for told in (done.output, (tmp_path / "page.html").read_text()):
        assert not {"±", "nan"} & set(told.split())
    assert f"wrote {tmp_path / 'm'}\n" in done.stdout
    assert f"wrote {tmp_path / 'page.html'}\n" in done.stderr
    one = json.loads(run(train, "--test", test, "--json").stdout)["accuracy"][0]
    assert one["standard_error"] is None


def test_what_is_held_out_is_no_part_of_the_model_and_that_is_said(tmp_path):
    ratings = load_ratings_sample()
    split, page = weak_split(ratings, 10), tmp_path / "page.html"
    done = run(written(tmp_path, ratings, "x.tsv"), "--train-per-user", 10, "--report", page)
    told = f"Of {ratings.n_ratings} ratings {split.train.n_ratings} train and {split.test.n_ratings} test, "
    for text in (done.stdout, page.read_text()):
        assert told in text
        assert "the model, which is what --model saves, its certificate and what a quota costs are of those" in text
    assert "--model saves" not in run(tmp_path / "x.tsv").output
    assert "the model is not saved; give --model FILE\n" in done.stdout


def test_the_unit_of_the_ratings_changes_no_row_of_the_table(tmp_path):
    """The measure has a linear gain, so that it is the same for a quarter of the ratings too."""
    split = weak_split(load_ratings_sample(), 10)
    found = []
    for scale in (1, 4):
        files = []
        for name, part in (("train", split.train), ("test", split.test)):
            users, items = part.users[part.user_of()], part.items[part.columns]
            files.append(tmp_path / f"{name}{scale}.tsv")
            np.savetxt(files[-1], np.column_stack([users, items, part.values / scale]), ["%d", "%d", "%.2f"], "\t")
        done = run(files[0], "--test", files[1], "--measure", "nDCG(gain='linear')@10", "--json")
        found.append([row["mean"] for row in json.loads(done.stdout)["accuracy"]])
    assert len(found[0]) == 10
    assert found[0] == pytest.approx(found[1], abs=1e-9)


def test_an_interruption_before_there_are_factors_saves_nothing(tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rankopt.rankers.CofiRanker.fit", interrupted)
    done = CliRunner().invoke(rankopt, ["cofi", "--model", str(tmp_path / "m")])
    assert "there are no factors yet, so nothing is saved" in done.stderr
    assert not (tmp_path / "m").exists()


def test_lists_are_written_as_text_and_several_users_by_several_options(tmp_path):
    run("--model", tmp_path / "m")

    def recommend(*words):
        return CliRunner().invoke(rankopt, ["recommend", str(tmp_path / "m"), *map(str, words)])

    done = recommend("--users", 1, "--output", tmp_path / "x.parquet")
    assert done.exit_code == 2
    assert "the output is text; end the name in .csv" in " ".join(done.stderr.split())
    assert not (tmp_path / "x.parquet").exists()
    assert recommend("--users", 1, "--k", 2, "--output", tmp_path / "x.tsv").exit_code == 0
    assert (tmp_path / "x.tsv").read_text().startswith("user\trank\titem\tscore")
    with pytest.raises(DataError, match="no user '1,2'; repeat --users for several; its 240 users"):
        raise recommend("--users", "1,2").exception


def test_the_file_may_be_left_out():
    assert "cofi [OPTIONS] [TRAIN]" in CliRunner().invoke(rankopt, ["cofi", "--help"]).output


@pytest.mark.study
def test_the_sample_and_its_page(tmp_path, monkeypatch):
    monkeypatch.setattr("rankopt.commands.cofi.USERS", 3)
    page = tmp_path / "page.html"
    done = run("--report", page)
    assert done.exit_code == 0, done.output
    assert "weak generalization, n = 10, 128 users, seed 0; rated items only; ties averaged" in done.output
    text = page.read_text()
    for word in ("Cost of a quota", "at most of each", "popularity", "gaps of both blocks"):
        assert word in text


def test_a_pair_of_both_files_is_refused(tmp_path):
    one = Ratings.from_arrays([1, 2], [1, 2], [3, 4])
    with pytest.raises(DataError, match="user 2 rates item 2 in training and in the test"):
        given_split(one, Ratings.from_arrays([2, 5], [2, 5], [1, 1]))
    assert run("--test", written(tmp_path, one, "x"), "--test-per-user", 3).exit_code == 2


def test_options_that_would_be_left_aside_in_silence_are_refused(tmp_path):
    one = written(tmp_path, Ratings.from_arrays([1, 2], [1, 2], [3, 4]), "x")
    for words, said in (
        (["--test", one], "needs the file TRAIN"), (["--items", one], "needs the file TRAIN"),
        ([one, "--quota-attribute", "genre"], "--quota-attribute needs --report FILE"),
    ):  # fmt: skip
        done = run(*words)
        assert done.exit_code == 2
        assert said in " ".join(done.output.replace("│", " ").split())


def test_numbers_against_text_are_said(tmp_path):
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("user,item,rating\n1,10,3\n1,11,4\n2,10,5\n2,11,1\n")
    for rows, told in (
        ("1,12,3\nann,10,2\n", "of the test, user '1' is text, but the known id is a number, 1"),
        ("1,11,3\n2,x,2\n", "of the test, item '11' is text, but the known id is a number, 11"),
        ("1,77,3\n2,78,2\n", "no item of the test is one of training .77 is not."),
    ):
        test.write_text(f"user,item,rating\n{rows}")
        with pytest.raises(DataError, match=told):
            given_split(read_ratings(train), read_ratings(test))
        done = CliRunner().invoke(rankopt, ["cofi", str(train), "--test", str(test), "--reg", "0.7"])
        assert done.exit_code != 0


def test_attributes_of_items_that_are_in_the_test_alone_are_kept():
    train = Ratings.from_arrays([1, 2], [1, 2], [3, 4], attributes={"genre": {1: ("War",), 2: None}})
    test = Ratings.from_arrays(
        [1, 3], [2, 3], [3, 4], attributes={"genre": {2: ("Drama",), 3: ("Crime",)}, "year": {3: 1999}}
    )
    split = given_split(train, test)
    for one in (split.train, split.test):
        assert one.attributes["genre"].tolist() == [("War",), ("Drama",), ("Crime",)]
        assert one.attributes["year"].tolist() == [None, None, 1999]
    assert split.protocol == "given files, 2 users with test ratings, 1 of them not known"
