"""Programs in algebra, in files, and the names of their columns and rows."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from formulations import (
    UnsupportedProblemError,
    margin_dual,
    matching,
    ranking,
    solve,
)
from formulations.bridges import restated
from formulations.problems.linear_program import LinearProgram
from formulations.problems.min_cost_flow import MinCostFlow
from formulations.problems.program import Block, name_at, split_by_block
from formulations.problems.quadratic_program import QuadraticProgram
from formulations.testing.instances import FORMS, instances

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
        "maximise    5 π['a b'] + 4 π['e1'] - 3 x[0] + 0.1 x[1]",
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
        "maximise    α[0] + 0.5 α[1] - 1 ((α[0] - α[1])² + (2 α[0])²)",
        "subject to  group[0]: α[0] + α[1] <= 1",
        "            0 <= α[0], α[1]",
    ]
    assert "π[1, 2]" in str(ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0]))


@pytest.mark.parametrize(("form", "problem"), [(f, p) for f in FORMS for _, p, _ in instances(f)][::4])
def test_every_form_prints(form, problem):
    text = str(problem)
    assert text.startswith(("maximise", "minimise"))
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
