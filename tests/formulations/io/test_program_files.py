"""Files of programs are read as they were written and as HiGHS reads them; what is none is a typed error."""

import gzip
import json
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.sparse import csr_array

from formulations import (
    LinearProgram,
    QuadraticProgram,
    RankingSet,
    constrained_ranking,
    margin_dual,
    matching,
    ranking,
    read_program,
    solve,
)
from formulations.bridges import restated
from formulations.errors import FormulationError, InvalidProblemError, ProgramFileWarning, UnsupportedProblemError
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.program import Block, name_at, split_by_block, write
from formulations.testing.instances import FORMS, instances


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
    assert one.is_maximization == other.is_maximization
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
    problem = constrained_ranking(rng.normal(size=(3, 6)), RankingSet(6, 3).at_most(1, by=[0, 0, 1, 1, 2, 2]))
    for name in ("p.mps", "p.lp"):
        write(problem.program, tmp_path / name)
        assert solve(read_program(tmp_path / name), "highs").value == pytest.approx(solve(problem).value)


def test_a_variable_of_a_large_file_is_found_by_its_name_in_cvxpy(tmp_path):
    size = 250
    program = LinearProgram(
        np.arange(float(size)), np.ones((1, size)), [1.0], [2.0], np.zeros(size), np.ones(size),
    )  # fmt: skip
    program.write(tmp_path / "p.mps")
    read = read_program(tmp_path / "p.mps")
    model = read.to_cvxpy()
    (x,) = model.variables()
    model.solve()
    named = solve(read).primal
    for name in ("x_0", "x_248", "x_249"):
        assert x[read.program.names[0].index(name)].value == pytest.approx(named[name], abs=1e-6)


def test_a_file_by_hand(tmp_path):
    (tmp_path / "p.lp").write_text(
        "\\ a comment\nMaximize\n obj: 3 x + 2y - z + 4\nSubject To\n c1: x + y + z <= 10 + 2\n -2 <= x - y <= 3\n"
        " x >= 1 - z\nBounds\n x <= 4\n -1 <= y <= 5\n z free\nGenerals\n y\nEnd\n"
    )
    read = read_program(tmp_path / "p.lp")
    assert [block.label for block in read.variables] == ["x", "y", "z", "objective constant"]
    assert list(solve(read).primal) == ["x", "y", "z"]
    assert json.loads(json.dumps(solve(read).primal)) == solve(read).primal
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
    with pytest.raises(InvalidProblemError, match=name) as error:
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
    with pytest.raises(UnsupportedProblemError, match=r"\.mps or \.lp"):
        read_program(tmp_path / "p.txt")
    (tmp_path / "p.mps.gz").write_bytes(b"no gzip")
    with pytest.raises(InvalidProblemError, match="gzip"):
        read_program(tmp_path / "p.mps.gz")


BOUNDS = ["", "LO B x 0", "LO B x -3", "UP B x 5", "UP B x 0", "PL B x", "MI B x", "FR B x", "BV B x", "FX B x -3"]
BOUNDS += ["LI B x 2", "UI B x 7", "MI B x\n UP B x -4", "UP B x -5\n LO B x -9", "UP B x 1e30", "LO B x -1e20"]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_limits_of_mps_files_are_those_that_highs_reads(bounds, whole, tmp_path):
    """Between the markers of whole variables what has no line of bounds is 0 or 1, and a warning says so."""
    highspy = pytest.importorskip("highspy")
    markers = [" M1 'MARKER' 'INTORG'\n", " M2 'MARKER' 'INTEND'\n"] if whole else ["", ""]
    text = f"NAME t\nROWS\n N obj\n L c\nCOLUMNS\n{markers[0]} x obj 1 c 1\n{markers[1]}RHS\n RHS c 10\n"
    path = tmp_path / "a.mps"
    path.write_text(text + (f"BOUNDS\n {bounds}\n" if bounds else "") + "ENDATA\n")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    warned = pytest.warns(ProgramFileWarning, match="'x': .* read as 0 or 1.* 'PL BND name'")
    with warned if whole and not bounds else nullcontext():
        read = read_program(path)
    lp = highs.getLp()
    assert [*read.lower, *read.upper] == [*lp.col_lower_, *lp.col_upper_]


