"""Statement files that are meant ill: the file and the place in the error, memory of what the file holds."""

import time
from itertools import permutations

import numpy as np
import pytest

from formulations import RankingSet
from formulations.errors import InvalidProblemError
from formulations.io.toml_file import read_ranking_set

HEAD = "documents = 4\npositions = 2\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "\nweights = [" + "9" * 5000 + "]\n", "s.toml, line 4 or so holds what is no number or date"),
        ("matrix = [[" + "9" * 4000 + "]]\n", "s.toml: matrix cannot be read as numbers: int too large"),
        (HEAD + "[[constraint]]\nat_most = " + "9" * 400 + "\n", "s.toml, constraint 1"),
        ("a = " + "[" * 50_000, "s.toml is nested too deep"),
        ("a" + ".a" * 20_000 + " = 1\n", "s.toml, line 1: a key has more than 16 parts"),
        ("[a" + " . 'a'" * 20_000 + "]\n", "s.toml, line 1: a key has more than 16 parts"),
        (HEAD.replace("4", "2000000000"), "s.toml: 2 positions × 2000000000 documents are more than"),
        (HEAD.replace("4", "'4'"), "s.toml: documents must be an integer, 0 or more; got '4'"),
        (HEAD + "# caf\udce9\n", "s.toml, line 3 is no TOML"),
    ],
)
def test_what_no_reader_survives_is_refused_with_the_file(tmp_path, text, message):
    path = tmp_path / "s.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    begin = time.perf_counter()
    with pytest.raises(InvalidProblemError) as caught:
        read_ranking_set(path)
    assert message in str(caught.value)
    assert time.perf_counter() - begin < 5


def test_a_byte_order_mark_and_dotted_words_are_no_fault(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text("\ufeffmatrix = [[1.5, -2.25], [1, 0]] # 1.5, www.example.org\n", encoding="utf-8")
    np.testing.assert_array_equal(read_ranking_set(path), [[1.5, -2.25], [1, 0]])


SITES = 'documents = 4\npositions = 3\n[attributes]\nsite = ["a", "a", "b", "c"]\n[[constraint]]\n'


@pytest.mark.parametrize(
    ("constraint", "args", "where"),
    [
        ('between = 0\nhigh = 1\nby = "site"', ("between", 0, 1), {"by": ["a", "a", "b", "c"]}),
        ('forbid = { site = "a" }\npositions = [0]', ("forbid", [0, 1]), {"positions": [0]}),
        ('position_in = { site = "b" }\nposition = 1', ("position_in", [2]), {"position": 1}),
        ('implies = [{ site = "a" }, [2, 3]]', ("implies", [0, 1], [2, 3]), {}),
        ('min_distance = 2\nby = "site"', ("min_distance", 2), {"by": ["a", "a", "b", "c"]}),
        (
            'kind = "at_most"\nshare = 0.5\ndocuments = { site = "a" }\nprefixes = [3]\nrounding = "down"',
            ("at_most",),
            {"share": 0.5, "documents": [0, 1], "prefixes": [3], "rounding": "down"},
        ),
        ("precedence_chain = [2, 0, 3]", ("precedence_chain", 2, 0, 3), {}),
    ],
)
def test_each_word_says_in_a_file_what_it_says_in_python(tmp_path, constraint, args, where):
    path = tmp_path / "s.toml"
    path.write_text(SITES + constraint, encoding="utf-8")
    in_file, meant = read_ranking_set(path), RankingSet(4, 3).add(*args, **where)
    for order in permutations(range(4), 3):
        assert in_file.is_feasible(order) == meant.is_feasible(order), order


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        ("between = [1, 2]", "constraint 1: between needs low and high; got no high"),
        ("fix = 1", "constraint 1: fix needs document and position; got no position"),
        (
            'position_in = { topic = "b" }',
            "constraint 1: there is no list 'topic' under [attributes]; there are 'site'",
        ),
    ],
)
def test_a_word_that_lacks_a_key_says_which(tmp_path, constraint, message):
    path = tmp_path / "s.toml"
    path.write_text(SITES + constraint, encoding="utf-8")
    with pytest.raises(InvalidProblemError) as caught:
        read_ranking_set(path)
    assert str(caught.value).count("constraint 1") == 1
    assert message in str(caught.value)
