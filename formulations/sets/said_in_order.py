"""The words of a ranking set that speak of order, of distances and of shares, as methods with their own keywords."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from formulations.given import Whole
from formulations.sets.given import Labels, Prefixes, Rounding, Shares, Some

if TYPE_CHECKING:
    from typing import Self

__all__ = ["OrderConstraintsMixin"]


class OrderConstraintsMixin:
    """What `RankingSet` says beside counts. Each method returns a new set."""

    def say(self, word: str, value: Any, **given: Any) -> Self:
        raise NotImplementedError(f"{type(self).__name__} says no words of its own; make a set by RankingSet(n, k)")

    def before(self, x: Some, y: Some, *, name: str | None = None) -> Self:
        """Wherever document y stands, x stands earlier: Σ_{i <= p} π[i, y] <= Σ_{i < p} π[i, x] at every p. Of sets (by
        mask, indices or a range): where one of y stands, one of x stands earlier. A document of both counts for x
        alone; an empty x bans y, an empty y says nothing."""
        return self.say("before", (x, y), name=name)

    def chain(self, documents: Sequence[Some] | NDArray[Any], *, name: str | None = None) -> Self:
        """Wherever a document of the list stands, all those before it in the list stand earlier. Of sets: where one of
        a set stands, one of the set before it in the list does earlier."""
        return self.say("chain", documents, name=name)

    def apart(
        self, distance: Whole, *, documents: Some | None = None, by: Labels | None = None, name: str | None = None
    ) -> Self:
        """Two of these documents (with `by`, two of one label) stand `distance` positions apart at least."""
        return self.say("apart", distance, documents=documents, by=by, name=name)

    def if_then(self, a: Some, b: Some, *, positions: Some | None = None, name: str | None = None) -> Self:
        """Where one of the documents a stands at these positions, one of the documents b does."""
        return self.say("if_then", (a, b), positions=positions, name=name)

    def one_of(self, documents: Some, *, position: Whole = 0, name: str | None = None) -> Self:
        """One of these documents stands at this position."""
        return self.say("one_of", documents, position=position, name=name)

    def at_most_share(
        self,
        share: Shares,
        *,
        documents: Some | None = None,
        by: Labels | None = None,
        prefixes: Prefixes | None = None,
        rounding: Rounding = "up",
        name: str | None = None,
    ) -> Self:
        """Of the first p positions, for each p of `prefixes` (all by default), at most this share, rounded ("up",
        "down", "nearest"), is of these documents; with `by`, of each label (share may map labels to shares)."""
        return self._shared("at_most_share", share, documents, by, prefixes, rounding, name)

    def at_least_share(
        self,
        share: Shares,
        *,
        documents: Some | None = None,
        by: Labels | None = None,
        prefixes: Prefixes | None = None,
        rounding: Rounding = "down",
        name: str | None = None,
    ) -> Self:
        """Of the first p positions, for each p of `prefixes` (all by default), at least this share, rounded ("up",
        "down", "nearest"), is of these documents; with `by`, of each label (share may map labels to shares)."""
        return self._shared("at_least_share", share, documents, by, prefixes, rounding, name)

    def _shared(
        self, word: str, share: Any, documents: Any, by: Any, prefixes: Any, rounding: str, name: str | None
    ) -> Self:
        return self.say(word, share, documents=documents, by=by, prefixes=prefixes, rounding=rounding, name=name)
