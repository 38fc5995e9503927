"""Sets of admissible rankings over attributes of documents, defined once for all queries.

>>> admissible = Admissible(k=3).at_most(1, by="site").at_least(1, documents="new", positions=range(2))
>>> admissible
Admissible(k=3).at_most(1, by='site').at_least(1, documents='new', positions=range(2))
>>> site, new = np.array(["a.org", "a.org", "b.org", "c.org"]), np.array([False, False, False, True])
>>> one_query = admissible.for_query({"site": site, "new": new}, 4)
>>> one_query.violations([0, 1, 3])
{"site['a.org']": 1.0, 'new': 1.0}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, as_integer, check_type, to_integer
from formulations.constraints.conflict import Repair
from formulations.constraints.language import ConstraintMethods, ConstraintSpec
from formulations.constraints.ranking_set import RankingSet
from formulations.errors import InfeasibleError, InvalidProblemError
from rankopt.constraints.specs import (
    Attributes,
    absent_values,
    apply_spec,
    attributes_of,
    call_text,
    check_values,
    constraint_names,
    label,
    names_positions,
    resolve,
    validated,
)
from rankopt.data.canonical_order import Arrangement
from rankopt.data.queries import Queries
from rankopt.data.typing import Frame, Values
from rankopt.data.validation import did_you_mean
from rankopt.errors import DataError, OptionError
from rankopt.options import as_numbers

if TYPE_CHECKING:
    from formulations.solvers.solver import Solver
    from formulations.solving.sensitivity import SensitivityCurve, Side

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
        ranking as little as possible. That helps against `at_most`, shares of every prefix and required positions,
        which a shorter ranking lacks. It cannot help to reach a count of documents: make that constraint `penalized`.
    """

    k: int
    specs: tuple[ConstraintSpec, ...] = ()
    on_infeasible: Literal["error", "truncate"] = "error"

    def __post_init__(self) -> None:
        k = to_integer(self.k)
        if k is None or k < 1:
            raise OptionError(f"k must be a positive integer; got {self.k!r}.")
        object.__setattr__(self, "k", k)
        if not isinstance(self.on_infeasible, str) or self.on_infeasible not in ("error", "truncate"):
            raise OptionError(f"on_infeasible must be 'error' or 'truncate'; got {self.on_infeasible!r}.")
        if not isinstance(self.specs, tuple) or not all(isinstance(spec, ConstraintSpec) for spec in self.specs):
            raise OptionError(f"specs must be a tuple of ConstraintSpec; got {self.specs!r}. Start from Admissible(k).")
        object.__setattr__(self, "specs", tuple(validated(spec, k) for spec in self.specs))

    def add(self, kind: str, *args: Any, **where: Any) -> Admissible:
        """Add a constraint of this kind; see `ConstraintMethods.add`. Raises OptionError for invalid arguments."""
        return replace(self, specs=(*self.specs, ConstraintSpec.from_call(kind, args, where)))

    def precedence_chain(self, documents: Any, *, name: str | None = None) -> Admissible:
        """Each selection of documents of the list `precedes` the next."""
        try:
            return super().precedence_chain(documents, name=name)
        except InvalidProblemError as error:
            raise OptionError(str(error)) from None

    def penalized(self, constraint: str, *, penalty: float) -> Admissible:
        """Make the constraints of this name (name=, else the attribute's) soft: violations cost `penalty` per unit.

        The cost is subtracted from Σ_i c_i s_π(i) in rankings, and from the measure in training. Raises OptionError for
        an unknown name, and for a penalty that is not a number from 0 to 1e150.
        """
        check_type("constraint", constraint, str, error=OptionError)
        named = [label(spec) == constraint for spec in self.specs]
        if not any(named):
            known = ", ".join(dict.fromkeys(repr(label(spec)) for spec in self.specs)) or "none"
            raise OptionError(f"No constraint is named {constraint!r}; the names are {known}.")
        specs = (replace(spec, penalty=penalty) if hit else spec for spec, hit in zip(self.specs, named, strict=True))
        return replace(self, specs=tuple(specs))

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the constraints use, in their order."""
        return tuple(dict.fromkeys(name for spec in self.specs for name in attributes_of(spec)))

    def validate(self, attributes: Mapping[str, Any] | Frame, cure: str = ADD_ATTRIBUTES) -> None:
        """Raise DataError for a missing attribute, and for an object without attributes. cure: how to add one."""
        table: Any = attributes
        if self.attributes and not (isinstance(table, Mapping) or (hasattr(table, "columns") and np.iterable(table))):
            raise DataError(
                f"attributes must be a mapping {{{self.attributes[0]!r}: [...]}} with one value per document, or a "
                f"data frame; got a {type(table).__name__}."
            )
        for name in self.attributes:
            if name not in table:
                has = ", ".join(map(repr, table)) or "none"
                holders = [one for one in table if name in map(str, np.ravel(np.array(table[one], dtype=object)))]
                hint = f"write documents={{{holders[0]!r}: {name!r}}}, or " if holders else ""
                near = did_you_mean(name, table)
                raise DataError(
                    f"The constraints need the attribute {name!r}, which is missing (there is {has}{near}); "
                    f"{hint}{cure}."
                )

    def for_query(self, attributes: Mapping[str, Any] | Frame, n: int) -> RankingSet:
        """The set of one query: n documents with these attributes, (n,) each.

        Raises DataError for an attribute that is missing or of another length, OptionError for an invalid n,
        `formulations.errors.InfeasibleError` naming the conflict if no ranking is admissible; `repair` finds the
        ranking of least violation then.
        """
        found, n = self._read(attributes, n)
        filled = min(self.k, n)
        full = resolve(self.specs, found, n, filled, filled)
        if self.on_infeasible == "truncate" and full.max_positions < filled:
            # Constraints on positions require less of a shorter ranking; without any, max_positions is the answer.
            longest = filled - 1 if any(map(names_positions, self.specs)) else full.max_positions
            for length in range(longest, 0, -1):
                cut = resolve(self.specs, found, n, length, filled)
                if cut.max_positions == length:
                    return cut
        full.check_nonempty()
        return full

    def to_ranking_set(self, attributes: Mapping[str, Any] | Frame, n: int) -> RankingSet:
        """The set of one query with min(k, n) positions; it may be empty."""
        found, n = self._read(attributes, n)
        return resolve(self.specs, found, n, min(self.k, n), min(self.k, n))

    def for_queries(self, queries: Queries | Arrangement) -> tuple[RankingSet, ...]:
        """The set of every query. Raises DataError naming a query for which it is empty, and the conflict."""
        check_type("queries", queries, Queries, Arrangement, error=DataError)
        self.validate(queries.attributes)
        queries = queries.grouped() if isinstance(queries, Queries) else queries

        def build(admissible: Admissible, q: int) -> RankingSet:
            start, stop = queries.offsets[q : q + 2].tolist()
            own = {name: queries.attributes[name][start:stop] for name in admissible.attributes}
            return admissible.for_query(own, stop - start)

        return sets_of_queries(self, queries, build)

    def repair(
        self, attributes: Mapping[str, Any] | Frame, n: int, penalties: float | Mapping[str, float] = 1.0
    ) -> Repair:
        """The ranking of one query with the least penalized violation, and its proof; see `RankingSet.repair`.

        penalties: one for all constraints, or name (name=, else the attribute's) to penalty; the others must hold. A
        name holds for all constraints of that name; "site_2" is the second of them alone, and takes precedence.
        """
        found, n = self._read(attributes, n)
        rankings, k = RankingSet(n, min(self.k, n)), min(self.k, n)
        named = penalties if isinstance(penalties, Mapping) else {}
        spread: dict[str, float] = {}
        used: set[str] = set()
        for spec in self.specs:
            before = constraint_names(rankings)
            rankings = apply_spec(spec, rankings, found, k)
            name = label(spec)
            if name is not None and name in named:
                spread |= dict.fromkeys(constraint_names(rankings) - before, named[name])
                used.add(name)
        if not isinstance(penalties, Mapping):
            return rankings.repair(penalties)
        absent = used - constraint_names(rankings)  # names of constraints that this query does not have
        own = {name: penalty for name, penalty in named.items() if name not in absent}
        return rankings.repair({**spread, **own})

    def sensitivity(
        self,
        constraint: str,
        limits: Iterable[float],
        queries: Queries,
        scores: Values,
        *,
        weights: Callable[[int, int], Floats] | None = None,
        side: Side | None = None,
        solver: Solver | str = "auto",
    ) -> SensitivityCurve:
        """The best Σ_i c_i s_π(i) of each query at each limit of a constraint, with dual bounds, and the mean.

        Parameters
        ----------
        constraint : str
            The name of the constraint (name=, else the attribute's), or the attribute that it alone uses; all its rows
            get the limit.
        limits : iterable of float
            The limits, of a constraint with share= shares from 0 to 1. They replace the limit of the constraint, which
            only sets the length of lists under on_infeasible="truncate": a limit that every query can meet leaves
            full length.
        queries, scores
            Queries with the attributes, and (N,) scores as `predict` returns them.
        weights : callable
            (k, n) to c (k,); default 1 / log2(i + 2), i from 0.
        side : {"at most", "at least", "exactly"}
            Needed if there are limits on both sides.

        Raises OptionError for an unknown name, and for several constraints of one name and side; DataError for scores
        that are not one per document.
        """
        from rankopt.constraints.sensitivity import rule_sensitivity

        check_type("queries", queries, Queries, error=DataError)
        check_type("constraint", constraint, str, error=OptionError)
        if weights is not None and not callable(weights):
            raise OptionError(f"weights must be a function (k, n) or None; got {weights!r:.80}.")
        own = as_numbers("scores", scores)
        if own.shape == (queries.offsets[-1],):
            own = own[queries.rows]
        made = weights or (lambda k, n: 1.0 / np.log2(np.arange(2.0, k + 2.0)))
        return rule_sensitivity(self, constraint, limits, queries.grouped(), own, made, side, solver)

    def _read(self, attributes: Mapping[str, Any] | Frame, n: int) -> tuple[Attributes, int]:
        """The attributes that the constraints use as arrays, and n as an integer."""
        self.validate(attributes)
        table: Any = attributes
        try:
            n = as_integer("n", n)
        except InvalidProblemError as error:
            raise OptionError(str(error)) from None
        found: dict[str, NDArray[Any]] = {}
        for name in self.attributes:
            values = np.asarray(table[name])
            if values.shape != (n,):
                raise DataError(f"Attribute {name!r} needs one value per document; got shape {values.shape} for {n}.")
            found[name] = values
        return found, n

    def __repr__(self) -> str:
        cut = "" if self.on_infeasible == "error" else f", on_infeasible={self.on_infeasible!r}"
        return f"Admissible(k={self.k}{cut})" + "".join(map(call_text, self.specs))


Set = TypeVar("Set")

COUNTED = 10  # infeasible queries that an error counts: each takes a search for its conflict
SHORTEN = ". Or shorten its ranking: on_infeasible='truncate'"


def sets_of_queries(
    admissible: Admissible, queries: Queries | Arrangement, build: Callable[[Admissible, int], Set], soft: bool = True
) -> tuple[Set, ...]:
    """build(admissible, q) of every query q. Raises DataError for infeasible ones: the conflict of the first, cures
    (soft constraints only if supported), and how many others there are."""
    sets, failed = list[Set](), dict[int, InfeasibleError]()
    for q in range(len(queries.query_ids)):
        try:
            sets.append(build(admissible, q))
        except InfeasibleError as error:
            failed[q] = error
            if len(failed) == COUNTED:
                break
    if not failed:
        check_values(admissible.specs, queries.attributes)
        return tuple(sets)
    first, *others = failed
    absent = [f". {text}" for *_, text in absent_values(admissible.specs, queries.attributes)]
    cures = "".join(absent[:1]) + _cures(admissible, failed[first], build, first, soft)
    if others:
        few = ", ".join(repr(queries.query_ids[q]) for q in others[:3]) + (", ..." if len(others) > 3 else "")
        least = "At least " if len(failed) == COUNTED else ""
        cures += f". {least}{len(others)} more of {len(queries.query_ids)} queries have none: {few}"
    raise infeasible_error(queries.query_ids[first], failed[first], cures) from failed[first]


def _cures(
    admissible: Admissible, error: InfeasibleError, build: Callable[[Admissible, int], object], q: int, soft: bool
) -> str:
    """What to do for the infeasible query q: shorten the ranking if that helps, or make a constraint soft."""
    cures = ""
    if admissible.on_infeasible == "error":
        with suppress(InfeasibleError):
            build(replace(admissible, on_infeasible="truncate"), q)
            cures = SHORTEN
    else:
        cures = ". No shorter ranking helps either (on_infeasible='truncate')"
    names = [name for name in map(label, admissible.specs) if f" {name} (" in str(error) or f" {name}[" in str(error)]
    names = names if soft else []
    return cures + (f". Or make it soft: .penalized({names[0]!r}, penalty=...)" if names else "")


def infeasible_error(
    query: Hashable, error: InfeasibleError, cures: str, owner: str = "query", what: str = "document"
) -> DataError:
    """The error for a query without an admissible ranking of documents, or a user without one of items."""
    text = re.sub(r"\bdocument(s?)\b(?!=)", rf"{what}\1", str(error))
    return DataError(f"{owner} {query!r} has no admissible ranking: {text}{cures}")
