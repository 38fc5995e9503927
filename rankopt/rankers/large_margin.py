"""Large-margin optimization of a ranking measure: the ranker of [ORM], with a proven gap."""
# mypy: allow-subclassing-any

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.problems.ranking import RankTwoAssignment
from formulations.problems.relevance_ranking import RelevanceRanking
from formulations.solvers import compatible_solvers, get_solver
from formulations.solvers.solver import Solver, suits
from rankopt.constraints.admissible import Admissible
from rankopt.errors import OptionError
from rankopt.losses import get_bound, get_feature_map
from rankopt.losses.margin import Bound, MarginLoss
from rankopt.losses.oracle import JointFeatureMap
from rankopt.losses.oracle_constrained import AdmissibleArgmax
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.position_weights import parse_position_weights
from rankopt.losses.regret import RegretBound
from rankopt.measures.notation import MeasureMix, parse
from rankopt.measures.positional import PositionalMeasure
from rankopt.rankers.deployment import Deployment, log_weights
from rankopt.rankers.optimized import OptimizedRanker
from rankopt.rankers.options import (
    AnyBound,
    AnyCheckpoint,
    AnyDecay,
    AnyEngine,
    AnyMap,
    AnyMeasure,
    AnyMethod,
    AnySolver,
    Callbacks,
    Normalize,
    PenaltyName,
    ReferenceName,
    Seed,
    Start,
    Strength,
)
from rankopt.rankers.progress import cures_at_start
from rankopt.risk.shard import Shard, shards
from rankopt.scorers.linear import row_scores

if TYPE_CHECKING:
    from rankopt.data.canonical_order import Arrangement
    from rankopt.data.queries import Queries
    from rankopt.losses.loss import Loss

Floats = NDArray[np.float64]


