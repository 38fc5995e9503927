"""Queries from tables equal those from arrays; attributes come from a CSV file that names query and document."""

import warnings
from datetime import date
from decimal import Decimal

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.testing import assert_array_equal
from problems.command import called
from scipy.sparse import csr_array

from rankopt.cli import rankopt as main
from rankopt.data import Queries, load_sample, read_attributes, read_table
from rankopt.errors import ColumnWarning, DataError, RankoptError
from rankopt.rankers import RegressionRanker, load_model

pandas = pytest.importorskip("pandas")

COLUMNS = {
    "query_id": ["b", "a", "b", "a", "a"],
    "Label": [2, 0, 1, 1, 0],
    "docno": ["d1", "d2", "d3", "d4", "d5"],
    "x1": [0.5, 1.5, 2.5, 3.5, 4.5],
    "site": ["s", "t", "s", "s", "t"],
    "x2": [1, 2, 3, 4, 5],
}
EXPECTED = Queries.from_arrays(
    np.column_stack([COLUMNS["x1"], COLUMNS["x2"]]), COLUMNS["Label"], qid=COLUMNS["query_id"],
    documents=COLUMNS["docno"], attributes={"site": COLUMNS["site"]}, feature_names=["x1", "x2"],
)  # fmt: skip


def held_by(package):
    module = pytest.importorskip(package)
    return module.table(COLUMNS) if package == "pyarrow" else module.DataFrame(COLUMNS)


def same(found):
    np.testing.assert_array_equal(found.features, EXPECTED.features)
    np.testing.assert_array_equal(found.relevance, EXPECTED.relevance)
    np.testing.assert_array_equal(found.offsets, EXPECTED.offsets)
    assert (found.query_ids, found.document_ids) == (EXPECTED.query_ids, EXPECTED.document_ids)
    assert found.feature_names == EXPECTED.feature_names
    assert list(found.attributes["site"]) == list(EXPECTED.attributes["site"])


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_frames(package):
    same(read_table(held_by(package)))


