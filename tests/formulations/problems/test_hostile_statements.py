"""Statement files are bounded before anything is built of them, and end by an error that says where and why."""

import time
import tracemalloc

import pytest

from formulations import InvalidProblemError, RankingSet, read_ranking_set
from formulations.io import toml_file as statement_file

SMALL = "documents = 5\npositions = 3\n"
LARGE = "documents = 2048\npositions = 2048\n"


def write(tmp_path, text):
    file = tmp_path / "set.toml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "documents = 100000\npositions = 1000\n[[constraint]]\nat_most = 1",
            "1000 positions × 100000 documents are more",
        ),
        ("a" + ".a" * 19_999 + " = 1", "line 1: a key has more than 16 parts"),
        (SMALL + "\n[" + "a." * 5000 + "a]", "line 4: a key has more than 16 parts"),
        (SMALL + "x = {" + "'a' . \"b\" ." * 50 + "c = 1}", "line 3: a key has more than 16 parts"),
        ("documents = " + "9" * 5000, "holds what is no number or date: .*4300 digits"),
        ("documents = " + "9" * 4000 + "\npositions = 1", "documents must be an integer"),
        ("documents = " + "[" * 500 + "]" * 500, "nested too deep"),
        ("documents = " + "{a=" * 500 + "1" + "}" * 500, "nested too deep"),
        ("documents = 3\npositions = 0x" + "f" * 5000, "line 2: a number has more than 64 digits"),
        ("matrix = [[" + "9" * 400 + "]]", "matrix cannot be read as numbers"),
        (SMALL + "[[constraint]]\nadd_rows = [[" + "9" * 400 + "]]", "must be numbers"),
        ("documents = 2020-13-45", "is no TOML|no number or date"),
        ("documents = 2020-12-24\npositions = 1", "documents must be an integer"),
        (SMALL + "a = 1\n" * 70_000, "more than 65536 keys, tables or rows"),
        (SMALL + "[[constraint]]\n" * 70_000, "more than 65536 keys, tables or rows"),
        (SMALL + "#" * (9 << 20), "more than 8388608 bytes"),
        (
            LARGE + "[[constraint]]\nat_most = 1\n" * 9,
            "constraint 5: the rows up to here",
        ),
        (LARGE + "[[constraint]]\nforbid = [1]\n" * 70, "constraint 33: the rows up to"),
        (
            LARGE + "[[constraint]]\nprecedes = [0, 1]\n" * 9,
            "constraint 4: the rows up to",
        ),
        (
            "documents = 2048\npositions = 1024\n[attributes]\nx = ["
            + f"{['a', 'b', 'c', 'd'] * 5}," * 2048
            + "]\n[[constraint]]\nat_most = 1\nby = 'x'",
            "constraint 1: the rows up to here have more than 16777216 entries",
        ),
        ("documents = 5\npositions = 3\u0000", "is no TOML"),
        (SMALL + "[[constraint]]\nat_most = 1\nname = " + "[" * 90 + "]" * 90, "RankingSet"),
    ],
)
def test_what_is_too_large_is_refused_before_work_is_done(tmp_path, text, says):
    file, began = write(tmp_path, text), time.process_time()
    tracemalloc.start()
    try:
        if says == "RankingSet":
            assert isinstance(read_ranking_set(file), RankingSet)
        else:
            with pytest.raises(InvalidProblemError, match=says):
                read_ranking_set(file)
        assert tracemalloc.get_traced_memory()[1] < 500e6
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < 20


def test_a_file_that_is_no_utf8_is_no_toml(tmp_path):
    (tmp_path / "set.toml").write_bytes(b"documents = \xff")
    with pytest.raises(InvalidProblemError, match="is no TOML"):
        read_ranking_set(tmp_path / "set.toml")


def test_keys_of_a_statement_and_dots_in_words_are_no_long_keys():
    for text in (
        'site = ["' + ".".join("abcdefghijklmnopqrstuvwxyz") + '"]',
        "profit = [[" + ", ".join(["1.5"] * 100) + "]]",
        "[attributes]\n'a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r' = [1]",
        "[a.b.c.d]\nx . y = 1",
    ):
        assert statement_file.LONG_KEY.search(text) is None
