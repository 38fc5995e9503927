"""Sets of admissible rankings over attributes of documents, stated once for all queries.

>>> admissible = Admissible(k=3).at_most(1, by="site").at_least(1, documents="new", positions=range(2))
>>> admissible
Admissible(k=3).at_most(1, by='site').at_least(1, documents='new', positions=range(2))
>>> site, new = np.array(["a.org", "a.org", "b.org", "c.org"]), np.array([False, False, False, True])
>>> one_query = admissible.for_query({"site": site, "new": new}, 4)
>>> one_query.violations([0, 1, 3])
{"site['a.org']": 1.0, 'new': 1.0}

Where every constraint limits a set of documents over all positions, and these sets are nested or disjoint, the
admissible choices of documents are a laminar matroid [ORM, section 7.1]: the greedy pass from the best score down,
skipping documents that a limit excludes, maximizes Σ c_i s_π(i) for every non-increasing c >= 0 (`GroupCapacities`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from formulations.constraints.constraint import by_label, unlabelled, whole_number
from formulations.constraints.kinds import KINDS, parameters, rounded_share
from formulations.constraints.language import ConstraintMethods, ConstraintSpec
from formulations.constraints.parametric import Side
from formulations.constraints.ranking_set import RankingSet
from formulations.constraints.repair import Repair
from formulations.constraints.rows import valid_penalty
from formulations.errors import Infeasible, InvalidProblem
from rankopt.data.typing import Frame, Values
from rankopt.errors import DataError, OptionError

if TYPE_CHECKING:
    from formulations.solvers.solver import Solver
    from formulations.solving.parametric import PriceCurves
    from rankopt.data.canonical_order import Arrangement
    from rankopt.data.queries import Queries

Attributes: TypeAlias = Mapping[str, NDArray[Any]]
Selector: TypeAlias = str | Mapping[str, Any]
"""Documents: an attribute of booleans, or {attribute: value}, of which all must match."""

ADD_ATTRIBUTES = (
    "pass attributes=, a data frame with such a column (cross-validation splits it by rows) or a mapping, or Queries "
    "with that attribute"
)


@dataclass(frozen=True, repr=False)
class Admissible(ConstraintMethods[Selector, str]):
    """Admissible rankings of k documents per query, by constraints over attributes. Immutable.

    by= names an attribute (site, genre) and makes one row per label; a document has one label, a tuple of labels, or
    none (None, NaN). documents= names an attribute of booleans, or is {attribute: value}. Rows are named after the
    attribute (`site['a.org']`), or by name=.

    A query of n < k documents has n positions. A constraint counts only those of its positions that the query has, and
    requires at most that many documents; a prefix of a share counts only if the query has all of it.

    Parameters
    ----------
    k : int
        Positions of a ranking.
    specs : tuple of ConstraintSpec
        The constraints; the methods append to it.
    on_infeasible : {"error", "truncate"}
        For a query without an admissible ranking of full length: raise an error that names the conflict, or shorten its
        ranking as little as possible.
    """

    k: int
    specs: tuple[ConstraintSpec, ...] = ()
    on_infeasible: Literal["error", "truncate"] = "error"

    def __post_init__(self) -> None:
        k = _plain(self.k)
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise OptionError(f"k must be a positive integer; got {self.k!r}.")
        object.__setattr__(self, "k", k)
        if self.on_infeasible not in ("error", "truncate"):
            raise OptionError(f"on_infeasible must be 'error' or 'truncate'; got {self.on_infeasible!r}.")
        if not isinstance(self.specs, tuple) or not all(isinstance(spec, ConstraintSpec) for spec in self.specs):
            raise OptionError(
                f"specs must be a tuple of ConstraintSpec; got {self.specs!r}. Start from Admissible(k) and call its "
                "methods."
            )
        object.__setattr__(self, "specs", tuple(_validated(spec, k) for spec in self.specs))

    def add(self, kind: str, *args: Any, **where: Any) -> Admissible:
        """Add a constraint of this kind; see `ConstraintMethods.add`. Raises OptionError for invalid arguments."""
        return replace(self, specs=(*self.specs, ConstraintSpec.from_call(kind, args, where)))

    def precedence_chain(self, documents: Any, *, name: str | None = None) -> Admissible:
        """Each selection of documents of the list `precedes` the next."""
        try:
            return super().precedence_chain(documents, name=name)
        except InvalidProblem as error:
            raise OptionError(str(error)) from None

    def penalized(self, constraint: str, *, penalty: float) -> Admissible:
        """Make the constraints of this name (name=, else the attribute's) soft: violations cost `penalty` per unit.

        The cost is subtracted from Σ_i c_i s_π(i) in rankings, and from the measure in training. Raises OptionError for
        an unknown name, and for a penalty that is not a number from 0 to 1e150.
        """
        named = [label(spec) == constraint for spec in self.specs]
        if not any(named):
            known = ", ".join(dict.fromkeys(repr(label(spec)) for spec in self.specs)) or "none"
            raise OptionError(f"No constraint is named {constraint!r}; the names are {known}.")
        specs = (replace(spec, penalty=penalty) if hit else spec for spec, hit in zip(self.specs, named, strict=True))
        return replace(self, specs=tuple(specs))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the constraints use, in their order."""
        return tuple(dict.fromkeys(name for spec in self.specs for name in _attributes(spec)))

    def validate(self, attributes: Mapping[str, Any] | Frame, cure: str = ADD_ATTRIBUTES) -> None:
        """Raise DataError for a missing attribute, and for an object without attributes. cure: how to add one."""
        given: Any = attributes
        if self.attributes and not (isinstance(given, Mapping) or hasattr(given, "columns")):
            raise DataError(
                f"attributes must be a mapping {{{self.attributes[0]!r}: [...]}} with one value per document, or a "
                f"data frame; got a {type(given).__name__}."
            )
        for name in self.attributes:
            if name not in given:
                has = ", ".join(map(repr, given)) or "none"
                raise DataError(
                    f"The constraints need the attribute {name!r}, which is missing (there is {has}); {cure}."
                )

    def for_query(self, attributes: Mapping[str, Any] | Frame, n: int) -> RankingSet:
        """The set of one query: n documents with these attributes, (n,) each.

        Raises DataError for an attribute that is missing or of another length, OptionError for an invalid n,
        `formulations.errors.Infeasible` naming the conflict if no ranking is admissible.
        """
        found, n = self._read(attributes, n)
        filled = min(self.k, n)
        full = self._resolve(found, n, filled, filled)
        if self.on_infeasible == "truncate" and full.max_positions < filled:
            # Constraints on positions require less of a shorter ranking; without any, max_positions is the answer.
            longest = filled - 1 if any(map(_names_positions, self.specs)) else full.max_positions
            for length in range(longest, 0, -1):
                cut = self._resolve(found, n, length, filled)
                if cut.max_positions == length:
                    return cut
        full.check_nonempty()
        return full

    def to_ranking_set(self, attributes: Mapping[str, Any] | Frame, n: int) -> RankingSet:
        """The set of one query with min(k, n) positions; it may be empty."""
        found, n = self._read(attributes, n)
        return self._resolve(found, n, min(self.k, n), min(self.k, n))

    def for_queries(self, queries: Queries | Arrangement) -> tuple[RankingSet, ...]:
        """The set of every query. Raises DataError naming a query for which it is empty, and the conflict."""
        self.validate(queries.attributes)
        sets = []
        for query, start, stop in zip(queries.query_ids, queries.offsets[:-1], queries.offsets[1:], strict=True):
            own = {name: queries.attributes[name][start:stop] for name in self.attributes}
            try:
                sets.append(self.for_query(own, int(stop - start)))
            except Infeasible as error:
                raise infeasible_error(self, query, error) from error
        return tuple(sets)

    def repair(
        self, attributes: Mapping[str, Any] | Frame, n: int, penalties: float | Mapping[str, float] = 1.0
    ) -> Repair:
        """The ranking of one query with the least penalized violation, and its proof; see `RankingSet.repair`.

        penalties: one for all constraints, or name (name=, else the attribute's) to penalty; the others must hold. A
        name holds for all constraints of that name; "site_2" is the second of them alone, and takes precedence.
        """
        found, n = self._read(attributes, n)
        whole, k = RankingSet(n, min(self.k, n)), min(self.k, n)
        named = penalties if isinstance(penalties, Mapping) else {}
        spread: dict[str, float] = {}
        used: set[str] = set()
        for spec in self.specs:
            before = _constraint_names(whole)
            whole = _apply(spec, whole, found, k)
            name = label(spec)
            if name is not None and name in named:
                spread |= dict.fromkeys(_constraint_names(whole) - before, named[name])
                used.add(name)
        if not isinstance(penalties, Mapping):
            return whole.repair(penalties)
        absent = used - _constraint_names(whole)  # names of constraints that this query does not have
        own = {name: penalty for name, penalty in named.items() if name not in absent}
        return whole.repair({**spread, **own})

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
    ) -> PriceCurves:
        """The best Σ_i c_i s_π(i) of each query at each limit of a constraint, with dual bounds, and the mean.

        Parameters
        ----------
        constraint : str
            The name of the constraint (name=, else the attribute's); all its rows get the limit.
        limits : iterable of float
            The limits; the limit of the constraint itself is ignored.
        queries, scores
            Queries with the attributes, and (N,) scores as `predict` returns them.
        weights : callable
            (k, n) to c (k,); default 1 / log2(i + 2), i from 0.
        side : {"at most", "at least", "exactly"}
            Needed if there are limits on both sides.

        Raises OptionError for an unknown name, and for several constraints of one name and side; DataError for scores
        that are not one per document.
        """
        from rankopt.constraints.parametric import swept

        own = np.asarray(scores, dtype=np.float64)
        if own.shape == (queries.offsets[-1],):
            own = own[queries.row_order]
        made = weights or (lambda k, n: 1.0 / np.log2(np.arange(2.0, k + 2.0)))
        return swept(self, constraint, limits, queries, own, made, side, solver)

    def _read(self, attributes: Mapping[str, Any] | Frame, n: int) -> tuple[Attributes, int]:
        """The attributes that the constraints use as arrays, and n as an integer."""
        self.validate(attributes)
        given: Any = attributes
        try:
            n = whole_number("n", n)
        except InvalidProblem as error:
            raise OptionError(str(error)) from None
        found: dict[str, NDArray[Any]] = {}
        for name in self.attributes:
            values = np.asarray(given[name])
            if values.shape != (n,):
                raise DataError(f"Attribute {name!r} needs one value per document; got shape {values.shape} for {n}.")
            found[name] = values
        return found, n

    def _resolve(self, attributes: Attributes, n: int, k: int, filled: int) -> RankingSet:
        return resolve(self.specs, attributes, n, k, filled)

    def __repr__(self) -> str:
        cut = "" if self.on_infeasible == "error" else f", on_infeasible={self.on_infeasible!r}"
        return f"Admissible(k={self.k}{cut})" + "".join(map(_call, self.specs))


