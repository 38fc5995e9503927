"""Random programs, written by us and by other packages, are read back equal, entry by entry."""

from dataclasses import dataclass

import numpy as np
import pytest
from problems.program_content import content
from scipy.sparse import csr_array

from formulations import LinearProgram, read_program, solve
from formulations.problems.program import Block

INF = np.inf
NAMES = [
    "x",
    "π[0]",
    "st",
    "free",
    "e5",
    "1a",
    "a b",
    "s.t.",
    "end",
    "MARKER",
    "inf",
    "nano",
    "e",
    "E",
    "x_2",
    "x 2",
    "x" * 300,
]
NAMES += ["$y", "*z", "RHS", "objective", "bounds", "semi", "subject to", "-", "f(x)", "x[0, 1]", "\\c", "'MARKER'"]


@dataclass
class Model:
    """A program whose numbers have few digits, without empty rows or columns; named x0, x1, ... and c0, c1, ..."""

    cost: np.ndarray
    offset: float
    matrix: np.ndarray
    row_limits: np.ndarray
    limits: np.ndarray
    integer: np.ndarray
    is_maximization: bool

    def content(self, ranges=True, split=("_low", "_high")):
        """As `program_content.content`; ranges=False: a row with two limits as two rows."""
        columns = {
            f"x{j}": (c, *self.limits[j].tolist(), bool(self.integer[j])) for j, c in enumerate(self.cost.tolist())
        }
        if self.offset:
            columns["constant"] = (self.offset, 1.0, 1.0, False)
        rows = {}
        for i, (low, high) in enumerate(self.row_limits.tolist()):
            entries = {f"x{j}": float(self.matrix[i, j]) for j in np.flatnonzero(self.matrix[i])}
            if ranges or low == high or -INF in (low, -high):
                rows[f"c{i}"] = (low, high, entries)
            else:
                rows |= {f"c{i}{split[0]}": (low, INF, entries), f"c{i}{split[1]}": (-INF, high, entries)}
        return self.is_maximization, columns, rows, {}


def drawn(seed, ranges=True, offset=True):
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 7)), int(rng.integers(1, 6))

    def eighths(*shape):
        return rng.integers(1, 80, shape) * rng.choice([-0.125, 0.125], shape)

    matrix = eighths(m, n) * (rng.random((m, n)) < 0.5)
    matrix[np.arange(m), rng.integers(0, n, m)] = 1.0
    matrix[rng.integers(0, m, n), np.arange(n)] = 2.0
    low = eighths(m)
    kinds = [(low, low), (low, np.full(m, INF)), (np.full(m, -INF), low), (low, low + 3.5)]
    row_limits = np.stack([np.stack(kind, 1) for kind in kinds])[rng.integers(0, 4 if ranges else 3, m), np.arange(m)]
    start = rng.integers(-9, 9, n).astype(float)
    kinds = [(start * 0, start * 0 + INF), (start - INF, start + INF), (start, start + 4), (start - INF, start)]
    kinds += [(start, start + INF), (start, start), (start * 0, start * 0 + 1), (start * 0, abs(start) + 2)]
    limits = np.stack([np.stack(kind, 1) for kind in kinds])[rng.integers(0, len(kinds), n), np.arange(n)]
    integer = rng.random(n) < 0.5
    return Model(eighths(n), float(eighths()) if offset else 0.0, matrix, row_limits, limits, integer, bool(seed % 2))


def read(path):
    """The content of a file; the constant of its objective has another name with every writer."""
    sense, columns, rows, squares = content(read_program(path))
    columns = {"constant" if "onstant" in name else name: column for name, column in columns.items()}
    return sense, columns, rows, squares


def in_highs(model):
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    for j, (low, high) in enumerate(model.limits.tolist()):
        highs.addVariable(low, high, model.cost[j], name=f"x{j}")
        if model.integer[j]:
            highs.changeColIntegrality(j, highspy.HighsVarType.kInteger)
    for i, (low, high) in enumerate(model.row_limits.tolist()):
        index = np.flatnonzero(model.matrix[i]).astype(np.int32)
        highs.addRow(low, high, index.size, index, model.matrix[i, index])
        highs.passRowName(i, f"c{i}")
    highs.changeObjectiveOffset(model.offset)
    highs.changeObjectiveSense(highspy.ObjSense.kMaximize if model.is_maximization else highspy.ObjSense.kMinimize)
    return highs


@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_files_of_highs(tmp_path, suffix):
    for seed in range(40):
        model = drawn(seed)
        in_highs(model).writeModel(str(tmp_path / f"a.{suffix}"))
        assert read(tmp_path / f"a.{suffix}") == model.content(ranges=suffix == "mps", split=("lo", "up")), seed


