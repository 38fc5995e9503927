"""What a ranker's options may be, as types: a type checker knows every name that a table holds, and a slip is an error
before anything runs. The tables stay where they are; a test holds both together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from formulations.solvers.solver import Solver
    from rankopt.losses.argmax import Map
    from rankopt.losses.margin import Bound
    from rankopt.measures.measure import Measure
    from rankopt.optimize.method import Method
    from rankopt.risk.risk import Engine

BoundName = Literal["convex", "tie-aware", "nonconvex"]
MapName = Literal["positional", "pairwise", "first-relevant"]
MethodName = Literal["block_frank_wolfe", "bundle", "cutting_planes", "steepest_subgradient", "stochastic_subgradient"]
EngineName = Literal["dask", "processes", "serial", "threads"]
PenaltyName = Literal["l1", "l2"]
NormalizeName = Literal["sum", "zscore", "minmax", "rank"]
StartName = Literal["zeros", "regression", "ridge", "ranksvm"]
ReferenceName = Literal["average", "first", "ideal", "hardest"]
LossName = Literal["pairwise", "ordinal", "preferences", "rescaled", "smooth", "squared"]
StrengthName = Literal["scale", "auto"]

AnyMeasure: TypeAlias = "str | Measure"
AnyBound: TypeAlias = "BoundName | Bound"
AnyMap: TypeAlias = "MapName | Map"
AnyMethod: TypeAlias = "MethodName | Method"
AnyEngine: TypeAlias = "EngineName | Engine"
AnySolver: TypeAlias = "str | Solver"
Normalize: TypeAlias = NormalizeName | None
Start: TypeAlias = "StartName | ArrayLike | None"
Strength: TypeAlias = float | StrengthName | None
Callbacks: TypeAlias = Sequence[Callable[..., bool | None]]
Seed: TypeAlias = Any
"""None, a whole number, or a generator: scikit-learn's own word for it has no type."""
