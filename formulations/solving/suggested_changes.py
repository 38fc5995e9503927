"""What would make a refuted set whole: changes of its constraints, each tried and proved before it is said.

Tried of each constraint that counts documents at positions, alone and then together with others:

    all positions   the same documents, counted over all positions
    nested groups   its documents extended by every group that they cross, so that they hold it or are held by it
    both            one and the other
    left out        the set without it

Whether a matrix is totally unimodular does not depend on the limits: those of a changed constraint are the user's to
choose. Bans and pins only take columns away, and are left alone.

>>> top = RankingSet(6, 4).at_most(1, documents=[0, 1, 2], positions=range(2), name="top")
>>> for one in advice(top):
...     print(one)
Count 'top' over all positions: then the matrix is totally unimodular (bipartite)
Leave out 'top': then the matrix is totally unimodular (bipartite)

A fractional optimum: the smallest change of one limit, or of the objective, that makes it whole, proved.

An optimum is whole where prices prove the value of a ranking best: then no point of the linear program is worth more.

*A limit* of a row is moved by 1, 2, ... to either side until that is so.

*The objective* is changed by d so that the best ranking π becomes an optimum of the linear program, max |d| as small as
can be: an inverse program [Ahuja and Orlin 2001], itself linear in d, the prices y and what each position earns,

    minimise    t
    subject to  u[i] + Σ_r y[r] a[r, c] >= profit[c] + d[c]   at every cell c of position i, = where π holds c
                -t <= d <= t
                y[r] > 0 only where π is at the upper limit of r, < 0 only at the lower

Whatever ranking it is, no change below gap / 2k makes it an optimum: the fractional point is worth `gap` more, and the
two differ by 2k at most, all cells together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array, eye_array, hstack, vstack

from formulations.arrays import Bools, Floats, Ints, frozen
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.constraint import Constraint, rows_of_cells
from formulations.constraints.duals import case_bound, relaxation_prices
from formulations.constraints.ranking_set import RankingSet
from formulations.display import CompactReprMixin
from formulations.errors import FormulationError, SolverFailed, Unsupported
from formulations.integrality.checker import confirm
from formulations.integrality.evidence import Proof, Witness
from formulations.integrality.proofs import prove
from formulations.integrality.statement import stated
from formulations.integrality.verify import verify_integrality
from formulations.problems.problem import Solution
from formulations.solving.solve import solve

WORDS = {
    "all positions": "count {} over all positions",
    "nested groups": "extend {} to whole groups",
    "both": "extend {} to whole groups and count it over all positions",
    "left out": "leave out {}",
}
"""The changes, the mildest first, and how they are said of a constraint."""

Variant = tuple[Bools, Bools]
"""(rows, k) and (rows, n): at which positions each row of a constraint counts which documents."""


@dataclass(frozen=True, eq=False)
class Advice(CompactReprMixin):
    """changes: name of a constraint → "all positions", "nested groups", "both" or "left out". admissible: the set with
    these; proof: that its program is whole, confirmed from the matrix alone."""

    changes: Mapping[str, str]
    admissible: RankingSet
    proof: Proof

    def __str__(self) -> str:
        parts = " and ".join(WORDS[change].format(repr(name)) for name, change in self.changes.items())
        return f"{parts[:1].upper()}{parts[1:]}: then the matrix is totally unimodular ({self.proof.kind})"


def advice(
    admissible: RankingSet, found: Proof | Witness | None = None, *, seconds: float = np.inf
) -> tuple[Advice, ...]:
    """All single changes of a constraint that make the set's program whole; where there are none, changes of several
    of which none can be spared. Empty for a set that is whole.
    Hard constraints are changed only: where those of soft ones refute the widened statement, nothing is said.

    found: the answer of `verify_integrality` for the set, if it is known. seconds: after these no further change is
    tried: there may be others, or one of several may be spared; what is said is proved all the same. A change that
    would leave no ranking is not said. Raises Unsupported for what is no set, and what `verify_integrality` raises.
    """
    if not isinstance(admissible, RankingSet):
        raise Unsupported(f"advice is for sets, not for a {type(admissible).__name__}; give the RankingSet")
    answer = verify_integrality(admissible) if found is None else found
    if isinstance(answer, Proof):
        return ()
    ends = perf_counter() + seconds
    suspects = _suspects(admissible, answer)
    single = [
        one
        for held in suspects
        for change in WORDS
        if perf_counter() < ends and (one := _tried(admissible, {held.name: change})) is not None
    ]
    if single:
        return tuple(sorted(single, key=lambda one: [*WORDS].index(next(iter(one.changes.values())))))
    several = _several(admissible, ends)
    return () if several is None else (several,)


def _suspects(admissible: RankingSet, answer: object) -> list[Constraint]:
    """The constraints with a row in the witness: a change of any other leaves it there."""
    counting = [held for held in admissible.constraints if held.rows]
    if not isinstance(answer, Witness):
        return counting
    return [held for held in counting if {held.block.name(r) for r in range(held.rows)} & {*answer.row_names}]


def _several(admissible: RankingSet, ends: float) -> Advice | None:
    """From all left out, one constraint after the other put back as it is, or changed as little as can be: in the
    end none can be put back as it is, for what is not whole does not become so by more rows."""
    counting = [held for held in admissible.constraints if held.rows]
    changes = {held.name: "left out" for held in counting}
    best = _tried(admissible, changes)
    for held in counting:
        for change in (None, "all positions", "nested groups", "both") if perf_counter() < ends else ():
            others = {name: word for name, word in changes.items() if name != held.name}
            milder = others if change is None else {**others, held.name: change}
            better = _tried(admissible, milder)
            if better is not None:
                best, changes = better, milder
                break
    return best


def _tried(admissible: RankingSet, changes: Mapping[str, str]) -> Advice | None:
    """The set with these changes, if it holds a ranking and its program is proved whole; None else, and where a change
    changes nothing."""
    constraints: list[Constraint] = []
    for held in admissible.constraints:
        change = changes.get(held.name)
        if change == "left out":
            if held.forbids is not None:  # the cells that it forbids stay forbidden
                constraints.append(Constraint.mask(held.name, held.said(0), held.forbids))
            continue
        fresh = held if change is None else _changed(admissible, held, change)
        if fresh is None:
            return None
        constraints.append(fresh)
    changed = replace(admissible, constraints=tuple(constraints))
    statement = stated(changed)
    if (np.abs(statement.matrix.data) != 1).any() or not statement.is_whole:
        return None
    proof = prove(statement.matrix, thorough=True)
    if not isinstance(proof, Proof) or changed.max_positions < changed.positions:
        return None
    confirm(changed, proof)
    return Advice(dict(changes), changed, proof)


def _changed(admissible: RankingSet, held: Constraint, change: str) -> Constraint | None:
    """The constraint with its rows changed; None where they count no documents at positions, or stay as they are."""
    own = _products(held, admissible.shape)
    if own is None:
        return None
    positions, documents = own
    wider = np.ones_like(positions) if change in ("all positions", "both") else positions
    larger = documents if change == "all positions" else np.array([*_nested(admissible, held, documents)])
    same = [np.array_equal(wider, positions), np.array_equal(larger, documents)]
    if all(same) or (change == "both" and any(same)):
        return None
    k, n = admissible.shape
    cells = [(np.flatnonzero(p), np.flatnonzero(d)) for p, d in zip(wider, larger, strict=True)]
    says = tuple(f"{held.said(r)}, changed" for r in range(held.rows))
    return replace(held, matrix=rows_of_cells(cells, k, n), says=says if held.labels is not None else says[0])


def _products(held: Constraint, shape: tuple[int, int]) -> Variant | None:
    """The positions and documents that each row counts; None unless each row is ones on all cells of such."""
    table = csr_array(held.matrix).toarray().reshape(-1, *shape)
    positions, documents = (table != 0).any(axis=2), (table != 0).any(axis=1)
    return (positions, documents) if (table == positions[:, :, None] * documents[:, None, :]).all() else None


def _nested(admissible: RankingSet, held: Constraint, documents: Bools) -> Iterator[Bools]:
    """Each row's documents with all groups of other constraints that they cross."""
    others = [
        group
        for other in admissible.constraints
        if other is not held and other.rows and (known := _products(other, admissible.shape)) is not None
        for group in known[1]
    ]
    for own in documents:
        larger = own.copy()
        while True:
            crossed = [g for g in others if (larger & g).any() and (larger & ~g).any() and (g & ~larger).any()]
            if not crossed:
                break
            larger = np.logical_or.reduce([larger, *crossed])
        yield larger


