"""Measures that only ask whether a document is relevant: y_j in {0, 1}.

Option `rel`: the least grade that counts as relevant. Left out, every grade above 0 does.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import MeasureError
from rankopt.measures.measure import Measure
from rankopt.measures.segments import Floats, Ints, totals


@dataclass(frozen=True, repr=False)
class Binary(Measure):
    """A measure of relevant and other documents."""

    rel: float | None = field(default=None, metadata={"option": "rel"})

    if TYPE_CHECKING:  # the options as keywords

        def __call__(self, *, rel: float | None = ...) -> Self: ...  # type: ignore[override]

    def __post_init__(self) -> None:
        if self.rel is None:
            return
        try:
            least = float(self.rel)
        except (TypeError, ValueError):
            least = np.nan
        if not np.isfinite(least):
            raise MeasureError(f"{self.name} cannot have rel={self.rel!r}; give the least grade that is relevant.")
        object.__setattr__(self, "rel", least)

    def relevant(self, relevance: Floats) -> Floats:
        """1 for relevant documents, 0 for others (N,)."""
        marked = relevance > 0 if self.rel is None else relevance >= self.rel
        return marked.astype(np.float64)

    def any_relevant(self, relevance: Floats, offsets: Ints) -> NDArray[np.bool_]:
        """Which queries (m,) have a relevant document."""
        return np.asarray(totals(self.relevant(relevance), offsets) > 0)
