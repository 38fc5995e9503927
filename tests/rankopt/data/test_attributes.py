"""Attributes of documents come from a CSV file that names query and document."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rankopt.data import Queries, read_attributes
from rankopt.errors import DataError

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
    assert_array_equal(joined.attributes["year"], [1999, 2010, 2004])
    assert_array_equal(joined.attributes["share"], [0.001, -1, 0.5])
    assert [joined.attributes[name].dtype.kind for name in joined.attributes] == ["U", "i", "f"]
    assert not joined.attributes["site"].flags.writeable


def test_other_documents_other_columns_and_earlier_attributes(read, queries):
    before = queries.with_(attributes={"genre": ["g", "h", "g"], "year": [1, 2, 3]})
    joined = read([*LINES, "q9,z,w.org,2000,0"], before, columns=["year"])
    assert list(joined.attributes) == ["genre", "year"]
    assert_array_equal(joined.attributes["year"], [1999, 2010, 2004])
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
    keys = ["7,b", "7,a", "q2,a"]
    joined = read(["qid,docid,site", *(f'{key},"{word}"' for key, word in zip(keys, words, strict=True))])
    site = joined.attributes["site"]
    assert site.dtype.kind == kind
    texts = [word.replace('""', '"') or None for word in words]  # an empty field is no label
    assert site.tolist() == (texts if kind in "UO" else [float(word) for word in words])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (LINES[:3], "no line for query '7', document 'a'.*1 lack"),
        ([*LINES, "7,b,z.org,1,1"], r"x\.csv, line 5: query '7', document 'b' stands in line 3 already"),
        ([*LINES, "8,b,z.org,1,1", "8,b,z.org,1,1"], "line 6: query '8'"),
        (["docid,site", "a,b"], "line 1: the column 'qid' is needed once; the columns are 'docid', 'site'"),
        (["qid,docid,qid", "a,b,c"], "'qid' is needed once"),
        (["qid,docid,site,site", *LINES[1:]], "a column has no name, or that of another"),
        (["qid,docid,", "7,a,x"], "a column has no name"),
        ([LINES[0], "7,b,x.org"], r"line 2: 3 fields but the header has 5"),
        ([LINES[0], '7,b,"x.org,1,1'], "line 2: this is no CSV"),
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


def test_documents_without_a_key_cannot_be_joined(read, queries):
    with pytest.raises(DataError, match="no document ids"):
        read(LINES, queries.with_(document_ids=None))
    with pytest.raises(DataError, match="Query 7 has a document without id"):
        read(LINES, queries.with_(document_ids=(None, "a", "a")))
    with pytest.raises(DataError, match="Document 'a' stands twice in query 7"):
        read(LINES, queries.with_(document_ids=("a", "a", "a")))


def test_a_missing_file_is_pythons_own_error(queries, tmp_path):
    with pytest.raises(FileNotFoundError):
        read_attributes(tmp_path / "nowhere.csv", queries)
