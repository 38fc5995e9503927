"""Words of sets over attributes that are several rules at once: shares, ranges, distances, who may stand at a place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from formulations.errors import InvalidProblem
from formulations.sets.share_words import rounded_share
from rankopt.errors import OptionError

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Spoken"]


class Spoken:
    """What `Admissible` says beside the words that are one rule each. Each method returns a new one."""

    k: int

    def _with(self, word: str, count: Any, by: Any, documents: Any, positions: Any, name: Any, **more: Any) -> Self:
        raise NotImplementedError(f"{type(self).__name__} adds no rules of its own; state them by Admissible(k)")

    def between(
        self,
        low: int,
        high: int,
        *,
        by: str | None = None,
        documents: str | Mapping[str, Any] | None = None,
        positions: Iterable[int] | int | None = None,
        name: str | None = None,
    ) -> Self:
        """From `low` to `high` of these documents at these positions; with `by`, of the documents of each label."""
        if not low <= high:
            raise OptionError(f"between {low} and {high} lies nothing; give the smaller number first")
        where = None if positions is None else tuple(positions) if isinstance(positions, Iterable) else (positions,)
        least = self._with("at least", low, by, documents, where, name)
        return least._with("at most", high, by, documents, where, name)

    def at_most_share(
        self,
        share: float,
        *,
        by: str | None = None,
        documents: str | Mapping[str, Any] | None = None,
        prefixes: Iterable[int] | None = None,
        rounding: str = "up",
        name: str | None = None,
    ) -> Self:
        """Of the first p positions, for each p of `prefixes` (all by default), at most this share, rounded, is of these
        documents; with `by`, of each label."""
        return self._shares("at most", share, by, documents, prefixes, rounding, name)

    def at_least_share(
        self,
        share: float,
        *,
        by: str | None = None,
        documents: str | Mapping[str, Any] | None = None,
        prefixes: Iterable[int] | None = None,
        rounding: str = "down",
        name: str | None = None,
    ) -> Self:
        """Of the first p positions, for each p of `prefixes` (all by default) that the query has, at least this share,
        rounded, is of these documents; with `by`, of each label that the query has."""
        return self._shares("at least", share, by, documents, prefixes, rounding, name)

    def _shares(
        self, word: str, share: Any, by: Any, documents: Any, prefixes: Any, rounding: str, name: str | None
    ) -> Self:
        said = self
        for length in range(1, self.k + 1) if prefixes is None else sorted(set(prefixes)):
            if not 1 <= length <= self.k:
                raise OptionError(f"prefixes name {length}, but are lengths from 1 to k = {self.k}")
            try:
                count = rounded_share(share, length, rounding)
            except InvalidProblem as error:
                raise OptionError(str(error)) from None
            if 0 < count < length or (count == 0) == (word == "at most"):
                title = None if name is None else f"{name}, first {length}"
                said = said._with(word, count, by, documents, range(length), title, entire=True)
        return said

    def _share(
        self, word: str, count: Any, share: Any, by: Any, documents: Any, positions: Any, name: str | None
    ) -> Self:
        """`at_most(share=...)`, `at_least(share=...)`: at every prefix, rounded to the looser side."""
        if count is not None or positions is not None:
            raise OptionError("a share is of the first p positions, for every p: it has no count and no positions")
        rounding = "up" if word == "at most" else "down"
        return self._shares(word, share, by, documents, None, rounding, name)

    def apart(
        self,
        distance: int,
        *,
        by: str | None = None,
        documents: str | Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> Self:
        """Two of these documents (with `by`, two of one label) stand `distance` positions apart at least."""
        if isinstance(distance, bool) or not isinstance(distance, int) or distance < 2:
            raise OptionError(f"distance = {distance!r} keeps nothing apart; give 2 or more: 2 keeps neighbours apart")
        said, width = self, min(distance, self.k)
        for start in range(self.k - width + 1):
            title = None if name is None else f"{name}, from {start}"
            said = said._with("at most", 1, by, documents, range(start, start + width), title)
        return said

    def one_of(self, documents: str | Mapping[str, Any], *, position: int = 0, name: str | None = None) -> Self:
        """One of these documents stands at this position."""
        return self._with("at least", 1, None, documents, (position,), name)

    def if_then(
        self,
        documents: str | Mapping[str, Any],
        then: str | Mapping[str, Any],
        *,
        positions: Iterable[int] | int | None = None,
        name: str | None = None,
    ) -> Self:
        """Where one of these documents stands at these positions, one of those that `then` chooses does."""
        return self._with("if then", 0, None, documents, positions, name, then=then)
