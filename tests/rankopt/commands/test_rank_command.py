"""`rankopt rank`: what it lists is admissible, and what the ranker would list."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from rankopt import LargeMarginRanker, PairwiseRanker, compare
from rankopt.cli import rankopt
from rankopt.constraints import Admissible
from rankopt.data import Queries, read_attributes, read_svmlight, read_table, write_svmlight
from rankopt.errors import DataError, ListLengthWarning, OptionError
from rankopt.rankers import MatchingRanker, RegressionRanker


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Three queries of eight documents, a model, and a CSV with site, age and group of every document."""
    folder = tmp_path_factory.mktemp("rank")
    rng = np.random.default_rng(0)
    features, grades = rng.normal(size=(24, 3)), rng.integers(0, 3, 24)
    names = [f"d{i}" for i in rng.permutation(24)]
    queries = Queries.from_arrays(features, grades, qid=np.repeat(["x", "y", "z"], 8), documents=names)
    write_svmlight(queries, folder / "data.txt")
    sites, ages = rng.choice(["a.org", "b.org", "c.org"], 24), rng.integers(1, 4, 24)
    groups = np.where(np.arange(24) % 8 < 4, "f", "m")
    lines = zip(np.repeat(["x", "y", "z"], 8), names, sites, ages, groups, strict=True)
    (folder / "a.csv").write_text("qid,docid,site,age,group\n" + "".join(",".join(map(str, p)) + "\n" for p in lines))
    RegressionRanker(0.0).fit(queries).save(folder / "m.rankopt")
    return folder


def run(files, *options):
    arguments = ["rank", str(files / "m.rankopt"), str(files / "data.txt"), *map(str, options)]
    return CliRunner().invoke(rankopt, arguments)


def listed(done):
    """query → documents, from the lines that were printed."""
    assert done.exit_code == 0, done.output
    found = {}
    for line in done.stdout.splitlines():
        query, place, document, _ = line.split("\t")
        found.setdefault(query, []).append(document)
        assert int(place) == len(found[query])
    return found


def test_without_quotas_it_sorts_by_score(files):
    done = run(files, "--k", 4)
    scores = [float(line.split("\t")[3]) for line in done.output.splitlines()]
    assert [len(documents) for documents in listed(done).values()] == [4, 4, 4]
    assert all(scores[i] >= scores[i + 1] for i in range(12) if i % 4 != 3)


QUOTAS = {
    "one a site": (["--at-most", "1:site"], lambda s: s.at_most(1, by="site")),
    "two of the group": (["--at-least", "2:group=f"], lambda s: s.at_least(2, documents={"group": "f"})),
    "the first is three": (["--exactly", "1:age=3@1"], lambda s: s.exactly(1, documents={"age": 3}, positions=[0])),
    "blanks and ==": (["--at-least", "2 : group == f"], lambda s: s.at_least(2, documents={"group": "f"})),
    "a share": (["--at-least", "67%:group=m"], lambda s: s.at_least(share=0.67, documents={"group": "m"})),
    "a share of the first": (
        ["--at-most", "50%:site@2"],
        lambda s: s.at_most(share=0.5, by="site", prefixes=[1, 2]),
    ),
    "both": (
        ["--at-most", "2:site", "--at-least", "1:group=m@2"],
        lambda s: s.at_most(2, by="site").at_least(1, documents={"group": "m"}, positions=range(2)),
    ),
}


@pytest.mark.parametrize("name", QUOTAS)
def test_quotas_are_those_of_the_language(files, name):
    options, state = QUOTAS[name]
    done = run(files, "--k", 3, "--attributes", files / "a.csv", *options)
    queries = read_attributes(files / "a.csv", read_svmlight(files / "data.txt"))
    ranker = RegressionRanker(0.0).fit(queries)
    expected = ranker.rank(queries, constraints=state(Admissible(3)))
    assert listed(done) == {query: list(documents) for query, documents in expected.items()}
    assert listed(done) != listed(run(files, "--k", 3))


