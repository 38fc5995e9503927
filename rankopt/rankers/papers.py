"""The rankers of the literature by the names that it gives them, each a `LargeMarginRanker` with settings.

    svm("auc")      AUC over pairs, which is the mean hinge of all pairs [Joachims 2005; paper 4, SVMauc]
    svm("map")      AP over pairs [Yue et al. 2007; paper 4, SVMmap]
    svm("mrr")      RR over the first relevant document [paper 4, SVMmrr]
    svm("ndcg")     nDCG@10 over pairs [paper 4, SVMndcg]
    svm("ndcg-nc")  nDCG of the full list over pairs, "no clip", of documents that are relevant or not [SVMndcg-nc]
    svm("dorm")     nDCG@10 over positions, decay 1 / sqrt(position) to 30 [ORM; paper 4, DORM]
    svm("combo")    AP, nDCG@10 and RR over pairs, a slack for each [paper 4, SVMcombo]

All take the convex bound and start from w = 0, as the papers do.

>>> svm("map")
LargeMarginRanker(bound='convex', feature_map='pairwise', measure='AP')
"""
# mypy: allow-subclassing-any

from __future__ import annotations

from typing import Any

from rankopt.errors import OptionError
from rankopt.rankers.large_margin import LargeMarginRanker

PAPERS: dict[str, dict[str, str]] = {
    "auc": {"measure": "AUC", "feature_map": "pairwise"},
    "map": {"measure": "AP", "feature_map": "pairwise"},
    "mrr": {"measure": "RR", "feature_map": "first-relevant"},
    "ndcg": {"measure": "nDCG@10", "feature_map": "pairwise"},
    "ndcg-nc": {"measure": "nDCG(gain='binary')", "feature_map": "pairwise"},
    "dorm": {"measure": "nDCG@10", "position_weights": "power(0.5)@30"},
    "combo": {"measure": "AP + nDCG@10 + RR", "feature_map": "pairwise"},
}
"""Settings of each name, in addition to the convex bound."""


def svm(name: str, **options: Any) -> LargeMarginRanker:
    """Return the ranker of this name with these options; OptionError for an unknown name."""
    if name not in PAPERS:
        raise OptionError(f"no ranker of the papers is called {name!r}; known are {', '.join(PAPERS)}")
    return LargeMarginRanker(**{"bound": "convex", **PAPERS[name], **options})
