"""Constraints over attributes as data: validated, named, resolved to the arrays of one query, read as group limits."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints, each, to_integer
from formulations.constraints.constraint import by_label, rounded_share, unlabeled
from formulations.constraints.kinds import KINDS, parameters
from formulations.constraints.language import ConstraintSpec
from formulations.constraints.ranking_set import RankingSet
from formulations.constraints.rows import valid_penalty
from formulations.errors import InvalidProblemError
from rankopt.data.validation import did_you_mean
from rankopt.errors import DataError, OptionError

Attributes: TypeAlias = Mapping[str, NDArray[Any]]


def resolve(specs: Iterable[ConstraintSpec], attributes: Attributes, n: int, k: int, filled: int) -> RankingSet:
    """The rankings of k of n documents. `filled`: the positions that the query's length allows, which bound counts."""
    found = RankingSet(n, k)
    for spec in specs:
        found = apply_spec(spec, found, attributes, filled)
    return found


def label(spec: ConstraintSpec) -> str | None:
    """The name of a constraint: its `name`, else its attribute or attributes."""
    if spec.name is not None or spec.by is not None:
        return str(spec.name or spec.by)
    parts = [
        one if isinstance(one, str) else " and ".join(f"{name}[{value!r}]" for name, value in one)
        for one in selectors(spec)
    ]
    return f" {'precedes' if spec.kind == 'precedence_chain' else spec.kind} ".join(parts) if parts else None


def selectors(spec: ConstraintSpec) -> tuple[Any, ...]:
    """The selections of documents of a constraint."""
    own = () if spec.documents is None else (spec.documents,)
    return own + (spec.args if _selects(spec.kind) else ())


def select(selector: Any, attributes: Attributes, n: int) -> Bools:
    """(n,) which documents a selector matches; None matches all."""
    if selector is None:
        return np.ones(n, dtype=bool)
    if isinstance(selector, str):
        return _flags(attributes[selector], selector)
    mask = np.ones(n, dtype=bool)
    for name, value in selector:
        mask &= np.array([_matches(entry, value) for entry in attributes[name].tolist()], dtype=bool)
    return mask


def apply_spec(spec: ConstraintSpec, found: RankingSet, attributes: Attributes, filled: int) -> RankingSet:
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
    return parameters(kind)[0] == "documents"


def _counts(kind: str) -> bool:
    return parameters(kind)[0] in ("count", "low")


def names_positions(spec: ConstraintSpec) -> bool:
    """Whether a constraint selects positions, or counts in prefixes: a shorter ranking has fewer of them."""
    return spec.positions is not None or any(key in ("position", "share") for key, _ in spec.options)


def values_of(spec: ConstraintSpec) -> list[tuple[str, Any]]:
    """The pairs (attribute, value) that a constraint names."""
    pairs = [pair for one in selectors(spec) if not isinstance(one, str) for pair in one]
    per_label = [one for one in (*spec.args, dict(spec.options).get("share")) if isinstance(one, tuple)]
    return pairs if spec.by is None else pairs + [(spec.by, pair[0]) for one in per_label for pair in one]


def absent_values(
    specs: Iterable[ConstraintSpec], attributes: Attributes, what: str = "document"
) -> Iterator[tuple[Any, list[Any], str]]:
    """Each value of the constraints that no document has, the labels of its attribute, and a sentence of both."""
    for name, value in dict.fromkeys(pair for spec in specs for pair in values_of(spec)):
        entries = attributes[name].tolist()
        if not any(_matches(entry, value) for entry in entries):
            known = sorted(by_label(entries, len(entries)), key=repr)
            shown = ", ".join(map(repr, known[:6])) + (", ..." if known[6:] else "")
            yield value, known, f"No {what} has {name} {value!r}; the values are {shown or 'missing'}"


def check_values(specs: Iterable[ConstraintSpec], attributes: Attributes, what: str = "document") -> None:
    """Warn of a value that no document has. Raises DataError for text if no label is text, and the reverse."""
    for value, known, text in absent_values(specs, attributes, what):
        is_text, near = isinstance(value, str), did_you_mean(value, known) or "."
        if known and isinstance(value, str | Real) and not any(isinstance(one, str) == is_text for one in known):
            raise DataError(f"{text}{near} Give a value of their type.")
        if not all(isinstance(one, bool) for one in (value, *known)):  # a rare True may be absent
            warnings.warn(f"{text}{near} The constraint counts no {what}.", UserWarning, stacklevel=3)