def test_evaluate_measures_the_lists_of_rank(files, tmp_path):
    """Under the constraints that a model was trained under, as `score` does, or under quotas."""
    queries = read_attributes(files / "a.csv", read_svmlight(files / "data.txt"))
    rules = Admissible(3).at_most(1, by="site")
    under = LargeMarginRanker("nDCG@3", lam=0.1, constraints=replace(rules, on_infeasible="truncate")).fit(queries)
    under.save(tmp_path / "under")
    free = RegressionRanker(0.0, measure="nDCG@3").fit(queries)
    (tmp_path / "scores").write_text("".join(f"{score!r}\n" for score in free.predict(queries).tolist()))
    paths = str(files / "m.rankopt"), str(tmp_path / "under"), str(tmp_path / "scores")
    words = ["evaluate", str(files / "data.txt"), "--attributes", str(files / "a.csv"), "--measure", "nDCG@3", "--json"]
    words += ["--model", paths[0], "--model", paths[1], "--scores", paths[2]]

    def values(*more):
        done = CliRunner().invoke(rankopt, [*words, *more])
        assert done.exit_code == 0, done.output
        record = json.loads(done.stdout)
        assert record["compared"]
        return [record["runs"][path]["measures"]["nDCG@3"]["mean"] for path in paths]

    plain = free.score(queries)
    assert values() == pytest.approx([plain, under.score(queries), plain])
    quotas = free.score(queries, constraints=rules), under.score(queries, constraints=rules)
    assert values("--k", "3", "--at-most", "1:site") == pytest.approx([quotas[0], quotas[1], quotas[0]])
    assert plain != quotas[0]
    done = CliRunner().invoke(rankopt, [*words, "--k", "3", "--at-most", "1:site"])
    cost = {one["run"]: one for one in json.loads(done.stdout)["constraints"]}
    assert cost.keys() == {*paths}
    best = free.score(queries, constraints=Admissible(3))
    assert [cost[paths[0]][name] for name in ("mean_a", "mean_b")] == pytest.approx([quotas[0], best])
    done = CliRunner().invoke(rankopt, [*(one for one in words if one != "--json"), "--k", "3", "--at-most", "1:site"])
    assert f"{quotas[0] - best:+.4f}" in done.stdout.partition("constraints against none")[2]
    missing = CliRunner().invoke(rankopt, ["evaluate", str(files / "data.txt"), "--model", paths[1]])
    assert missing.exit_code == 2
    assert "give --attributes FILE" in missing.output
    near = run(files, "--attributes", files / "a.csv", "--k", 2, "--at-most", "1:sites")
    assert "no attribute 'sites' is known; did you mean 'site'?" in " ".join(near.output.split())
    alone = CliRunner().invoke(rankopt, [*words, "--k", "3"])
    assert "add --at-most" in alone.output


def test_what_shortened_lists_cost_is_against_lists_as_short(files):
    """nDCG@6 of the best document of each site, against as many best documents, by the formula."""
    queries = read_attributes(files / "a.csv", read_svmlight(files / "data.txt"))
    ranker = RegressionRanker(0.0).fit(queries)
    scores, sites, rows = ranker.predict(queries), queries.attributes["site"], queries.rows.reshape(3, 8)
    expected = []
    for order in (own[np.argsort(-scores[own])] for own in rows):
        firsts = [row for place, row in enumerate(order) if sites[row] not in sites[order[:place]]]
        gains = 2.0 ** queries.relevance[[firsts, order[: len(firsts)]]] - 1
        ideal = -np.sort(1 - 2.0 ** queries.relevance[order])[:6] @ (1 / np.log2(np.arange(2, 8)))
        expected.append((gains[0] - gains[1]) @ (1 / np.log2(np.arange(2, 2 + len(firsts)))) / ideal)
    words = ["evaluate", files / "data.txt", "--attributes", files / "a.csv", "--model", files / "m.rankopt", "--k", 6]
    words += ["--at-most", "1:site", "--on-infeasible", "truncate", "--measure", "nDCG@6"]
    done = CliRunner().invoke(rankopt, [*map(str, words)])
    cost = done.stdout.partition("constraints against none, in lists of the same length")[2]
    assert f"{np.mean(expected):+.4f}" in cost
    assert "3 of 3 lists are shorter than 6 (shortest: 3)" in cost
    rules = Admissible(6, on_infeasible="truncate").at_most(1, by="site")
    under = ranker.evaluate(queries, constraints=rules, measures="nDCG@6")
    free = ranker.evaluate(queries, constraints=Admissible(6), measures="nDCG@6", cut_to=under)
    assert compare(under, free).differences == pytest.approx(expected)
    with pytest.raises(OptionError, match="cut_to must be a Evaluation or None; got a int"):
        ranker.evaluate(queries, cut_to=3)
    with pytest.warns(ListLengthWarning, match="at most 3 .* in 3 of 3 queries"):
        compare(under, ranker.evaluate(queries, constraints=Admissible(6), measures="nDCG@6"))


