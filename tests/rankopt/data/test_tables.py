"""Queries from tables are those from arrays, whoever holds the table."""

from datetime import date
from decimal import Decimal

import numpy as np
import pytest

from rankopt.data import Queries, read_table
from rankopt.errors import DataError, RankoptError

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
    with pytest.raises(DataError, match=rf"'odd' of table holds ({says}), which .* encode .* attributes="):
        read_table(frame)
    with pytest.raises(DataError, match=rf"'odd' of table holds ({says}) and is no feature"):
        read_table(frame, features=["x1", "odd"], attributes=["site"])
    same(read_table(frame, attributes=["site"]))
    assert list(read_table(frame, attributes=["odd"]).attributes) == ["odd"]


def test_a_missing_number_of_pandas_names_its_row():
    frame = pandas.DataFrame({**COLUMNS, "x1": np.array([1.0, pandas.NA, 2, 3, 4], dtype=object)})
    with pytest.raises(DataError, match="column 'x1' of table has no value in row 1"):
        read_table(frame)


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
        (frame.assign(qid=1), {}, "say which one is meant: qid="),
        (frame, {"relevance": "clicks"}, "no column 'clicks'"),
        (frame, {"features": ["x3"]}, "no column 'x3'"),
        (frame, {"features": ["site"]}, "holds text and is no feature"),
        (frame[["query_id", "Label"]], {}, "no column of numbers"),
        (pandas.concat([frame, frame[["x1"]]], axis=1), {}, "two columns 'x1'"),
        (3, {}, "is no table"),
        (tmp_path / "bad.parquet", {}, "no parquet file"),
        (tmp_path / "t.xlsx", {}, "of no kind that is known"),
    ):
        with pytest.raises(RankoptError, match=says):
            read_table(source, **options)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "none.csv")


def test_commands_take_tables(tmp_path):
    pytest.importorskip("pyarrow")
    from click.testing import CliRunner

    from rankopt.cli import rankopt as main
    from rankopt.data import open_stored

    pandas.DataFrame(COLUMNS).to_parquet(tmp_path / "t.parquet")
    for option in ([], ["--float32"], ["--sparse"]):
        folder = tmp_path / f"stored{''.join(option)}"
        ran = CliRunner().invoke(main, ["store", str(tmp_path / "t.parquet"), "--output", str(folder), *option])
        assert ran.exit_code == 0, ran.output
        stored = open_stored(folder)
        np.testing.assert_allclose(np.asarray(stored.features.toarray() if option == ["--sparse"] else stored.features),
                                   EXPECTED.features)  # fmt: skip
    model = str(tmp_path / "m.rankopt")
    arguments = ["train", str(tmp_path / "t.parquet"), "--ranker", "regression", "--model", model]
    ran = CliRunner().invoke(main, arguments)
    assert ran.exit_code == 0, ran.output
    ran = CliRunner().invoke(main, ["evaluate", str(tmp_path / "t.parquet"), "--model", model])
    assert ran.exit_code == 0, ran.output
