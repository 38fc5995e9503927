"""The bound of the regret of a measure, or of a mix of measures, on queries.

A mix is a weighted sum or maximum of losses of the same scores, query by query:

    separate    loss_q = Σ_l C_l loss_lq
    shared      loss_q = max_l C_l loss_lq                       one slack for all [paper 4, SVMcombo]

Each part is C_l (H_l - R_l) with H_l and R_l convex. Their maximum is

    max_l [C_l H_l + Σ_{k ≠ l} C_k R_k] - Σ_l C_l R_l

a difference of convex functions. The active part gives a plane of the first term: its slope plus other references.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from formulations.arrays import Floats, Ints
from formulations.solvers.solver import Solver
from rankopt.data.canonical_order import Arrangement, rows_of
from rankopt.errors import OptionError
from rankopt.losses import FEATURE_MAPS, get_bound, get_feature_map
from rankopt.losses.loss import Loss, LossValue, is_nonnegative
from rankopt.losses.margin import Bound, MarginLoss
from rankopt.losses.oracle import JointFeatureMap, MaxOracle
from rankopt.losses.oracle_positional import orderable, with_distinct_grades
from rankopt.losses.position_weights import PositionWeights, parse_position_weights
from rankopt.measures.measure import Measure
from rankopt.measures.notation import MeasureMix, parse


@dataclass(frozen=True)
class RegretBound:
    """An upper bound of the regret of `measure` under a feature map and a `bound`. position_weights: for maps that use
    them. mixed: whether it is a part of a mix. The loss of a `MeasureMix` combines those of its parts, each under its
    own map, or this one by default."""

    measure: Measure
    feature_map: JointFeatureMap
    bound: Bound
    position_weights: PositionWeights
    mixed: bool = False

    @classmethod
    def named(cls, measure: Any, feature_map: Any, bound: Any, position_weights: Any) -> RegretBound:
        """From options as names or objects; OptionError and MeasureError for incompatible ones."""
        parsed, common = parse(measure), get_feature_map(feature_map)
        regret = cls(parsed, common, get_bound(bound), parse_position_weights(position_weights))
        if isinstance(parsed, MeasureMix):
            _ = [get_feature_map(part.feature_map or feature_map, part.measure) for part in parsed.parts]
        else:
            get_feature_map(feature_map, parsed)
        regret._check_reference()
        return regret

    @property
    def map_name(self) -> str:
        """The map's name, or that of its class."""
        known = [name for name in FEATURE_MAPS if get_feature_map(name) is self.feature_map]
        return known[0] if known else getattr(self.feature_map, "__name__", type(self.feature_map).__name__)

    @property
    def parts(self) -> tuple[tuple[float, RegretBound], ...]:
        """What a mix is made of, with weights; itself where it is none."""
        if not isinstance(self.measure, MeasureMix):
            return ((1.0, self),)
        maps = [get_feature_map(part.feature_map or self.feature_map) for part in self.measure.parts]
        return tuple(
            (part.weight, replace(self, measure=part.measure, feature_map=own, mixed=True))
            for part, own in zip(self.measure.parts, maps, strict=True)
        )

    def _check_reference(self) -> None:
        """OptionError for a part whose map does not accept the reference of the bound."""
        word, mixed = getattr(self.bound, "reference", None), isinstance(self.measure, MeasureMix)
        known = [(part, getattr(part.feature_map, "references", (word,))) for _, part in self.parts]
        for part, words in known:
            if word is None or word in words:
                continue
            names = " nor ".join(map(repr, words))
            wrong = f"target_ranking {word!r} is neither {names}, as feature_map {part.map_name!r} requires"
            if not mixed:
                raise OptionError(f"{wrong}; use one of these")
            of_all = [repr(one) for one in words if all(one in others for _, others in known)]
            cure = f"use {' or '.join(of_all)}, which all parts accept" if of_all else "leave it out"
            raise OptionError(f"{wrong} for part {part.measure} of {self.measure}; {cure}")

    def bind(self, queries: Arrangement, solver: Solver) -> tuple[Arrangement, Loss]:
        """Those of the queries that have something to order, and their loss; DataError where there are none."""
        chosen = with_distinct_grades(queries, self.measure)
        return chosen, self.loss(chosen, solver)

    def loss(self, queries: Arrangement, solver: Solver) -> Loss:
        """The loss of these queries, all of which have something to order."""
        if not isinstance(self.measure, MeasureMix):
            return MarginLoss(self.argmax(queries, solver), self.bound)
        parts = []
        for weight, regret in self.parts:
            own = np.flatnonzero(orderable(queries.graded, queries.offsets, regret.measure))
            if own.size:
                loss = MarginLoss(regret.argmax(queries.select(own), solver), self.bound)
                parts.append(PartOf(weight, loss, own, rows_of(queries.offsets, own)))
        return Combination(tuple(parts), queries.offsets, self.measure.slack == "shared")

    def argmax(self, queries: Arrangement, solver: Solver) -> MaxOracle:
        """The argmax of these queries, all of which have something to order, of a measure that is no mix."""
        found = self.feature_map.from_queries(queries, self.measure, self.position_weights, solver)
        mixed: MaxOracle = getattr(found, "in_mixes", found)
        return mixed if self.mixed else found


