"""LETOR files are read strictly, fast and to the last bit, and written so that they read back the same."""

import gzip
import random
import struct
import time
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array
from sklearn.datasets import load_svmlight_file

from rankopt.data import Queries, concatenate, read_svmlight, write_svmlight
from rankopt.data.svmlight import reader
from rankopt.data.svmlight.fast import EXACT, HARD, number_at, parse_bytes, powers_of_ten
from rankopt.data.svmlight.parser import Rules, parse_lines
from rankopt.errors import DataError, OptionError

GOOD = """\
2 qid:10 1:3 2:2.5 3:-0.25 #docid = GX-1 inc = 1 prob = 0.08
0 qid:10 1:0.1 2:1e-3 3:+.5 #docid = GX-2 inc = 1 prob = 0.08
1 qid:q-7 1:1. 2:0 3:12345678901234567890 #docid = 40626
"""


@pytest.fixture(params=["compiled", "by line"])
def way(request, monkeypatch):
    """Both ways through the reader, whatever the size of the file."""
    monkeypatch.setattr(reader, "COMPILED_FROM", 0 if request.param == "compiled" else np.inf)
    return request.param


@pytest.fixture
def read(tmp_path, way):
    """Read a text or bytes as the file `x.txt`."""

    def read(text, **options):
        path = tmp_path / "x.txt"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_svmlight(path, **options)

    return read


def same(one, other):
    """Assert that two parses are one, bit for bit."""
    for name in ("grades", "bounds", "columns", "values", "lines", "starts"):
        a, b = getattr(one, name), getattr(other, name)
        assert (name, a.dtype, a.tobytes()) == (name, b.dtype, b.tobytes())
    assert (one.qids, one.documents, one.size) == (other.qids, other.documents, other.size)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.rstrip("\n"),
        GOOD.replace(" ", "\t  "),
        GOOD.replace(" #", "#"),
        GOOD.replace("\n", " \r\n"),
        "\ufeff" + GOOD,
        "# made in 2009\n\n" + GOOD.replace("\n", "\n\n # a comment \n\r\n"),
    ],
    ids=["plain", "crlf", "no end", "tabs", "tight", "blank crlf", "bom", "comments"],
)
def test_what_a_file_may_look_like(read, text):
    queries = read(text)
    assert queries.query_ids == (10, "q-7")
    assert queries.document_ids == ("GX-1", "GX-2", "40626")
    assert queries.feature_names is None
    assert_array_equal(queries.offsets, [0, 2, 3])
    assert_array_equal(queries.input_order, [0, 1, 2])
    assert_array_equal(queries.relevance, [2, 0, 1])
    assert_array_equal(queries.features, [[3, 2.5, -0.25], [0.1, 0.001, 0.5], [1, 0, 12345678901234567890]])
    assert queries.features.dtype == np.float64


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 qid:q-7 1:nan", r"feature 1 is 'nan'. Rankings need finite features: impute it, or read with missing=0.0"),
        ("0 qid:q-7 1:NULL", "feature 1 is 'NULL'.*missing=0.0"),
        ("0 qid:q-7 2:-inf", "feature 2 is '-inf'.*repair"),
        ("0 qid:q-7 2:1e999", "feature 2 is '1e999'"),
        ("0 qid:q-7 2:0x1", "feature 2 is '0x1'"),
        ("0 qid:q-7 2:1_0", "feature 2 is '1_0'"),
        ("0 qid:q-7 2:", "feature 2 is ''"),
        ("0 qid:q-7 2:1:2", "feature 2 is '1:2'"),
        ("0 1:1", "no 'qid:' follows the grade"),
        ("0", "no 'qid:' follows the grade"),
        ("0 qid: 1:1", "no 'qid:' follows the grade"),
        ("0qid:q-7 1:1", "the grade is '0qid:q-7'"),
        ("0 QID:q-7 1:1", "no 'qid:' follows the grade"),
        ("0 qid:10 1:1", "query '10' reappears; it began in line 1"),
        ("0 qid:q-7 1:1 1:2", "feature 1 comes twice"),
        ("0 qid:q-7 2:1 1:2", "feature 1 comes after feature 2"),
        ("0 qid:q-7 0:1", "feature index 0. Indices count from 1"),
        ("0 qid:q-7 -1:1", "'-1:1' is no entry"),
        ("0 qid:q-7 1.5:1", "'1.5:1' is no entry"),
        ("0 qid:q-7 bm25", "'bm25' is no entry"),
        ("0 qid:q-7 99999999999:1", "feature index 99999999999 is beyond"),
        ("good qid:q-7 1:1", "the grade is 'good'"),
        ("nan qid:q-7 1:1", "the grade is 'nan'"),
        ("1e400 qid:q-7 1:1", "the grade is '1e400'"),
        ("-1 qid:q-7 1:1", "the grade is -1. Grades are >= 0: read with unjudged=0"),
        ("0 qid:q-7 1:1 \x00", "byte 0x00 in column 15 is not text"),
        ("0 qid:q-7 1:1\r2:1", "byte 0x0d in column 14 is not text"),
        (b"0 qid:q-7 1:1 # caf\xe9", "byte 0xe9 in column 20 is not text"),
    ],
)
def test_errors_name_file_and_line(read, line, message):
    line = line if isinstance(line, bytes) else line.encode()
    with pytest.raises(DataError, match=rf"x\.txt, line 4: {message}"):
        read(GOOD.encode() + line + b"\n3 qid:99 1:0\n")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", gzip.compress(b"", mtime=0)])
