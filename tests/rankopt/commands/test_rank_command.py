"""`rankopt rank`: what it lists is admissible, and what the ranker would list."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from rankopt.cli import rankopt
from rankopt.constraints import Admissible
from rankopt.data import Queries, read_attributes, read_svmlight, write_svmlight
from rankopt.errors import DataError
from rankopt.rankers import RegressionRanker


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
    for line in done.output.splitlines():
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
    ],
)
def test_wrong_usage_says_how(files, options, says):
    done = run(files, "--attributes", files / "a.csv", *options)
    assert done.exit_code == 2
    assert says in done.output


def test_no_room_and_no_attributes(files):
    full = run(files, "--k", 7, "--attributes", files / "a.csv", "--at-most", "1:site")
    assert isinstance(full.exception, DataError)
    assert "admits at most" in str(full.exception)
    assert "--on-infeasible truncate" in str(full.exception)
    cut = run(files, "--k", 7, "--attributes", files / "a.csv", "--at-most", "1:site", "--on-infeasible", "truncate")
    assert all(0 < len(documents) <= 3 for documents in listed(cut).values())
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
    with pytest.raises(DataError, match=r"t.csv a column of them by a usual name \(docid, docno, doc_id\)"):
        raise CliRunner().invoke(rankopt, arguments).exception