FARTHEST = 3
"""How far a limit is moved."""

SAID = 4
"""Changes of a limit that are printed, those worth most first."""

MARGIN = 1e-6
"""How much more than must be an objective is changed, relative to the change, so that rounding does not undo it."""


@dataclass(frozen=True, eq=False)
class LimitChange(CompactReprMixin):
    """The limit `side` ("at most", "at least") of `row` moved by `step`; problem: with that; solution: its best
    ranking, proved by prices."""

    row: str
    side: str
    step: int
    problem: ConstrainedRanking
    solution: Solution

    def __str__(self) -> str:
        return f"{self.side} of {self.row} {self.step:+d} (worth {self.solution.value:g})"


@dataclass(frozen=True, eq=False)
class ObjectiveChange(CompactReprMixin):
    """No profit changed by more than `largest`, and the best ranking is an optimum of the linear program; no change
    below `least` does that for any ranking."""

    largest: float
    least: float
    problem: ConstrainedRanking
    solution: Solution

    def __str__(self) -> str:
        return (
            f"profits changed by {self.largest:.3g} at most, and {self.solution.order.tolist()} is an optimum of the "
            f"linear program; no change below {self.least:.3g} makes any ranking one"
        )


@dataclass(frozen=True, eq=False)
class NearestWhole(CompactReprMixin):
    """gap: by how much the relaxation overestimates; limits: the smallest changes of one limit, all of one size, empty
    where none of up to 3 was found; objective: None where the gap is 0, or none was found."""

    gap: float
    limits: tuple[LimitChange, ...]
    objective: ObjectiveChange | None

    def __str__(self) -> str:
        if self.gap == 0.0:
            return "nothing changed: it is whole"
        several = sorted(self.limits, key=lambda one: -one.solution.value)
        said = ["one limit moved: " + ", or ".join(map(str, several[:SAID]))] if several else []
        said += [] if self.objective is None else [f"another objective: {self.objective}"]
        return "\n".join(said or ["no small change that was found"])


