"""Where training of slots starts from, by name: W₀ (k, d) as a function of the training queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankopt.optimize.least_squares import least_squares
from rankopt.rankers.regression import row_weights
from rankopt.rankers.slots import benefit, slot_weights

if TYPE_CHECKING:
    from rankopt.data.arrangement import Arrangement

__all__ = ["regression"]

Floats = NDArray[np.float64]


def regression(ranker: Any, queries: Arrangement) -> Floats:
    """Least squares on belonging in the slot."""
    belongs = benefit(queries, slot_weights(ranker.slots, ranker.slot_weight, queries)) > 0
    weights, targets = row_weights(queries), belongs.T.astype(np.float64)
    return np.stack([least_squares(queries.features, own, weights, 0.0, queries.rows) for own in targets])
