"""Minimize any loss of linear scores to a proven gap: the driver of estimators, for a loss or an oracle of your own.

>>> import numpy as np
>>> from rankopt.losses import SquaredError
>>> loss = SquaredError(np.array([1.0, 2.0]), np.array([0, 2]))
>>> found = minimize_risk(loss, np.eye(2), lam=1.0, tol=1e-9)
>>> found.w.round(2), found.certificate.kind
(array([0.5, 1. ]), 'global')
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from formulations.arrays import Ints
from formulations.compiled import is_small
from formulations.problems.problem import Problem
from formulations.solvers import compatible_solvers, get_solver
from formulations.solvers.function_solver import function_solver
from formulations.solvers.solver import Solver, suits
from rankopt.engines import ended, get_engine
from rankopt.errors import DataError, OptionError
from rankopt.losses.margin import MarginLoss
from rankopt.optimize import get_method
from rankopt.optimize.concave_convex import Judge, Training, follow
from rankopt.optimize.objective import Objective
from rankopt.options import POSITIVE, RUN, as_numbers, check
from rankopt.risk.risk import Risk, shards_of
from rankopt.scorers.linear import Linear, Slots


def minimize_risk(
    loss: Any,
    X: Any,
    *,
    lam: float,
    w0: Any = None,
    weights: Any = None,
    units: Any = None,
    method: Any = "bundle",
    master_solver: Any = "auto",
    engine: Any = "serial",
    tol: float = 1e-3,
    max_iter: int = 2000,
    time_limit: float | None = None,
    callbacks: Sequence[Callable[..., bool | None]] = (),
    judge: Judge | None = None,
) -> Training:
    """Minimize J(w) = (lam/2)‖w - w0‖² + Σ_i v_i loss_i(s), the scores s linear in w.

    Parameters
    ----------
    loss : a `rankopt.losses.loss.Loss` with `offsets` (m + 1,), such as a `MarginLoss` or a `ConvexLoss`; or a
        `rankopt.losses.MaxOracle`, of which the convex margin loss is minimized.
    X : features (N, d) of the documents, dense or CSR, query i in rows offsets[i] : offsets[i + 1]; s = X w. Where
        scores are (N, k), w is k times (d,) in a row. Or a `Linear` or `Slots` of `rankopt.scorers.linear`.
    lam : the regularization strength, positive.
    w0 : where the regularizer is centered and training starts; None is 0.
    weights : (m,) weights of the queries, scaled to sum to 1; None weighs them alike.
    units : of w, so that the regularizer is (lam/2) Σ_j ((w_j - w0_j) / units_j)²; w_j is w0_j where units_j is 0.
    method, master_solver, engine, tol, max_iter, time_limit, callbacks : as in `LargeMarginRanker`.
    judge : a function of w; of the points that w passes through, the one of greatest value is returned.

    Returns
    -------
    Training : with w, certificate, history.

    Raises
    ------
    OptionError : an option has an invalid value. DataError : the shapes do not fit.
    """
    for name, value in (("tol", tol), ("max_iter", max_iter), ("time_limit", time_limit), ("callbacks", callbacks)):
        check(name, value, RUN[name])
    objective = objective_of(
        loss, X, lam=lam, w0=w0, weights=weights, units=units, master_solver=master_solver, engine=get_engine(engine)
    )
    limits = max_iter, time_limit, tuple(callbacks)
    with ended(objective.risk.engine, isinstance(engine, str)):
        (found,) = follow(objective, get_method(method), objective.start, (objective.lam,), tol, limits, judge)
    return found


def objective_of(
    loss: Any,
    X: Any,
    *,
    lam: float,
    w0: Any = None,
    weights: Any = None,
    units: Any = None,
    master_solver: Any = "auto",
    engine: Any,
    rows: int | None = None,
) -> Objective:
    """The objective that `minimize_risk` minimizes. rows: after which a shard is closed."""
    check("lam", lam, (POSITIVE,))
    loss = loss if hasattr(loss, "majorant") else MarginLoss(loss, "convex")
    oracle = getattr(loss, "argmax", loss)
    offsets: Ints = np.asarray(oracle.offsets, dtype=np.int64)
    scorer = _scorer(X, getattr(oracle, "shape", (int(offsets[-1]),)))
    v = np.ones(offsets.size - 1) if weights is None else as_numbers("weights", weights)
    if v.shape != (offsets.size - 1,) or not (np.isfinite(v).all() and (v > 0).all()):
        raise OptionError(f"weights must be {offsets.size - 1} positive numbers; got shape {v.shape}. Leave 0 out.")
    start = np.zeros(scorer.dimensions) if w0 is None else as_numbers("w0", w0).ravel()
    scale = None if units is None else as_numbers("units", units).ravel()
    for name, own in (("w0", start), ("units", start if scale is None else scale)):
        if own.shape != (scorer.dimensions,) or not np.isfinite(own).all():
            raise OptionError(f"{name} must be {scorer.dimensions} finite numbers; got shape {own.shape}")
    if scale is not None and scale.min(initial=0.0) < 0.0:
        raise OptionError(f"units must not be negative; got {scale.min():g}. Pass 0 for a weight that stays at w0.")
    risk = Risk(shards_of(scorer, offsets, v / v.sum(), loss, rows), engine)
    return Objective(risk, float(lam), start, as_master(master_solver, Objective), is_small(offsets), units=scale)


def _scorer(X: Any, shape: tuple[int, ...]) -> Linear | Slots:
    if isinstance(X, Linear | Slots):
        return X
    table = X.tocsr() if hasattr(X, "tocsr") else np.ascontiguousarray(as_numbers("X", X))
    if table.shape[0] != shape[0] or len(table.shape) != 2:
        raise DataError(f"X must have the shape ({shape[0]}, d), a row for each row of scores; got {table.shape}")
    if not np.isfinite(table.data if hasattr(X, "tocsr") else table).all():
        raise DataError("X must be finite; got inf or nan. Remove or impute missing values.")
    linear = Linear(table, np.arange(shape[0]))
    return linear if len(shape) == 1 else Slots(linear, shape[1])


def as_master(spec: Any, kind: type[Objective]) -> Solver | str:
    """The solver of the master programs of this kind of objective, or "auto". Raises OptionError for another one."""
    if isinstance(spec, str) and spec == "auto":
        return "auto"
    if callable(spec) and not isinstance(spec, type) and not hasattr(spec, "solve"):
        spec = function_solver(spec, accepts=kind.form)
    return as_solver("master_solver", spec, kind.form, "solve the master program")


def as_solver(option: str, spec: Any, form: type[Problem], task: str) -> Solver:
    """The solver of an option. Raises OptionError for what is none, or does not accept problems of this form."""
    solver = get_solver(spec) if isinstance(spec, str) else spec
    if not isinstance(solver, Solver):
        raise OptionError(f"{option} = {spec!r} is not a solver; pass one of formulations.solvers or its name")
    if not suits(solver, form):
        known = ", ".join(compatible_solvers(form))
        raise OptionError(f"{option} {solver.spec!r} cannot {task}; use 'auto' or one of {known}")
    return solver