def test_attributes_of_constraints_are_columns_of_a_frame():
    rng = np.random.default_rng(1)
    X, y = pd.DataFrame(rng.normal(size=(12, 2)), columns=["f", "g"]), rng.integers(0, 3, 12)
    ranker, more = RegressionRanker(1.0).fit(X, y, group=[12]), X.assign(shop=[*"aabbcc"] * 2)
    rules = Admissible(3).at_most(1, by="shop")
    passed = {"attributes": more[["shop"]], "constraints": rules}
    np.testing.assert_array_equal(ranker.rank(more, constraints=rules), ranker.rank(X, **passed))
    assert ranker.score(more, y, constraints=rules) == ranker.score(X, y, **passed)
    with pytest.raises(DataError, match="need the attribute 'shop'"):
        ranker.rank(X, constraints=rules)


def test_json_says_which_constraints(files):
    done = run(files, "--k", 2, "--attributes", files / "a.csv", "--at-most", "1:site", "--json")
    record = json.loads(done.output)
    assert record["constraints"] == "Admissible(k=2).at_most(1, by='site')"
    assert len(record["ranking"]) == 6


def test_one_query(files, tmp_path):
    write_svmlight(read_svmlight(files / "data.txt").select([1]), tmp_path / "one.txt")
    done = CliRunner().invoke(rankopt, ["rank", str(files / "m.rankopt"), str(tmp_path / "one.txt"), "--k", "2"])
    assert list(listed(done)) == ["y"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--at-most", "1:site"], "quotas need --k"),
        (["--k", 3, "--at-most", "site"], "write N:ATTRIBUTE"),
        (["--k", 3, "--at-most", "1:site@4"], "beyond --k 3"),
        (["--k", 3, "--at-least", "1:age=old"], "holds numbers"),
        (["--k", 3, "--exactly", "50%:site"], "use --at-least or --at-most"),
    ],
)
def test_wrong_usage_says_how(files, options, says):
    done = run(files, "--attributes", files / "a.csv", *options)
    assert done.exit_code == 2
    assert says in done.output


def test_booleans_of_a_table_are_read_from_words(tmp_path):
    frame = pd.DataFrame({"qid": [0] * 4, "x": [4.0, 3, 2, 1], "docid": list("abcd"), "ad": [True, False, True, False]})
    frame.to_parquet(tmp_path / "t.parquet")
    RegressionRanker(0.0).fit(Queries.from_arrays(-np.eye(4)[:, :1], [0, 1, 1, 1], qid=[0] * 4)).save(tmp_path / "m")
    words = ["rank", str(tmp_path / "m"), str(tmp_path / "t.parquet"), "--features", "x", "--relevance", "none"]
    for word in ("true", "1", "True"):
        done = CliRunner().invoke(rankopt, [*words, "--k", "2", "--at-most", f"0:ad={word}"])
        assert {name: {*found} for name, found in listed(done).items()} == {"0": {"b", "d"}}
    with pytest.raises(DataError, match="No document has ad 'maybe'; the values are False, True"):
        raise CliRunner().invoke(rankopt, [*words, "--k", "2", "--at-most", "0:ad=maybe"]).exception


