"""Whether the options of a ranker that climbs a measure can work."""

from __future__ import annotations

import math
from typing import Any, get_args

from rankopt.ascent import COMBINATIONS, ORDERS
from rankopt.ascent.directions import check_directions
from rankopt.errors import OptionError
from rankopt.measures.notation import parse
from rankopt.optimize.line_search import Point
from rankopt.rankers.direct_starts import check_start
from rankopt.rankers.options import check_options, number

__all__ = ["check_direct", "seed_of"]

SEEDS = 2**31
"""A seed is below this."""


def check_direct(**options: Any) -> None:
    """Raise OptionError for a value that cannot work."""
    lam = number(options["lam"])
    if not 0 <= lam < math.inf:
        raise OptionError(f"lam = {options['lam']!r} is no strength of a pull; give a finite number, 0 or more")
    check_options(**{**options, "lam": 1.0, "C": None})
    parse(options["measure"])
    for name, known in (("order", ORDERS), ("combine", COMBINATIONS), ("point", get_args(Point))):
        if options[name] not in known:
            raise OptionError(f"{name} = {options[name]!r} is unknown; known are {', '.join(known)}")
    window = number(options["window"])
    if not 0 < window < math.inf:
        raise OptionError(
            f"window = {options['window']!r} cannot be; give the part of the scores' deviation, such as 0.2"
        )
    restarts = number(options["restarts"])
    if not (restarts >= 1 and restarts.is_integer() and restarts < SEEDS):
        raise OptionError(f"restarts = {options['restarts']!r} is no number of paths; give a whole number, 1 or more")
    check_directions(options["directions"])
    check_start(options["start"])
    seed_of(options["random_state"], drawn=False)


def seed_of(random_state: Any, drawn: bool = True) -> int:
    """The seed: 0 for None; a generator draws it, if it is to be `drawn`."""
    draw = getattr(random_state, "integers", getattr(random_state, "randint", None))  # of a generator, new or old
    if draw is not None:
        return int(draw(SEEDS - 1)) if drawn else 0
    seed = 0.0 if random_state is None else number(random_state)
    if not (0 <= seed < 2**63 and seed.is_integer()):
        raise OptionError(f"random_state = {random_state!r} is no seed; give a whole number of 0 or more, or None")
    return int(seed)
