"""The constraint language: a constraint as plain data, and the methods that `RankingSet` and `Admissible` share.

To add a kind of constraint: a function in `formulations.constraints.kinds.KINDS` and a method of `ConstraintMethods`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from formulations.arrays import check_type, each
from formulations.constraints.constraint import Constraint, Count, Prefixes, Rounding, Shares, Some
from formulations.constraints.kinds import KINDS, Shape
from formulations.errors import InvalidProblemError
from formulations.typing import Integer, NonTextSequence, Sparse, SupportsArray

FIELDS = ("documents", "positions", "by", "name")


@dataclass(frozen=True)
class ConstraintSpec:
    """One constraint as plain data: a call of a method, or a table of a TOML file.

    kind: a key of `KINDS`. args: counts, a distance, or documents. penalty: the cost of a unit of violation; None if it
    must hold. options: further keyword arguments of the kind, sorted by name.
    """

    kind: str
    args: tuple[Any, ...] = ()
    documents: Any = None
    positions: Any = None
    by: Any = None
    name: str | None = None
    penalty: float | None = None
    options: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def from_call(cls, kind: str, args: Sequence[Any], where: Mapping[str, Any]) -> ConstraintSpec:
        """The spec of `add(kind, *args, **where)`; None marks an argument that is not passed."""
        passed = {key: value for key, value in where.items() if value is not None}
        fields = {key: passed.pop(key) for key in (*FIELDS, "penalty") if key in passed}
        return cls(kind, tuple(args), **fields, options=tuple(sorted(passed.items(), key=lambda pair: pair[0])))

    @property
    def where(self) -> dict[str, Any]:
        """The keyword arguments of the call, without the penalty."""
        passed = {key: getattr(self, key) for key in FIELDS}
        return {key: value for key, value in passed.items() if value is not None} | dict(self.options)

    def compile(self, shape: Shape) -> Constraint:
        """The rows and forbidden cells for k positions and n documents. Raises InvalidProblemError."""
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise InvalidProblemError(f"kind must be one of {', '.join(KINDS)}; got {self.kind!r}.")
        check_type("name", self.name, str, type(None))
        try:
            signature(KINDS[self.kind]).bind(shape, *self.args, **self.where)
        except TypeError as error:
            raise InvalidProblemError(f"{self.kind}() does not take these arguments: {error}.") from None
        return KINDS[self.kind](shape, *self.args, **self.where)


D = TypeVar("D")  # what selects documents: indices, a mask or a range; or an attribute
L = TypeVar("L")  # what gives labels: one value per document; or the name of an attribute


class ConstraintMethods(Generic[D, L]):
    """The constraints of a ranking as methods; each returns a new object with one more constraint."""

    def add(self, kind: str, *args: Any, **where: Any) -> Self:
        """Add a constraint of this kind (a key of `KINDS`), with the arguments of the method of that name."""
        raise NotImplementedError

    def at_most(
        self,
        count: Count | None = None,
        *,
        share: Shares | None = None,
        documents: D | None = None,
        positions: Some | None = None,
        by: L | None = None,
        prefixes: Prefixes | None = None,
        rounding: Rounding | None = None,
        name: str | None = None,
        require_all_positions: bool | None = None,
    ) -> Self:
        """At most `count` of the documents at the positions, or a share of each prefix.

        count: the limit; with `by` also a mapping from label to limit (other labels are free). share: instead of a
        count: at most this share of the first p positions, for every p of `prefixes` (default all). rounding: of share
        * p, "up" (default), "down" or "nearest". require_all_positions: `Admissible` only: skip queries that lack some.
        """
        return self.add(
            "at_most", *(() if count is None else (count,)), share=share, documents=documents, positions=positions,
            by=by, prefixes=prefixes, rounding=rounding, name=name, require_all_positions=require_all_positions,
        )  # fmt: skip

    def at_least(
        self,
        count: Count | None = None,
        *,
        share: Shares | None = None,
        documents: D | None = None,
        positions: Some | None = None,
        by: L | None = None,
        prefixes: Prefixes | None = None,
        rounding: Rounding | None = None,
        name: str | None = None,
        require_all_positions: bool | None = None,
    ) -> Self:
        """At least `count` of the documents at the positions, or a share of each prefix (default rounding "down").

        Parameters as of `at_most`. A mapping with a label that no document has leaves no ranking.
        """
        return self.add(
            "at_least", *(() if count is None else (count,)), share=share, documents=documents, positions=positions,
            by=by, prefixes=prefixes, rounding=rounding, name=name, require_all_positions=require_all_positions,
        )  # fmt: skip

    def exactly(
        self,
        count: Count,
        *,
        documents: D | None = None,
        positions: Some | None = None,
        by: L | None = None,
        name: str | None = None,
    ) -> Self:
        """Exactly `count` of the documents at the positions; with `by`, of each label."""
        return self.add("exactly", count, documents=documents, positions=positions, by=by, name=name)

    def between(
        self,
        low: Integer,
        high: Integer,
        *,
        documents: D | None = None,
        positions: Some | None = None,
        by: L | None = None,
        name: str | None = None,
    ) -> Self:
        """From `low` to `high` of the documents at the positions; with `by`, of each label."""
        return self.add("between", low, high, documents=documents, positions=positions, by=by, name=name)

    def forbid(self, documents: D | None = None, positions: Some | None = None, *, name: str | None = None) -> Self:
        """None of the documents at any of the positions."""
        return self.add("forbid", documents=documents, positions=positions, name=name)

    def fix(self, document: Integer, position: Integer, *, name: str | None = None) -> Self:
        """This document at this position. `RankingSet` only; over attributes use `position_in`."""
        return self.add("fix", document, position, name=name)

    def position_in(self, documents: D, *, position: Integer = 0, name: str | None = None) -> Self:
        """One of the documents at this position."""
        return self.add("position_in", documents, position=position, name=name)

    def precedes(self, first: D, second: D, *, name: str | None = None) -> Self:
        """A document of `second` is shown only behind a document of `first`.

        A document of both belongs to `first`. An empty `first` forbids `second`; an empty `second` constrains nothing.
        """
        return self.add("precedes", first, second, name=name)

    def precedence_chain(self, documents: Sequence[D] | NDArray[Any], *, name: str | None = None) -> Self:
        """Each document (or set of documents) of the list `precedes` the next."""
        if isinstance(documents, str) or not isinstance(documents, Sequence | np.ndarray):
            raise InvalidProblemError(f"precedence_chain() needs a list of documents in order; got {documents!r}.")
        return self.add("precedence_chain", *each("documents", documents), name=name)

    def min_distance(
        self, distance: Integer, *, documents: D | None = None, by: L | None = None, name: str | None = None
    ) -> Self:
        """Two of the documents (with `by`, two of one label) are at least `distance` positions apart."""
        return self.add("min_distance", distance, documents=documents, by=by, name=name)

    def implies(self, first: D, second: D, *, positions: Some | None = None, name: str | None = None) -> Self:
        """A document of `first` at the positions requires a document of `second` at the positions."""
        return self.add("implies", first, second, positions=positions, name=name)

    def add_rows(
        self,
        matrix: SupportsArray | Sparse | Sequence[float] | Sequence[Sequence[float]],
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        *,
        labels: NonTextSequence[Hashable] | Iterator[Hashable] | None = None,
        name: str | None = None,
    ) -> Self:
        """lower <= matrix π <= upper; the columns of `matrix` (r, k n) are the cells in C order. `RankingSet` only."""
        return self.add("add_rows", matrix, lower, upper, labels=labels, name=name)
