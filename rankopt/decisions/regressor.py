"""Linear regression of the costs or profits of an optimization problem, trained on the regret of its decisions."""

# mypy: allow-subclassing-any
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from formulations.arrays import Floats, check_no_mask
from formulations.problems.cvxpy_problem import is_model
from formulations.problems.problem import Problem
from rankopt.engines import get_engine
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.fitting import atomic, warn_interrupted
from rankopt.losses.margin import Convex, MarginLoss
from rankopt.losses.oracle_problem import Decisions, ProblemOracle, check_unit_box, feasible_set, variables_of
from rankopt.optimize import get_method
from rankopt.optimize.certificate import CLAIMED, Certificate, History, Step, Stop, check_saved
from rankopt.optimize.concave_convex import Judge, Training
from rankopt.optimize.minimize import objective_of
from rankopt.optimize.objective import Objective
from rankopt.optimize.state import PlaneSet, State
from rankopt.options import POSITIVE, RUN, Rules, as_numbers, check_options
from rankopt.persistence.models import save_model
from rankopt.rankers.path import Path
from rankopt.rankers.run import NOTHING, follow_path, store_outcome, warn_of_gap
from rankopt.rankers.typing import AnyEngine, AnyMethod, AnySolver, Callbacks
from rankopt.scorers.linear import Linear, Slots

SHARD = 256  # instances of a shard, where they are solved one by one: what a worker of an engine takes at a time

SMALLEST, LARGEST = 1e-140, 1e140  # the largest cost in magnitude, and the largest feature: squares are doubles

SCALE, RIDGE = 0.1, 1e-6
"""What lam="scale" is in units of (risk at the least-squares weights) / ‖these weights‖²; and for "squared", in units
of the mean square of the features."""


@dataclass(frozen=True)
class _AnySign(Convex):
    """The convex bound where observed decisions break the constraints: the loss can be negative."""

    is_nonnegative: ClassVar[bool] = False