@pytest.mark.parametrize("name", ["les-miserables", "digits"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_frame_of_queries_reads_back_equal(name, shuffled):
    queries = load_sample(name).train
    if shuffled:
        order = np.random.default_rng(0).permutation(queries.n_documents)
        queries = read_table(queries.to_frame().iloc[order], attributes=queries.attributes)
    again = read_table(queries.to_frame(), attributes=queries.attributes)
    for field in ("features", "relevance", "qid", "rows", "offsets"):
        assert_array_equal(getattr(again, field), getattr(queries, field))
    assert again.document_ids == queries.document_ids
    assert list(again.attributes) == list(queries.attributes)


def test_a_frame_names_unnamed_and_sparse_features():
    frame = Queries.from_arrays(csr_array([[0.0, 2.0], [1.0, 0.0]]), qid=["a", "b"]).to_frame()
    assert frame.to_dict("list") == {"qid": ["a", "b"], "x1": [0.0, 1.0], "x2": [2.0, 0.0]}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz"])
def test_separators_blanks_and_decimal_commas_of_text_files(ending, separator, tmp_path):
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(COLUMNS).rename(columns={"query_id": " Query ID", "Label": "label ", "x1": "x1 "})
    for decimal in "." if separator == "," else ".,":
        path = tmp_path / f"{'point' if decimal == '.' else 'comma'}.{ending}"
        frame.to_csv(path, index=False, sep=separator, decimal=decimal)
        same(read_table(path))
    attributes = tmp_path / f"a.{ending.removesuffix('.gz')}"
    pandas.DataFrame({"qid": list("aaabb"), "docid": ["d2", "d4", "d5", "d1", "d3"], "n": range(5)}).to_csv(
        attributes, index=False, sep=separator
    )
    assert read_attributes(attributes, EXPECTED).attributes["n"].tolist() == [3, 0, 4, 1, 2]


def test_one_column_is_no_table(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.csv").write_text("qid:label:x1\n1:0:2\n")
    with pytest.raises(DataError, match="only one column, 'qid:label:x1'; separate columns by commas"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("name", ["QID", "q_id", "Query-ID", "session_id", "search id", "srch_id", "Topic", "group_id"])
def test_frames_and_fit_know_the_same_columns_of_queries(name):
    frame = pandas.DataFrame(COLUMNS).rename(columns={"query_id": name})
    same(read_table(frame))
    rows = frame[[name, "x1", "x2"]]
    assert RegressionRanker().fit(rows, frame["Label"]).n_queries_ == 2
    with pytest.warns(ColumnWarning, match="called like ids of queries.*: group id"):
        assert read_table(frame.assign(**{"query": frame[name], "group id": [1, 2, 2, 1, 1]}).drop(columns=name))


@pytest.mark.parametrize("ending", ["parquet", "feather", "csv", "csv.gz"])
def test_files(ending, tmp_path):
    pytest.importorskip("pyarrow")
    frame, path = pandas.DataFrame(COLUMNS), tmp_path / f"t.{ending}"
    write = {"parquet": frame.to_parquet, "feather": frame.to_feather}.get(ending)
    frame.to_csv(path, index=False) if write is None else write(path)
    same(read_table(path))


@pytest.mark.parametrize("kept", [[0.5, 1.5, 2.5, 3.5, 4.5], [1, 0, 1, 1, 0], [True, False, True, 2, 0.5]])
def test_numbers_are_features_whatever_holds_them(kept):
    frame = pandas.DataFrame({**COLUMNS, "x1": np.array(kept, dtype=object)})
    assert frame["x1"].dtype == object
    for found in (read_table(frame), read_table(frame, features=["x1", "x2"])):
        assert found.feature_names == ("x1", "x2")
        assert list(found.attributes) == ["site"]
    same(read_table(frame.assign(x1=[Decimal(str(value)) for value in COLUMNS["x1"]])))


@pytest.mark.parametrize(
    ("column", "says"),
    [
        (pandas.to_datetime(["2026-01-01"] * 5), "dates or times"),
        ([date(2026, 1, 1)] * 5, "values of type date"),
        (["a", 1, "b", 2, "c"], "values of types str and int"),
        ([1, 2.0, "?", 3, 4], "values of types int and float|values of types int and str"),
    ],
)
def test_what_is_neither_a_number_nor_a_label_has_to_be_said(column, says):
    frame = pandas.DataFrame(COLUMNS).assign(odd=column)
    with pytest.raises(DataError, match=rf"'odd' of table contains ({says}), which .* encode .* attributes="):
        read_table(frame)
    with pytest.raises(DataError, match=rf"'odd' of table contains ({says}) and is not a feature"):
        read_table(frame, features=["x1", "odd"], attributes=["site"])
    same(read_table(frame, attributes=["site"]))
    assert list(read_table(frame, attributes=["odd"]).attributes) == ["odd"]


def test_a_missing_number_of_pandas_names_its_row():
    frame = pandas.DataFrame({**COLUMNS, "x1": np.array([1.0, pandas.NA, 2, 3, 4], dtype=object)})
    with pytest.raises(DataError, match="column 'x1' of table has no value in row 1"):
        read_table(frame)


def test_missing_values_are_counted_and_the_cure_works(tmp_path):
    frame = pandas.DataFrame({"qid": [1, 1, 2, 2], "relevance": [0, 1, 1, 0], "a": [1.0, 2, 3, 4]})
    holed = frame.assign(b=[None, 1.0, None, 2.0], c=[1.0, 2.0, 3.0, None])
    holed.to_parquet(tmp_path / "t.parquet")
    says = r"'b' of .* has no value in row 0 and in 1 others.*frame.drop\(columns=\['b', 'c'\]\); 2 columns .*: b, c"
    with pytest.raises(DataError, match=says):
        read_table(tmp_path / "t.parquet")
    for table in (holed, holed.fillna({"b": np.nan, "c": np.nan}).astype({"b": float}), tmp_path / "t.parquet"):
        with pytest.raises(DataError) as error:
            read_table(table)
        read, fit = (word.partition(" ")[0] for word in str(error.value).split(" with ")[-2:])
        ranker = eval(f"RegressionRanker({fit})", {"RegressionRanker": RegressionRanker})
        ranker.fit(eval(f"read_table(table, {read})", {"read_table": read_table, "table": table, "np": np}))
        assert "missingindicator_b" in ranker.get_feature_names_out()
    words = ("train", tmp_path / "t.parquet", "--model", tmp_path / "m", "--ranker", "regression")
    assert "or drop columns: --drop b,c" in called(*words).stderr
    assert called(*words, "--drop", "b,c").returncode == 0
    assert load_model(tmp_path / "m").feature_names_in_.tolist() == ["a"]


def test_grades_among_the_features_are_warned_of():
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {"qid": np.arange(40) // 4, "click_grade": rng.integers(0, 3, 40), "a": rng.normal(size=40)}
    )
    with pytest.warns(ColumnWarning, match="called like grades and hold a few integers.*: click_grade"):
        queries = read_table(frame.assign(relevance=frame.click_grade))
    with pytest.warns(ColumnWarning, match="equal y in every row: click_grade; leave them out of X"):
        RegressionRanker().fit(queries)
    with pytest.warns(ColumnWarning, match="equal y in every row: 0; leave them out of X"):
        RegressionRanker().fit(frame[["click_grade", "a"]].to_numpy(), frame.click_grade, qid=frame.qid)
    read_table(frame, relevance="click_grade")


def test_columns_that_are_named():
    frame = pandas.DataFrame(COLUMNS).rename(columns={"query_id": "session", "Label": "clicks"})
    found = read_table(frame, qid="session", relevance="clicks", features=["x2"], attributes=[])
    assert found.feature_names == ("x2",)
    assert not found.attributes
    np.testing.assert_array_equal(found.relevance, EXPECTED.relevance)


@pytest.mark.parametrize("package", ["pandas", "polars", "pyarrow"])
def test_a_missing_value_names_its_row(package):
    module = pytest.importorskip(package)
    holed = {**COLUMNS, "site": ["s", None, "s", "s", "t"]}
    with pytest.raises(DataError, match="column 'site' of table has no value in row 1"):
        read_table(module.table(holed) if package == "pyarrow" else module.DataFrame(holed))
    gap = {**COLUMNS, "x1": [0.5, 1.5, None, 3.5, 4.5]}
    with pytest.raises(DataError):
        read_table(module.table(gap) if package == "pyarrow" else module.DataFrame(gap))


def test_what_is_no_table_of_queries(tmp_path):
    frame = pandas.DataFrame(COLUMNS)
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "t.xlsx").write_bytes(b"")
    pytest.importorskip("pyarrow")
    for source, options, says in (
        (frame.drop(columns="query_id"), {}, "no column of queries"),
        (frame.assign(qid=1), {}, "choose one: qid="),
        (frame, {"relevance": "clicks"}, "no column 'clicks'"),
        (frame, {"features": ["x3"]}, "no column 'x3'"),
        (frame, {"features": ["site"]}, "contains text and is not a feature"),
        (frame[["query_id", "Label"]], {}, "no numeric column"),
        (pandas.concat([frame, frame[["x1"]]], axis=1), {}, "two columns 'x1'"),
        (3, {}, "is not a table"),
        (tmp_path / "bad.parquet", {}, "not a readable parquet file"),
        (tmp_path / "t.xlsx", {}, "has an unknown file type"),
    ):
        with pytest.raises(RankoptError, match=says):
            read_table(source, **options)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv")


def test_commands_take_tables(tmp_path):
    pytest.importorskip("pyarrow")
    from click.testing import CliRunner

    from rankopt.cli import rankopt as main
    from rankopt.data import open_queries

    pandas.DataFrame(COLUMNS).to_parquet(tmp_path / "t.parquet")
    for option in ([], ["--float32"], ["--sparse"]):
        folder = tmp_path / f"stored{''.join(option)}"
        ran = CliRunner().invoke(main, ["convert", str(tmp_path / "t.parquet"), "--output", str(folder), *option])
        assert ran.exit_code == 0, ran.output
        stored = open_queries(folder)
        np.testing.assert_allclose(np.asarray(stored.features.toarray() if option == ["--sparse"] else stored.features),
                                   EXPECTED.features)  # fmt: skip
    model = str(tmp_path / "m.rankopt")
    arguments = ["train", str(tmp_path / "t.parquet"), "--ranker", "regression", "--model", model]
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 0, ran.output
    ran = CliRunner().invoke(main, ["evaluate", str(tmp_path / "t.parquet"), "--model", model])
    assert ran.exit_code == 0, ran.output


LINES = ["qid,docid,site,year,share", "q2,a,x.org,2004,0.5", "7,b,y.org,1999,1e-3", "7,a,x.org,2010,-1"]


@pytest.fixture
def queries():
    """Query 7 with documents b, a and query q2 with document a, in shuffled rows."""
    return Queries.from_arrays(np.arange(3.0).reshape(3, 1), [0, 1, 2], qid=[7, "q2", 7], documents=["b", "a", "a"])


@pytest.fixture
def read(tmp_path, queries):
    """Join lines, written to `x.csv`, to the queries."""

    def read(lines, to=queries, **options):
        path = tmp_path / "x.csv"
        path.write_bytes(lines if isinstance(lines, bytes) else "\n".join(lines).encode())
        return read_attributes(path, to, **options)

    return read


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 3, 2, 1)])
def test_each_row_gets_the_line_of_its_key(read, end, order):
    joined = read(end.join(LINES[line] for line in order).encode())
    assert joined.query_ids == (7, "q2")
    assert_array_equal(joined.attributes["site"], ["y.org", "x.org", "x.org"])
    assert_array_equal(joined.attributes["year"], [1999, 2004, 2010])
    assert_array_equal(joined.attributes["share"], [0.001, 0.5, -1])
    assert [joined.attributes[name].dtype.kind for name in joined.attributes] == ["U", "i", "f"]
    assert not joined.attributes["site"].flags.writeable


