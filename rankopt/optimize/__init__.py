"""Optimizers: one training loop, and the methods that take its steps, as a table name → class, loaded on use.
Also the exact line search of a measure, `LineSearch`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from formulations.registry import lazy, load, public_names
from rankopt.errors import OptionError
from rankopt.options import seed_from

if TYPE_CHECKING:
    from rankopt.optimize.bundle import Bundle as Bundle
    from rankopt.optimize.bundle import CuttingPlanes as CuttingPlanes
    from rankopt.optimize.concave_convex import Method
    from rankopt.optimize.frank_wolfe import BlockFrankWolfe as BlockFrankWolfe
    from rankopt.optimize.line_search import LineSearch as LineSearch
    from rankopt.optimize.subgradient import SteepestSubgradient as SteepestSubgradient
    from rankopt.optimize.subgradient import StochasticSubgradient as StochasticSubgradient

_NAMES = public_names(__name__)

__all__ = ["METHODS", "PENALTIES", "SEARCHES", "STATES", *_NAMES, "get_method"]

METHODS = {
    "block_frank_wolfe": "rankopt.optimize.frank_wolfe:BlockFrankWolfe",
    "bundle": "rankopt.optimize.bundle:Bundle",
    "cutting_planes": "rankopt.optimize.bundle:CuttingPlanes",
    "steepest_subgradient": "rankopt.optimize.subgradient:SteepestSubgradient",
    "stochastic_subgradient": "rankopt.optimize.subgradient:StochasticSubgradient",
}

PENALTIES = {
    "l1": "rankopt.optimize.objective:SparseObjective",
    "l2": "rankopt.optimize.objective:Objective",
}
"""The penalties by their usual names, λ‖w‖₁ and (λ/2)‖w - w₀‖², and the objective of each."""

SEARCHES = {"LineSearch": _NAMES["LineSearch"]}
"""What needs no planes: the measure itself along lines."""

STATES = {
    "AnnealingState": "rankopt.optimize.annealing:AnnealingState",
    "FrankWolfeState": "rankopt.optimize.frank_wolfe:FrankWolfeState",
    "PlaneSet": "rankopt.optimize.state:PlaneSet",
    "Standing": "rankopt.optimize.state:TrainingState",
    "State": "rankopt.optimize.state:State",
    "SteepestState": "rankopt.optimize.subgradient:SteepestState",
    "StochasticState": "rankopt.optimize.subgradient:StochasticState",
}
"""Dataclasses of the training state, `name: "module:object"`: what a checkpoint may contain. Their fields are arrays,
numbers, strings, mappings and such dataclasses; a random generator is stored as its `state`."""

__getattr__, __dir__ = lazy(__name__, _NAMES)


def get_method(spec: str | Method, random_state: Any = None) -> Method:
    """Return the method with this name and default settings, or `spec`; `random_state`, an integer >= 0 or a generator,
    is its seed if it is stochastic."""
    method: Any = spec
    if isinstance(spec, str):
        if spec not in METHODS:
            raise OptionError(f"method {spec!r} is unknown; known are {', '.join(METHODS)}")
        method = load(METHODS[spec])()
    elif isinstance(spec, type) or not all(callable(getattr(spec, name, None)) for name in ("start", "step")):
        raise OptionError(f"method = {spec!r} is no method; pass one of {', '.join(METHODS)}, or a method object")
    if random_state is None or not hasattr(method, "seed"):
        return cast("Method", method)
    return cast("Method", replace(method, seed=seed_from(random_state)))
