"""RankSVM: the pairwise baseline of [ORM, section 6], by the same loop and with the same certificate."""
# mypy: allow-subclassing-any

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankopt.rankers.optimized import OptimizedRanker
from rankopt.risk.shard import Shard
from rankopt.risk.sharding import pairwise_shards

if TYPE_CHECKING:
    from rankopt.data.arrangement import Arrangement

__all__ = ["PairwiseRanker"]

Floats = NDArray[np.float64]


class PairwiseRanker(OptimizedRanker):
    """Minimises J(w) = (λ/2)‖w‖² + Σ_q v_q mean over pairs y_i > y_j of query q of max(0, 1 - wᵀ(x_i - x_j)).

    Source: Herbrich, Graepel and Obermayer 2000; Joachims 2002. Each query counts alike (v_q = 1/m), whatever the
    number of its pairs; a step costs O(n log n) a query.

    Args:
        measure: what `score` means and an eval_set is judged by; training does not use it.
        method, master, lam, C, tol, max_iter, time_limit, engine, n_jobs, warm_start, callbacks, checkpoint,
            verbose: as in `LargeMarginRanker`.

    Fitted: `coef_`, `certificate_` (global), `history_`, `n_iter_`, `lam_`; with eval_set `eval_score_`.
    """

    def __init__(
        self,
        measure: Any = "nDCG@10",
        *,
        method: Any = "bundle",
        master: Any = "auto",
        lam: float | None = 1e-2,
        C: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 2000,
        time_limit: float | None = None,
        engine: Any = "threads",
        n_jobs: int | None = None,
        warm_start: bool = False,
        callbacks: Sequence[Callable[..., bool | None]] = (),
        checkpoint: Any = None,
        verbose: int = 0,
    ) -> None:
        self.measure = measure
        self.method = method
        self.master = master
        self.lam = lam
        self.C = C
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.engine = engine
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.verbose = verbose

    def _shards(self, queries: Arrangement) -> tuple[Shard, ...]:
        return pairwise_shards(queries)