def test_other_documents_other_columns_and_earlier_attributes(read, queries):
    before = queries.replace(attributes={"genre": ["g", "h", "g"], "year": [1, 2, 3]})
    joined = read([*LINES, "q9,z,w.org,2000,0"], before, columns=["year"])
    assert list(joined.attributes) == ["genre", "year"]
    assert_array_equal(joined.attributes["year"], [1999, 2004, 2010])
    assert list(before.attributes["year"]) == [1, 2, 3]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["1", "-20", "0"], "i"),
        (["007", "1", "2"], "U"),
        (["1", "", "2"], "O"),
        (["1", "2.5", "-3e2"], "f"),
        (["1", "nan", "2"], "U"),
        (["1e999", "1", "2"], "U"),
        (["1_0", "1", "2"], "U"),
        (["99999999999999999999", "1", "2"], "f"),
        (["a, b", 'say ""hi""', "two\nlines"], "U"),
    ],
)
def test_a_column_is_what_all_its_words_are(read, words, kind):
    keys = ["7,b", "q2,a", "7,a"]
    joined = read(["qid,docid,site", *(f'{key},"{word}"' for key, word in zip(keys, words, strict=True))])
    site = joined.attributes["site"]
    assert site.dtype.kind == kind
    texts = [word.replace('""', '"') or None for word in words]  # an empty field is no label
    assert site.tolist() == (texts if kind in "UO" else [float(word) for word in words])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (LINES[:3], "no line for query '7', document 'a'.*1 lack"),
        ([*LINES, "7,b,z.org,1,1"], r"x\.csv, line 5: query '7', document 'b' repeats line 3"),
        ([*LINES, "8,b,z.org,1,1", "8,b,z.org,1,1"], "line 6: query '8'"),
        (["docid,site", "a,b"], "line 1: the column 'qid' is needed once; the columns are 'docid', 'site'"),
        (["qid,docid,qid", "a,b,c"], "'qid' is needed once"),
        (["qid,docid,site,site", *LINES[1:]], "a column has no name or a repeated one"),
        (["qid,docid,", "7,a,x"], "a column has no name"),
        ([LINES[0], "7,b,x.org"], r"line 2: 3 fields but the header has 5"),
        ([LINES[0], '7,b,"x.org,1,1'], "line 2: invalid CSV"),
        ([], "the columns are none"),
        (b"qid,docid\n7,caf\xe9\n", "line 2: byte 0xe9 in column 6 is not text"),
    ],
)
def test_errors_name_file_and_line(read, lines, message):
    with pytest.raises(DataError, match=message):
        read(lines)


