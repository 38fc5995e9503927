"""Is every vertex whole? Asked of a problem, a set of rankings or a matrix; answered with evidence."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from formulations.errors import InvalidProblemError
from formulations.integrality.evidence import Proof, Undecided, Violator, Witness, broken_entry, witness
from formulations.integrality.prefix_limits import prefix_proof
from formulations.integrality.proofs import prove
from formulations.integrality.statement import stated
from formulations.integrality.violators import fractional_vertex, searched


def verify_integrality(
    problem: csr_array | ArrayLike | Any, *, seed: int = 0, max_effort: int = 1
) -> Proof | Witness | Undecided:
    """Whether the constraint matrix is totally unimodular: proof, witness, or neither.

    Then every vertex of {x : b <= Ax <= c, l <= x <= u} is whole for all whole limits b, c, l, u, and a simplex method
    solves the problem in integers whatever the objective. A witness says that this fails for some limits; where it has
    a `vertex`, it fails for the problem's own. Whether one optimum is whole is another question: `integrality_gap`.
    Of a problem with an objective there may be a proof where there is none of its matrix, of kind "prefix groups": this
    program has a whole optimum, for this objective.

    problem  a form, anything that has a linear `program`, or a matrix: rows of whole numbers, dense or sparse
    seed     of the search for witnesses; the same seed gives the same answer
    effort   how long to search for a witness where the quick proofs fail, in multiples of the usual

    Always decided: at most two entries a column, or a row; at most ten rows or columns. `check_evidence` checks the
    answer. Raises `InvalidProblemError` for what is no matrix of finite numbers, for limits of a problem that are not
    whole, and for a seed or an effort below 0; `InfeasibleError` for a set without a ranking, which has no vertices at
    all, naming constraints that cannot hold together (its matrix can still be asked about: `program.matrix`).

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
      no fractional vertex of the problem itself is known
    """
    asked: tuple[tuple[str, Any, int], ...] = (("seed", seed, 0), ("max_effort", max_effort, 0))
    for name, value, least in asked:
        if not isinstance(value, Integral) or value < least:
            raise InvalidProblemError(
                f"{name} = {value!r} cannot lead the search; give a whole number, {least} or more"
            )
    nonempty = getattr(problem, "check_nonempty", None)
    if callable(nonempty):
        nonempty()
    statement, rng = stated(problem), np.random.default_rng(seed)
    found: Violator | Proof | Undecided | None = broken_entry(statement)
    if found is None:
        statement.check_limits()
        quick = prove(statement.matrix)
        if not isinstance(quick, Proof):
            quick = prefix_proof(statement) or quick
        found = quick if isinstance(quick, Proof) else searched(statement, quick, rng, max_effort)
    if isinstance(found, Violator):
        return witness(statement, found, fractional_vertex(statement, found.columns, rng, max_effort))
    return found
