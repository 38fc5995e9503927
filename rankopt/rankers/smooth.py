"""SmoothGrad: a measure smoothed, and less and less so, descended by a quasi-Newton method [paper 1, section 5]."""
# mypy: allow-subclassing-any

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from formulations.arrays import Floats, check_type
from formulations.compiled import is_small
from rankopt.constraints.admissible import Admissible
from rankopt.data.canonical_order import Arrangement, canonical
from rankopt.data.queries import Queries
from rankopt.engines import get_engine
from rankopt.errors import DataError, NoProgressWarning, OptionError
from rankopt.fitting import warn_interrupted
from rankopt.losses.oracle_positional import orderable
from rankopt.losses.smooth import SmoothedRegret, positional
from rankopt.optimize.annealing import (
    DESCENTS,
    Annealed,
    Annealing,
    AnnealingStep,
    anneal,
    stored_run,
)
from rankopt.optimize.certificate import SMOOTHED, Certificate, History, Stop
from rankopt.optimize.objective import SmoothObjective, deviation, deviations
from rankopt.optimize.state import TrainingState
from rankopt.options import NOT_NEGATIVE, RUN, Rules, as_numbers, check_options
from rankopt.rankers import SMOOTH_STARTS
from rankopt.rankers import typing as types
from rankopt.rankers.inputs import query_weights
from rankopt.rankers.linear import LinearRanker
from rankopt.rankers.run import (
    check_saved_run,
    loosened,
    store_outcome,
    training_data,
    training_run,
    warn_below_start,
    warn_best_at_start,
)
from rankopt.rankers.starts import feature_penalties, get_start, passed_weights, spread, unit_of_gains
from rankopt.risk.risk import shards

SIGMAS = (1.0, 0.5, 0.25)
"""σ of the stages, in deviations of the scores at w₀. On queries that are left out stages before these change nothing,
and later ones overfit the training queries."""

STRENGTH = 1.0  # λ of lam="scale", in units of U / m (see `rankopt.rankers.starts`)


