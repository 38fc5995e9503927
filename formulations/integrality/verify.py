"""Test the integrality of a problem, a set of rankings or a matrix, with evidence."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from formulations.arrays import as_integer, generator
from formulations.integrality.evidence import Proof, Undecided, Violator, Witness, broken_entry, witness
from formulations.integrality.prefix_limits import prefix_proof
from formulations.integrality.proofs import prove
from formulations.integrality.statement import stated
from formulations.integrality.violators import fractional_vertex, search_violator


def verify_integrality(
    problem: csr_array | ArrayLike | Any, *, seed: int = 0, max_effort: int = 1
) -> Proof | Witness | Undecided:
    """Test total unimodularity of the constraint matrix: a proof, a witness, or neither.

    A proof means that every vertex of {x : b <= Ax <= c, l <= x <= u} is integral for all integral b, c, l, u; a
    simplex method then finds integral optima for every objective. A witness means that this fails for some limits; with
    a `vertex`, it fails for the problem's own limits. A problem with an objective may have a proof of kind "prefix
    groups" without total unimodularity: its program has an integral optimum for this objective. For the integrality of
    one optimum use `integrality_gap`.

    problem     a problem, anything with a linear `program`, a model that `as_problem` reads, or a matrix of integers,
                dense or sparse
    seed        of the search for witnesses; results are reproducible
    max_effort  length of the search after the quick proofs fail, as a multiple of the default

    Always decided: at most two entries per column, or per row; at most ten rows or columns; blocks of at most 5,000
    entries, by Seymour's decomposition. `check_evidence` checks the answer. Raises `InvalidProblemError` for anything
    but a matrix of finite numbers, for fractional limits, and for a negative seed or effort; `InfeasibleError` for an
    empty set, naming conflicting constraints (pass `program.matrix` to test the matrix of an empty set).

    At most one document of each site in two positions; then at most one of each of three overlapping groups:

    >>> import numpy as np
    >>> position = [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    >>> site = [[1, 1, 0, 1, 1, 0], [0, 0, 1, 0, 0, 1]]
    >>> print(verify_integrality(np.array(position + site)))
    Proof: 4 × 6 matrix is totally unimodular (bipartite)
    >>> groups = [[1, 1, 0, 1, 1, 0], [0, 1, 1, 0, 1, 1], [1, 0, 1, 1, 0, 1]]
    >>> print(verify_integrality(np.array(position + groups)))
    Witness: not totally unimodular; this 3 × 3 part has determinant -2, and every smaller square part of it has
    determinant -1, 0 or 1
      row 0 | 1 1 .
      row 2 | 1 . 1
      row 3 | . 1 1
      columns: column 0, column 2, column 4
      no fractional vertex was found
    """
    seed, max_effort = as_integer("seed", seed), as_integer("max_effort", max_effort)
    nonempty = getattr(problem, "check_nonempty", None)
    if callable(nonempty):
        nonempty()
    statement, rng = stated(problem), generator("seed", seed)
    found: Violator | Proof | Undecided | None = broken_entry(statement)
    if found is None:
        statement.check_limits()
        quick = prove(statement.matrix)
        if not isinstance(quick, Proof):
            quick = prefix_proof(statement) or quick
        found = quick if isinstance(quick, Proof) else search_violator(statement, quick, rng, max_effort)
    if isinstance(found, Violator):
        return witness(statement, found, fractional_vertex(statement, found.columns, rng, max_effort))
    return found
