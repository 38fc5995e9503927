"""Problems of cvxpy as problems, and back.

A model is read after cvxpy's own canonicalization, whose extra variables and rows are named "cvxpy auxiliary".
Variables and constraints keep their names (`label`, or their number) and shapes, in C order.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from formulations.arrays import Bools, Floats, Ints
from formulations.errors import InvalidProblemError, InvalidSolutionError
from formulations.problems.assignment import OrderProblem, order_of_cells
from formulations.problems.cvxpy_problem import CvxpyProblem
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Problem, Solution
from formulations.problems.program import (
    AUXILIARY,
    CONSTANT,
    Block,
    BlockNames,
    Program,
    split_by_block,
    without_constant,
)
from formulations.problems.quadratic_program import QuadraticProgram, program_of
from formulations.problems.simplex_qp import GroupedSimplexQP
from formulations.solvers.cvxpy import Cvxpy
from formulations.solvers.solver import SolverResult

INTEGRAL = 1e-4  # how far from 0 or 1 a cell of a ranking may be
MANY = 200  # most blocks of variables, or of rows, that are stated one by one


class _Canonical(NamedTuple):
    """A cvxpy.Problem in cvxpy's canonical form: the program, and the positions of its columns and rows there."""

    program: LinearProgram | QuadraticProgram
    data: dict[str, Any]
    chain: Any
    inverse: list[Any]
    columns: Ints
    rows: Ints


def from_cvxpy(model: Any) -> Problem:
    canonical = _canonical(model)
    return CvxpyProblem(model) if canonical is None else canonical.program


def _canonical(model: Any) -> _Canonical | None:
    """The canonical form; None if it is no linear or quadratic program, or a quadratic one with integers."""
    import cvxpy

    if not model.variables():
        raise InvalidProblemError("the model has no variables; add one at least")
    unset = [parameter.name() for parameter in model.parameters() if parameter.value is None]
    if unset:
        raise InvalidProblemError(f"parameter {unset[0]!r} has no value; set parameter.value first.")
    expression = model.objective.expr
    if not model.is_dcp() and expression.is_quadratic() and all(one.is_dcp() for one in model.constraints):
        curved = "concave" if model.objective.NAME == "maximize" else "convex"
        raise InvalidProblemError(f"the objective is not {curved}: {str(expression)[:80]}. State a {curved} one.")
    if not model.is_dcp() or not model.is_qp() or any(variable.is_complex() for variable in model.variables()):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            data, chain, inverse = model.get_problem_data("HIGHS")
    except (cvxpy.error.SolverError, cvxpy.error.DCPError):
        return None
    form, dims = data["param_prob"], data["dims"]
    if dims.exp or dims.soc or dims.psd or dims.p3d or dims.pnd:
        return None
    is_maximization, constant = model.objective.NAME == "maximize", float(form.apply_parameters()[1])
    sign = -1.0 if is_maximization else 1.0
    variables, columns, own = _cvxpy_columns(model, form, inverse)
    rows, names = _cvxpy_rows(model, form, inverse)
    cost, hessian = data.get("c"), None
    matrix, limit = data["A"], data["b"]
    if cost is None:
        cost, hessian = data["q"], csr_array(sign * data["P"])[columns][:, columns]
        matrix, limit = vstack([matrix, data["F"]]), np.concatenate([limit, data["G"]])
    table = csr_array(csr_array(matrix)[rows][:, columns])
    table.eliminate_zeros()
    upper = np.asarray(limit, dtype=np.float64)[rows]
    lower = np.where(rows < dims.zero, upper, -np.inf)
    owner = np.repeat(np.arange(len(form.constraints)), [one.size for one in form.constraints])[rows]
    leading = np.bincount(np.repeat(owner, np.diff(table.indptr)), np.sign(table.data), len(form.constraints))
    flip = (leading[owner] < 0.0) & (rows >= dims.zero)  # x >= 1 instead of -x <= -1
    table.data *= np.repeat(np.where(flip, -1.0, 1.0), np.diff(table.indptr))
    lower, upper = np.where(flip, 0.0 - upper, lower), np.where(flip, np.inf, upper)
    low, high = (
        np.full(cost.size, open_) if given is None else np.array(given, dtype=np.float64)
        for given, open_ in ((data["lower_bounds"], -np.inf), (data["upper_bounds"], np.inf))
    )
    boolean = np.array(data["bool_vars_idx"], dtype=np.int64)
    low[boolean], high[boolean] = np.maximum(low[boolean], 0.0), np.minimum(high[boolean], 1.0)
    integer = np.zeros(cost.size, dtype=np.bool_)
    integer[boolean] = integer[np.array(data["int_vars_idx"], dtype=np.int64)] = True
    if hessian is not None:
        open_ = ~np.isfinite(low[columns]) & ~np.isfinite(high[columns]) & (cost[columns] == 0.0)
        copied = _copies(table, lower, upper, hessian, own, open_)
        if copied:
            keep_rows = np.setdiff1d(np.arange(rows.size), [row for row, _, _ in copied])
            keep = np.setdiff1d(np.arange(columns.size), [column for _, column, _ in copied])
            of = np.arange(columns.size)
            of[[column for _, column, _ in copied]] = [original for _, _, original in copied]
            merge = csr_array((np.ones(of.size), (np.arange(of.size), np.searchsorted(keep, of))))
            hessian, table = csr_array(merge.T @ hessian @ merge), csr_array(table[keep_rows][:, keep])
            lower, upper, rows, columns = lower[keep_rows], upper[keep_rows], rows[keep_rows], columns[keep]
            variables, names = _shortened(variables, columns.size), _shortened(names, rows.size)
    program = program_of(
        sign * cost[columns] + 0.0, table, (lower, upper), (low[columns], high[columns]), (variables, names),
        is_maximization=is_maximization, integer=integer[columns], constant=sign * constant, hessian=hessian,
    )  # fmt: skip
    return _Canonical(program, data, chain, inverse, columns, rows)


