"""One constraint over attributes: which documents and positions it counts, and what it allows.

The set of one query, said rule by rule, and its repair at prices of rules.

A rule brings a constraint, or none where it says nothing of the query. It bears the rule's title, numbered from the
second of one name on; so a price of a title is one of all constraints that rules of this title brought.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.constraints.constraint import by_label, unlabelled
from formulations.constraints.kinds import COUNTING
from formulations.constraints.ranking_set import RankingSet
from formulations.constraints.repair import Repair
from formulations.constraints.soft import valid_price
from formulations.errors import InvalidProblem
from rankopt.errors import DataError, OptionError

Attributes = Mapping[str, NDArray[Any]]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

PAIRED = {
    "if then": "if one of the first stands, one of the second",
    "before": "where one of the second stands, one of the first stands earlier",
}
"""Words that are said of two choices of documents."""

WORDS = (*(word.replace("_", " ") for word in COUNTING), "ban", *PAIRED)


@dataclass(frozen=True)
class Rule:
    """`word` `count` of the documents that carry each label of `by` (of all, without it), among `documents`, at
    `positions` (None: all).

    count: a number, or pairs (label, number). documents: an attribute of flags, or pairs (attribute, value) that must
    all hold. then: chosen as `documents` are; of "if then" those of which one is called for, of "before" those that one
    of `documents` stands before. entire: only of queries that have all these positions. price: of a unit, where it may
    be broken. Plain data: it prints, compares, hashes and is saved.
    """

    word: str
    count: int | tuple[tuple[Hashable, int], ...] = 0
    by: str | None = None
    documents: str | tuple[tuple[str, Hashable], ...] | None = None
    positions: tuple[int, ...] | None = None
    name: str | None = None
    then: str | tuple[tuple[str, Hashable], ...] | None = None
    entire: bool = False
    price: float | None = None

    def __post_init__(self) -> None:
        if self.word not in WORDS:
            raise OptionError(f"a rule cannot say {self.word!r}; it says one of {', '.join(WORDS)}")
        for what in ("by", "name"):
            if not isinstance(getattr(self, what), str | None):
                raise OptionError(f"{what} = {getattr(self, what)!r} is no name; give a string")
        for what in ("documents", "then"):
            object.__setattr__(self, what, _chosen(what, getattr(self, what)))
        if self.price is not None:
            try:
                object.__setattr__(self, "price", valid_price(self.price, self.title))
            except InvalidProblem as error:
                raise OptionError(str(error)) from None
        if not isinstance(self.entire, bool):
            raise OptionError(f"entire = {self.entire!r} is neither True nor False")
        if self.word in PAIRED and (self.documents is None or self.then is None):
            said = self.word.replace(" ", "_")
            raise OptionError(f"{said} needs two choices of documents: {PAIRED[self.word]}")
        if self.word not in PAIRED and self.then is not None:
            raise OptionError(f"{self.word} is said of one choice of documents; say if_then or before of two")
        if self.word == "before" and (self.by is not None or self.positions is not None):
            raise OptionError("before speaks of all positions and of no labels; leave positions and by out")
        object.__setattr__(self, "count", _counts(self.count, self.by))
        if self.positions is not None:
            object.__setattr__(self, "positions", tuple(sorted({_whole("a position", p) for p in self.positions})))
        try:
            hash(self)
        except TypeError as error:
            raise OptionError(f"a label is a number, a string or a tuple of them ({error})") from None
        if self.word == "before" and self.documents == self.then:
            raise OptionError(f"{_told(self.then)} cannot stand before itself; choose others that stand earlier")

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that it speaks of."""
        return (*(() if self.by is None else (self.by,)), *_named(self.documents), *_named(self.then))

    @property
    def asked(self) -> int:
        """How many documents it wants at least, of one label."""
        if self.word not in ("at least", "exactly"):
            return 0
        return self.count if isinstance(self.count, int) else max((number for _, number in self.count), default=0)

    @property
    def title(self) -> str | None:
        """What its rows are called: as given, else after the attribute."""
        if self.name is not None or self.by is not None:
            return self.name or self.by
        told = _told(self.documents)
        return f"{told} before {_told(self.then)}" if self.word == "before" else told

    @property
    def said_as(self) -> str | None:
        """The name that it was said under: of a rule of a share or a distance ("h, first 2", "h, from 0") theirs, of
        others the title."""
        if self.name is None or not self.positions:
            return self.title
        first, last = self.positions[0], self.positions[-1]
        if self.positions != tuple(range(first, last + 1)):
            return self.name
        if self.entire and first == 0 and self.name.endswith(f", first {last + 1}"):
            return self.name.removesuffix(f", first {last + 1}")
        apart = self.word == "at most" and self.count == 1
        return self.name.removesuffix(f", from {first}") if apart else self.name

    def among(self, attributes: Attributes, n: int) -> Bools | None:
        """(n,) the documents that it chooses by `documents`; None for all."""
        return _mask(self.documents, attributes, n)

    def called_for(self, attributes: Attributes, n: int) -> Bools:
        """(n,) of "if then" the documents of which one is called for, of "before" those that wait for another."""
        found = _mask(self.then, attributes, n)
        return np.zeros(n, dtype=bool) if found is None else found

    def applied(self, admissible: RankingSet, attributes: Attributes, filled: int) -> RankingSet:
        """The set of one query with this constraint, soft where it has a price."""
        stated = self._stated(admissible, attributes, filled)
        if self.price is None or stated is admissible:
            return stated
        return stated.soft(stated.constraints[-1].name, price=self.price)

    def _stated(self, admissible: RankingSet, attributes: Attributes, filled: int) -> RankingSet:
        """The set of one query with this constraint. `filled` positions are what the list has by its length alone: a
        rule asks for no more documents than it has positions among these."""
        k, n = admissible.positions, admissible.documents
        positions = None if self.positions is None else [p for p in self.positions if p < k]
        if positions == [] or (self.entire and len(positions or ()) < len(self.positions or ())):
            return admissible
        reach = filled if self.positions is None else sum(p < filled for p in self.positions)
        where: dict[str, Any] = {
            "documents": self.among(attributes, n), "positions": positions, "name": self.title,
        }  # fmt: skip
        if self.word == "ban":
            return admissible.ban(**where)
        if self.then is not None:
            given = {} if self.word == "before" else {"positions": positions}
            pair = where["documents"], self.called_for(attributes, n)
            return admissible.say(self.word.replace(" ", "_"), pair, name=where["name"], **given)
        count: Any = min(self.count, reach) if isinstance(self.count, int) else {
            label: min(number, reach) for label, number in self.count
        }  # fmt: skip
        labels = None if self.by is None else attributes[self.by]
        return admissible.say(self.word.replace(" ", "_"), count, by=labels, **where)

    def caps(self, attributes: Attributes, n: int, k: int) -> list[tuple[Ints, int]] | None:
        """The rule as limits on sets of documents over all k positions: (documents, at most how many); None where it
        is more than that."""
        everywhere = self.positions is None or set(range(k)) <= set(self.positions)
        if self.word not in ("at most", "ban") or not everywhere or self.price is not None:
            return None
        among = self.among(attributes, n)
        if isinstance(self.count, int) and self.by is None:
            return [(np.arange(n) if among is None else np.flatnonzero(among), self.count)]
        found = []
        for label, documents in by_label(attributes[str(self.by)], n).items():
            limit = self.count if isinstance(self.count, int) else dict(self.count).get(label)
            if limit is not None:
                found.append((documents if among is None else documents[among[documents]], limit))
        return found


