"""Emptiness of a ranking set, irreducible conflicts among its constraints, and rankings of least violation.

A conflict is irreducible if removing any member makes the others satisfiable. It is found by divide and conquer [Junker
2004, QuickXplain]; each test is a search for one integral point. A greedy pass over the positions is tried first,
because it is much cheaper; its ranking is checked, and a failure proves nothing.

A repair minimizes Σ penalty[r] · violation[r] over the rankings that satisfy the constraints without a penalty. An
integer search finds one. Duals within the penalties, or a proof by cases, bound the cost of every other ranking
(`constraints.duals`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, vstack

from formulations.arrays import Bools, Floats, Ints, frozen
from formulations.constraints.constraint import Constraint, violations
from formulations.constraints.duals import integral_point, proven_bound, recovered_prices, within
from formulations.constraints.rows import (
    SetRows,
    SoftConstraint,
    cell_penalties,
    charge_of,
    valid_penalty,
    widened,
    with_soft_rows,
)
from formulations.constraints.structure import equal_rows
from formulations.display import CompactReprMixin
from formulations.errors import InfeasibleError, InvalidProblemError, SolverError
from formulations.problems.assignment import order_of_cells


def greedy_point(stated: SetRows, constraints: Sequence[Constraint]) -> Ints | None:
    """A ranking in the set found greedily (the document at each position), or None. Each position takes the first
    allowed document that raises the most rows below their lower limit and exceeds no upper limit."""
    k, n = stated.shape
    low, high = stated.lower[k:], stated.upper[k:]
    reached = np.zeros(low.size)
    used = np.zeros(n, dtype=bool)
    order = np.empty(k, dtype=np.int64)
    first = np.searchsorted(stated.cell, np.arange(k + 1) * n)
    for i in range(k):
        start, end = stated.weights.indptr[first[i]], stated.weights.indptr[first[i + 1]]
        rows, weight = stated.weights.indices[start:end], stated.weights.data[start:end]
        spans = np.diff(stated.weights.indptr[first[i] : first[i + 1] + 1])
        cell = np.repeat(np.arange(spans.size), spans)
        breaks = np.bincount(cell, reached[rows] + weight > high[rows], spans.size)
        serves = np.bincount(cell, (weight > 0) & (reached[rows] < low[rows]), spans.size)
        document = stated.cell[first[i] : first[i + 1]] % n
        worth = np.where((breaks > 0) | used[document], -1.0, serves)
        if not worth.size or worth.max() < 0:
            return None
        best = int(np.argmax(worth))
        order[i], used[document[best]] = document[best], True
        np.add.at(reached, rows[cell == best], weight[cell == best])
    return None if violations(constraints, order, n) else order


POSITION = "position"
STRUCTURE = ("document", POSITION)  # rows of every ranking, which cannot be loosened

SECONDS = 30.0  # time limit of one feasibility search
NOTICED = 1e-7  # smaller duals and sums of violations are rounding


def emptiness(stated: SetRows, constraints: Sequence[Constraint], positions: int) -> str:
    """The error message for an empty set of which `positions` positions can be filled: a conflict and a cure."""
    k, n = stated.shape
    found = conflict((k, n), constraints)
    named = ", ".join(f"{member.name} ({member.text})" for member in found if member.name not in STRUCTURE)
    always = " and ".join(member.description(0) for member in found if member.name in STRUCTURE)
    left = f"the set admits at most {positions} document{'' if positions == 1 else 's'}: " if positions else ""
    # A constraint that names positions would name others in a shorter list.
    tables = [member.matrix.toarray().reshape(-1, k, n) for member in _members(constraints, k, n)[:-1]]
    alike = all((table == table[:, :1]).all() for table in tables)
    loosen = "loosen one of them" if sum(member.name not in STRUCTURE for member in found) > 1 else "loosen it"
    cure = f"lower k to {positions}, or {loosen}" if positions and alike else loosen
    return (
        f"no ranking of {k} of {n} documents is in the set. "
        f"Conflict: {named}{always and f', as {always}'}; {left}{cure}"
    )


def fillable_positions(stated: SetRows, constraints: Sequence[Constraint]) -> int:
    """The most leading positions that can be filled: k unless the set is empty, 0 if the others conflict."""
    k, n = stated.shape
    if stated.blocks_of is not None:
        return min(k, int(stated.blocks_of.max()) + 1)
    if greedy_point(stated, constraints) is not None:
        return k
    *others, position = _members(constraints, k, n)
    some = replace(position, lower=np.full(k, -np.inf))
    # No position is filled before the one above it.
    steps = csr_array(position.matrix[:-1] - position.matrix[1:])
    unbroken = Constraint("", "", steps, np.zeros(k - 1), np.ones(k - 1))
    point = _point([some, unbroken, *others], few(constraints, k, n), np.ones(k * n))
    return 0 if point is None else int(point.sum())


def conflict(shape: tuple[int, int], constraints: Sequence[Constraint]) -> list[Constraint]:
    """An irreducible set of members that cannot hold together; empty if the set is not empty."""
    members, usable = _members(constraints, *shape), few(constraints, *shape)
    suspects = _suspects(members, usable)
    if suspects is None or _point(suspects, usable) is not None:
        suspects = members
        if _point(members, usable) is not None:
            return []
    rank = {id(member): at for at, member in enumerate(members)}
    return sorted(_smallest([], suspects, False, usable), key=lambda member: rank[id(member)])


def _suspects(members: Sequence[Constraint], usable: Bools) -> list[Constraint] | None:
    """Members with nonzero duals in the infeasible LP relaxation, which conflict; None if it is feasible."""
    from scipy.optimize import linprog

    cells = np.flatnonzero(usable)
    matrix, low, high = _stack_rows(members, cells)
    floors, ceilings = np.flatnonzero(np.isfinite(low)), np.flatnonzero(np.isfinite(high))
    sides = csr_array(vstack([-matrix[floors], matrix[ceilings]]))
    found = linprog(
        np.concatenate([np.zeros(cells.size), np.ones(sides.shape[0])]),
        A_ub=csr_array(hstack([sides, -eye_array(sides.shape[0])])),
        b_ub=np.concatenate([-low[floors], high[ceilings]]),
        bounds=np.array([[0.0, 1.0]] * cells.size + [[0.0, np.inf]] * sides.shape[0]),
        method="highs-ds",
        options={"time_limit": SECONDS},
    )
    if found.status != 0 or found.fun <= NOTICED:
        return None
    owner = np.repeat(np.arange(len(members)), [member.lower.size for member in members])
    charged = np.abs(found.ineqlin.marginals) > NOTICED
    return [members[at] for at in np.unique(owner[np.concatenate([floors, ceilings])][charged])]


def _smallest(fixed: list[Constraint], members: list[Constraint], grown: bool, usable: Bools) -> list[Constraint]:
    """A smallest part of `members` that conflicts with `fixed`; all of `members` must conflict with it."""
    if grown and _point(fixed, usable) is None:
        return []
    if len(members) == 1:
        return members
    left, right = members[: len(members) // 2], members[len(members) // 2 :]
    late = _smallest(fixed + left, right, bool(left), usable)
    early = _smallest(fixed + late, left, bool(late), usable)
    return early + late


def _members(constraints: Sequence[Constraint], k: int, n: int) -> list[Constraint]:
    """Each row, and each pin or ban as a row of at most 0, by name, as a constraint; then documents and positions.
    Conflicts are sought among the first ones first."""
    cell = np.arange(k * n)
    ones = np.ones(k * n)
    position = csr_array((ones, (cell // n, cell)), shape=(k, k * n))
    document = csr_array((ones, (cell % n, cell)), shape=(n, k * n))
    members: list[Constraint] = []
    for constraint in constraints:
        if constraint.forbids is not None:
            cells = csr_array(constraint.forbids.reshape(1, -1).astype(float))
            text = constraint.description(0)
            members.append(Constraint(constraint.name, text, cells, np.full(1, -np.inf), np.zeros(1)))
        for row in range(constraint.rows):
            part = slice(row, row + 1)
            rows = constraint.matrix[part], constraint.lower[part], constraint.upper[part]
            members.append(Constraint(constraint.block.name(row), constraint.description(row), *rows))
    members.append(
        Constraint("document", "each document is ranked at most once", document, np.full(n, -np.inf), np.ones(n))
    )
    members.append(Constraint(POSITION, "each position holds one document", position, np.ones(k), np.ones(k)))
    return members


def _point(members: Sequence[Constraint], usable: Bools, objective: Floats | None = None) -> Ints | None:
    """A 0/1 vector that satisfies the members and maximizes `objective`; None if there is none. usable: see `few`."""
    # With all positions no more than k documents of a kind are used.
    free = np.flatnonzero(usable) if any(member.name == POSITION for member in members) else np.arange(usable.size)
    cost = np.zeros(free.size) if objective is None else -objective[free]
    found = integral_point(cost, _stack_rows(members, free), (0.0, 1.0), np.ones(free.size), SECONDS)
    if found.status == 2:
        return None
    if found.x is None:
        raise SolverError(f"emptiness is undecided{within(found, SECONDS)} ({found.message}); use fewer constraints")
    point = np.zeros(usable.size, dtype=np.int64)
    point[free] = np.round(found.x)
    return point


def few(constraints: Sequence[Constraint], k: int, n: int) -> Bools:
    """(k n,) the cells of the first k documents of each kind, which suffice because their columns are equal."""
    parts = [constraint.matrix for constraint in constraints]
    parts += [csr_array(c.forbids.reshape(1, -1)) for c in constraints if c.forbids is not None]
    cells = csr_array(vstack([csr_array((0, k * n)), *parts])).tocoo()
    row, cell = cells.coords
    table = csr_array((cells.data.astype(float), (cell % n, cell // n * cells.shape[0] + row)), (n, k * cells.shape[0]))
    kind = equal_rows(table)
    order = np.argsort(kind, kind="stable")
    sorted_ = kind[order]
    rank = np.arange(kind.size) - np.searchsorted(sorted_, sorted_)
    chosen = np.zeros(kind.size, dtype=bool)
    chosen[order[rank < k]] = True
    return np.tile(chosen, k)


def _stack_rows(members: Sequence[Constraint], cells: Ints) -> tuple[csr_array, Floats, Floats]:
    """All rows and their limits, scaled to coefficients of about 1, because solver tolerances are absolute."""
    matrix = (
        csr_array(vstack([member.matrix for member in members]))[:, cells] if members else csr_array((0, cells.size))
    )
    largest = np.asarray(abs(matrix).max(axis=1).toarray()).ravel()
    unit = np.where(largest > 0, np.ldexp(1.0, np.frexp(largest)[1]), 1.0)
    scaled = csr_array(matrix.multiply(1.0 / unit[:, None]))
    low, high = (np.concatenate([[], *(getattr(m, side) for m in members)]) / unit for side in ("lower", "upper"))
    return scaled, low, high


FAR = 1e6  # largest ratio of two penalties in one objective: solvers resolve about ten digits


@dataclass(frozen=True, eq=False)
class Repair(CompactReprMixin):
    """order: the document at each position. violations: name of a row, pin or ban → amount. cost: their
    penalties; bound: a lower bound for all rankings. least: the smallest positive penalty."""

    order: Ints
    violations: dict[str, float]
    cost: float
    bound: float
    least: float = 1.0

    @property
    def proved(self) -> bool:
        """Whether no ranking costs less, up to rounding."""
        return self.cost - self.bound <= 1e-12 * self.cost + 1e-9 * self.least

    def __str__(self) -> str:
        if not self.violations:
            return f"Nothing has to be broken: {self.order.tolist()} is in the set"
        parts = ", ".join(f"{name} by {amount:g}" for name, amount in self.violations.items())
        proof = "none costs less" if self.proved else f"none is proved to cost less than {self.bound:g}"
        return f"{self.order.tolist()} breaks {parts}, at a cost of {self.cost:g}; {proof}"


def repair(
    shape: tuple[int, int],
    constraints: Sequence[Constraint],
    soft: Sequence[SoftConstraint],
    penalties: float | Mapping[str, float],
) -> Repair:
    """A ranking of least violation of k of n documents; see `RankingSet.repair`."""
    k, n = shape
    pairs = [(held, None) for held in constraints] + [(one.constraint, one.penalty) for one in soft]
    if isinstance(penalties, Mapping):
        unknown = sorted(set(penalties) - {held.name for held, _ in pairs}, key=repr)
        if unknown:
            known = ", ".join(repr(held.name) for held, _ in pairs) or "none"
            raise InvalidProblemError(f"No constraint is named {unknown[0]!r}; the names are {known}.")
    penalty_of = penalties if isinstance(penalties, Mapping) else {held.name: penalties for held, _ in pairs}
    may = [
        SoftConstraint(
            held, valid_penalty(penalty_of[held.name], held.name) if held.name in penalty_of else float(price or 0.0)
        )
        for held, price in pairs
        if held.name in penalty_of or price is not None
    ]
    must = [held for held, price in pairs if held.name not in penalty_of and price is None]
    stated = SetRows.from_constraints(must, shape)
    fillable = fillable_positions(stated, must)
    if fillable < k:
        raise InfeasibleError(emptiness(stated, must, fillable))
    paid = sorted(one.penalty for one in may if one.penalty > 0.0)
    if paid and paid[-1] > FAR * paid[0]:
        raise InvalidProblemError(f"penalties may differ {FAR:g}-fold; got {paid[0]:g} to {paid[-1]:g}. Rescale them.")
    rows, worth = with_soft_rows(stated, may), -cell_penalties(may, shape)
    order = _least(rows, worth)
    cost = charge_of(may, order, n)
    y = recovered_prices(rows, worth, order, admitted=True)
    bound = 0.0 if y is None else max(0.0, -proven_bound(rows, worth, y))
    off = violations([one.constraint for one in may], order, n)
    return Repair(frozen(order), off, cost, min(bound, cost), paid[0] if paid else 1.0)


def _least(stated: SetRows, worth: Floats) -> Ints:
    """The document at each position of the optimum of the widened integer program."""
    program = widened(stated, worth, integer=True)
    costs = np.abs(program.objective[program.objective != 0.0])
    scale = float(costs.min(initial=np.inf)) if costs.size else 1.0
    rows, limits = (program.matrix, program.row_lower, program.row_upper), (program.lower, program.upper)
    found = integral_point(-program.objective / scale, rows, limits, program.integer, SECONDS)
    if found.x is None:
        raise SolverError(f"no repair was found{within(found, SECONDS)} ({found.message}); let fewer constraints give")
    k, n = stated.shape
    return order_of_cells(stated.cell[found.x[: stated.cell.size] > 0.5], k, n)
