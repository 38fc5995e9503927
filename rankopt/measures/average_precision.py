"""Area under the ROC curve (AUC) and average precision (AP).

AUC: the share of (relevant, other) pairs in the right order.

    AUC = Σ_j (n - π(j)) y_j / (n₊ n₋) - (n₊ - 1)/(2 n₋)          a_i = n - i

A relevant document at position i precedes n - i documents. Pairs of relevant documents contribute n₊(n₊ - 1)/2 in any
order.

AP: the mean, over all relevant documents, of the precision at their position.

    AP@k = (1/n₊) Σ_j [y_j = 1, π(j) <= k] (number of relevant documents at positions <= π(j)) / π(j)

AP is not an inner product of discount and gain; it is trained with a map of `rankopt.losses.FEATURE_MAPS`. Consider a
tie group of t documents, r of them relevant, after s positions with R relevant documents. Its position i is relevant
with probability r/t, and then (i - 1)(r - 1)/(t - 1) earlier positions of the group are relevant on average. The
expectation is Σ_i (r/t) (R + 1 + (i - 1)(r - 1)/(t - 1)) / (s + i).

Source of the closed form: McSherry and Najork, Computing information retrieval performance measures efficiently in the
presence of tied scores, 2008.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from formulations.arrays import Bools, Floats, Ints
from rankopt.measures.binary import Binary
from rankopt.measures.measure import PositionalMeasure
from rankopt.measures.tied_ranking import Ranking, position_in_query, query_of_row, totals

if TYPE_CHECKING:
    from formulations.problems.relevance_values import GainTable


@dataclass(frozen=True, repr=False)
class AreaUnderCurve(Binary, PositionalMeasure):
    """Share of correctly ordered pairs; undefined if all or no documents of a query are relevant."""

    name: ClassVar[str] = "AUC"
    takes_cutoff: ClassVar[bool] = False

    def discount(self, n: int) -> Floats:
        return np.arange(n - 1, -1, -1, dtype=np.float64)

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        relevant = self.relevant(relevance)
        positive, negative = self._classes(relevance, offsets)
        pairs = positive * negative
        share = np.divide(1.0, pairs, out=np.zeros_like(pairs), where=pairs > 0)
        return np.asarray(relevant * share[query_of_row(offsets)])

    def constant(self, relevance: Floats, offsets: Ints) -> Floats:
        positive, negative = self._classes(relevance, offsets)
        both = positive * negative > 0
        return np.divide(positive - 1, 2 * negative, out=np.zeros_like(positive), where=both)

    def defined(self, relevance: Floats, offsets: Ints) -> Bools:
        positive, negative = self._classes(relevance, offsets)
        return np.asarray(positive * negative > 0)

    def values(self, ranking: Ranking) -> Floats:
        """Documents that a run did not retrieve are tied after all retrieved ones."""
        return super().values(replace(ranking, pool=None))

    def gain_table(self, classes: Floats, relevance: Floats, offsets: Ints) -> GainTable:
        from formulations.problems.relevance_losses import auc_gains

        return auc_gains(classes, offsets)

    def _classes(self, relevance: Floats, offsets: Ints) -> tuple[Floats, Floats]:
        positive = totals(self.relevant(relevance), offsets)
        return positive, np.diff(offsets) - positive


AUC = AreaUnderCurve()


@dataclass(frozen=True, repr=False)
class AveragePrecision(Binary):
    """Mean precision at the relevant documents; undefined without relevant documents."""

    name: ClassVar[str] = "AP"
    has_gain_table: ClassVar[bool] = True
    sweep_kind: ClassVar[str] = "precision"

    defined = Binary.any_relevant

    def optimal_rankings(self, relevance: Floats, offsets: Ints) -> tuple[Floats, Floats]:
        """Relevant documents first, within the cutoff."""
        index = position_in_query(offsets)
        reach = np.minimum(np.diff(offsets), self.cutoff or np.inf)
        return self.relevant(relevance), np.maximum(np.repeat(reach, np.diff(offsets)) - index, 0.0)

    def gain_table(self, classes: Floats, relevance: Floats, offsets: Ints) -> GainTable:
        from formulations.problems.relevance_losses import ap_gains

        return ap_gains(classes, offsets, self.cutoff)

    def values(self, ranking: Ranking) -> Floats:
        relevant = self.relevant(ranking.relevance)
        counted = np.concatenate([[0.0], np.cumsum(relevant)])  # integers: exact
        hits, size = np.diff(counted[ranking.groups])[ranking.group], ranking.size[ranking.group]
        before = counted[ranking.groups[ranking.group]] - np.repeat(
            counted[ranking.offsets[:-1]], np.diff(ranking.offsets)
        )
        earlier = position_in_query(ranking.groups) * (hits - 1) / np.maximum(size - 1, 1)
        precision = hits / size * (before + 1 + earlier) / ranking.position
        counts = (hits > 0) & (ranking.position <= (self.cutoff or np.inf)) & ranking.retrieved
        found = totals(np.where(counts, precision, 0.0), ranking.offsets)
        return np.asarray(found / np.maximum(totals(relevant, ranking.offsets), 1))


AP = AveragePrecision()