def attributes_of(spec: ConstraintSpec) -> list[str]:
    """The attributes that a constraint refers to."""
    found = [] if spec.by is None else [spec.by]
    for selector in selectors(spec):
        found += [selector] if isinstance(selector, str) else [name for name, _ in selector]
    return found


def constraint_names(found: RankingSet) -> set[str]:
    """The names of all constraints of a set, hard and soft."""
    return {*(held.name for held in found.constraints), *(held.name for held in found.soft_constraints)}


def call_text(spec: ConstraintSpec) -> str:
    """The call that adds a constraint."""

    def written(value: Any) -> str:
        pairs = isinstance(value, tuple) and value and all(isinstance(part, tuple) for part in value)
        return repr(dict(value)) if pairs else repr(value)

    args = [written(arg) for arg in spec.args]
    if spec.kind == "precedence_chain":
        args = [f"[{', '.join(args)}]"]
    where = spec.where
    if spec.positions and spec.positions == tuple(range(len(spec.positions))):
        where["positions"] = range(len(spec.positions))
    args += [f"{key}={written(value)}".replace("=range(0, ", "=range(") for key, value in where.items()]
    soft = "" if spec.penalty is None else f".penalized({label(spec)!r}, penalty={spec.penalty!r})"
    return f".{spec.kind}({', '.join(args)}){soft}"


def validated(spec: ConstraintSpec, k: int) -> ConstraintSpec:
    """The spec as plain, hashable data. Raises OptionError for what is invalid in every query."""
    kind = spec.kind
    over_attributes = [one for one in KINDS if parameters(one)[0] not in ("document", "matrix")]
    if not isinstance(kind, str) or kind not in over_attributes:
        raise OptionError(f"kind must be one of {', '.join(over_attributes)} over attributes; got {kind!r}.")
    for what in ("by", "name"):
        if not isinstance(getattr(spec, what), str | None):
            raise OptionError(f"{what} must be a string, the name of an attribute; got {_brief(getattr(spec, what))}.")
    args, options = spec.args, dict(spec.options)
    unknown = {*spec.where, *options} - {*parameters(kind), "name", "require_all_positions"}
    if unknown:
        raise OptionError(f"{kind}() has no argument {min(unknown)!r}; it takes {', '.join(parameters(kind))}.")
    if _selects(kind):
        args = tuple(_selector(kind, arg) for arg in args)
        if kind in ("precedes", "precedence_chain") and len(set(map(repr, args))) < len(args):
            raise OptionError(f"Documents cannot precede themselves; got {spec.args!r}. Name each choice once.")
    elif _counts(kind):
        args = tuple(_pairs("count", arg, spec.by, lambda value: _natural("count", value)) for arg in args)
    else:
        args = tuple(map(as_python, args))
    documents = None if spec.documents is None else _selector(kind, spec.documents)
    positions = (
        None if spec.positions is None else tuple(sorted({_natural("a position", p) for p in _each(spec.positions)}))
    )
    if "share" in options:
        options["share"] = _pairs("share", options["share"], spec.by, as_python)
    if "prefixes" in options:
        options["prefixes"] = tuple(sorted({_natural("a prefix", p) for p in _each(options["prefixes"])}))
    if "position" in options:
        options["position"] = _natural("position", options["position"])
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
    except InvalidProblemError as error:
        raise OptionError(str(error)) from None
    except TypeError as error:
        raise OptionError(f"{kind}() got invalid arguments ({error}); labels are numbers, strings or tuples.") from None
    _check_counts_fit(found, k)
    return found


def _check_counts_fit(spec: ConstraintSpec, k: int) -> None:
    """Raise OptionError for a count that no k positions can hold."""
    if spec.kind in ("at_least", "exactly", "between") and spec.args:
        counts = [c for _, c in spec.args[0]] if isinstance(spec.args[0], tuple) else [spec.args[0]]
        available = k if spec.positions is None else len(spec.positions)
        if max(counts, default=0) > available:
            raise OptionError(f"{spec.kind}() needs a count of at most {available}, its positions; got {max(counts)}.")


