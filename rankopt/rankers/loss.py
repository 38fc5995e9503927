"""Rankers for any loss of the scores, and RankSVM, by the same loop and with the same certificate."""
# mypy: allow-subclassing-any

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from formulations.arrays import Floats, Ints
from rankopt.constraints.admissible import Admissible
from rankopt.data.canonical_order import Arrangement
from rankopt.data.queries import Queries
from rankopt.errors import OptionError
from rankopt.losses import get_loss, make_loss, sees_queries
from rankopt.losses.loss import Loss, protocol_of
from rankopt.measures.notation import parse
from rankopt.rankers import typing as types
from rankopt.rankers.optimized import OptimizedRanker
from rankopt.rankers.path import LOSS_FACTORS
from rankopt.rankers.stream import partial_fit
from rankopt.risk.risk import Shard, shards_of_grades


class LossRanker(OptimizedRanker):
    """Minimizes J(w) = (λ/2)‖w - w₀‖² + Σ_q v_q loss_q(X_q w), v_q = 1/m unless queries have weights, over the queries
    that have documents of different grades.

    Parameters
    ----------
    **Start here**

    loss : default "pairwise"
        A name of `rankopt.losses.LOSSES`, or a function (relevance, offsets) to a `rankopt.losses.loss.Loss` of
        your own. If it has a parameter `queries` it gets the queries too, with attributes and your row of each
        document, and the documents of each query in your order. `rankopt.testing.check_loss` checks the loss.
    measure : default "nDCG@10"
        What `score` means and an eval_set is judged by. Training uses it where the loss is of a measure, and
        has `of_measure` therefore.
    w0 : default "zeros"
        "zeros" (default), "ridge", "ranksvm", "regression" (see `LargeMarginRanker`), or an array (d,).
    constraints : default None
        An `Admissible` for `rank` and `score`; training ignores it.
    lam, C, normalize, missing : defaults "scale", None, "auto", "error"
        As in `LargeMarginRanker`, but with w0="zeros" "scale" is U / (10 m), times the size of the loss. A scale of
        one feature, or of the loss, leaves the orders the same.

    **Model**

    penalty, coef_bounds : defaults "l2", None
        As in `LargeMarginRanker`.

    **Solver**

    method, master_solver, tol, random_state, warm_start : defaults "bundle", "auto", 0.001, None, False
        As in `LargeMarginRanker`.

    **Run**

    max_iter, time_limit, engine, n_jobs, callbacks, checkpoint, verbose : defaults 2000, None, "threads", None, (), ...
        As in `LargeMarginRanker`.

    Notes
    -----
    Fitted: `coef_`, `certificate_` (global where the loss is convex, else stationary), `history_`, `n_iter_`, `w0_`,
    `lam_`; with eval_set `best_score_`.
    """

    _from_zero: ClassVar[tuple[float, ...]] = LOSS_FACTORS

    def _takes_gains(self) -> bool:
        return bool(getattr(get_loss(self.loss), "linear_in_gains", False))

    def __init__(
        self,
        loss: types.LossName | Callable[..., Any] = "pairwise",
        measure: types.AnyMeasure = "nDCG@10",
        *,
        w0: types.Start = "zeros",
        method: types.AnyMethod = "bundle",
        master_solver: types.AnySolver = "auto",
        lam: types.Strength = "scale",
        C: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 2000,
        time_limit: float | None = None,
        engine: types.AnyEngine = "threads",
        n_jobs: int | None = None,
        random_state: types.Seed = None,
        warm_start: bool = False,
        callbacks: types.Callbacks = (),
        checkpoint: types.AnyCheckpoint = None,
        verbose: int = 0,
        constraints: Admissible | None = None,
        normalize: types.Normalize = "auto",
        missing: types.Missing = "error",
        penalty: types.PenaltyName = "l2",
        coef_bounds: types.CoefBounds = None,
    ) -> None:
        self.loss = loss
        self.measure = measure
        self.w0 = w0
        self.method = method
        self.master_solver = master_solver
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
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.constraints = constraints
        self.normalize = normalize
        self.missing = missing
        self.penalty = penalty
        self.coef_bounds = coef_bounds

    partial_fit = partial_fit

    def _order_matters(self) -> bool:
        return sees_queries(self.loss)

    def _content(self, queries: Queries) -> Sequence[str]:
        return [*queries.attributes] if sees_queries(self.loss) else super()._content(queries)

    def _shards(self, queries: Arrangement, w0: Callable[[], Floats]) -> tuple[Shard, ...]:
        return loss_shards(self.loss, self.measure, queries)


