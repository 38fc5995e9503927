"""Marginal rankings: how likely each document stands at each position, when exposure must be shared fairly.

sets         positions i < k, documents j < n, groups of documents
variables    P[i, j], the probability that document j stands at position i
             level[c] in [0, 1], where constraint c keeps groups together: what all of them get
maximise     Σ profit[i, j] P[i, j]
subject to   position             each position holds one document: a row of P sums to 1
             document             each document stands at one position at most: a column sums to <= 1, to 1 if k = n
             a row for each group of `DemographicParity`, `DisparateTreatment`, `DisparateImpact`, `ExposureBounds`
integrality  not integral, and none is asked for: P is a lottery over rankings, and exposure holds on average over it.
             `birkhoff_decomposition` draws up the lottery. Position and document rows alone have integral vertices
             (Birkhoff, von Neumann); at a vertex, r further rows that bind (one less for each level) make r + 1
             rankings at most.

The exposure of document j is Σ_i attention[i] P[i, j]. Source: A. Singh and T. Joachims, Fairness of Exposure in
Rankings, KDD 2018; for the utility of its section 3.2 let profit be the outer product of attention and relevance.

>>> from formulations import DemographicParity, birkhoff_decomposition, solve
>>> attention, relevance = np.array([1.0, 0.6, 0.5]), np.array([0.9, 0.8, 0.7])
>>> fair = DemographicParity(["a", "a", "b"])
>>> solution = solve(marginal_ranking(np.outer(attention, relevance), exposure=attention, constraints=fair), "highs")
>>> attention @ solution.primal["P"]
array([0.9, 0.5, 0.7])
>>> print(birkhoff_decomposition(solution.primal["P"]))
2 rankings of 3 documents at 3 positions
0.75  0 2 1
0.25  2 0 1
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, eye_array, hstack, kron, vstack

from formulations.arrays import Floats, finite
from formulations.errors import InfeasibleError, InvalidProblemError
from formulations.marginals.exposure import Constraint, ExposureRows
from formulations.problems.linear_program import LinearProgram
from formulations.problems.program import Block

if TYPE_CHECKING:
    from scipy.optimize import LinearConstraint


def marginal_ranking(
    profit: ArrayLike,
    *,
    exposure: ArrayLike | None = None,
    constraints: Constraint | LinearConstraint | Iterable[Constraint | LinearConstraint] = (),
) -> LinearProgram:
    """The best marginal ranking; `solution.primal["P"]` is its (k, n) matrix.

    Args:
        profit: (k, n), a row a position, a column a document; the unit is the caller's.
        exposure: (k,) not negative: what a position gives to the document that stands there. 1 / log2(2 + i) by
            default, the discount of nDCG.
        constraints: one or several of `ExposureBounds`, `DemographicParity`, `DisparateTreatment`, `DisparateImpact` of
            formulations, or `scipy.optimize.LinearConstraint(A, lb, ub)` with A (m, k·n) for rows of your own over P in
            C order: lb <= A P.ravel() <= ub. Two of a kind may be given; the second one's rows are called "exposure 2"
            and so on.

    Raises:
        InvalidProblemError: a number is NaN or infinite, shapes do not fit, a group is unknown or has no merit.
        Infeasible: k > n, or the exposure asked for exceeds what positions can give to these groups; names them.
            Conflicts between several constraints are found by the solver.
    """
    worth = finite("profit", profit, 2)
    k, n = worth.shape
    if k == 0 or n == 0:
        raise InvalidProblemError(f"profit has shape {worth.shape}: needs one position and one document at least")
    if k > n:
        raise InfeasibleError(
            f"{k} positions cannot be filled by {n} documents, one each; cut the problem to {n} positions"
        )
    given = finite("exposure", 1.0 / np.log2(np.arange(2.0, k + 2)) if exposure is None else exposure, 1)
    if given.size != k or not (given >= 0).all() or not given.any():
        raise InvalidProblemError(
            f"exposure needs {k} numbers, one a position, none negative and not all 0; got {given}"
        )
    several = list(constraints) if isinstance(constraints, Iterable) else [constraints]
    added = _distinct([_stated(constraint, given, n) for constraint in several])
    levels = [part.label for part in added if part.level is not None]
    once = np.ones(n)
    parts = [
        ExposureRows("position", (k,), csr_array(kron(eye_array(k), np.ones((1, n)))), np.ones(k), np.ones(k)),
        ExposureRows(
            "document",
            (n,),
            csr_array(kron(np.ones((1, k)), eye_array(n))),
            once if k == n else np.full(n, -np.inf),
            once,
        ),
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


def _stated(constraint: Any, attention: Floats, documents: int) -> ExposureRows:
    """The rows of one constraint."""
    from scipy.optimize import LinearConstraint

    if isinstance(constraint, LinearConstraint):
        matrix = csr_array(constraint.A)
        count, size = matrix.shape
        if size != attention.size * documents:
            raise InvalidProblemError(
                f"A of a LinearConstraint has {size} columns, but P has {attention.size} × {documents} cells; "
                "give one column a cell, in the order of P.ravel()"
            )
        low, high = (np.broadcast_to(np.asarray(limit, float), (count,)) for limit in (constraint.lb, constraint.ub))
        return ExposureRows("row", (count,), matrix, low, high)
    if not hasattr(constraint, "rows"):
        raise InvalidProblemError(
            f"a {type(constraint).__name__} is no constraint; use ExposureLimits, DemographicParity, "
            "DisparateTreatment or DisparateImpact of formulations, or scipy.optimize.LinearConstraint"
        )
    rows: ExposureRows = constraint.rows(attention, documents)
    return rows


def _distinct(parts: list[ExposureRows]) -> list[ExposureRows]:
    """The same rows, the second block of a label called "label 2", and so on."""
    seen: Counter[str] = Counter()
    for place, part in enumerate(parts):
        seen[part.label] += 1
        if seen[part.label] > 1:
            parts[place] = replace(part, label=f"{part.label} {seen[part.label]}")
    return parts


def _with_level(part: ExposureRows, levels: list[str]) -> Any:
    """The rows over the cells of P and all levels."""
    own = np.zeros((part.lower.size, len(levels)))
    if part.level is not None:
        own[:, levels.index(part.label)] = part.level
    return hstack([part.cells, csr_array(own)])