@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_squares_of_highs(tmp_path, suffix):
    import highspy

    for seed in range(10):
        rng = np.random.default_rng(seed)
        model = drawn(seed)
        model.integer[:], model.is_maximization, size = False, False, model.cost.size
        factor = rng.integers(-3, 4, (size, size))
        squares = (factor @ factor.T + np.eye(size)) / 8
        highs, hessian = in_highs(model), highspy.HighsHessian()
        hessian.dim_, hessian.format_ = size, highspy.HessianFormat.kTriangular
        hessian.start_ = np.cumsum([0, *range(size, 0, -1)])
        hessian.index_ = np.concatenate([np.arange(j, size) for j in range(size)])
        hessian.value_ = np.concatenate([squares[j:, j] for j in range(size)])
        highs.passHessian(hessian)
        highs.writeModel(str(tmp_path / f"a.{suffix}"))
        read = read_program(tmp_path / f"a.{suffix}")
        np.testing.assert_array_equal(read.hessian.toarray()[:size, :size], squares)
        np.testing.assert_array_equal(read.linear, [*model.cost, model.offset])


@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_files_of_ortools(tmp_path, suffix):
    from ortools.linear_solver import pywraplp

    for seed in range(40):
        model = drawn(seed)
        solver = pywraplp.Solver.CreateSolver("SCIP")
        variables = [
            (solver.IntVar if model.integer[j] else solver.NumVar)(*map(float, model.limits[j]), f"x{j}")
            for j in range(model.cost.size)
        ]
        for i, (low, high) in enumerate(model.row_limits.tolist()):
            row = solver.RowConstraint(low, high, f"c{i}")
            for j in np.flatnonzero(model.matrix[i]):
                row.SetCoefficient(variables[j], float(model.matrix[i, j]))
        objective = solver.Objective()
        for cost, variable in zip(model.cost.tolist(), variables, strict=True):
            objective.SetCoefficient(variable, cost)
        objective.SetOffset(model.offset)
        objective.SetOptimizationDirection(model.is_maximization)
        text = solver.ExportModelAsLpFormat(False) if suffix == "lp" else solver.ExportModelAsMpsFormat(False, False)
        (tmp_path / f"a.{suffix}").write_text(text)
        assert read(tmp_path / f"a.{suffix}") == model.content(ranges=suffix == "mps", split=("_lhs", "_rhs")), seed


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pulp")
@pytest.mark.parametrize("suffix", ["lp", "mps", "mps with OBJSENSE"])
def test_files_of_pulp(tmp_path, suffix):
    pulp = pytest.importorskip("pulp")
    for seed in range(40):
        model = drawn(seed, ranges=False, offset=False)
        problem = pulp.LpProblem("drawn", pulp.LpMaximize if model.is_maximization else pulp.LpMinimize)
        variables = [
            pulp.LpVariable(
                f"x{j}", *(None if abs(limit) == INF else limit for limit in model.limits[j].tolist()),
                cat="Integer" if model.integer[j] else "Continuous",
            )
            for j in range(model.cost.size)
        ]  # fmt: skip
        problem += pulp.lpDot(model.cost.tolist(), variables)
        for i, (low, high) in enumerate(model.row_limits.tolist()):
            left = pulp.lpDot(model.matrix[i].tolist(), variables)
            problem += (left == low if low == high else left >= low if high == INF else left <= high), f"c{i}"
        file = tmp_path / f"a.{suffix.split()[0]}"
        if suffix == "lp":
            problem.writeLP(str(file))
        else:
            problem.writeMPS(str(file), with_objsense=suffix != "mps")
        assert read(file) == model.content(), seed


@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_files_of_linopy(tmp_path, suffix):
    linopy = pytest.importorskip("linopy")
    for seed in range(10):
        model = drawn(seed, ranges=False, offset=False)
        written = linopy.Model()
        variables = [
            written.add_variables(*([] if integer and low == 0 and high == 1 else [low, high]), name=f"v{j}", **kind)
            for j, ((low, high), integer) in enumerate(zip(model.limits.tolist(), model.integer.tolist(), strict=True))
            for kind in [{"binary": True} if integer and low == 0 and high == 1 else {"integer": integer}]
        ]
        for i, (low, high) in enumerate(model.row_limits.tolist()):
            left = sum(float(a) * variable for a, variable in zip(model.matrix[i], variables, strict=True) if a)
            written.add_constraints(left == low if low == high else left >= low if high == INF else left <= high)
        total = sum(cost * variable for cost, variable in zip(model.cost.tolist(), variables, strict=True))
        written.add_objective(total, sense="max" if model.is_maximization else "min")
        written.to_file(tmp_path / f"a.{suffix}")
        assert read(tmp_path / f"a.{suffix}") == model.content(), seed


