"""Options of solvers in their names.

>>> stated("highs(method='ipm', presolve='off')")
('highs', {'method': 'ipm', 'presolve': 'off'})
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any

from formulations.errors import UnknownSolver
from formulations.solvers.solver import Solver

__all__ = ["listed", "optioned", "stated"]

LONGEST = 1000
"""Letters that a name with its options may have."""


def stated(spec: str) -> tuple[str, dict[str, Any]]:
    """The name and the options of "name(option=value, ...)"; values are numbers, words in quotes, True, False, None,
    or {...} of such.

    Raises UnknownSolver for what does not read so. Nothing is evaluated.
    """
    name, bracket, rest = spec.partition("(")
    if not bracket:
        return spec, {}
    wrong = UnknownSolver(f"{spec[:80]!r} is no solver with options; write {name[:40]}(option=1, other='word')")
    if len(spec) > LONGEST or not rest.endswith(")"):
        raise wrong
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
            raise wrong
        given = {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise wrong from None
    plain = all(isinstance(value, str | int | float | dict | None) for value in given.values())
    if "None" in given or len(given) < len(call.keywords) or not plain:
        raise wrong
    return name, given


def optioned(solver: Solver, **options: Any) -> Solver:
    """The solver with these options in place of its own; where it hands `options` on to its package, others go there.

    Raises UnknownSolver for options that it does not have.
    """
    known: list[str] = [entry.name for entry in fields(solver) if entry.init] if is_dataclass(solver) else []
    unknown = sorted(options.keys() - set(known))
    if unknown and "options" in known:
        passed = {**getattr(solver, "options", {}), **{name: options.pop(name) for name in unknown}}
        options = {**options, "options": {**passed, **options.get("options", {})}}
    elif unknown:
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise UnknownSolver(f"{solver.spec!r} has no option {unknown[0]!r}; {has}")
    try:
        changed: Solver = replace(solver, **options)  # type: ignore[type-var]
    except (TypeError, ValueError) as error:
        raise UnknownSolver(f"{solver.spec!r} refuses {options}: {error}") from error
    return changed


def listed(text: str) -> Iterable[str]:
    """The names of a list with commas between them; commas inside brackets belong to a name.

    >>> list(listed("exact, highs(method='ipm', presolve='off')"))
    ['exact', "highs(method='ipm', presolve='off')"]
    """
    name, depth = "", 0
    for letter in f"{text},":
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth <= 0:
            if name.strip():
                yield name.strip()
            name, depth = "", 0
        else:
            name += letter
    if name.strip():  # a bracket that nobody closed: the name says so when it is read
        yield name.strip(" ,")