def nearest_whole(problem: ConstrainedRanking) -> NearestWhole:
    """The smallest changes of a limit and of the objective that make the optimum of a ranking problem whole.

    Raises what `solve` raises.
    """
    best = solve(problem)
    prices = relaxation_prices(problem.compiled, problem.worth)
    if prices is None:
        raise SolverFailed("the relaxation could not be solved; its optimum is not known")
    gap = problem.bound(prices) - best.value
    if gap <= _slack(problem):
        return NearestWhole(0.0, (), None)
    return NearestWhole(gap, _limits(problem), _objective(problem, best, gap))


def _slack(problem: ConstrainedRanking) -> float:
    return max(1e-9 * problem.scale, problem.rounding)


def _whole(problem: ConstrainedRanking) -> Solution | None:
    """The best ranking, if prices without cases prove it so."""
    solution = solve(problem)
    prices = relaxation_prices(problem.compiled, problem.worth)
    return None if prices is None else _proved(problem, solution.x, prices)


def _proved(problem: ConstrainedRanking, ranking: Any, prices: Floats) -> Solution | None:
    """The ranking with what these prices prove of the linear program, if that is not worth more. (`solution` goes
    through cases where prices leave a gap: that proves the ranking best, and not the program whole.)"""
    if problem.bound(prices) - problem.value(ranking) > _slack(problem):
        return None
    return problem.solution(ranking, prices)


