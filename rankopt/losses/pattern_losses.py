"""Measures as `formulations.patterns` says them: functions of the pattern of grades in a ranking."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import OptionError
from rankopt.losses.criterion import Criterion
from rankopt.measures.auc import AreaUnderCurve
from rankopt.measures.average_precision import AveragePrecision
from rankopt.measures.expected_reciprocal_rank import ExpectedReciprocalRank
from rankopt.measures.measure import Measure
from rankopt.measures.positional import Positional
from rankopt.measures.reciprocal_rank import ReciprocalRank
from rankopt.measures.winner_takes_all import WinnerTakesAll

if TYPE_CHECKING:
    from formulations.patterns import PatternLoss

__all__ = ["has_pattern", "pattern_loss_of"]

Floats = NDArray[np.float64]


def has_pattern(measure: Measure) -> bool:
    """Whether it is a function of the pattern of grades that `pattern_loss_of` knows."""
    return isinstance(measure, Positional | AveragePrecision | ReciprocalRank | ExpectedReciprocalRank)


def pattern_loss_of(criterion: Criterion) -> tuple[Floats, PatternLoss]:
    """The grades (N,) as the measure tells them apart, and the loss of their pattern."""
    from formulations.patterns import AP, AUC, ERR, RR, Discounted

    measure, binary = criterion.measure, (criterion.kind > 0).astype(np.float64)
    if isinstance(measure, AreaUnderCurve):
        return binary, AUC()
    if isinstance(measure, AveragePrecision):
        return binary, AP(measure.cutoff)
    if isinstance(measure, ReciprocalRank):
        return binary, RR(measure.cutoff)
    if isinstance(measure, WinnerTakesAll):
        return binary, RR(1)
    if isinstance(measure, ExpectedReciprocalRank):
        return criterion.relevance, ERR(measure.cutoff, measure.max_grade)
    if isinstance(measure, Positional):
        gain = measure.gain(criterion.relevance, criterion.offsets)
        return criterion.kind.astype(np.float64), Discounted(measure.discount, gain)
    raise OptionError(f"{measure} is no function of the pattern of grades that could be trained; evaluate with it")