def test_an_empty_file_is_an_error(read, text):
    with pytest.raises(DataError, match=r"x\.txt is empty"):
        read(text)


def test_a_file_without_features_is_an_error(read):
    with pytest.raises(DataError, match="no line has a feature"):
        read("1 qid:1\n0 qid:1\n")


def test_a_picture_is_not_text(read):
    with pytest.raises(DataError, match=r"x\.txt, line 1: byte 0x89 in column 1 is not text"):
        read(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))


def test_a_missing_file_is_pythons_own_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_svmlight(tmp_path / "nowhere.txt")


def test_gzip_of_several_members_and_damaged_gzip(tmp_path, way):
    parts = [f"{q % 3} qid:{q} 1:{q}.5 2:1\n".encode() * 5 for q in range(40)]
    path = tmp_path / "train.gz"
    path.write_bytes(b"".join(gzip.compress(part) for part in parts))
    queries = read_svmlight(path)
    assert queries.query_ids == tuple(range(40))
    whole = gzip.compress(b"".join(parts))
    for damaged in (whole[:-9], whole[:40], whole[:60] + b"\x00\xff" + whole[62:], whole + b"rest", whole[:2]):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"train\.gz cannot be unpacked"):
            read_svmlight(path)


def test_missing_values_get_the_value_asked_for(read):
    text = "1 qid:1 1:NaN 2:NULL 3:1\n0 qid:1 1:null 2:nan\n"
    assert_array_equal(read(text, missing=-2.5).features, [[-2.5, -2.5, 1], [-2.5, -2.5, 0]])
    for word in ("inf", "nanx", "na", "-nan"):
        with pytest.raises(DataError, match="line 1: feature 1"):
            read(f"1 qid:1 1:{word}\n", missing=0.0)
    assert_array_equal(read(text, missing=np.nan).features, [[np.nan, np.nan, 1], [np.nan, np.nan, 0]])
    with pytest.raises(OptionError, match=r"missing must be .*nan or None; got inf"):
        read(text, missing=np.inf)


def test_negative_grades_mean_what_the_caller_says(read):
    text = "1 qid:1 1:1\n-1 qid:2 1:2\n-1 qid:1b 1:3\n2 qid:1b 1:4\n"
    assert_array_equal(read(text, unjudged=0).relevance, [1, 0, 0, 2])
    dropped = read(text, unjudged="drop")
    assert dropped.query_ids == (1, "1b")
    assert_array_equal(dropped.input_order, [0, 3])
    with pytest.raises(DataError, match="not valid for negative grades"):
        read(text, unjudged="keep")


def test_query_ids_are_integers_only_where_written_so(read):
    ids = ["7", "007", "-3", "+3", "1.0", "q1", "12345678901234567890123", "é"]
    queries = read("".join(f"0 qid:{name} 1:1\n" for name in ids))
    assert queries.query_ids == (7, "007", -3, "+3", "1.0", "q1", "12345678901234567890123", "é")


