"""Files that are meant ill or went wrong: typed errors with file and line, linear time, memory of what they hold."""

import gzip
import subprocess
import sys
import time
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from planted.attack import assert_survived

from rankopt.data import Queries, concatenate, read_attributes, read_svmlight, read_svmlight_blocks, text
from rankopt.data.svmlight import reader as reading
from rankopt.data.svmlight.fast import parse_bytes
from rankopt.data.svmlight.parser import Rules
from rankopt.errors import DataError, OptionError

MANY = 20_000


@pytest.fixture(params=["compiled", "by line"])
def way(request, monkeypatch):
    monkeypatch.setattr(reading, "COMPILED_FROM", 0 if request.param == "compiled" else np.inf)
    load_kernels()


def load_kernels():
    """To load and compile takes longer than what is measured here."""
    parse_bytes(b"1 qid:1 1:1\n", 1, Rules("x"), {})


@pytest.fixture(params=["whole", "in one block", "line by line"])
def read(request, tmp_path, way):
    """Read bytes as the file `x.txt`, whole or in blocks that are joined again."""

    def read(content, **options):
        path = tmp_path / "x.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        if request.param == "whole":
            return read_svmlight(path, **{"sparse": False, **options})
        block = 1 if request.param == "line by line" else 1 << 30
        return concatenate(list(read_svmlight_blocks(path, block=block, **options)))

    return read


@contextmanager
def within(seconds, megabytes=None):
    """Bounds that are far above what is taken, and far below what a quadratic way would."""
    if megabytes is not None:
        tracemalloc.start()
    begin = time.process_time()
    try:
        yield
        assert time.process_time() - begin < seconds
        assert megabytes is None or tracemalloc.get_traced_memory()[1] < megabytes << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("word", ["1" * MANY + "x", "." + "0" * MANY + "e", "1" + " " * MANY + "x", "-" * MANY])
@pytest.mark.parametrize("line", ["1 qid:1 1:{}", "{} qid:1 1:1", "1 qid:1 {}:1"])
def test_a_long_word_that_is_no_number_takes_linear_time_and_a_short_message(read, word, line):
    with within(1), pytest.raises(DataError, match=r"x\.txt, line 2: .{1,300}$"):
        read("0 qid:0 1:1\n" + line.format(word) + "\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 qid:1 {}:1", "feature index 1111.* is beyond"),
        ("1 qid:1 1:{}", "feature 1 is '1111.*repair the value"),
        ("{} qid:1 1:1", "the grade is '1111"),
        ("-{} qid:1 1:1", "the grade is '-1111"),
    ],
)
def test_numbers_of_five_thousand_digits_keep_file_and_line(read, line, message):
    with pytest.raises(DataError, match=rf"x\.txt, line 1: {message}"):
        read(line.format("1" * 5000) + "\n")


def test_queries_documents_and_comments_of_five_thousand_digits_are_names(read):
    digits = "1" * 5000
    queries = read(f"# {digits}: x\n# {digits} x\n1 qid:{digits} 1:1 # docid = {digits}\n")
    assert queries.query_ids == queries.document_ids == (digits,)
    assert queries.feature_names is None


def test_a_query_that_comes_back_names_both_lines_however_far_apart(read):
    text = "1 qid:a 1:1\n" + "".join(f"0 qid:{i} 1:1\n" for i in range(50)) + "1 qid:a 1:1\n"
    with pytest.raises(DataError, match=r"x\.txt, line 52: query 'a' reappears; it began in line 1 "):
        read(text)


def test_a_byte_order_mark_is_no_text_at_the_beginning_and_text_elsewhere(read):
    assert read("\ufeff1 qid:1 1:1\n").relevance.tolist() == [1]
    assert read(gzip.compress("\ufeff1 qid:1 1:1\n".encode())).relevance.tolist() == [1]
    with pytest.raises(DataError, match=r"line 2: the grade is '\\ufeff0'"):
        read("1 qid:1 1:1\n\ufeff0 qid:1 1:1\n")


