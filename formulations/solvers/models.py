"""Models of other modeling tools as problems (`as_problem`), and problems as models of these.

The arrays of a model are copied as they are: no number is rescaled. cvxpy models are read after cvxpy's own
canonicalization (`cvxpy_models`). A constant of the objective is the cost of a variable "objective constant" fixed at
1. The packages are imported only if their models are passed.

>>> problem = as_problem(c=[-1.0, -2.0], A_ub=[[1.0, 1.0]], b_ub=[4.0], bounds=(0, 3))
>>> print(problem)
minimize    -x[0] - 2 x[1]
subject to  A_ub[0]: x[0] + x[1] <= 4
            0 <= x[0], x[1] <= 3
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse, tril, triu, vstack

from formulations.arrays import Ints, numbers
from formulations.errors import InvalidProblemError, UnsupportedProblemError
from formulations.problems.linear_program import finite_matrix
from formulations.problems.problem import Problem, Solution
from formulations.problems.program import BlockNames, without_constant
from formulations.problems.quadratic_program import program_of
from formulations.registry import load
from formulations.solvers.cvxpy_models import assign_cvxpy, check_same, from_cvxpy, row_duals
from formulations.solvers.highs import DROPPED, ENDLESS, presolve

LINPROG = ("c", "A_ub", "b_ub", "A_eq", "b_eq", "bounds", "integrality")
"""Arguments of scipy.optimize.linprog."""


def as_problem(model: Any = None, **linprog: Any) -> Problem:
    """A model of another tool as a `LinearProgram` (with or without integers) or a `QuadraticProgram`.

    Variables, rows and the sense keep their names and meaning, so solutions, proofs, bounds and conflicts are in the
    terms of the model. `Solution.assign_to(model)` writes a solution into it.

    Args:
        model: a cvxpy.Problem, linopy.Model, pulp.LpProblem, OR-Tools mathopt.Model, model_builder.Model or
            pywraplp.Solver, highspy.Highs, gurobipy.Model, the path of an .mps or .lp file, a dict of arguments of
            scipy.optimize.linprog, or a problem of formulations, which is returned unchanged.
        linprog: instead of a model, the arguments c, A_ub, b_ub, A_eq, b_eq, bounds and integrality of linprog. As
            there, variables without bounds are nonnegative.

    Returns:
        A `LinearProgram` or `QuadraticProgram`. A cvxpy.Problem that is neither, such as a cone program, is wrapped:
        its solutions are checked, but no bound is proved.

    Raises:
        InvalidProblemError: the model has no variables, a parameter without a value, numbers that are not finite, or a
            quadratic objective that is not convex (of a maximum: not concave).
        InfeasibleError: limits of a variable or row cross.
        UnsupportedProblemError: it has what no problem class supports, such as quadratic constraints, or squares and
            integers.
    """
    if linprog:
        if model is not None:
            raise InvalidProblemError("as_problem() takes a model or arguments of linprog; got both. Pass one of them.")
        return _from_linprog(linprog)
    if isinstance(model, Problem):
        return model
    if isinstance(model, Mapping):
        return _from_linprog(dict(model))
    if isinstance(model, str | PathLike):
        problem: Problem = load("formulations.io.toml_file:read_program")(model)
        return problem
    reader, _ = _reader(model)
    if reader is None:
        raise UnsupportedProblemError(
            f"problem cannot be a {type(model).__name__}; pass a problem of formulations, a model of cvxpy, linopy, "
            "PuLP, MathOpt, model_builder, highspy or gurobipy, or the path of an .mps or .lp file"
        )
    return reader(model)


def _reader(model: Any) -> tuple[Callable[[Any], Problem] | None, Callable[[Any, Solution], None] | None]:
    """What reads models of this class and what writes solutions into them; None where there is none."""
    for base in type(model).__mro__:
        module, name = base.__module__, base.__name__
        for package, class_name, reader, write in READERS:
            if name == class_name and (module == package or module.startswith(f"{package}.")):
                return reader, write
    return None, None


def _refuse(**parts: Any) -> None:
    """Raise UnsupportedProblemError for the first part of a model that is there and has no place in a program."""
    for name, part in parts.items():
        if part:
            raise UnsupportedProblemError(
                f"the model has {name.replace('_', ' ')}, which linear and quadratic programs lack; remove them, or "
                "restate them by rows"
            )


# scipy


def _from_linprog(stated: dict[str, Any]) -> Problem:
    unknown = [name for name in stated if name not in LINPROG]
    if unknown or stated.get("c") is None:
        got = f"{unknown[0]!r}" if unknown else "no c"
        raise InvalidProblemError(f"arguments of linprog are {', '.join(LINPROG)}; got {got}. Pass c and others.")
    cost = np.atleast_1d(numbers("c", stated["c"])).ravel()
    parts, low, high, names = [csr_array((0, cost.size))], [np.empty(0)], [np.empty(0)], BlockNames("row")
    for kind in ("ub", "eq"):
        matrix, right = stated.get(f"A_{kind}"), stated.get(f"b_{kind}")
        if (matrix is None) != (right is None):
            raise InvalidProblemError(f"A_{kind} and b_{kind} belong together; got only one of them.")
        if matrix is None:
            continue
        table = finite_matrix(f"A_{kind}", matrix if issparse(matrix) else np.atleast_2d(numbers(f"A_{kind}", matrix)))
        limit = np.atleast_1d(numbers(f"b_{kind}", right)).ravel()
        if table.shape != (limit.size, cost.size):
            raise InvalidProblemError(
                f"A_{kind} has shape {table.shape}; b_{kind} and c need {(limit.size, cost.size)}."
            )
        parts.append(table)
        low.append(limit if kind == "eq" else np.full(limit.size, -np.inf))
        high.append(limit)
        names.add(f"A_{kind}", (limit.size,))
    bounds = stated.get("bounds", (0.0, None))
    pairs = np.array((0.0, None) if bounds is None else bounds, dtype=object)
    if pairs.size == 2 and pairs.shape != (cost.size, 2):
        pairs = np.tile(pairs.reshape(1, 2), (cost.size, 1))
    if pairs.shape != (cost.size, 2):
        raise InvalidProblemError(f"bounds must be a pair or {cost.size} pairs, one a variable; got {bounds!r:.80}.")
    lower, upper = (
        numbers("bounds", [open_ if value is None else value for value in side])
        for side, open_ in zip(pairs.T, (-np.inf, np.inf), strict=True)
    )
    integrality = np.asarray(0 if stated.get("integrality") is None else stated["integrality"])
    _refuse(semicontinuous_variables=(integrality > 1).any())
    variables = BlockNames("x")
    variables.add("x", (cost.size,))
    return program_of(
        cost, vstack(parts), (np.concatenate(low), np.concatenate(high)), (lower, upper), (variables, names),
        is_maximization=False, integer=np.broadcast_to(integrality == 1, cost.shape),
    )  # fmt: skip


# linopy, PuLP


def _from_linopy(model: Any) -> Problem:
    _refuse(
        special_ordered_sets=[*model.variables.sos] if hasattr(model.variables, "sos") else False,
        semicontinuous_variables=[*getattr(model.variables, "semi_continuous", ())],
        indicator_constraints=len(getattr(model, "indicator_constraints", ())),
    )
    table = model.matrices
    scales = (getattr(model.objective, "scaling", 1.0), getattr(table, "var_scaling", 1.0))
    _refuse(scaling_factors=any((np.asarray(scale) != 1.0).any() for scale in scales))
    if not len(table.vlabels):
        raise InvalidProblemError("the model has no variables; add one at least")
    columns, variables = _linopy_names(model.variables, table.vlabels, "x")
    order, names = _linopy_names(model.constraints, table.clabels, "row")
    matrix = csr_array((0, columns.size)) if table.A is None else csr_array(table.A)[:, columns]
    limit = np.asarray(table.b if order.size else [], dtype=np.float64)[order]
    sense = np.asarray(table.sense if order.size else [], dtype="U1")[order]
    return program_of(
        table.c[columns],
        matrix[order] if order.size else csr_array((0, columns.size)),
        (np.where(sense == "<", -np.inf, limit), np.where(sense == ">", np.inf, limit)),
        (np.asarray(table.lb, dtype=np.float64)[columns], np.asarray(table.ub, dtype=np.float64)[columns]),
        (variables, names),
        is_maximization=model.objective.sense == "max",
        integer=np.asarray(table.vtypes)[columns] != "C",
        hessian=None if table.Q is None else csr_array(table.Q)[columns][:, columns],
    )


def _linopy_names(families: Any, labels: Any, usual: str) -> tuple[Ints, BlockNames]:
    """Positions in the matrices, family by family, and names: of a family with one dimension by its coordinates."""
    at = {int(label): position for position, label in enumerate(np.asarray(labels).tolist())}
    found, names = list[int](), BlockNames(usual)
    for name, family in families.items():
        own = np.asarray(family.labels.values)
        held = np.isin(own, labels)
        found += [at[int(label)] for label in own[held].tolist()]
        axes = [np.asarray(family.labels.coords[dim].values).tolist() for dim in family.labels.dims]
        if held.all() and own.ndim != 1:
            names.add(str(name), own.shape)
        elif own.ndim == 1:
            chosen = [axes[0][i] for i in np.flatnonzero(held).tolist()]
            names.add(str(name), *((own.shape,) if chosen == list(range(own.size)) else (tuple(chosen), True)))
        elif held.any():
            cells = [tuple(axis[i] for axis, i in zip(axes, cell, strict=True)) for cell in np.argwhere(held).tolist()]
            names.add(str(name), tuple(cells), True)
    return np.array(found, dtype=np.int64), names


def _assign_linopy(model: Any, solution: Solution) -> None:
    table, rates = model.matrices, row_duals(solution, as_rates=True)
    model.status = "ok"
    for families, labels, attribute, values in (
        (model.variables, table.vlabels, "solution", solution.x),
        (model.constraints, table.clabels, "dual", rates),
    ):
        start, known = 0, np.empty(0) if values is None else values
        for _, family in families.items() if values is not None else ():
            held = np.isin(family.labels.values, labels)
            part = np.full(held.shape, np.nan)
            part[held] = known[start : start + held.sum()]
            start += int(held.sum())
            setattr(family, attribute, family.labels.astype(np.float64).copy(data=part))
    model.objective.set_value(solution.value)


def _from_pulp(model: Any) -> Problem:
    _refuse(special_ordered_sets=model.sos1 or model.sos2)
    variables = model.variables()
    at = {variable.name: column for column, variable in enumerate(variables)}
    if len(at) < len(variables):
        raise InvalidProblemError("two variables of the model have one name; rename one")
    entries: list[tuple[int, int, float]] = []
    lower, upper = list[float](), list[float]()
    rows = _pulp_rows(model)
    for row, constraint in enumerate(rows):
        entries += [(row, at[variable.name], float(weight)) for variable, weight in constraint.items()]
        limit = 0.0 - float(constraint.constant)
        lower.append(-np.inf if constraint.sense < 0 else limit)
        upper.append(np.inf if constraint.sense > 0 else limit)
    cost = np.zeros(len(variables))
    for variable, weight in () if model.objective is None else model.objective.items():
        cost[at[variable.name]] += float(weight)
    return program_of(
        cost,
        _sparse(entries, (len(lower), len(variables))),
        (np.array(lower), np.array(upper)),
        (
            np.array([-np.inf if one.lowBound is None else one.lowBound for one in variables], dtype=np.float64),
            np.array([np.inf if one.upBound is None else one.upBound for one in variables], dtype=np.float64),
        ),
        (
            BlockNames.scalars("x", (one.name for one in variables)),
            BlockNames.scalars("row", (one.name for one in rows)),
        ),
        is_maximization=model.sense < 0,
        integer=[one.cat == "Integer" for one in variables],
        constant=0.0 if model.objective is None else float(model.objective.constant),
    )


def _pulp_rows(model: Any) -> list[Any]:
    """The constraints: a method since PuLP 3.3, a dict before."""
    return list(model.constraints() if callable(model.constraints) else model.constraints.values())


def _assign_pulp(model: Any, solution: Solution) -> None:
    for variable, value in zip(model.variables(), solution.x.tolist(), strict=False):
        variable.varValue = round(value) if variable.cat == "Integer" else value
    rates = row_duals(solution, as_rates=True)
    for constraint, rate in zip(_pulp_rows(model), () if rates is None else rates.tolist(), strict=False):
        constraint.pi = rate
    model.assignStatus(1 if solution.verdict.startswith("optimal") else 0)


# OR-Tools


def _from_mathopt(model: Any) -> Problem:
    proto = model.export_model()
    parts = ("auxiliary_objectives", "quadratic_constraints", "second_order_cone_constraints", "sos1_constraints",
             "sos2_constraints", "indicator_constraints")  # fmt: skip
    _refuse(**{part: len(getattr(proto, part)) for part in parts})
    variables, rows, goal = proto.variables, proto.linear_constraints, proto.objective
    cost = np.zeros(len(variables.ids))
    cost[np.searchsorted(variables.ids, goal.linear_coefficients.ids)] = goal.linear_coefficients.values
    held, curved = proto.linear_constraint_matrix, goal.quadratic_coefficients
    matrix = coo_array(
        (held.coefficients, (np.searchsorted(rows.ids, held.row_ids), np.searchsorted(variables.ids, held.column_ids))),
        shape=(len(rows.ids), cost.size),
    )
    pairs = np.searchsorted(variables.ids, curved.row_ids), np.searchsorted(variables.ids, curved.column_ids)
    squares = csr_array(coo_array((curved.coefficients, pairs), shape=(cost.size, cost.size)))
    return program_of(
        cost,
        matrix,
        (np.array(rows.lower_bounds, dtype=np.float64), np.array(rows.upper_bounds, dtype=np.float64)),
        (np.array(variables.lower_bounds, dtype=np.float64), np.array(variables.upper_bounds, dtype=np.float64)),
        (BlockNames.scalars("x", variables.names), BlockNames.scalars("row", rows.names)),
        is_maximization=goal.maximize,
        integer=list(variables.integers),
        constant=goal.offset,
        hessian=squares + squares.T,
    )


def _from_pywraplp(model: Any) -> Problem:
    from ortools.linear_solver.linear_solver_pb2 import MPModelProto

    proto = MPModelProto()
    model.ExportModelToProto(proto)
    return _from_proto(proto)


def _from_proto(proto: Any) -> Problem:
    """The program of an MPModelProto."""
    _refuse(indicator_constraints=len(proto.general_constraint))
    columns, rows = proto.variable, proto.constraint
    return program_of(
        np.array([one.objective_coefficient for one in columns]),
        _sparse(
            [(i, *entry) for i, one in enumerate(rows) for entry in zip(one.var_index, one.coefficient, strict=True)],
            (len(rows), len(columns)),
        ),
        (np.array([one.lower_bound for one in rows]), np.array([one.upper_bound for one in rows])),
        (np.array([one.lower_bound for one in columns]), np.array([one.upper_bound for one in columns])),
        (BlockNames.scalars("x", (one.name for one in columns)), BlockNames.scalars("row", (one.name for one in rows))),
        is_maximization=proto.maximize,
        integer=[one.is_integer for one in columns],
        constant=proto.objective_offset,
    )


# HiGHS, Gurobi


def _from_highspy(model: Any) -> Problem:
    import highspy

    program, squares = model.getLp(), model.getModel().hessian_
    size, count = program.num_col_, program.num_row_
    kinds = [*program.integrality_] or [highspy.HighsVarType.kContinuous] * size
    whole = np.array([kind == highspy.HighsVarType.kInteger for kind in kinds], dtype=np.bool_)
    real = np.array([kind == highspy.HighsVarType.kContinuous for kind in kinds], dtype=np.bool_)
    _refuse(semicontinuous_variables=not (whole | real).all())
    matrix = _compressed(program.a_matrix_, program.a_matrix_.format_ != highspy.MatrixFormat.kColwise, (count, size))
    hessian = None
    if squares.dim_:
        hessian = _compressed(squares, False, (size, size))
        if squares.format_ == highspy.HessianFormat.kTriangular:
            hessian = csr_array(tril(hessian) + tril(hessian, -1).T)
    sides = (program.row_lower_, program.row_upper_, program.col_lower_, program.col_upper_)
    limits = [np.where(np.abs(side) >= ENDLESS, np.copysign(np.inf, side), side) for side in map(np.array, sides)]
    return program_of(
        np.array(program.col_cost_),
        matrix,
        (limits[0], limits[1]),
        (limits[2], limits[3]),
        (
            BlockNames.scalars("x", [*program.col_names_] or [None] * size),
            BlockNames.scalars("row", [*program.row_names_] or [None] * count),
        ),
        is_maximization=program.sense_ == highspy.ObjSense.kMaximize,
        integer=whole,
        constant=program.offset_,
        hessian=hessian,
    )


def _compressed(matrix: Any, by_rows: bool, shape: tuple[int, int]) -> csr_array:
    parts = (np.array(matrix.value_, dtype=np.float64), np.array(matrix.index_), np.array(matrix.start_))
    if by_rows:
        return csr_array(parts, shape=shape)
    return csr_array(csr_array(parts, shape=shape[::-1]).T)


def _assign_highspy(model: Any, solution: Solution) -> None:
    import highspy

    point = highspy.HighsSolution()
    point.col_value = solution.x[: model.getNumCol()].tolist()
    model.setSolution(point)


def _from_file_of(model: Any) -> Problem:
    """The model as the tool itself writes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.mps"
        model.write(str(path))
        problem: Problem = load("formulations.io.toml_file:read_program")(path)
    return problem


