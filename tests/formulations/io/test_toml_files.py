"""Statement files are bounded before anything is built of them, and end by an error that says where and why."""

import json
import time
import tracemalloc
from itertools import permutations

import numpy as np
import pytest
from click.testing import CliRunner
from planted.attack import assert_survived

from formulations import Highs, InvalidProblemError, RankingSet, get_solver, read_ranking_set, read_solver, solve
from formulations.errors import UnknownSolverError
from formulations.io import toml_file
from rankopt.cli import rankopt

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
            "1000 positions × 100000 documents exceed",
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
        (SMALL + "[[constraint]]\nadd_rows = [[" + "9" * 400 + "]]", "cannot be read as numbers"),
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
            "constraint 1: the rows up to here exceed 16777216 entries",
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
        assert toml_file.LONG_KEY.search(text) is None


# Statement files that are meant ill: the file and the place in the error, memory of what the file holds.


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
        (HEAD.replace("4", "2000000000"), "s.toml: 2 positions × 2000000000 documents exceed"),
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


# The solver that a statement file names, with its options: read as a name, asked by `rankopt verify`.


HEAD_SOLVERS = "documents = 3\npositions = 2\nprofit = [[3.0, 2.0, 1.0], [2.0, 2.0, 0.0]]\n"


def written(tmp_path, text):
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("solver = 'highs'", Highs()),
        ("solver = \"highs(presolve='off', time_limit=10)\"", Highs(presolve="off", time_limit=10)),
        ("[solver]\nname = 'highs'", Highs()),
        ("[solver]\nname = 'highs'\npresolve = 'off'\ntime_limit = 10", Highs(presolve="off", time_limit=10)),
        (
            "[solver]\nname = 'highs'\nverbose = false\nsimplex_scale_strategy = 0",
            Highs(options={"simplex_scale_strategy": 0}),
        ),
        ("solver = { name = 'highs', options = { presolve = 'off' } }", Highs(options={"presolve": "off"})),
    ],
)
def test_a_word_and_a_table_say_the_same(tmp_path, said, meant):
    table = said.startswith("[")
    path = written(tmp_path, HEAD_SOLVERS + said + "\n" if table else said + "\n" + HEAD_SOLVERS)
    assert get_solver(read_solver(path)) == meant
    assert solve(read_ranking_set(path), read_solver(path)).value == 5.0


def test_no_solver_is_none(tmp_path):
    assert read_solver(written(tmp_path, HEAD_SOLVERS)) is None


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("solver = 3", "solver must be a name, such as \"highs\"; got '3'"),
        ("solver = ''", "solver must be a name"),
        ("solver = ['highs']", "solver must be a name"),
        ("[solver]\npresolve = 'off'", 'names no solver; write name = "highs"'),
        ("[solver]\nname = 7", "names no solver"),
        ('[solver]\nname = "highs(verbose=True)"\nlog = true', "and as keys"),
        ("[solver]\nname = 'highs'\ntime_limit = inf", "time_limit must be a word, number or bool"),
        ("[solver]\nname = 'highs'\ntime_limit = nan", "must be a word, number or bool"),
        ("[solver]\nname = 'highs'\nstart = [1, 2]", "must be a word, number or bool"),
        ("[solver]\nname = 'highs'\nsince = 2024-01-01", "must be a word, number or bool"),
        ("[solver]\nname = 'highs'\n'a=1, b' = 2", "must be a word"),
        ("[solver]\nname = 'highs'\nnote = '" + "x" * 2000 + "'", "more than 1000 letters"),
    ],
)
def test_what_names_no_solver_is_refused_with_the_cure(tmp_path, said, message):
    path = written(tmp_path, HEAD_SOLVERS + said + "\n" if said.startswith("[") else said + "\n" + HEAD_SOLVERS)
    for read in (read_solver, read_ranking_set):
        with pytest.raises(InvalidProblemError) as caught:
            read(path)
        assert message in str(caught.value)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("said", ["highz", "highs(nonsense(1))", "scipy(threads=3)"])
def test_whether_there_is_one_is_found_out_where_it_is_asked(tmp_path, said):
    path = written(tmp_path, f'solver = "{said}"\n' + HEAD_SOLVERS)
    with pytest.raises(UnknownSolverError):
        solve(read_ranking_set(path), read_solver(path))
    run = CliRunner().invoke(rankopt, ["verify", str(path)])
    assert run.exit_code != 0
    assert said.split("(")[0] in run.output + str(run.exception)


def test_verify_asks_the_solver_that_is_named(tmp_path, monkeypatch):
    from formulations.solving import integrality

    asked = []
    real = integrality.solve
    monkeypatch.setattr(integrality, "solve", lambda problem, solver: asked.append(solver) or real(problem, solver))
    path = written(tmp_path, HEAD_SOLVERS + "[solver]\nname = 'highs'\npresolve = 'off'\n")
    run = CliRunner().invoke(rankopt, ["verify", str(path), "--json"])
    assert json.loads(run.output)["optimum"]["integer"] == 5.0
    assert asked == ["highs(presolve='off')"] * 2


# Mutated statement files.


@pytest.mark.parametrize("tries", [60, pytest.param(300, marks=pytest.mark.study)])
def test_statement_files_that_are_changed(tries):
    assert_survived("statements", tries, seed=11)
