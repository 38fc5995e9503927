"""Tables of the back ends of cvxpy and qpsolvers: requirements and supported problems, without importing them."""

from __future__ import annotations

import sys
from collections.abc import Collection
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple


class BackEnd(NamedTuple):
    """Module to import, distribution, support of quadratic objectives (or second-order cones), of integers."""

    module: str
    distribution: str
    quadratic: bool = True
    integer: bool = False


CVXPY = {
    "CBC": BackEnd("cylp", "cylp", False, True),
    "CLARABEL": BackEnd("clarabel", "clarabel"),
    "COPT": BackEnd("coptpy", "coptpy", True, True),
    "CPLEX": BackEnd("cplex", "cplex", True, True),
    "CUOPT": BackEnd("cuopt", "cuopt-cu12", False, True),
    "CVXOPT": BackEnd("cvxopt", "cvxopt"),
    "DAQP": BackEnd("daqp", "daqp"),
    "ECOS": BackEnd("ecos", "ecos"),
    "ECOS_BB": BackEnd("ecos", "ecos", True, True),
    "GLOP": BackEnd("ortools", "ortools", False),
    "GLPK": BackEnd("cvxopt", "cvxopt", False),
    "GLPK_MI": BackEnd("cvxopt", "cvxopt", False, True),
    "GUROBI": BackEnd("gurobipy", "gurobipy", True, True),
    "HIGHS": BackEnd("highspy", "highspy", True, True),
    "KNITRO": BackEnd("knitro", "knitro", True, True),
    "MOSEK": BackEnd("mosek", "mosek", True, True),
    "OSQP": BackEnd("osqp", "osqp"),
    "PDLP": BackEnd("ortools", "ortools", False),
    "PIQP": BackEnd("piqp", "piqp"),
    "PROXQP": BackEnd("proxsuite", "proxsuite"),
    "QOCO": BackEnd("qoco", "qoco"),
    "QPALM": BackEnd("qpalm", "qpalm"),
    "SCIP": BackEnd("pyscipopt", "pyscipopt", True, True),
    "SCIPY": BackEnd("scipy", "scipy", False, True),
    "SCS": BackEnd("scs", "scs"),
    "SDPA": BackEnd("sdpap", "sdpa-python", False),
    "XPRESS": BackEnd("xpress", "xpress", True, True),
}
"""By cvxpy's names; cvxpy itself is queried for others."""

SHARED = {"CLARABEL", "COPT", "CVXOPT", "DAQP", "ECOS", "GUROBI", "HIGHS", "MOSEK"}
SHARED |= {"OSQP", "PIQP", "PROXQP", "QPALM", "SCS"}

QPSOLVERS = {name.lower(): CVXPY[name] for name in sorted(SHARED)} | {"quadprog": BackEnd("quadprog", "quadprog")}
"""By the names of qpsolvers, likewise."""


@cache
def _importable(module: str) -> bool:
    return find_spec(module) is not None


def present(table: dict[str, BackEnd]) -> tuple[str, ...]:
    """The back ends of this table whose packages are installed, by name."""
    return tuple(sorted(name for name, needed in table.items() if _importable(needed.module)))


def crashes(back_end: str) -> str | None:
    """Why a back end would end this process; None if it would not."""
    loaded = [name for name in sys.modules if name in ("osqp", "pulp")]  # in the order of their imports
    if back_end.upper() == "OSQP" and loaded[:1] == ["pulp"]:
        return "OSQP ends the process where PuLP was imported before it; write `import osqp` above `import pulp`"
    return None


def missing(package: str, table: dict[str, BackEnd], name: str) -> str:
    """Why `package` cannot offer this back end, and the cure."""
    known = {listed.lower(): listed for listed in table}
    if name.lower() in known:
        needed = table[known[name.lower()]]
        return f"{package} has a back end {known[name.lower()]}, but {needed.distribution} is not installed: " + (
            f"pip install {needed.distribution}"
        )
    near = get_close_matches(name.lower(), known, n=1)
    hint = f"did you mean {known[near[0]]!r}? " if near else ""
    return f"{package} has no installed solver {name!r}: {hint}installed are {', '.join(present(table))}"


def elsewhere(name: str, own: Collection[str]) -> str:
    """A hint for an unknown solver name: "did you mean ...", "" if nothing is near. Candidates in order: a
    `function_solver` in other case, a back end or its distribution, then names of similar spelling, ours first."""
    word = name.lower()
    tables = (("cvxpy", CVXPY), ("qpsolvers", QPSOLVERS))
    listed = {back_end.lower(): (package, back_end) for package, table in tables[::-1] for back_end in table}
    brought = {
        needed.distribution: (package, back_end)
        for package, table in tables[::-1]
        for back_end, needed in table.items()
        if needed.distribution not in own
    }
    known = {**brought, **listed}
    if word not in own and word not in known:
        near = get_close_matches(word, own, n=1) or get_close_matches(word, known, n=1)
        word = near[0] if near else ""
    if word in own:
        return f"did you mean {word!r}?"
    if word not in known:
        return ""
    package, back_end = known[word]
    needed = dict(tables)[package][back_end]
    hint = f"did you mean '{package}:{back_end}'?"
    if _importable(needed.module):
        return hint
    return f"{hint} {back_end.lower()} is not installed: pip install {needed.distribution};"
