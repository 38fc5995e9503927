"""A run of an alternation as what a checkpoint may hold, and back, with whatever no run ever does refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from rankopt.collaborative.alternation import AlternationHistory, AlternationResult
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.problem import ModelState
from rankopt.collaborative.regularization import RegularizationChoice
from rankopt.optimize.certificate import Stop

NUMBERS = ("value", "users", "items")
DUALS = ("slopes", "heights")
ARRAYS = ("users", "items", "offsets", "user_offsets")


def as_data(at: AlternationResult, before: AlternationResult | None = None) -> dict[str, Any]:
    """The last standing, the best one where that is another, and all rounds; and those of the part before, whose
    factors are fewer, where there is one."""
    kept = {
        "now": _plain(at.now),
        "best": None if at.best is at.now else _plain(at.best),
        "judged": float(at.judged),
        "history": dict(vars(AlternationHistory.of(at.steps))),
        "spent": float(at.spent),
        "begun": int(at.begun),
    }
    return kept if before is None else {**kept, "before": {**as_data(before), "stop": str(before.stop)}}


def chosen_of(run: Mapping[str, Any]) -> RegularizationChoice | None:
    """The strength that the run chose, if it did."""
    chosen = run.get("chosen")
    return chosen if isinstance(chosen, RegularizationChoice) and chosen.strength in chosen.tried else None


def run_of(
    run: Mapping[str, Any], blocks: Any, factors: int | None
) -> tuple[AlternationResult, AlternationResult | None] | None:
    """What was kept, and the part before; None, or one of AttributeError, LookupError, TypeError and ValueError, for
    what is damaged."""
    at = _part_of(run, blocks, factors)
    if at is None or "before" not in run:
        return None if at is None else (at, None)
    before = _part_of(run["before"], blocks, factors)
    if factors is not None or before is None or len(before.steps) - 1 != at.begun:
        return None
    return at, replace(before, stop=Stop(run["before"]["stop"]))


def _part_of(run: Mapping[str, Any], blocks: Any, factors: int | None) -> AlternationResult | None:
    now = _standing(run["now"], blocks, factors)
    best = now if run["best"] is None else _standing(run["best"], blocks, factors)
    history, spent = AlternationHistory(**run["history"]), float(run["spent"])
    steps = tuple(history[i] for i in range(len(history)))
    begun = int(run["begun"])
    if not 0 <= begun < len(steps) or not 0 <= spent < np.inf or steps[-1].primal != now.value:
        return None
    return AlternationResult(best, float(run["judged"]), now, steps, None, spent, begun)


def _plain(one: ModelState) -> dict[str, Any]:
    arrays = {name: getattr(one.factors, name) for name in ARRAYS}
    plain = {"factors": arrays, **{name: getattr(one, name) for name in (*NUMBERS, *DUALS)}}
    plain["of_items"] = None if one.of_items is None else list(one.of_items)
    plain["planes"] = None if one.planes is None else [dict(vars(part)) for part in one.planes]
    return {**plain, "by_planes": one.by_planes}


def _standing(kept: Mapping[str, Any], blocks: Any, factors: int | None) -> ModelState:
    rated = blocks.problem.rated
    n, m = rated.n_users, rated.n_items
    factors = int(np.shape(kept["factors"]["users"])[1]) if factors is None else factors
    shapes = {
        "users": (n, factors), "items": (m, factors), "offsets": (m,), "user_offsets": (n,),
        "slopes": (rated.values.size,), "heights": (n,),
    }  # fmt: skip
    if not kept["slopes"].size:  # the factors determine them
        shapes["slopes"] = shapes["heights"] = (0,)
    for name, shape in shapes.items():
        array = (kept["factors"] if name in ARRAYS else kept)[name]
        if not isinstance(array, np.ndarray) or array.dtype != np.float64 or array.shape != shape:
            raise ValueError(f"{name} of a standing has another shape")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} of a standing is not finite")
    of_items = None if kept["of_items"] is None else tuple(kept["of_items"])
    if of_items is not None and [np.shape(one) for one in of_items] != [shapes["slopes"], shapes["heights"]]:
        raise ValueError("the items' dual state of a standing has another shape")
    planes = None if kept["planes"] is None else blocks.planes_of(kept["planes"])
    by_planes = kept["by_planes"] is True
    if by_planes and planes is None:
        raise ValueError("the items' dual state of a standing is that of planes, of which there are none")
    numbers = {name: float(kept[name]) for name in NUMBERS}
    found = ModelState(
        Factors(**{name: np.ascontiguousarray(kept["factors"][name]) for name in ARRAYS}),
        slopes=kept["slopes"], heights=kept["heights"], of_items=of_items, planes=planes,
        by_planes=by_planes, **numbers,
    )  # fmt: skip
    measured = blocks.value(found.factors)
    if not abs(measured - found.value) <= 1e-9 * abs(measured):
        raise ValueError(f"a standing says that J is {found.value!r} where it is {measured!r}")
    return found
