"""Grades that name slots: what each document is worth in each of them."""

import numbers
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.forms.assignment import Assignment
from formulations.solvers import accepting, named
from formulations.solvers.solver import Solver, suits
from rankopt.data.arrangement import Arrangement
from rankopt.data.queries import Queries
from rankopt.errors import DataError, OptionError
from rankopt.losses.argmax_slots import EMPTY
from rankopt.rankers.options import as_numbers

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def slot_weights(slots: Any, slot_weight: Any, queries: Queries | Arrangement) -> Floats:
    """(k,) what a right document earns in each slot. k is `slots`, else the length of slot_weight, else the largest
    grade. Raises OptionError where they contradict each other."""
    if slots is not None and (isinstance(slots, bool) or not isinstance(slots, numbers.Integral) or slots < 1):
        raise OptionError(f"slots = {slots!r} is no number of slots; give a whole number, 1 or more, or None")
    if slot_weight is None:
        largest = float(np.max(queries.relevance)) if slots is None and queries.relevance is not None else 1.0
        return np.ones(int(slots) if slots is not None else max(int(largest), 1))
    weights = as_numbers("slot_weight", slot_weight)
    if weights.ndim != 1 or not weights.size or not (np.isfinite(weights) & (weights > 0)).all():
        raise OptionError("slot_weight must hold a positive finite number for each slot; leave out slots worth nothing")
    if slots is not None and weights.size != slots:
        raise OptionError(f"slot_weight has {weights.size} entries but slots = {slots}; give one a slot")
    return weights


def benefit(queries: Queries | Arrangement, weights: Floats) -> Floats:
    """(N, k) the slot's weight where the document belongs there, else 0; DataError for a grade that is no slot."""
    grades = queries.relevance
    if grades is None:
        raise DataError("slots cannot be learnt because the queries carry no relevance; give y, each document's slot")
    wrong = (grades != np.floor(grades)) | (grades > weights.size)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"Query {queries.query_ids[queries.query_of(row)]!r} has the grade {grades[row]:g}, which names no slot: "
            f"they count from 1 to {weights.size}, and 0 belongs nowhere; mend y, or give slots="
        )
    return np.asarray((grades[:, None] == np.arange(1, weights.size + 1)) * weights)


def reached(queries: Queries, worth: Floats, placed: list[Ints]) -> Floats:
    """(m,) which part of the best benefit these matchings reach; NaN where no document belongs anywhere."""
    found = np.empty(len(queries))
    for q, (low, high) in enumerate(pairwise(queries.offsets.tolist())):
        filled = np.flatnonzero(placed[q] != EMPTY)
        best = worth[low:high].max(axis=0).sum()
        found[q] = worth[low + placed[q][filled], filled].sum() / best if best > 0 else np.nan
    return found


def matching_solver(argmax: Any) -> Solver | str:
    """The solver of the matchings; OptionError for one that cannot match."""
    if isinstance(argmax, str) and argmax == "auto":
        return "auto"
    solver = named(argmax) if isinstance(argmax, str) else argmax
    if not isinstance(solver, Solver) or not suits(solver, Assignment):
        raise OptionError(f"argmax = {argmax!r} cannot match; use 'auto' or one of {', '.join(accepting(Assignment))}")
    return solver