def resolve(specs: Iterable[ConstraintSpec], attributes: Attributes, n: int, k: int, filled: int) -> RankingSet:
    """The rankings of k of n documents. `filled`: the positions that the query's length allows, which bound counts."""
    found = RankingSet(n, k)
    for spec in specs:
        found = _apply(spec, found, attributes, filled)
    return found


def infeasible_error(
    admissible: Admissible, query: Hashable, error: Infeasible, who: str = "query", what: str = "document"
) -> DataError:
    """The error for a query that has no admissible ranking of documents, or a user who has none of items."""
    cure = ""
    if admissible.on_infeasible == "error" and "leaves room" in str(error):
        cure = ". Or shorten its ranking: on_infeasible='truncate'"
    text = str(error).replace(" documents", f" {what}s").replace(" document)", f" {what})")
    return DataError(f"{who} {query!r} has no admissible ranking: {text}{cure}")


def label(spec: ConstraintSpec) -> str | None:
    """The name of a constraint: as given, else its attribute, or its attributes."""
    if spec.name is not None or spec.by is not None:
        return str(spec.name or spec.by)
    parts = [_text(selector) for selector in selectors(spec)]
    return f" {'precedes' if spec.kind == 'precedence_chain' else spec.kind} ".join(parts) if parts else None


