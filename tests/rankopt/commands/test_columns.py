"""Columns of tables as options, suggestions, the form of the help, and progress in a log."""

import json
from html import unescape

import numpy as np
import pandas as pd
import pytest
from problems.command import called

from rankopt.cli import COMMANDS
from rankopt.data import read_table
from rankopt.errors import ColumnWarning
from rankopt.measures import evaluate, read_qrels
from rankopt.rankers import RegressionRanker, load_model
from rankopt.ratings import Ratings, leave_out_split, load_ratings_sample

NAMES = {"q": "search", "y": "clicks", "d": "page"}
OPTIONS = ("--qid", "search", "--relevance", "clicks", "--document", "page", "--drop", "noise,position")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table with unusual names, as parquet and CSV, and a linear model of its features a and b."""
    folder, rng = tmp_path_factory.mktemp("columns"), np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "noise"])
    frame["search"], frame["clicks"] = np.arange(60) // 6, (2 * (frame.a > 0) + (frame.b > 0)).astype(int)
    frame["page"], frame["position"] = [f"p{i}" for i in range(60)], np.tile(np.arange(6), 10)
    frame.to_parquet(folder / "t.parquet")
    frame.to_csv(folder / "t.csv", index=False)
    read = read_table(frame, qid="search", relevance="clicks", document="page", features=["a", "b"])
    RegressionRanker().fit(read).save(folder / "m")
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ("train", "{file}", "--model", "{new}", "--ranker", "regression"),
        ("train", "{file}", "--model", "{new}", "--ranker", "regression", "--validate", "{file}"),
        ("convert", "{file}", "--output", "{new}"),
        ("predict", "{m}", "{file}", "--output", "{new}"),
        ("rank", "{m}", "{file}", "--output", "{new}"),
        ("evaluate", "{file}", "--model", "{m}"),
        ("explain", "{m}", "{file}"),
        ("swap", "{file}", "--no-train", "--master-solvers", "none", "--methods", "none", "--argmax-solvers", "exact"),
    ],
    ids=lambda words: " ".join(words[:1]),
)
def test_every_command_takes_the_names_of_columns(folder, tmp_path, words):
    file = folder / "t.parquet"
    places = {"file": file, "m": folder / "m", "new": tmp_path / "new"}
    done = called(*(word.format(**places) for word in words), *OPTIONS)
    assert done.returncode == 0, done.stderr
    line = f"read {file}; qid: search, relevance: clicks, document: page, features: 2 (a, b)"
    assert line in done.stderr.splitlines()


def test_a_model_is_that_of_the_named_columns(folder, tmp_path):
    called("train", folder / "t.csv", "--model", tmp_path / "m", "--ranker", "regression", *OPTIONS)
    model = load_model(tmp_path / "m")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    np.testing.assert_allclose(model.coef_, load_model(folder / "m").coef_, rtol=1e-12)


def test_a_model_remembers_the_columns_of_its_training(folder, tmp_path):
    file, model, scores = folder / "t.parquet", tmp_path / "m", tmp_path / "scores"
    done = called("train", file, "--model", model, "--ranker", "regression", *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert load_model(model).columns_ == {"qid": "search", "relevance": "clicks", "document": "page"}
    read = f"read {file}; qid: search, relevance: {{}}, document: page, features: 2 (a, b)"
    for words, grades in (
        (("predict", model, file, "--output", scores), "none"),
        (("rank", model, file), "none"),
        (("evaluate", file, "--model", model, "--scores", scores), "clicks"),
        (("explain", model, file), "clicks"),
    ):
        done = called(*words)
        assert done.returncode == 0, done.stderr
        assert read.format(grades) in done.stderr.splitlines()
    table = pd.read_parquet(file).drop(columns="noise")
    other = tmp_path / "other.csv"  # other names of the same columns, found as ever
    table.rename(columns={"search": "qid", "clicks": "label", "page": "docid"}).to_csv(other, index=False)
    for words in ((), ("--relevance", "label")):
        done = called("evaluate", other, "--model", model, *words)
        assert f"read {other}; qid: qid, relevance: label, document: docid" in done.stderr
    table.assign(grade=table.clicks).to_parquet(tmp_path / "both.parquet")
    done = called("evaluate", tmp_path / "both.parquet", "--model", model, "--relevance", "grade")
    assert "relevance: grade, document: page" in done.stderr
    table.assign(clicks=np.nan).to_parquet(tmp_path / "new.parquet")  # no grades yet
    assert called("rank", model, tmp_path / "new.parquet").returncode == 0


def test_a_file_of_scores_or_a_model_is_the_baseline(folder, tmp_path):
    file, scores = folder / "t.parquet", tmp_path / "scores"
    scores.write_text("".join(f"{one}\n" for one in range(60)))
    words = ("evaluate", file, "--model", folder / "m", "--scores", scores, "--measure", "nDCG@3", *OPTIONS)
    for more, first, other in (
        ((), scores, folder / "m"),
        (("--baseline", scores), scores, folder / "m"),
        (("--baseline", folder / "m"), folder / "m", scores),
    ):
        (compared,) = json.loads(called(*words, *more, "--json").stdout)["compared"]
        assert (compared["baseline"], compared["run"]) == (str(first), str(other))
        shown = called(*words, *more).stdout
        head, row = shown.partition(f"against {first}\n")[2].splitlines()[:2]
        assert head.split()[-3:] == ["better", "equal", "worse"]
        assert row.split()[-3:] == [str(compared[name]) for name in ("wins", "ties", "losses")]
    done = called(*words, "--baseline", file)
    assert done.returncode == 2
    assert f"--baseline {file} is not compared; name one of {scores}, {folder / 'm'}" in done.stderr


def test_a_model_reads_its_features_only(folder, tmp_path):
    frame = pd.read_parquet(folder / "t.parquet")
    more = frame[frame.columns[::-1]].assign(gap=np.where(frame.a > 0, np.nan, 1.0), day=pd.Timestamp(0))
    more.assign(clicks=np.nan).to_parquet(tmp_path / "more.parquet")
    words = ("--qid", "search", "--document", "page", "--output", "-")
    done = called("predict", folder / "m", tmp_path / "more.parquet", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == called("predict", folder / "m", folder / "t.parquet", *words).stdout
    more.assign(a=more.gap).to_parquet(tmp_path / "hole.parquet")
    done = called("predict", folder / "m", tmp_path / "hole.parquet", *words)
    assert done.returncode == 3
    assert "column 'a'" in done.stderr
    assert (
        "frame.fillna(frame.median(numeric_only=True)), or leave these rows out, or train with --missing indicator"
        in done.stderr
    )
    assert "--drop" not in done.stderr  # a is needed
    done = called("predict", folder / "m", tmp_path / "more.parquet", *words, "--drop", "a")
    assert "was trained on the feature 'a' and needs it; leave --drop out" in done.stderr
    more.assign(a=np.where(frame.index == 2, np.inf, frame.a)).to_parquet(tmp_path / "inf.parquet")
    done = called("predict", folder / "m", tmp_path / "inf.parquet", *words)
    assert "('a') is inf" in done.stderr
    assert "fill it in, or drop the row.\n" in done.stderr
    site = frame.assign(site=np.where(frame.a > 0, None, "s"), page=np.where(frame.index == 3, None, frame.page))
    with pytest.warns(ColumnWarning, match="lack values and are no attributes.*: page, site"):
        assert read_table(site, qid="search", relevance="clicks", features=["a"]).attributes == {}


def test_a_column_that_a_quota_names_is_an_attribute_even_if_it_holds_numbers(folder, tmp_path):
    frame = pd.read_csv(folder / "t.csv").assign(group=np.arange(60) % 2)
    frame.to_csv(tmp_path / "g.csv", index=False)
    quota = ("--k", "3", "--at-least", "2:group=1")
    done = called("train", tmp_path / "g.csv", "--model", tmp_path / "m", *OPTIONS, *quota, "--max-iter", "3")
    assert done.returncode == 0, done.stderr
    assert "features: 2 (a, b)" in done.stderr
    model = load_model(tmp_path / "m")
    assert model.feature_names_in_.tolist() == ["a", "b"]
    done = called("rank", folder / "m", tmp_path / "g.csv", *OPTIONS, *quota, "--output", "-")
    listed = [line.split("\t") for line in done.stdout.splitlines()]
    group = dict(zip(frame.page, frame.group, strict=True))
    counts = pd.Series([group[line[2]] for line in listed]).groupby([line[0] for line in listed]).agg(["sum", "size"])
    assert (counts["size"] == 3).all()
    assert (counts["sum"] >= 2).all()
    own = called("rank", tmp_path / "m", tmp_path / "g.csv", *OPTIONS, "--output", "-")  # the model's own quota
    assert own.returncode == 0, own.stderr
    assert len(own.stdout.splitlines()) == 30


def test_a_file_of_attributes_has_the_columns_of_ids_of_the_data(folder, tmp_path):
    frame = pd.read_csv(folder / "t.csv")
    groups = frame[["search", "page"]].assign(site=np.where(frame.index % 3, "s", ""))
    groups.to_csv(tmp_path / "own.csv", index=False)
    groups.rename(columns={"search": "qid", "page": "docid"}).to_csv(tmp_path / "usual.csv", index=False)
    words = ("rank", folder / "m", folder / "t.csv", *OPTIONS, "--k", "3", "--at-least", "2:site=s", "--output", "-")
    own, usual = (called(*words, "--attributes", tmp_path / f"{name}.csv") for name in ("own", "usual"))
    assert own.returncode == 0, own.stderr
    assert own.stdout == usual.stdout
    assert "20 of 60 documents have no 'site': no quota by it counts them" in own.stderr
    frame.assign(site=groups.site).to_csv(tmp_path / "t.csv", index=False)  # the same as a column of the table
    same = called(*(tmp_path / "t.csv" if word == folder / "t.csv" else word for word in words))
    assert same.stdout == own.stdout
    assert "20 of 60 documents have no 'site'" in same.stderr
    groups.rename(columns={"search": "q"}).to_csv(tmp_path / "wrong.csv", index=False)
    wrong = called(*words, "--attributes", tmp_path / "wrong.csv")
    assert "the column 'qid' is needed once; the columns are 'q', 'page', 'site'" in wrong.stderr
    assert "Name yours: --qid COLUMN" in wrong.stderr


def test_the_command_line_says_what_quotas_are_and_cost(folder, tmp_path):
    frame = pd.read_csv(folder / "t.csv").assign(site=np.where(np.arange(60) % 2, "s", "t"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    quota = ("--k", "4", "--at-least", "40%:site=s")
    done = called(
        "evaluate", tmp_path / "t.csv", "--model", folder / "m", *OPTIONS, *quota, "--json", "--measure", "AP"
    )
    assert "40%:site=s, rounded down: 0, 0, 1, 1 of the first 1 to 4" in done.stderr
    rank = ("rank", folder / "m", tmp_path / "t.csv", *OPTIONS, "--k", "4", "--at-least")
    up = called(*rank, "40%up:site=s")
    assert "40%up:site=s, rounded up: 1, 1, 2, 2 of the first 1 to 4" in up.stderr
    shown = [line.split("\t") for line in up.stdout.splitlines()]
    assert {int(page[1:]) % 2 for _, place, page, _ in shown if place == "1"} == {1}  # of site s
    assert {int(page[1:]) % 2 for _, _, page, _ in shown} == {0, 1}
    for wrong in ("3up:site=s", "40%nearest:site=s"):
        assert "N%up or N%down: its rounding" in " ".join(called(*rank, wrong).stderr.split())
    record = json.loads(done.stdout)
    lost = [one["AP"] for one in record["runs"][str(folder / "m")]["cost_per_query"].values()]
    assert len(lost) == 10
    assert np.mean(lost) == pytest.approx(record["constraints"][0]["difference"])
    done = called("evaluate", tmp_path / "t.csv", "--model", folder / "m", *OPTIONS, "--k", "4")
    assert "--measure nDCG@4" in " ".join(done.stderr.split())
    page, model = tmp_path / "page.html", tmp_path / "m"
    words = ("train", tmp_path / "t.csv", "--model", model, *OPTIONS, "--k", "3", "--at-least", "2:site=s")
    assert called(*words, "--max-iter", "3", "--report", page).returncode == 0
    rules = "Admissible(k=3).at_least(2, documents={'site': 's'})"
    assert rules in unescape(page.read_text(encoding="utf-8"))
    done = called("explain", model, tmp_path / "t.csv", *OPTIONS, "--report", page)
    assert f"Under {rules}: regret is against the best ranking that these admit." in done.stdout
    assert f"Under {rules}" in unescape(page.read_text(encoding="utf-8"))
    done = called("rank", model, tmp_path / "t.csv", *OPTIONS, "--k", "5", "--output", "-")
    assert rules in done.stderr
    assert "State quotas for --k 5 (--at-least 0:ATTR=VALUE is no limit), or lower --k" in done.stderr
    words = ("rank", model, tmp_path / "t.csv", *OPTIONS, "--k", "5", "--at-least", "0:site=s", "--output", "-")
    assert len(called(*words).stdout.splitlines()) == 50
    words = ("--k", "5", "--at-least", "4:site=s", "--on-infeasible", "truncate", "--output", "-")  # 3 of 6 have it
    done = called("rank", folder / "m", tmp_path / "t.csv", *OPTIONS, *words)
    assert "No shorter ranking helps either (--on-infeasible truncate)" in done.stderr


def test_the_grades_of_a_table_are_written_as_qrels(folder, tmp_path):
    frame = pd.read_parquet(folder / "t.parquet")
    done = called("convert", folder / "t.parquet", "--qrels", tmp_path / "qrels", *OPTIONS)
    assert done.returncode == 0, done.stderr
    found, rows = read_qrels(tmp_path / "qrels"), frame.astype({"search": str}).itertuples()
    codes = np.repeat(found.query_ids, np.diff(found.offsets))
    written = {*zip(codes.tolist(), found.document_ids, found.relevance.tolist(), strict=True)}
    assert written == {(row.search, row.page, float(row.clicks)) for row in rows}
    called("rank", folder / "m", folder / "t.parquet", "--format", "trec", "--output", tmp_path / "run", *OPTIONS)
    done = called("evaluate", "--qrels", tmp_path / "qrels", tmp_path / "run", "--measure", "AP", "--json")
    model = load_model(folder / "m")
    read = read_table(frame, qid="search", relevance="clicks", document="page", features=["a", "b"])
    assert json.loads(done.stdout)["rows"][0]["mean"] == pytest.approx(evaluate(read, model.predict(read), "AP").mean())
    no_ids = called(
        "convert", folder / "t.parquet", "--qrels", tmp_path / "q", "--qid", "search", "--relevance", "clicks"
    )
    assert no_ids.returncode == 3
    assert "name their column: --document page" in no_ids.stderr
    both = called("convert", folder / "t.parquet", "--qrels", tmp_path / "q", "--output", tmp_path / "o")
    assert "--qrels writes no folder; leave out --output" in " ".join(both.stderr.split())


def test_a_resumed_training_reads_the_same_columns(folder, tmp_path):
    words = ("train", folder / "t.parquet", "--model", tmp_path / "m", "--lam", "0.1", "--checkpoint", tmp_path / "c")
    assert called(*words, *OPTIONS, "--max-iter", "1").returncode == 0
    done = called("resume", tmp_path / "c", "--max-iter", "50")
    assert done.returncode == 0, done.stderr
    assert load_model(tmp_path / "m").feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "{t}", "--model", "{new}"), "no column of queries"),
        (("train", "{t}", "--model", "{new}", "--qid", "search"), "--relevance clicks"),
        (("train", "{two}", "--model", "{new}"), "level, years may hold them; choose one of them: --relevance COLUMN"),
        (("evaluate", "{t}", "--model", "{m}", "--qid", "search", "--relevance", "click"), "no column 'click'; it has"),
        (("predict", "{m}", "{t}", "--output", "-", "--qid", "search", "--features", "a,c"), "no column 'c'; it has"),
        (("swap", "--qid", "search"), "--qid names a column of a table, but DATA has no table"),
        (("cofi", "--user", "search"), "--user needs the file TRAIN"),
    ],
)
def test_errors_name_options(folder, tmp_path, words, message):
    places = {"t": folder / "t.parquet", "m": folder / "m", "new": tmp_path / "new", "two": tmp_path / "two.csv"}
    pd.DataFrame({"qid": [1, 1], "level": [0, 1], "years": [3, 4], "a": [0.1, 0.2]}).to_csv(places["two"], index=False)
    done = called(*(word.format(**places) for word in words))
    assert done.returncode in (2, 3)
    assert message in done.stderr
    assert "='" not in done.stderr


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (("trian",), "'train'"),
        (("version",), "'--version'"),
        (("train", "x", "--modle", "m"), "'--model'"),
        (("train", "x", "--w0", "ridge"), "'--init'"),
        (("cofi", "--hold-out", "5"), "'--test-per-user'"),
    ],
)
def test_misspelled_commands_and_options_are_corrected(words, suggestion):
    done = called(*words)
    assert done.returncode == 2
    assert "Did you mean" in done.stderr
    assert suggestion in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_help_begins_with_a_sentence_and_an_example(command):
    lines = called(command, "-h").stdout.splitlines()
    paragraphs = "\n".join(line.strip() for line in lines).split("\n\n")
    assert paragraphs[1].endswith(".")
    assert paragraphs[2].startswith(f"rankopt {command}")
    headings = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert headings == [group for group in ("Data", "Model", "Solver", "Run") if group in headings]
    assert headings


@pytest.mark.parametrize(
    ("words", "group", "own"),
    [
        (("train",), "Data", ("TRAIN", "--qid")),
        (("cofi",), "Data", ("[TRAIN]",)),
        (("rank",), "Model", ("MODEL", "--k")),
        (("train", "--ranker", "direct"), "Solver", ("--powell", "--n-random-directions")),
        (("train", "--ranker", "direct-trees"), "Solver", ("--num-leaves", "--random-state")),
        (("train", "--ranker", "direct-trees"), "Run", ("--time-limit", "--n-jobs")),
    ],
)
def test_help_lists_options_in_their_group(words, group, own):
    section = called(*words, "-h").stdout.partition(f"\n{group}:\n")[2].partition("\n\n")[0]
    assert {*own} <= {line.split()[0] for line in section.splitlines()}


@pytest.fixture(scope="module")
def ratings(tmp_path_factory):
    folder, sample = tmp_path_factory.mktemp("ratings"), load_ratings_sample()
    columns = {"customer": sample.users[sample.user_of()], "sku": sample.items[sample.columns], "stars": sample.values}
    pd.DataFrame(columns).to_csv(folder / "r.csv", index=False)
    return folder


def test_ratings_by_name_a_split_for_the_test_and_lists(ratings, tmp_path):
    words = ("--user", "customer", "--item", "sku", "--rating", "stars", "--reg", "0.7", "--factors", "3", "--json")
    done = called("cofi", ratings / "r.csv", *words, "--test-per-user", "2", "--model", tmp_path / "m")
    assert f"read {ratings / 'r.csv'}; user: customer, item: sku, rating: stars" in done.stderr
    sample, found = load_ratings_sample(), json.loads(done.stdout)
    split = leave_out_split(sample, 2)
    assert split.test.n_ratings == 2 * sample.n_users
    assert split.train.n_ratings + split.test.n_ratings == sample.n_ratings
    assert found["accuracy"][0]["protocol"].startswith(split.protocol)
    model = load_model(tmp_path / "m")
    user = model.user_ids_[0].item()
    listed = json.loads(called("recommend", tmp_path / "m", "--users", user, "--k", 3, "--json").stdout)
    assert [row["item"] for row in listed["recommendations"]] == model.recommend([user], 3)[user]
    called("recommend", tmp_path / "m", "--k", 3, "--output", tmp_path / "lists.csv")
    assert pd.read_csv(tmp_path / "lists.csv").equals(model.recommend(k=3).to_frame().astype({"rank": "int64"}))
    assert "has no user 'nobody'" in called("recommend", tmp_path / "m", "--users", "nobody").stderr
    assert "--hold-out" not in called("cofi", "--help").stdout


def test_users_with_few_ratings_train():
    split = leave_out_split(Ratings.from_arrays([1, 1, 1, 2], [1, 2, 3, 1], [5, 4, 3, 2]), 1)
    assert (split.train.n_ratings, split.test.n_ratings) == (3, 1)
    assert split.test.user_of().tolist() == [0]


def test_verify_takes_programs(tmp_path):
    rows = {"odd": ("x + y", "y + z", "x + z"), "path": ("x + y", "y + z", "x + y + z")}
    for name, sums in rows.items():
        text = "".join(f" r{i}: {terms} >= 1\n" for i, terms in enumerate(sums))
        (tmp_path / f"{name}.lp").write_text(f"Minimize\n o: x + y + z\nSubject To\n{text}End\n")
    odd = called("verify", tmp_path / "odd.lp", "--json")
    assert (odd.returncode, json.loads(odd.stdout)["determinant"]) == (1, "2")
    assert json.loads(odd.stdout)["optimum"]["relaxation"] == pytest.approx(1.5)
    assert called("verify", tmp_path / "path.lp", "--report", tmp_path / "page.html").returncode == 0
    sums = [f"{a} + {b}" for cycle in ("xyz", "uvw") for a, b in zip(cycle, cycle[1:] + cycle[0], strict=True)]
    text = "".join(f" r{i}: {terms} >= 1\n" for i, terms in enumerate(sums))  # x is the only integer
    text = f"Minimize\n o: x + y + z + u + v + w\nSubject To\n{text}Generals\n x\nEnd\n"
    (tmp_path / "mixed.lp").write_text(text)
    optimum = json.loads(called("verify", tmp_path / "mixed.lp", "--json").stdout)["optimum"]
    assert (optimum["relaxation"], optimum["integer"]) == pytest.approx((3.0, 3.5))  # 2 + 1.5


@pytest.mark.parametrize("words", [(), ("--ranker", "boosted")])
def test_long_training_prints_lines_into_a_log(folder, tmp_path, monkeypatch, words):
    monkeypatch.setattr("rankopt.rankers.run.PERIOD", 0.0)
    done = called("train", folder / "t.parquet", "--model", tmp_path / "m", *words, *OPTIONS)
    assert done.returncode == 0, done.stderr
    assert len(done.stderr.splitlines()) > 3