def test_documents_without_id_are_none(read):
    text = "0 qid:1 1:1 # docid=a#b c\n1 qid:1 1:2\n1 qid:1 1:3 # doc = x\n1 qid:1 1:3 #docid =\n"
    assert read(text).document_ids == ("a#b", None, None, None)
    assert read("0 qid:1 1:1 # nothing\n").document_ids is None


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("# 1: BM25 of the title\n# 2: length\n", ("BM25 of the title", "length")),
        ("#1 bm25\r\n#2 length\r\n", ("bm25", "length")),
        ("# exported\n# feature 2 = b\n\n# feature 1 = a\n", ("a", "b")),
        ("# feature names: bm25 length\n", ("bm25", "length")),
        ("# 2009: the year\n", None),
        ("# 1 query\n", None),
        ("# nothing\n", None),
    ],
)
def test_names_of_features_in_the_header(read, header, names):
    assert read(header + "0 qid:1 1:1 2:2\n").feature_names == names


def test_headers_that_contradict_the_data(read):
    with pytest.raises(DataError, match="names two features 'a'"):
        read("# 1: a\n# 2: a\n0 qid:1 1:1 2:2\n")
    with pytest.raises(DataError, match="feature 2 but the header gives"):
        read("# feature names: a\n0 qid:1 1:1 2:2\n")
    with pytest.raises(DataError, match="header names 2 features but n_features is 3"):
        read("# feature names: a b\n0 qid:1 1:1\n", n_features=3)


def test_the_number_of_features_and_the_kind_of_table(read):
    text = "0 qid:1 1:1\n1 qid:1 3:2\n"
    assert_array_equal(read(text).features, [[1, 0, 0], [0, 0, 2]])
    wide = read(text, n_features=50)
    assert (wide.features.format, wide.features.shape) == ("csr", (2, 50))
    assert read(text, n_features=50, sparse=False).features.shape == (2, 50)
    assert read(text, sparse=True, dtype=np.float32).features.dtype == np.float32
    assert read(text, dtype=np.float32).features.dtype == np.float32
    assert read("0 qid:1 2000000000:1\n").n_features == 2_000_000_000
    with pytest.raises(DataError, match="feature 3 but n_features gives 2 features"):
        read(text, n_features=2)
    for wrong in ({"sparse": "yes"}, {"dtype": np.int64}):
        with pytest.raises(OptionError, match=next(iter(wrong))):
            read(text, **wrong)


PIECES = [
    "2 qid:1 1:0.5 2:-1.25e-3 7:12345678901234567 #docid = GX-1 inc = 1\r\n",
    "0 qid:1 2:nan 3:NULL 4:0.1\n",
    "# comment 1: x\n",
    "\n",
    " 1.5\tqid:ab-c 1:1. 2:.5 3:1e300 9:-0 # docid=x#y\n",
    "1 qid:z 1:1e-320 2:0.30000000000000004 3:9007199254740993#c é\n",
]
LETTERS = "0123456789.:eE+-# \t\r\n\x00\x0bqidocnaulNAULL=é_x"


@pytest.mark.parametrize("seed", range(4))
def test_compiled_code_reads_what_lines_say_and_gives_up_on_the_rest(seed):
    chance = random.Random(seed)
    for _ in range(1500):
        text = [letter for _ in range(chance.randint(1, 4)) for letter in chance.choice(PIECES)]
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
            place = chance.randint(0, len(text))
            text[place : place + chance.randint(0, 1)] = chance.choice(["", chance.choice(LETTERS)])
        missing = chance.choice([None, -2.5, np.nan])
        raw = "".join(text).encode()
        rules = Rules("x", missing, negative=True)
        try:
            slow = parse_lines(raw, 1, rules, {})
        except DataError:
            slow = None
        fast = parse_bytes(raw, 1, rules, {})
        assert (fast is None) == (slow is None), raw
        if fast is not None and slow is not None:
            same(fast, slow)


def near_middles(chance):
    """Decimals next to the middle of two neighboring doubles, where rounding is hard."""
    low = chance.uniform(1, 2) * 2.0 ** chance.randint(-60, 60)
    with localcontext() as context:
        context.prec = 900
        middle = (Decimal(low) + Decimal(float(np.nextafter(low, np.inf)))) / 2
        context.prec = chance.choice([17, 18, 19, 60])
        return str(+middle)


