"""The bound of a measure's regret: which queries have distinct grades, and the loss of these."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from formulations.solvers.solver import Solver
from rankopt.data.canonical_order import Arrangement, rows_of
from rankopt.errors import OptionError
from rankopt.losses import FEATURE_MAPS, get_bound, get_feature_map
from rankopt.losses.combination import Combination, PartOf
from rankopt.losses.loss import Loss
from rankopt.losses.margin import Bound, MarginLoss
from rankopt.losses.oracle import JointFeatureMap, MaxOracle
from rankopt.losses.oracle_positional import orderable, with_distinct_grades
from rankopt.losses.position_weights import Decay, parse_position_weights
from rankopt.measures.measure import Measure
from rankopt.measures.notation import MeasureMix, parse


@dataclass(frozen=True)
class RegretBound:
    """An upper bound of the regret of `measure` under a feature map and a `bound`. position_weights: for maps that use
    them. mixed: whether it is a part of a mix.

    The loss of a `MeasureMix` combines those of its parts, each under its own map, or this one by default.
    """

    measure: Measure
    feature_map: JointFeatureMap
    bound: Bound
    position_weights: Decay
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
        return tuple(
            (
                part.weight,
                replace(
                    self,
                    measure=part.measure,
                    feature_map=get_feature_map(part.feature_map or self.feature_map),
                    mixed=True,
                ),
            )
            for part in self.measure.parts
        )

    def _check_reference(self) -> None:
        """OptionError for a part whose map does not accept the reference of the bound."""
        word, mixed = getattr(self.bound, "reference", None), isinstance(self.measure, MeasureMix)
        known = [(part, getattr(part.feature_map, "references", (word,))) for _, part in self.parts]
        for part, words in known:
            if word is None or word in words:
                continue
            wrong = f"reference {word!r} is neither {' nor '.join(map(repr, words))}, as map {part.map_name!r} requires"
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
            return MarginLoss.build(self.argmax(queries, solver), self.bound)
        parts = []
        for weight, regret in self.parts:
            own = np.flatnonzero(orderable(queries.graded, queries.offsets, regret.measure))
            if own.size:
                loss = MarginLoss.build(regret.argmax(queries.select(own), solver), self.bound)
                parts.append(PartOf(weight, loss, own, rows_of(queries.offsets, own)))
        return Combination(tuple(parts), queries.offsets, self.measure.slack == "shared")

    def argmax(self, queries: Arrangement, solver: Solver) -> MaxOracle:
        """The argmax of these queries, all of which have something to order, of a measure that is no mix."""
        found = self.feature_map.from_queries(queries, self.measure, self.position_weights, solver)
        mixed: MaxOracle = getattr(found, "in_mixes", found)
        return mixed if self.mixed else found
