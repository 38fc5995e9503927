"""Losses: functions of the scores of queries, with values, proven bounds and planes.

Three tables, `name: "module:object"`, loaded on use: the bounds of the regret, each one function of an `Argmax` (see
`margin.py`); the feature maps under which it is bounded, each a class of such (`Map`); and the losses that a
`LossRanker` trains, each a factory `(relevance, offsets) -> Loss`; one that `says` "gradient" has no planes and is
trained by `SmoothRanker`. Who makes the scores himself asks `ScoreLoss`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from formulations.registry import load, member
from rankopt.errors import OptionError

if TYPE_CHECKING:
    from rankopt.losses.loss import Loss
    from rankopt.losses.loss import LossAt as LossAt
    from rankopt.losses.margin import Bound
    from rankopt.losses.margin import MarginLoss as MarginLoss
    from rankopt.losses.oracle import Argmax as Argmax
    from rankopt.losses.oracle import ArgmaxResult as ArgmaxResult
    from rankopt.losses.oracle import Map as Map
    from rankopt.losses.oracle_positional import PositionalArgmax as PositionalArgmax
    from rankopt.losses.ordinal import OrdinalHinge as OrdinalHinge
    from rankopt.losses.position_weights import parse_decay as parse_decay
    from rankopt.losses.preferences import PreferenceHinge as PreferenceHinge
    from rankopt.losses.preferences import Preferences as Preferences
    from rankopt.losses.score_loss import ScoreLoss as ScoreLoss
    from rankopt.losses.squared import SquaredError as SquaredError
    from rankopt.measures.measure import Measure

BOUNDS = {
    "convex": "rankopt.losses.bounds:Convex",
    "tie-aware": "rankopt.losses.bounds:TieAware",
    "nonconvex": "rankopt.losses.bounds:Nonconvex",
}

MAPS = {
    "positional": "rankopt.losses.oracle_positional:PositionalArgmax",
    "pairwise": "rankopt.losses.oracle_relevance:PairwiseArgmax",
    "first-relevant": "rankopt.losses.oracle_relevance:FirstRelevantArgmax",
}

LOSSES = {
    "pairwise": "rankopt.losses.pairwise:PairwiseHinge",
    "ordinal": "rankopt.losses.ordinal:OrdinalHinge",
    "preferences": "rankopt.losses.preferences:PreferenceHinge",
    "smooth": "rankopt.losses.smooth:SmoothedRegret",
    "squared": "rankopt.losses.squared:SquaredError",
}

PARTS = {
    "Argmax": "rankopt.losses.oracle:Argmax",
    "ArgmaxResult": "rankopt.losses.oracle:ArgmaxResult",
    "Map": "rankopt.losses.oracle:Map",
    "LossAt": "rankopt.losses.loss:LossAt",
    "MarginLoss": "rankopt.losses.margin:MarginLoss",
    "OrdinalHinge": "rankopt.losses.ordinal:OrdinalHinge",
    "PreferenceHinge": "rankopt.losses.preferences:PreferenceHinge",
    "Preferences": "rankopt.losses.preferences:Preferences",
    "SquaredError": "rankopt.losses.squared:SquaredError",
    "PositionalArgmax": "rankopt.losses.oracle_positional:PositionalArgmax",
    "ScoreLoss": "rankopt.losses.score_loss:ScoreLoss",
    "parse_decay": "rankopt.losses.position_weights:parse_decay",
}
"""What a loss or a feature map of one's own is made of; and `ScoreLoss`, any bound at anybody's scores."""

__all__ = ["BOUNDS", "LOSSES", "MAPS", *PARTS, "bound_named", "loss_named", "map_named"]


def __getattr__(name: str) -> Any:
    return member(__name__, name, PARTS)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def bound_named(spec: str | Bound, **options: Any) -> Bound:
    """The bound of this name with its options, or the one that is given; raises `OptionError` naming the bounds."""
    if isinstance(spec, str):
        if spec not in BOUNDS:
            raise OptionError(f"bound {spec!r} is unknown; known are {', '.join(BOUNDS)}")
        bound: Bound = load(BOUNDS[spec])(**options)
        return bound
    if isinstance(spec, type) or not callable(spec) or not isinstance(getattr(spec, "convex", None), bool):
        raise OptionError(
            f"bound = {spec!r} is no bound; give a name of {', '.join(BOUNDS)}, or a function (argmax, scores) to a "
            "reference that says whether it is `convex`"
        )
    return spec


def map_named(spec: str | Map, measure: Measure | None = None) -> Map:
    """The feature map of this name, or the one that is given; raises `OptionError` naming the maps, and those that
    would do where this one cannot bound the regret of the measure."""
    found: Map = spec  # type: ignore[assignment]
    if isinstance(spec, str):
        if spec not in MAPS:
            raise OptionError(f"map {spec!r} is unknown; known are {', '.join(MAPS)}")
        found = load(MAPS[spec])
    if not all(callable(getattr(found, name, None)) for name in ("of", "takes")):
        raise OptionError(
            f"map = {spec!r} is no feature map; give a name of {', '.join(MAPS)}, or a class with `of` and `takes` as "
            "rankopt.losses.Map lists them"
        )
    if measure is not None and not found.takes(measure):
        others = [name for name, place in MAPS.items() if load(place).takes(measure)]
        cure = f"take map {' or '.join(map(repr, others))}" if others else "train another measure and evaluate with it"
        raise OptionError(
            f"map {_name_of(spec)} cannot bound the regret of {measure} because it is not of its form; {cure}"
        )
    return found


def _name_of(spec: Any) -> str:
    return repr(spec) if isinstance(spec, str) else getattr(spec, "__name__", type(spec).__name__)


def loss_named(spec: str | Callable[..., Loss]) -> Callable[..., Loss]:
    """The factory `(relevance, offsets) -> Loss` of this name, or the one that is given; raises `OptionError` naming
    the losses."""
    if isinstance(spec, str):
        if spec not in LOSSES:
            raise OptionError(f"loss {spec!r} is unknown; known are {', '.join(LOSSES)}")
        factory: Callable[..., Loss] = load(LOSSES[spec])
        return factory
    if not callable(spec):
        raise OptionError(
            f"loss = a {type(spec).__name__} is no factory of losses; give a name of {', '.join(LOSSES)}, "
            "or a function (relevance, offsets) to a loss, such as its class"
        )
    return spec
