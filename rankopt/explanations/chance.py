"""How sure an order is: the chance that noise of the scores leaves it, in closed form.

    s_x + ε_x > s_y + ε_y,  ε independent, normal, deviation σ        with chance Φ((s_x - s_y) / (σ √2))

>>> round(chance_in_order(1.0, noise=1.0), 4)
0.7602
>>> round(noise_at(1.0, chance=0.7602), 3)
1.0
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from rankopt.errors import OptionError

__all__ = ["chance_in_order", "noise_at"]


def chance_in_order(lead: Any, noise: float) -> Any:
    """The chance that a document which leads by `lead` (a number or an array, in units of the score) still does when
    each score gets independent normal noise of deviation `noise`; 1/2 where both score the same.

    Without noise the order stays: 1 for a lead above 0, 0 below. Raises OptionError for a noise below 0.
    """
    if not 0.0 <= noise < np.inf:
        raise OptionError(f"noise = {noise} is no deviation of scores; give a finite number, 0 or more")
    lead = np.asarray(lead, dtype=np.float64)
    # Divided before it is compared: a lead of 1e-300 under noise of 1e-300 is no certainty.
    spread = np.sqrt(2.0) * noise
    found = ndtr(lead / spread) if spread > 0.0 else 0.5 * (1.0 + np.sign(lead))
    return float(found) if found.ndim == 0 else found


def noise_at(lead: float, chance: float) -> float:
    """The deviation of the scores' noise at which a lead stays in order with this chance: lead / (√2 Φ⁻¹(chance)).

    Raises OptionError for a chance that is not between 1/2 and 1: no noise makes a lead less likely than a coin.
    """
    if not 0.5 < chance < 1.0:
        raise OptionError(f"chance = {chance} is not between 1/2 and 1; give 0.9, say")
    return abs(float(lead)) / float(np.sqrt(2.0) * ndtri(chance))
