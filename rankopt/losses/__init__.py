"""Losses: functions of the scores of queries, with values, proven bounds and planes.

Two tables, `name: "module:object"`, loaded on use: the bounds of the regret, each one function of an `Argmax` (see
`margin.py`), and the losses that a `LossRanker` trains, each a factory `(relevance, offsets) -> Loss`. Who makes the
scores himself asks `ScoreLoss`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from formulations.tables import load, member
from rankopt.errors import OptionError

if TYPE_CHECKING:
    from rankopt.losses.argmax import Argmax as Argmax
    from rankopt.losses.argmax import Found as Found
    from rankopt.losses.argmax_positional import PositionalArgmax as PositionalArgmax
    from rankopt.losses.decay import parse_decay as parse_decay
    from rankopt.losses.loss import Loss
    from rankopt.losses.loss import LossAt as LossAt
    from rankopt.losses.margin import Bound
    from rankopt.losses.margin import MarginLoss as MarginLoss
    from rankopt.losses.rescaled import RescaledSlack as RescaledSlack
    from rankopt.losses.score_loss import ScoreLoss as ScoreLoss

BOUNDS = {
    "convex": "rankopt.losses.bounds.convex:Convex",
    "tie-aware": "rankopt.losses.bounds.tie_aware:TieAware",
    "nonconvex": "rankopt.losses.bounds.nonconvex:Nonconvex",
}

LOSSES = {
    "pairwise": "rankopt.losses.pairwise:PairwiseHinge",
    "rescaled": "rankopt.losses.rescaled:RescaledSlack",
}

PARTS = {
    "Argmax": "rankopt.losses.argmax:Argmax",
    "Found": "rankopt.losses.argmax:Found",
    "LossAt": "rankopt.losses.loss:LossAt",
    "MarginLoss": "rankopt.losses.margin:MarginLoss",
    "RescaledSlack": "rankopt.losses.rescaled:RescaledSlack",
    "PositionalArgmax": "rankopt.losses.argmax_positional:PositionalArgmax",
    "ScoreLoss": "rankopt.losses.score_loss:ScoreLoss",
    "parse_decay": "rankopt.losses.decay:parse_decay",
}
"""What a loss or a feature map of one's own is made of; and `ScoreLoss`, any bound at anybody's scores."""

__all__ = ["BOUNDS", "LOSSES", *PARTS, "bound_named", "loss_named"]


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
