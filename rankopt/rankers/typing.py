"""Types of the options of rankers: a type checker knows every name that a table holds. A test compares both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from formulations.typing import Sparse, SupportsArray
from rankopt.data.queries import Queries
from rankopt.data.typing import Frame, Ids, Pairs, Rows, Sizes, Values
from rankopt.ratings.table import Ratings

if TYPE_CHECKING:
    from formulations.solvers.solver import Solver
    from rankopt.losses.margin import Bound
    from rankopt.losses.oracle import JointFeatureMap
    from rankopt.losses.position_weights import PositionWeights
    from rankopt.measures.measure import Measure
    from rankopt.optimize.concave_convex import Method
    from rankopt.persistence.checkpoint import Checkpoint
    from rankopt.risk.risk import Engine


BoundName = Literal["convex", "tie-aware", "nonconvex"]
MapName = Literal["positional", "pairwise", "first-relevant"]
MethodName = Literal["block_frank_wolfe", "bundle", "cutting_planes", "steepest_subgradient", "stochastic_subgradient"]
EngineName = Literal["dask", "serial", "threads"]
PenaltyName = Literal["l1", "l2"]
NormalizeName = Literal["sum", "zscore", "minmax", "rank"]
StartName = Literal["zeros", "regression", "ridge", "ranksvm"]
SlotStartName = Literal["zeros", "regression"]
DirectStartName = Literal["smooth", "ridge", "zeros"]
SmoothStartName = Literal["ridge", "ranksvm", "regression"]
ReferenceName = Literal["average", "first", "ideal", "hardest"]
LossName = Literal[
    "pairwise", "ordinal", "preferences", "smooth", "squared",
    "listnet", "listmle", "lambdaloss", "approx-ndcg", "neural-ndcg",
]  # fmt: skip
StrengthName = Literal["scale", "auto"]

AnyMeasure: TypeAlias = "str | Measure"
AnyBound: TypeAlias = "BoundName | Bound"
AnyMap: TypeAlias = "MapName | JointFeatureMap"
AnyMethod: TypeAlias = "MethodName | Method"
AnyEngine: TypeAlias = "EngineName | Engine"
AnySolver: TypeAlias = "str | Solver"
Normalize: TypeAlias = NormalizeName | Literal["auto"] | None
Missing: TypeAlias = Literal["error", "indicator"]
Start: TypeAlias = StartName | SupportsArray | Sequence[float] | None
SlotStart: TypeAlias = SlotStartName | SupportsArray | Sequence[Sequence[float]] | None
SmoothStart: TypeAlias = SmoothStartName | SupportsArray | Sequence[float]
Strength: TypeAlias = float | StrengthName | None
Limits: TypeAlias = tuple[float | None, float | None]
CoefBounds: TypeAlias = Limits | Sequence[Limits] | Mapping[str, Limits] | SupportsArray | None
Callbacks: TypeAlias = Sequence[Callable[..., bool | None]]
Seed: TypeAlias = int | np.integer[Any] | np.random.RandomState | np.random.Generator | None
AnyPositionWeights: TypeAlias = "str | PositionWeights | SupportsArray | Sequence[float]"
"""A family with parameters as text ("power(0.5)@10"), or position weights."""
AnyCheckpoint: TypeAlias = "str | PathLike[str] | Checkpoint | None"

AnyRows: TypeAlias = Queries | Rows
AnyRatings: TypeAlias = Ratings | Pairs
Document: TypeAlias = SupportsArray | Sparse | Frame | Sequence[float]  # the features (d,) of one
Weights: TypeAlias = Values | Mapping[Any, float]  # one a query: in their order, or by id
EvalSet: TypeAlias = Queries | tuple[Rows, Values] | Sequence[Queries | tuple[Rows, Values]]
EvalIds: TypeAlias = Ids | Sequence[Ids]
EvalSizes: TypeAlias = Sizes | Sequence[Sizes]
