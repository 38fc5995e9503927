"""Integrality of one optimum, and changes of constraints that make a refuted set integral.

The relaxation (every variable real) bounds the best integral point; the difference is the integrality gap. It can be 0
without total unimodularity. For a problem whose own variables are real, it is the cost of requiring integers.

Each suggested change is proved before it is reported.

Each constraint that counts documents at positions is changed, alone and then with others: counted over all positions,
its documents extended by every group that they cross (nested groups), both, or left out.

A changed constraint keeps its limits: "at least 4 of 13 documents" may become "at least 4 of 26 documents". A change is
not suggested if the other constraints imply the changed one, which then excludes no ranking any more. Total
unimodularity does not depend on the limits, so the user may choose others. Forbidden and fixed cells only remove
columns and stay unchanged.

>>> top = RankingSet(6, 4).at_most(1, documents=[0, 1, 2], positions=range(2), name="top")
>>> for one in suggest_changes(top):
...     print(one)
Count 'top' over all positions (at most 1 of 3 documents: 0, 1, 2): then the matrix is totally unimodular (bipartite)
Leave out 'top': then the matrix is totally unimodular (bipartite)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, check_type
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.constraints.constraint import Constraint, rows_of_cells
from formulations.constraints.ranking_set import RankingSet
from formulations.display import CompactReprMixin
from formulations.errors import UnsupportedProblemError
from formulations.integrality.checker import check_evidence
from formulations.integrality.evidence import Proof, Undecided, Witness
from formulations.integrality.proofs import prove
from formulations.integrality.statement import stated
from formulations.integrality.verify import verify_integrality
from formulations.problems.cvxpy_problem import AnyProblem, as_form, is_model
from formulations.problems.linear_program import LinearProgram
from formulations.problems.problem import Solution
from formulations.problems.program import AUXILIARY
from formulations.solvers.solver import Solver
from formulations.solving.solve import solve

WORDS = {
    "all positions": "count {} over all positions",
    "nested groups": "extend {} to all documents of the groups that it crosses",
    "both": "extend {} to all documents of the groups that it crosses and count it over all positions",
    "left out": "leave out {}",
}
"""The changes, the mildest first, and their descriptions."""

Variant = tuple[Bools, Bools]
"""(rows, k) and (rows, n): at which positions each row of a constraint counts which documents."""


@dataclass(frozen=True, eq=False)
class SuggestedChange(CompactReprMixin):
    """changes: name of a constraint → "all positions", "nested groups", "both" or "left out". admissible: the changed
    set; proof: of its program's integrality, confirmed from the matrix alone."""

    changes: Mapping[str, str]
    admissible: RankingSet
    proof: Proof

    def __str__(self) -> str:
        parts = " and ".join(WORDS[how].format(repr(name)) + self._limit(name) for name, how in self.changes.items())
        return f"{parts[:1].upper()}{parts[1:]}: then the matrix is totally unimodular ({self.proof.kind})"

    def _limit(self, name: str) -> str:
        """What a changed constraint of one row now says."""
        held = next((one for one in self.admissible.constraints if one.name == name and one.rows == 1), None)
        if held is None or self.changes[name] == "left out":
            return ""
        counted = np.unique(held.matrix.indices % self.admissible.documents)
        return f" ({held.description(0)}: {np.array2string(counted, separator=', ', threshold=10)[1:-1]})"


def suggest_changes(
    admissible: RankingSet, found: Proof | Witness | None = None, *, seconds: float = np.inf
) -> tuple[SuggestedChange, ...]:
    """All single changes of a constraint that make the set's program integral; if there are none, an irreducible change
    of several. Empty for an integral set. Only hard constraints are changed; a widened set refuted by soft ones gets no
    suggestion.

    found: the answer of `verify_integrality` for the set, if known. seconds: time limit of the search; changes found by
    then are proved, but others may exist, or one of several may be unnecessary. Changes that leave no ranking, or under
    which a changed constraint excludes none, are omitted. Raises UnsupportedProblemError for anything but a set, and
    what `verify_integrality` raises.
    """
    if not isinstance(admissible, RankingSet):
        raise UnsupportedProblemError(f"suggest_changes() needs a RankingSet; got a {type(admissible).__name__}.")
    check_type("found", found, Proof, Witness, Undecided, type(None), cure="verify_integrality(admissible) returns it.")
    check_type("seconds", seconds, float, int)
    answer = verify_integrality(admissible) if found is None else found
    if isinstance(answer, Proof):
        return ()
    ends = perf_counter() + seconds
    suspects = _suspects(admissible, answer)
    single = [
        one
        for held in suspects
        for change in WORDS
        if perf_counter() < ends and (one := _try_changes(admissible, {held.name: change})) is not None
    ]
    if single:
        return tuple(sorted(single, key=lambda one: [*WORDS].index(next(iter(one.changes.values())))))
    several = _several(admissible, ends)
    return () if several is None else (several,)