def _mask(documents: Any, attributes: Attributes, n: int) -> Bools | None:
    """(n,) the documents that are chosen; None for all."""
    if documents is None:
        return None
    if isinstance(documents, str):
        return _flags(attributes[documents], documents)
    mask = np.ones(n, dtype=bool)
    for name, value in documents:
        mask &= np.array([_carries(entry, value) for entry in attributes[name].tolist()], dtype=bool)
    return mask


def _named(documents: str | tuple[tuple[str, Hashable], ...] | None) -> tuple[str, ...]:
    """The attributes that choose documents."""
    return (documents,) if isinstance(documents, str) else tuple(name for name, _ in documents or ())


def _told(documents: str | tuple[tuple[str, Hashable], ...] | None) -> str | None:
    """How chosen documents are called."""
    if documents is None or isinstance(documents, str):
        return documents
    return " and ".join(f"{name}[{value!r}]" for name, value in documents)


def _chosen(what: str, documents: Any) -> Any:
    if documents is None or isinstance(documents, str):
        return documents
    pairs = tuple(documents.items()) if isinstance(documents, Mapping) else documents
    if (
        not isinstance(pairs, tuple)
        or not pairs
        or not all(isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) for p in pairs)
    ):
        raise OptionError(
            f"{what} = {documents!r} names no attribute; give the name of an attribute of booleans, or "
            "{attribute: value}"
        )
    for name, value in pairs:
        if unlabelled(value):
            raise OptionError(f"{what} = {{{name!r}: {value!r}}} names no label, so no document has it; give a label")
    return tuple(sorted(((name, _plain(value)) for name, value in pairs), key=repr))


