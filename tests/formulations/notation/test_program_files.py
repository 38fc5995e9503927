"""Files of programs are read as they were written and as HiGHS reads them; what is none is a typed error."""

import gzip

import numpy as np
import pytest

from formulations import LinearProgram, QuadraticProgram, RankingSet, ranking_set, read_program, solve
from formulations.errors import FormulationError, InvalidProblem, Unsupported
from formulations.notation.mps_and_lp import write


def drawn(seed):
    """A program with every kind of row, of limit and of variable."""
    rng = np.random.default_rng(seed)
    m, n = 7, 6
    matrix = rng.integers(-3, 4, (m, n)).astype(float)
    low, high = np.full(m, -np.inf), np.full(m, np.inf)
    low[[0, 2, 3]], high[[1, 2, 3]] = [-4.0, 1.5, -9.0], [5.0, 1.5, 7.25]
    low[4], high[5] = -30.0, 1e3
    lower, upper = np.array([0.0, -np.inf, -np.inf, -5.0, 0.0, 2.0]), np.array([np.inf, np.inf, 3.0, -1.0, 1.0, 2.0])
    whole = rng.random(n) < 0.4
    return LinearProgram(rng.normal(size=n), matrix, low, high, lower, upper, bool(seed % 2), whole)


def same(one, other, rows):
    """Both programs, but for rows without limits, which files leave out."""
    np.testing.assert_array_equal(one.objective, other.objective)
    for name in ("lower", "upper"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert one.maximises == other.maximises
    blank = np.zeros(one.objective.size, dtype=bool)
    np.testing.assert_array_equal(*(blank if p.integer is None else p.integer for p in (one, other)))
    np.testing.assert_array_equal(one.matrix.toarray()[rows], other.matrix.toarray())


@pytest.mark.parametrize("seed", range(12))
def test_what_is_written_is_read_back(seed, tmp_path):
    problem = drawn(seed)
    limited = np.isfinite(problem.row_lower) | np.isfinite(problem.row_upper)
    write(problem.program, tmp_path / "p.mps")
    read = read_program(tmp_path / "p.mps")
    same(problem, read, limited)
    np.testing.assert_array_equal(read.row_lower, problem.row_lower[limited])
    np.testing.assert_allclose(read.row_upper, problem.row_upper[limited], rtol=1e-15)
    (tmp_path / "q.mps.gz").write_bytes(gzip.compress((tmp_path / "p.mps").read_bytes()))
    same(read, read_program(tmp_path / "q.mps.gz"), slice(None))
    write(problem.program, tmp_path / "p.lp")
    again = read_program(tmp_path / "p.lp")
    order = [list(map(str, (b.label for b in again.variables))).index(f"x_{j}") for j in range(problem.objective.size)]
    np.testing.assert_array_equal(again.objective[order], problem.objective)
    np.testing.assert_array_equal(again.lower[order], problem.lower)
    np.testing.assert_array_equal(again.upper[order], problem.upper)


@pytest.mark.parametrize("suffix", [".mps", ".lp"])
def test_highs_reads_the_same_optimum(suffix, tmp_path):
    highspy = pytest.importorskip("highspy")
    known = 0
    for seed in range(12):
        problem = drawn(seed)
        write(problem.program, tmp_path / f"p{suffix}")
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("presolve", "off")
        highs.readModel(str(tmp_path / f"p{suffix}"))
        highs.run()
        try:
            value = solve(read_program(tmp_path / f"p{suffix}"), "highs").value
        except FormulationError:
            assert highs.getModelStatus() != highspy.HighsModelStatus.kOptimal
            continue
        assert value == pytest.approx(highs.getInfo().objective_function_value, abs=1e-7)
        known += 1
    assert known >= 4


def test_squares_are_read(tmp_path):
    problem = QuadraticProgram(
        [[2.0, 1.0], [1.0, 4.0]], [-1.0, 0.5], [[1.0, 1.0]], [1.0], [np.inf], [0.0, 0.0], [np.inf, 3.0]
    )
    for name in ("p.mps", "p.lp"):
        write(problem.program, tmp_path / name)
        read = read_program(tmp_path / name)
        np.testing.assert_array_equal(read.hessian.toarray(), problem.hessian.toarray())
        assert solve(read).value == pytest.approx(solve(problem).value)


def test_sets_of_rankings_survive_the_way_through_a_file(tmp_path):
    rng = np.random.default_rng(0)
    problem = ranking_set(rng.normal(size=(3, 6)), RankingSet(6, 3).at_most(1, by=[0, 0, 1, 1, 2, 2]))
    for name in ("p.mps", "p.lp"):
        write(problem.program, tmp_path / name)
        assert solve(read_program(tmp_path / name), "highs").value == pytest.approx(solve(problem).value)


def test_a_file_by_hand(tmp_path):
    (tmp_path / "p.lp").write_text(
        "\\ a comment\nMaximize\n obj: 3 x + 2y - z + 4\nSubject To\n c1: x + y + z <= 10 + 2\n -2 <= x - y <= 3\n"
        " x >= 1 - z\nBounds\n x <= 4\n -1 <= y <= 5\n z free\nGenerals\n y\nEnd\n"
    )
    read = read_program(tmp_path / "p.lp")
    assert [block.label for block in read.variables] == ["x", "y", "z", "objective constant"]
    np.testing.assert_array_equal(read.row_lower, [-np.inf, -2.0, 1.0])
    np.testing.assert_array_equal(read.row_upper, [12.0, 3.0, np.inf])
    np.testing.assert_array_equal(read.matrix.toarray()[2], [1.0, 0.0, 1.0, 0.0])
    assert solve(read, "highs").value == pytest.approx(3 * 4 + 2 * 5 + 3 + 4)
    (tmp_path / "p.mps").write_text(
        "NAME t\nOBJSENSE MAX\nROWS\n N cost\n N spare\n L a\n E b\n E c\n G d\nCOLUMNS\n x cost 1 a 1\n x b 1 c 1\n"
        " y d 1 spare 7\nRHS\n RHS cost -5 a 4\n b 1 c 1\n RHS d 2\nRANGES\n R a 3 b 2\n R c -2 d 1\n"
        "BOUNDS\n UP B x 9\n MI B y\nENDATA\n"
    )
    read = read_program(tmp_path / "p.mps")
    np.testing.assert_array_equal(read.row_lower, [1.0, 1.0, -1.0, 2.0])
    np.testing.assert_array_equal(read.row_upper, [4.0, 3.0, 1.0, 3.0])
    assert solve(read, "highs").value == pytest.approx(1.0 + 5.0)


MPS = [
    "", "ROWS\n N c\n", "ROWS\n N c\nENDATA\n", "what is this\nENDATA\n", "ROWS\n Q c\nENDATA\n", " x 1\nENDATA\n",
    "ROWS\n N c\nCOLUMNS\n x c nan\nENDATA\n", "ROWS\n N c\nCOLUMNS\n x c inf\nENDATA\n",
    "ROWS\n N c\nCOLUMNS\n x d 1\nENDATA\n", "ROWS\n N c\nCOLUMNS\n x c 1\n x c 2\nENDATA\n",
    "ROWS\n N c\nCOLUMNS\n x c 1\nBOUNDS\n UP B z 1\nENDATA\n", "ROWS\n N c\n N c\nENDATA\n",
    "ROWS\n N\nENDATA\n", "ROWS\n N c\nCOLUMNS\n x\nENDATA\n", "OBJSENSE\n UP\nENDATA\n",
    "ROWS\n N c\nCOLUMNS\n x c 1\nBOUNDS\n SC B x 1\nENDATA\n", "ROWS\n N c\nCOLUMNS\n x c 1\nBOUNDS\n UP\nENDATA\n",
    "ROWS\n N c\nCOLUMNS\n x c 1_0\nENDATA\n", "ROWS\n N c\nCOLUMNS\n x c 1\nQUADOBJ\n x x -1\nENDATA\n",
    "NAME x\n what\nENDATA\n", "ROWS\n N c\n L r\nCOLUMNS\n x r 1\nRHS\n B r 1e999\nRANGES\n R r inf\nENDATA\n",
]  # fmt: skip
LP = [
    "", "maximize\n", "x + y\nend\n", "maximize\nend\n", "max\n x +\nend\n", "max\n x\nst\n x\nend\n",
    "max\n x ¬ y\nend\n", "max\n x\nst\n c: x <= 1\n c: x <= 2\nend\n", "max\n x\nbounds\n x\nend\n",
    "max\n x\nbounds\n 1 <= 2\nend\n", "max\n x\ngenerals\n 3\nend\n", "max\n [ x ^ 3 ] / 2\nend\n",
    "max\n [ x ^ 2 ] / 2\nend\n", "min\n [ x * y ] / 2\nend\n", "max\n inf x\nend\n", "min\n [\nend\n",
    "max\n x\nst\n 1 <= x >= 0\nend\n", "max\n x\nst\n x <= <= 1\nend\n", "max : :\nend\n",
]  # fmt: skip
BAD = [("a.mps", text) for text in MPS] + [("a.lp", text) for text in LP]


@pytest.mark.parametrize(("name", "text"), BAD)
def test_what_is_no_program_is_a_typed_error(name, text, tmp_path):
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InvalidProblem, match=name) as error:
        read_program(tmp_path / name)
    assert len(str(error.value)) < 200


def test_random_damage_never_ends_in_another_error(tmp_path):
    rng = np.random.default_rng(0)
    for suffix in (".mps", ".lp"):
        write(drawn(3).program, tmp_path / f"p{suffix}")
        good = bytearray((tmp_path / f"p{suffix}").read_bytes())
        for _ in range(300):
            bad = bytearray(good)
            for place in rng.integers(0, len(bad), rng.integers(1, 6)):
                bad[place] = rng.choice(list(b" \n0:<[]+-xe/\xff*^"))
            (tmp_path / f"q{suffix}").write_bytes(bytes(bad[: rng.integers(1, len(bad) + 1)]))
            try:
                read_program(tmp_path / f"q{suffix}")
            except FormulationError as error:
                assert str(error)  # noqa: PT017


def test_other_formats_and_packed_garbage(tmp_path):
    (tmp_path / "p.txt").write_text("max x")
    with pytest.raises(Unsupported, match=r"\.mps or \.lp"):
        read_program(tmp_path / "p.txt")
    (tmp_path / "p.mps.gz").write_bytes(b"no gzip")
    with pytest.raises(InvalidProblem, match="gzip"):
        read_program(tmp_path / "p.mps.gz")