READERS: tuple[tuple[str, str, Callable[[Any], Problem], Callable[[Any, Solution], None] | None], ...] = (
    ("cvxpy", "Problem", from_cvxpy, assign_cvxpy),
    ("linopy", "Model", _from_linopy, _assign_linopy),
    ("pulp", "LpProblem", _from_pulp, _assign_pulp),
    ("ortools.math_opt", "Model", _from_mathopt, None),
    ("ortools.linear_solver", "Model", lambda model: _from_proto(model.export_to_proto()), None),
    ("ortools.linear_solver", "Solver", _from_pywraplp, None),
    ("highspy", "Highs", _from_highspy, _assign_highspy),
    ("gurobipy", "Model", _from_file_of, None),
)
"""Package and class of the models, their reader, and what writes a solution into them."""


def assign(solution: Solution, model: Any) -> None:
    """Write the values (and, of a program without integers, the duals) of a solution into its model."""
    reader, write = _reader(model)
    if write is None:
        raise UnsupportedProblemError(f"a {type(model).__name__} holds no solution; read solution.primal by name")
    if reader is not from_cvxpy:
        check_same(as_problem(model), solution)
    write(model, solution)


def _sparse(entries: list[tuple[int, int, float]], shape: tuple[int, int]) -> csr_array:
    index = np.array([entry[:2] for entry in entries], dtype=np.int64).reshape(-1, 2)
    values = np.array([entry[2] for entry in entries], dtype=np.float64)
    return csr_array(coo_array((values, (index[:, 0], index[:, 1])), shape=shape))


