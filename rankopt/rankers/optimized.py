"""Base class of rankers that minimize a regularized risk: objective, solver loop, certificate, checkpoints.

`penalty=` selects the class of the objective and the form of the master program, for the methods that support it.
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from formulations.arrays import Floats, check_type
from formulations.compiled import is_small
from formulations.registry import load
from rankopt.data.canonical_order import Arrangement, canonical
from rankopt.data.queries import Queries
from rankopt.engines import get_engine
from rankopt.errors import DataError, OptionError
from rankopt.fitting import warn_interrupted
from rankopt.measures.measure import PositionalMeasure
from rankopt.measures.notation import parse
from rankopt.optimize import PENALTIES, get_method
from rankopt.optimize.certificate import Certificate, History, Step, Stop
from rankopt.optimize.concave_convex import Training, follow
from rankopt.optimize.frank_wolfe import BlockFrankWolfe
from rankopt.optimize.minimize import as_master
from rankopt.optimize.objective import Objective, largest
from rankopt.options import POSITIVE, RUN, Rules, check_options
from rankopt.persistence.checkpoint import stored_run
from rankopt.rankers import STARTS, STRENGTHS, starts
from rankopt.rankers.inputs import measuring_gains, query_weights
from rankopt.rankers.linear import LinearRanker
from rankopt.rankers.path import FROM_ZERO, LOSS_FACTORS, chosen_factor
from rankopt.rankers.path import path as fit_path
from rankopt.rankers.run import (
    check_saved_run,
    store_outcome,
    training_data,
    training_run,
    warn_below_start,
    warn_best_at_start,
    warn_of_outcome,
)
from rankopt.rankers.stream import Stream
from rankopt.rankers.typing import Weights
from rankopt.risk.risk import Risk, Shard

MARGIN_STARTS = ("ridge", "ranksvm")  # starts whose margins are 1, in units of the gains

WIDEST = 1 << 24  # numbers of the planes that the limits of weights add to a master

LEFT_IN = 0.03  # what lam="scale" is under penalty="l1", as part of the λ at which no feature is left in


class OptimizedRanker(LinearRanker):
    """Minimize J(w) = (λ/2)‖w - w₀‖² + Σ_q v_q loss_q(w) and store the certificate.

    A subclass has the parameters read here and builds its loss in `_shards`.
    """

    _saved: ClassVar[tuple[str, ...]] = (
        *LinearRanker._saved, "certificate_", "history_", "n_iter_", "w0_", "lam_", "best_score_",
    )  # fmt: skip

    _rules: ClassVar[Rules] = {**RUN, "lam": (POSITIVE, *STRENGTHS, None), "C": (POSITIVE, None), "warm_start": (bool,)}

    _from_zero: ClassVar[tuple[float, ...]] = FROM_ZERO
    """The parts of "scale" that lam="auto" tries from w₀ = 0; `LOSS_FACTORS` where "scale" has `ZERO_STRENGTH`."""

    _starts: ClassVar[dict[str, str]] = STARTS
    """What w0 may be by name."""

    _stream: Stream | None = None  # of `partial_fit`

    certificate_: Certificate
    history_: History
    method: Any
    master_solver: Any
    engine: Any
    w0: Any
    lam: float | str | None
    C: float | None
    tol: float
    max_iter: int
    time_limit: float | None
    n_jobs: int | None
    warm_start: bool
    callbacks: Sequence[Callable[..., bool | None]]
    checkpoint: Any
    verbose: int

    def _shards(self, queries: Arrangement, w0: Callable[[], Floats]) -> tuple[Shard, ...]:
        """The queries that have something to order, with the loss, in shards. w0: tells w₀."""
        raise NotImplementedError(f"{type(self).__name__} cannot be fitted because it has no `_shards`; write one.")

    def _cures(self, flat: bool) -> str:
        """What helps where the optimum is at w₀. flat: a smaller lam does not."""
        return "try another loss or other features" if flat else "try a smaller lam"

    def _order_matters(self) -> bool:
        """Whether the order of the documents in the input is part of the problem."""
        return False

    def _start(self) -> Any:
        """What w₀ is: a name of `_starts`, or an array."""
        return self.w0

    def _before(self, queries: Queries) -> None:
        """Learn what the options of a subclass need to know of the data, before the objective is built."""

    path = fit_path

    def _stream_of(self, queries: Queries) -> Stream | None:
        """The stream of `partial_fit` if these are its queries."""
        return self._stream if self._stream is not None and self._stream.queries is queries else None

    def __getstate__(self) -> Any:
        return {name: value for name, value in super().__getstate__().items() if name != "_stream"}

    def objective(self, queries: Queries, query_weight: Weights | None = None) -> Objective:
        """The objective J that `fit` minimizes on these queries, with query_weight as in `fit`."""
        check_options(self)
        check_type("queries", queries, Queries, error=DataError)
        with measuring_gains(self, queries):
            return self._objective(queries.grouped(), query_weights(queries, query_weight))

    def _objective(self, queries: Queries, weights: Floats) -> Objective:
        weights /= weights.max()
        admissible = self._admissible()
        if admissible is not None:
            admissible.validate(queries.attributes)
        arranged = canonical(queries, weights, keep_documents=self._order_matters(), attributes=self._content(queries))
        stream = self._stream_of(queries)
        placed = arranged if stream is None else stream.in_order(arranged)
        box = self._box(queries, self._shape(arranged))
        # w₀ is found once, after the options are known to be good
        center = None if stream is None or stream.center is None else stream.center.ravel()
        if center is not None and box is not None:
            center = np.clip(center, *box)
        w0 = cache(lambda: self._w0(arranged, box) if center is None else center)
        risk = Risk(self._shards(placed, w0), get_engine(self.engine, None if self.n_jobs == -1 else self.n_jobs))
        lam, small = self._lam(arranged, risk), is_small(arranged.offsets)
        units = None
        if isinstance(self.lam, str) and self.C is None:
            units = np.resize(starts.feature_units(arranged), w0().size)
        kind = self._objective_class()
        objective = kind.begun_at(risk, lam, w0(), as_master(self.master_solver, kind), small, units).within(box)
        if box is not None:
            self._check_box(objective, box)
        if isinstance(self.lam, str) and getattr(self, "penalty", "l2") == "l1":
            objective = replace(objective, lam=LEFT_IN * largest(objective) or 1.0)
        if self.lam == "auto":
            objective = replace(objective, lam=objective.lam * chosen_factor(self, queries, weights))
        return objective

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        if self._stream_of(queries) is None:
            self._stream = None
        with training_data(queries):
            self._before(queries)
            outcome, objective = self._trained(queries, weights, evaluation)
        self._keep(outcome, objective)
        warn_of_outcome(outcome, objective, self._cures)
        warn_best_at_start(outcome.certificate, outcome.judged, "another lam", 5)
        if objective.start_counts:  # a sparse model is not to be measured by what leaves nothing out
            warn_below_start(self._values(queries), outcome.w, objective.start)
        if outcome.certificate.stop is Stop.INTERRUPTED:
            warn_interrupted("weights")

    def _trained(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> tuple[Training, Objective]:
        """The run and what it minimized."""
        objective = self.objective(queries, weights)
        method = get_method(self.method, getattr(self, "random_state", None))
        start = objective.start
        stream = self._stream_of(queries)
        again = self.warm_start or stream is not None
        if again and hasattr(self, "coef_") and self.coef_.shape == self._coef_shape():
            start = objective.project(self.coef_.ravel())
        judge = None if evaluation is None else self._judge(evaluation)
        if judge is not None and objective.start_counts and start is not objective.start:
            start = max(objective.start, start, key=judge)  # both are candidates; of equals the former
        with training_run(self, objective.risk.engine) as run:
            begun = run.resume(stored_run, queries, weights, start, judge is not None)
            keep = None
            if run.checkpoint is not None:
                keep = run.checkpoint.keep
                if begun is not None:
                    run.checkpoint.check(begun, objective)
            elif stream is not None:
                objective, begun = stream.continued(objective, method, start)
            lams, limits = (objective.lam,), (self.max_iter, self.time_limit, run.callbacks)
            (outcome,) = follow(objective, method, start, lams, self.tol, limits, judge, resumed=begun, keep=keep)
            if stream is not None:
                self._stream = stream.after(outcome, objective)
            return outcome, objective

    def _keep(self, outcome: Training, objective: Objective) -> None:
        self.coef_, self.w0_ = outcome.w, objective.w0
        store_outcome(self, outcome, objective.lam)

    def _objective_class(self) -> type[Objective]:
        """The objective of the penalty; OptionError for a penalty that is none, and for a method that cannot minimize
        it."""
        penalty = getattr(self, "penalty", "l2")
        if not isinstance(penalty, str) or penalty not in PENALTIES:
            raise OptionError(f"penalty {penalty!r} is unknown; known are {', '.join(map(repr, PENALTIES))}")
        kind: type[Objective] = load(PENALTIES[penalty])
        kind.check(get_method(self.method))
        return kind

    def _lam(self, queries: Arrangement, risk: Risk) -> float:
        """λ of the queries with something to order."""
        count = risk.weights.size
        default = signature(type(self)).parameters["lam"].default
        if self.C is not None and self.lam in (None, default):
            return 1.0 / (float(self.C) * count)
        if self.C is not None or self.lam is None:
            raise OptionError(f"lam or C sets the regularization; got lam={self.lam!r}, C={self.C!r}. Pass one.")
        if isinstance(self.lam, str):
            start = self._start()
            from_zero = isinstance(start, str) and start == "zeros" and self._from_zero == LOSS_FACTORS
            natural = starts.natural_lam(queries, count, starts.ZERO_STRENGTH if from_zero else starts.STRENGTH)
            return natural * starts.unit_of(risk.shards) / self._unit_of_gains(queries)
        return float(self.lam)

    def _check_box(self, objective: Objective, box: Floats) -> None:
        """Raise OptionError where no master program can hold the limits of the weights."""
        if self.method == "block_frank_wolfe" or isinstance(self.method, BlockFrankWolfe):
            return  # without a master
        if np.isfinite(box).sum() * box.shape[1] > WIDEST:
            raise OptionError(
                f"coef_bounds of {box.shape[1]} features make too large a master program; limit fewer, or take "
                "method='block_frank_wolfe', which solves none"
            )
        if not objective.takes_groups():
            raise OptionError(
                f"coef_bounds need a master_solver of planes in several groups; {self.master_solver!r} takes one. "
                "Take 'auto'."
            )

    def _unit_of_gains(self, queries: Arrangement) -> float:
        """The unit in which the loss measures margins: scores that are as many times as large have the same orders."""
        return 1.0

    def _w0(self, queries: Arrangement, box: Floats | None) -> Floats:
        start, shape = self._start(), self._shape(queries)
        if isinstance(start, str):
            w0 = np.asarray(starts.get_start(start, self._starts)(self, queries, box)).ravel()
            w0 = w0 * self._unit_of_gains(queries) if start in MARGIN_STARTS else w0
            return w0 if box is None else np.clip(w0, *box)
        w0 = starts.passed_weights("w0", start, shape).ravel()
        return w0 if box is None else np.clip(w0, *box)

    def _shape(self, queries: Arrangement) -> tuple[int, ...]:
        """The shape of coef_."""
        return (queries.n_features,)

    def _gains(self, queries: Arrangement) -> Floats:
        measure = parse(self.measure)
        if not isinstance(measure, PositionalMeasure):
            raise OptionError(
                f"w0 = 'regression' needs gains, and {measure} has none; use 'ridge', 'ranksvm', 'zeros' or an array"
            )
        return np.asarray(measure.gain(np.asarray(queries.relevance), queries.offsets))

    def _check_loaded(self) -> None:
        super()._check_loaded()
        check_saved_run(self, Step, ())

    def _check_params(self) -> None:
        super()._check_params()
        check_options(self)