def _counts(count: Any, by: str | None) -> Any:
    if isinstance(count, Mapping):
        count = tuple(count.items())
    if not isinstance(count, tuple):
        return _whole("count", count)
    if by is None or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in count):
        raise OptionError(f"count = {count!r} has labels, but by= names no attribute that carries them; give by=")
    return tuple(sorted(((_plain(label), _whole(f"count[{label!r}]", n)) for label, n in count), key=repr))


def _whole(name: str, value: Any) -> int:
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise OptionError(f"{name} = {value!r} is no count; give a whole number, 0 or more")
    return value


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _flags(values: NDArray[Any], name: str) -> Bools:
    """An attribute of booleans as such; None and NaN are no."""
    if values.dtype == np.bool_:
        return values
    entries = [False if unlabelled(entry) else entry for entry in values.tolist()]
    if not all(isinstance(entry, bool) or (isinstance(entry, int | float) and entry in (0, 1)) for entry in entries):
        wrong = next(e for e in entries if not isinstance(e, bool) and not (isinstance(e, int | float) and e in (0, 1)))
        raise DataError(
            f"documents={name!r} cannot choose by the value {wrong!r} because it is neither true nor false; "
            f"write documents={{{name!r}: {wrong!r}}} for the documents that have it"
        )
    return np.array(entries, dtype=bool)


def _carries(entry: Any, value: Any) -> bool:
    """Whether a document with this entry has the value: the entry itself, or one of its several labels."""
    if isinstance(entry, tuple | list | set | frozenset):
        return value in entry or entry == value
    return not unlabelled(entry) and bool(entry == value)


def stated(rules: Iterable[Rule], attributes: Attributes, n: int, k: int, filled: int) -> RankingSet:
    """The rankings of k of n documents that every rule allows; `filled`, as in `Rule.applied`."""
    said = RankingSet(n, k)
    for rule in rules:
        said = rule.applied(said, attributes, filled)
    return said


def repaired(
    rules: Iterable[Rule], attributes: Attributes, n: int, k: int, prices: float | Mapping[str, float]
) -> Repair:
    """The ranking that breaks the rules least. A constraint's own name in prices goes before its rule's title, that
    before the name of the share or the distance that brought it."""
    said = RankingSet(n, k)
    asked = prices if isinstance(prices, Mapping) else {}
    priced: dict[str, float] = {}
    spoken: set[str] = set()
    for rule in rules:
        before = names_of(said)
        said = rule.applied(said, attributes, k)
        for name in (rule.said_as, rule.title):
            if name is not None and name in asked:
                priced |= dict.fromkeys(names_of(said) - before, asked[name])
                spoken.add(name)
    if not isinstance(prices, Mapping):
        return said.repaired(prices)
    unsaid = spoken - names_of(said)  # names of several constraints, or of one that says nothing of this query
    return said.repaired({**priced, **{name: price for name, price in asked.items() if name not in unsaid}})


def names_of(said: RankingSet) -> set[str]:
    """Of its constraints, soft ones too."""
    return {*(held.name for held in said.constraints), *(held.name for held in said.softened)}