def selectors(spec: ConstraintSpec) -> tuple[Any, ...]:
    """The selections of documents of a constraint."""
    own = () if spec.documents is None else (spec.documents,)
    return own + (spec.args if _selects(spec.kind) else ())


def select(selector: Any, attributes: Attributes, n: int) -> NDArray[np.bool_]:
    """(n,) which documents a selector matches; None matches all."""
    if selector is None:
        return np.ones(n, dtype=bool)
    if isinstance(selector, str):
        return _flags(attributes[selector], selector)
    mask = np.ones(n, dtype=bool)
    for name, value in selector:
        mask &= np.array([_matches(entry, value) for entry in attributes[name].tolist()], dtype=bool)
    return mask


def _apply(spec: ConstraintSpec, found: RankingSet, attributes: Attributes, filled: int) -> RankingSet:
    """The set with this constraint: names resolved to arrays, positions and counts to those of the query."""
    k, n = found.shape
    options = dict(spec.options)
    positions = None if spec.positions is None else [p for p in spec.positions if p < k]
    if positions == [] or (
        options.pop("require_all_positions", False) and len(positions or ()) < len(spec.positions or ())
    ):
        return found
    if "prefixes" in options:
        options["prefixes"] = [length for length in options["prefixes"] if length <= k]
        if not options["prefixes"]:
            return found
    if isinstance(options.get("share"), tuple):
        options["share"] = dict(options["share"])
    if options.get("position", 0) >= k:
        return found
    reach = filled if spec.positions is None else sum(p < filled for p in spec.positions)
    args: list[Any] = [select(arg, attributes, n) for arg in spec.args] if _selects(spec.kind) else list(spec.args)
    if _counts(spec.kind):
        args = [{name: min(c, reach) for name, c in arg} if isinstance(arg, tuple) else min(arg, reach) for arg in args]
    where = {
        "documents": None if spec.documents is None else select(spec.documents, attributes, n),
        "positions": positions,
        "by": None if spec.by is None else attributes[spec.by],
        "name": label(spec),
        "penalty": spec.penalty,
    }
    return found.add(spec.kind, *args, **where, **options)


