"""The solvers as a table: name → class, loaded on use. Solver names are parsed only here.

>>> get_solver("highs")
Highs(time_limit=None, threads=None, method='choose', presolve='choose', rel_gap=0.0, verbose=False, options={})
>>> get_solver("cvxpy:CLARABEL").spec
'cvxpy:CLARABEL'
"""

from __future__ import annotations

import importlib.metadata
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from formulations.arrays import check_type
from formulations.bridges import crossings
from formulations.errors import InvalidProblemError, UnknownSolverError
from formulations.problems.cvxpy_problem import AnyProblem, as_form, is_model
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Problem
from formulations.registry import load
from formulations.solvers.back_ends import CVXPY, elsewhere
from formulations.solvers.solver import Solver, optioned, stated, suits

__all__ = ["SOLVERS", "compatible_solvers", "default_solvers", "get_solver", "installed_version", "list_solvers"]

SOLVERS = {
    "exact": "formulations.solvers.exact:ExactArgmax",
    "scipy": "formulations.solvers.scipy:Scipy",
    "ortools": "formulations.solvers.ortools:OrTools",
    "cp_sat": "formulations.solvers.cp_sat:CpSat",
    "highs": "formulations.solvers.highs:Highs",
    "networkx": "formulations.solvers.networkx:NetworkX",
    "cvxpy": "formulations.solvers.cvxpy:Cvxpy",
    "qpsolvers": "formulations.solvers.qpsolvers:QpSolvers",
    "active_set": "formulations.solvers.active_set:ActiveSet",
    "block_ascent": "formulations.solvers.active_set:ActiveSet",  # alias, used in stored models and scripts
}

AUTOMATIC = {
    "RankTwoAssignment": ("exact", "scipy"),
    "RelevanceRanking": ("exact", "ortools", "highs"),
    "LatticePath": ("exact", "ortools", "highs"),
    "GroupSequence": ("exact", "ortools", "highs"),
    "Assignment": ("scipy", "ortools"),
    "ConstrainedRanking": ("exact", "scipy", "ortools", "highs", "cp_sat"),
    "PenalizedRanking": ("exact", "scipy", "ortools", "highs", "cp_sat"),
    "MinCostFlow": ("ortools", "highs"),
    "LinearProgram": ("highs", "cvxpy:GLOP", "cvxpy:CLARABEL", "cp_sat"),
    "GroupedSimplexQP": ("active_set", "qpsolvers:piqp", "qpsolvers:clarabel"),
    "CvxpyProblem": ("cvxpy", "cvxpy:CLARABEL", "cvxpy:SCS"),
    "QuadraticProgram": ("qpsolvers:clarabel", "qpsolvers:piqp", "qpsolvers:daqp"),
}
"""For each problem class the solvers that "auto" tries, cheapest first."""


SLOW = {"cvxpy:DAQP": 100, "cvxpy:OSQP": 20_000, "cvxpy:SCS": 20_000, "cp_sat": 20_000}
"""Variables up to which `compatible_solvers` lists a solver for a problem restated as a linear program. DAQP is a dense
solver of quadratic programs: for an assignment of 144 cells it takes 1.7 s, Clarabel .03 s; one of 256 it reports
infeasible. OSQP takes 8 s for a ranking with ties of 10,000 cells; OSQP and SCS over 100 s for one of 90,000. CP-SAT,
for problems that are not stated with integers, takes 3 to 14 s for an assignment of 40,000 cells."""


def as_solver(solver: Solver | str) -> Solver:
    """The solver of this name, or the solver itself; raises UnknownSolverError for anything else."""
    if isinstance(solver, str):
        return get_solver(solver)
    has_solve, has_batch = (callable(getattr(solver, name, None)) for name in ("solve", "solve_batch"))
    accepts = getattr(solver, "accepts", () if has_batch else None)
    if isinstance(solver, type) or not (has_solve or has_batch) or not isinstance(accepts, tuple):
        is_function = (callable(solver) or has_solve) and not isinstance(solver, type)
        cure = "function_solver(f, accepts=...)" if is_function else "a name, such as 'highs', or a Solver instance"
        raise UnknownSolverError(f"solver must be a name or a Solver; got {solver!r:.80}. Pass {cure}.")
    return solver


