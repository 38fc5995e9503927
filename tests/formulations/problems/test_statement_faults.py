"""Statement files that are meant ill: the file and the place in the error, memory of what the file holds."""

import time

import numpy as np
import pytest

from formulations.errors import InvalidProblem
from formulations.problems.statement_file import read_statement

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
        (HEAD.replace("4", "'4'"), "s.toml: documents = '4' is no count"),
        (HEAD + "# caf\udce9\n", "s.toml, line 3 is no TOML"),
    ],
)
def test_what_no_reader_survives_is_refused_with_the_file(tmp_path, text, message):
    path = tmp_path / "s.toml"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    begin = time.perf_counter()
    with pytest.raises(InvalidProblem) as caught:
        read_statement(path)
    assert message in str(caught.value)
    assert time.perf_counter() - begin < 5


def test_a_byte_order_mark_and_dotted_words_are_no_fault(tmp_path):
    path = tmp_path / "s.toml"
    path.write_text("\ufeffmatrix = [[1.5, -2.25], [1, 0]] # 1.5, www.example.org\n", encoding="utf-8")
    np.testing.assert_array_equal(read_statement(path), [[1.5, -2.25], [1, 0]])