# Problems as models


def to_highs(problem: Problem) -> Any:
    """See `Problem.to_highs`."""
    import highspy

    program, constant = without_constant(problem.full_program)
    model, options = highspy.HighsModel(), dict[str, Any]()
    entries = [program.matrix.data, *([] if program.hessian is None else [program.hessian.data])]
    sides = [side[np.isfinite(side)] for side in (program.lower, program.upper, program.row_lower, program.row_upper)]
    if any(((part != 0.0) & (np.abs(part) <= DROPPED)).any() for part in entries) or any(
        (np.abs(side) >= ENDLESS).any() for side in sides
    ):
        raise UnsupportedProblemError(
            f"HiGHS drops coefficients of {DROPPED:g} or less and takes limits of {ENDLESS:g} or more for infinite; "
            "rescale the problem, or use to_mathopt()"
        )
    held = model.lp_
    held.num_row_, held.num_col_ = program.matrix.shape
    held.col_cost_, held.offset_ = program.objective, constant
    held.col_lower_, held.col_upper_ = program.lower, program.upper
    held.row_lower_, held.row_upper_ = program.row_lower, program.row_upper
    held.sense_ = highspy.ObjSense.kMaximize if program.is_maximization else highspy.ObjSense.kMinimize
    held.col_names_, held.row_names_ = ([name.replace(" ", "") for name in names] for names in program.names)
    matrix = held.a_matrix_
    matrix.format_, matrix.num_row_, matrix.num_col_ = highspy.MatrixFormat.kRowwise, held.num_row_, held.num_col_
    matrix.start_, matrix.index_, matrix.value_ = program.matrix.indptr, program.matrix.indices, program.matrix.data
    if program.integer is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        held.integrality_ = [kinds[int(flag)] for flag in program.integer]
        options = presolve(int(program.integer.sum()), program.integer.size, {}, "highs")
    if program.hessian is not None:
        lower = csr_array(triu(program.hessian))  # rows of the upper triangle are columns of the lower one
        model.hessian_.dim_, model.hessian_.format_ = held.num_col_, highspy.HessianFormat.kTriangular
        model.hessian_.start_, model.hessian_.index_, model.hessian_.value_ = lower.indptr, lower.indices, lower.data
    highs = highspy.Highs()
    for name, value in {"output_flag": False, **options}.items():
        highs.setOptionValue(name, value)
    if highs.passModel(model) == highspy.HighsStatus.kError:
        raise UnsupportedProblemError(
            f"HiGHS refuses this {type(problem).__name__}; its numbers are beyond the range of HiGHS. Rescale it."
        )
    return highs


