"""A compiled constraint on the cells of a ranking: rows and forbidden cells. Reading of its arguments: documents and
positions by mask, index or range, counts, shares, labels; and their types."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from formulations.arrays import Bools, Floats, Ints, as_integer, check_no_mask, each, frozen, integers
from formulations.display import CompactReprMixin
from formulations.errors import InvalidProblemError
from formulations.problems.problem import EPSILON
from formulations.problems.program import Block
from formulations.typing import Integer, NonTextSequence, Share, SupportsArray


@dataclass(frozen=True, eq=False)
class Constraint(CompactReprMixin):
    """lower <= matrix π <= upper for the k n cells π in C order; and π = 0 where `forbids`.

    `labels` names the rows; None for a single row, which has the constraint's own name. `text` describes the
    constraint, or each of its rows, in error messages: "at most 1 of 3 documents". `share_limit` compiles the
    constraint at another share; None unless it was stated with share=.
    """

    name: str
    text: str | tuple[str, ...]
    matrix: csr_array
    lower: Floats
    upper: Floats
    labels: tuple[Hashable, ...] | None = None
    forbids: Bools | None = None
    share_limit: ShareLimit | None = None

    def __post_init__(self) -> None:
        for part in (self.matrix.data, self.matrix.indices, self.matrix.indptr):
            part.setflags(write=False)
        for name in ("lower", "upper", "forbids"):
            array = getattr(self, name)
            if array is not None:
                object.__setattr__(self, name, frozen(array))

    def check_stored(self) -> None:
        """Raise InvalidProblemError where the parts do not fit together."""
        rows, cells = self.matrix.shape
        if not np.isfinite(self.matrix.data).all():
            raise InvalidProblemError(f"a coefficient of {self.name!r} is not finite")
        for limit in (self.lower, self.upper):
            if limit.dtype != np.float64 or limit.shape != (rows,) or np.isnan(limit).any():
                raise InvalidProblemError(f"{self.name!r} needs a lower and an upper limit per row, not NaN")
        if not isinstance(self.name, str) or not (isinstance(self.text, str) or len(self.text) == rows):
            raise InvalidProblemError(f"{self.name!r} needs a name and a description")
        if self.labels is not None and len(self.labels) != rows:
            raise InvalidProblemError(f"{self.name!r} needs a label per row")
        if self.forbids is not None and (self.forbids.dtype != np.bool_ or self.forbids.size != cells):
            raise InvalidProblemError(f"forbids of {self.name!r} must be a mask of {cells} cells")
        if self.share_limit is not None:
            self.share_limit.check(cells)

    @property
    def rows(self) -> int:
        return int(self.lower.size)

    @property
    def block(self) -> Block:
        """The names of its rows."""
        return Block(self.name, ()) if self.labels is None else Block(self.name, self.labels, by_label=True)

    def description(self, row: int) -> str:
        """Description of a row in error messages."""
        return self.text if isinstance(self.text, str) else self.text[row]

    @classmethod
    def mask(cls, name: str, text: str, forbids: Bools) -> Constraint:
        """A constraint that only forbids cells."""
        return cls(name, text, csr_array((0, forbids.size)), np.empty(0), np.empty(0), None, forbids)


@dataclass(frozen=True, eq=False)
class ShareLimit:
    """A limit on the share of groups of documents (None: the one group without a label) in prefixes, at any share."""

    shape: tuple[int, int]
    name: str
    most: bool
    groups: Mapping[Hashable, Ints]
    lengths: tuple[int, ...]
    rounding: str

    def check(self, cells: int) -> None:
        """Raise an error where the parts are not those of a constraint on so many cells."""
        if np.prod(self.shape) != cells or prefix_lengths(self.lengths, self.shape[0]) != list(self.lengths):
            raise InvalidProblemError(f"the share of {self.name!r} is not over {cells} cells")
        self.constraint(0.5)

    def constraint(self, share: Any) -> Constraint:
        """The rows at this share, the same for all groups or by label."""
        k, n = self.shape
        cells, labels, texts, limits = list[tuple[Ints, Ints]](), list[Hashable](), list[str](), list[int]()
        for label, documents in self.groups.items():
            part = chosen("documents", documents, n)
            for length in self.lengths:
                count = rounded_share(share[label] if isinstance(share, Mapping) else share, length, self.rounding)
                if (count >= min(length, part.size)) if self.most else count == 0:
                    continue  # always satisfied
                cells.append((np.arange(length), part))
                labels.append(length if label is None else (label, length))
                side = "most" if self.most else "least"
                texts.append(f"at {side} {count} of {part.size} documents in the first {length}")
                limits.append(count)
        counts = np.array(limits, dtype=np.float64)
        none = np.full(counts.size, np.inf)
        low, high = (-none, counts) if self.most else (counts, none)
        matrix = rows_of_cells(cells, k, n)
        return Constraint(self.name, tuple(texts), matrix, low, high, tuple(labels), share_limit=self)


def violations(constraints: Iterable[Constraint], order: Ints, n: int) -> dict[str, float]:
    """The violations of a ranking of n documents (the document at each position): name of a row, or of a constraint
    that forbids cells → by how much."""
    cells = np.arange(order.size) * n + order
    found: dict[str, float] = {}
    for constraint in constraints:
        if constraint.forbids is not None and constraint.forbids.ravel()[cells].any():
            found[constraint.name] = float(constraint.forbids.ravel()[cells].sum())
        if constraint.rows:
            reached = np.asarray(constraint.matrix[:, cells].sum(axis=1)).ravel()
            off = np.maximum(constraint.lower - reached, reached - constraint.upper)
            over = off > row_rounding(constraint.matrix, constraint.lower, constraint.upper, order.size)
            found.update({constraint.block.name(r): float(off[r]) for r in np.flatnonzero(over).tolist()})
    return found


def row_rounding(matrix: csr_array, lower: Floats, upper: Floats, terms: int) -> Floats:
    """(rows,) the rounding error of a sum of `terms` coefficients against a limit: 0.1 + 0.2 is not 0.3."""
    largest = np.zeros(lower.size)
    np.maximum.at(largest, np.repeat(np.arange(lower.size), np.diff(matrix.indptr)), np.abs(matrix.data))
    limit = np.maximum(*(np.where(np.isfinite(side), np.abs(side), 0.0) for side in (lower, upper)))
    return 4.0 * EPSILON * terms * (terms * largest + limit)


def rows_of_cells(rows: list[tuple[Ints, Ints]], k: int, n: int) -> csr_array:
    """(r, k n) ones: row r on the cells positions × documents that entry r names."""
    cells = [(positions[:, None] * n + documents).ravel() for positions, documents in rows]
    indptr = np.cumsum([0, *(part.size for part in cells)])
    columns = np.concatenate([np.empty(0, dtype=np.int64), *cells])
    return csr_array((np.ones(columns.size), columns, indptr), shape=(len(rows), k * n))


def chosen(name: str, given: Any, size: int) -> Ints:
    """The sorted indices that a selector names among 0 .. size - 1: None for all, an index, a mask, indices, a range.

    Raises `InvalidProblemError` for an index out of range or twice, and for a mask of another length.
    """
    if given is None:
        return np.arange(size)
    check_no_mask(name, given)
    try:
        array = np.atleast_1d(np.asarray(list(given) if isinstance(given, range | set | frozenset) else given))
    except ValueError as error:  # lists of several lengths
        raise InvalidProblemError(f"{name} must be a mask or indices; got {given!r} ({error}).") from None
    if array.dtype == np.bool_:
        if array.shape != (size,):
            raise InvalidProblemError(f"A mask of {name} needs {size} booleans; got shape {array.shape}.")
        return np.flatnonzero(array)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.ndim == 1 and array.dtype.kind == "f" and (array == np.floor(array)).all():
        array = integers(name, array)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidProblemError(f"{name} must be a mask, indices or a range; got {array.dtype} {array.shape}.")
    wrong = array[(array < 0) | (array >= size)]
    if wrong.size:
        raise InvalidProblemError(f"{name} must be indices from 0 to {size - 1}; got {int(wrong[0])}.")
    indices = np.unique(array).astype(np.int64)
    if indices.size != array.size:
        raise InvalidProblemError(f"{name} must be distinct indices; got {given!r}. Name each once.")
    return indices


def one(name: str, given: Any, size: int) -> int:
    """The one index that a selector names, or `InvalidProblemError`."""
    if given is None or isinstance(given, list | tuple) or np.ndim(given) != 0:
        raise InvalidProblemError(f"{name} must be one index from 0 to {size - 1}; got {given!r}.")
    return int(chosen(name, given, size)[0])


def by_label(labels: Iterable[Any], size: int) -> dict[Hashable, Ints]:
    """The documents that carry each label, labels in order of first appearance.

    One entry a document: a label; a tuple, list or set of labels; or None or NaN for no label.
    Raises `InvalidProblemError` for another number of entries, or a label that is no label.
    """
    if isinstance(labels, Mapping | str) or not (hasattr(labels, "tolist") or isinstance(labels, Iterable)):
        raise InvalidProblemError(f"by= must be a list with the label of each document; got a {type(labels).__name__}.")
    entries = each("by=", labels.tolist() if hasattr(labels, "tolist") and not np.ma.is_masked(labels) else labels)
    if len(entries) != size:
        raise InvalidProblemError(f"by= needs one label (or None) per document; got {len(entries)} labels for {size}.")
    members: dict[Hashable, list[int]] = {}
    for document, entry in enumerate(entries):
        carried = entry.tolist() if isinstance(entry, np.ndarray) else entry
        if isinstance(carried, set | frozenset):
            carried = sorted(carried, key=repr)
        for label in carried if isinstance(carried, tuple | list) else (carried,):
            if unlabeled(label):
                continue
            try:
                found = members.setdefault(label, [])
            except TypeError:
                raise InvalidProblemError(f"Labels must be numbers, strings or tuples; got {label!r}.") from None
            if document not in found[-1:]:
                found.append(document)
    return {label: np.array(documents, dtype=np.int64) for label, documents in members.items()}


def count_for(name: str, count: Any, label: Hashable) -> int | None:
    """The count for one label: the same for all, or its entry in a mapping (None where it has none)."""
    if not isinstance(count, Mapping):
        return as_integer(name, count)
    return as_integer(f"{name}[{label!r}]", count[label]) if label in count else None


MAX_DENOMINATOR = 1000  # the largest denominator of a fraction that a float is read as: 1/3, or .1 + .2, which is 3/10

ROUNDINGS: dict[str, Callable[[Fraction], int]] = {"up": ceil, "down": floor, "nearest": round}


def rounded_share(share: Any, positions: int, rounding: str) -> int:
    """`share` of `positions`, rounded; InvalidProblemError for an invalid share or rounding."""
    if not isinstance(rounding, str) or rounding not in ROUNDINGS:
        raise InvalidProblemError(f"rounding must be one of {', '.join(map(repr, ROUNDINGS))}; got {rounding!r}.")
    try:
        exact = Fraction(str(share.item() if isinstance(share, np.generic) else share))
    except (ValueError, ZeroDivisionError):
        raise InvalidProblemError(f"share must be a number from 0 to 1; got {share!r}.") from None
    if isinstance(share, float | np.floating):
        plain = exact.limit_denominator(MAX_DENOMINATOR)
        if abs(plain - exact) <= 4 * float(np.finfo(type(share)).eps) * plain:
            exact = plain
    if not 0 <= exact <= 1:
        raise InvalidProblemError(f"share must be a number from 0 to 1; got {share!r}.")
    return int(ROUNDINGS[rounding](exact * positions))


def prefix_lengths(prefixes: Any, k: int) -> list[int]:
    requested = [prefixes] if np.ndim(prefixes) == 0 and not isinstance(prefixes, range) else list(prefixes)
    lengths = sorted({as_integer("a prefix", length) for length in requested})
    if not lengths or lengths[0] < 1 or lengths[-1] > k:
        raise InvalidProblemError(f"prefixes must be lengths from 1 to {k}; got {prefixes!r}.")
    return lengths


def unlabeled(label: Any) -> bool:
    """Whether an entry is no label: None, or NaN, which differs from itself."""
    if label is None:
        return True
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # an array is not a label
        return False


Some: TypeAlias = Integer | Sequence[Integer] | AbstractSet[Integer] | SupportsArray
"""Selector of documents or positions: an index, a mask, indices or a range."""

Count: TypeAlias = Integer | Mapping[Any, Integer]  # A count, for all labels alike or by label

Shares: TypeAlias = Share | Mapping[Any, Share]  # A share, for all labels alike or by label

Labels: TypeAlias = NonTextSequence[Hashable | Iterable[Hashable]] | Iterator[Hashable | Iterable[Hashable]]
"""The label of each document; several, or None."""

Prefixes: TypeAlias = Integer | Iterable[Integer]  # how many positions from the first on

Rounding = Literal["up", "down", "nearest"]  # rounding of a fractional share