def test_an_upper_limit_below_0_takes_the_lower_one_away(tmp_path):
    path = tmp_path / "a.mps"
    path.write_text("NAME t\nROWS\n N obj\n L c\nCOLUMNS\n x obj 1 c 1\nRHS\n RHS c 10\nBOUNDS\n UP B x -5\nENDATA\n")
    with pytest.warns(ProgramFileWarning, match="'x': the upper limit is negative"):
        read = read_program(path)
    assert (read.lower[0], read.upper[0]) == (-np.inf, -5.0)


@pytest.mark.parametrize("limit", ["y <= 1e30", "y <= 1e20", "y <= 9e19", "-1e30 <= y <= 3"])
def test_limits_of_lp_files_are_those_that_highs_reads(limit, tmp_path):
    highspy = pytest.importorskip("highspy")
    path = tmp_path / "a.lp"
    path.write_text(f"minimize\n x + y\nst\n c: x + y >= 1\n d: x <= 1e30\nbounds\n {limit}\nend\n")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(path))
    read, told = read_program(path), highs.getLp()
    assert [*read.lower, *read.upper] == [*told.col_lower_, *told.col_upper_]
    assert [*read.row_lower, *read.row_upper] == [*told.row_lower_, *told.row_upper_]


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        ("c: x - y >= 0\nend\n", "line 5: a second row 'c'"),
        ("c: x - y >= 0\n d: x >= 2\nend\n", "line 5: a second row 'c'"),
        ("Semi-continuous\n y\nend\n", "line 5 begins an unsupported section 'Semi-continuous'"),
        ("c2: x + nan y >= 1\nend\n", "line 5: 'nan' is neither a number"),
        ("bounds\n x <= NaN\nend\n", "line 6: 'NaN' is neither a number"),
        ("c2: x y >= 1\nend\n", "line 5: no [+] or - separates 'x' and 'y'; write one"),
        ("c2: 2 x 3 y >= 1\nend\n", "line 5: no [+] or - separates 'x' and '3'"),
        ("c2: x >= 1 2 y\nend\n", "line 5: no [+] or - separates '1' and '2'"),
        ("c2: x\n y >= 1\nend\n", "line 6: no [+] or - separates 'x' and 'y'"),
        ("bounds\n y <= 3\nSOS2\n s1: x:1 y:2\nend\n", "line 7 begins an unsupported section 'SOS2'"),
    ],
)
def test_what_an_lp_file_may_not_say_is_named_with_its_line(rest, said, tmp_path):
    path = tmp_path / "a.lp"
    path.write_text("minimize\n x + y\nst\n c: x + y >= 1\n " + rest)
    with pytest.raises(InvalidProblemError, match=said):
        read_program(path)


@pytest.mark.parametrize("objective", ["x + nan y", "x y", "x + [ x ^ 2 y ^ 2 ] / 2", "x [ y ^ 2 ] / 2"])
def test_an_objective_whose_terms_are_not_joined_is_refused_with_its_line(objective, tmp_path):
    path = tmp_path / "a.lp"
    path.write_text(f"minimize\n obj: {objective}\nst\n c: x + y >= 1\nend\n")
    with pytest.raises(InvalidProblemError, match=r"a.lp, line 2: ('nan' is neither a number|no . or - separates)"):
        read_program(path)


def test_a_variable_called_nan_is_written_under_another_name(tmp_path):
    (tmp_path / "a.mps").write_text("ROWS\n N cost\n G c\nCOLUMNS\n nan cost 2 c 1\nRHS\n RHS c 3\nENDATA\n")
    write(read_program(tmp_path / "a.mps").program, tmp_path / "a.lp")
    assert solve(read_program(tmp_path / "a.lp"), "highs").value == 6.0