def test_an_unknown_column_is_named(read):
    with pytest.raises(DataError, match="the column 'genre' is needed once; the columns are 'qid', 'docid', 'site'"):
        read(LINES, columns=["site", "genre"])


def test_features_are_named_and_not_passed():
    frame = held_by("pandas")
    with pytest.raises(DataError, match="features and attributes are names of columns; got array"):
        read_table(frame, features=np.ones((2, 2)))


def test_documents_without_a_key_cannot_be_joined(read, queries):
    with pytest.raises(DataError, match="no document ids"):
        read(LINES, queries.replace(document_ids=None))
    with pytest.raises(DataError, match="Query 7 has a document without id"):
        read(LINES, queries.replace(document_ids=(None, "a", "a")))
    with pytest.raises(DataError, match="Document 'a' occurs twice in query 7"):
        read(LINES, queries.replace(document_ids=("a", "a", "a")))


def test_a_missing_file_is_pythons_own_error(queries, tmp_path):
    with pytest.raises(FileNotFoundError):
        read_attributes(tmp_path / "nowhere.csv", queries)


# Columns: grades are named or found, and what numbers the rows is no feature.


def event_log(n=60):
    rng = np.random.default_rng(0)
    return pandas.DataFrame({
        "query_id": rng.integers(0, 6, n), "url_id": rng.permutation(n) + 500, "click_grade": rng.integers(0, 5, n),
        "f1": rng.normal(size=n), "f2": rng.normal(size=n), "flag": 1.0,
    })  # fmt: skip


