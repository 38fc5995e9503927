"""A ranker for each λ of a path, at the price of a few fits."""
# mypy: allow-subclassing-any

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from rankopt.engines import ended
from rankopt.errors import OptionError
from rankopt.optimize import method_named
from rankopt.optimize.certificate import Stop
from rankopt.optimize.method import Clock
from rankopt.optimize.path import follow
from rankopt.rankers.inputs import in_one, read_evaluation, read_queries, warn_of_one_query
from rankopt.rankers.progress import shown
from rankopt.rankers.weights import query_weights

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

__all__ = ["Path", "Pathed"]


@dataclass(frozen=True, eq=False)
class Path:
    """models: a fitted ranker for each λ, the largest first. interrupted: whether some of the path was not gone."""

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
        """The model with the best `eval_score_`, of equals that with the largest λ."""
        if not all(hasattr(model, "eval_score_") for model in self.models):
            raise OptionError("a path has no best model because nothing judged it; give path an eval_set")
        return max(self.models, key=lambda model: model.eval_score_)


class Pathed:
    """`path` of a ranker that minimises J."""

    method: Any
    checkpoint: Any
    tol: float
    max_iter: int
    time_limit: float | None
    engine: Any
    callbacks: Sequence[Callable[..., bool | None]]
    verbose: int

    def path(
        self,
        X: Any,
        y: Any = None,
        *,
        lams: Iterable[float],
        qid: Any = None,
        group: Any = None,
        query_weight: Any = None,
        attributes: Any = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        eval_group: Any = None,
        eval_attributes: Any = None,
        eval_X: Any = None,
        eval_y: Any = None,
        each: Callable[[Any], None] | None = None,
    ) -> Path:
        """A fitted copy of this ranker for each λ of `lams`, the largest first, each with its own certificate.

        The data are read once, and each λ begins where the one before ended, with all planes found so far: ten take
        as many passes as one to three of the dearest fits (benchmarks/loops.md). Where those planes prove enough, a λ
        takes no step: `n_iter_` is 0. A path keeps no checkpoint; fits of each λ by itself do. Under a nonconvex bound
        the weights may be another critical point than that of a fit of its own, which begins at w₀. Limits hold for
        each λ; Ctrl-C ends the path with what it has. `each` is called with every model when it is fitted, the rest is
        as in `fit`.
        The ranker itself stays as it is.
        """
        if not hasattr(lams, "__iter__"):
            raise OptionError(f"lams = {lams!r} is no sequence; give the λ of a path, such as [1, 0.1, 0.01]")
        wanted = sorted({_positive(lam) for lam in lams}, reverse=True)
        if not wanted:
            raise OptionError("lams is empty; give the λ of a path, such as [1, 0.1, 0.01]")
        if getattr(self, "checkpoint", None) is not None:
            raise OptionError("a path keeps no checkpoint; fit each λ by itself, or set checkpoint=None")
        ranker = clone(self).set_params(lam=wanted[0], C=None)
        queries = read_queries(ranker, X, y, qid=qid, group=group, attributes=attributes, reset=True)
        warn_of_one_query(X, queries.n_documents, qid, group)
        weights = query_weights(queries, query_weight)
        ranker.n_queries_ = len(queries)
        eval_set = in_one(eval_set, eval_X, eval_y)
        evaluation = read_evaluation(ranker, eval_set, qid=eval_qid, group=eval_group, attributes=eval_attributes)
        ranker._before(queries)
        objective = ranker.objective(queries, weights)
        judge = None if evaluation is None else ranker._judge(evaluation)
        method = method_named(self.method, getattr(self, "random_state", None))
        models: list[Any] = []
        engine = objective.risk.engine
        with ended(engine, engine is not self.engine), shown(self.verbose) as progress:
            objective.prepare()

            def clock() -> Clock:
                return Clock.started(self.max_iter, self.time_limit, (*self.callbacks, *progress))

            runs = follow(objective, method, objective.w0, wanted, self.tol, clock, judge)
            for lam, outcome in zip(wanted, runs, strict=False):  # an interrupted path is shorter
                models.append(copy(ranker).set_params(lam=lam))
                models[-1]._keep(outcome, replace(objective, lam=lam))
                if each is not None:
                    each(models[-1])
        interrupted = len(models) < len(wanted) or models[-1].certificate_.stop is Stop.INTERRUPTED
        return Path(tuple(models), interrupted)

    def _before(self, queries: Queries) -> None:
        """What a subclass has to know of the data first."""


def _positive(lam: Any) -> float:
    try:
        value = float(lam)
    except (TypeError, ValueError):
        value = np.nan
    if not (np.isfinite(value) and value > 0):
        raise OptionError(f"lam = {lam} in lams: the regulariser needs a positive finite weight")
    return value
