"""Rankings with any profit matrix: matchings, diverse retrieval, rankings in a set; and marginal rankings, the
probability of each document at each position, under constraints of fair exposure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from formulations.arrays import Bools, Floats, each, finite
from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
from formulations.constraints.ranking_set import RankingSet
from formulations.errors import InfeasibleError, InvalidProblemError
from formulations.marginals.exposure import ExposureConstraint, ExposureRows
from formulations.problems.assignment import Assignment
from formulations.problems.linear_program import LinearProgram
from formulations.problems.program import Block
from formulations.problems.ranking import RankTwoAssignment

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint


def matching(
    profit: ArrayLike, *, allowed: ArrayLike | None = None, sense: Literal["max", "min"] = "max"
) -> Assignment:
    """Matching: assign documents to positions with any matrix of profits, or of costs; see `Assignment`.

    A position can be any slot: a rank in a list, a topic, or the other side of a matching [ORM, section 7.3].

    integrality  totally unimodular: the incidence matrix of a bipartite graph

    Args:
        profit: (k, n), one row per position, one column per document. Forbidden cells are masked, or have a profit of
            -inf or a cost of inf.
        allowed: (k, n) booleans, False for further forbidden cells.
        sense: "max" for profits; "min" for costs: value and bound are then costs.

    Raises:
        InvalidProblemError: a profit or cost is NaN or infinite in the wrong direction, or shapes do not fit.
        InfeasibleError: k > n, or some positions share too few allowed documents; names them.

    >>> from formulations import solve
    >>> profit = [[3.0, 2.0, 9.0], [2.0, 1.0, 8.5]]
    >>> solve(matching(profit), "scipy").order
    array([0, 2])
    >>> solve(matching(profit, allowed=[[True, True, True], [True, True, False]]), "scipy").order
    array([2, 0])
    >>> cheapest = solve(matching([[4.0, 1.0, 3.0], [2.0, 0.0, np.inf]], sense="min"))
    >>> cheapest.order, cheapest.value, cheapest.bound
    (array([1, 0]), 3.0, 3.0)
    """
    return Assignment(cast("Floats", profit), cast("Bools | None", allowed), sense)


def diverse_retrieval(profit: ArrayLike, groups: Sequence[Hashable | None]) -> ConstrainedRanking:
    """The best k of n documents, at most one from each block: Π(B, k) of [ORM, Definition 5].

    maximize     Σ profit[i, j] π[i, j]                                                              [ORM, eq. 41]
    subject to   position   each position holds one document
                 block      each block fills at most one of the k positions
    integrality  totally unimodular: every variable is in one position row and one block row (Heller-Tompkins)

    It collapses to an assignment of positions to blocks: only the best document per position and block matters.

    Args:
        profit: (k, n), one row per position, one column per document.
        groups: (n,) the block of each document: site, topic, author. None for a document in no block.

    Raises:
        InvalidProblemError: a profit is NaN or infinite, or lengths do not fit.
        InfeasibleError: fewer blocks than positions; names the conflict.

    >>> from formulations import solve
    >>> profit = np.array([[3.0, 2.0, 9.0], [2.0, 1.0, 7.0]])
    >>> solution = solve(diverse_retrieval(profit, groups=["a.org", "a.org", "b.org"]))
    >>> solution.order, solution.value, solution.solver
    (array([2, 0]), 11.0, 'scipy via collapsed assignment')
    """
    worth = finite("profit", profit, 2)
    k, n = np.shape(worth)
    return ConstrainedRanking(worth, RankingSet(n, k).at_most(1, by=groups, name="block"))


def constrained_ranking(profit: ArrayLike | RankTwoAssignment, admissible: RankingSet) -> ConstrainedRanking:
    """The best ranking in a set with quotas, fixed and forbidden cells, precedence or rows of any kind.

    Solved by its most special structure: an assignment, a flow, a linear program, else an integer program.

    integrality  depends on the rows: `verify_integrality(problem)` proves it or returns a violating submatrix

    Args:
        profit: (k, n), one row per position, one column per document; or a `ranking` problem of the same k and n.
        admissible: the set, as `RankingSet(n, k).at_most(...)` states it. Soft constraints (`penalized`) may be
            violated, and their penalties are subtracted from the value: `solution.violations` lists the violations.

    Raises:
        InvalidProblemError: a profit is NaN or infinite, or its shape is not that of the set.
        InfeasibleError: no ranking is in the set; names an irreducible set of conflicting constraints.

    >>> from formulations import solve
    >>> site = ["a.org", "a.org", "b.org", "a.org"]
    >>> admissible = RankingSet(4, 3).at_most(2, by=site, name="site")
    >>> solution = solve(constrained_ranking(np.outer([3.0, 2.0, 1.0], [4.0, 3.0, 1.0, 2.0]), admissible))
    >>> solution.order, solution.value, solution.solver
    (array([0, 1, 2]), 19.0, 'ortools via laminar flow')
    """
    if not isinstance(admissible, RankingSet):
        raise InvalidProblemError(f"admissible must be a RankingSet(n, k); got a {type(admissible).__name__}.")
    ranked = None
    if isinstance(profit, RankTwoAssignment):
        ranked, profit = profit, profit.assignment().profit
    worth = finite("profit", profit, 2)
    if admissible.soft_constraints:
        return PenalizedRanking(worth, admissible)
    return ConstrainedRanking(worth, admissible, ranked)


def marginal_ranking(
    profit: ArrayLike,
    *,
    exposure: ArrayLike | None = None,
    constraints: ExposureConstraint | LinearConstraint | Iterable[ExposureConstraint | LinearConstraint] = (),
) -> LinearProgram:
    """The best marginal ranking, under constraints of fair exposure; `solution.primal["P"]` is its (k, n) matrix.

    variables    P[i, j], the probability that document j is at position i
                 level[c] in [0, 1], the common level of the groups of constraint c
    maximize     Σ profit[i, j] P[i, j]
    subject to   position   each position holds one document: a row of P sums to 1
                 document   each document is at one position at most: a column sums to <= 1, to 1 if k = n
                 a row for each group of `DemographicParity`, `DisparateTreatment`, `DisparateImpact`, `ExposureBounds`
    integrality  not required: P is a distribution over rankings, which `birkhoff_decomposition` computes, and exposure
                 holds in expectation. Position and document rows alone have integral vertices (Birkhoff, von Neumann);
                 at a vertex, r further tight rows (one less for each level) give at most r + 1 rankings.

    The exposure of document j is Σ_i exposure[i] P[i, j]. Source: A. Singh and T. Joachims, Fairness of Exposure in
    Rankings, KDD 2018; for the utility of its section 3.2 let profit be the outer product of exposure and relevance.

    Args:
        profit: (k, n), one row per position, one column per document.
        exposure: (k,) nonnegative: the exposure of the document at each position. 1 / log2(2 + i) by
            default, the discount of nDCG.
        constraints: one or several of `ExposureBounds`, `DemographicParity`, `DisparateTreatment`, `DisparateImpact` of
            formulations, or `scipy.optimize.LinearConstraint(A, lb, ub)` with A (m, k·n) for custom rows over P in
            C order: lb <= A P.ravel() <= ub. Several of one kind are allowed; the second one's rows are named
            "exposure 2", and so on.

    Raises:
        InvalidProblemError: a number is NaN or infinite, shapes do not fit, a group is unknown or has no merit.
        InfeasibleError: k > n, or the required exposure exceeds the capacity of the positions for these groups; names
            them. Conflicts between several constraints are found by the solver.

    >>> from formulations import DemographicParity, birkhoff_decomposition, solve
    >>> exposure, relevance = np.array([1.0, 0.6, 0.5]), np.array([0.9, 0.8, 0.7])
    >>> fair = DemographicParity(["a", "a", "b"])
    >>> solution = solve(marginal_ranking(np.outer(exposure, relevance), exposure=exposure, constraints=fair), "highs")
    >>> exposure @ solution.primal["P"]
    array([0.9, 0.5, 0.7])
    >>> print(birkhoff_decomposition(solution.primal["P"]))
    2 rankings of 3 documents at 3 positions
    0.75  0 2 1
    0.25  2 0 1
    """
    worth = finite("profit", profit, 2)
    k, n = worth.shape
    if k == 0 or n == 0:
        raise InvalidProblemError(f"profit must have at least one position and one document; got shape {worth.shape}.")
    if k > n:
        raise InfeasibleError(f"{k} positions cannot be filled by {n} documents. Reduce the problem to {n} positions.")
    attention = finite("exposure", 1.0 / np.log2(np.arange(2.0, k + 2)) if exposure is None else exposure, 1)
    if attention.size != k or not (attention >= 0).all() or not attention.any():
        raise InvalidProblemError(f"exposure must be {k} nonnegative numbers, not all 0; got {attention}.")
    several = each("constraints", constraints) if isinstance(constraints, Iterable) else (constraints,)
    added = _distinct([_constraint_rows(constraint, attention, n) for constraint in several])
    levels = [part.label for part in added if part.level is not None]
    position, document = kron(eye_array(k), np.ones((1, n))), kron(np.ones((1, k)), eye_array(n))
    least = np.full(n, 1.0 if k == n else -np.inf)
    parts = [
        ExposureRows("position", (k,), csr_array(position), np.ones(k), np.ones(k)),
        ExposureRows("document", (n,), csr_array(document), least, np.ones(n)),
        *added,
    ]
    return LinearProgram(
        objective=np.concatenate([worth.ravel(), np.zeros(len(levels))]),
        matrix=csr_array(vstack([_with_level(part, levels) for part in parts])),
        row_lower=np.concatenate([part.lower for part in parts]),
        row_upper=np.concatenate([part.upper for part in parts]),
        lower=np.zeros(k * n + len(levels)),
        upper=np.ones(k * n + len(levels)),
        variables=(Block("P", (k, n)), *([Block("level", tuple(levels))] if levels else [])),
        rows=tuple(Block(part.label, part.index) for part in parts),
    )


def _constraint_rows(constraint: Any, attention: Floats, documents: int) -> ExposureRows:
    """The rows of one constraint."""
    from scipy.optimize import LinearConstraint

    if isinstance(constraint, LinearConstraint):
        matrix = csr_array(constraint.A)
        count, size = matrix.shape
        if size != attention.size * documents:
            raise InvalidProblemError(
                f"A has {size} columns, but P has {attention.size} × {documents} cells, in the order of P.ravel()"
            )
        low, high = (np.broadcast_to(np.asarray(limit, float), (count,)) for limit in (constraint.lb, constraint.ub))
        return ExposureRows("row", (count,), matrix, low, high)
    if not callable(getattr(constraint, "rows", None)):
        raise InvalidProblemError(
            f"a constraint cannot be a {type(constraint).__name__}; use ExposureBounds, DemographicParity, "
            "DisparateTreatment, DisparateImpact or scipy.optimize.LinearConstraint"
        )
    rows: ExposureRows = constraint.rows(attention, documents)
    return rows


def _distinct(parts: list[ExposureRows]) -> list[ExposureRows]:
    """The same rows with unique labels: the second block of a label is named "label 2"."""
    seen: Counter[str] = Counter()
    for index, part in enumerate(parts):
        seen[part.label] += 1
        if seen[part.label] > 1:
            parts[index] = replace(part, label=f"{part.label} {seen[part.label]}")
    return parts


def _with_level(part: ExposureRows, levels: list[str]) -> Any:
    """The rows over the cells of P and all levels."""
    own = np.zeros((part.lower.size, len(levels)))
    if part.level is not None:
        own[:, levels.index(part.label)] = part.level
    return hstack([part.cells, csr_array(own)])