def _copies(
    table: csr_array, lower: Floats, upper: Floats, hessian: csr_array, own: int, open_: Bools
) -> list[tuple[int, int, int]]:
    """Auxiliary variables that cvxpy equates with a variable of the model, as in xᵀPx: row, column, original column.

    Only those whose removal adds no two numbers: a free variable, in this row and in squares alone, and the first of
    its original, which has no squares.
    """
    squares, uses = np.diff(hessian.indptr) > 0, np.bincount(table.indices, minlength=open_.size)
    found, taken = list[tuple[int, int, int]](), set[int]()
    for row in np.flatnonzero((lower == 0.0) & (upper == 0.0) & (np.diff(table.indptr) == 2)).tolist():
        part = slice(table.indptr[row], table.indptr[row + 1])
        original, column = sorted(table.indices[part].tolist())
        if original >= own or column < own or original in taken or squares[original] or not open_[column]:
            continue
        if uses[column] == 1 and sorted(table.data[part].tolist()) == [-1.0, 1.0]:
            taken.add(original)
            found.append((row, column, original))
    return found


def _shortened(names: BlockNames, size: int) -> BlockNames:
    """The names with so many auxiliary ones, the last block, that `size` are left."""
    *first, last = names.blocks
    found = BlockNames(names.usual)
    for block in first:
        found.add(block.label, block.index, block.by_label)
    if size > found.size:
        found.add(last.label, (size - found.size,))
    return found


def _cvxpy_columns(model: Any, form: Any, inverse: list[Any]) -> tuple[BlockNames, Ints, int]:
    """Names and canonical columns: the model's variables in C order (with their number), then the auxiliary ones."""
    renamed = {old: new.id for step in inverse if isinstance(step, tuple) and step for old, new in step[0].items()}
    names, found, left = BlockNames("x"), [], np.ones(form.x.size, dtype=np.bool_)
    for variable in model.variables():
        own = form.id_to_var.get(renamed.get(variable.id, variable.id))
        if own is None:
            continue
        at = form.var_id_to_col[own.id] + np.arange(own.size)
        whole = own.shape == variable.shape  # a symmetric matrix has its upper triangle only
        found.append(at.reshape(own.shape, order="F").ravel() if whole else at)
        names.add(variable.name(), variable.shape if whole else (own.size,))
        left[at] = False
    own = names.size
    if left.any():
        found.append(np.flatnonzero(left))
        names.add(AUXILIARY, (int(left.sum()),))
    return names, np.concatenate([np.empty(0, dtype=np.int64), *found]), own