def any_double(chance):
    return repr(struct.unpack("d", struct.pack("Q", chance.getrandbits(64)))[0])


def any_decimal(chance):
    return f"{chance.getrandbits(chance.randint(1, 62))}e{chance.randint(-330, 310)}"


def short_decimal(chance):
    return f"{chance.uniform(-1, 1):.{chance.randint(0, 17)}f}"


@pytest.mark.parametrize(
    ("words", "most"), [(near_middles, 3000), (any_double, 1000), (any_decimal, 1000), (short_decimal, 0)]
)
def test_numbers_are_rounded_as_python_does(words, most):
    chance = random.Random(0)
    hard = 0
    for _ in range(3000):
        word = words(chance)
        if "n" in word:
            continue  # infinite or NaN
        value, end, state = number_at(np.frombuffer(f"{word} ".encode(), dtype=np.uint8), 0, *powers_of_ten())
        assert end == len(word)
        assert state in (EXACT, HARD)
        hard += state == HARD
        if state == EXACT:
            assert struct.pack("d", value) == struct.pack("d", float(word)), word
    assert hard <= most


FINITE = st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp"), exclude_characters="#"), min_size=1
)


@pytest.mark.study
@settings(derandomize=True, max_examples=40, deadline=None)
@given(st.data())
def test_written_queries_read_back_to_the_bit(tmp_path_factory, data):
    m, d = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    dtype = data.draw(st.sampled_from([np.float64, np.float32]))
    sparse = data.draw(st.booleans())
    sizes = data.draw(st.lists(st.integers(1, 3), min_size=m, max_size=m))
    n = sum(sizes)
    width = 32 if dtype == np.float32 else 64
    values = data.draw(
        st.lists(st.floats(allow_nan=False, allow_infinity=False, width=width), min_size=n * d, max_size=n * d)
    )
    table = np.array(values, dtype=dtype).reshape(n, d)
    ids = data.draw(
        st.lists(
            WORDS.filter(lambda word: not word.lstrip("-").isdigit()) | st.integers(-9, 10**17),
            min_size=m,
            max_size=m,
            unique=True,
        )
    )
    queries = Queries(
        csr_array(table) if sparse else table,
        np.cumsum([0, *sizes]),
        np.array(data.draw(st.lists(FINITE.map(abs), min_size=n, max_size=n))),
        query_ids=tuple(ids),
        document_ids=data.draw(st.none() | st.lists(WORDS, min_size=n, max_size=n).map(tuple)),
        feature_names=data.draw(st.none() | st.just(tuple(f"feature no. {j}" for j in range(d)))),
    )
    folder = tmp_path_factory.mktemp("written")
    for name in ("x.txt", "x.txt.gz"):
        write_svmlight(queries, folder / name)
        back = read_svmlight(folder / name, dtype=dtype, sparse=sparse)
        for field in ("query_ids", "document_ids", "feature_names"):
            assert getattr(back, field) == getattr(queries, field)
        assert back.features.shape == queries.features.shape
        tables = [x.features.toarray() if sparse else x.features for x in (back, queries)]
        assert tables[0].tobytes() == tables[1].tobytes() or sparse
        assert_array_equal(*tables)
        assert back.relevance.tobytes() == queries.relevance.tobytes()
        assert_array_equal(back.offsets, queries.offsets)


def test_large_files_take_the_compiled_way_and_read_back(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "COMPILED_FROM", 1 << 19)
    rng = np.random.default_rng(0)
    queries = Queries.from_arrays(
        rng.normal(size=(3000, 8)), rng.integers(0, 5, 3000), qid=np.sort(rng.integers(0, 50, 3000))
    )
    write_svmlight(queries, tmp_path / "x.txt")
    text = (tmp_path / "x.txt").read_bytes()
    assert len(text) >= reader.COMPILED_FROM
    back = read_svmlight(tmp_path / "x.txt")
    assert back.features.tobytes() == queries.features.tobytes()
    assert back.query_ids == queries.query_ids
    (tmp_path / "x.txt").write_bytes(text + b"1 qid:999 3:1 2:1\n")
    with pytest.raises(DataError, match="line 3001: feature 2 comes after feature 3"):
        read_svmlight(tmp_path / "x.txt")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relevance": None}, "no grades"),
        ({"query_ids": ("a b",)}, "Query id 'a b'"),
        ({"query_ids": ("a#",)}, "Query id 'a#'"),
        ({"query_ids": ("",)}, "Query id ''"),
        ({"query_ids": ((1, 2),)}, "Query id"),
        ({"query_ids": (True,)}, "Query id"),
        ({"document_ids": ("a", "b c")}, "Document id 'b c'"),
        ({"feature_names": ("a\nb",)}, "Feature name"),
        ({"feature_names": (" a",)}, "Feature name"),
    ],
)
def test_what_cannot_be_written(tmp_path, change, message):
    queries = Queries(np.zeros((2, 1)), [0, 2], [0, 1]).replace(**change)
    with pytest.raises(DataError, match=message):
        write_svmlight(queries, tmp_path / "x.txt")
    assert not (tmp_path / "x.txt").exists()


