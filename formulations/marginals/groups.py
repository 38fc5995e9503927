"""Documents by group, the exposure of groups as rows over the cells of a ranking, and how much is within reach."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, kron

from formulations.arrays import Bools, Floats, Ints, frozen
from formulations.brevity import CompactReprMixin
from formulations.errors import Infeasible, InvalidProblem
from formulations.sets.cells import unlabelled

__all__ = ["DocumentGroups"]

SLACK = 1e-9
"""The part of all attention by which sums of exposure may differ from what positions give."""


@dataclass(frozen=True, eq=False)
class DocumentGroups(CompactReprMixin):
    """Disjoint groups, in the order of their first documents. member[j] is the group of document j, -1 for none."""

    labels: tuple[Hashable, ...]
    member: Ints

    @classmethod
    def of(cls, groups: Any, documents: int) -> DocumentGroups:
        """From one label a document; None and NaN are no label."""
        if isinstance(groups, str | Mapping) or not isinstance(groups, Iterable):
            raise InvalidProblem(f"groups must hold one label a document, and is a {type(groups).__name__}")
        given = groups.tolist() if hasattr(groups, "tolist") else list(groups)
        if len(given) != documents:
            raise InvalidProblem(f"groups holds {len(given)} labels for {documents} documents; give one each")
        places: dict[Hashable, int] = {}
        member = np.full(documents, -1, dtype=np.int64)
        for j, label in enumerate(given):
            if isinstance(label, tuple | frozenset) or not isinstance(label, Hashable):
                raise InvalidProblem(
                    f"document {j} has {label!r} for its group, but needs one label; join labels into a text, or give "
                    "a constraint for each"
                )
            if not unlabelled(label):
                member[j] = places.setdefault(label, len(places))
        if not places:
            raise InvalidProblem("groups holds no label but None; put two documents in groups at least")
        return cls(tuple(places), frozen(member))

    @property
    def sizes(self) -> Ints:
        return np.bincount(self.member[self.member >= 0], minlength=len(self.labels))

    def names(self, chosen: Bools | None = None) -> tuple[str, ...]:
        """The labels as text, as rows are named by them."""
        kept = range(len(self.labels)) if chosen is None else np.flatnonzero(chosen)
        return tuple(str(self.labels[g]) for g in kept)

    def place(self, label: Hashable) -> int:
        """Which group has this label."""
        if label not in self.labels:
            raise InvalidProblem(f"no document is in group {label!r}; groups are {', '.join(map(repr, self.labels))}")
        return self.labels.index(label)

    def limits(self, name: str, given: float | Mapping[Any, float], default: float) -> Floats:
        """One limit a group, from one number for all or from a mapping."""
        values = np.full(len(self.labels), default if isinstance(given, Mapping) else given, dtype=np.float64)
        if isinstance(given, Mapping):
            for label, value in given.items():
                values[self.place(label)] = value
        wrong = np.isnan(values) | (values == -default if default else np.isposinf(values))
        if wrong.any():
            label, value = self.labels[int(wrong.argmax())], values[wrong][0]
            raise InvalidProblem(f"the {name} limit of group {label!r} is {value}, which no exposure can keep")
        return values

    def mean(self, values: Floats) -> Floats:
        """The mean of one value a document over each group."""
        inside = self.member >= 0
        return np.bincount(self.member[inside], values[inside], len(self.labels)) / self.sizes

    def exposure(self, attention: Floats, weight: Floats) -> csr_array:
        """(groups, k·n): row g gives mean_g (weight[j] Σ_i attention[i] P[i, j])."""
        inside = np.flatnonzero(self.member >= 0)
        group = self.member[inside]
        share = csr_array((weight[inside] / self.sizes[group], (group, inside)), (len(self.labels), self.member.size))
        return csr_array(kron(attention[None, :], share))

    def check_reachable(self, attention: Floats, lower: Floats, upper: Floats, cure: str) -> None:
        """Raise `Infeasible` if no ranking gives mean exposures within these limits; name groups that cannot have them.

        Exposures within reach are those that attention majorises (Hardy, Littlewood and Pólya): no c documents
        have more than the c largest attentions, or less than the c smallest, those beyond position k being 0. With
        limits for groups, the groups that ask for most, or allow least, are the hardest (Frank's box theorem).
        """
        largest = np.concatenate([np.sort(attention)[::-1], np.zeros(self.member.size - attention.size)])
        for limit, given, verb, sign, edge in (
            (lower, largest, "at least", 1.0, "at most"),
            (upper, largest[::-1], "at most", -1.0, "at least"),
        ):
            order = np.argsort(-sign * limit, kind="stable")
            count = np.cumsum(self.sizes[order])
            asked, reach = np.cumsum((self.sizes * limit)[order]), np.cumsum(given)[count - 1]
            excess = np.where(np.isfinite(asked), sign * (asked - reach), -np.inf)
            worst = int(excess.argmax())
            if excess[worst] > SLACK * attention.sum():
                names = ", ".join(repr(self.labels[g]) for g in order[: worst + 1])
                raise Infeasible(
                    f"group(s) {names} must have {verb} {asked[worst]:.6g} of exposure in all, but {count[worst]} "
                    f"document(s) get {edge} {reach[worst]:.6g}; {cure}"
                )
