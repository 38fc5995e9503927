"""What a marginal ranking may owe to groups of documents: parity, proportion to merit, limits.

e[j] = Σ_i attention[i] P[i, j] is the exposure of document j, mean_G the mean over the documents j of group G, u merit.

    DemographicParity    mean_G e                   equal for all groups     [Singh and Joachims 2018, section 4.1]
    DisparateTreatment   mean_G e / mean_G u        equal for all groups     [section 4.2]
    DisparateImpact      mean_G (u e) / mean_G u    equal for all groups     [section 4.3; u e are its clicks]
    ExposureLimits       mean_G e                   between limits for each group

>>> from formulations.problems.marginal_ranking import marginal_ranking
>>> print(marginal_ranking([[3.0, 2.0, 1.0]], constraints=DemographicParity(["a", "a", "b"], difference_bound=0.1)))
maximise    3 P[0, 0] + 2 P[0, 1] + P[0, 2]
subject to  position[0]: P[0, 0] + P[0, 1] + P[0, 2] = 1
            document[0]: P[0, 0] <= 1
            document[1]: P[0, 1] <= 1
            document[2]: P[0, 2] <= 1
            demographic_parity['a']: 0 <= 0.5 P[0, 0] + 0.5 P[0, 1] - level['demographic_parity'] <= 0.1
            demographic_parity['b']: 0 <= P[0, 2] - level['demographic_parity'] <= 0.1
            0 <= P[0, 0], P[0, 1], P[0, 2], level['demographic_parity'] <= 1
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, vstack

from formulations.arrays import Floats, finite
from formulations.brevity import CompactReprMixin
from formulations.errors import InvalidProblem
from formulations.marginals.groups import DocumentGroups

__all__ = [
    "Constraint",
    "DemographicParity",
    "DisparateImpact",
    "DisparateTreatment",
    "ExposureLimits",
    "ExposureRows",
]


@dataclass(frozen=True, eq=False)
class ExposureRows(CompactReprMixin):
    """lower <= cells · P.ravel() + level · t <= upper, with a variable t in [0, 1] of its own where `level` is given.

    label, index: the names of the rows, as in `Block`.
    """

    label: str
    index: tuple[Hashable, ...]
    cells: csr_array
    lower: Floats
    upper: Floats
    level: Floats | None = None


class Constraint(Protocol):
    """What `marginal_ranking` takes as a constraint."""

    def rows(self, attention: Floats, documents: int) -> ExposureRows: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class _Parity(CompactReprMixin):
    """What a group gets for its merit, the same for all groups, or nearly.

    difference_bound: no two groups differ by more (0, exactly equal, by default).
    ratio_bound: no group gets less than this part of what another gets (0.8 is the four-fifths rule). One of the two.
    protected: the label of a group. It must not get less than others, and may get more; others are not compared.
    """

    difference_bound: float | None = None
    ratio_bound: float | None = None
    protected: Hashable = None

    label: ClassVar[str]

    def _stated(self, given: ArrayLike, attention: Floats, weight: Floats, merit: Floats, unit: float) -> ExposureRows:
        """Rows for t <= mean_G (weight e) / mean_G merit <= t + difference_bound, and with `ratio_bound` <= t / ratio.

        merit is in units of `unit`, which makes its least group mean 1.
        """
        groups = DocumentGroups.of(given, merit.size)
        if len(groups.labels) < 2:
            raise InvalidProblem(f"{self.label} compares groups, but all documents are in {groups.labels}; give two")
        difference, ratio = self._bounds()
        deserved, share = groups.mean(merit), groups.exposure(attention, weight)
        favoured = np.ones(deserved.size, dtype=bool)
        if self.protected is not None:  # t is then what this group gets, and bounds the others from above only
            favoured[:] = False
            favoured[groups.place(self.protected)] = True
        level = -deserved * attention.max()
        if ratio == 1.0:
            lower, slack = np.where(favoured, 0.0, -np.inf), difference * unit * deserved
            return ExposureRows(self.label, groups.names(), share, lower, slack, level)
        least = [f"{name} least" for name in groups.names(favoured)]
        most = [f"{name} most" for name in groups.names()]
        return ExposureRows(
            self.label,
            (*least, *most),
            csr_array(vstack([share[favoured], ratio * share])),
            np.repeat([0.0, -np.inf], [len(least), len(most)]),
            np.repeat([np.inf, 0.0], [len(least), len(most)]),
            np.concatenate([level[favoured], level]),
        )

    def _bounds(self) -> tuple[float, float]:
        """Difference and ratio, each without effect where it is not given."""
        if self.difference_bound is not None and self.ratio_bound is not None:
            raise InvalidProblem(f"{self.label} takes difference_bound or ratio_bound, not both; give two constraints")
        difference = 0.0 if self.difference_bound is None else float(self.difference_bound)
        ratio = 1.0 if self.ratio_bound is None else float(self.ratio_bound)
        if not 0.0 <= difference < np.inf:
            raise InvalidProblem(f"difference_bound is {difference}, but must be a number that is not negative")
        if not 0.0 < ratio <= 1.0:
            raise InvalidProblem(f"ratio_bound is {ratio}, but must be above 0 and at most 1")
        return difference, ratio


@dataclass(frozen=True, eq=False)
class DemographicParity(_Parity):
    """Groups have equal mean exposure. groups: (n,) the label of each document, None for one in no group."""

    groups: Any
    label: ClassVar[str] = "demographic_parity"

    def rows(self, attention: Floats, documents: int) -> ExposureRows:
        ones = np.ones(documents)
        return self._stated(self.groups, attention, ones, ones, 1.0)


@dataclass(frozen=True, eq=False)
class DisparateTreatment(_Parity):
    """Groups have mean exposure in proportion to their mean merit. merit: (n,) not negative, such as relevance.

    `difference_bound` is in units of exposure per merit.
    """

    groups: Any
    merit: Any
    label: ClassVar[str] = "disparate_treatment"

    def rows(self, attention: Floats, documents: int) -> ExposureRows:
        merit, unit = _merit(self.groups, self.merit, documents)
        stated = self._stated(self.groups, attention, np.ones(documents), merit, unit)
        groups = DocumentGroups.of(self.groups, documents)
        if self.protected is None and self._bounds() == (0.0, 1.0) and (groups.member >= 0).all():
            deserved = groups.mean(merit)
            owed = deserved * attention.sum() / (groups.sizes @ deserved)
            groups.check_reachable(attention, owed, owed, "allow a difference_bound or a ratio_bound")
        return stated


@dataclass(frozen=True, eq=False)
class DisparateImpact(_Parity):
    """Groups have mean clicks (merit times exposure) in proportion to their mean merit. merit: (n,) not negative."""

    groups: Any
    merit: Any
    label: ClassVar[str] = "disparate_impact"

    def rows(self, attention: Floats, documents: int) -> ExposureRows:
        merit, _ = _merit(self.groups, self.merit, documents)
        return self._stated(self.groups, attention, merit, merit, 1.0)


@dataclass(frozen=True, eq=False)
class ExposureLimits(CompactReprMixin):
    """Each group's mean exposure is between limits: a number for every group, or a mapping from label to number."""

    groups: Any
    lower: float | Mapping[Any, float] = 0.0
    upper: float | Mapping[Any, float] = np.inf

    def rows(self, attention: Floats, documents: int) -> ExposureRows:
        groups = DocumentGroups.of(self.groups, documents)
        low, high = groups.limits("lower", self.lower, 0.0), groups.limits("upper", self.upper, np.inf)
        groups.check_reachable(attention, low, high, "change the limits")
        return ExposureRows("exposure", groups.names(), groups.exposure(attention, np.ones(documents)), low, high)


def _merit(groups: Any, given: ArrayLike, documents: int) -> tuple[Floats, float]:
    """Merit in units of the least group mean, and that unit."""
    merit = finite("merit", given, 1)
    if merit.size != documents or (merit < 0).any():
        raise InvalidProblem(f"merit needs {documents} numbers, one a document and none negative; got {merit}")
    split = DocumentGroups.of(groups, documents)
    means = split.mean(merit)
    if not means.min() > 0:
        label = split.labels[int(means.argmin())]
        raise InvalidProblem(
            f"group {label!r} has mean merit 0, and no exposure is in proportion to that; give it merit, or None for "
            "its label to leave it out"
        )
    return merit / means.min(), float(means.min())