def test_two_ids_of_one_spelling_cannot_be_written(tmp_path):
    with pytest.raises(DataError, match="same in writing"):
        write_svmlight(Queries(np.zeros((2, 1)), [0, 1, 2], [0, 1], query_ids=(1, "1")), tmp_path / "x.txt")


REAL = [
    "letor4-mq2008/S1.txt.gz",
    "letor2-ohsumed/S1.txt.gz",
    "letor3-ohsumed/Feature-min/S5.txt.gz",
    "mslr-web30k-sample/vali.txt.gz",
]


@pytest.mark.every(5)
@pytest.mark.parametrize("name", REAL)
def test_real_files_are_read_as_scikit_learn_reads_them(data_folder, tmp_path, name):
    queries = read_svmlight(data_folder / name)
    features, grades, qid = load_svmlight_file(str(data_folder / name), query_id=True)
    assert_array_equal(queries.features, features.toarray())
    assert_array_equal(queries.relevance, grades)
    assert_array_equal(np.repeat(queries.query_ids, np.diff(queries.offsets)), qid)
    text = gzip.decompress((data_folder / name).read_bytes())
    same(parse_bytes(text, 1, Rules(name), {}), parse_lines(text, 1, Rules(name), {}))
    write_svmlight(queries, tmp_path / "x.txt")
    back = read_svmlight(tmp_path / "x.txt")
    assert back.features.tobytes() == queries.features.tobytes()
    assert (back.query_ids, back.document_ids) == (queries.query_ids, queries.document_ids)


def test_parts_join_as_their_files_do(data_folder, tmp_path):
    paths = [data_folder / f"letor4-mq2008/S{part}.txt.gz" for part in (1, 2, 3)]
    joined = concatenate([read_svmlight(path) for path in paths])
    (tmp_path / "train.txt.gz").write_bytes(b"".join(path.read_bytes() for path in paths))
    whole = read_svmlight(tmp_path / "train.txt.gz")
    assert (len(whole), whole.n_documents, whole.n_features) == (471, 9630, 46)
    assert (whole.query_ids, whole.document_ids) == (joined.query_ids, joined.document_ids)
    for name in ("features", "relevance", "offsets", "input_order"):
        assert_array_equal(getattr(whole, name), getattr(joined, name))
    with pytest.raises(DataError, match="10002"):
        concatenate([whole, read_svmlight(paths[0])])


@pytest.mark.study
@pytest.mark.parametrize("packed", [pytest.param(True, marks=pytest.mark.study), False])
def test_no_slower_than_scikit_learn_on_large_files_and_near_it_on_small_ones(data_folder, tmp_path, packed):
    parts = [gzip.decompress((data_folder / f"letor4-mq2008/S{part}.txt.gz").read_bytes()) for part in (1, 2, 3)]
    large = b"".join(text.replace(b"qid:", b"qid:%d" % turn) for turn in (1, 2) for text in parts)
    assert len(large) > reader.COMPILED_FROM > len(parts[0])
    path = tmp_path / ("train.txt.gz" if packed else "train.txt")

    def fastest(action):
        seconds = []
        for _ in range(4):
            begin = time.perf_counter()
            action()
            seconds.append(time.perf_counter() - begin)
        return min(seconds[1:])

    for text, times in ((large, 1), (parts[0], 3)):
        path.write_bytes(gzip.compress(text) if packed else text)
        assert fastest(lambda: read_svmlight(path)) <= times * fastest(lambda: load_svmlight_file(f"{path}"))
