"""The solver protocol, the result of a solver, checks of solver options, and options in solver names.

>>> stated("highs(method='ipm', presolve='off')")
('highs', {'method': 'ipm', 'presolve': 'off'})
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, to_integer
from formulations.bridges import chains
from formulations.display import CompactReprMixin
from formulations.errors import UnknownSolverError
from formulations.problems.problem import Problem, Solution


@dataclass(frozen=True)
class SolverResult(CompactReprMixin):
    """The raw result of a solver: a primal point, duals if it has any, its status text and statistics. All are
    verified."""

    x: NDArray[Any]
    y: Floats | None = None
    message: str = ""
    details: dict[str, Any] = field(default_factory=dict)


def search_claim(value: float, bound: float) -> dict[str, str]:
    """The claim of an integer search that ended: optimal if its bound is its value, up to 1e-6."""
    closed = abs(bound - value) <= 1e-6 * max(abs(bound), abs(value), 1e-9)
    return {"reported_status": "OPTIMAL"} if closed else {}


@runtime_checkable
class Solver(Protocol):
    """A solver: a frozen dataclass whose fields are its options.

    `accepts` lists the problem classes that it solves directly, `spec` is the text that
    `formulations.solvers.get_solver` parses, and `package` the distribution whose version is reported.
    """

    package: ClassVar[str]

    @property
    def accepts(self) -> tuple[type[Problem], ...]: ...

    @property
    def spec(self) -> str: ...

    def reason_unsupported(self, problem: Problem) -> str | None:
        """Why this problem of an accepted class cannot be solved; None if it can."""
        return None

    def solve(self, problem: Any, warm_start: Solution | None = None) -> SolverResult: ...


@runtime_checkable
class BatchSolver(Protocol):
    """A solver that solves many rankings at once: batches of each class that it accepts."""

    def solve_batch(self, batch: Any) -> Any: ...


def suits(solver: Solver, form: type[Problem]) -> bool:
    """Whether a chain of bridges leads from the problem class to one that the solver accepts."""
    return bool(chains(form, solver.accepts))


def check_limits(time_limit: Any = None, threads: Any = None, verbose: Any = None, options: Any = None) -> None:
    """Raise UnknownSolverError unless the time is a positive number of seconds, threads an integer >= 1, the log True
    or False, and options a mapping of names. None leaves the choice to the solver."""
    real = isinstance(time_limit, Real) and not isinstance(time_limit, bool)
    if time_limit is not None and not (real and time_limit > 0):
        raise UnknownSolverError(f"time_limit must be a positive number of seconds, or None; got {time_limit!r}.")
    if threads is not None and (to_integer(threads) or 0) < 1:
        raise UnknownSolverError(f"threads must be an integer, 1 or more; got {threads!r}. Or leave it out.")
    if verbose is not None and not isinstance(verbose, bool | np.bool_):
        raise UnknownSolverError(f"verbose must be True or False; got {verbose!r}. Write verbose=True.")
    if options is not None and not (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
        raise UnknownSolverError(f"options must be a mapping, {{'name': value}}; got {options!r}.")


LONGEST = 1000  # largest length of a name with its options


def stated(spec: str) -> tuple[str, dict[str, Any]]:
    """The name and the options of "name(option=value, ...)"; values are numbers, quoted strings, True, False, None, or
    {...} of these. Raises UnknownSolverError for any other syntax. Nothing is evaluated."""
    name, bracket, rest = spec.partition("(")
    if not bracket:
        return spec, {}
    wrong = UnknownSolverError(f"{spec[:80]!r} is no solver with options; write {name[:40]}(option=1, other='word')")
    if len(spec) > LONGEST or not rest.endswith(")"):
        raise wrong
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
            raise wrong
        options = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise wrong from None
    plain = all(isinstance(value, str | int | float | dict | None) for value in options.values())
    if "None" in options or len(options) < len(call.keywords) or not plain:
        raise wrong
    return name, options


def optioned(solver: Solver, **options: Any) -> Solver:
    """The solver with these options; names that are not its fields go to `options` if it has these, else
    UnknownSolverError."""
    known: list[str] = [entry.name for entry in fields(solver) if entry.init] if is_dataclass(solver) else []
    unknown = sorted(options.keys() - set(known))
    if unknown and "options" in known:
        passed = {**getattr(solver, "options", {}), **{name: options.pop(name) for name in unknown}}
        options = {**options, "options": {**passed, **options.get("options", {})}}
    elif unknown:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise UnknownSolverError(f"{solver.spec!r} has no option {unknown[0]!r}; {has}")
    try:
        changed: Solver = replace(solver, **options)  # type: ignore[type-var]
    except (TypeError, ValueError) as error:
        raise UnknownSolverError(f"{solver.spec!r} refuses {options}: {error}") from error
    return changed


def listed(text: str) -> list[str]:
    """The names of a comma-separated list; commas inside brackets belong to a name.

    >>> listed("exact, highs(method='ipm', presolve='off')")
    ['exact', "highs(method='ipm', presolve='off')"]
    """
    names = (name.strip() for name in re.findall(r"(?:[^,(]|\([^)]*\)?)+", text))
    return [name for name in names if name]