def test_a_table_without_known_grades_names_the_candidates():
    with pytest.raises(DataError, match=r"no column of grades .* but click_grade.*pass relevance='click_grade'"):
        read_table(event_log())
    with pytest.raises(DataError, match="pass relevance='its name', or relevance=None"):
        read_table(event_log()[["query_id", "f1", "f2"]])
    with pytest.warns(ColumnWarning):
        assert read_table(event_log(), relevance=None).relevance is None


def test_columns_that_number_the_rows_are_no_features(tmp_path):
    frame = event_log().sample(frac=1, random_state=0)
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "log.csv")
    for file, index in (("log.parquet", ""), ("log.csv", "'' (without a name)")):
        with pytest.warns(ColumnWarning) as caught:
            found = read_table(tmp_path / file, relevance="click_grade")
        assert found.feature_names == ("f1", "f2", "flag")
        numbering, constant = sorted(str(one.message) for one in caught)[::-1]
        assert "url_id" in numbering
        assert index in numbering
        assert "__index_level_0__" not in numbering
        assert "one value only" in constant
        assert "flag" in constant
        np.testing.assert_array_equal(found.relevance, frame.click_grade)
        np.testing.assert_array_equal(found.qid, frame.query_id)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named = read_table(event_log(), relevance="click_grade", features=["url_id", "flag"])
        assert named.feature_names == ("url_id", "flag")
        read_table(event_log()[["query_id", "click_grade", "f1"]], relevance="click_grade")


def test_a_table_without_rows_is_refused():
    with pytest.raises(DataError, match="rankings need documents and features"):
        read_table(event_log()[:0], relevance="click_grade")


def test_queries_to_serve_may_have_constant_columns():
    log = event_log().drop(columns="url_id")
    ranker = RegressionRanker().fit(log.drop(columns="click_grade"), log.click_grade)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for part in (log, log[log.query_id == 3]):
            queries = read_table(part.drop(columns="click_grade"), relevance=None)
            assert_array_equal(ranker.predict(queries), ranker.predict(part.drop(columns="click_grade")))
        ranker.score(read_table(log[log.query_id == 3], relevance="click_grade"))
    with pytest.warns(ColumnWarning, match="have one value only: .*: flag"):
        read_table(log, relevance="click_grade")