def test_no_room_and_no_attributes(files):
    full = run(files, "--k", 7, "--attributes", files / "a.csv", "--at-most", "1:site")
    assert isinstance(full.exception, DataError)
    assert "admits at most" in str(full.exception)
    assert "--on-infeasible truncate" in str(full.exception)
    absent = run(files, "--k", 7, "--attributes", files / "a.csv", "--at-least", "1:group=F")
    assert "No document has group 'F'; the values are 'f', 'm'. 2 more of 3 queries" in str(absent.exception)
    assert "penalized" not in str(absent.exception)  # no option of the command
    cut = run(files, "--k", 7, "--attributes", files / "a.csv", "--at-most", "1:site", "--on-infeasible", "truncate")
    assert all(0 < len(documents) <= 3 for documents in listed(cut).values())
    assert "3 of 3 lists are shorter than 7 (shortest: 3)" in cut.stderr
    missing = run(files, "--k", 3, "--at-most", "1:site")
    assert missing.exit_code == 2
    assert "give --attributes FILE" in missing.output


def test_tables_without_ids_are_told_of_a_column(files, tmp_path):
    queries = read_svmlight(files / "data.txt")
    named = [f"x{j}" for j in range(queries.n_features)]
    rows = np.column_stack([np.repeat(np.arange(len(queries)), np.diff(queries.offsets)), queries.features])
    lines = [",".join(["qid", *named]), *(",".join([str(int(row[0])), *map(repr, row[1:].tolist())]) for row in rows)]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    pytest.importorskip("pyarrow")
    arguments = ["rank", str(files / "m.rankopt"), str(tmp_path / "t.csv"), "--format", "trec"]
    with pytest.raises(DataError, match="name their column: --document COLUMN"):
        raise CliRunner().invoke(rankopt, arguments).exception
    names = ["url_id,site", *(f"u{row},{'ab'[row % 2]}" for row in range(len(rows)))]
    (tmp_path / "u.csv").write_text("\n".join(f"{line},{name}" for line, name in zip(lines, names, strict=True)))
    arguments = ["rank", str(files / "m.rankopt"), str(tmp_path / "u.csv")]
    with pytest.raises(DataError, match="--document url_id"):
        raise CliRunner().invoke(rankopt, [*arguments, "--format", "trec"]).exception
    done = CliRunner().invoke(rankopt, arguments)
    assert (
        f"documents are row numbers of {tmp_path / 'u.csv'}, from 0; for ids name their column: --document url_id"
        in (done.stderr)
    )
    named = CliRunner().invoke(rankopt, [*arguments, "--document", "url_id"])
    assert "row numbers" not in named.stderr
    rows, ids = ([line.split("\t")[2] for line in one.stdout.splitlines()] for one in (done, named))
    assert ids == [f"u{row}" for row in rows]


# `rankopt explain`: its numbers are those of the ranker, as text, JSON and page; slots, other measures.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 3))
    grades = rng.integers(0, 3, 60)
    queries = Queries.from_arrays(
        features, grades, qid=np.repeat(np.arange(1, 11), 6), documents=[f"d{i}" for i in range(60)]
    )
    write_svmlight(queries, folder / "t.txt")
    lines = [f"{1 + i // 6},d{i},{'abc'[i % 3]}\n" for i in range(60)]
    (folder / "a.csv").write_text("qid,docid,site\n" + "".join(lines), encoding="utf-8")
    read = read_svmlight(folder / "t.txt")
    LargeMarginRanker("nDCG@3", lam=0.1, normalize="zscore").fit(read).save(folder / "plain")
    limits = Admissible(3).at_most(1, by="site")
    limited = LargeMarginRanker("nDCG@3", lam=0.1, constraints=limits)
    limited.fit(read_attributes(folder / "a.csv", read)).save(folder / "limited")
    PairwiseRanker("AP").fit(read).save(folder / "pairs")
    MatchingRanker(n_positions=2, lam=0.1, bound="nonconvex").fit(read).save(folder / "slots")
    return folder