def _suspects(admissible: RankingSet, answer: object) -> list[Constraint]:
    """The constraints with a row in the witness: changing any other leaves the witness in the matrix."""
    counting = [held for held in admissible.constraints if held.rows]
    if not isinstance(answer, Witness):
        return counting
    return [held for held in counting if {held.block.name(r) for r in range(held.rows)} & {*answer.row_names}]


def _several(admissible: RankingSet, ends: float) -> SuggestedChange | None:
    """From all constraints left out, each is restored unchanged, or changed as little as possible. In the end none can
    be restored unchanged, because more rows never restore integrality."""
    counting = [held for held in admissible.constraints if held.rows]
    changes = {held.name: "left out" for held in counting}
    best = _try_changes(admissible, changes)
    for held in counting:
        for change in (None, "all positions", "nested groups", "both") if perf_counter() < ends else ():
            others = {name: word for name, word in changes.items() if name != held.name}
            milder = others if change is None else {**others, held.name: change}
            better = _try_changes(admissible, milder)
            if better is not None:
                best, changes = better, milder
                break
    return best


def _try_changes(admissible: RankingSet, changes: Mapping[str, str]) -> SuggestedChange | None:
    """The set with these changes, if it has a ranking and its program is proved integral; None otherwise, if nothing
    changes, and if a changed constraint no longer excludes any ranking."""
    constraints: list[Constraint] = []
    for held in admissible.constraints:
        change = changes.get(held.name)
        if change == "left out":
            if held.forbids is not None:  # the cells that it forbids stay forbidden
                constraints.append(Constraint.mask(held.name, held.description(0), held.forbids))
            continue
        fresh = held if change is None else _change_rows(admissible, held, change)
        if fresh is None:
            return None
        constraints.append(fresh)
    changed = replace(admissible, constraints=tuple(constraints))
    statement = stated(changed)
    if (np.abs(statement.matrix.data) != 1).any() or not statement.is_integer:
        return None
    proof = prove(statement.matrix, thorough=True)
    if not isinstance(proof, Proof) or changed.max_positions < changed.positions:
        return None
    if any(change != "left out" and _is_implied(changed, name) for name, change in changes.items()):
        return None
    check_evidence(changed, proof)
    return SuggestedChange(dict(changes), changed, proof)


def _is_implied(changed: RankingSet, name: str) -> bool:
    """Whether every ranking that meets the other constraints meets the rows of this one: by proved bounds on them."""
    held = next(one for one in changed.constraints if one.name == name)
    bare = None if held.forbids is None else Constraint.mask(name, held.description(0), held.forbids)
    rest = tuple(bare if one is held else one for one in changed.constraints)
    others = replace(changed, constraints=tuple(one for one in rest if one is not None), soft_constraints=())
    for row, lower, upper in zip(csr_array(held.matrix).toarray(), held.lower, held.upper, strict=True):
        for sign, limit in ((-1.0, -lower), (1.0, upper)):
            if np.isfinite(limit):
                most = solve(ConstrainedRanking(sign * row.reshape(changed.shape), others), "highs").bound
                if most >= limit + 0.5:  # rows count documents
                    return False
    return True


def _change_rows(admissible: RankingSet, held: Constraint, change: str) -> Constraint | None:
    """The constraint with its rows changed; None if they do not count documents at positions, or stay unchanged."""
    own = _products(held, admissible.shape)
    if own is None:
        return None
    positions, documents = own
    wider = np.ones_like(positions) if change in ("all positions", "both") else positions
    larger = documents if change == "all positions" else np.array([*_nested_documents(admissible, held, documents)])
    same = [np.array_equal(wider, positions), np.array_equal(larger, documents)]
    if all(same) or (change == "both" and any(same)):
        return None
    k, n = admissible.shape
    cells = [(np.flatnonzero(p), np.flatnonzero(d)) for p, d in zip(wider, larger, strict=True)]
    limits = zip(held.lower, held.upper, strict=True)
    texts = tuple(
        f"{_limits(*pair)} of {d.size} documents" + ("" if p.size == k else f" at {p.size} of {k} positions")
        for pair, (p, d) in zip(limits, cells, strict=True)
    )
    text = texts if held.labels is not None else texts[0]
    return replace(held, matrix=rows_of_cells(cells, k, n), text=text, share_limit=None)