def to_mathopt(problem: Problem) -> Any:
    """See `Problem.to_mathopt`."""
    from ortools.math_opt.python import mathopt

    program, constant = without_constant(problem.full_program)
    model = mathopt.Model(name=type(problem).__name__)
    marked = np.zeros(program.lower.size, dtype=np.bool_) if program.integer is None else program.integer
    columns, rows = program.names
    x = [
        model.add_variable(lb=low, ub=high, is_integer=whole, name=name)
        for low, high, whole, name in zip(
            program.lower.tolist(), program.upper.tolist(), marked.tolist(), columns, strict=True
        )
    ]
    limits = zip(program.row_lower.tolist(), program.row_upper.tolist(), rows, strict=True)
    for row, (low, high, name) in enumerate(limits):
        held = model.add_linear_constraint(lb=low, ub=high, name=name)
        part = slice(program.matrix.indptr[row], program.matrix.indptr[row + 1])
        for column, weight in zip(
            program.matrix.indices[part].tolist(), program.matrix.data[part].tolist(), strict=True
        ):
            held.set_coefficient(x[column], weight)
    goal = model.objective
    goal.is_maximize, goal.offset = program.is_maximization, constant
    for column in np.flatnonzero(program.objective).tolist():
        goal.set_linear_coefficient(x[column], float(program.objective[column]))
    if program.hessian is not None:
        squares = triu(program.hessian).tocoo()
        for i, j, value in zip(*(part.tolist() for part in squares.coords), squares.data.tolist(), strict=True):
            goal.set_quadratic_coefficient(x[i], x[j], value / 2.0 if i == j else value)
    return model