class LargeMarginRanker(OptimizedRanker):
    """Minimises J(w) = (λ/2)‖w - w₀‖² + Σ_q v_q loss_q(w), loss_q an upper bound of the measure's regret on query q.

    Source: [ORM, eq. 20 to 24]. The defaults were chosen on seven real data sets and samples of them
    (benchmarks/accuracy.md): the ridge that cross-validation over whole queries chooses, brought to margins of 1, is
    w₀; the nonconvex bound goes on from there. The convex bound often ends at w = 0. The m queries with something to
    order count, v_q = query_weight / Σ query_weight (1/m by default). A `rankopt.errors.WorseThanInitWarning` warning
    says so where the training queries are ordered worse than by w₀.

    Args:
        measure: a measure of `rankopt.measures`, or its notation: nDCG@k, P@k, AUC, AP, RR, ERR, ...
        feature_map: the feature map, which says what an order makes of the scores: "positional" (its slope is the decay
        of the
            position [ORM]), "pairwise" (pairs in the wrong order [paper 4, φ_po]; it takes every measure too),
            "first-relevant" (RR alone [φ_mrr]), or a map of your own (see `rankopt.losses`).
        bound: "convex", "tie-aware", "nonconvex", or one of your own (see `rankopt.losses`); those that are not convex
            by the concave-convex procedure.
        target_ranking: of the convex bound, a word that the map knows: "average" or "first" of "positional", "ideal" or
            "average" of the others; by default the one named first. In a mix it is that of every part.
        position_weights: position weights of the scores, of the map "positional": "linear", "power(0.5)", "log",
        "loglog",
            "discount", each with a cut-off such as "power(0.5)@10" if wanted, or an array.
        w0: what the regulariser pulls to and training starts from: "ridge" (`RegressionRanker()` times the factor that
            makes margins 1), "ranksvm" (`PairwiseRanker()`), "regression" (bare least squares on the gains [ORM,
            section 6.3]), "zeros", or an array (d,). By default zeros for the convex bound and the ridge for the
            others. It is found first; limits of steps and time begin afterwards.
        method: "bundle", "cutting_planes", "block_frank_wolfe", "stochastic_subgradient", "steepest_subgradient", or
            such an object of `rankopt.optimize` with settings of its own.
        argmax_solver: the solver of the loss-augmented ranking, "exact" or any of `formulations.solvers`.
        master_solver: the solver of the master program, "auto" or any of `formulations.solvers`. If it fails once a
        step was
            done, training ends with the best weights so far, their gap, and a ConvergenceWarning.
        lam, C: the weight λ of the regulariser; or C = 1 / (λ m), with lam=None. "scale" is the strength natural to the
            data, 3 U / m with U the mean square distance of the features from the mean of their query: the same
            problem if all features are multiplied by one factor (under penalty="l1" 3% of the λ that leaves nothing
            in). "auto" chooses a multiple of it by cross-validation over whole queries. `lam_` is λ.
        tol: the relative gap at which training ends.
        max_iter, time_limit: steps and seconds after which it ends anyway, with a ConvergenceWarning.
        engine, n_jobs: what computes the shards of the data ("threads", "serial", "dask", or an object with a method
            `feature_map(function, shards)`), and the number of workers. Results are bit-identical for every engine.
        random_state: of methods that draw: the order of the queries; a number gives the same weights each time, None
            does too.
        warm_start: start from the previous `coef_` instead of w₀.
        callbacks: functions (step, state) called after each step; one that returns True ends training.
        checkpoint: a folder (or `Checkpoint(folder, every=seconds)`) that keeps where the run stands. A fit of the same
            problem with the same folder goes on from there, to the same bits; limits may be others, and so may
            `master_solver`, should it have failed.
        verbose: 1 shows progress on a terminal.
        constraints: the rankings that are admissible, an `Admissible` over attributes that `fit`, `score` and `rank`
            take as attributes=. Argmax and reference both live in the set, regret is measured from its best ranking
            [ORM, section 7.1]; decay and discount are cut to its k positions. The convex reference is then one
            admissible order, ties falling by the score at w0, or the mean of those that exchange documents which
            nothing tells apart; argmax_solver="exact" means the cheapest exact way for the set.
            Where the set's program is not integral, the proven gap may stay open.
        normalize: None, or how features are normalised within their query: "zscore", "minmax", "sum", "rank". The first
            thing to try where raw scales differ from query to query (benchmarks/normalisation.md).
        penalty: "l2", or "l1" for J(w) = λ‖w‖₁ + Σ_q v_q loss_q(w) [ORM, section 3.1], which leaves features out: most
            weights are exactly 0 (`selected_`, `get_support()`). It pulls to 0, and w0 says only where training starts
            (of the nonconvex bounds: which critical point is found; an eval_set does not choose it), so `w0_` is 0.
            Features should have one scale. Its master is a linear program ("auto" is HiGHS; any solver of such does),
            its λ another: `path(lams=20)` begins where 0 is optimal. Methods: "bundle" and "cutting_planes".

    Fitted: `coef_`, `certificate_` (kind, primal, bound, gap of J), `history_` (`history_.plot()` draws the gap),
    `n_iter_`, `w0_`. With eval_set, `coef_` is the best on it of what the run passed through (`best_score_`), and the
    certificate speaks of that one.
    """

    def __init__(
        self,
        measure: AnyMeasure = "nDCG@10",
        *,
        feature_map: AnyMap = "positional",
        bound: AnyBound = "nonconvex",
        target_ranking: ReferenceName | None = None,
        position_weights: AnyDecay = "power(0.5)",
        w0: Start = None,
        method: AnyMethod = "bundle",
        argmax_solver: AnySolver = "exact",
        master_solver: AnySolver = "auto",
        lam: Strength = "scale",
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
        self.measure = measure
        self.feature_map = feature_map
        self.bound = bound
        self.target_ranking = target_ranking
        self.position_weights = position_weights
        self.w0 = w0
        self.method = method
        self.argmax_solver = argmax_solver
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
        self.penalty = penalty

    def _shards(self, queries: Arrangement, w0: Callable[[], Floats]) -> tuple[Shard, ...]:
        regret = RegretBound.named(self.measure, self.feature_map, self._bound(), self.position_weights)
        admissible = self._admissible()
        if admissible is None:
            solver = self._argmax()
            return shards(queries, lambda some: regret.bind(some, solver))

        def build(queries: Arrangement) -> tuple[Arrangement, Loss]:
            chosen, argmax = AdmissibleArgmax.from_queries(
                queries,
                self._inner(),
                regret.position_weights,
                admissible.for_queries,
                start,
                self._argmax_under_constraints(),
            )
            return chosen, MarginLoss.build(argmax, regret.bound)

        def start(queries: Arrangement) -> Floats:
            return row_scores(queries.features, queries.rows, w0())

        return shards(queries, build)

    def _inner(self) -> PositionalMeasure:
        """The measure where rankings are constrained; OptionError where it is none for that."""
        measure = parse(self.measure)
        if isinstance(measure, MeasureMix):
            raise OptionError(
                f"measure {measure} cannot be trained under constraints, which take no mixes of measures, no weights "
                "and no maps in brackets; take one of nDCG@k, P@k, ... alone"
            )
        if not isinstance(measure, PositionalMeasure) or get_feature_map(self.feature_map) is not PositionalOracle:
            raise OptionError(
                f"measure {measure} under the map {self.feature_map!r} cannot be trained under constraints, "
                f"which take inner "
                "products of position weights and gains; take nDCG@k, P@k, ... and feature_map='positional'"
            )
        return measure

    def _deployment(self, queries: Queries, constraints: Any = None) -> Deployment:
        admissible = self._admissible(constraints)
        solver = "auto" if admissible is None else self._argmax_under_constraints()
        return Deployment.from_queries(queries, admissible, self._shown_weights, solver)

    def _shown_weights(self, k: int, n: int) -> Floats:
        """The decay of training where it is positive and strictly decreasing over k positions, else 1 / log2(i + 1)."""
        known = parse_position_weights(self.position_weights).weights(n, parse(self.measure))[:k]
        return known if known[-1] > 0 and (np.diff(known) < 0).all() else log_weights(k, n)

    def _order_matters(self) -> bool:
        return getattr(self._bound(), "reference", None) == "first"

    def _planes_stayed(self) -> bool:
        return self.constraints is None

    @property
    def _cures(self) -> str:
        parts = (
            ()
            if self.constraints
            else RegretBound.named(self.measure, self.feature_map, self._bound(), self.position_weights).parts
        )
        return cures_at_start(self.bound, [part for _, part in parts])

    def _bound(self) -> Bound:
        usual = self.target_ranking is None or {self.target_ranking} == {one.reference for one in self._maps()}
        if self.bound == "convex":
            return get_bound("convex") if usual else get_bound("convex", reference=self.target_ranking)
        if not usual and self.target_ranking != "average":
            raise OptionError(
                f"target_ranking = {self.target_ranking!r} is an option of bound='convex', not of {self.bound!r}; "
                f"leave it out"
            )
        return get_bound(self.bound)

    def _maps(self) -> list[JointFeatureMap]:
        asked = parse(self.measure)
        parts = asked.parts if isinstance(asked, MeasureMix) else ()
        return [get_feature_map(part.feature_map or self.feature_map) for part in parts] or [
            get_feature_map(self.feature_map)
        ]

    def _trained_bound(self) -> Bound:
        return self._bound()

    def _start(self) -> Any:
        return ("zeros" if self._bound().convex else "ridge") if self.w0 is None else self.w0

    def _argmax(self) -> Solver:
        solver = get_solver("exact") if self.argmax_solver == "auto" else self._solver()
        for _, part in RegretBound.named(self.measure, self.feature_map, self._bound(), self.position_weights).parts:
            inner = part.feature_map is PositionalOracle and isinstance(part.measure, PositionalMeasure)
            form = RankTwoAssignment if inner else RelevanceRanking
            if not suits(solver, form):
                raise OptionError(
                    f"argmax {solver.spec!r} cannot rank; use one of {', '.join(compatible_solvers(form))}"
                )
        return solver

    def _argmax_under_constraints(self) -> Solver | str:
        if isinstance(self.argmax_solver, str) and self.argmax_solver in ("exact", "auto"):
            return "auto"
        solver = self._solver()
        if not suits(solver, ConstrainedRanking):
            known = ", ".join(["auto", *compatible_solvers(ConstrainedRanking)])
            raise OptionError(f"argmax {solver.spec!r} cannot rank under constraints; use one of {known}")
        return solver

    def _solver(self) -> Solver:
        solver = get_solver(self.argmax_solver) if isinstance(self.argmax_solver, str) else self.argmax_solver
        if not isinstance(solver, Solver):
            raise OptionError(
                f"argmax_solver = {self.argmax_solver!r} is not a solver; pass one of formulations.solvers or its name"
            )
        return solver
