"""RankSVM: the pairwise baseline of [ORM, section 6], by the same loop and with the same certificate."""
# mypy: allow-subclassing-any

from __future__ import annotations

from typing import TYPE_CHECKING

from rankopt.rankers.loss import LossRanker
from rankopt.rankers.options import (
    AnyCheckpoint,
    AnyEngine,
    AnyMeasure,
    AnyMethod,
    AnySolver,
    Callbacks,
    Normalize,
    PenaltyName,
    Seed,
    Start,
    Strength,
)

if TYPE_CHECKING:
    from rankopt.constraints.admissible import Admissible


class PairwiseRanker(LossRanker):
    """Minimises J(w) = (λ/2)‖w - w₀‖² + Σ_q v_q mean over pairs y_i > y_j of query q of max(0, 1 - wᵀ(x_i - x_j)).

    Source: Herbrich, Graepel and Obermayer 2000; Joachims 2002. Each query counts alike (v_q = 1/m), whatever the
    number of its pairs; a step costs O(n log n) a query. The `LossRanker` with the loss "pairwise"; its arguments and
    what is fitted are said there.
    """

    def __init__(
        self,
        measure: AnyMeasure = "nDCG@10",
        *,
        w0: Start = "zeros",
        method: AnyMethod = "bundle",
        master_solver: AnySolver = "auto",
        lam: Strength = 1e-2,
        C: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 2000,
        time_limit: float | None = None,
        engine: AnyEngine = "threads",
        n_jobs: int | None = None,
        random_state: Seed = None,
        warm_start: bool = False,
        callbacks: Callbacks = (),
        checkpoint: AnyCheckpoint = None,
        verbose: int = 0,
        constraints: Admissible | None = None,
        normalize: Normalize = None,
        penalty: PenaltyName = "l2",
    ) -> None:
        super().__init__(
            "pairwise", measure, w0=w0, method=method, master_solver=master_solver, lam=lam, C=C, tol=tol,
            max_iter=max_iter,
            time_limit=time_limit, engine=engine, n_jobs=n_jobs, random_state=random_state, warm_start=warm_start,
            callbacks=callbacks, checkpoint=checkpoint, verbose=verbose, constraints=constraints,
            normalize=normalize,
            penalty=penalty,
        )  # fmt: skip
