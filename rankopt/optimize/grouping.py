"""One plane a group of queries: between one plane for all and one for each.

R(w) = Σ_g R_g(w), R_g(w) = Σ_{q in g} v_q loss_q(w): the sum of the maxima of each group's planes is a closer model of
R than the maximum of the sums, so that fewer passes over the queries are needed (Birge and Louveaux 1988).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankopt.optimize.objective import Objective
from rankopt.risk.risk import Planes, Risk

__all__ = ["at_groups", "batches_of", "cuts", "groups_of", "one_each"]

Floats = NDArray[np.float64]

NUMBERS = 2**22
"""Slopes of one pass hold no more numbers than this: with many features there are fewer groups."""


def batches_of(risk: Risk, most: int) -> int:
    """How many groups the queries make, at most `most`."""
    return max(1, min(most, risk.weights.size, NUMBERS // risk.features))


def groups_of(objective: Objective, most: int) -> int:
    """How many groups the queries make, at most `most`; one where the solver of the master takes one alone."""
    groups = batches_of(objective.risk, most)
    return groups if groups == 1 or objective.takes_groups() else 1


def cuts(risk: Risk, groups: int) -> NDArray[np.int64]:
    """(groups + 1,) where the groups begin in the order of the risk, and where the last ends."""
    return np.arange(groups + 1) * risk.weights.size // groups


def at_groups(risk: Risk, w: Floats, groups: int) -> Planes:
    """The risk at w with a plane a group, of neighbours in the order of the risk, each with the weights of its queries.

    Where the slopes of all queries would take too much room, each group is asked for itself.
    """
    if groups == 1:
        return risk.at(w)
    weights, first = risk.weights, cuts(risk, groups)
    if weights.size * risk.features <= 4 * NUMBERS:
        there = risk.at(w, merged=False)
        sums = csr_array((weights, np.arange(weights.size), first), shape=(groups, weights.size))
        return _with(there, *(sums @ part for part in (there.heights, there.slopes, there.references, there.paid)))
    parts = [risk.at(w, queries=queries) for queries in pairwise(first.tolist())]
    return Planes(
        value=sum(part.value for part in parts),
        bound=sum(part.bound for part in parts),
        losses=np.concatenate([part.losses for part in parts]),
        heights=np.concatenate([part.heights for part in parts]),
        slopes=np.concatenate([part.slopes for part in parts]),
        references=np.concatenate([part.references for part in parts]),
        seconds=sum(part.seconds for part in parts),
        paid=np.concatenate([part.paid for part in parts]),
    )


def one_each(risk: Risk, w: Floats, queries: tuple[int, int] | None = None) -> Planes:
    """A plane for each query, with its weight; of the queries first <= q < last only, if `queries` says so."""
    there = risk.at(w, merged=False, queries=queries)
    weights = risk.weights[slice(*(queries or (None,)))]
    scaled = (weights * there.heights, weights[:, None] * there.slopes, weights[:, None] * there.references)
    return _with(replace(there, losses=weights * there.losses), *scaled, weights * there.paid)


def _with(there: Planes, heights: Floats, slopes: Floats, references: Floats, paid: Floats) -> Planes:
    return replace(there, heights=heights, slopes=slopes, references=references, paid=paid)
