"""What is handed to a worker: a solver or method by name, by place or as an object that another process can have."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from formulations.errors import UnknownSolver
from formulations.solvers import SOLVERS, named
from formulations.solvers.own import imported
from formulations.solvers.solver import Solver
from rankopt.errors import OptionError
from rankopt.optimize import METHODS, method_named

Entrant = str | Solver
"""A solver that takes part: its name, "module:attribute", or an object such as `own(...)` makes."""


def check_entrants(**entrants: Any) -> None:
    """Raise OptionError for a role whose entrants are no list: of a name alone each letter would be one."""
    for role, given in entrants.items():
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise OptionError(
                f"{role} = {given!r} is no list of those who take part; give a tuple: {role}=({given!r},)"
            )


def spec_of(entrant: Any) -> str:
    """What rows call an entrant: its name, and options that are not the usual ones, as in "highs(method='ipm')".

    Raises UnknownSolver for a name that is none, so that a slip is no row, and for what is no solver.
    """
    if not isinstance(entrant, str):
        if not isinstance(entrant, Solver):
            raise UnknownSolver(f"{entrant!r} is no solver; give a name, or wrap a function by formulations.own(...)")
        return _own_spec(entrant)
    if _has_options(entrant):
        return _own_spec(named(entrant))
    head = entrant.partition(":")[0]
    if entrant == "auto" or head in SOLVERS:
        return entrant
    if ":" in entrant:
        return resolved(entrant).spec
    named(entrant)  # raises, with what is near
    return entrant


def method_spec(entrant: Any) -> str:
    """What rows call a method: its name, and options that are not the usual ones, as in "bundle(groups=1)"."""
    method: Any = method_named(entrant)  # raises for what is none
    for name in METHODS:
        usual: Any = method_named(name)
        if type(usual) is type(method):
            return name + _options(method, usual)
    return repr(method)


def _own_spec(solver: Any) -> str:
    spec: str = solver.spec
    try:
        usual: Any = named(spec)
    except UnknownSolver:  # a solver of the caller's own, or one that is not installed
        return spec
    return spec + _options(solver, usual)


def _has_options(entrant: str) -> bool:
    """Whether a name is one of the table with options, as in "highs(presolve='off')"."""
    head, bracket, _ = entrant.partition("(")
    return bool(bracket) and head.partition(":")[0] in SOLVERS


def _options(part: Any, usual: Any) -> str:
    """The options of a part that differ from those that its name stands for."""
    if type(usual) is not type(part) or not is_dataclass(usual):
        return ""
    pairs = [(entry.name, getattr(part, entry.name)) for entry in fields(usual)]
    changed = [f"{name}={value!r}" for name, value in pairs if value != getattr(usual, name)]
    return f"({', '.join(changed)})" if changed else ""


def resolved(entrant: Entrant) -> Solver:
    """The solver itself. Raises UnknownSolver where there is none, or its package is missing."""
    if not isinstance(entrant, str):
        return entrant
    if not _has_options(entrant) and entrant.partition(":")[0] not in SOLVERS and ":" in entrant:
        return imported(entrant)
    try:
        return named(entrant)
    except ImportError as error:
        raise UnknownSolver(f"{entrant!r} cannot be loaded: {error}; install its package") from error


def parcel(job: Any, what: str) -> bytes:
    """The job as bytes for a process of our own. Objects travel by the place where they can be imported.

    Raises OptionError for what is defined in a script, a notebook or a function: no other process can have that.
    """
    cure = "define it at the top of a module that can be imported, and give it from there or as 'module:attribute'"
    try:
        packed = pickle.dumps(job, protocol=5)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise OptionError(f"{what} cannot be handed to a process of its own: {error}; {cure}") from error
    if b"__main__" in packed:
        raise OptionError(f"{what} cannot be handed to a process of its own: it is defined in __main__; {cure}")
    return packed