@dataclass(frozen=True, eq=False)
class _Data:
    """What `fit` has read. design: (m, d) or (m n, d), with the constant; targets of least squares, a row for each of
    its rows, None without costs; weights (m,), of which `rows` have one each."""

    design: Floats
    targets: Floats | None
    weights: Floats
    oracle: ProblemOracle
    sign: float

    @property
    def rows(self) -> Floats:
        return np.repeat(self.weights / self.weights.sum(), len(self.design) // len(self.weights))

    def regression(self) -> Floats | None:
        """The weights of least squares; None without costs."""
        if self.targets is None:
            return None
        root = np.sqrt(self.rows)[:, None]
        return np.asarray(np.linalg.lstsq(root * self.design, root * self.targets, rcond=None)[0].T.ravel())


@atomic
class DecisionRegressor(RegressorMixin, BaseEstimator):
    """Predict the costs of a problem by linear functions, so that its decisions under them are good.

    It minimizes J(W) = (λ/2)‖W - W₀‖² + Σ_i v_i loss_i(ĉ_i), v_i = 1/m. loss_i is an upper bound of the regret of
    instance i: what the decision under the predicted costs ĉ_i costs more than the best one under the true costs c_i.
    The problem may be a maximization: "costs" are then its profits, as for all methods here.

    Parameters
    ----------
    **Start here**

    problem
        A LinearProgram (with or without integers), MinCostFlow, `matching` or `constrained_ranking`, or a model that
        `formulations.as_problem` reads; its own objective does not count. Or a function from a row of X to the problem
        of that instance, where feasible sets differ; all have n variables.
    loss : default "spo+"
        "spo+", the convex bound [Elmachtoub and Grigas 2022]; "nonconvex", a tighter one, convex minus convex;
        "tie-aware", tighter than "spo+" only for instances with several best decisions; "hamming", the structured hinge
        loss of the Hamming distance to the best decisions, or to observed ones; "squared", ½‖ĉ - c‖², which ignores the
        problem.
    lam : default "scale"
        λ, or "scale": a tenth of the risk at the least-squares weights, divided by the square of their norm, with
        features in units of their root mean square; 1 for observed decisions; for "squared" 1e-6 times the mean square
        of the features.

    **Model**

    w0 : default None
        Where the regularizer is centered and training starts: "regression", least squares; "zeros"; or an array of
        the shape of the weights with the intercept in the last column. None is "regression" where there are costs,
        and "zeros" for "squared".
    fit_intercept : default True
        Whether to add a constant feature, regularized as the others are.
    relaxed : default False
        Whether the loss takes the maximum over the linear relaxation of an integer program or of a constrained ranking:
        less time, a larger loss.

    **Solver**

    solver : default "auto"
        Of the problem, as in `formulations.solve`. With `Highs(time_limit=1)` value and bound are kept apart.
    method, master_solver, tol : defaults "bundle", "auto", 0.001
        As in `LargeMarginRanker`.

    **Run**

    max_iter, time_limit, engine, n_jobs, callbacks, verbose : defaults 2000, None, "threads", None, (), 0
        As in `LargeMarginRanker`; the best decisions under the true costs are found before the time counts.
        engine="dask" solves instances in parallel.

    Notes
    -----
    Fitted: `coef_` (n, d) and `intercept_` (n,), or (d,) and a number with `shared_weights_`; `certificate_` (global
    where the loss is convex, else stationary), `history_`, `n_iter_`, `lam_`; with eval_set `best_score_`. The bound of
    an integer program is the one that the solver's finished search reports, but for small knapsacks.
    """

    _rules: ClassVar[Rules] = {
        **RUN,
        "loss": ("spo+", "tie-aware", "nonconvex", "hamming", "squared"),
        "lam": (POSITIVE, "scale"),
        "fit_intercept": (bool,),
        "relaxed": (bool,),
    }
    _saved: ClassVar[tuple[str, ...]] = (
        "coef_", "intercept_", "shared_weights_", "certificate_", "history_", "n_iter_", "lam_", "best_score_",
        "n_features_in_", "feature_names_in_",
    )  # fmt: skip
    _of_the_run: ClassVar[tuple[str, ...]] = ("callbacks", "engine", "n_jobs", "verbose")

    coef_: Floats
    intercept_: Any
    certificate_: Certificate
    history_: History
    best_score_: float
    n_features_in_: int
    shared_weights_: bool

    def __init__(
        self,
        problem: Any,
        *,
        loss: Literal["spo+", "tie-aware", "nonconvex", "hamming", "squared"] = "spo+",
        lam: float | Literal["scale"] = "scale",
        w0: Any = None,
        fit_intercept: bool = True,
        relaxed: bool = False,
        solver: AnySolver | Callable[[Any], Any] = "auto",
        method: AnyMethod = "bundle",
        master_solver: AnySolver = "auto",
        tol: float = 1e-3,
        max_iter: int = 2000,
        time_limit: float | None = None,
        engine: AnyEngine = "threads",
        n_jobs: int | None = None,
        callbacks: Callbacks = (),
        verbose: int = 0,
    ) -> None:
        self.problem = problem
        self.loss = loss
        self.lam = lam
        self.w0 = w0
        self.fit_intercept = fit_intercept
        self.relaxed = relaxed
        self.solver = solver
        self.method = method
        self.master_solver = master_solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.engine = engine
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.verbose = verbose

    def fit(
        self, X: Any, costs: Any = None, *, decisions: Any = None, sample_weight: Any = None, eval_set: Any = None
    ) -> Self:
        """Learn from features and costs of instances, or from features and observed decisions.

        Parameters
        ----------
        X : (m, d), one weight vector a variable; or (m, n, d), features of each variable and one weight vector for all.
        costs : (m, n) true costs, of a maximization profits; matrices are read row by row.
        decisions : (m, n) observed decisions in place of costs, for loss="hamming", where variables are limited to
            [0, 1]. A warning counts those that break the constraints.
        sample_weight : (m,) positive weights of the instances.
        eval_set : (X, costs) of other instances; of the weights that training passes through, those of the best score
            there are returned.

        Raises
        ------
        DataError, OptionError : data or options that do not fit. InfeasibleError : an instance without a decision.
        """
        data = self._read(X, costs, decisions, sample_weight)
        judge = self._judge(eval_set)
        if self.loss == "squared":
            return self._keep(*self._ridge(data, judge))
        objective = self._objective(data)
        (outcome,) = follow_path(self, objective, get_method(self.method), (objective.lam,), judge)
        return self._keep(outcome, objective.lam)

    def path(
        self, X: Any, costs: Any = None, *, lams: Iterable[float], decisions: Any = None, sample_weight: Any = None,
        eval_set: Any = None,
    ) -> Path:  # fmt: skip
        """Fit a copy for each λ of `lams`, the largest first, each from the planes and the solution of the one before.

        The other parameters are as in `fit`. With eval_set `path.best` is the model of the best score there.
        """
        given = as_numbers("lams", list(lams) if isinstance(lams, Iterable) else [lams])
        values = sorted(set(given.ravel().tolist()), reverse=True)
        if not values or not values[-1] > 0 or self.loss == "squared":
            raise OptionError(f"lams must be positive numbers, and loss not 'squared'; got {values} and {self.loss!r}")
        first = clone(self).set_params(lam=values[0])
        objective = first._objective(first._read(X, costs, decisions, sample_weight))
        found = [*follow_path(first, objective, get_method(self.method), values, first._judge(eval_set))]
        models = [copy(first).set_params(lam=lam)._keep(one, lam) for lam, one in zip(values, found, strict=False)]
        return Path(tuple(models), len(models) < len(values))

    def predict(self, X: Any) -> Floats:
        """The predicted costs (m, n)."""
        check_is_fitted(self, "coef_")
        return np.asarray(self._features(X) @ self.coef_.T + self.intercept_)

    def decide(self, X: Any) -> Decisions:
        """The best decisions (m, n) under the predicted costs, their predicted values and proven bounds of these."""
        costs = self.predict(X)
        return self._decided(self._problems(X), costs)

    def regret(self, X: Any, costs: Any) -> Floats:
        """(m,) what the decisions cost more than the best ones under the true costs (of profits, what they earn less);
        where the solver does not prove these best, more than their bound."""
        return self._judged(X, costs)(self.predict(X))[0]

    def score(self, X: Any, costs: Any, sample_weight: Any = None) -> float:
        """Minus the normalized regret, Σ regret / Σ |value of the best decision|: 0 is perfect."""
        regret, best = self._judged(X, costs)(self.predict(X))
        weights = _weights(sample_weight, len(regret))
        total = float(weights @ np.abs(best))
        return -float(weights @ regret) / (total or 1.0)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted regressor to a file of data only, to be read by `rankopt.load_model`."""
        save_model(self, path)

    def _features(self, X: Any, reset: bool = False) -> Floats:
        """X as numbers; DataError for another shape than that of fit."""
        check_no_mask("X", X, DataError)
        shared = np.ndim(X) == 3
        if reset:
            self.shared_weights_ = shared
        if reset and shared:
            self.n_features_in_ = np.shape(X)[2]
        try:
            if shared:
                table: Floats = check_array(X, allow_nd=True, dtype=np.float64, input_name="X")
            else:
                table = validate_data(self, X, reset=reset, dtype=np.float64)
        except OverflowError as error:
            raise DataError("X has an integer beyond the range of floats; pass floats") from error
        if shared is not self.shared_weights_ or table.shape[-1] != self.n_features_in_:
            raise DataError(f"X has the shape {table.shape}; pass features of the form that fit has seen")
        return table

    def _problems(self, X: Any) -> tuple[Problem, ...]:
        """One problem for all rows of X, or one for each."""
        if isinstance(self.problem, Problem) or is_model(self.problem):
            return (feasible_set(self.problem),)
        if not callable(self.problem) or isinstance(self.problem, type):
            raise OptionError(
                f"problem must be a problem of formulations, a model of another tool, or a function from a row of X to "
                f"one; got {self.problem!r:.80}"
            )
        found = tuple(self._problem_of(i, row) for i, row in enumerate(np.asarray(X)))
        if len({(one.is_maximization, variables_of(one)) for one in found}) > 1:
            raise OptionError("problem must return problems of one sense and of one number of variables")
        return found

    def _problem_of(self, i: int, row: Any) -> Problem:
        try:
            return feasible_set(self.problem(row))
        except Exception as error:  # whatever a function of the user does
            raise OptionError(
                f"problem = {self.problem!r:.80} makes no problem of instance {i}: {type(error).__name__}: {error}"
            ) from error

    def _read(self, X: Any, costs: Any, decisions: Any, sample_weight: Any) -> _Data:
        check_options(self)
        if (costs is None) == (decisions is None):
            raise DataError("fit needs either costs or decisions; pass fit(X, costs) or fit(X, decisions=...)")
        if decisions is not None and self.loss != "hamming":
            raise OptionError(f"loss = {self.loss!r} needs costs; pass them, or loss='hamming' for observed decisions")
        features, problems = self._features(X, reset=True), self._problems(X)
        n = variables_of(problems[0])
        known = _matrix("decisions" if costs is None else "costs", decisions if costs is None else costs, features, n)
        size, largest = (float(np.abs(values).max(initial=0.0)) for values in (known, features))
        if largest > LARGEST:
            raise DataError(f"the largest feature must be at most {LARGEST}; got {largest:g}. Rescale the features.")
        if costs is not None and size and not SMALLEST <= size <= LARGEST:
            raise DataError(
                f"the largest cost must be between {SMALLEST} and {LARGEST}; got {size:g}. Rescale the costs."
            )
        sign = 1.0 if problems[0].is_maximization else -1.0
        oracle = ProblemOracle(
            problems, known if costs is None else sign * known, self.solver, relaxed=self.relaxed,
            flat=self.shared_weights_,
        )  # fmt: skip
        if self.loss == "hamming":
            observed = known if costs is None else oracle.optimal.decision
            oracle = replace(oracle, profit=2.0 * observed - 1.0, observed=observed)
        targets = None if costs is None else known.reshape(-1, 1) if oracle.flat else known
        weights = _weights(sample_weight, len(features))
        return _Data(self._design(features), targets, weights, oracle, sign)

    def _design(self, features: Floats) -> Floats:
        """(m, d) or (m n, d) the features, with the constant."""
        rows = features.reshape(-1, features.shape[-1])
        return np.hstack([rows, np.ones((len(rows), 1))]) if self.fit_intercept else rows

    def _w0(self, regression: Floats | None, usual: str) -> Any:
        wanted = usual if self.w0 is None else self.w0
        if isinstance(wanted, str):
            if wanted not in ("zeros", "regression") or (wanted == "regression" and regression is None):
                raise OptionError(
                    f"w0 must be 'zeros', 'regression' (where there are costs) or an array; got {wanted!r}"
                )
            return regression if wanted == "regression" else None
        return self.w0

    def _objective(self, data: _Data) -> Objective:
        oracle, regression, n = data.oracle, data.regression(), data.oracle.profit.shape[1]
        linear = Linear(2.0 * data.sign * data.design, np.arange(len(data.design)))  # scores are twice the profits
        bound: Any = self.loss
        if self.loss == "hamming":
            check_unit_box(oracle)
            bound = "convex"
        if broken := oracle.broken:
            bound = _AnySign()
            warnings.warn(
                f"{broken} of {len(oracle.profit)} observed decisions break the constraints of the problem, so that no "
                "costs make them optimal",
                UserWarning,
                stacklevel=4,
            )
        if oracle.unproved:
            warnings.warn(
                f"{oracle.unproved} of {len(oracle.profit)} decisions that the solver found for the true costs are not "
                "proved best, so that the loss may be another one; take solver='auto', or give the solver more time",
                UserWarning,
                stacklevel=4,
            )
        pulled, units = regression if self.lam == "scale" else None, None
        if pulled is not None:
            root = np.sqrt(data.rows @ data.design**2)
            units = np.resize(np.divide(1.0, root, out=np.zeros_like(root), where=root > 0.0), pulled.size)
        objective = objective_of(
            MarginLoss(oracle, bound),
            linear if oracle.flat else Slots(linear, n),
            lam=1.0 if self.lam == "scale" else float(self.lam),
            w0=self._w0(regression, "zeros" if regression is None else "regression"),
            weights=data.weights,
            units=units,
            master_solver=self.master_solver,
            engine=get_engine(self.engine, None if self.n_jobs == -1 else self.n_jobs),
            rows=SHARD * (n if oracle.flat else 1),
        )
        if pulled is not None:
            size, risk = 2.0 * objective.regularizer(objective.w0 + pulled), objective.risk.at(pulled).bound
            gain, cost = (float(np.abs(part).max()) or 1.0 for part in (oracle.profit, np.asarray(data.targets)))
            known = risk > NOTHING * gain and size > NOTHING * cost**2
            objective = replace(objective, lam=SCALE * risk / size if known else gain / cost**2)
        return objective

    def _ridge(self, data: _Data, judge: Judge | None) -> tuple[Training, float]:
        """The minimum of (λ/2)‖W - W₀‖² + Σ_i v_i ½‖ĉ_i - c_i‖² in closed form. J is λ-strongly convex and not
        negative, so that its minimum is at least J - ‖∇J‖²/(2λ) and 0."""
        X, v, targets = data.design, data.rows[:, None], data.targets
        assert targets is not None
        shape, start = (targets.shape[1], X.shape[1]), self._w0(data.regression(), "zeros")
        W0 = np.zeros(shape) if start is None else as_numbers("w0", start)
        if W0.size != shape[0] * shape[1] or not np.isfinite(W0).all():
            raise OptionError(f"w0 must be {shape[0] * shape[1]} finite numbers; got shape {W0.shape}")
        W0 = W0.reshape(shape)
        lam = RIDGE * float((v * X**2).sum()) / shape[1] or 1.0 if self.lam == "scale" else float(self.lam)
        rows = np.vstack([np.sqrt(v) * X, np.sqrt(lam) * np.eye(shape[1])])
        wanted = np.vstack([np.sqrt(v) * (targets - X @ W0.T), np.zeros(shape[::-1])])
        W = W0 + np.linalg.lstsq(rows, wanted, rcond=None)[0].T
        apart = X @ W.T - targets
        value = lam / 2.0 * float(((W - W0) ** 2).sum()) + float((v * apart**2).sum()) / 2.0
        gradient = lam * (W - W0) + ((v * apart).T @ X)
        bound = max(value - float((gradient**2).sum()) / (2.0 * lam), 0.0)
        stop = Stop.GAP if value - bound <= self.tol * max(value, NOTHING) else Stop.STALLED
        proved = Certificate("global", value, bound, stop)
        judged = None if judge is None else judge(W.ravel())
        state = State(PlaneSet.empty(1, W.size), np.zeros(0), W.ravel(), W.ravel())
        return Training(W.ravel(), proved, History.from_rows(Step, []), state, value, judged), lam

    def _judge(self, eval_set: Any) -> Judge | None:
        """From weights to the score on other instances; None without these."""
        if eval_set is None:
            return None
        if not isinstance(eval_set, tuple | list) or len(eval_set) != 2:
            raise DataError(f"eval_set must be a pair (X, costs); got {eval_set!r:.80}")
        X, costs = eval_set
        features, judged = self._features(X), self._judged(X, costs)
        design = self._design(features)

        def score(w: Floats) -> float:
            n = features.shape[1] if features.ndim == 3 else w.size // design.shape[1]
            regret, best = judged((design @ w.reshape(-1, design.shape[1]).T).reshape(-1, n))
            return -float(regret.sum()) / (float(np.abs(best).sum()) or 1.0)

        return score

    def _judged(self, X: Any, costs: Any) -> Callable[[Floats], tuple[Floats, Floats]]:
        """From predicted costs to the regret of each instance; and the values of the best decisions."""
        problems = self._problems(X)
        true = _matrix("costs", costs, np.asarray(X), variables_of(problems[0]))
        best = self._decided(problems, true)
        sign = 1.0 if problems[0].is_maximization else -1.0
        known = best.are_proved(true)
        reference = np.where(known | ~np.isfinite(best.bound), best.value, best.bound)
        if not known.all():
            warnings.warn(
                f"{np.count_nonzero(~known)} of {len(known)} decisions that the solver found for the true costs are "
                "not proved best; regret is counted from their bounds, or from what was found where there is none",
                UserWarning,
                stacklevel=4,
            )

        def judged(predicted: Floats) -> tuple[Floats, Floats]:
            reached = (self._decided(problems, predicted).decision * true).sum(axis=1)
            return np.maximum(sign * (reference - reached), 0.0), reference

        return judged

    def _decided(self, problems: tuple[Problem, ...], costs: Floats) -> Decisions:
        sign = 1.0 if problems[0].is_maximization else -1.0
        found = ProblemOracle(problems, sign * costs, self.solver).optimal
        return Decisions(found.decision, sign * found.value, sign * found.bound)

    def _keep(self, outcome: Training, lam: float) -> Self:
        d = self.n_features_in_
        weights = outcome.w.reshape(-1, d + self.fit_intercept)
        self.coef_, self.intercept_ = weights[:, :d], weights[:, d] if self.fit_intercept else np.zeros(len(weights))
        if self.shared_weights_:
            self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        store_outcome(self, outcome, lam)
        warn_of_gap(outcome)
        if outcome.certificate.stop is Stop.INTERRUPTED:
            warn_interrupted("weights")
        return self

    def _check_storable(self) -> None:
        """Raise ModelError for a problem that is no data."""
        if not isinstance(self.problem, Problem):
            raise ModelError("A problem that is a function or a model cannot be saved; pass as_problem(model).")

    def _check_loaded(self) -> None:
        """Raise ModelError where what was read from a file does not fit together."""
        check_saved(self, Step, (), CLAIMED)
        try:
            check_options(self)
            n = variables_of(feasible_set(self.problem))
        except Exception as error:  # whatever a forged parameter does
            raise ModelError(f"a parameter has a value that cannot work ({error}).") from error
        d, shared = getattr(self, "n_features_in_", None), getattr(self, "shared_weights_", None)
        coef, intercept = (np.asarray(getattr(self, name, None)) for name in ("coef_", "intercept_"))
        shape = (d,) if shared is True else (n, d)
        fits = coef.shape == shape and intercept.shape == shape[:-1] and coef.dtype == intercept.dtype == np.float64
        if type(shared) is not bool or not fits or not (np.isfinite(coef).all() and np.isfinite(intercept).all()):
            raise ModelError(
                "coef_ or intercept_ is missing, not finite, or has another shape than the problem requires."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.input_tags.three_d_array = True
        return tags


def _matrix(name: str, values: Any, X: Any, n: int) -> Floats:
    """(m, n) finite numbers, one row an instance; DataError for what is no array of numbers, or has another shape."""
    check_no_mask(name, values, DataError)
    try:
        found = np.asarray(values, dtype=None if np.iscomplexobj(values) else np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} must be an array of {len(X)} × {n} numbers; got {type(values).__name__}") from error
    if found.ndim < 2 or found.size != len(X) * n or len(found) != len(X) or (np.ndim(X) == 3 and n != X.shape[1]):
        raise DataError(
            f"{name} have the shape {found.shape}, which does not fit X of shape {np.shape(X)} and a problem of {n} "
            "variables; pass one row an instance and one column a variable"
        )
    return np.asarray(check_array(found.reshape(len(X), n), input_name=name))


def _weights(sample_weight: Any, m: int) -> Floats:
    """(m,) positive weights of instances."""
    weights = np.ones(m) if sample_weight is None else as_numbers("sample_weight", sample_weight)
    if weights.shape != (m,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise DataError(f"sample_weight must be {m} positive numbers; got shape {weights.shape}")
    return weights
