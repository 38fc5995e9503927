"""Losses: functions of the scores of queries, with values, proven bounds and cutting planes.

Three tables, `name: "module:object"`, are loaded on use. `BOUNDS`: bounds of the regret, each a function of a
`MaxOracle` (see `margin.py`). `FEATURE_MAPS`: the feature maps under which the regret is bounded (`JointFeatureMap`).
`LOSSES`: the losses that a `LossRanker` trains, each a factory `(relevance, offsets) -> Loss`; a factory with a
parameter `queries` gets the queries too, with their attributes (see `make_loss`). A loss with
`protocol = "gradient"` has no planes and is trained by `SmoothRanker`. Use `ScoreLoss` for scores of your own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from inspect import signature
from typing import TYPE_CHECKING, Any

from formulations.arrays import check_type
from formulations.registry import lazy, load, public_names
from rankopt.errors import OptionError
from rankopt.measures.measure import Measure

if TYPE_CHECKING:
    from rankopt.data.canonical_order import Arrangement
    from rankopt.losses.listwise import ApproxNDCG as ApproxNDCG
    from rankopt.losses.listwise import Deltr as Deltr
    from rankopt.losses.listwise import LambdaLoss as LambdaLoss
    from rankopt.losses.listwise import ListMLE as ListMLE
    from rankopt.losses.listwise import ListNet as ListNet
    from rankopt.losses.listwise import NeuralNDCG as NeuralNDCG
    from rankopt.losses.loss import Loss
    from rankopt.losses.loss import LossValue as LossValue
    from rankopt.losses.loss import SquaredError as SquaredError
    from rankopt.losses.margin import Bound
    from rankopt.losses.margin import MarginLoss as MarginLoss
    from rankopt.losses.oracle import ArgmaxResult as ArgmaxResult
    from rankopt.losses.oracle import JointFeatureMap as JointFeatureMap
    from rankopt.losses.oracle import MaxOracle as MaxOracle
    from rankopt.losses.oracle_positional import PositionalOracle as PositionalOracle
    from rankopt.losses.pairwise import OrdinalHinge as OrdinalHinge
    from rankopt.losses.position_weights import parse_position_weights as parse_position_weights
    from rankopt.losses.preferences import PreferenceHinge as PreferenceHinge
    from rankopt.losses.preferences import PreferencePairs as PreferencePairs
    from rankopt.losses.score_loss import ScoreLoss as ScoreLoss

BOUNDS = {
    "convex": "rankopt.losses.margin:Convex",
    "tie-aware": "rankopt.losses.margin:TieAware",
    "nonconvex": "rankopt.losses.margin:Nonconvex",
}

FEATURE_MAPS = {
    "positional": "rankopt.losses.oracle_positional:PositionalOracle",
    "pairwise": "rankopt.losses.oracle_relevance:PairwiseArgmax",
    "first-relevant": "rankopt.losses.oracle_relevance:FirstRelevantArgmax",
}

LOSSES = {
    "pairwise": "rankopt.losses.pairwise:PairwiseHinge",
    "ordinal": "rankopt.losses.pairwise:OrdinalHinge",
    "preferences": "rankopt.losses.preferences:PreferenceHinge",
    "smooth": "rankopt.losses.smooth:SmoothedRegret",
    "squared": "rankopt.losses.loss:SquaredError",
    "listnet": "rankopt.losses.listwise:ListNet",
    "listmle": "rankopt.losses.listwise:ListMLE",
    "lambdaloss": "rankopt.losses.listwise:LambdaLoss",
    "approx-ndcg": "rankopt.losses.listwise:ApproxNDCG",
    "neural-ndcg": "rankopt.losses.listwise:NeuralNDCG",
}

PARTS = public_names(__name__)
"""Building blocks of custom losses and feature maps; and `ScoreLoss`, any bound at arbitrary scores."""

__all__ = ["BOUNDS", "LOSSES", "FEATURE_MAPS", *PARTS, "get_bound", "get_loss", "get_feature_map"]

__getattr__, __dir__ = lazy(__name__, PARTS)


def get_bound(spec: str | Bound, **options: Any) -> Bound:
    """Return the bound with this name and these options, or `spec` itself; OptionError lists the known bounds."""
    if isinstance(spec, str):
        if spec not in BOUNDS:
            raise OptionError(f"bound {spec!r} is unknown; known are {', '.join(BOUNDS)}")
        bound: Bound = load(BOUNDS[spec])(**options)
        return bound
    if isinstance(spec, type) or not callable(spec) or not isinstance(getattr(spec, "convex", None), bool):
        raise OptionError(
            f"bound must be one of {', '.join(BOUNDS)}, or a function (argmax, scores) -> reference with a boolean "
            f"attribute `convex`; got {spec!r}"
        )
    return spec


def get_feature_map(spec: str | JointFeatureMap, measure: Measure | None = None) -> JointFeatureMap:
    """Return the feature map with this name, or `spec` itself. OptionError lists the known maps, and those that can
    bound the regret of `measure` if this one cannot."""
    found: JointFeatureMap = spec  # type: ignore[assignment]
    if isinstance(spec, str):
        if spec not in FEATURE_MAPS:
            raise OptionError(f"feature_map {spec!r} is unknown; known are {', '.join(FEATURE_MAPS)}")
        found = load(FEATURE_MAPS[spec])
    if not all(callable(getattr(found, name, None)) for name in ("from_queries", "supports")):
        raise OptionError(
            f"feature_map = {spec!r} is no feature map; pass one of {', '.join(FEATURE_MAPS)}, or a class with the "
            "methods `from_queries` and `supports` of rankopt.losses.JointFeatureMap"
        )
    check_type("measure", measure, Measure, type(None), error=OptionError)
    if measure is not None and not found.supports(measure):
        others = [name for name, path in FEATURE_MAPS.items() if load(path).supports(measure)]
        name = repr(spec) if isinstance(spec, str) else getattr(spec, "__name__", type(spec).__name__)
        cure = (
            f"use feature_map {' or '.join(map(repr, others))}"
            if others
            else "train another measure and evaluate with it"
        )
        raise OptionError(
            f"feature_map {name} cannot bound the regret of {measure} because the measure does not have the "
            f"required form; {cure}"
        )
    return found


def sees_queries(spec: str | Callable[..., Loss]) -> bool:
    """Whether this is a factory with a parameter `queries`."""
    try:
        return callable(spec) and "queries" in signature(spec).parameters
    except ValueError:  # a builtin without a signature
        return False


def make_loss(factory: Callable[..., Loss], queries: Arrangement) -> Loss:
    """The loss that a factory makes of these queries. A parameter `queries` gets them: `attributes`, `features[rows]`
    and `input_order` (the caller's row) of the documents, `query_ids` and `weights`. The documents of a query are then
    in the caller's order, else in one that the caller's does not change."""
    more = {"queries": queries} if sees_queries(factory) else {}
    try:
        return factory(queries.graded, queries.offsets, **more)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise  # from inside the factory
        raise OptionError(f"loss = {factory!r:.80} is no function (relevance, offsets): {error}") from error


def get_loss(spec: str | Callable[..., Loss]) -> Callable[..., Loss]:
    """Return the factory `(relevance, offsets) -> Loss` with this name, or `spec`; OptionError lists the losses."""
    if isinstance(spec, str):
        if spec not in LOSSES:
            bare = {re.sub("[^a-z]", "", name): name for name in LOSSES}
            near = get_close_matches(re.sub("[^a-z]", "", spec.lower()), bare, n=1, cutoff=0.8)
            hint = f"did you mean {bare[near[0]]!r}? Known" if near else "known"
            raise OptionError(f"loss {spec!r} is unknown; {hint} are {', '.join(LOSSES)}")
        factory: Callable[..., Loss] = load(LOSSES[spec])
        return factory
    if not callable(spec):
        raise OptionError(
            f"loss = a {type(spec).__name__} is no factory of losses; pass one of {', '.join(LOSSES)}, "
            "or a function (relevance, offsets) -> loss, such as a loss class"
        )
    return spec
