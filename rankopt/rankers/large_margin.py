"""Large-margin optimization of a ranking measure: the ranker of [ORM], with a proven gap."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from formulations.modeling.grouped_simplex import GroupedSimplexQP
from formulations.modeling.rank_two import RankTwoAssignment
from formulations.modeling.solve import Solver, suits
from formulations.solvers import accepting, named
from rankopt.engines import engine_named
from rankopt.errors import OptionError
from rankopt.losses import bound_named
from rankopt.losses.decay import parse_decay
from rankopt.losses.plan import margin_shards
from rankopt.losses.risk import Risk
from rankopt.measures.notation import parse
from rankopt.measures.positional import Positional
from rankopt.optimize import method_named
from rankopt.optimize.certificate import Certificate, Stop
from rankopt.optimize.concave_convex import Training, train
from rankopt.optimize.history import History
from rankopt.optimize.loop import Clock
from rankopt.optimize.objective import Objective
from rankopt.rankers.base import LinearRanker
from rankopt.rankers.regression import least_squares
from rankopt.rankers.scores import linear_scores

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

__all__ = ["LargeMarginRanker"]

Floats = NDArray[np.float64]


class LargeMarginRanker(LinearRanker):
    """Minimises J(w) = (λ/2)‖w - w₀‖² + Σ_q v_q loss_q(w), loss an upper bound of the measure's regret [ORM, eq. 20-24].

    The m queries with something to order count, v_q = query_weight / Σ query_weight (1/m by default).

    Args:
        measure: a positional measure of `rankopt.measures`, or its notation.
        bound: "convex", "tie-aware" or "nonconvex" (see `rankopt.losses`); the latter two by the concave-convex
            procedure.
        reference: of the convex bound, "average" or "first".
        decay: position weights of the scores: "linear", "power(0.5)", "log", "loglog", "discount", each with a cut-off
            such as "power(0.5)@10" if wanted, or an array.
        w0: what the regulariser pulls to and training starts from: "zeros", "regression" (least squares on the gains),
            or an array (d,). By default zeros for the convex bound and regression for the others [ORM, section 6.3].
        method: "bundle", "cutting_planes", or such an object with settings of its own.
        argmax: the solver of the loss-augmented ranking, "exact" or any of `formulations.solvers`.
        master: the solver of the master program, "auto" or any of `formulations.solvers`.
        lam, C: the weight λ of the regulariser; or C = 1 / (λ m), with lam=None.
        tol: the relative gap at which training ends.
        max_iter, time_limit: steps and seconds after which it ends anyway, with a ConvergenceWarning.
        engine, n_jobs: who computes the shards of the data, and with how many workers.
        random_state: for methods that draw; those at hand are deterministic.
        warm_start: start from the previous `coef_` and planes instead of w₀.
        callbacks: functions (step, state) called after each step; one that returns True ends training.
        verbose: 1 shows progress on a terminal.

    Fitted: `coef_`, `certificate_` (kind, primal, bound, gap of J), `history_` (`history_.plot()` draws the gap),
    `n_iter_`, `w0_`. With eval_set, `coef_` is the best on it of what the run passed through (`eval_score_`), and the
    certificate speaks of that one.
    """

    _saved: ClassVar[tuple[str, ...]] = (*LinearRanker._saved, "certificate_", "history_", "n_iter_", "w0_", "lam_", "eval_score_")
    _of_the_run: ClassVar[tuple[str, ...]] = ("callbacks", "engine", "n_jobs", "verbose")

    certificate_: Certificate
    history_: History

    def __init__(
        self,
        measure: Any = "nDCG@10",
        *,
        bound: str = "convex",
        reference: str = "average",
        decay: Any = "linear",
        w0: Any = None,
        method: Any = "bundle",
        argmax: Any = "exact",
        master: Any = "auto",
        lam: float | None = 1e-2,
        C: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 2000,
        time_limit: float | None = None,
        engine: Any = "serial",
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        callbacks: Sequence[Callable[..., bool | None]] = (),
        verbose: int = 0,
    ) -> None:
        self.measure = measure
        self.bound = bound
        self.reference = reference
        self.decay = decay
        self.w0 = w0
        self.method = method
        self.argmax = argmax
        self.master = master
        self.lam = lam
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.verbose = verbose

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        objective = self.objective(queries, weights)
        method = method_named(self.method)
        start = objective.w0
        if self.warm_start and getattr(self, "coef_", np.empty(0)).shape == start.shape:
            start = self.coef_
        clock = Clock.started(self.max_iter, self.time_limit, tuple(self.callbacks))
        judge = None if evaluation is None else self._judge(evaluation)
        outcome = train(objective, method, start, self.tol, clock, judge)
        self._keep(outcome, objective)

    def objective(self, queries: Queries, weights: Floats | None = None) -> Objective:
        """The objective J that `fit` minimises on these queries."""
        self._check_options()
        measure = parse(self.measure)
        if not isinstance(measure, Positional):
            raise OptionError(
                f"measure {measure} cannot be trained because it is no inner product of position weights and gains; "
                "train on nDCG@k, P@k or another positional measure and evaluate with it"
            )
        decay = parse_decay(self.decay)
        reference = bound_named(self.bound, **({"reference": self.reference} if self.bound == "convex" else {}))
        weights = np.ones(len(queries)) if weights is None else weights
        shards = margin_shards(queries, weights, measure, decay, reference, self._argmax())
        risk = Risk(shards, engine_named(self.engine))
        return Objective(risk, self._lam(risk.weights.size), self._w0(queries, measure, weights), self._master())

    def _argmax(self) -> Solver:
        solver = named(self.argmax) if isinstance(self.argmax, str) else self.argmax
        if not suits(solver, RankTwoAssignment):
            raise OptionError(f"argmax {solver.spec!r} cannot rank; use one of {', '.join(accepting(RankTwoAssignment))}")
        return solver

    def _master(self) -> Solver | str:
        if self.master == "auto":
            return "auto"
        solver = named(self.master) if isinstance(self.master, str) else self.master
        if not suits(solver, GroupedSimplexQP):
            known = ", ".join(accepting(GroupedSimplexQP))
            raise OptionError(f"master {solver.spec!r} cannot solve the master program; use 'auto' or one of {known}")
        return solver

    def _lam(self, queries: int) -> float:
        if (self.lam is None) == (self.C is None):
            raise OptionError("exactly one of lam and C says how strong the regulariser is; set the other to None")
        lam = 1.0 / (float(self.C) * queries) if self.lam is None and self.C else self.lam
        if lam is None or not (np.isfinite(lam) and lam > 0):
            raise OptionError(f"lam = {self.lam}, C = {self.C}: the regulariser needs a positive finite weight")
        return float(lam)

    def _w0(self, queries: Queries, measure: Positional, weights: Floats) -> Floats:
        kind = ("zeros" if self.bound == "convex" else "regression") if self.w0 is None else self.w0
        if isinstance(kind, str):
            if kind == "zeros":
                return np.zeros(queries.n_features)
            if kind == "regression":
                gain = measure.gain(queries.relevance, queries.offsets)
                return least_squares(queries.features, gain, np.repeat(weights, np.diff(queries.offsets)), 0.0)
            raise OptionError(f"w0 = {kind!r} is unknown; use 'zeros', 'regression' or an array")
        w0 = np.array(kind, dtype=np.float64)
        if w0.shape != (queries.n_features,) or not np.isfinite(w0).all():
            raise OptionError(f"w0 has shape {w0.shape}; it needs {queries.n_features} finite numbers, one a feature")
        return w0

    def _check_options(self) -> None:
        if not (np.isfinite(self.tol) and self.tol >= 0):
            raise OptionError(f"tol = {self.tol} is no relative gap; give 0 or more, such as 1e-3")
        if int(self.max_iter) < 1:
            raise OptionError(f"max_iter = {self.max_iter} leaves no step; give 1 or more")
        if self.time_limit is not None and not self.time_limit > 0:
            raise OptionError(f"time_limit = {self.time_limit} leaves no time; give seconds, or None")
        if self.n_jobs not in (None, 1) and self.engine == "serial":
            raise OptionError(f"n_jobs = {self.n_jobs} needs an engine with workers, but engine is 'serial'")

    def _judge(self, evaluation: Queries) -> Callable[[Floats], float]:
        """The measure on the evaluation queries, as `score` computes it."""
        from rankopt.measures import evaluate

        measure = parse(self.measure)

        def judged(w: Floats) -> float:
            scores = linear_scores(evaluation.features, w)
            return evaluate(evaluation, scores, measure).mean()

        return judged

    def _keep(self, outcome: Training, objective: Objective) -> None:
        self.coef_ = outcome.w
        self.certificate_ = outcome.certificate
        self.history_ = outcome.history
        self.n_iter_ = len(outcome.history)
        self.w0_, self.lam_ = objective.w0, objective.lam
        if outcome.judged is not None:
            self.eval_score_ = outcome.judged
        elif hasattr(self, "eval_score_"):
            del self.eval_score_
        if outcome.certificate.stop in (Stop.ITERATIONS, Stop.TIME):
            warnings.warn(
                f"training stopped before the gap closed ({outcome.certificate}); raise max_iter or time_limit, "
                "enlarge lam or accept a larger tol",
                ConvergenceWarning,
                stacklevel=4,
            )
