"""Base class of rankers that minimize a regularized risk: objective, solver loop, certificate, checkpoints.

`penalty=` selects the class of the objective and the form of the master program, for the methods that support it.
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from formulations.compiled import is_small
from formulations.registry import load
from formulations.solvers import compatible_solvers, get_solver
from formulations.solvers.solver import Solver, suits
from rankopt.data.canonical_order import Arrangement, canonical
from rankopt.engines import ended, get_engine
from rankopt.errors import DataError, ModelError, OptionError, TrainingInterrupted
from rankopt.measures.measure import PositionalMeasure
from rankopt.measures.notation import parse
from rankopt.optimize import PENALTIES, get_method
from rankopt.optimize.certificate import Certificate, History, Step, Stop
from rankopt.optimize.concave_convex import Training, train
from rankopt.optimize.method import Clock
from rankopt.optimize.objective import Objective, largest
from rankopt.optimize.state import TrainingState
from rankopt.persistence.checkpoint import Checkpoint, identity
from rankopt.rankers import STARTS
from rankopt.rankers.linear import EvaluationMixin, FeatureSelectionMixin, LinearRanker
from rankopt.rankers.options import as_numbers, check_options, in_range
from rankopt.rankers.path import RegularizationPathMixin, chosen_factor
from rankopt.rankers.progress import shown, tell, tell_below
from rankopt.rankers.scale import natural_lam, unit_of
from rankopt.rankers.starts import get_start
from rankopt.risk.risk import Risk
from rankopt.risk.shard import Shard

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

# mypy: allow-subclassing-any


Floats = NDArray[np.float64]

SLOPES = "slopes of equal documents"
"""A part of what a checkpoint is of: references under a set, and of slots, changed when these slopes were shared."""


class CheckpointMixin:
    """What a ranker that minimises J does with `checkpoint`."""

    _of_the_run: ClassVar[tuple[str, ...]]
    checkpoint: Any
    get_params: Any
    _admissible: Any

    def _checkpoint(self) -> Checkpoint | None:
        """What keeps the run, if anything does."""
        return self.checkpoint if isinstance(self.checkpoint, Checkpoint | None) else Checkpoint(self.checkpoint)

    def _begun(
        self, checkpoint: Checkpoint | None, queries: Queries, weights: Floats, start: Floats, judged: bool
    ) -> tuple[TrainingState | None, Sequence[Step]]:
        """The stored state of an earlier run of the same problem, and its steps."""
        if checkpoint is None:
            return None, ()
        of_run, defaults = self._of_run(queries, weights, start, judged), self._defaults()
        if self._planes_stayed():
            defaults.add(SLOPES)
        return checkpoint.opened({**of_run, SLOPES: "shared"}, defaults)

    def _of_run(self, queries: Queries, weights: Floats, start: Floats, judged: bool) -> dict[str, str]:
        """What a run is of: digests of what leads to its result."""
        admissible = self._admissible()
        names = () if admissible is None else admissible.attributes
        matters = {name: value for name, value in self.get_params(deep=False).items() if name not in self._of_the_run}
        return identity(type(self).__name__, matters, queries, names, weights, start, judged)

    def _planes_stayed(self) -> bool:
        """Whether planes of before equal documents shared their slopes still lie below the loss."""
        return True

    def _defaults(self) -> set[str]:
        """The parameters that have their default."""
        passed = signature(type(self)).parameters.values()
        return {one.name for one in passed if repr(getattr(self, one.name)) == repr(one.default)}


def penalised(penalty: Any, method: object) -> type[Objective]:
    """The objective of this penalty; OptionError for a penalty that is none, and for a method that cannot minimise
    it."""
    if not isinstance(penalty, str) or penalty not in PENALTIES:
        raise OptionError(f"penalty {penalty!r} is unknown; known are {', '.join(map(repr, PENALTIES))}")
    kind: type[Objective] = load(PENALTIES[penalty])
    kind.check(method)
    return kind


# mypy: allow-subclassing-any


LEFT_IN = 0.03
"""What lam="scale" is under penalty="l1", as part of the λ at which no feature is left in."""


class OptimizedRanker(RegularizationPathMixin, CheckpointMixin, FeatureSelectionMixin, EvaluationMixin, LinearRanker):
    """Minimize J(w) = (λ/2)‖w - w₀‖² + Σ_q v_q loss_q(w) and store the certificate.

    A subclass has the parameters read here and builds its loss in `_shards`.
    """

    _saved: ClassVar[tuple[str, ...]] = (
        *LinearRanker._saved, "certificate_", "history_", "n_iter_", "w0_", "lam_", "best_score_",
    )  # fmt: skip
    _of_the_run: ClassVar[tuple[str, ...]] = ("callbacks", "checkpoint", "engine", "n_jobs", "verbose")

    _starts: ClassVar[dict[str, str]] = STARTS
    """What w0 may be by name."""

    certificate_: Certificate
    history_: History
    method: Any
    master_solver: Any
    engine: Any
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

    @property
    def _cures(self) -> str:
        """What helps where the optimum is at w₀."""
        return "try a smaller lam"

    def _order_matters(self) -> bool:
        """Whether the order of the documents in the input is part of the problem."""
        return False

    def _start(self) -> Any:
        """What w₀ is: a name of `_starts`, or an array."""
        return "zeros"

    def objective(self, queries: Queries, weights: Floats | None = None) -> Objective:
        """The objective J that `fit` minimises on these queries, weights (m,) not normalised."""
        check_options(**self.get_params(deep=False))
        weights = np.ones(len(queries)) if weights is None else weights / weights.max()
        admissible = self._admissible()
        names = () if admissible is None else admissible.attributes
        if admissible is not None:
            admissible.validate(queries.attributes)
        arranged = canonical(queries, weights, keep_documents=self._order_matters(), attributes=names)
        w0 = cache(lambda: self._w0(arranged))  # found once, after the options are known to be good
        risk = Risk(self._shards(arranged, w0), get_engine(self.engine, None if self.n_jobs == -1 else self.n_jobs))
        lam, small = self._lam(arranged, risk), is_small(arranged.offsets)
        objective = self._penalised().begun_at(risk, lam, w0(), self._master(), small)
        if isinstance(self.lam, str) and getattr(self, "penalty", "l2") == "l1":
            objective = replace(objective, lam=LEFT_IN * largest(objective) or 1.0)
        if self.lam == "auto":
            objective = replace(objective, lam=objective.lam * chosen_factor(self, queries, weights))
        return objective

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        if queries.n_documents < 2:
            raise DataError("training cannot learn an order because there is 1 sample; give two documents or more")
        self._before(queries)
        with in_range(queries):
            outcome, objective = self._trained(queries, weights, evaluation)
        self._keep(outcome, objective)
        tell(outcome, self._cures)
        if objective.start_counts:  # a sparse model is not to be measured by what leaves nothing out
            tell_below(self._values(queries), outcome.w, objective.start)
        if outcome.certificate.stop is Stop.INTERRUPTED:
            raise TrainingInterrupted("training was interrupted; the ranker holds the best weights so far")

    def _trained(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> tuple[Training, Objective]:
        """The run and what it minimised."""
        objective = self.objective(queries, weights)
        method = get_method(self.method, getattr(self, "random_state", None))
        start = objective.start
        if self.warm_start and hasattr(self, "coef_") and self.coef_.shape == self._coef_shape():
            start = self.coef_.ravel()
        judge = None if evaluation is None else self._judge(evaluation)
        if judge is not None and objective.start_counts and start is not objective.start:
            start = max(objective.start, start, key=judge)  # both are candidates; of equals the former
        checkpoint = self._checkpoint()
        with (
            ended(objective.risk.engine, isinstance(self.engine, str)),
            shown(self.verbose) as progress,
            nullcontext() if checkpoint is None else checkpoint.claimed(),
        ):
            begun, steps = self._begun(checkpoint, queries, weights, start, evaluation is not None)
            objective.prepare()
            if checkpoint is not None and begun is not None:
                checkpoint.check(begun, objective)
            clock = Clock.started(self.max_iter, self.time_limit, (*self.callbacks, *progress), steps)
            keep = None if checkpoint is None else checkpoint.keep
            return train(objective, method, start, self.tol, clock, judge, begun, keep), objective

    def _keep(self, outcome: Training, objective: Objective) -> None:
        self.coef_ = outcome.w
        self.certificate_ = outcome.certificate
        self.history_ = outcome.history
        self.n_iter_ = len(outcome.history)
        self.w0_, self.lam_ = objective.w0, objective.lam
        if outcome.judged is not None:
            self.best_score_ = outcome.judged
        elif hasattr(self, "best_score_"):
            del self.best_score_

    def _penalised(self) -> type[Objective]:
        """The objective of the penalty."""
        return penalised(getattr(self, "penalty", "l2"), get_method(self.method))

    def _master(self) -> Solver | str:
        if isinstance(self.master_solver, str) and self.master_solver == "auto":
            return "auto"
        solver = get_solver(self.master_solver) if isinstance(self.master_solver, str) else self.master_solver
        if not isinstance(solver, Solver):
            raise OptionError(
                f"master_solver = {self.master_solver!r} is not a solver; pass one of formulations.solvers or its name"
            )
        form = self._penalised().form
        if not suits(solver, form):
            known = ", ".join(compatible_solvers(form))
            raise OptionError(f"master {solver.spec!r} cannot solve the master program; use 'auto' or one of {known}")
        return solver

    def _lam(self, queries: Arrangement, risk: Risk) -> float:
        """λ of the queries with something to order."""
        count = risk.weights.size
        if (self.lam is None) == (self.C is None):
            raise OptionError("exactly one of lam and C must set the regularization strength; set the other to None")
        if isinstance(self.lam, str):
            return natural_lam(queries, count) * unit_of(risk.shards)
        passed = self.lam if self.C is None else self.C
        if passed is None or not (np.isfinite(passed) and passed > 0):
            raise OptionError(f"lam = {self.lam}, C = {self.C}: the regulariser needs a positive finite weight")
        return float(passed) if self.C is None else 1.0 / (float(passed) * count)

    def _w0(self, queries: Arrangement) -> Floats:
        start, shape = self._start(), self._shape(queries)
        if isinstance(start, str):
            return np.asarray(get_start(start, self._starts)(self, queries)).ravel()
        w0 = as_numbers("w0", start)
        if w0.shape != shape or not np.isfinite(w0).all():
            size = " × ".join(map(str, shape))
            raise OptionError(f"w0 has shape {w0.shape}; it needs {size} finite numbers, one a feature")
        return w0.ravel()

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
        if not isinstance(getattr(self, "certificate_", None), Certificate):
            raise ModelError("certificate_ is missing or is no certificate.")
        if not isinstance(getattr(self, "history_", None), History):
            raise ModelError("history_ is missing or is no history.")
        steps = getattr(self, "n_iter_", None)
        if type(steps) is not int or steps != len(self.history_):
            raise ModelError("n_iter_ does not count the steps of history_.")
        if np.shape(getattr(self, "w0_", 0.0)) != self._coef_shape():
            raise ModelError("w0_ is missing or has another shape than coef_.")

    def _check_params(self) -> None:
        super()._check_params()
        check_options(**self.get_params(deep=False))