def _cvxpy_rows(model: Any, form: Any, inverse: list[Any]) -> tuple[Ints, BlockNames]:
    """Canonical rows and their names: the model's constraints in C order, then the auxiliary ones."""
    origin = {constraint.id: number for number, constraint in enumerate(model.constraints)}
    for step in inverse:
        ids = step[2] if isinstance(step, tuple) and step else getattr(step, "cons_id_map", None)
        ids = step.get("cons_id_map", {}) if isinstance(step, dict) else ids
        origin = {(ids or {}).get(held, held): number for held, number in origin.items()}
    own: dict[int, Ints] = {}
    rest, start = [], 0
    for constraint in form.constraints:
        at = start + np.arange(constraint.size)
        start += constraint.size
        if constraint.id in origin:
            own[origin[constraint.id]] = at
        else:
            rest.append(at)
    names, found = BlockNames("row"), [np.empty(0, dtype=np.int64)]
    for number, constraint in enumerate(model.constraints):
        if number in own:
            at, name = own[number], getattr(constraint, "label", None) or f"constraint {number}"
            whole = at.size == constraint.size
            found.append(at.reshape(constraint.shape, order="F").ravel() if whole else at)
            names.add(str(name), constraint.shape if whole else (at.size,))
    if rest:
        found.append(np.concatenate(rest))
        names.add(AUXILIARY, (found[-1].size,))
    return np.concatenate(found), names


OTHER_MODEL = "the solution is of another model; pass the model that was solved"


def assign_cvxpy(model: Any, solution: Solution) -> None:
    """By cvxpy's own way back: values and duals of its canonical form."""
    from cvxpy.reductions.solution import Solution as CvxpySolution

    canonical = _canonical(model)
    if canonical is None:
        if not isinstance(solution.problem, CvxpyProblem):
            raise InvalidSolutionError(OTHER_MODEL)
        for variable, part in solution.problem.split_point(solution.x):
            variable.save_value(part)
        return
    check_same(canonical.program, solution)
    form = canonical.data["param_prob"]
    x = np.zeros(form.x.size)
    x[canonical.columns] = solution.x[: canonical.columns.size]
    duals = {}
    y = row_duals(solution)
    if y is not None:
        prices, start = np.zeros(form.constr_size), 0
        zero = canonical.data["dims"].zero
        prices[canonical.rows] = np.where(canonical.rows < zero, -y, np.abs(y))
        for constraint in form.constraints:
            part = prices[start : start + constraint.size]
            duals[constraint.id] = part.reshape(constraint.shape, order="F")
            start += constraint.size
    sign = -1.0 if solution.problem.is_maximization else 1.0
    near = abs(solution.gap) <= 1e-6 * max(abs(solution.value), abs(solution.bound))
    status = "optimal" if near or solution.verdict.startswith("optimal") else "optimal_inaccurate"
    found = CvxpySolution(status, sign * solution.value, form.split_solution(x), duals, {})
    for reduction, inverse in zip(canonical.chain.reductions[-2::-1], canonical.inverse[-2::-1], strict=True):
        if type(reduction).__name__ not in ("ConeMatrixStuffing", "QpMatrixStuffing"):
            found = reduction.invert(found, inverse)
    found.opt_val = solution.value
    model.unpack(found)


def check_same(problem: Problem, solution: Solution) -> None:
    held = solution.problem
    if type(held) is not type(problem) or getattr(held, "variables", None) != getattr(problem, "variables", None):
        raise InvalidSolutionError(OTHER_MODEL)


def row_duals(solution: Solution, as_rates: bool = False) -> Floats | None:
    """Row duals with the sign of a minimum, or rates of the optimum per unit of a limit; None with integers."""
    problem = solution.problem
    if solution.y is None or not isinstance(problem, LinearProgram | QuadraticProgram):
        return None
    if isinstance(problem, LinearProgram) and problem.integer is not None:
        return None
    y = solution.y[: problem.row_lower.size]
    return np.asarray(-y if as_rates and problem.is_maximization else y, dtype=np.float64)


def to_cvxpy(problem: Problem) -> Any:
    """See `Problem.to_cvxpy`."""
    import cvxpy

    if isinstance(problem, CvxpyProblem):
        return problem.statement
    if isinstance(problem, GroupedSimplexQP):
        α = cvxpy.Variable(problem.values.size, name="α", nonneg=True)
        held = csr_array((np.ones(α.size), (problem.group, np.arange(α.size))), (problem.capacity.size, α.size))
        curved = cvxpy.sum_squares(problem.slopes.T @ α) / (2.0 * problem.lam)
        rows = [(held @ α <= problem.capacity).set_label("group")]
        return cvxpy.Problem(cvxpy.Maximize(problem.values @ α - curved), rows)
    program, constant = without_constant(problem.full_program)
    blocks = _blocks(program.variables, "x", program.lower.size)
    marked = np.zeros(program.lower.size, dtype=np.bool_) if program.integer is None else program.integer
    low, high, whole = (split_by_block(blocks, part) for part in (program.lower, program.upper, marked))
    variables = [
        cvxpy.Variable(low[name].shape, name=name, bounds=[low[name], high[name]], **_integers(whole[name]))
        for name in low
    ]
    flat = [variable if variable.ndim == 1 else cvxpy.vec(variable, order="C") for variable in variables]
    x = flat[0] if len(flat) == 1 else cvxpy.hstack(flat)
    objective = program.objective @ x + constant
    if program.hessian is not None:
        sign = -1.0 if program.is_maximization else 1.0
        objective += sign * cvxpy.quad_form(x, cvxpy.psd_wrap(sign * program.hessian)) / 2.0
    goal = cvxpy.Maximize if program.is_maximization else cvxpy.Minimize
    return cvxpy.Problem(goal(objective), [*_cvxpy_constraints(program, x)])


