"""Exposure constraints of marginal rankings for groups of documents: parity, proportion to merit, limits.

e[j] = Σ_i attention[i] P[i, j] is the exposure of document j, mean_G the mean over the documents j of group G, u merit.

    DemographicParity    mean_G e                   equal for all groups     [Singh and Joachims 2018, section 4.1]
    DisparateTreatment   mean_G e / mean_G u        equal for all groups     [section 4.2]
    DisparateImpact      mean_G (u e) / mean_G u    equal for all groups     [section 4.3; u e are its clicks]
    ExposureBounds       mean_G e                   between limits for each group

Each compiles to rows over the cells of a ranking, one for each group, and computes which exposures are attainable.

>>> from formulations.gallery.assignments import marginal_ranking
>>> print(marginal_ranking([[3.0, 2.0, 1.0]], constraints=DemographicParity(["a", "a", "b"], difference_bound=0.1)))
maximize    3 P[0, 0] + 2 P[0, 1] + P[0, 2]
subject to  position[0]: P[0, 0] + P[0, 1] + P[0, 2] = 1
            document[0]: P[0, 0] <= 1
            document[1]: P[0, 1] <= 1
            document[2]: P[0, 2] <= 1
            demographic_parity['a']: 0 <= 0.5 P[0, 0] + 0.5 P[0, 1] - level['demographic_parity'] <= 0.1
            demographic_parity['b']: 0 <= P[0, 2] - level['demographic_parity'] <= 0.1
            0 <= P[0, 0], P[0, 1], P[0, 2], level['demographic_parity'] <= 1
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, kron, vstack

from formulations.arrays import Bools, Floats, Ints, check_no_mask, each, finite, frozen
from formulations.constraints.constraint import unlabeled
from formulations.display import CompactReprMixin
from formulations.errors import InfeasibleError, InvalidProblemError

SLACK = 1e-9  # tolerance of sums of exposure, relative to the total attention


@dataclass(frozen=True, eq=False)
class DocumentGroups(CompactReprMixin):
    """Disjoint groups, in the order of their first documents. member[j] is the group of document j, -1 for none."""

    labels: tuple[Hashable, ...]
    member: Ints

    @classmethod
    def from_labels(cls, groups: Any, documents: int) -> DocumentGroups:
        """From one label per document; None and NaN are no label."""
        if isinstance(groups, str | Mapping) or not isinstance(groups, Iterable):
            raise InvalidProblemError(f"groups must hold one label a document, and is a {type(groups).__name__}")
        check_no_mask("groups", groups)
        entries = each("groups", groups.tolist() if hasattr(groups, "tolist") else groups)
        if len(entries) != documents:
            raise InvalidProblemError(f"groups holds {len(entries)} labels for {documents} documents; give one each")
        index: dict[Hashable, int] = {}
        member = np.full(documents, -1, dtype=np.int64)
        for j, label in enumerate(entries):
            if isinstance(label, tuple | frozenset) or not isinstance(label, Hashable):
                raise InvalidProblemError(
                    f"document {j} has {label!r} for its group, but needs one label; join labels into a text, or give "
                    "a constraint for each"
                )
            if not unlabeled(label):
                member[j] = index.setdefault(label, len(index))
        if not index:
            raise InvalidProblemError("groups holds no label but None; put two documents in groups at least")
        return cls(tuple(index), frozen(member))

    @property
    def sizes(self) -> Ints:
        return np.bincount(self.member[self.member >= 0], minlength=len(self.labels))

    def names(self, chosen: Bools | None = None) -> tuple[str, ...]:
        """The labels as text, as in the names of rows."""
        indices = range(len(self.labels)) if chosen is None else np.flatnonzero(chosen)
        return tuple(str(self.labels[g]) for g in indices)

    def index(self, label: Hashable) -> int:
        """Which group has this label."""
        if label not in self.labels:
            names = ", ".join(map(repr, self.labels))
            raise InvalidProblemError(f"no document is in group {label!r}; groups are {names}")
        return self.labels.index(label)

    def limits(self, name: str, given: float | Mapping[Any, float], default: float) -> Floats:
        """One limit per group, from one number for all or from a mapping."""
        stated: Mapping[Any, Any] = given if isinstance(given, Mapping) else dict.fromkeys(self.labels, given)
        values = np.full(len(self.labels), default)
        for label, value in stated.items():
            if not isinstance(value, Real):
                raise InvalidProblemError(
                    f"the {name} limit of group {label!r} must be a number; got {value!r:.80}. Pass lower= and upper= "
                    "for limits on both sides."
                )
            values[self.index(label)] = value
        wrong = np.isnan(values) | (values == -default if default else np.isposinf(values))
        if wrong.any():
            label, value = self.labels[int(wrong.argmax())], values[wrong][0]
            raise InvalidProblemError(f"the {name} limit of {label!r} is {value}, which no exposure meets; change it")
        return values

    def mean(self, values: Floats) -> Floats:
        """The mean over each group of one value per document."""
        inside = self.member >= 0
        return np.bincount(self.member[inside], values[inside], len(self.labels)) / self.sizes

    def exposure(self, attention: Floats, weight: Floats) -> csr_array:
        """(groups, k·n): row g computes mean_g (weight[j] Σ_i attention[i] P[i, j])."""
        inside = np.flatnonzero(self.member >= 0)
        group = self.member[inside]
        share = csr_array((weight[inside] / self.sizes[group], (group, inside)), (len(self.labels), self.member.size))
        return csr_array(kron(attention[None, :], share))

    def check_reachable(self, attention: Floats, lower: Floats, upper: Floats, cure: str) -> None:
        """Raise `InfeasibleError`, naming groups, if no ranking has mean exposures within these limits.

        Reachable exposures are those that attention majorizes (Hardy, Littlewood and Pólya): no c documents have more
        than the c largest attentions, or less than the c smallest, those beyond position k being 0. With limits for
        groups, the groups with the highest lower limits, or the lowest upper limits, are the hardest (Frank's box
        theorem).
        """
        largest = np.concatenate([np.sort(attention)[::-1], np.zeros(self.member.size - attention.size)])
        for limit, attention_sums, verb, sign, edge in (
            (lower, largest, "at least", 1.0, "at most"),
            (upper, largest[::-1], "at most", -1.0, "at least"),
        ):
            order = np.argsort(-sign * limit, kind="stable")
            count = np.cumsum(self.sizes[order])
            required, reach = np.cumsum((self.sizes * limit)[order]), np.cumsum(attention_sums)[count - 1]
            excess = np.where(np.isfinite(required), sign * (required - reach), -np.inf)
            worst = int(excess.argmax())
            if excess[worst] > SLACK * attention.sum():
                names = ", ".join(repr(self.labels[g]) for g in order[: worst + 1])
                raise InfeasibleError(
                    f"group(s) {names} must have {verb} {required[worst]:.6g} of exposure in all, but {count[worst]} "
                    f"document(s) get {edge} {reach[worst]:.6g}; {cure}"
                )


@dataclass(frozen=True, eq=False)
class ExposureRows(CompactReprMixin):
    """lower <= cells · P.ravel() + level · t <= upper, t in [0, 1], if it has a `level`; names as in `Block`."""

    label: str
    index: tuple[Hashable, ...]
    cells: csr_array
    lower: Floats
    upper: Floats
    level: Floats | None = None


class ExposureConstraint(Protocol):
    """The protocol of the constraints of `marginal_ranking`."""

    def rows(self, attention: Floats, documents: int) -> ExposureRows: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class _Parity(CompactReprMixin):
    """Exposure per merit, equal for all groups up to a bound; parameters as in `DemographicParity`."""

    difference_bound: float | None = None
    ratio_bound: float | None = None
    protected: Hashable = None

    label: ClassVar[str]

    def _parity_rows(
        self, labels: ArrayLike, attention: Floats, weight: Floats, merit: Floats, unit: float
    ) -> ExposureRows:
        """Rows for t <= mean_G (weight e) / mean_G merit <= t + difference_bound, and with `ratio_bound` <= t / ratio.

        merit is in units of `unit`, which makes its least group mean 1.
        """
        groups = DocumentGroups.from_labels(labels, merit.size)
        if len(groups.labels) < 2:
            raise InvalidProblemError(f"{self.label} compares groups; all documents are in {groups.labels}; give two")
        difference, ratio = self._bounds()
        deserved, share = groups.mean(merit), groups.exposure(attention, weight)
        favored = np.ones(deserved.size, dtype=bool)
        if self.protected is not None:  # t is then what this group gets, and bounds the others from above only
            favored[:] = False
            favored[groups.index(self.protected)] = True
        level = -deserved * attention.max()
        if ratio == 1.0:
            lower, slack = np.where(favored, 0.0, -np.inf), difference * unit * deserved
            return ExposureRows(self.label, groups.names(), share, lower, slack, level)
        least = [f"{name} least" for name in groups.names(favored)]
        most = [f"{name} most" for name in groups.names()]
        return ExposureRows(
            self.label,
            (*least, *most),
            csr_array(vstack([share[favored], ratio * share])),
            np.repeat([0.0, -np.inf], [len(least), len(most)]),
            np.repeat([np.inf, 0.0], [len(least), len(most)]),
            np.concatenate([level[favored], level]),
        )

    def _bounds(self) -> tuple[float, float]:
        """Difference and ratio, each without effect if absent."""
        if self.difference_bound is not None and self.ratio_bound is not None:
            raise InvalidProblemError(f"{self.label} takes difference_bound or ratio_bound, not both; give two")
        difference = 0.0 if self.difference_bound is None else float(self.difference_bound)
        ratio = 1.0 if self.ratio_bound is None else float(self.ratio_bound)
        if not 0.0 <= difference < np.inf:
            raise InvalidProblemError(f"difference_bound must be a nonnegative number; got {difference}.")
        if not 0.0 < ratio <= 1.0:
            raise InvalidProblemError(f"ratio_bound must be above 0 and at most 1; got {ratio}.")
        return difference, ratio


@dataclass(frozen=True, eq=False)
class DemographicParity(_Parity):
    """Groups have equal mean exposure. groups: (n,) the label of each document, None for a document without a group.

    difference_bound: the largest difference of two groups; default 0, equality. ratio_bound: the smallest ratio of two
    groups (0.8 is the four-fifths rule). Only one of the two. protected: the label of a group that must not get less
    than the others, and may get more; others are not compared.

    The exposure of positions is an argument of `marginal_ranking`, by default 1 / log2(1 + position).
    """

    groups: Any
    label: ClassVar[str] = "demographic_parity"

    def rows(self, attention: Floats, documents: int) -> ExposureRows:
        ones = np.ones(documents)
        return self._parity_rows(self.groups, attention, ones, ones, 1.0)


@dataclass(frozen=True, eq=False)
class DisparateTreatment(_Parity):
    """Groups have mean exposure in proportion to their mean merit. merit: (n,) not negative, such as relevance.

    difference_bound (in units of exposure per merit), ratio_bound, protected: as in `DemographicParity`.
    """

    groups: Any
    merit: Any
    label: ClassVar[str] = "disparate_treatment"

    def rows(self, attention: Floats, documents: int) -> ExposureRows:
        merit, unit = _merit(self.groups, self.merit, documents)
        stated = self._parity_rows(self.groups, attention, np.ones(documents), merit, unit)
        groups = DocumentGroups.from_labels(self.groups, documents)
        if self.protected is None and self._bounds() == (0.0, 1.0) and (groups.member >= 0).all():
            deserved = groups.mean(merit)
            owed = deserved * attention.sum() / (groups.sizes @ deserved)
            groups.check_reachable(attention, owed, owed, "allow a difference_bound or a ratio_bound")
        return stated


@dataclass(frozen=True, eq=False)
class DisparateImpact(_Parity):
    """Groups have mean clicks (merit times exposure) in proportion to their mean merit. merit: (n,) not negative.

    difference_bound, ratio_bound, protected: as in `DemographicParity`.
    """

    groups: Any
    merit: Any
    label: ClassVar[str] = "disparate_impact"

    def rows(self, attention: Floats, documents: int) -> ExposureRows:
        merit, _ = _merit(self.groups, self.merit, documents)
        return self._parity_rows(self.groups, attention, merit, merit, 1.0)


@dataclass(frozen=True, eq=False)
class ExposureBounds(CompactReprMixin):
    """Each group's mean exposure is between limits: a number for every group, or a mapping from label to number."""

    groups: Any
    lower: float | Mapping[Any, float] = 0.0
    upper: float | Mapping[Any, float] = np.inf

    def rows(self, attention: Floats, documents: int) -> ExposureRows:
        groups = DocumentGroups.from_labels(self.groups, documents)
        low, high = groups.limits("lower", self.lower, 0.0), groups.limits("upper", self.upper, np.inf)
        groups.check_reachable(attention, low, high, "change the limits")
        return ExposureRows("exposure", groups.names(), groups.exposure(attention, np.ones(documents)), low, high)


def _merit(groups: Any, merit_input: ArrayLike, documents: int) -> tuple[Floats, float]:
    """Merit in units of the least group mean, and that unit."""
    merit = finite("merit", merit_input, 1)
    if merit.size != documents:
        raise InvalidProblemError(f"merit must be {documents} numbers, one per document; got {merit.size}.")
    if (merit < 0).any():
        j = int(merit.argmin())
        raise InvalidProblemError(
            f"merit must not be negative; got {merit[j]:g} for document {j} ({(merit < 0).sum()} are negative). Map "
            "scores to probabilities or grades first."
        )
    split = DocumentGroups.from_labels(groups, documents)
    means = split.mean(merit)
    if not means.min() > 0:
        label = split.labels[int(means.argmin())]
        raise InvalidProblemError(
            f"group {label!r} has mean merit 0, and no exposure is in proportion to that; give it merit, or None for "
            "its label to leave it out"
        )
    return merit / means.min(), float(means.min())
