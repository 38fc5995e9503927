"""`rankopt rank --format trec` and `rankopt evaluate --qrels`: from a model to a table, through files."""

import gzip
import json

import numpy as np
import pytest
from click.testing import CliRunner

from rankopt.cli import rankopt
from rankopt.constraints import Admissible
from rankopt.data import Queries, read_attributes, read_svmlight, write_svmlight
from rankopt.measures import compare, evaluate, holm, judge, read_qrels, read_run, write_qrels, write_run
from rankopt.rankers import RegressionRanker


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Ten queries of eight documents, two models, a CSV of sites, and qrels of most documents."""
    folder = tmp_path_factory.mktemp("runs")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(80, 3))
    grades = np.clip(np.round(features[:, 0] + rng.normal(size=80)), 0, 2)
    names = [f"d{i}" for i in rng.permutation(80)]
    queries = Queries.from_arrays(features, grades, qid=np.repeat(np.arange(10), 8), documents=names)
    write_svmlight(queries, folder / "data.txt")
    lines = [f"{i // 8},{name},{'ab'[i % 2]}\n" for i, name in enumerate(names)]
    (folder / "a.csv").write_text("qid,docid,site\n" + "".join(lines))
    RegressionRanker(0.0).fit(queries).save(folder / "m.rankopt")
    RegressionRanker(1e6).fit(queries).save(folder / "n.rankopt")
    write_qrels(folder / "all", queries)
    kept = [line for line in (folder / "all").read_text().splitlines() if rng.random() < 0.8]
    (folder / "qrels").write_text("\n".join(kept) + "\n")
    return folder


def run(*arguments):
    return CliRunner().invoke(rankopt, [str(argument) for argument in arguments])


def ranked(folder, *options, model="m.rankopt"):
    done = run("rank", folder / model, folder / "data.txt", "--format", "trec", *options)
    assert done.exit_code == 0, done.output
    return done.output


def test_a_run_is_the_ranking_under_a_name(folder, tmp_path):
    lines = [line.split() for line in ranked(folder, "--k", 3, "--tag", "ours").splitlines()]
    assert {(line[1], line[5]) for line in lines} == {("Q0", "ours")}
    assert [line[3:5] for line in lines] == [["1", "3"], ["2", "2"], ["3", "1"]] * 10
    queries = read_svmlight(folder / "data.txt")
    ranker = RegressionRanker(0.0).fit(queries)
    shown = ranker.rank(queries, k=3)
    assert [line[2] for line in lines] == [name for names in shown.values() for name in names]
    ranked(folder, "--output", tmp_path / "run.gz")
    assert gzip.decompress((tmp_path / "run.gz").read_bytes()).decode() == ranked(folder)


def test_scores_of_the_model_are_written_where_they_make_the_ranking(folder):
    lines = [line.split() for line in ranked(folder, "--scores", "model").splitlines()]
    queries = read_svmlight(folder / "data.txt")
    scores = RegressionRanker(0.0).fit(queries).predict(queries)
    assert sorted(float(line[4]) for line in lines) == sorted(scores.tolist())
    quota = ("--attributes", folder / "a.csv", "--k", 4, "--exactly", "2:site=a@2")
    done = run("rank", folder / "m.rankopt", folder / "data.txt", "--format", "trec", "--scores", "model", *quota)
    assert done.exit_code != 0
    assert "--scores rank" in str(done.exception)


def test_the_order_under_constraints_comes_back_from_the_file(folder, tmp_path):
    quota = ("--attributes", folder / "a.csv", "--k", 4, "--exactly", "2:site=a@2")
    (tmp_path / "run").write_text(ranked(folder, *quota))
    found = read_run(tmp_path / "run")
    queries = read_attributes(folder / "a.csv", read_svmlight(folder / "data.txt"))
    admissible = Admissible(4).exactly(2, documents={"site": "a"}, positions=range(2))
    ranker = RegressionRanker(0.0).fit(queries)
    shown = ranker.rank(queries, constraints=admissible)
    assert list(found.document_ids) == [name for names in shown.values() for name in names]
    assert found.scores.tolist() == [4, 3, 2, 1] * 10
    write_run(tmp_path / "python", queries, ranker.predict(queries), orders=shown)
    assert (tmp_path / "python").read_text() == (tmp_path / "run").read_text()


def test_formats_and_their_options_go_together(folder):
    for options in (("--tag", "x"), ("--scores", "model"), ("--format", "trec", "--json")):
        done = run("rank", folder / "m.rankopt", folder / "data.txt", *options)
        assert done.exit_code == 2, done.output


@pytest.fixture(scope="module")
def runs(folder):
    (folder / "one.run").write_text(ranked(folder, "--k", 5))
    lines = ranked(folder, "--k", 5, model="n.rankopt").splitlines()
    (folder / "two.run").write_text("\n".join(line for line in lines if not line.startswith("9 ")) + "\n")
    return folder / "one.run", folder / "two.run"


def test_runs_are_compared_as_in_python(folder, runs):
    done = run("evaluate", "--qrels", folder / "qrels", *runs, "--measure", "ndcg_cut_5", "--measure", "map", "--json")
    assert done.exit_code == 0, done.output
    record = json.loads(done.output)
    qrels = read_qrels(folder / "qrels")
    one, two = (
        evaluate(*judge(qrels, read_run(path), missing="skip"), ["nDCG@5", "AP"], convention="trec") for path in runs
    )
    rows = {(row["measure"], row["run"]): row for row in record["rows"]}
    assert rows["nDCG@5", "one.run"]["mean"] == one.mean("nDCG@5")
    assert rows["AP", "two.run"]["mean"] == two.mean("AP")
    common = [query for query in one.query_ids if query != "9"]
    pairs = [compare(two, one.of(common), measure=m) for m in ("nDCG@5", "AP")]
    assert [rows[m, "two.run"]["p"] for m in ("nDCG@5", "AP")] == [pair.p for pair in pairs]
    assert [rows[m, "two.run"]["p_holm"] for m in ("nDCG@5", "AP")] == holm([pair.p for pair in pairs]).tolist()
    assert (record["convention"], record["tests"]) == ("trec", 2)
    assert record["coverage"]["two.run"]["missing_queries"] == 1
    assert record["coverage"]["one.run"]["unjudged_documents"] > 0


def test_what_is_missing_or_unjudged_is_said(folder, runs):
    shown = run("evaluate", "--qrels", folder / "qrels", *runs).output
    assert "convention trec; 95% intervals by Student's t, of differences paired" in shown
    assert "raised by Holm for 5 tests" in shown
    assert "1 of 10 judged queries are missing, left out of its means, as trec_eval does" in shown
    assert "are unjudged and count as not relevant" in shown
    zero = run("evaluate", "--qrels", folder / "qrels", *runs, "--missing", "zero", "--interval", "bootstrap").output
    assert "counted 0, as trec_eval -c does" in zero
    assert "by the bootstrap" in zero
    done = run("evaluate", "--qrels", folder / "qrels", *runs, "--missing", "error")
    assert "lacks 1 judged queries, such as '9'" in str(done.exception)


def test_runs_of_the_same_name_keep_their_folders(folder, runs, tmp_path):
    (tmp_path / "one.run").write_bytes(runs[1].read_bytes())
    done = run("evaluate", "--qrels", folder / "qrels", runs[0], tmp_path / "one.run", "--measure", "AP", "--json")
    assert json.loads(done.output)["baseline"] == str(runs[0])


HOSTILE = {
    "empty.run": (b"", "is empty; a line is 'query Q0 document rank score tag'"),
    "short.run": (b"0 Q0 d1 1 5\n", "line 1: 5 columns"),
    "text.run": (b"0 Q0 d1 1 high t\n", "line 1: 'high' is not a number"),
    "twice.run": (b"0 Q0 d1 1 5 t\n0 Q0 d1 2 4 t\n", "line 2: document 'd1' stands twice"),
    "bytes.run": (bytes(range(128, 256)), "line 1"),
    "others.run": (b"x Q0 d1 1 5 t\n", "no query of the qrels"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_runs_are_refused_by_name(folder, tmp_path, name):
    content, message = HOSTILE[name]
    (tmp_path / name).write_bytes(content)
    done = run("evaluate", "--qrels", folder / "qrels", tmp_path / name)
    assert done.exit_code != 0
    assert message in str(done.exception)
    assert type(done.exception).__name__ == "DataError"


def test_usage_is_explained(folder, runs):
    for arguments, message in (
        (["--qrels", folder / "qrels", *runs, "--model", folder / "m.rankopt"], "leave --scores and --model out"),
        (["--qrels", folder / "qrels", runs[0], runs[0]], "given twice"),
        ([folder / "data.txt", runs[0], "--model", folder / "m.rankopt"], "need --qrels"),
        ([folder / "data.txt", "--model", folder / "m.rankopt", "--missing", "zero"], "give --qrels"),
    ):
        done = run("evaluate", *arguments)
        assert done.exit_code == 2
        assert message in done.output


def test_negative_grades_of_qrels_are_unjudged_unless_said(folder, runs, tmp_path):
    text = (folder / "qrels").read_text().replace(" 0\n", " -1\n")
    (tmp_path / "qrels").write_text(text)
    unjudged = json.loads(
        run("evaluate", "--qrels", tmp_path / "qrels", runs[0], "--measure", "bpref", "--json").output
    )
    told = json.loads(
        run("evaluate", "--qrels", tmp_path / "qrels", runs[0], "--measure", "bpref", "--json", "--unjudged", 0).output
    )
    as_given = json.loads(run("evaluate", "--qrels", folder / "qrels", runs[0], "--measure", "bpref", "--json").output)
    assert told["rows"] == as_given["rows"]
    assert unjudged["rows"] != as_given["rows"]
    for value in ("nan", "-1", "inf"):
        done = run("evaluate", "--qrels", tmp_path / "qrels", runs[0], "--unjudged", value)
        assert "negative cannot be" in str(done.exception)