# Programs in algebra, in files, and the names of their columns and rows.


PROGRAMS = [
    (f"{form.__name__}-{name}", problem)
    for form in FORMS
    for name, problem, _ in instances(form)
    if form.__name__ in ("LinearProgram", "MinCostFlow", "Assignment")
]


def mixed():
    """A program with every kind of row, limit and name."""
    rows = np.array([[2.0, 3, 1, 0], [4, 1, 2, -1], [3, 4, 2, 1], [0, 0, 0, 0], [1, 0, 0, 0]])
    return LinearProgram(
        np.array([5.0, 4.0, -3.0, 0.1]), csr_array(rows),
        np.array([-np.inf, 1.0, 3.0, -1.0, -np.inf]), np.array([5.0, 11.0, 3.0, np.inf, np.inf]),
        np.array([0.0, -np.inf, -5.0, -np.inf]), np.array([10.0, np.inf, -1.0, np.inf]),
        integer=np.array([True, False, True, False]),
        variables=(Block("π", ("a b", "e1")), Block("x", (2,))),
        rows=(Block("block", ("b.org", "b org", "1")), Block("free", ()), Block("end", (1,))),
    )  # fmt: skip


def test_names_are_computed_from_the_index():
    blocks = (Block("π", (2, 3)), Block("block", ("a.org", "b.org")), Block("sink", ()))
    names = [name_at(blocks, i) for i in range(9)]
    assert names == [*(f"π[{i}, {j}]" for i in range(2) for j in range(3)), "block['a.org']", "block['b.org']", "sink"]
    assert len(set(names)) == 9
    with pytest.raises(IndexError):
        name_at(blocks, 9)
    parts = split_by_block(blocks, np.arange(9))
    assert {label: part.shape for label, part in parts.items()} == {"π": (2, 3), "block": (2,), "sink": ()}


def test_small_problems_print_in_algebra():
    assert str(mixed()).splitlines() == [
        "maximize    5 π['a b'] + 4 π['e1'] - 3 x[0] + 0.1 x[1]",
        "subject to  block['b.org']: 2 π['a b'] + 3 π['e1'] + x[0] <= 5",
        "            block['b org']: 1 <= 4 π['a b'] + π['e1'] + 2 x[0] - x[1] <= 11",
        "            block['1']: 3 π['a b'] + 4 π['e1'] + 2 x[0] + x[1] = 3",
        "            free: -1 <= 0",
        "            end[0]: π['a b'] free",
        "            0 <= π['a b'] <= 10",
        "            π['e1'] free",
        "            -5 <= x[0] <= -1",
        "            x[1] free",
        "            integer: π['a b'], x[0]",
    ]
    assert str(margin_dual([[1.0, 2.0], [-1.0, 0.0]], [1.0, 0.5], lam=0.5)).splitlines() == [
        "maximize    α[0] + 0.5 α[1] - 1 ((α[0] - α[1])² + (2 α[0])²)",
        "subject to  group[0]: α[0] + α[1] <= 1",
        "            0 <= α[0], α[1]",
    ]
    assert "π[1, 2]" in str(ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0]))


@pytest.mark.parametrize(("form", "problem"), [(f, p) for f in FORMS for _, p, _ in instances(f)][::4])
def test_every_form_prints(form, problem):
    text = str(problem)
    assert text.startswith(("maximize", "minimize"))
    assert "subject to" in text


def test_large_problems_print_their_size():
    large = ranking(np.ones(100), np.ones(100), discount=np.ones(50), position_weights=np.ones(50))
    assert str(large) == "RankTwoAssignment of 50 positions × 100 documents"
    assert str(restated(large, LinearProgram)) == "LinearProgram of 150 rows × 5000 variables"
    assert str(restated(large, MinCostFlow)) == "MinCostFlow of 151 nodes and 5100 arcs"
    assert str(margin_dual(np.ones((30, 30)), np.ones(30), lam=1.0)) == (
        "GroupedSimplexQP of 30 planes × 30 features in 1 group(s)"
    )


