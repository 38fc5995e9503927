"""Regularization paths: rankers for several λ, position weights and bounds; `lam="auto"`.

`lam="auto"` chooses λ by two-fold cross-validation over queries, along a path that reuses planes. Queries are split by
their content, so shuffling does not change the folds. For each fold a ranker is trained on the other one along a path
of λ, in units of the natural λ (`rankopt.rankers.starts`). The fold evaluates every model and the start w₀ (λ = ∞). A
measure cut at k is replaced by its mean over the cuts at k, k/2, k/4 and k/8, which varies less. The factor with the
best mean is chosen, and a final fit uses all queries. Limits of steps and time apply to the final fit only, so the
choice does not depend on the speed of the machine.
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from formulations.arrays import Bools, Floats, Ints, each
from formulations.compiled import is_small
from formulations.display import CompactReprMixin
from formulations.solvers.active_set import ActiveSet
from formulations.solvers.exact import ExactArgmax
from rankopt.data.canonical_order import canonical
from rankopt.data.queries import Queries
from rankopt.data.typing import Attributes, Ids, Sizes, Values
from rankopt.engines import ended
from rankopt.errors import DataError, OptionError
from rankopt.fitting import warn_interrupted
from rankopt.measures.notation import parse
from rankopt.optimize import get_method
from rankopt.optimize.certificate import Stop
from rankopt.optimize.concave_convex import follow
from rankopt.optimize.objective import Objective, SparseObjective, largest
from rankopt.options import number
from rankopt.rankers import inputs
from rankopt.rankers.run import follow_path, warn_best_at_start, warn_of_outcome
from rankopt.rankers.typing import AnyBound, AnyPositionWeights, AnyRows, EvalIds, EvalSet, EvalSizes, Weights


@dataclass(frozen=True, eq=False)
class Path(CompactReprMixin):
    """models: the fitted rankers by position weights, for each by bound, and for each of these the largest λ
    first. interrupted: whether some of the path was not gone."""

    models: tuple[Any, ...]
    interrupted: bool = False

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, index: int) -> Any:
        return self.models[index]

    @property
    def lams(self) -> tuple[float, ...]:
        """λ of each model."""
        return tuple(model.lam_ for model in self.models)

    @property
    def best(self) -> Any:
        """The model with the best `best_score_`, of equals the first."""
        if not all(hasattr(model, "best_score_") for model in self.models):
            raise OptionError("a path has no best model because no eval_set was passed; pass eval_set to path")
        return max(self.models, key=lambda model: model.best_score_)


def path(
    self: Any,
    X: AnyRows,
    y: Values | None = None,
    *,
    lams: Iterable[float] | int | None = None,
    position_weights: Iterable[AnyPositionWeights] | None = None,
    bounds: Iterable[AnyBound] | None = None,
    qid: Ids | None = None,
    group: Sizes | None = None,
    query_weight: Weights | None = None,
    attributes: Attributes | None = None,
    eval_set: EvalSet | None = None,
    eval_qid: EvalIds | None = None,
    eval_group: EvalSizes | None = None,
    eval_attributes: Attributes | None = None,
    eval_X: AnyRows | None = None,
    eval_y: Values | None = None,
    each: Callable[[Any], None] | None = None,
) -> Path:
    """Fit a copy of this ranker for each λ of `lams`, the largest first, each with its own certificate; and for
    each of `position_weights` and `bounds` (default: those of the ranker).

    The data are read once. Each λ starts at the previous solution with all planes found so far: ten λ take as many
    passes as one to three of the most expensive fits (benchmarks/training.md). If these planes suffice, a λ takes no
    step and `n_iter_` is 0. Each position weight and bound starts anew. A path does not support checkpoints.

    Under a nonconvex bound the result may be another critical point than that of a separate fit, which starts at
    w₀. With `eval_set` each λ of such a bound starts at w₀ too, and the models are those of separate fits. Limits apply
    to each model. Ctrl-C returns the models so far with a `TrainingInterruptedWarning`. `each` is called with every
    fitted model. The other parameters are as in `fit`.

    lams: None is this ranker's λ. With penalty="l1" a number n is n values in geometric progression, from the
    smallest λ at which w = 0 is optimal (critical for a nonconvex bound) to a thousandth of it. There each λ of a
    nonconvex bound starts at w0, as 0 is a fixed point. The ranker is not changed.
    """
    inputs.refuse_log(X)
    if each is not None and not callable(each):
        raise OptionError(f"each must be a function of a model or None; got {each!r:.80}")
    choices = _choices(self, position_weights, bounds)
    wanted: Sequence[float] | None = None if lams is None or _is_count(lams) else _sorted_lams(lams)
    if getattr(self, "checkpoint", None) is not None:
        raise OptionError("a path does not support checkpoints; fit each λ separately, or set checkpoint=None")
    ranker: Any = clone(self)
    queries = inputs.read_queries(ranker, X, y, qid=qid, group=group, attributes=attributes, reset=True)
    inputs.warn_without_queries(X, queries.n_documents, qid, group)
    weights = inputs.query_weights(queries, query_weight)
    ranker.n_queries_ = len(queries)
    if queries.has_gains:  # while the path is trained; its models state the measure that was given
        with inputs.measuring_gains(ranker, queries):
            trained = ranker.measure
        ranker.measure = trained
    ways = {"qid": eval_qid, "group": eval_group, "attributes": eval_attributes}
    evaluation = inputs.read_evaluation(ranker, queries, inputs.in_one(eval_set, eval_X, eval_y), **ways)
    models: list[Any] = []
    for choice in choices:
        one = copy(ranker).set_params(**choice)
        if lams is not None:  # its own λ is not used
            one = _at(ranker, 1.0 if wanted is None else wanted[0], choice)
        one._before(queries)
        objective = one.objective(queries, weights)
        values: Sequence[float] = (objective.lam,) if wanted is None else wanted
        values = _lam_grid(objective, lams) if _is_count(lams) else values
        first = len(models)
        for model in _along(self, one, objective, values, evaluation):
            if queries.has_gains:
                model.measure = self.measure
            models.append(model)
            if each is not None:
                each(model)
        if len(models) - first < len(values) or models[-1].certificate_.stop is Stop.INTERRUPTED:
            warn_interrupted("models", stacklevel=3)
            return Path(tuple(models), True)
    if evaluation is not None:
        best = Path(tuple(models)).best
        warn_best_at_start(best.certificate_, best.best_score_, "other lams", 3)
    return Path(tuple(models))


def _along(
    self: Any, ranker: Any, objective: Objective, lams: Sequence[float], evaluation: Queries | None
) -> Iterator[Any]:
    """A model for each λ."""
    judge = None if evaluation is None else ranker._judge(evaluation)
    method = get_method(self.method, getattr(self, "random_state", None))
    runs = follow_path(self, objective, method, lams, judge)
    for outcome, lam in zip(runs, lams, strict=False):  # an interrupted path is shorter
        model, own = _at(ranker, lam), replace(objective, lam=lam)
        model._keep(outcome, own)
        warn_of_outcome(outcome, own, model._cures, stacklevel=4)
        yield model


def _at(ranker: Any, lam: float, choice: dict[str, Any] | None = None) -> Any:
    return copy(ranker).set_params(lam=lam, C=None, **(choice or {}))


def _choices(ranker: Any, position_weights: Iterable[Any] | None, bounds: Iterable[Any] | None) -> list[dict[str, Any]]:
    """The parameters of each combination, position weights by position weights."""
    passed = {}
    options = (("position_weights", "position_weights", position_weights), ("bound", "bounds", bounds))
    for parameter, name, values in options:
        if values is None:
            continue
        if parameter not in ranker.get_params(deep=False):
            raise OptionError(
                f"{name} cannot be chosen here because {type(ranker).__name__} has no such parameter; leave it out"
            )
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise OptionError(f"{name} = {values!r} is no sequence; give a list of them, such as [{values!r}]")
        passed[parameter] = list(each(name, values, DataError))
        if not passed[parameter]:
            raise OptionError(f"{name} is empty; pass at least one value, or leave it out")
    return [dict(zip(passed, values, strict=True)) for values in product(*passed.values())]


def _is_count(lams: Any) -> bool:
    return isinstance(lams, int | np.integer) and not isinstance(lams, bool)


def _lam_grid(objective: Objective, count: Any) -> tuple[float, ...]:
    """So many λ, from the one that leaves nothing in down to a thousandth of it."""
    if not isinstance(objective, SparseObjective):
        raise OptionError(f"lams = {count} counts λ under penalty='l1' alone; give the λ of a path, such as [1, 0.1]")
    most = largest(objective)
    if not 1 <= count <= 10_000 or not most > 0:
        raise OptionError(f"lams = {count} with a largest λ of {most:g} makes no path; give the λ themselves")
    return tuple((most * np.logspace(0.0, -3.0, count)).tolist())


def _sorted_lams(lams: Any) -> list[float]:
    """The λ of a path, the largest first."""
    if not hasattr(lams, "__iter__"):
        raise OptionError(f"lams = {lams!r} is no sequence; give the λ of a path, such as [1, 0.1, 0.01]")
    wanted = each("lams", lams, OptionError)
    for lam in wanted:
        if not 0 < number(lam) < np.inf:
            raise OptionError(f"lam = {lam} in lams: the regularizer needs a positive finite weight")
    if not wanted:
        raise OptionError("lams is empty; give the λ of a path, such as [1, 0.1, 0.01]")
    return sorted(map(float, {*wanted}), reverse=True)


FOLDS = 2

FACTORS, FROM_ZERO = (10.0, 3.0, 1.0), (1.0, 1e-1, 1e-2, 1e-3)
LOSS_FACTORS = (10.0, 1.0, 0.1, 0.01)  # from w₀ = 0 where "scale" has `ZERO_STRENGTH`
"""λ of the path in units of the natural one, the largest first, from a start and from w₀ = 0, the hardest
start; w₀ itself precedes them."""

TOL, STEPS = 1e-2, 8
"""The relative gap to which the models of a fold are trained, and the steps that each may take: judging asks for no
more."""


def chosen_factor(ranker: Any, queries: Queries, weights: Floats) -> float:
    """λ in units of the natural one, as cross-validation chooses it; of equals the largest.

    Raises OptionError for fewer than two queries with something to order.
    """
    found, factors = judged(ranker, queries, weights)
    first = int(np.isnan(found[0]).all())  # w₀ is no member of a path that pulls to 0
    counted = ~np.isnan(found[first:]).any(axis=0)
    if not counted.any():
        raise OptionError(
            f"lam = 'auto' cannot choose because {ranker.measure} is defined on no query that was left out; give a "
            "number, or lam='scale'"
        )
    best = first + int(np.argmax(np.average(found[first:, counted], axis=1, weights=weights[counted])))  # the largest
    return factors[max(best - 1, 0)]


def judged(ranker: Any, queries: Queries, weights: Floats) -> tuple[Floats, tuple[float, ...]]:
    """(1 + F, m) the measure of each query under w₀ and along the path of F factors, trained without its fold."""
    grades, starts = np.asarray(queries.relevance), queries.offsets[:-1]
    counted = (weights > 0) & (np.maximum.reduceat(grades, starts) > np.minimum.reduceat(grades, starts))
    if counted.sum() < 2:
        raise OptionError(
            "lam = 'auto' cannot choose because fewer than two queries have something to order; give a number, or "
            "lam='scale'"
        )
    folds = dealt(queries, weights, counted, min(FOLDS, int(counted.sum())))
    factors: tuple[float, ...] = FACTORS
    values = np.full((1 + max(len(FACTORS), len(FROM_ZERO)), len(queries)), np.nan)
    method = get_method(ranker.method, getattr(ranker, "random_state", None))
    for fold in range(folds.max() + 1):
        rest, left = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        engine = "serial" if ranker.engine == "serial" else "threads"  # the data are here
        one = clone(ranker).set_params(lam="scale", C=None, checkpoint=None, engine=engine, **as_of(ranker, queries))
        own = queries.select(rest)
        one.n_queries_ = rest.size
        one.n_features_in_ = queries.n_features
        one._before(own)
        objective = one.objective(own, weights[rest])
        judge = one._values(queries.select(left), steady(ranker))
        factors = FACTORS if objective.start.any() else ranker._from_zero
        lams = [factor * objective.lam for factor in factors]
        if objective.start_counts:
            values[0, left] = judge(objective.start)
        gone, tol = 0, max(TOL, ranker.tol)
        with ended(objective.risk.engine, True):
            for outcome in follow(objective, method, objective.start, lams, tol, (STEPS, None, ()), prove=False):
                if outcome.certificate.stop is not Stop.INTERRUPTED:
                    gone += 1
                    values[gone, left] = judge(outcome.w)
        if gone < len(factors):
            raise KeyboardInterrupt("interrupted while lam was chosen, before the first step was done")
    return values[: 1 + len(factors)], factors


def as_of(ranker: Any, queries: Queries) -> dict[str, Any]:
    """The solvers chosen for the full data, so that a fold of large data uses compiled ones too."""
    if is_small(queries.offsets):
        return {}
    plain = getattr(ranker, "argmax_solver", None) == "exact" and getattr(ranker, "constraints", None) is None
    master = {"master_solver": ActiveSet(compiled=True)} if ranker.master_solver == "auto" else {}
    return {"argmax_solver": ExactArgmax(compiled=True), **master} if plain else master


def dealt(queries: Queries, weights: Floats, counted: Bools, folds: int) -> Ints:
    """(m,) the fold of each query that is counted, dealt in turn in canonical order; -1 for the others."""
    known = dict(zip(queries.query_ids, counted.tolist(), strict=True))
    ordered = [query for query in canonical(queries, weights).query_ids if known[query]]
    fold_of = {query: number % folds for number, query in enumerate(ordered)}
    return np.array([fold_of.get(query, -1) for query in queries.query_ids])


def steady(ranker: Any) -> list[Any]:
    """The measure at its cut, a half, a quarter and an eighth of it, or itself where it has none."""
    measure = getattr(ranker, "measure", None)
    if measure is None:
        return [None]
    parsed: Any = parse(measure)
    cut = getattr(parsed, "cutoff", None)
    if not isinstance(cut, int):
        return [parsed]
    return [replace(parsed, cutoff=k) for k in sorted({max(round(cut / 2**part), 1) for part in range(4)})]
