"""A set of admissible rankings, stated one constraint at a time.

>>> site = ["a.org", "a.org", "b.org", "c.org"]
>>> admissible = RankingSet(4, 3).at_most(1, by=site, name="site").before(3, 2)
>>> print(admissible)
RankingSet: 3 of 4 documents, site (3 rows), before (2 rows)
>>> admissible.broken([0, 1, 3])
{"site['a.org']": 1.0}
>>> admissible.admits([0, 3, 2])
True

The words of a ranking set that speak of order, of distances and of shares, as methods with their own keywords.

What a set of rankings says softly: constraints that a ranking may break at a price.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import count as counting
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulations.arrays import Bools, Floats, Ints, frozen
from formulations.constraints.conflict import emptiness, room
from formulations.constraints.constraint import (
    Constraint,
    Count,
    Labels,
    Prefixes,
    Rounding,
    Shares,
    Some,
    broken,
    whole_number,
)
from formulations.constraints.from_cvxpy import read_constraints, shape_of
from formulations.constraints.kinds import WORDS
from formulations.constraints.repair import Repair, repaired
from formulations.constraints.rows import SetRows, widened
from formulations.constraints.soft import Soft, cell_prices, charge_of, priced, valid_price
from formulations.display import CompactReprMixin
from formulations.errors import Infeasible, InvalidProblem
from formulations.problems.assignment import is_order
from formulations.problems.linear_program import LinearProgram
from formulations.typing import NonTextSequence, Sparse, SupportsArray, Whole

if TYPE_CHECKING:
    from typing import Self


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


class SoftConstraintsMixin:
    """The part of a `RankingSet` that speaks of prices. softened: the constraints that may be broken; they exclude no
    ranking."""

    documents: int
    positions: int
    constraints: tuple[Constraint, ...]
    softened: tuple[Soft, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """k positions and n documents."""
        return self.positions, self.documents

    def _rows(self) -> SetRows:
        raise NotImplementedError(f"{type(self).__name__} says no rows of its own; make one by RankingSet(n, k)")

    def _placed(self, order: ArrayLike) -> Ints:
        raise NotImplementedError(f"{type(self).__name__} reads no rankings; make one by RankingSet(n, k)")

    def soft(self, constraint: str, *, price: float) -> Self:
        """The set with the constraint of this name no longer required: a ranking may break it, at `price` a unit, off
        the value of a problem over the set. A unit is one of what a row counts, or one forbidden cell that is held.

        Raises InvalidProblem for a name that no constraint has, and a price that is no number from 0 to 1e150.
        """
        cost = valid_price(price, constraint)
        every = {held.name: held for held in (*self.constraints, *(one.constraint for one in self.softened))}
        if not isinstance(constraint, str) or constraint not in every:
            known = ", ".join(map(repr, every)) or "none"
            raise InvalidProblem(f"no constraint is named {constraint!r}, so none can be soft; there are {known}")
        hard = tuple(held for held in self.constraints if held.name != constraint)
        others = tuple(one for one in self.softened if one.name != constraint)
        return replace(self, constraints=hard, softened=(*others, Soft(every[constraint], cost)))  # type: ignore[type-var]

    @cached_property
    def required(self) -> Self:
        """The set without its soft constraints."""
        return replace(self, softened=()) if self.softened else self  # type: ignore[type-var]

    @cached_property
    def priced(self) -> SetRows:
        """The rows of the set and behind them those of its soft constraints, with their prices."""
        return priced(self._rows(), self.softened)

    @cached_property
    def cell_prices(self) -> Floats:
        """(k, n) what a cell costs that soft bans and pins forbid."""
        return cell_prices(self.softened, self.shape)

    def charge(self, order: ArrayLike) -> float:
        """What a ranking (the document at each position) pays for the soft constraints that it breaks."""
        return charge_of(self.softened, self._placed(order), self.documents)

    def repaired(self, prices: float | Mapping[str, float] = 1.0) -> Repair:
        """A ranking that breaks as little as can be, each constraint at its price a unit, and a bound that proves it.

        prices: one for all constraints, or a mapping from name to price; those that it lacks must hold, soft ones at
        the price they have. Raises InvalidProblem for a name that no constraint has, Infeasible where what must hold
        cannot.
        """
        return repaired(self.shape, self.constraints, self.softened, prices)


LARGEST = 1 << 28
"""Most cells of a set: each holds a variable."""


@dataclass(frozen=True, eq=False)
class RankingSet(OrderConstraintsMixin, SoftConstraintsMixin, CompactReprMixin):
    """Rankings π in {0, 1}^(k × n) of k of n documents: each position holds one document, each document stands at one
    position at most, and every constraint holds. Immutable: each method returns a new set.

    documents=, positions= take a mask, indices or a range; None means all. by= takes one label a document (a tuple for
    several, None for none) and makes one row a label. name= is what duals, conflicts and witnesses call the rows.
    softened: constraints that may be broken at a price, `soft`; they exclude no ranking.

    Raises InvalidProblem for what names no cell or count, Infeasible for k > n. Whether the set is empty is found out
    when a problem is stated over it, or by `check_nonempty`.
    """

    documents: int
    positions: int
    constraints: tuple[Constraint, ...] = ()
    softened: tuple[Soft, ...] = ()

    def __post_init__(self) -> None:
        for name in ("documents", "positions"):
            size = whole_number(name, getattr(self, name))
            if size == 0:
                raise InvalidProblem(f"{name} = 0 leaves nothing to rank; give 1 or more")
            object.__setattr__(self, name, size)
        if self.positions * self.documents > LARGEST:
            raise InvalidProblem(
                f"{self.positions} positions × {self.documents} documents are more than {LARGEST} cells; rank fewer "
                "documents, the best by score, say"
            )
        if self.positions > self.documents:
            raise Infeasible(
                f"{self.positions} positions cannot be filled by {self.documents} documents, one each; "
                f"lower k to {self.documents}"
            )

    def say(self, word: str, value: Any, **given: Any) -> Self:
        """The set with a constraint of this word of the language (`formulations.constraints.kinds.WORDS`)."""
        if word not in WORDS:
            raise InvalidProblem(f"a set cannot say {word!r}; it says one of {', '.join(WORDS)}")
        return self._with(WORDS[word](self.shape, value, **given))

    if not TYPE_CHECKING:  # a checker that saw it would take any misspelt word

        def __getattr__(self, word: str) -> Callable[..., RankingSet]:
            """A word that has no method, one that was added to `WORDS`."""
            if word not in WORDS:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {word!r}")
            return partial(self.say, word)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *WORDS})

    def at_most(
        self,
        count: Count | None = None,
        *,
        share: Shares | None = None,
        documents: Some | None = None,
        positions: Some | None = None,
        by: Labels | None = None,
        name: str | None = None,
    ) -> RankingSet:
        """At most `count` of these documents at these positions; with `by`, of the documents of each label.

        count: a whole number; with `by` also a mapping from label to number (labels that it lacks are free).
        share: in place of a count, of the first p positions for every p, rounded up (`at_most_share` takes prefixes
            and rounding).
        """
        if share is not None:
            return self._share("at_most_share", count, share, documents, positions, by, name)
        return self.say("at_most", count, documents=documents, positions=positions, by=by, name=name)

    def at_least(
        self,
        count: Count | None = None,
        *,
        share: Shares | None = None,
        documents: Some | None = None,
        positions: Some | None = None,
        by: Labels | None = None,
        name: str | None = None,
    ) -> RankingSet:
        """At least `count` of these documents at these positions; with `by`, of the documents of each label.

        With a mapping also of a label that no document carries, and then the set is empty. share: as of `at_most`,
        rounded down.
        """
        if share is not None:
            return self._share("at_least_share", count, share, documents, positions, by, name)
        return self.say("at_least", count, documents=documents, positions=positions, by=by, name=name)

    def exactly(
        self,
        count: Count,
        *,
        documents: Some | None = None,
        positions: Some | None = None,
        by: Labels | None = None,
        name: str | None = None,
    ) -> RankingSet:
        """Exactly `count` of these documents at these positions; with `by`, of the documents of each label."""
        return self.say("exactly", count, documents=documents, positions=positions, by=by, name=name)

    def _share(
        self, word: str, count: Any, share: Any, documents: Any, positions: Any, by: Any, name: str | None
    ) -> RankingSet:
        if count is not None or positions is not None:
            raise InvalidProblem(
                f"a share is of the first p positions, for every p, and has no count and no positions; {word}(share, "
                "prefixes=...) takes some of them"
            )
        return self.say(word, share, documents=documents, by=by, name=name)

    def between(
        self,
        low: Whole,
        high: Whole,
        *,
        documents: Some | None = None,
        positions: Some | None = None,
        by: Labels | None = None,
        name: str | None = None,
    ) -> RankingSet:
        """From `low` to `high` of these documents at these positions; with `by`, of the documents of each label."""
        return self.say("between", low, high=high, documents=documents, positions=positions, by=by, name=name)

    def pin(self, document: Whole, position: Whole, *, name: str | None = None) -> RankingSet:
        """This document stands at this position."""
        return self.say("pin", document, position=position, name=name)

    def ban(
        self, documents: Some | None = None, positions: Some | None = None, *, name: str | None = None
    ) -> RankingSet:
        """None of these documents stands at any of these positions."""
        return self.say("ban", documents, positions=positions, name=name)

    def rows(
        self,
        matrix: SupportsArray | Sparse | Sequence[float] | Sequence[Sequence[float]],
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        *,
        name: str | None = None,
        labels: NonTextSequence[Hashable] | Iterator[Hashable] | None = None,
    ) -> RankingSet:
        """lower <= matrix π <= upper, the columns of `matrix` (r, k n) being the cells in C order."""
        return self.say("rows", matrix, lower=lower, upper=upper, labels=labels, name=name)

    @classmethod
    def from_cvxpy(cls, variable: Any, constraints: Iterable[Any]) -> RankingSet:
        """The set that affine cvxpy constraints on `variable`, a `cvxpy.Variable((k, n))`, state.

        Constraints are named by their `set_label`. The rows that every set has (positions, documents, 0 <= π <= 1) may
        be among them, and soft(constraint, price=...). Raises InvalidProblem naming a constraint that is not affine
        or has other variables.
        """
        k, n = shape_of(variable)
        found = cls(n, k)
        for constraint in read_constraints(variable, constraints):
            found = found._with(constraint)
        return found

    def __and__(self, other: RankingSet) -> RankingSet:
        """The rankings in both sets."""
        if not isinstance(other, RankingSet):
            return NotImplemented
        if (self.documents, self.positions) != (other.documents, other.positions):
            raise InvalidProblem(
                f"sets of {self.positions} of {self.documents} and of {other.positions} of {other.documents} documents "
                "have no rankings in common; state both for the same k and n"
            )
        both = self
        others: tuple[Constraint | Soft, ...] = (*other.constraints, *other.softened)
        for constraint in others:
            both = both._with(constraint)
        return both

    @cached_property
    def allowed(self) -> Bools:
        """(k, n) which cells no pin or ban forbids."""
        allowed = np.ones((self.positions, self.documents), dtype=bool)
        for constraint in self.constraints:
            if constraint.forbids is not None:
                allowed &= ~constraint.forbids
        return frozen(allowed)

    @cached_property
    def stated(self) -> SetRows:
        """All rows over the allowed cells: position, document where no other row implies it, and the constraints."""
        return SetRows.of(self.allowed, self.constraints)

    def _rows(self) -> SetRows:
        return self.stated

    @property
    def program(self) -> LinearProgram:
        """The linear program of the set, its objective zero; with soft constraints the widened one, which charges for
        what they are broken by."""
        if not self.softened:
            return LinearProgram.of(self.stated.program(np.zeros(self.shape)))
        return LinearProgram.of(widened(self.priced, -self.cell_prices))

    def broken(self, order: ArrayLike) -> dict[str, float]:
        """What a ranking (the document at each position) breaks, soft constraints included: name of a row, pin or ban
        → by how much."""
        every = (*self.constraints, *(held.constraint for held in self.softened))
        return broken(every, self._placed(order), self.documents)

    def _placed(self, order: ArrayLike) -> Ints:
        placed = np.asarray(order)
        if not is_order(placed, self.positions, self.documents):
            raise InvalidProblem(
                f"{placed.tolist()} is no ranking of {self.positions} of {self.documents} documents: give the document "
                "at each position, none of them twice"
            )
        return placed

    def admits(self, order: ArrayLike) -> bool:
        """Whether a ranking (the document at each position) is in the set."""
        return not broken(self.constraints, self._placed(order), self.documents)

    @cached_property
    def room(self) -> int:
        """How many positions, from the first on, the set lets be filled: k unless it is empty."""
        return room(self.stated, self.constraints)

    def check_nonempty(self) -> None:
        """Raise `Infeasible` if no ranking is in the set, naming constraints that cannot hold together."""
        if self.room < self.positions:
            raise Infeasible(emptiness(self.stated, self.constraints, self.room))

    def __str__(self) -> str:
        parts = [f"{c.name} ({c.rows} rows)" if c.labels is not None else c.name for c in self.constraints]
        parts += [f"{held.name} (soft, {held.price:g} a unit)" for held in self.softened]
        return f"RankingSet: {', '.join([f'{self.positions} of {self.documents} documents', *parts])}"

    def _with(self, constraint: Constraint | Soft) -> Self:
        """The set with one more constraint; a name that is taken gets a number behind it."""
        if isinstance(constraint, Soft):
            hard = self._with(constraint.constraint)
            return hard.soft(hard.constraints[-1].name, price=constraint.price)
        taken = {held.name for held in self.constraints} | {one.name for one in self.softened}
        taken |= {"position", "document", "π"}
        copies = (f"{constraint.name}_{copy}" for copy in counting(2))
        name = constraint.name if constraint.name not in taken else next(c for c in copies if c not in taken)
        return replace(self, constraints=(*self.constraints, replace(constraint, name=name)))
