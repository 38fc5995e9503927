"""The solvers as a table: name → class, loaded on use. The only place where a solver's name is parsed.

>>> named("highs")
Highs(time_limit=None, threads=None, method='choose', presolve='choose', log=False, options={})
>>> named("cvxpy:CLARABEL").spec
'cvxpy:CLARABEL'
"""

from __future__ import annotations

import importlib
import importlib.metadata
from functools import cache
from typing import Any

from formulations.bridges import crossings
from formulations.errors import UnknownSolver
from formulations.problems.problem import Form
from formulations.solvers.back_ends import elsewhere
from formulations.solvers.solver import Solver, optioned, stated, suits

__all__ = ["SOLVERS", "accepting", "automatic", "installed_version", "named", "specs"]

SOLVERS = {
    "exact": "formulations.solvers.exact:Exact",
    "scipy": "formulations.solvers.scipy:Scipy",
    "ortools": "formulations.solvers.ortools:OrTools",
    "cp_sat": "formulations.solvers.cp_sat:CpSat",
    "highs": "formulations.solvers.highs:Highs",
    "networkx": "formulations.solvers.networkx:NetworkX",
    "cvxpy": "formulations.solvers.cvxpy:Cvxpy",
    "qpsolvers": "formulations.solvers.qpsolvers:QpSolvers",
    "active_set": "formulations.solvers.active_set:ActiveSet",
    "block_ascent": "formulations.solvers.active_set:ActiveSet",  # a second name: models and scripts hold it
}

AUTOMATIC = {
    "RankTwoAssignment": ("exact", "scipy"),
    "PatternRanking": ("exact", "ortools", "highs"),
    "LatticePath": ("exact", "ortools", "highs"),
    "PrefixGroupRanking": ("exact", "ortools", "highs"),
    "Assignment": ("scipy", "ortools"),
    "ConstrainedRanking": ("exact", "scipy", "ortools", "highs", "cp_sat"),
    "PenalizedRanking": ("exact", "scipy", "ortools", "highs", "cp_sat"),
    "MinCostFlow": ("ortools", "highs"),
    "LinearProgram": ("highs", "cvxpy:CLARABEL"),
    "GroupedSimplexQP": ("active_set", "qpsolvers:piqp", "qpsolvers:clarabel"),
    "CvxpyProblem": ("cvxpy",),
    "QuadraticProgram": ("qpsolvers:clarabel", "qpsolvers:piqp"),
}
"""For each form the solvers that "auto" tries, cheapest first."""


def named(spec: str) -> Solver:
    """The solver of this name; "package:variant" chooses a solver inside a package, "name(option=value)" options that
    are not the usual ones."""
    if "(" in spec:
        head, given = stated(spec)
        return optioned(named(head), **given)
    name, _, variant = spec.partition(":")
    if name not in SOLVERS:
        hint = elsewhere(name, {*SOLVERS})
        hint += " " if hint else ""
        raise UnknownSolver(f"no solver is named {spec!r}: {hint}known are {', '.join(sorted(SOLVERS))}")
    kind = _load(SOLVERS[name])
    if variant and not hasattr(kind, "variant"):
        raise UnknownSolver(f"{name!r} has no variants, but {variant!r} was asked for; write {name!r}")
    solver: Solver = kind.variant(variant) if variant else kind()
    return solver


@cache
def _load(path: str) -> Any:
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


@cache
def installed_version(package: str) -> str:
    """The version of an installed distribution, "" if it is not installed, or has no name."""
    if not package:
        return ""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def specs() -> list[str]:
    """The names of all solvers that are installed, variants written out; of several names of one solver the first."""
    found: list[str] = []
    first = {place: name for name, place in reversed(SOLVERS.items())}
    for name in (first[place] for place in dict.fromkeys(SOLVERS.values())):
        kind = _load(SOLVERS[name])
        variants = kind.variants() if hasattr(kind, "variants") else ()
        found.extend(f"{name}:{variant}" if variant else name for variant in variants)
        if not variants:
            found.append(name)
    return found


def accepting(problem: Form | type[Form]) -> list[str]:
    """The names of all installed solvers that solve this problem, or problems of this form, bridges included."""
    if isinstance(problem, type):
        return [spec for spec in specs() if suits(named(spec), problem)]
    found = []
    crossed: dict[tuple[type[Form], ...], list[Form]] = {}
    for spec in specs():
        solver = named(spec)
        if solver.accepts not in crossed:
            forms = [form for _, form, _ in crossings(problem, solver.accepts)]
            crossed[solver.accepts] = [form for form in forms if isinstance(form, Form)]
        if any(solver.declines(form) is None for form in crossed[solver.accepts]):
            found.append(spec)
    return found


def solves(solver: Solver | str, problem: Form) -> bool:
    """Whether the solver takes this problem, bridges included; "auto" takes all that any of its solvers takes."""
    if solver == "auto":
        return any(solves(spec, problem) for spec in automatic(problem))
    chosen = named(solver) if isinstance(solver, str) else solver
    restated = (form for _, form, _ in crossings(problem, chosen.accepts))
    return any(isinstance(form, Form) and chosen.declines(form) is None for form in restated)


def automatic(problem: Form) -> tuple[str, ...]:
    """What "auto" tries for this problem, cheapest first; for a form of the user's own, whatever accepts it."""
    return AUTOMATIC.get(type(problem).__name__) or tuple(accepting(problem))