@pytest.mark.study
@pytest.mark.parametrize(
    "line",
    ["\n", *(pytest.param(line, marks=pytest.mark.study) for line in ("# nothing at all\n", "# ::::::::::::::::\n"))],
)
def test_a_small_gzip_of_many_comments_takes_little_memory(tmp_path, line):
    load_kernels()
    path = tmp_path / "x.txt"
    part = gzip.compress(line.encode() * ((1 << 20) // len(line)))
    path.write_bytes(part * 28 + gzip.compress(b"1 qid:1 1:1\n"))
    with within(30, megabytes=24):
        assert [part.n_documents for part in (read_svmlight(path), *read_svmlight_blocks(path))] == [1, 1]


def test_a_line_without_end_is_refused_where_it_begins(read, monkeypatch):
    monkeypatch.setattr(text, "LONGEST_LINE", 1 << 21)
    for letter in (b"#", b"1"):
        for end in (b"", b"\n"):
            with within(5), pytest.raises(DataError, match=r"x\.txt, line 3: the line is longer than 2097152 bytes"):
                read(b"1 qid:1 1:1\n\n" + letter * ((1 << 21) + 1) + end)
    assert read(b"1 qid:1 1:1\n\n" + b"#" * (1 << 21)).n_documents == 1


def test_one_query_over_many_blocks_is_looked_at_once(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"".join(b"1 qid:1 1:%d 2:0.5\n" % i for i in range(2 * MANY)) + b"0 qid:2 1:1\n")
    with within(5):
        first, last = read_svmlight_blocks(path, block=200)
    assert (first.n_documents, last.n_documents) == (2 * MANY, 1)
    assert_array_equal(first.features[:, 0], np.arange(2 * MANY))


def test_features_that_a_small_file_only_counts_up_to_make_no_array(tmp_path, way):
    path = tmp_path / "x.txt"
    path.write_bytes(b"1 qid:1 1:1\n\n1 qid:1 2147483647:1\n")
    for action in (lambda: read_svmlight(path, sparse=False), lambda: list(read_svmlight_blocks(path))):
        with pytest.raises(
            DataError, match=r"x\.txt, line 3: feature 2147483647 requires .* sparse=True, or pass n_features="
        ):
            action()
    for queries in (read_svmlight(path), *read_svmlight_blocks(path, sparse=True)):
        assert queries.features.shape == (2, 2147483647)
    path.write_bytes(b"1 qid:1 1:1\n1 qid:1 100000:1\n")  # an array that the machine does not feel is made
    assert read_svmlight(path, sparse=False).features.shape == (2, 100_000)


def test_headers_of_many_names_take_linear_time(tmp_path):
    names = [f"name {i}" for i in range(80_000)]
    path = tmp_path / "x.txt"
    path.write_text("".join(f"# {i}: {name}\n" for i, name in enumerate(names, 1)) + "1 qid:1 1:1\n", encoding="utf-8")
    with within(5):
        assert read_svmlight(path).feature_names == tuple(names)
    queries = Queries(np.zeros((1, 1)), [0, 1], document_ids=("a",))
    path.write_text(f"qid,docid,{','.join(names)}\n0,a{',1' * len(names)}\n", encoding="utf-8")
    with within(8):
        assert list(read_attributes(path, queries).attributes) == names


def test_a_long_word_does_not_widen_the_whole_column(tmp_path):
    path = tmp_path / "x.csv"
    words = ["x" * 100_000, *(f"w{i}" for i in range(MANY))]
    path.write_text("qid,docid,a\n" + "".join(f"0,{i},{word}\n" for i, word in enumerate(words)), encoding="utf-8")
    queries = Queries(np.zeros((len(words), 1)), [0, len(words)], document_ids=tuple(range(len(words))))
    with within(5, megabytes=64):
        assert read_attributes(path, queries).attributes["a"].tolist() == words


def test_comments_between_queries_name_no_features(read):
    queries = read("1 qid:1 1:1\n# 1: a\n# feature names: b c d\n1 qid:2 1:1\n")
    assert (queries.feature_names, queries.n_features) == (None, 1)


def test_a_header_as_long_as_many_blocks_names_the_features(read):
    assert read("# 1: a\n\n# 2: b\n# and so on\n1 qid:1 1:1\n0 qid:2 1:1\n").feature_names == ("a", "b")
    with pytest.raises(DataError, match=r"x\.txt, line 3 names two features 'a'"):
        read("# 1: a\n\n# 2: a\n1 qid:1 2:1\n")
    with pytest.raises(DataError, match=r"x\.txt, line 3: feature 2 but the header gives 1 features"):
        read("# feature names: a\n1 qid:1 1:1\n1 qid:1 2:1\n")


def test_too_many_features_are_told_with_their_line_before_what_comes_later(read):
    with pytest.raises(DataError, match=r"x\.txt, line 2: feature 5 but n_features gives 4 features"):
        read("1 qid:1 4:1\n1 qid:2 5:1\n1 qid:1 1:nan\n", n_features=4)


def test_what_single_precision_cannot_hold_is_told_with_its_line(read):
    most = float(np.finfo(np.float32).max)
    beyond = most + 2.0**103  # the middle to the next, were there one
    lines = f"1 qid:1 1:{most!r}\n1 qid:1 1:{-np.nextafter(beyond, 0):.17g}\n"
    assert_array_equal(read(lines, dtype=np.float32).features, [[most], [-most]])
    with pytest.raises(DataError, match=r"line 3: feature 1 is '3.4028.*', which float32 cannot hold"):
        read(f"{lines}1 qid:1 1:{beyond!r}\n", dtype=np.float32)
    with pytest.raises(OptionError, match="missing"):
        read(lines, dtype=np.float32, missing=1e39)


def test_blocks_of_dropped_documents_are_left_out_and_a_file_of_them_is_refused(read):
    text = "1 qid:1 1:1\n-1 qid:2 1:2\n-1 qid:3 1:3\n2 qid:4 1:4\n"
    assert read(text, unjudged="drop").query_ids == (1, 4)
    with pytest.raises(DataError, match=r"x\.txt: all grades are negative and unjudged='drop' leaves no document"):
        read(text.replace("2 qid", "-2 qid").replace("1 qid:1", "-1 qid:1"), unjudged="drop")


@pytest.mark.every(5)
def test_lines_before_the_damage_are_believed_only_far_from_it(tmp_path, way):
    path = tmp_path / "x.txt"
    lines = [b"1 qid:1 1:%d\n" % i for i in range(MANY)]
    whole = gzip.compress(b"1 qid:0 1:x\n" + b"".join(lines))
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"x\.txt cannot be unpacked beyond line \d{4}") as small:
        read_svmlight(path)
    with pytest.raises(DataError) as again:
        list(read_svmlight_blocks(path, block=1))
    assert str(small.value) == str(again.value)
    path.write_bytes(gzip.compress(b"1 qid:0 1:x\n" + b"# far\n" * reading.AHEAD)[:-5])
    with pytest.raises(DataError, match=r"x\.txt, line 1: feature 1 is 'x'"):
        read_svmlight(path)


@pytest.mark.parametrize("options", [{"n_features": 0}, {"n_features": 1.5}, {"n_features": 2**31}, {"dtype": "word"}])
def test_options_that_cannot_be_are_refused_before_the_file_is_opened(options):
    for reader in (read_svmlight, read_svmlight_blocks):
        with pytest.raises(OptionError, match=next(iter(options))):
            reader("nowhere.txt", **options)
    for options in ({"block": 0}, {"sparse": "auto"}):
        with pytest.raises(OptionError, match=next(iter(options))):
            read_svmlight_blocks("nowhere.txt", **options)


def test_small_files_compile_nothing():
    script = (
        "import sys, tempfile, pathlib\n"
        "from rankopt.data import read_svmlight\n"
        "path = pathlib.Path(tempfile.mkdtemp()) / 'x.txt'\n"
        "path.write_bytes(b''.join(b'1 qid:1 1:%d\\n' % i for i in range(10_000)))\n"
        "assert read_svmlight(path).n_documents == 10_000\n"
        "assert 'rankopt.data.svmlight.fast' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


@pytest.mark.study
@pytest.mark.parametrize("tries", [60, pytest.param(300, marks=pytest.mark.study)])
def test_mutated_files_are_read_alike_or_refused_alike_by_every_reader(tries):
    assert_survived("files", tries, 7)