def _limits(lower: float, upper: float) -> str:
    """The limits in words, as those of `RankingSet`."""
    if lower == upper:
        return f"exactly {lower:g}"
    if np.isinf(lower):
        return f"at most {upper:g}"
    return f"at least {lower:g}" if np.isinf(upper) else f"from {lower:g} to {upper:g}"


def _products(held: Constraint, shape: tuple[int, int]) -> Variant | None:
    """The positions and documents that each row counts; None unless each row is ones on all cells of such."""
    table = csr_array(held.matrix).toarray().reshape(-1, *shape)
    positions, documents = (table != 0).any(axis=2), (table != 0).any(axis=1)
    return (positions, documents) if (table == positions[:, :, None] * documents[:, None, :]).all() else None


def _nested_documents(admissible: RankingSet, held: Constraint, documents: Bools) -> Iterator[Bools]:
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


OPEN = 1e-6  # differences below this part of the largest objective coefficient may be solver errors


@dataclass(frozen=True, eq=False)
class IntegralityGap(CompactReprMixin):
    """The relaxation's optimum against the best integral point, values and bounds recomputed from the data.

    integral   whether the gap is within rounding; None if it is larger, but within solver tolerance
    absolute   by how much the relaxation overestimates a maximum (underestimates a minimum)
    relative   the same relative to the integral point's value, or to 1 if that is smaller
    """

    relaxed: Solution
    integer: Solution
    integral: bool | None
    absolute: float
    relative: float

    def __str__(self) -> str:
        if self.integral:
            return f"This optimum is integral: {self.integer.value:g} with and without integrality"
        found = "This optimum is not integral" if self.integral is False else "This optimum may be integral (undecided)"
        return (
            f"{found}: {self.relaxed.value:g} without integers, {self.integer.value:g} with them"
            + (f" ({self.integer.solver} claims optimal; not proved)" if "claimed" in self.integer.verdict else "")
            + f", {self.absolute:g} ({self.relative:.2%}) apart"
            + ("" if self.integral is False else ", which is within solver tolerance")
        )


def integrality_gap(problem: AnyProblem, solver: Solver | str = "highs") -> IntegralityGap:
    """Solve a problem with real and with integer variables (those that it marks, else all but auxiliary ones of cvxpy),
    and compare.

    problem  a problem class, a model that `as_problem` reads, or anything that has a linear `program` with an objective
    solver   one that accepts linear programs with integers

    Raises what `solve` raises; `UnsupportedProblemError` for a bare matrix, which has no objective.
    """
    problem = as_form(problem) if is_model(problem) else problem
    linear = stated(problem).program
    if linear is None:
        raise UnsupportedProblemError("a matrix has no objective. Give a problem, or use verify_integrality().")
    program = LinearProgram.from_program(linear)
    relaxed = solve(replace(program, integer=None), solver)
    own = [np.full(block.size, not block.label.startswith(AUXILIARY)) for block in program.variables]
    every = np.concatenate(own) if program.integer is None else program.integer
    # What soft rows of fractional coefficients are broken by is no integer.
    marked = problem.linear_program(integer=True).integer if isinstance(problem, PenalizedRanking) else every
    mixed = replace(program, integer=marked)
    best = _better(mixed, solve(mixed, solver), relaxed)
    absolute = max(0.0, (relaxed.value - best.value) * (1.0 if program.is_maximization else -1.0))
    slack = 1e-7 * max(1.0, abs(best.value)) + program.rounding
    near = OPEN * float(np.abs(program.objective).max(initial=0.0))
    integral = True if absolute <= slack else None if absolute <= near else False
    return IntegralityGap(relaxed, best, integral, absolute, absolute / max(1.0, abs(best.value)))


def _better(mixed: LinearProgram, integral: Solution, relaxed: Solution) -> Solution:
    """The integral point found, or the relaxation's if that is integral and better within solver tolerance."""
    assert mixed.integer is not None
    near = np.where(mixed.integer, np.round(relaxed.x), relaxed.x)
    if np.abs(near - relaxed.x).max(initial=0.0) > mixed.tolerance:
        return integral
    found = mixed.solution(near, relaxed.y)
    ahead = (found.value - integral.value) * (1.0 if mixed.is_maximization else -1.0)
    if found.violation > mixed.tolerance or ahead <= 0.0:
        return integral
    return replace(found, solver=relaxed.solver, version=relaxed.version, seconds=integral.seconds)
