"""What quotas cost: how much lower the scores of the lists are, and how much more varied the lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from rankopt.collaborative.lists.recommendation import Recommendations
from rankopt.constraints.admissible import Admissible
from rankopt.errors import DataError


class SupportsRecommend(Protocol):
    def recommend(self, users: Any = None, k: int = 10, *, admissible: Admissible | None = None) -> Recommendations: ...


@dataclass(frozen=True)
class QuotaPrice:
    """limit: at most so many of each label, None for no quota. score: Σ_i c_i s_π(i) / Σ_i c_i, c_i = 1/log2(i + 1),
    the mean over users; labels: how many different ones a list has; seconds: the median of a list, slowest: that of
    the user who took longest, named."""

    limit: int | None
    score: float
    labels: float
    seconds: float
    slowest: tuple[Any, float]


def quota_prices(
    ranker: SupportsRecommend, labels: dict[Any, tuple[Any, ...]], by: str, users: Sequence[Any], k: int = 10,
    limits: Sequence[int] = (5, 3, 2, 1),
) -> list[QuotaPrice]:  # fmt: skip
    """The lists of these users freely and with at most so many items of each label. labels: those of each item. A limit
    that leaves a list short cuts it, and then its weighted mean is over the items that are left."""
    if not len(users):
        raise DataError("a quota has no price because there are no users; give some")
    found = []
    for limit in (None, *limits):
        rules = None if limit is None else Admissible(k, short="cut").at_most(limit, by=by)
        lists = ranker.recommend(users, k, admissible=rules)
        weights = 1.0 / np.log2(np.arange(2.0, k + 2.0))
        scores, varied = [], []
        for u, (_, items) in enumerate(lists):
            own = lists.scores[lists.bounds[u] : lists.bounds[u + 1]]
            scores.append(float(np.average(own, weights=weights[: own.size])) if own.size else np.nan)
            varied.append(len({label for item in items for label in labels.get(item) or ()}))
        found.append(
            QuotaPrice(
                limit, float(np.nanmean(scores)), float(np.mean(varied)), float(np.median(lists.seconds)), lists.slowest
            )
        )
    return found