def _brief(value: Any) -> str:
    """A value in a message; columns by their type, with the cure."""
    if not hasattr(value, "shape"):
        return f"{value!r:.80}"
    return f"a {type(value).__name__} of {np.size(value)} values: store it as a column of the data, and pass its name"


def _selector(kind: str, selector: Any) -> Any:
    if isinstance(selector, str):
        return selector
    pairs = tuple(selector.items()) if isinstance(selector, Mapping) else selector
    if (
        not isinstance(pairs, tuple)
        or not pairs
        or not all(isinstance(p, tuple) and len(p) == 2 and isinstance(p[0], str) for p in pairs)
    ):
        raise OptionError(
            f"{kind}() selects documents by an attribute of booleans, or by {{attribute: value}}; got "
            f"{_brief(selector)}."
        )
    for name, value in pairs:
        if isinstance(value, list | set | frozenset | np.ndarray):
            raise OptionError(
                f"{kind}() selects documents of one value; got {{{name!r}: {value!r:.80}}}. For several store booleans "
                f"as a column, frame['some'] = frame[{name!r}].isin([...]), and pass documents='some'."
            )
        if unlabeled(value):
            raise OptionError(f"{kind}() cannot select documents without a label; got {{{name!r}: {value!r}}}.")
    return tuple(sorted(((name, as_python(value)) for name, value in pairs), key=repr))


def _pairs(name: str, argument: Any, by: str | None, read: Callable[[Any], Any]) -> Any:
    """One value, or pairs (label, value) in a fixed order."""
    if isinstance(argument, Mapping):
        argument = tuple(argument.items())
    if not isinstance(argument, tuple):
        return read(argument)
    if by is None or not all(isinstance(pair, tuple) and len(pair) == 2 for pair in argument):
        raise OptionError(f"A {name} per label needs labels; got {name}={argument!r} and by={by!r}. Give by=.")
    return tuple(sorted(((as_python(one), read(value)) for one, value in argument), key=repr))


def _natural(name: str, value: Any) -> int:
    number = to_integer(value)
    if number is None or number < 0:
        raise OptionError(f"{name} must be an integer, 0 or more; got {value!r}.")
    return number


def _each(value: Any) -> Iterable[Any]:
    several = isinstance(value, Iterable) and not isinstance(value, str)
    return each("a selection", value, OptionError) if several else (value,)


def as_python(value: Any) -> Any:
    """Numbers of numpy as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _flags(values: NDArray[Any], name: str) -> Bools:
    """An attribute of booleans; None and NaN are False."""
    if values.dtype == np.bool_:
        return values
    entries = [False if unlabeled(entry) else entry for entry in values.tolist()]
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
    return not unlabeled(entry) and bool(entry == value)


@dataclass(frozen=True, eq=False)
class GroupCapacities:
    """Limits on nested or disjoint sets of documents over all positions. of_document: the limits of each document. The
    admissible choices of documents are a laminar matroid [ORM, section 7.1]: the greedy pass from the best score down,
    skipping documents that a limit excludes, maximizes Σ c_i s_π(i) for every non-increasing c >= 0."""

    k: int
    limits: tuple[int, ...]
    of_document: tuple[tuple[int, ...], ...]

    @classmethod
    def from_specs(
        cls, specs: Iterable[ConstraintSpec], attributes: Attributes, n: int, k: int
    ) -> GroupCapacities | None:
        """The constraints as limits; None if some are not limits over all positions, or if they overlap."""
        found: list[tuple[Ints, int]] = []
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

    def order(self, scores: Floats) -> Ints:
        """The documents of the ranking, best first, ties in input order; fewer than k if the limits allow no more."""
        left = list(self.limits)
        assigned: list[int] = []
        for document in np.argsort(-scores, kind="stable").tolist():
            limits = self.of_document[document]
            if all(left[limit] > 0 for limit in limits):
                assigned.append(document)
                for limit in limits:
                    left[limit] -= 1
                if len(assigned) == self.k:
                    break
        return np.array(assigned, dtype=np.int64)


def limits_count(spec: ConstraintSpec) -> bool:
    """Whether a constraint limits counts from above: `at_most` a count, or `forbid`; not soft."""
    return spec.penalty is None and (spec.kind == "forbid" or (spec.kind == "at_most" and bool(spec.args)))


def _document_limits(spec: ConstraintSpec, attributes: Attributes, n: int, k: int) -> list[tuple[Ints, int]] | None:
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