class SmoothRanker(LinearRanker):
    """Linear ranker trained by gradient descent on a smoothed measure, for decreasing bandwidths σ.

    It minimizes J_σ(w) = (λ/2)‖w - w₀‖² + Σ_q v_q [best_q - A_q(X_q w; σ)] for one σ after the other, each from the
    previous solution. A_q is the measure smoothed with bandwidth σ (`rankopt.losses.smooth`): it assigns each position
    to the documents with scores near that of the document ranked there. As σ falls to 0, A_q becomes the measure. J_σ
    is not convex: the result depends on w₀, no bound is claimed, and `certificate_` states the final gradient and
    measure. The sum is over the m queries with something to order, v_q = query_weight / Σ query_weight. A step costs
    two products with the features and an exponential per document and position.

    Parameters
    ----------
    **Start here**

    measure : default "nDCG@10"
        A positional measure of `rankopt.measures`, or its notation: nDCG@k, DCG@k, P@k, AUC, ERU, ...
    lam : default "scale"
        λ >= 0, or "scale", U / m, with U the mean squared distance of the features from the mean of their
        query, and weights penalized in units of their features, as in `LargeMarginRanker`. `lam_` is λ.
    w0 : default "ridge"
        Center of the regularizer and start: "ridge" (`RegressionRanker()`), "ranksvm" (`PairwiseRanker()`),
        "regression" (least squares on the gains), or an array (d,), scaled to scores of deviation 1. If all
        documents of every query have one score, the gradient is 0 and a `rankopt.errors.NoProgressWarning` is
        raised.
    constraints : default None
        An `Admissible` for `rank` and `score`; training ignores it.
    normalize, missing : defaults "auto", "error"
        As in `LargeMarginRanker`.

    **Model**

    bandwidths : default (1.0, 0.5, 0.25)
        σ of the stages, in deviations of the scores (within queries) at w₀; usually decreasing.
    coef_bounds : default None
        As in `LargeMarginRanker`; with method="L-BFGS".

    **Solver**

    method : default "L-BFGS"
        "L-BFGS" or "CG" of SciPy. Each feature is passed in units of its deviation.
    tol : default 1e-05
        The norm of the gradient at which a stage ends, in units of the measure per deviation.

    **Run**

    max_iter : default 40
        Maximum steps of each stage.
    time_limit : default None
        Seconds after which training ends with a ConvergenceWarning.
    callbacks : default ()
        Functions (step, point) called after each step; training ends if one returns True.
    checkpoint : default None
        A folder (or `Checkpoint(folder, every=seconds)`) that stores the state after each stage. A fit of the
        same problem with the same folder resumes with identical results.
    verbose, engine, n_jobs : defaults 0, "threads", None
        As in `LargeMarginRanker`.

    Notes
    -----
    Fitted: `coef_`, `certificate_`, `history_` (`history_.plot()` draws J_σ), `n_iter_`, `w0_`, `lam_`. With eval_set,
    `coef_` is the best on it of w₀ and every step (`best_score_`), and the certificate is that of this point. An
    interruption retains the last step, or the best one so far on eval_set.
    """

    _saved: ClassVar[tuple[str, ...]] = (
        *LinearRanker._saved, "certificate_", "history_", "n_iter_", "w0_", "lam_", "best_score_",
    )  # fmt: skip
    _linear_in_gains: ClassVar[bool] = True

    _rules: ClassVar[Rules] = {**RUN, "lam": (NOT_NEGATIVE, "scale"), "method": tuple(DESCENTS)}

    certificate_: Certificate
    history_: History

    def __init__(
        self,
        measure: types.AnyMeasure = "nDCG@10",
        *,
        bandwidths: Sequence[float] = SIGMAS,
        lam: float | types.StrengthName = "scale",
        w0: types.SmoothStart = "ridge",
        method: Literal["L-BFGS", "CG"] = "L-BFGS",
        tol: float = 1e-5,
        max_iter: int = 40,
        time_limit: float | None = None,
        engine: types.AnyEngine = "threads",
        n_jobs: int | None = None,
        callbacks: types.Callbacks = (),
        checkpoint: types.AnyCheckpoint = None,
        verbose: int = 0,
        constraints: Admissible | None = None,
        normalize: types.Normalize = "auto",
        coef_bounds: types.CoefBounds = None,
        missing: types.Missing = "error",
    ) -> None:
        self.measure = measure
        self.bandwidths = bandwidths
        self.lam = lam
        self.w0 = w0
        self.method = method
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.engine = engine
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.constraints = constraints
        self.normalize = normalize
        self.coef_bounds = coef_bounds
        self.missing = missing

    def objective(self, queries: Queries, query_weight: types.Weights | None = None) -> SmoothObjective:
        """J_σ as `fit` descends it on these queries, with query_weight as in `fit`."""
        self._settings()
        check_type("queries", queries, Queries, error=DataError)
        queries = queries.grouped()
        weights = query_weights(queries, query_weight)
        weights /= weights.max()
        arranged = canonical(queries, weights)
        measure, small = positional(self.measure), is_small(arranged.offsets)

        def build(every: Arrangement) -> tuple[Arrangement, Any]:
            useful = orderable(every.graded, every.offsets, measure)
            chosen = every.learnable(useful, f"{measure} distinguishes")
            return chosen, SmoothedRegret(chosen.graded, chosen.offsets, measure, small=small)

        parts = shards(arranged, build)
        lam = self.lam
        if isinstance(lam, str):
            lam = STRENGTH * spread(arranged) * unit_of_gains(self.measure, arranged) / sum(map(len, parts))
        box = self._box(queries, (queries.n_features,))
        if box is not None and self.method != "L-BFGS":
            raise OptionError(f"coef_bounds need method='L-BFGS'; got {self.method!r}")
        if isinstance(self.w0, str):
            w0 = np.asarray(get_start(self.w0, SMOOTH_STARTS)(self, arranged, box))
        else:
            w0 = passed_weights("w0", self.w0, (queries.n_features,))
        apart = deviation(parts, w0)
        with np.errstate(over="ignore"):
            scaled = w0 / apart if apart > 0 else w0
        if not np.isfinite(scaled).all():
            raise OptionError("w0 gives scores that are next to equal, so that it has no scale; give another start")
        engine = get_engine(self.engine, None if self.n_jobs == -1 else self.n_jobs)
        penalties = feature_penalties(arranged) if isinstance(self.lam, str) else 1.0
        scaled = scaled if box is None else np.clip(scaled, *box)
        return SmoothObjective(parts, engine, float(lam), scaled, deviations(arranged), penalties, box)

    def _fit(self, queries: Queries, weights: Floats, evaluation: Queries | None) -> None:
        with training_data(queries):
            outcome, objective = self._trained(queries, weights, evaluation)
        self.coef_, self.w0_ = outcome.w, objective.w0
        store_outcome(self, outcome, objective.lam)
        self._warn(outcome, objective)
        warn_below_start(self._values(queries), outcome.w, objective.w0)
        if outcome.certificate.stop is Stop.INTERRUPTED:
            warn_interrupted("weights")

    def _trained(
        self, queries: Queries, weights: Floats, evaluation: Queries | None
    ) -> tuple[Annealed, SmoothObjective]:
        """The run and what it descended."""
        settings, objective = self._settings(), self.objective(queries, weights)
        judge, w0 = None if evaluation is None else self._judge(evaluation), objective.w0

        def read(stored: Any) -> TrainingState | None:
            return stored_run(stored, w0.size, settings.bandwidths, settings.max_iter)

        with training_run(self, objective.engine) as run:
            begun = run.resume(read, queries, weights, w0, judge is not None)
            objective.at(w0, settings.bandwidths[0])  # compiled code, workers with their data: limits begin now

            def keep(now: TrainingState, over: bool) -> None:
                run.store(lambda: now.as_data(AnnealingStep), over)

            return anneal(objective, settings, run.callbacks, judge, begun, keep), objective

    def _settings(self) -> Annealing:
        """The options of the descent; OptionError for what cannot work."""
        check_options(self)
        sigmas = as_numbers("bandwidths", self.bandwidths)
        if sigmas.ndim != 1 or not sigmas.size or not ((sigmas > 0) & (sigmas < np.inf)).all():
            raise OptionError(f"bandwidths must be one or more numbers above 0; got {self.bandwidths!r:.80}.")
        return Annealing(tuple(sigmas.tolist()), self.method, int(self.max_iter), float(self.tol), self.time_limit)

    def _gains(self, queries: Arrangement) -> Floats:
        return np.asarray(positional(self.measure).gain(queries.graded, queries.offsets))

    def _warn(self, outcome: Annealed, objective: SmoothObjective) -> None:
        """Warn of how the run ended, if there is something to warn of."""
        found = outcome.certificate
        if not len(outcome.history):
            cure = loosened(outcome.w, objective.box) or "pass another w0"
            message = f"nothing was learned because the gradient is 0 at w0, so the ranker orders as w0: {cure}"
            warnings.warn(message, NoProgressWarning, stacklevel=4)
        warn_best_at_start(found, outcome.judged if len(outcome.history) else None, "another lam", 6)
        if found.stop is Stop.TIME:
            message = f"training stopped before the last sigma ({found}); raise time_limit, or pass fewer bandwidths"
            warnings.warn(message, ConvergenceWarning, stacklevel=4)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        check_saved_run(self, AnnealingStep, SMOOTHED)

    def _check_params(self) -> None:
        super()._check_params()
        self._settings()
