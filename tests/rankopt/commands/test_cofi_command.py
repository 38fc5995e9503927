"""`rankopt cofi`: what it prints is what the library says, protocol included."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy import stats

from rankopt import Admissible
from rankopt.cli import rankopt
from rankopt.errors import DataError
from rankopt.evaluation import compare
from rankopt.rankers import CofiRanker, load_model
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
    assert len(rows) == 12
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
    assert f"wrote {tmp_path / 'm'}: of the {split.train.n_ratings} training ratings alone; its lists" in done.stdout
    assert f"wrote {tmp_path / 'page.html'}\n" in done.stderr
    one = json.loads(run(train, "--test", test, "--json").stdout)["accuracy"][0]
    assert one["standard_error"] is None


def test_the_saved_model_is_trained_on_all_ratings_with_the_chosen_strength(tmp_path):
    ratings = load_ratings_sample()
    split, page, model = weak_split(ratings, 10), tmp_path / "page.html", tmp_path / "m"
    file = written(tmp_path, ratings, "x.tsv")
    words = (
        "cofi",
        str(file),
        "--train-per-user",
        "10",
        "--report",
        str(page),
        "--model",
        str(model),
        "--factors",
        "3",
    )
    done = CliRunner().invoke(rankopt, words)
    n, few = ratings.n_ratings, np.diff(ratings.bounds) < 20
    text = (
        f"{split.train.n_ratings} of the {n} ratings train and {split.test.n_ratings} test the model that is measured "
        f"here; the other {n - split.train.n_ratings - split.test.n_ratings} are of users with fewer than 20 ratings "
        f"(10 to train and 10 to test; {few.sum()} of 240 users), who take no part."
    )
    assert text in done.stdout
    assert text in page.read_text()
    assert done.stdout.splitlines()[1].split()[0] == str((~few).sum())  # users in the table
    chosen = CofiRanker(factors=3).fit(split.train)
    assert f"trained again on all {n} ratings, with --reg {chosen.reg_:.3g}\n" in done.stdout
    same = CofiRanker(factors=3, reg=chosen.reg_).fit(ratings)
    saved = load_model(model)
    np.testing.assert_array_equal(saved.predict(ratings), same.predict(ratings))
    for user, items in saved.recommend(k=5):
        assert not {*items} & {*ratings.items[ratings.columns[slice(*ratings.bounds[user - 1 : user + 1])]].tolist()}
    assert "no part" not in run(file).output
    assert "the model is not saved; give --model FILE\n" in run(file).stdout


def test_baselines_have_the_same_popularity_and_are_compared_by_user(tmp_path):
    split = weak_split(load_ratings_sample(), 10)
    train, test = written(tmp_path, split.train, "train.tsv"), written(tmp_path, split.test, "test.tsv")
    words = (train, "--test", test, "--model", tmp_path / "m", "--report", tmp_path / "page.html")
    done, printed = run(*words), json.loads(run(train, "--test", test, "--json").stdout)
    same, model = given_split(read_ratings(train), read_ratings(test)), load_model(tmp_path / "m")
    means = ItemMeanBaseline().fit(same.train)
    rows = {(row["ranker"], row["candidates"]): row["mean"] for row in printed["accuracy"]}
    fair = evaluate_ratings(same, means, candidates="all", popularity=1.0)
    assert rows["item mean shrunk by 5 plus popularity (1)", "all"] == pytest.approx(fair.mean, abs=1e-12)
    paired = {(row["rankers"], row["candidates"]): row for row in printed["paired"]}
    better = max(0.0, 0.1, key=lambda c: evaluate_ratings(same, means, popularity=c).mean)
    for candidates, c, other_c in (("rated", 0.0, better), ("all", 1.0, 1.0)):
        plus, other_plus = (f" plus popularity ({one:g})" if one else "" for one in (c, other_c))
        own = evaluate_ratings(same, model, candidates=candidates, popularity=c)
        other = evaluate_ratings(same, means, candidates=candidates, popularity=other_c)
        d = own.values - other.values
        d = d[~np.isnan(d)]
        found = paired[f"CofiRanker(regression){plus} - item mean shrunk by 5{other_plus}", f"{candidates} items"]
        assert found["difference"] == pytest.approx(d.mean())
        assert found["p"] == pytest.approx(stats.ttest_1samp(d, 0.0).pvalue)
        assert compare(own, other).p_t == pytest.approx(found["p"])
    alone, plus = (rows[f"CofiRanker(regression){name}", "all"] for name in ("", " plus popularity (1)"))
    assert plus > alone
    line = f"rankopt recommend {tmp_path / 'm'} --popularity 1 (among all items {plus:.4f}, and {alone:.4f} without)\n"
    assert line in done.stdout
    assert "p (t test)" in (tmp_path / "page.html").read_text()


def test_a_model_behind_item_means_is_named(tmp_path):
    """Ratings are item means and noise: factors of noise do not help, and little regularization harms."""
    random = np.random.default_rng(5)
    users, items = np.nonzero(random.random((60, 40)) < 0.6)
    ratings = Ratings.from_arrays(
        users, items, np.clip(np.rint(items / 10 + random.normal(0.5, 1.2, items.size)), 0, 5)
    )
    page = tmp_path / "page.html"
    words = (written(tmp_path, ratings, "x.tsv"), "--train-per-user", 8, "--report", page)
    done = CliRunner().invoke(rankopt, ["cofi", *map(str, words), "--reg", "0.02"])
    behind = "Among rated items, CofiRanker(regression) is behind item mean shrunk by 5 (difference -"
    assert behind in done.stdout
    assert "use rankopt.ratings.ItemMeanBaseline." in done.stdout
    assert behind in page.read_text()


@pytest.fixture
def shop(tmp_path):
    """A semicolon file with decimal commas, a file of items with columns of its own, and the model of both."""
    ratings = load_ratings_sample()
    users, items = ratings.users[ratings.user_of()], ratings.items[ratings.columns]
    lines = [
        f"c{u:03};SKU-{i};{v / 2:.1f}".replace(".", ",") for u, i, v in zip(users, items, ratings.values, strict=True)
    ]
    (tmp_path / "r.csv").write_text("\n".join(["customer;sku;stars", *lines]))
    (tmp_path / "i.csv").write_text(
        "\n".join(["sku;seller;brand", *(f"SKU-{i};s{i % 4};b{i % 3}" for i in ratings.items)])
    )
    files = ("--items", tmp_path / "i.csv", "--model", tmp_path / "m", "--report", tmp_path / "p.html")
    done = run(tmp_path / "r.csv", *files, "--quota-attribute", "seller")
    assert done.exit_code == 0, done.output
    return tmp_path


USERS = ("--users", "c001", "--users", "c007")


def recommended(folder, *words):
    done = CliRunner().invoke(rankopt, ["recommend", str(folder / "m"), *map(str, words), "--json"])
    if done.exit_code:
        raise done.exception
    frame = pd.DataFrame(json.loads(done.stdout)["recommendations"])
    return {user: rows["item"].tolist() for user, rows in frame.groupby("user")}, done.stderr


def test_decimal_commas_and_own_columns_of_items_are_read(shop):
    read = read_ratings(shop / "r.csv", items=shop / "i.csv")
    assert {*read.values.tolist()} == {0.5, 1.0, 1.5, 2.0, 2.5}
    assert read.attributes["seller"][read.items.tolist().index("SKU-7")] == "s3"
    assert "at most of each seller" in (shop / "p.html").read_text()
    assert load_model(shop / "m").item_attributes_["brand"] == read.attributes["brand"].tolist()


def test_lists_of_the_command_obey_limits(shop):
    lists, _ = recommended(shop, *USERS, "--k", 6, "--at-most", "2:seller", "--at-least", "3:brand=b0@4")
    rules = Admissible(6).at_most(2, by="seller").at_least(3, documents={"brand": "b0"}, positions=range(4))
    expected = load_model(shop / "m").recommend(["c001", "c007"], k=6, constraints=rules)
    assert lists == dict(expected)
    (shop / "other.csv").write_text("item,shelf\n" + "".join(f"SKU-{i},{i % 2}\n" for i in range(1, 161)))
    lists, _ = recommended(shop, *USERS, "--items", shop / "other.csv", "--k", 4, "--at-most", "2:shelf")
    assert all(sum(int(item[4:]) % 2 for item in items) == 2 for items in lists.values())
    with pytest.raises(DataError, match=r"no attribute 'shelf' in .*seller, brand.; give --items FILE"):
        recommended(shop, "--k", 4, "--at-most", "2:shelf")
    with pytest.raises(DataError, match="as each position holds one item; the set admits at most 4 items"):
        recommended(shop, *USERS, "--k", 6, "--at-most", "1:seller")


def test_a_ban_reads_the_truth_as_it_is_usually_written(shop):
    """The first list of a user is banned, and one who types a word that the column lacks hears of it."""
    first = recommended(shop, *USERS, "--k", 5)[0]["c001"]
    rows = "".join(f"SKU-{i},{f'SKU-{i}' in first}\n" for i in range(1, 161))
    (shop / "bans.csv").write_text(f"item,banned\n{rows}")
    ban = (*USERS, "--items", shop / "bans.csv", "--k", 5, "--at-most")
    expected, _ = recommended(shop, *ban, "0:banned=True")
    assert not {*expected["c001"]} & {*first}
    for word in ("true", "1", "yes", "TRUE"):
        assert recommended(shop, *ban, f"0:banned={word}")[0] == expected
    with pytest.warns(UserWarning, match="No item has banned 'Treu'; the values are 'False', 'True'; did you mean 'T"):
        recommended(shop, *ban, "0:banned=Treu")


def test_new_users_are_folded_in_by_the_command(shop):
    (shop / "new.csv").write_text("customer;sku;stars\n17;SKU-3;2,5\n17;SKU-5;0,5\n17;none;1\n")
    lists, said = recommended(shop, "--ratings", shop / "new.csv", "--k", 4)
    guest = Ratings.from_arrays(["17"] * 2, ["SKU-3", "SKU-5"], [2.5, 0.5])
    assert lists == dict(load_model(shop / "m").fold_in(guest).recommend(k=4))
    assert "1 of 3 ratings are of items that the model does not know, such as 'none'" in said
    (shop / "new.csv").write_text("customer;sku;stars\nc001;SKU-3;2,5\n")
    with pytest.raises(DataError, match=r"'c001', for example., and --ratings is for new users; leave their rows out"):
        recommended(shop, "--ratings", shop / "new.csv")
    with pytest.raises(DataError, match=r"no user 'nobody'.*for a new user give ratings: --ratings FILE"):
        recommended(shop, "--users", "nobody")


def test_a_model_of_ratings_is_named_where_it_is_no_use(shop):
    done = CliRunner().invoke(rankopt, ["verify", str(shop / "m")])
    assert done.exit_code == 2
    assert "is a saved model, and verify reads a set of rankings" in " ".join(done.stderr.replace("│", " ").split())


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
    assert len(found[0]) == 12
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
    assert recommend("--users", 1, "--k", 2, "--output", tmp_path / "x.json").exit_code == 0
    lists = load_model(tmp_path / "m").recommend([1], 2).to_frame()
    found = pd.read_json(tmp_path / "x.json", precise_float=True)[["user", "rank", "item", "score"]]
    pd.testing.assert_frame_equal(found, lists, rtol=1e-12)
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