def _limits(problem: ConstrainedRanking) -> tuple[LimitChange, ...]:
    for step in range(1, FARTHEST + 1):
        found = [
            change
            for number, held in enumerate(problem.admissible.constraints)
            for row in range(held.rows)
            for side in ("upper", "lower")
            for way in (step, -step)
            if (change := _moved(problem, number, held, row, side, way)) is not None
        ]
        if found:
            return tuple(found)
    return ()


def _moved(
    problem: ConstrainedRanking, number: int, held: Constraint, row: int, side: str, way: int
) -> LimitChange | None:
    limits = getattr(held, side).copy()
    if not np.isfinite(limits[row]):
        return None
    limits[row] += way
    if (limits[row] < 0 and held.lower[row] >= 0) or (held.lower if side == "upper" else limits)[row] > (
        limits if side == "upper" else held.upper
    )[row]:
        return None
    fresh = replace(held, lower=limits) if side == "lower" else replace(held, upper=limits)
    constraints = (*problem.admissible.constraints[:number], fresh, *problem.admissible.constraints[number + 1 :])
    try:
        moved = replace(problem, admissible=replace(problem.admissible, constraints=constraints))
        solution = _whole(moved)
    except FormulationError:  # no ranking is left, or no solver is sure
        return None
    word = "at most" if side == "upper" else "at least"
    return None if solution is None else LimitChange(held.block.name(row), word, way, moved, solution)


def _objective(problem: ConstrainedRanking, best: Solution, gap: float) -> ObjectiveChange | None:
    change = _inverse(problem, best.order)
    if change is None or type(problem) is not ConstrainedRanking:
        return None
    changed = replace(problem, profit=frozen(problem.profit + change), ranked=None)
    prices = relaxation_prices(changed.compiled, changed.worth)
    if prices is None or case_bound(changed.compiled, changed.worth, prices, np.empty(0)) == np.inf:
        return None
    proved = _proved(changed, best.x, prices)
    if proved is None:
        return None
    least = gap / (2.0 * problem.positions)
    return ObjectiveChange(float(np.abs(change).max()), least, changed, proved)


def _inverse(problem: ConstrainedRanking, order: Ints) -> Floats | None:
    """(k, n) the smallest change of the profits, by its largest entry, that makes the ranking an optimum."""
    from scipy.optimize import linprog

    stated, (k, n) = problem.compiled, problem.profit.shape
    cells, rows = stated.cell.size, stated.lower.size - k
    scale = max(problem.scale, 1e-300)
    held = stated.place[np.arange(k) * n + order]
    sums = np.asarray(stated.matrix[k:, held].sum(axis=1)).ravel()
    high, low = sums >= stated.upper[k:] - stated.rounding, sums <= stated.lower[k:] + stated.rounding
    earned = csr_array((np.ones(cells), (np.arange(cells), stated.cell // n)), shape=(cells, k))
    # profit + d <= u + A y, columns d, u, y, t
    nowhere = csr_array((cells, 1))
    under = csr_array(hstack([eye_array(cells), -earned, -stated.weights, nowhere]))
    profit = problem.worth.ravel()[stated.cell] / scale
    one = csr_array(np.ones((cells, 1)))
    rest = csr_array((cells, k + rows))
    within = vstack([hstack([eye_array(cells), rest, -one]), hstack([-eye_array(cells), rest, -one])])
    found = linprog(
        np.concatenate([np.zeros(cells + k + rows), [1.0]]),
        A_ub=csr_array(vstack([under, within])),
        b_ub=np.concatenate([-profit, np.zeros(2 * cells)]),
        A_eq=csr_array(under[held]),
        b_eq=-profit[held],
        bounds=np.array(
            [[-np.inf, np.inf]] * (cells + k)
            + [[-np.inf if b else 0.0, np.inf if a else 0.0] for a, b in zip(high, low, strict=True)]
            + [[0.0, np.inf]]
        ),
        method="highs-ds",
    )
    if found.status != 0:
        return None
    change = np.zeros(k * n)
    change[stated.cell] = found.x[:cells] * scale
    change = change.reshape(k, n)
    change[np.arange(k), order] += MARGIN * float(np.abs(change).max())
    return change