def _selects(kind: str) -> bool:
    """Whether the arguments of a kind select documents."""
    return parameters(kind)[0] == "documents"


def _counts(kind: str) -> bool:
    """Whether the arguments of a kind count documents."""
    return parameters(kind)[0] in ("count", "low")


def _names_positions(spec: ConstraintSpec) -> bool:
    return spec.positions is not None or any(key == "position" for key, _ in spec.options)


def _attributes(spec: ConstraintSpec) -> list[str]:
    found = [] if spec.by is None else [spec.by]
    for selector in selectors(spec):
        found += [selector] if isinstance(selector, str) else [name for name, _ in selector]
    return found


def _constraint_names(found: RankingSet) -> set[str]:
    return {*(held.name for held in found.constraints), *(held.name for held in found.soft_constraints)}


def _text(selector: Any) -> str:
    return selector if isinstance(selector, str) else " and ".join(f"{name}[{value!r}]" for name, value in selector)


def _call(spec: ConstraintSpec) -> str:
    """The call that adds a constraint."""

    def given(value: Any) -> str:
        pairs = isinstance(value, tuple) and value and all(isinstance(part, tuple) for part in value)
        return repr(dict(value)) if pairs else repr(value)

    args = [given(arg) for arg in spec.args]
    if spec.kind == "precedence_chain":
        args = [f"[{', '.join(args)}]"]
    where = spec.where
    if spec.positions and spec.positions == tuple(range(len(spec.positions))):
        where["positions"] = range(len(spec.positions))
    args += [f"{key}={given(value)}".replace("=range(0, ", "=range(") for key, value in where.items()]
    soft = "" if spec.penalty is None else f".penalized({label(spec)!r}, penalty={spec.penalty!r})"
    return f".{spec.kind}({', '.join(args)}){soft}"