@pytest.mark.parametrize("name", ["qid", "query_id", "QueryID", "query"])
def test_fit_knows_the_query_columns_of_read_table(name):
    frame = event_log().rename(columns={"query_id": name})
    ranker = RegressionRanker().fit(frame[[name, "f1", "f2"]], frame.click_grade)
    assert (ranker.n_queries_, ranker.n_features_in_) == (6, 2)
    assert read_table(frame[[name, "f1", "f2", "click_grade"]], relevance="click_grade").query_ids == tuple(
        dict.fromkeys(frame[name].tolist())
    )
    with pytest.raises(DataError, match="pass one of them"):
        RegressionRanker().fit(frame[[name, "f1"]], frame.click_grade, qid=frame[name])
    with pytest.raises(DataError, match="leave out all but one"):
        RegressionRanker().fit(frame[[name, "f1"]].assign(queryid=1), frame.click_grade)


def test_commands_name_the_option_for_the_column_of_grades(tmp_path):
    event_log().to_csv(tmp_path / "log.csv", index=False)
    ran = CliRunner().invoke(main, ["train", str(tmp_path / "log.csv"), "--model", str(tmp_path / "m")])
    assert ran.exit_code
    assert "click_grade may hold them; pass --relevance click_grade" in str(ran.exception)
    frame = event_log().rename(columns={"click_grade": "relevance"})
    frame[["query_id", "relevance", "f1", "f2"]].to_csv(tmp_path / "train.csv", index=False)
    arguments = ["train", str(tmp_path / "train.csv"), "--ranker", "regression", "--model", str(tmp_path / "m")]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    frame[["f2", "url_id", "query_id", "f1"]].to_csv(tmp_path / "new.csv", index=False)  # no grades, other order
    arguments = [str(tmp_path / "m"), str(tmp_path / "new.csv"), "--output", "-"]
    ran = CliRunner().invoke(main, ["predict", *arguments])
    assert ran.exit_code == 0, ran.output
    expected = load_model(tmp_path / "m").predict(frame[["f1", "f2"]])
    np.testing.assert_allclose([float(line) for line in ran.stdout.split()], expected)


def test_frames_of_features_warn_of_grades_and_numbers_of_rows():
    frame = event_log().rename(columns={"click_grade": "relevance"})
    with pytest.warns(ColumnWarning, match="called like grades or ids; leave them out of X: relevance"):
        RegressionRanker().fit(frame[["query_id", "f1", "relevance"]], frame.relevance)
    with pytest.warns(ColumnWarning, match="number the rows; leave them out of X: url_id"):
        RegressionRanker().fit(frame[["query_id", "f1", "url_id"]], frame.relevance)
    with pytest.warns(ColumnWarning, match="another integer in each row.*: item"):
        read_table(frame.drop(columns=["url_id", "flag"]).assign(item=np.random.default_rng(1).permutation(9999)[:60]))


def test_frames_of_pyarrow_have_a_query_column_too():
    pyarrow = pytest.importorskip("pyarrow")
    frame = event_log()[["query_id", "f1", "f2"]]
    table = pyarrow.Table.from_pandas(frame, preserve_index=False)
    ranker = RegressionRanker().fit(table, event_log().click_grade)
    assert (ranker.n_queries_, ranker.feature_names_in_.tolist()) == (6, ["f1", "f2"])
    np.testing.assert_array_equal(ranker.predict(table), ranker.predict(frame))
    for rows in (table, frame):
        queries = Queries.from_arrays(rows, event_log().click_grade)
        assert queries.feature_names == ("f1", "f2")
        assert queries.qid.tolist() == frame.query_id.tolist()
        with pytest.raises(DataError, match="the column 'query_id' of the features is one too"):
            Queries.from_arrays(rows, qid=frame.query_id)