def run_explained(folder, *arguments):
    paths = [str(folder / one) if (folder / one).is_file() or one == "page.html" else one for one in arguments]
    done = CliRunner().invoke(rankopt, ["explain", *paths])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_json_holds_the_rankers_own_numbers(folder):
    from rankopt.rankers import load_model

    told = json.loads(run_explained(folder, "plain", "t.txt", "--queries", "3", "--json").output)
    queries, ranker = read_svmlight(folder / "t.txt"), load_model(folder / "plain")
    found = ranker.bound_tightness(queries)
    assert told["queries"] == len(found)
    assert told["means"]["regret"] == pytest.approx(found.regret.mean())
    assert [str(row["query"]) for row in told["worst"]] == [str(found.query[row]) for row in found.worst(3)]
    assert [row["regret"] for row in told["worst"]] == found.regret[found.worst(3)].tolist()
    assert sum(one["share"] for one in told["weights"]["scores"]) == pytest.approx(1.0)
    assert {one["feature"] for one in told["weights"]["scores"]} == {"feature 1", "feature 2", "feature 3"}


def test_text_and_page_are_written(folder):
    done = run_explained(folder, "plain", "t.txt", "--report", "page.html")
    assert done.exit_code == 0
    assert "mean of all" in done.output
    assert "What moves the scores" in done.output
    assert "Why these rankings?" in (folder / "page.html").read_text(encoding="utf-8")


def test_constraints_need_their_attributes(folder):
    assert "mean of all" in run_explained(folder, "limited", "t.txt", "--attributes", "a.csv").output
    missing = CliRunner().invoke(rankopt, ["explain", str(folder / "limited"), str(folder / "t.txt")])
    assert missing.exit_code == 2
    assert "give --attributes FILE" in missing.output


def test_measures_without_bounds_name_the_option(folder):
    with pytest.raises(OptionError, match="give --measure nDCG@10"):
        run_explained(folder, "pairs", "t.txt", "--measure", "MeanNDCG")
    assert "trained no bound" in run_explained(folder, "pairs", "t.txt", "--measure", "nDCG@3").output
    assert "trained no bound" in run_explained(folder, "pairs", "t.txt").output  # AP


def test_slots_have_weights_each(folder):
    done = run_explained(folder, "slots", "t.txt", "--report", "page.html")
    assert "What moves the slot 2" in done.output


def test_data_without_anything_to_order_are_refused(folder, tmp_path):
    (tmp_path / "flat.txt").write_text("1 qid:1 1:2\n1 qid:1 1:3\n", encoding="utf-8")
    with pytest.raises(DataError, match="none has documents that nDCG@3 distinguishes"):
        CliRunner().invoke(
            rankopt, ["explain", str(folder / "plain"), str(tmp_path / "flat.txt")], catch_exceptions=False
        )


@pytest.mark.parametrize("quotas", [[], ["--at-most", "2:site"]])
def test_ties_fall_by_id_as_in_python_in_any_order_of_rows(tmp_path, quotas):
    rng = np.random.default_rng(8)
    table = pd.DataFrame({
        "qid": np.repeat(["x", "y"], 9), "relevance": rng.integers(0, 3, 18), "x": rng.integers(0, 2, 18).astype(float),
        "docid": [f"d{i:02d}" for i in rng.permutation(18)], "site": rng.choice(["a", "b", "c", "d"], 18),
    })  # fmt: skip
    kept = {"attributes": ["site"], "document": "docid", "features": ["x"]}
    queries = read_table(table, **kept)
    ranker = RegressionRanker().fit(queries)
    ranker.save(tmp_path / "m.rankopt")
    rules = Admissible(4).at_most(2, by="site") if quotas else None
    known = {query: list(documents) for query, documents in ranker.rank(queries, k=4, constraints=rules).items()}
    for name, rows in (("a.parquet", np.arange(18)), ("b.parquet", rng.permutation(18))):
        table.iloc[rows].to_parquet(tmp_path / name)
        words = ["rank", str(tmp_path / "m.rankopt"), str(tmp_path / name), "--features", "x", "--k", "4", *quotas]
        assert listed(CliRunner().invoke(rankopt, words)) == known