@pytest.mark.parametrize("suffix", ["mps", "lp"])
@pytest.mark.parametrize("problem", [mixed(), *(problem for _, problem in PROGRAMS)], ids=["mixed", *dict(PROGRAMS)])
def test_written_files_read_back_as_the_same_program(tmp_path, suffix, problem):
    import highspy

    problem.write(tmp_path / f"x.{suffix}")
    program = restated(problem, LinearProgram)
    reader = highspy.Highs()
    reader.setOptionValue("output_flag", False)
    assert reader.readModel(str(tmp_path / f"x.{suffix}")) != highspy.HighsStatus.kError
    read = reader.getLp()
    assert reader.getNumCol() == program.objective.size
    sign = -1.0 if (read.sense_ == highspy.ObjSense.kMaximize) != program.is_maximization else 1.0
    np.testing.assert_array_equal(np.array(read.col_cost_), sign * program.objective)
    np.testing.assert_array_equal(np.array(read.col_lower_), program.lower)
    np.testing.assert_array_equal(np.array(read.col_upper_), program.upper)
    names = [reader.getColName(j)[1] for j in range(reader.getNumCol())]
    assert len(set(names)) == len(names)
    assert all(text.isascii() and text.isprintable() and " " not in text for text in names)
    if program.integer is not None:
        reader.setOptionValue("presolve", "off")  # wrong on whole and real variables together: highs_presolve
    reader.run()
    if program.scale > 1e-3:  # with costs of 1e-9 HiGHS is content with any point: our solver rescales them
        assert reader.getObjectiveValue() == pytest.approx(solve(problem, "highs").value, rel=1e-9)


def test_names_in_files_are_readable_and_unique(tmp_path):
    mixed().write(tmp_path / "x.lp")
    text = (tmp_path / "x.lp").read_text()
    assert " block_b.org: + 2.0 pi_a_b + 3.0 pi_e1 + 1.0 x_0 <= 5.0" in text
    assert "block_b_org_low: " in text
    assert " free_2: " in text
    assert "π" not in text


@pytest.mark.parametrize("suffix", ["mps", "lp"])
@pytest.mark.parametrize("planes", [3, 9])  # through the Gram matrix, and with the step as further variables
def test_written_margin_duals_read_back_with_their_hessian(tmp_path, suffix, planes):
    import highspy

    rng = np.random.default_rng(planes)
    problem = margin_dual(rng.normal(size=(planes, 4)), rng.random(planes), lam=0.5)
    program = restated(problem, QuadraticProgram)
    problem.write(tmp_path / f"x.{suffix}")
    reader = highspy.Highs()
    reader.setOptionValue("output_flag", False)
    assert reader.readModel(str(tmp_path / f"x.{suffix}")) != highspy.HighsStatus.kError
    read = reader.getModel()
    np.testing.assert_array_equal(np.array(read.lp_.col_cost_), program.linear)
    triangle = np.zeros(program.hessian.shape)
    start, index, value = read.hessian_.start_, read.hessian_.index_, read.hessian_.value_
    for j in range(program.linear.size):
        for entry in range(start[j], start[j + 1]):
            triangle[index[entry], j] += value[entry]
    square = triangle + triangle.T - np.diag(np.diag(triangle))
    np.testing.assert_array_equal(square, program.hessian.toarray())
    reader.run()
    assert reader.getObjectiveValue() == pytest.approx(solve(program, "qpsolvers:clarabel").value, rel=1e-5)


def test_files_of_unknown_format_are_refused(tmp_path):
    with pytest.raises(UnsupportedProblemError, match="must end with"):
        matching(np.eye(2)).write(tmp_path / "x.txt")
    assert list(tmp_path.iterdir()) == []
