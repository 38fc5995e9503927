"""The rankings that may be shown, stated once for all queries over attributes of their documents.

>>> admissible = Admissible(k=3).at_most(1, by="site").at_least(1, documents="new", positions=range(2))
>>> admissible
Admissible(k=3).at_most(1, by='site').at_least(1, documents='new', positions=range(2))
>>> site, new = np.array(["a.org", "a.org", "b.org", "c.org"]), np.array([False, False, False, True])
>>> one_query = admissible.on({"site": site, "new": new}, 4)
>>> one_query.broken([0, 1, 3])
{"site['a.org']": 1.0, 'new': 1.0}

Words of sets over attributes beside counts: shares, ranges, distances, who may stand where, what calls for what.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from formulations.constraints.constraint import Rounding, whole_number
from formulations.constraints.kinds import COUNTING, rounded_share
from formulations.constraints.ranking_set import RankingSet
from formulations.constraints.repair import Repair
from formulations.errors import Infeasible, InvalidProblem
from rankopt.constraints.rule import PAIRED, Attributes, Rule, repaired, stated
from rankopt.data.typing import Frame, Values
from rankopt.errors import DataError, OptionError

if TYPE_CHECKING:
    from typing import Self

    from formulations.solvers.solver import Solver
    from formulations.solving.sensitivity import PriceCurve, Side
    from rankopt.data.canonical_order import Arrangement
    from rankopt.data.queries import Queries


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


GIVE = (
    "pass attributes=, a data frame with such a column (cross-validation cuts it by rows) or a mapping, or Queries "
    "that carry it"
)
"""How rows get an attribute."""


@dataclass(frozen=True, repr=False)
class Admissible(AttributeConstraintsMixin):
    """Rankings of k documents a query that every rule allows. Immutable: each method returns a new one.

    A document stands at one position at most, each position holds one document. by= names an attribute (site, genre)
    and makes one row a label; a document has one label, a tuple of them, or none (None, NaN). documents= names an
    attribute of booleans, or {attribute: value}; None means all. positions= counts from 0; None means all. Rows are
    called after the attribute (`site['a.org']`), or name=.

    A query of n < k documents has n positions; a rule counts only those of its positions that the query has, and asks
    for no more documents than these; one that asks for more than k, or than the positions that it names, is refused.
    short: what happens to a query whose documents leave no room for its positions (3 sites for k = 10): "error" names
    query and conflict, "cut" makes its list as long as the rules let it be.
    """

    k: int
    rules: tuple[Rule, ...] = ()
    short: Literal["error", "cut"] = "error"

    def __post_init__(self) -> None:
        k = self.k.item() if isinstance(self.k, np.generic) else self.k
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise OptionError(f"k = {self.k!r} is no number of positions; give a whole number, 1 or more")
        object.__setattr__(self, "k", k)
        if self.short not in ("error", "cut"):
            raise OptionError(f"short = {self.short!r} is neither 'error' nor 'cut'")
        if not isinstance(self.rules, tuple) or not all(isinstance(rule, Rule) for rule in self.rules):
            raise OptionError(f"rules are made by {', '.join(COUNTING)} and ban; start from Admissible(k)")
        for rule in self.rules:
            if rule.positions and rule.positions[-1] >= k:
                raise OptionError(f"positions name {rule.positions[-1]}, but k = {k} positions count from 0 to {k - 1}")
            places = k if rule.positions is None else len(rule.positions)
            if rule.asked > places:
                raise OptionError(
                    f"{rule.word} {rule.asked} documents cannot stand at {places} positions; ask for {places} or fewer"
                )

    if not TYPE_CHECKING:  # a checker that saw it would take any misspelt word

        def __getattr__(self, word: str) -> Callable[..., Admissible]:
            """A word of the language of sets that counts and has no method, one that was added to its table."""
            if word not in COUNTING:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {word!r}")

            def say(count, *, by=None, documents=None, positions=None, name=None) -> Admissible:
                return self._with(word.replace("_", " "), count, by, documents, positions, name)

            return say

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *COUNTING})

    def at_most(
        self,
        count: int | Mapping[Any, int] | None = None,
        *,
        share: float | None = None,
        by: str | None = None,
        documents: str | Mapping[str, Any] | None = None,
        positions: Iterable[int] | int | None = None,
        name: str | None = None,
        entire: bool = False,
    ) -> Admissible:
        """At most `count` of these documents at these positions; with `by`, of the documents of each label (count may
        be a mapping from label to number; labels that it lacks are free). entire: only of queries that have all these
        positions."""
        if share is not None:
            return self._share("at most", count, share, by, documents, positions, name)
        return self._with("at most", count, by, documents, positions, name, entire=entire)

    def at_least(
        self,
        count: int | Mapping[Any, int] | None = None,
        *,
        share: float | None = None,
        by: str | None = None,
        documents: str | Mapping[str, Any] | None = None,
        positions: Iterable[int] | int | None = None,
        name: str | None = None,
        entire: bool = False,
    ) -> Admissible:
        """At least `count` of these documents at these positions; with `by`, of the documents of each label that the
        query has. A mapping from label to number is owed whether a query has the label or not. entire: only of queries
        that have all these positions."""
        if share is not None:
            return self._share("at least", count, share, by, documents, positions, name)
        return self._with("at least", count, by, documents, positions, name, entire=entire)

    def exactly(
        self,
        count: int | Mapping[Any, int],
        *,
        by: str | None = None,
        documents: str | Mapping[str, Any] | None = None,
        positions: Iterable[int] | int | None = None,
        name: str | None = None,
    ) -> Admissible:
        """Exactly `count` of these documents at these positions: `exactly(1, documents="ad", positions=0)` pins."""
        return self._with("exactly", count, by, documents, positions, name)

    def ban(
        self,
        *,
        documents: str | Mapping[str, Any] | None = None,
        positions: Iterable[int] | int | None = None,
        name: str | None = None,
    ) -> Admissible:
        """None of these documents at any of these positions."""
        return self._with("ban", 0, None, documents, positions, name)

    def soft(self, constraint: str, *, price: float) -> Admissible:
        """The rules of this name (name=, else the attribute's) no longer required: a ranking may break them, at
        `price` a unit, off Σ_i c_i s_π(i) where rankings are shown, and off the measure where training looks for the
        best one. The name of a share or a distance softens every rule that it brought. OptionError for a name that no
        rule has, and for a price that is no number from 0 to 1e150."""
        named = [constraint in (rule.title, rule.said_as) for rule in self.rules]
        if not any(named):
            known = ", ".join(dict.fromkeys(repr(rule.title) for rule in self.rules)) or "none"
            raise OptionError(f"no rule is named {constraint!r}, so none can be soft; there are {known}")
        made = (replace(rule, price=price) if it else rule for rule, it in zip(self.rules, named, strict=True))
        return replace(self, rules=tuple(made))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the rules speak of, in their order."""
        return tuple(dict.fromkeys(name for rule in self.rules for name in rule.attributes))

    def check(self, attributes: Mapping[str, Any] | Frame, cure: str = GIVE) -> None:
        """Raise DataError for an attribute that is missing, and for what has no attributes at all. cure: what to do
        about the former."""
        given: Any = attributes
        if self.attributes and not (isinstance(given, Mapping) or hasattr(given, "columns")):
            raise DataError(
                f"attributes are a {type(given).__name__}, which names nothing that the constraints speak of; give a "
                f"mapping with one value a document, {{{self.attributes[0]!r}: [...]}}, or a data frame"
            )
        for name in self.attributes:
            if name not in given:
                has = ", ".join(map(repr, given)) or "none"
                raise DataError(
                    f"the constraints speak of the attribute {name!r}, which is missing (there is {has}); {cure}"
                )

    def on(self, attributes: Mapping[str, Any] | Frame, n: int) -> RankingSet:
        """The set of one query: n documents with these attributes, (n,) each.

        Raises DataError for an attribute that is missing or of another length, OptionError for an n that is no whole
        number, `formulations.errors.Infeasible` naming the conflict if no ranking is in the set.
        """
        found, n = self._read(attributes, n)
        filled = min(self.k, n)
        admissible = stated(self.rules, found, n, filled, filled)
        if self.short == "cut" and admissible.room < filled:
            for places in self._shorter(admissible):
                cut = stated(self.rules, found, n, places, filled)
                if cut.room == places:
                    return cut
        admissible.check_nonempty()
        return admissible

    def repaired(
        self, attributes: Mapping[str, Any] | Frame, n: int, prices: float | Mapping[str, float] = 1.0
    ) -> Repair:
        """The ranking of one query that breaks the rules least, each at its price a unit, and the proof; see
        `RankingSet.repaired`. prices may map names of rules (name=, else the attribute's) to prices; what has none must
        hold. Of several rules of one name all have its price, or one by itself: "stages_2" is the second; the name of
        a share or a distance is that of all rules that it brought."""
        found, n = self._read(attributes, n)
        return repaired(self.rules, found, n, min(self.k, n), prices)

    def stated(self, attributes: Mapping[str, Any] | Frame, n: int) -> RankingSet:
        """The set of one query, as `on` makes it, of min(k, n) positions and perhaps empty."""
        found, n = self._read(attributes, n)
        filled = min(self.k, n)
        return stated(self.rules, found, n, filled, filled)

    def price_of(
        self,
        constraint: str,
        limits: Iterable[float],
        queries: Queries,
        scores: Values,
        *,
        weights: Callable[[int, int], NDArray[np.float64]] | None = None,
        side: Side | None = None,
        solver: Solver | str = "auto",
    ) -> PriceCurve:
        """What the limit of a rule costs: the best Σ_i c_i s_π(i) of each query at each limit, with proven prices, and
        its mean and spread over the queries.

        Args:
            constraint: the name of the rule (name=, else the attribute's), all of whose rows get the limit.
            limits: to try; the limit that the rule has as it stands plays no part.
            queries: with the attributes. scores: (N,) as `predict` gives them for these queries.
            weights: k, n → c (k,), by default 1 / log2(i + 2), i counted from 0.
            side: "at most", "at least" or "exactly", needed where there are limits on both sides: of `between` it
                chooses the rule that is swept.

        Raises OptionError for a name that no rule has, or several of one side (shares and distances without name, say),
        DataError for scores that are not one a document.
        """
        from rankopt.constraints.sensitivity import price_of_rule

        own = np.asarray(scores, dtype=np.float64)
        if own.shape == (queries.offsets[-1],):
            own = own[queries.row_order]
        made = weights or (lambda k, n: 1.0 / np.log2(np.arange(2.0, k + 2.0)))
        return price_of_rule(self, constraint, limits, queries, own, made, side, solver)

    def of_queries(self, queries: Queries | Arrangement) -> tuple[RankingSet, ...]:
        """The set of every query. Raises DataError naming a query for which it is empty, and the conflict."""
        self.check(queries.attributes)
        sets = []
        for query, start, stop in zip(queries.query_ids, queries.offsets[:-1], queries.offsets[1:], strict=True):
            own = {name: queries.attributes[name][start:stop] for name in self.attributes}
            try:
                sets.append(self.on(own, int(stop - start)))
            except Infeasible as error:
                raise self.refusal(query, error) from error
        return tuple(sets)

    def refusal(self, query: Hashable, error: Infeasible, who: str = "query", what: str = "document") -> DataError:
        """What is raised where a query has no admissible ranking of documents, or a user none of items."""
        cure = (
            ". Or let its list be shorter: short='cut'" if self.short == "error" and "leaves room" in str(error) else ""
        )
        told = str(error).replace(" documents", f" {what}s").replace(" document)", f" {what})")
        return DataError(f"{who} {query!r} has no admissible ranking: {told}{cure}")

    def _shorter(self, admissible: RankingSet) -> Iterable[int]:
        """The lengths that a list may have where its set is empty, the longest first. A rule that names positions asks
        for less in a shorter list; without such, the room of the set is the answer."""
        if any(rule.positions is not None for rule in self.rules):
            return range(admissible.positions - 1, 0, -1)
        return [admissible.room] if admissible.room else []

    def _read(self, attributes: Mapping[str, Any] | Frame, n: int) -> tuple[Attributes, int]:
        """The attributes that the rules speak of as arrays, and n as a whole number."""
        self.check(attributes)
        given: Any = attributes
        try:
            n = whole_number("n", n)
        except InvalidProblem as error:
            raise OptionError(str(error)) from None
        found: dict[str, NDArray[Any]] = {}
        for name in self.attributes:
            values = np.asarray(given[name])
            if values.shape != (n,):
                raise DataError(f"attribute {name!r} has shape {values.shape} but there are {n} documents; one each")
            found[name] = values
        return found, n

    def _with(
        self, word: str, count: Any, by: Any, documents: Any, positions: Any, name: Any, **more: Any
    ) -> Admissible:
        if positions is not None:
            positions = tuple(positions) if isinstance(positions, Iterable) else (positions,)
        return replace(self, rules=(*self.rules, Rule(word, count, by, documents, positions, name, **more)))

    def __repr__(self) -> str:
        short = "" if self.short == "error" else f", short={self.short!r}"
        return f"Admissible(k={self.k}{short})" + "".join(map(_said, self.rules))


def _said(rule: Rule) -> str:
    """The call that makes a rule."""
    count = dict(rule.count) if isinstance(rule.count, tuple) else rule.count
    documents = dict(rule.documents) if isinstance(rule.documents, tuple) else rule.documents
    positions: Any = rule.positions
    if positions and positions == tuple(range(len(positions))):
        positions = range(len(positions))
    then = dict(rule.then) if isinstance(rule.then, tuple) else rule.then
    given = {"by": rule.by, "documents": documents, "then": then, "positions": positions, "name": rule.name}
    given |= {"entire": True} if rule.entire else {}
    words = [] if rule.word in ("ban", *PAIRED) else [str(count)]
    words += [f"{key}={value!r}" for key, value in given.items() if value is not None]
    soft = "" if rule.price is None else f".soft({rule.title!r}, price={rule.price!r})"
    return f".{rule.word.replace(' ', '_')}({', '.join(words).replace('range(0, ', 'range(')}){soft}"