class PairwiseRanker(OptimizedRanker):
    """Minimizes J(w) = (λ/2)‖w - w₀‖² + Σ_q v_q mean over pairs y_i > y_j of query q of max(0, 1 - wᵀ(x_i - x_j)).

    Source: Herbrich, Graepel and Obermayer 2000; Joachims 2002. Each query counts alike (v_q = 1/m), whatever the
    number of its pairs; a step costs O(n log n) a query. The `LossRanker` with the loss "pairwise"; what is fitted is
    described there.

    Parameters
    ----------
    **Start here**

    measure, w0, constraints : defaults "nDCG@10", "zeros", None
        As in `LossRanker`.
    lam, C, normalize, missing : defaults "scale", None, "auto", "error"
        As in `LossRanker`.

    **Model**

    penalty, coef_bounds : defaults "l2", None
        As in `LargeMarginRanker`.

    **Solver**

    method, master_solver, tol, random_state, warm_start : defaults "bundle", "auto", 0.001, None, False
        As in `LargeMarginRanker`.

    **Run**

    max_iter, time_limit, engine, n_jobs, callbacks, checkpoint, verbose : defaults 2000, None, "threads", None, (), ...
        As in `LargeMarginRanker`.
    """

    _from_zero: ClassVar[tuple[float, ...]] = LOSS_FACTORS

    def __init__(
        self,
        measure: types.AnyMeasure = "nDCG@10",
        *,
        w0: types.Start = "zeros",
        method: types.AnyMethod = "bundle",
        master_solver: types.AnySolver = "auto",
        lam: types.Strength = "scale",
        C: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 2000,
        time_limit: float | None = None,
        engine: types.AnyEngine = "threads",
        n_jobs: int | None = None,
        random_state: types.Seed = None,
        warm_start: bool = False,
        callbacks: types.Callbacks = (),
        checkpoint: types.AnyCheckpoint = None,
        verbose: int = 0,
        constraints: Admissible | None = None,
        normalize: types.Normalize = "auto",
        missing: types.Missing = "error",
        penalty: types.PenaltyName = "l2",
        coef_bounds: types.CoefBounds = None,
    ) -> None:
        self.measure = measure
        self.w0 = w0
        self.method = method
        self.master_solver = master_solver
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
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.constraints = constraints
        self.normalize = normalize
        self.missing = missing
        self.penalty = penalty
        self.coef_bounds = coef_bounds

    partial_fit = partial_fit

    def _shards(self, queries: Arrangement, w0: Callable[[], Floats]) -> tuple[Shard, ...]:
        return loss_shards("pairwise", self.measure, queries)


def loss_shards(name: Any, measure: Any, queries: Arrangement) -> tuple[Shard, ...]:
    """The queries with documents of different grades, with the loss of this name, in shards."""
    parsed = parse(measure)  # a slip in what it is judged by is an error before training
    factory = get_loss(name)
    factory = factory.of_measure(parsed) if hasattr(factory, "of_measure") else factory

    def made(relevance: Floats, offsets: Ints, queries: Arrangement) -> Loss:
        loss = make_loss(factory, queries)
        if protocol_of(loss) == "gradient":
            cure = "SmoothRanker" if name == "smooth" else "a network with rankopt.torch.RankingLoss"
            raise OptionError(
                f"loss = {name!r} is not convex and has a gradient but no cutting planes, which LossRanker needs; use "
                f"{cure}, or a loss with planes"
            )
        if not hasattr(loss, "majorant"):
            raise OptionError(f"loss = {name!r} made a {type(loss).__name__}, which is no Loss; see check_loss")
        return loss

    return shards_of_grades(queries, made)
