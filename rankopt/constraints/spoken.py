"""Words of sets over attributes beside counts: shares, ranges, distances, who may stand where, what calls for what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.errors import InvalidProblem
from formulations.sets.given import Rounding
from formulations.sets.share_words import rounded_share
from rankopt.errors import OptionError

if TYPE_CHECKING:
    from typing import Self

    from rankopt.constraints.rule import Rule

__all__ = ["AttributeConstraintsMixin"]


class AttributeConstraintsMixin:
    """What `Admissible` says beside the words that are one rule each. Each method returns a new one."""

    k: int
    rules: tuple[Rule, ...]

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
        try:
            if not low <= high:
                raise OptionError(f"between {low} and {high} lies nothing; give the smaller number first")
        except TypeError:
            raise OptionError(f"between {low!r} and {high!r} lies nothing that counts; give two numbers") from None
        where = None if positions is None else tuple(positions) if isinstance(positions, Iterable) else (positions,)
        least = self._with("at least", low, by, documents, where, name)
        return least._with("at most", high, by, documents, where, name)

    def at_most_share(
        self,
        share: float | Mapping[Any, float],
        *,
        by: str | None = None,
        documents: str | Mapping[str, Any] | None = None,
        prefixes: Iterable[int] | int | None = None,
        rounding: Rounding = "up",
        name: str | None = None,
    ) -> Self:
        """Of the first p positions, for each p of `prefixes` (all by default), at most this share, rounded, is of these
        documents; with `by`, of each label (share may be a mapping from label to share)."""
        return self._shares("at most", share, by, documents, prefixes, rounding, name)

    def at_least_share(
        self,
        share: float | Mapping[Any, float],
        *,
        by: str | None = None,
        documents: str | Mapping[str, Any] | None = None,
        prefixes: Iterable[int] | int | None = None,
        rounding: Rounding = "down",
        name: str | None = None,
    ) -> Self:
        """Of the first p positions, for each p of `prefixes` (all by default) that the query has, at least this share,
        rounded, is of these documents; with `by`, of each label that the query has."""
        return self._shares("at least", share, by, documents, prefixes, rounding, name)

    def _shares(
        self, word: str, share: Any, by: Any, documents: Any, prefixes: Any, rounding: str, name: str | None
    ) -> Self:
        if isinstance(share, Mapping) and by is None:
            raise OptionError("share maps labels to shares; say by= which attribute the labels are of")
        said = self
        for length in self._lengths(prefixes):
            title = None if name is None else f"{name}, first {length}"
            try:
                count: Any = (
                    {label: rounded_share(one, length, rounding) for label, one in share.items()}
                    if isinstance(share, Mapping)
                    else rounded_share(share, length, rounding)
                )
            except InvalidProblem as error:
                raise OptionError(str(error)) from None
            if isinstance(count, dict):
                count = {label: one for label, one in count.items() if _tells(word, one, length)}
            if count if isinstance(count, dict) else _tells(word, count, length):
                said = said._with(word, count, by, documents, range(length), title, entire=True)
        return said

    def _lengths(self, prefixes: Any) -> list[int]:
        if prefixes is None:
            return list(range(1, self.k + 1))
        given = list(prefixes) if isinstance(prefixes, Iterable) and not isinstance(prefixes, str) else [prefixes]
        for length in given:
            if isinstance(length, bool) or not isinstance(length, int | np.integer) or not 1 <= length <= self.k:
                raise OptionError(f"prefixes name {length!r}, but are lengths from 1 to k = {self.k}")
        return sorted({int(length) for length in given})

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
        if isinstance(distance, bool) or not isinstance(distance, int | np.integer) or distance < 2:
            raise OptionError(f"distance = {distance!r} keeps nothing apart; give 2 or more: 2 keeps neighbours apart")
        said, width = self, min(int(distance), self.k)
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

    def before(
        self, documents: str | Mapping[str, Any], then: str | Mapping[str, Any], *, name: str | None = None
    ) -> Self:
        """Where one of those that `then` chooses stands, one of these documents stands earlier. A document that both
        choose counts for the first alone; where a query has none of the first, none of the second is shown."""
        return self._with("before", 0, None, documents, None, name, then=then)

    def chain(self, choices: Sequence[str | Mapping[str, Any]], *, name: str | None = None) -> Self:
        """Each choice of documents `before` the next: where one of a choice stands, one of the choice before it stands
        earlier."""
        if not isinstance(choices, list | tuple) or len(choices) < 2:
            raise OptionError(f"chain = {choices!r} needs a list of two choices of documents at least, in their order")
        said = self
        for first, second in pairwise(choices):
            said = said.before(first, second, name=name)
        made = [rule.documents for rule in said.rules[-len(choices) + 1 :]] + [said.rules[-1].then]
        if len(set(made)) < len(made):
            raise OptionError(f"chain = {choices!r} names a choice twice; its documents cannot stand before themselves")
        return said


def _tells(word: str, count: int, length: int) -> bool:
    """Whether so many of so many first documents at most, or at least, rules a ranking out."""
    return count < length if word == "at most" else count > 0