@dataclass(frozen=True, eq=False)
class PartOf:
    """C_l loss_l. queries: increasing indices of the combination's queries on which the part is defined; 0 elsewhere.
    rows: the combination's documents in these queries."""

    weight: float
    loss: Loss
    queries: Ints
    rows: Ints

    def select_queries(self, first: int, last: int, offsets: Ints) -> PartOf | None:
        """Restriction to the queries first <= q < last of the combination; None if undefined on all."""
        begin, end = np.searchsorted(self.queries, [first, last]).tolist()
        if begin == end:
            return None
        low, high = np.searchsorted(self.rows, offsets[[first, last]]).tolist()
        loss = self.loss if end - begin == self.queries.size else self.loss.select_queries(begin, end)
        return PartOf(self.weight, loss, self.queries[begin:end] - first, self.rows[low:high] - offsets[first])


@dataclass(frozen=True, eq=False)
class Combination:
    """parts: the losses. offsets: (m + 1,) of the combined queries. shared: maximum of the parts instead of their sum.
    fixed: the reference of a majorant of the maximum."""

    parts: tuple[PartOf, ...]
    offsets: Ints
    shared: bool = False
    fixed: Floats | None = None

    @property
    def convex(self) -> bool:
        return self.fixed is not None or all(part.loss.convex for part in self.parts)

    @property
    def is_nonnegative(self) -> bool:
        return all(is_nonnegative(part.loss) for part in self.parts)

    @property
    def unit(self) -> Floats:
        """(m,) the λ that is natural to slopes of this size, in units of that of slopes of 1: C λ of C times a loss."""
        units = np.zeros((len(self.parts), self.offsets.size - 1))
        for own, part in zip(units, self.parts, strict=True):
            own[part.queries] = part.weight * getattr(part.loss, "unit", 1.0)
        return np.asarray(units.max(axis=0) if self.shared else units.sum(axis=0))

    def at(self, scores: Floats, prove: bool = False) -> LossValue:
        """Values, bounds and planes at `scores`, (N,)."""
        found = [self._part_at(part, scores, prove) for part in self.parts]
        seconds = sum(one.seconds for one in found)
        reference = _sum([one.reference for one in found])
        if not self.shared:
            value, bound, height, assigned = (
                _sum([getattr(one, name) for one in found]) for name in ("value", "bound", "height", "assigned")
            )
            return LossValue(value, bound, height, assigned, reference, seconds)
        values = np.array([one.value for one in found])
        largest, query = values.argmax(axis=0), np.repeat(np.arange(len(values[0])), np.diff(self.offsets))
        chosen, which = np.arange(values.shape[1]), largest[query]
        every = np.arange(query.size)
        own = np.array([one.assigned - one.reference for one in found])[which, every]
        height = np.array([one.height for one in found])[largest, chosen]
        value, bound = values.max(axis=0), np.array([one.bound for one in found]).max(axis=0)
        fixed = reference if self.fixed is None else self.fixed
        if self.fixed is not None:
            more = np.add.reduceat((reference - fixed) * scores, self.offsets[:-1])
            value, bound = value + more, bound + more
        return LossValue(value, bound, height, own + reference, fixed, seconds)

    def majorant(self, scores: Floats) -> Combination:
        """The convex loss that is nowhere below this one and touches it at `scores`; itself if convex."""
        if self.convex:
            return self
        if self.shared:
            return replace(self, fixed=self.reference_weights(scores))
        parts = [replace(part, loss=part.loss.majorant(scores[part.rows])) for part in self.parts]
        return replace(self, parts=tuple(parts))

    def select_queries(self, first: int, last: int) -> Combination:
        """The loss of the queries first <= q < last."""
        low, high = self.offsets[[first, last]].tolist()
        parts = [part.select_queries(first, last, self.offsets) for part in self.parts]
        return Combination(
            tuple(part for part in parts if part is not None),
            self.offsets[first : last + 1] - low,
            self.shared,
            None if self.fixed is None else self.fixed[low:high],
        )

    def reference_weights(self, scores: Floats) -> Floats:
        """Σ_l C_l r̄_l at these scores."""
        if self.fixed is not None:
            return self.fixed
        references = [part.weight * part.loss.reference_weights(scores[part.rows]) for part in self.parts]
        n = int(self.offsets[-1])
        return _sum([_scatter(part.rows, own, n) for part, own in zip(self.parts, references, strict=True)])

    def _part_at(self, part: PartOf, scores: Floats, prove: bool) -> LossValue:
        """A part's loss in the combination's queries, times its weight."""
        found = part.loss.at(scores[part.rows], prove)
        m, n = self.offsets.size - 1, int(self.offsets[-1])
        value, bound, height = (
            _scatter(part.queries, part.weight * one, m) for one in (found.value, found.bound, found.height)
        )
        assigned, reference = (_scatter(part.rows, part.weight * one, n) for one in (found.assigned, found.reference))
        return LossValue(value, bound, height, assigned, reference, found.seconds)


def _scatter(indices: Ints, values: Floats, size: int) -> Floats:
    """(size,) the values at their indices, 0 elsewhere."""
    padded = np.zeros(size)
    padded[indices] = values
    return padded


def _sum(arrays: list[Floats]) -> Floats:
    """Added up from the first to the last."""
    return np.asarray(sum(arrays, np.zeros_like(arrays[0])))