def get_solver(spec: str) -> Solver:
    """The solver of this name. "package:variant" selects a back end of a package, "name(option=value)" sets options."""
    check_type("spec", spec, str, error=UnknownSolverError, cure="Pass a name, such as 'highs'.")
    if "(" in spec:
        head, options = stated(spec)
        return optioned(get_solver(head), **options)
    name, _, variant = spec.partition(":")
    if name not in SOLVERS:
        hint = elsewhere(name, {*SOLVERS})
        hint += " " if hint else ""
        raise UnknownSolverError(f"no solver is named {spec!r}: {hint}known are {', '.join(sorted(SOLVERS))}")
    kind = load(SOLVERS[name])
    if variant and not hasattr(kind, "with_backend"):
        raise UnknownSolverError(f"{name!r} has no variants; got {variant!r}. Write {name!r}.")
    solver: Solver = kind.with_backend(variant) if variant else kind()
    return solver


def solver_grid(spec: str | Solver, **choices: Any) -> tuple[Solver, ...]:
    """A solver for each combination of options, in the order of the product; a value that is not a list or tuple is
    shared by all. Raises UnknownSolverError for options that the solver does not have.

    >>> [solver.presolve for solver in solver_grid("highs", method="ipm", presolve=["on", "off"])]
    ['on', 'off']
    """
    solver = as_solver(spec)
    lists = [list(value) if isinstance(value, list | tuple) else [value] for value in choices.values()]
    return tuple(optioned(solver, **dict(zip(choices, values, strict=True))) for values in product(*lists))


@cache
def installed_version(package: str) -> str:
    """The version of an installed distribution, "" if it is not installed, or has no name."""
    check_type("package", package, str, error=UnknownSolverError)
    if not package:
        return ""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def version_of(solver: Solver) -> str:
    """The version of the solver's package, and of its back end: "1.9.3, clarabel 0.11.1"."""
    own = installed_version(solver.package)
    needed = CVXPY.get(str(getattr(solver, "backend", "")).upper())
    if needed is None or needed.distribution == solver.package:
        return own
    return f"{own}, {needed.distribution} {installed_version(needed.distribution)}"


def list_solvers() -> list[str]:
    """The names of all installed solvers with their variants; for aliases, the first name."""
    found: list[str] = []
    first = {target: name for name, target in reversed(SOLVERS.items())}
    for name in (first[target] for target in dict.fromkeys(SOLVERS.values())):
        kind = load(SOLVERS[name])
        variants = (kind.backends() if hasattr(kind, "backends") else ()) or ("",)
        found.extend(f"{name}:{variant}" if variant else name for variant in variants)
    return found


def compatible_solvers(problem: AnyProblem | type[Problem]) -> list[str]:
    """The names of all installed solvers that solve this problem (also a model that `as_problem` reads), or problems of
    this class, bridges included; without
    those that are much too slow for a problem of this size."""
    if is_model(problem):
        problem = as_form(problem)
    if not (isinstance(problem, Problem) or (isinstance(problem, type) and issubclass(problem, Problem))):
        raise InvalidProblemError(
            f"problem must be a Problem or a class of problems; got {problem!r:.80}. Build one by a function of the "
            "gallery, such as formulations.matching(profit)."
        )
    if isinstance(problem, type):
        return [spec for spec in list_solvers() if suits(get_solver(spec), problem)]
    found = []
    crossed: dict[tuple[type[Problem], ...], list[Problem]] = {}
    for spec in list_solvers():
        solver = get_solver(spec)
        if solver.accepts not in crossed:
            forms = [form for _, form, _ in crossings(problem, solver.accepts)]
            crossed[solver.accepts] = [form for form in forms if isinstance(form, Problem)]
        forms = [form for form in crossed[solver.accepts] if solver.reason_unsupported(form) is None]
        own_search = spec == "cp_sat" and isinstance(problem, LinearProgram)
        most = np.inf if own_search else SLOW.get(spec, np.inf)
        if any(not isinstance(form, LinearProgram) or form.objective.size <= most for form in forms):
            found.append(spec)
    return found


def solves(solver: Solver | str, problem: Problem) -> bool:
    """Whether the solver accepts this problem, bridges included; "auto" accepts what any of its solvers accepts."""
    if solver == "auto":
        return any(solves(spec, problem) for spec in default_solvers(problem))
    chosen = as_solver(solver)
    restated = (form for _, form, _ in crossings(problem, chosen.accepts))
    return any(isinstance(form, Problem) and chosen.reason_unsupported(form) is None for form in restated)


def default_solvers(problem: Problem) -> tuple[str, ...]:
    """The solvers that "auto" tries for this problem, cheapest first; for a class of the user's own, all that accept
    it."""
    check_type("problem", problem, Problem)
    return AUTOMATIC.get(type(problem).__name__) or tuple(compatible_solvers(problem))
