"""What is proved of a standing: the gaps of both blocks, and where the loss allows it a bound of the whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.bounds.global_bound import GlobalBound, global_bound
from rankopt.collaborative.certificate import FactorCertificate
from rankopt.collaborative.problem import ModelState
from rankopt.optimize.certificate import Stop

__all__ = ["certificate_of", "whole_bound"]

Floats = NDArray[np.float64]


def certificate_of(blocks: Any, now: ModelState, stop: Stop, whole: bool = True) -> FactorCertificate:
    """Of the blocks, and of the whole if that is wanted and the loss is convex and never below 0."""
    if not (whole and blocks.proves_whole):
        kind = "blocks" if blocks.convex else "blocks of the majorant"
        return FactorCertificate(kind, now.value, now.users, now.items, stop)
    found = whole_bound(blocks, now)
    singular = found.singular
    return FactorCertificate(
        "global", now.value, now.users, now.items, stop, found.value, singular.bound, singular.proof
    )


def whole_bound(blocks: Any, now: ModelState) -> GlobalBound:
    """The best bound that the dual states of a standing give."""
    now = blocks.whole(now)
    states = [(now.slopes, now.heights)] if now.of_items is None else [(now.slopes, now.heights), now.of_items]
    return max((_bound(blocks, *state) for state in states), key=lambda found: found.value)


def _bound(blocks: Any, slopes: Floats, heights: Floats) -> GlobalBound:
    problem, curvature = blocks.problem, blocks.curvature(slopes)
    return global_bound(
        problem.rated.table(slopes),
        float(heights.sum()) + 0.5 * curvature,
        problem.prior,
        problem.of_users,
        problem.of_items,
        problem.of_offsets if problem.of_offsets.size else np.inf,
        problem.of_user_offsets if problem.of_user_offsets.size else None,
        curvature=curvature,
    )