@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_a_problem_of_cvxpy_keeps_its_optimum(tmp_path, suffix):
    import cvxpy

    rng = np.random.default_rng(0)
    for seed in range(3):
        x = cvxpy.Variable(5, integer=seed == 2)
        matrix, most = rng.integers(0, 9, (4, 5)), rng.integers(9, 40, 4)
        problem = cvxpy.Problem(
            cvxpy.Maximize(rng.integers(1, 9, 5) @ x - 3),
            [matrix @ x <= most, x >= -1, cvxpy.sum(x) == 2, cvxpy.norm1(x) <= 9],
        )
        problem.solve(solver=cvxpy.SCIPY)
        data, _, _ = problem.get_problem_data(cvxpy.SCIPY)
        limits = np.stack([np.full(data["c"].size, -INF), np.full(data["c"].size, INF)], 1)
        rows = np.vstack([data[name].toarray() for name in ("A", "G")])
        row_limits = np.vstack([np.stack([data["b"]] * 2, 1), np.stack([np.full(data["h"].size, -INF), data["h"]], 1)])
        integer = np.isin(np.arange(data["c"].size), data["int_vars_idx"])
        model = Model(data["c"], 0.0, rows, row_limits, limits, integer, False)
        in_highs(model).writeModel(str(tmp_path / f"a.{suffix}"))
        assert solve(read_program(tmp_path / f"a.{suffix}"), "highs").value == pytest.approx(-problem.value - 3)


def with_all_features(seed):
    """A program with numbers of all sizes, and names that files cannot have."""
    rng = np.random.default_rng(seed)

    def numbers(*shape):
        values = rng.normal(size=shape) * 10.0 ** rng.integers(-7, 9, shape)
        return np.where(rng.random(shape) < 0.3, np.round(values), values)

    def intervals(size):
        low, high = np.sort(numbers(2, size), axis=0)
        kind = rng.integers(0, 6, size)
        high = np.select([kind == 0, kind == 1, kind == 4], [low, INF, low + 1], high)
        low = np.select([kind == 2, kind == 3], [-INF, 0.0], low)
        return low, np.where(kind == 3, abs(high), high)

    m, n = int(rng.integers(0, 9)), int(rng.integers(1, 24))
    (row_low, row_high), (low, high) = intervals(m), intervals(n)
    high[rng.random(n) < 0.1], low[(high == INF) & (rng.random(n) < 0.4)] = INF, -INF
    row_low[(row_high == INF) & (rng.random(m) < 0.3)] = -INF
    blocks = [tuple(Block(name, ()) for name in rng.choice(NAMES, size)) for size in (n, m)]
    matrix = csr_array(numbers(m, n) * (rng.random((m, n)) < 0.5))
    return LinearProgram(
        numbers(n) * (rng.random(n) < 0.8), matrix, row_low, row_high, low, high, bool(seed % 2),
        (rng.random(n) < 0.4) & (np.ceil(low) <= np.floor(high)), variables=blocks[0], rows=blocks[1],
    )  # fmt: skip


def arrays(problem, split):
    """What a file keeps: rows with a limit, in LP files one row a limit."""
    matrix, low, high = problem.matrix.toarray(), problem.row_lower, problem.row_upper
    if split:
        kept = np.flatnonzero(np.stack([low > -INF, (high < INF) & (low != high)], 1).ravel())
        low, high = (
            np.stack([low, np.where(low == high, low, -INF)], 1).ravel()[kept],
            np.stack([np.where(low == high, high, INF), high], 1).ravel()[kept],
        )
        matrix = np.repeat(matrix, 2, axis=0)[kept]
    kept = (low > -INF) | (high < INF)
    integer = np.zeros(problem.objective.size, dtype=bool) if problem.integer is None else problem.integer
    return problem.objective, matrix[kept], low[kept], high[kept], problem.lower, problem.upper, integer


@pytest.mark.parametrize("suffix", ["lp", "mps"])
def test_written_files_are_read_back_by_us_and_by_highs(tmp_path, suffix):
    import highspy

    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("small_matrix_value", 1e-12)  # it drops entries below
    file = tmp_path / f"a.{suffix}"
    for seed in range(100):
        problem = with_all_features(seed)
        problem.write(file)
        read, wanted = read_program(file), arrays(problem, split=suffix == "lp")
        assert read.is_maximization == problem.is_maximization
        for one, other in zip(wanted, arrays(read, split=False), strict=True):
            np.testing.assert_array_equal(one, other, err_msg=str(seed))
        assert highs.readModel(str(file)) != highspy.HighsStatus.kError, seed
        theirs = highs.getLp()
        matrix = csr_array((len(theirs.row_lower_), len(theirs.col_cost_)))
        if len(theirs.row_lower_):
            columns = np.repeat(np.arange(len(theirs.col_cost_)), np.diff(theirs.a_matrix_.start_))
            index = (np.array(theirs.a_matrix_.index_, dtype=int), columns)
            matrix = csr_array((theirs.a_matrix_.value_, index), shape=matrix.shape)
        found = (
            theirs.col_cost_,
            matrix.toarray(),
            theirs.row_lower_,
            theirs.row_upper_,
            theirs.col_lower_,
            theirs.col_upper_,
        )
        for one, other in zip(wanted, found, strict=False):
            np.testing.assert_allclose(np.array(other), one, rtol=1e-15, err_msg=str(seed))  # it adds ranges in floats
        names = [highs.getColName(j)[1] for j in range(len(theirs.col_cost_))]
        assert names == [read.program.variable_name(j) for j in range(len(names))]
