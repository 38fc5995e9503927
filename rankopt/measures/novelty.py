"""Novelty: what a document adds to those above it, by the subtopics that it is about.

    α-nDCG@k = (1/best) Σ_{i <= k} (1/log2(i + 1)) Σ_s [document i is relevant and about s] (1 - α)^{c_s}
    StRecall@k = (subtopics of relevant documents at positions <= k) / (subtopics of relevant documents)

c_s counts the relevant documents about s above position i. Subtopics are the values of an attribute of the documents,
named by `by`: one value each (None for none), or a set, list or tuple of several. best is the value of the order that
takes the largest gain next, as is usual: the best order where documents have one subtopic each; where they have
several, better ones may exist.

In a tie group the mean of (1 - α)^{c_s} over the documents that stand on its first i places is that of products over
all subsets of i documents (`subset_means`), so that place i adds the difference of two such, exactly.

Source: Clarke et al., Novelty and diversity in information retrieval evaluation, 2008; Zhai, Cohen and Lafferty, Beyond
independent relevance, 2003.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rankopt.errors import MeasureError
from rankopt.measures.binary import Binary
from rankopt.measures.segments import Floats, Ints
from rankopt.measures.tied_ranking import Ranking
from rankopt.measures.user_models import subset_means


@dataclass(frozen=True, repr=False)
class BySubtopic(Binary):
    """A measure of the subtopics of relevant documents; not defined where nothing is relevant."""

    by: str | None = field(default=None, metadata={"option": "by"})

    if TYPE_CHECKING:  # the options as keywords

        def __call__(self, *, by: str | None = ..., rel: float | None = ...) -> Self: ...  # type: ignore[override]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (self.by is None or (isinstance(self.by, str) and self.by)):
            raise MeasureError(f"{self.name} cannot have by={self.by!r}; name an attribute of the documents.")

    @property
    def attributes(self) -> tuple[str, ...]:
        """The one that says the subtopics. MeasureError where none is named."""
        if self.by is None:
            raise MeasureError(f"{self.name} needs subtopics; write {self.name}(by='site'), an attribute of documents.")
        return (self.by,)

    def defined(self, relevance: Floats, offsets: Ints) -> NDArray[np.bool_]:
        return self.any_relevant(relevance, offsets)

    def subtopics(self, ranking: Ranking) -> Iterator[tuple[int, int, NDArray[np.bool_]]]:
        """Of every query the first row, the row behind the last, and which relevant documents (n, S) are about what."""
        (by,) = self.attributes
        if by not in ranking.attributes:
            raise MeasureError(
                f"{self} cannot be valued because the documents have no attribute {by!r}; give it to the Queries: "
                "attributes={...}, or read_attributes."
            )
        values, relevant = ranking.attributes[by], self.relevant(ranking.relevance)
        for start, stop in pairwise(ranking.offsets.tolist()):
            about = [_topics(values[row]) if relevant[row] else () for row in range(start, stop)]
            number: dict[Hashable, int] = {}
            for topics in about:
                for topic in topics:
                    number.setdefault(topic, len(number))
            member = np.zeros((stop - start, len(number)), dtype=np.bool_)
            for row, topics in enumerate(about):
                member[row, [number[topic] for topic in topics]] = True
            yield start, stop, member

    def added(self, ranking: Ranking, start: int, member: NDArray[np.bool_], keep: float) -> Floats:
        """What each place (n,) adds on average: Σ_s of keep^{c_s} where its document is about s, keep = 1 - α."""
        n, gained = len(member), np.zeros(len(member))
        passed = np.ones(member.shape[1])  # keep^{c_s}, before the group
        first = int(np.searchsorted(ranking.groups, start))
        row = 0
        while row < n:
            size = int(ranking.size[first])
            inside = member[row : row + size]
            factors = np.where(inside, keep, 1.0).T  # (S, size)
            means = subset_means(factors) if size > 1 else np.column_stack([np.ones(len(factors)), factors])
            gained[row : row + size] = passed @ -np.diff(means, axis=1) / (1 - keep)
            passed *= means[:, -1]
            row, first = row + size, first + 1
        return gained


@dataclass(frozen=True, repr=False)
class AlphaNormalizedGain(BySubtopic):
    """Discounted cumulative gain of subtopics, each worth less the oftener it came, over its best."""

    name: ClassVar[str] = "alpha_nDCG"
    alpha: float = field(default=0.5, metadata={"option": "alpha"})

    if TYPE_CHECKING:  # the options as keywords

        def __call__(self, *, alpha: float = ..., by: str | None = ..., rel: float | None = ...) -> Self: ...  # type: ignore[override]

    def __post_init__(self) -> None:
        super().__post_init__()
        try:
            alpha = float(self.alpha)
        except (TypeError, ValueError):
            alpha = np.nan
        if not 0 < alpha <= 1:
            raise MeasureError(f"alpha_nDCG cannot have alpha={self.alpha!r}; give a number above 0, at most 1.")
        object.__setattr__(self, "alpha", alpha)

    def values(self, ranking: Ranking) -> Floats:
        found = np.zeros(len(ranking.offsets) - 1)
        retrieved = np.broadcast_to(ranking.retrieved, ranking.relevance.shape)
        for query, (start, stop, member) in enumerate(self.subtopics(ranking)):
            k = min(self.cutoff or stop - start, stop - start)
            discount = 1 / np.log2(np.arange(2, k + 2))
            best = float(discount @ _greedy(member, 1 - self.alpha, k))
            gained = self.added(ranking, start, member, 1 - self.alpha) * retrieved[start:stop]
            found[query] = float(discount @ gained[:k]) / best if best else 0.0
        return found


@dataclass(frozen=True, repr=False)
class SubtopicRecall(BySubtopic):
    """The share of the subtopics of relevant documents that the first k positions are about."""

    name: ClassVar[str] = "StRecall"

    def values(self, ranking: Ranking) -> Floats:
        found = np.zeros(len(ranking.offsets) - 1)
        retrieved = np.broadcast_to(ranking.retrieved, ranking.relevance.shape)
        for query, (start, stop, member) in enumerate(self.subtopics(ranking)):
            k = min(self.cutoff or stop - start, stop - start)
            gained = self.added(ranking, start, member, 0.0) * retrieved[start:stop]
            found[query] = float(gained[:k].sum()) / max(member.shape[1], 1)
        return found


def _topics(value: Any) -> tuple[Hashable, ...]:
    """The subtopics that an attribute says."""
    if isinstance(value, set | frozenset | list | tuple):
        return tuple(value)
    return () if value is None else (value,)


def _greedy(member: NDArray[np.bool_], keep: float, k: int) -> Floats:
    """(k,) the gains of the order that takes a document of the largest gain next."""
    worth, left, gains = np.ones(member.shape[1]), member.astype(np.float64), np.zeros(k)
    for place in range(min(k, int(member.any(axis=1).sum()))):
        sums = left @ worth
        row = int(np.argmax(sums))
        gains[place] = sums[row]
        worth[member[row]] *= keep
        left[row] = 0.0
    return gains


alpha_nDCG = AlphaNormalizedGain()
StRecall = SubtopicRecall()
