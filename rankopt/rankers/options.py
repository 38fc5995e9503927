"""Whether the options that all trained rankers share can work.

What a ranker's options may be, as types: a type checker knows every name that a table holds, and a slip is an error
before anything runs. The tables stay where they are; a test holds both together.

Features whose products leave double precision: the error names the feature and the cure.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from formulations.errors import InvalidProblemError
from formulations.typing import Sparse, SupportsArray
from rankopt.data.queries import Queries
from rankopt.data.typing import Frame, Ids, Pairs, Rows, Sizes, Values
from rankopt.errors import DataError, OptionError
from rankopt.optimize.least_squares import largest_magnitudes
from rankopt.rankers import STRENGTHS
from rankopt.ratings.table import Ratings

if TYPE_CHECKING:
    from formulations.solvers.solver import Solver
    from rankopt.losses.margin import Bound
    from rankopt.losses.oracle import JointFeatureMap
    from rankopt.losses.position_weights import Decay
    from rankopt.measures.measure import Measure
    from rankopt.optimize.method import Method
    from rankopt.persistence.checkpoint import Checkpoint
    from rankopt.risk.risk import Engine

Floats = NDArray[np.float64]


def check_options(
    *,
    lam: Any,
    C: Any,
    tol: Any,
    max_iter: Any,
    time_limit: Any,
    n_jobs: Any,
    callbacks: Any,
    engine: Any,
    **_others: Any,
) -> None:
    """Raise OptionError for a value that cannot work; the parameters of a ranker that are not named are its own."""
    if isinstance(lam, str) and lam not in STRENGTHS:
        raise OptionError(f"lam = {lam!r} is no number; give a positive one, or {' or '.join(map(repr, STRENGTHS))}")
    numbers_by_name = {
        "lam": 1.0 if isinstance(lam, str) else lam,
        "C": C,
        "tol": tol,
        "max_iter": max_iter,
        "time_limit": time_limit,
        "n_jobs": n_jobs,
    }
    for name, value in numbers_by_name.items():
        optional = name in ("lam", "C", "time_limit", "n_jobs")
        if math.isnan(number(value)) and not (value is None and optional):
            raise OptionError(f"{name} = {value!r} is no number")
    if not all(map(callable, callbacks if isinstance(callbacks, Iterable) else [None])):
        raise OptionError(f"callbacks = {callbacks!r} must be a sequence of functions (step, state)")
    if not 0 <= number(tol) < math.inf:
        raise OptionError(f"tol = {tol} is not a relative gap; pass a number >= 0, such as 1e-3")
    if not (number(max_iter) >= 1 and number(max_iter).is_integer()):
        raise OptionError(f"max_iter = {max_iter} is not a number of steps; pass an integer >= 1")
    if time_limit is not None and not time_limit > 0:
        raise OptionError(f"time_limit = {time_limit} is not a time limit; pass a positive number of seconds or None")
    if n_jobs is not None and not (number(n_jobs).is_integer() and n_jobs >= -1 and n_jobs != 0):
        raise OptionError(
            f"n_jobs = {n_jobs!r} is not a number of workers; pass an integer >= 1, or None or -1 for all cores"
        )
    if n_jobs not in (None, 1) and engine == "serial":
        raise OptionError(f"n_jobs = {n_jobs} needs an engine with workers, but engine is 'serial'; use 'threads'")


def number(value: Any) -> float:
    """The value as a float; NaN where it is no real number."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def as_numbers(name: str, values: Any) -> Floats:
    """An array of what an option holds; OptionError where that is no numbers."""
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise OptionError(f"{name} = {values!r:.80} is no array of numbers ({error}); give one") from error


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
LossName = Literal["pairwise", "ordinal", "preferences", "smooth", "squared"]
StrengthName = Literal["scale", "auto"]

AnyMeasure: TypeAlias = "str | Measure"
AnyBound: TypeAlias = "BoundName | Bound"
AnyMap: TypeAlias = "MapName | JointFeatureMap"
AnyMethod: TypeAlias = "MethodName | Method"
AnyEngine: TypeAlias = "EngineName | Engine"
AnySolver: TypeAlias = "str | Solver"
Normalize: TypeAlias = NormalizeName | None
Start: TypeAlias = StartName | SupportsArray | Sequence[float] | None
SlotStart: TypeAlias = SlotStartName | SupportsArray | Sequence[Sequence[float]] | None
SmoothStart: TypeAlias = SmoothStartName | SupportsArray | Sequence[float]
Strength: TypeAlias = float | StrengthName | None
Callbacks: TypeAlias = Sequence[Callable[..., bool | None]]
Seed: TypeAlias = int | np.integer[Any] | np.random.RandomState | np.random.Generator | None
AnyDecay: TypeAlias = "str | Decay | SupportsArray | Sequence[float]"
"""A family with parameters as text ("power(0.5)@10"), or position weights."""
AnyCheckpoint: TypeAlias = "str | PathLike[str] | Checkpoint | None"

AnyRows: TypeAlias = Queries | Rows
AnyRatings: TypeAlias = Ratings | Pairs
Document: TypeAlias = SupportsArray | Sparse | Frame | Sequence[float]
"""The features (d,) of one."""
Weights: TypeAlias = Values | Mapping[Any, float]
"""One a query: in their order, or by id."""
EvalSet: TypeAlias = Queries | tuple[Rows, Values] | Sequence[Queries | tuple[Rows, Values]]
EvalIds: TypeAlias = Ids | Sequence[Ids]
EvalSizes: TypeAlias = Sizes | Sequence[Sizes]


FAR = 1e100
"""Features beyond this are what a problem with numbers that are too large comes from."""


@contextmanager
def in_range(queries: Queries) -> Iterator[None]:
    """Turn the error of a problem whose numbers are too large into one of the feature that makes them so."""
    try:
        yield
    except (InvalidProblemError, OverflowError) as error:
        largest = largest_magnitudes(queries.features)
        worst = int(largest.argmax())
        if not largest[worst] > FAR:
            raise
        name = f"feature {worst}" if queries.feature_names is None else f"feature {queries.feature_names[worst]!r}"
        raise DataError(
            f"training cannot go on because {name} reaches {largest[worst]:.3g} in magnitude, and products with it "
            f"leave double precision ({error}); divide it by {largest[worst]:.0e}, and others of that size too"
        ) from error