def _validated(spec: ConstraintSpec, k: int) -> ConstraintSpec:
    """The spec as plain, hashable data. Raises OptionError for what is invalid in every query."""
    kind = spec.kind
    over_attributes = [one for one in KINDS if parameters(one)[0] not in ("document", "matrix")]
    if kind not in over_attributes:
        raise OptionError(f"kind must be one of {', '.join(over_attributes)} over attributes; got {kind!r}.")
    for what in ("by", "name"):
        if not isinstance(getattr(spec, what), str | None):
            raise OptionError(f"{what} must be a string, the name of an attribute; got {getattr(spec, what)!r}.")
    args, options = spec.args, dict(spec.options)
    unknown = {*spec.where, *options} - {*parameters(kind), "name", "require_all_positions"}
    if unknown:
        raise OptionError(f"{kind}() has no argument {min(unknown)!r}; it takes {', '.join(parameters(kind))}.")
    if _selects(kind):
        args = tuple(_selector(kind, arg) for arg in args)
        if kind in ("precedes", "precedence_chain") and len(set(map(repr, args))) < len(args):
            raise OptionError(f"Documents cannot precede themselves; got {spec.args!r}. Name each choice once.")
    elif _counts(kind):
        args = tuple(_count(arg, spec.by) for arg in args)
    else:
        args = tuple(map(_plain, args))
    documents = None if spec.documents is None else _selector(kind, spec.documents)
    positions = (
        None if spec.positions is None else tuple(sorted({_whole("a position", p) for p in _each(spec.positions)}))
    )
    if "share" in options:
        options["share"] = _pairs("share", options["share"], spec.by, _plain)
    if "prefixes" in options:
        options["prefixes"] = tuple(sorted({_whole("a prefix", p) for p in _each(options["prefixes"])}))
    if "position" in options:
        options["position"] = _whole("position", options["position"])
    if not isinstance(options.get("require_all_positions", True), bool):
        raise OptionError(f"require_all_positions must be a bool; got {options['require_all_positions']!r}.")
    if not options.get("require_all_positions", True):
        del options["require_all_positions"]
    last = max(
        (*(positions or ()), options.get("position", 0), *(p - 1 for p in options.get("prefixes", ()))), default=0
    )
    if last >= k:
        raise OptionError(f"Positions count from 0 to k - 1 = {k - 1}; got {last}. Raise k, or name earlier positions.")
    found = replace(spec, args=args, documents=documents, positions=positions, options=tuple(sorted(options.items())))
    try:
        hash(found)
        shares = options.get("share", ())
        for share in [one for _, one in shares] if isinstance(shares, tuple) else [shares]:
            rounded_share(share, k, options.get("rounding", "up"))
        if spec.penalty is not None:
            found = replace(found, penalty=valid_penalty(spec.penalty, label(found)))
        # Compiled for one document without attributes: the checks of the kind itself.
        where = {key: value for key, value in found.where.items() if key != "require_all_positions"}
        where |= {} if documents is None else {"documents": [False]}
        where |= {} if spec.by is None else {"by": [None]}
        plain = [[False]] * len(args) if _selects(kind) else [dict(a) if isinstance(a, tuple) else a for a in args]
        if isinstance(where.get("share"), tuple):
            where["share"] = dict(where["share"])
        KINDS[kind]((last + 1, 1), *plain, **where)
    except InvalidProblem as error:
        raise OptionError(str(error)) from None
    except TypeError as error:
        raise OptionError(
            f"{kind}() got invalid arguments ({error}); labels are numbers, strings or tuples of them."
        ) from None
    _check_room(found, k)
    return found


def _check_room(spec: ConstraintSpec, k: int) -> None:
    """Raise OptionError for a count that no k positions can hold."""
    if spec.kind in ("at_least", "exactly", "between") and spec.args:
        counts = [c for _, c in spec.args[0]] if isinstance(spec.args[0], tuple) else [spec.args[0]]
        places = k if spec.positions is None else len(spec.positions)
        if max(counts, default=0) > places:
            raise OptionError(f"{spec.kind}() needs a count of at most {places}, its positions; got {max(counts)}.")


def _selector(kind: str, given: Any) -> Any:
    if isinstance(given, str):
        return given
    pairs = tuple(given.items()) if isinstance(given, Mapping) else given
    if (
        not isinstance(pairs, tuple)
        or not pairs
        or not all(isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) for p in pairs)
    ):
        raise OptionError(
            f"{kind}() selects documents by an attribute of booleans, or by {{attribute: value}}; got {given!r}."
        )
    for name, value in pairs:
        if unlabelled(value):
            raise OptionError(f"{kind}() cannot select documents without a label; got {{{name!r}: {value!r}}}.")
    return tuple(sorted(((name, _plain(value)) for name, value in pairs), key=repr))


def _count(given: Any, by: str | None) -> Any:
    return _pairs("count", given, by, lambda value: _whole("count", value))