def solve_statement(statement: Any, problem: Problem) -> SolverResult:
    """The point of a changed `problem.to_cvxpy()`, solved by cvxpy and read from the variables by their names."""
    Cvxpy()._run(statement, warm=False)
    values = {variable.name(): variable.value for variable in statement.variables()}
    if isinstance(problem, GroupedSimplexQP):
        blocks: tuple[Block, ...] = (Block("α", problem.values.shape),)
    elif isinstance(problem, LinearProgram | QuadraticProgram):
        program = without_constant(problem.program)[0]
        blocks = _blocks(program.variables, "x", program.lower.size)
    elif isinstance(problem, OrderProblem) and problem.full_program.variables[0].label == "π":
        blocks = problem.full_program.variables[:1]
    else:
        raise InvalidSolutionError(
            f"a point of {type(problem).__name__} cannot be read from a cvxpy.Problem; pass "
            "function_solver(f, accepts=LinearProgram)"
        )
    lost = [one.label for one in blocks if one.label not in values or values[one.label].shape != one.shape]
    if lost:
        raise InvalidSolutionError(f"the cvxpy.Problem has no variable {lost[0]!r} of the problem; keep all of them.")
    parts = [np.ravel(values[block.label]) for block in blocks]
    if getattr(problem, "variables", ())[-1:] == (Block(CONSTANT, ()),):
        parts.append(np.ones(1))
    point = np.concatenate(parts).astype(np.float64)
    found = _order_of_cells(problem, blocks[0], point) if isinstance(problem, OrderProblem) else point
    return SolverResult(found, None, str(statement.status))


def _order_of_cells(problem: OrderProblem, cells: Block, mass: Floats) -> Ints:
    """The document at each position, from one number per cell; InvalidSolutionError unless they are zeros and ones."""
    if np.abs(mass - np.round(mass)).max() > INTEGRAL:
        raise InvalidSolutionError(
            "the optimum of the cvxpy.Problem has fractions in π; add the constraint "
            "π == cvxpy.Variable(π.shape, boolean=True)"
        )
    at = np.array(cells.index if cells.labeled else list(np.ndindex(cells.shape)))[mass > 0.5]
    return order_of_cells(at @ [problem.documents, 1], problem.positions, problem.documents)


def _blocks(blocks: tuple[Block, ...], usual: str, size: int) -> tuple[Block, ...]:
    """The blocks; one of the usual name where there is none, or so many that cvxpy would take minutes."""
    return blocks if 0 < len(blocks) <= MANY else (Block(usual, (size,)),)


def _integers(marked: NDArray[Any]) -> dict[str, Any]:
    if not marked.any():
        return {}
    return {"integer": True if marked.all() else tuple(np.nonzero(marked))}


def _cvxpy_constraints(program: Program, x: Any) -> Iterable[Any]:
    """The rows of each block: one constraint if they have one kind, else one for each kind."""
    start = 0
    for block in _blocks(program.rows, "row", program.row_lower.size):
        rows = np.arange(start, start + block.size)
        start += block.size
        low, high = program.row_lower[rows], program.row_upper[rows]
        equal = low == high
        kinds = ((equal, high, "=="), (~equal & np.isfinite(low), low, ">="), (~equal & np.isfinite(high), high, "<="))
        used = [kind for kind in kinds if kind[0].any()]
        for part, limit, relation in used:
            left = program.matrix[rows[part]] @ x
            right = limit[part]
            if part.all() and len(block.shape) != 1:
                left, right = left.reshape(block.shape, order="C"), right.reshape(block.shape)
            one = left == right if relation == "==" else left >= right if relation == ">=" else left <= right
            yield one.set_label(block.label if len(used) == 1 else f"{block.label} {relation}")