def _pairs(name: str, given: Any, by: str | None, read: Callable[[Any], Any]) -> Any:
    """One value, or pairs (label, value) in a fixed order."""
    if isinstance(given, Mapping):
        given = tuple(given.items())
    if not isinstance(given, tuple):
        return read(given)
    if by is None or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in given):
        raise OptionError(f"A {name} per label needs labels; got {name}={given!r} and by={by!r}. Give by=.")
    return tuple(sorted(((_plain(one), read(value)) for one, value in given), key=repr))


def _whole(name: str, value: Any) -> int:
    value = _plain(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise OptionError(f"{name} must be an integer, 0 or more; got {value!r}.")
    return value


def _each(given: Any) -> Iterable[Any]:
    return given if isinstance(given, Iterable) and not isinstance(given, str) else (given,)


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _flags(values: NDArray[Any], name: str) -> NDArray[np.bool_]:
    """An attribute of booleans; None and NaN are False."""
    if values.dtype == np.bool_:
        return values
    entries = [False if unlabelled(entry) else entry for entry in values.tolist()]
    for entry in entries:
        if not (isinstance(entry, bool) or (isinstance(entry, int | float) and entry in (0, 1))):
            raise DataError(
                f"documents={name!r} needs an attribute of booleans; got the value {entry!r}. Write "
                f"documents={{{name!r}: {entry!r}}} for the documents that have it."
            )
    return np.array(entries, dtype=bool)


def _matches(entry: Any, value: Any) -> bool:
    """Whether a document with this entry has the value: the entry itself, or one of its labels."""
    if isinstance(entry, tuple | list | set | frozenset):
        return value in entry or entry == value
    return not unlabelled(entry) and bool(entry == value)


@dataclass(frozen=True, eq=False)
class GroupCapacities:
    """Limits on nested or disjoint sets of documents. of_document: the limits that count each document."""

    k: int
    limits: tuple[int, ...]
    of_document: tuple[tuple[int, ...], ...]

    @classmethod
    def from_specs(
        cls, specs: Iterable[ConstraintSpec], attributes: Attributes, n: int, k: int
    ) -> GroupCapacities | None:
        """The constraints as limits; None if some are not limits over all positions, or if they overlap."""
        found: list[tuple[NDArray[np.int64], int]] = []
        for spec in specs:
            limits = _document_limits(spec, attributes, n, k)
            if limits is None:
                return None
            found += limits
        found.sort(key=lambda limit: -limit[0].size)
        smallest = np.full(n, -1)  # the smallest set so far that holds each document
        of_document: list[list[int]] = [[] for _ in range(n)]
        for number, (documents, _) in enumerate(found):
            if documents.size and (smallest[documents] != smallest[documents[0]]).any():
                return None
            smallest[documents] = number
            for document in documents.tolist():
                of_document[document].append(number)
        return cls(k, tuple(limit for _, limit in found), tuple(map(tuple, of_document)))

    def order(self, scores: NDArray[np.float64]) -> NDArray[np.int64]:
        """The documents of the ranking, best first, ties as given; fewer than k if the limits allow no more."""
        left = list(self.limits)
        placed: list[int] = []
        for document in np.argsort(-scores, kind="stable").tolist():
            limits = self.of_document[document]
            if all(left[limit] > 0 for limit in limits):
                placed.append(document)
                for limit in limits:
                    left[limit] -= 1
                if len(placed) == self.k:
                    break
        return np.array(placed, dtype=np.int64)


def limits_count(spec: ConstraintSpec) -> bool:
    """Whether a constraint limits counts from above: `at_most` a count, or `forbid`; not soft."""
    return spec.penalty is None and (spec.kind == "forbid" or (spec.kind == "at_most" and bool(spec.args)))


def _document_limits(
    spec: ConstraintSpec, attributes: Attributes, n: int, k: int
) -> list[tuple[NDArray[np.int64], int]] | None:
    """(documents, limit) over all positions; None for a constraint that is more than that."""
    everywhere = spec.positions is None or set(range(k)) <= set(spec.positions)
    if not everywhere or not limits_count(spec):
        return None
    count = spec.args[0] if spec.args else 0
    mask = select(spec.documents, attributes, n)
    if spec.by is None:
        return [(np.flatnonzero(mask), count)]
    limits = dict(count) if isinstance(count, tuple) else None
    return [
        (documents[mask[documents]], count if limits is None else limits[name])
        for name, documents in by_label(attributes[spec.by], n).items()
        if limits is None or name in limits
    ]
