"""Large-margin optimization of a ranking measure: the ranker of [ORM], with a proven gap."""
# mypy: allow-subclassing-any

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from formulations.arrays import Floats, check_type
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.problems.ranking import RankTwoAssignment
from formulations.problems.relevance_ranking import RelevanceRanking
from formulations.solvers import get_solver
from formulations.solvers.solver import Solver
from rankopt.constraints.admissible import Admissible
from rankopt.data.canonical_order import Arrangement
from rankopt.data.queries import Queries
from rankopt.errors import OptionError
from rankopt.losses import get_bound, get_feature_map
from rankopt.losses.loss import Loss
from rankopt.losses.margin import Bound, MarginLoss
from rankopt.losses.oracle import JointFeatureMap
from rankopt.losses.oracle_constrained import AdmissibleArgmax
from rankopt.losses.oracle_positional import PositionalOracle
from rankopt.losses.position_weights import parse_position_weights
from rankopt.losses.regret import RegretBound
from rankopt.measures.measure import PositionalMeasure
from rankopt.measures.notation import MeasureMix, parse
from rankopt.optimize.minimize import as_solver
from rankopt.rankers import typing as types
from rankopt.rankers.deployment import Deployment, log_weights
from rankopt.rankers.optimized import OptimizedRanker
from rankopt.rankers.run import cures_at_start
from rankopt.rankers.starts import unit_of_gains
from rankopt.rankers.stream import partial_fit
from rankopt.risk.risk import Shard, shards
from rankopt.scorers.linear import row_scores


class LargeMarginRanker(OptimizedRanker):
    """Linear ranker that minimizes a regularized bound of the regret of a measure [ORM, eq. 20 to 24].

    J(w) = (λ/2)‖w - w₀‖² + Σ_q v_q loss_q(w), with loss_q an upper bound of the regret of the measure on query q. The
    sum is over the m queries with something to order, v_q = query_weight / Σ query_weight (1/m by default).

    The defaults were chosen on seven real data sets (benchmarks/accuracy.md): the nonconvex bound, started at w₀, a
    cross-validated ridge scaled to margins of 1. The convex bound often ends at w = 0. A
    `rankopt.errors.WorseThanInitWarning` is raised if the training queries are ranked worse than by w₀. [ORM] is Le,
    Smola, Chapelle and Teo, Optimization of Ranking Measures; [paper 4] Chakrabarti, Khanna, Sawant and Bhattacharyya,
    Structured Learning for Non-Smooth Ranking Losses.

    Parameters
    ----------
    **Start here**

    measure : default "nDCG@10"
        A measure of `rankopt.measures`, or its notation: nDCG@k, P@k, AUC, AP, RR, ERR, ...
    bound : default "nonconvex"
        "convex", "tie-aware", "nonconvex", or a custom bound (see `rankopt.losses`). Nonconvex bounds are
        minimized by the concave-convex procedure.
    w0 : default None
        Center of the regularizer and start of training: "ridge" (`RegressionRanker()` scaled to margins of 1),
        "ranksvm" (`PairwiseRanker()`), "regression" (least squares on the gains [ORM, section 6.3]), "zeros",
        or an array (d,). The default is "zeros" for the convex bound, else "ridge". With gains from clicks pairs
        count by their difference of gains in both. Its computation does not count towards max_iter and time_limit.
    lam, C : defaults "scale", None
        The regularization strength λ: a number > 0, "scale", or "auto", which chooses a multiple of "scale" by
        cross-validation over queries. "scale" is 3 U / m, with U the mean squared distance of the features from
        the mean of their query (divided by the mean best value of a measure without maximum, as DCG). With
        "scale" and "auto" the weight of each feature is penalized in units of its deviation: the regularizer is
        (λ/2) Σ_j (σ_j² / σ²) (w_j - w₀_j)², with σ_j the standard deviation of feature j within queries and σ²
        the mean of σ_j² over the features that vary. So a scale of one feature, or of the gains, leaves the
        orders the same, if those by w₀ are. With penalty="l1" the regularizer is λ Σ_j (σ_j / σ) |w_j| then, and
        "scale" is 3% of the smallest λ at which w = 0. C sets λ = 1 / (C m) instead, unless lam is set too.
        `lam_` is λ.
    constraints : default None
        An `Admissible` over attributes that `fit`, `score` and `rank` take as attributes=. Argmax and reference
        are admissible rankings, and regret is measured from the best one [ORM, section 7.1]; position weights
        and discount are cut to k positions. The convex reference is one admissible order with ties by the score
        at w0, or the mean over exchanges of equivalent documents. argmax_solver="exact" is the cheapest exact
        solver for the constraints. If their linear program is not integral, the gap may stay open.
    normalize : default "auto"
        The normalization of features within their query: "zscore", "minmax", "sum", "rank", "auto", or None for
        none. "auto" is "zscore" where the scales of features differ from query to query, as
        `rankopt.data.normalization.chosen_method` measures them, else None; it is None for sparse features and
        for an array w0. `normalize_` is what was chosen.
    missing : default "error"
        "error", or "indicator": NaN becomes the mean of the feature in its query (of training, where the query has
        no value), and each feature that lacks values in training gets an indicator of that, with a weight of its own.

    **Model**

    feature_map : default "positional"
        The joint feature map of scores and order: "positional" (position weights [ORM]), "pairwise" (pairs in
        the wrong order [paper 4, φ_po]; supports every measure), "first-relevant" (RR only [φ_mrr]), or a
        custom map (see `rankopt.losses`).
    target_ranking : default None
        Of the convex bound: "average" or "first" for "positional", "ideal" or "average" for the other maps; the
        default is the first of the two. In a mix it applies to every part.
    position_weights : default "power(0.5)"
        Position weights of the scores, of the map "positional": "linear", "power(0.5)", "log", "loglog",
        "discount", each with an optional cutoff such as "power(0.5)@10", or an array.
    penalty : default "l2"
        "l2", or "l1" for J(w) = λ‖w‖₁ + Σ_q v_q loss_q(w) [ORM, section 3.1], whose solution is sparse
        (`selected_`, `get_support()`). With "l1", w0 is the start of training only, and `w0_` is 0. Features
        should have one scale. The master is a linear program ("auto" is HiGHS); `path(lams=20)` begins where 0
        is optimal. Methods: "bundle" and "cutting_planes".
    coef_bounds : default None
        Limits of the weights `coef_`: one pair (low, high) for all, a pair for each feature (d, 2), or {name: (low,
        high)}, by number where features have no names; None in a pair is no limit. (0, None) allows no negative
        weight. Of `missing="indicator"` the indicators are free unless named or in the one pair. They are limits of
        normalized features if `normalize` is set. w₀ is projected to them.

    **Solver**

    method : default "bundle"
        "bundle", "cutting_planes", "block_frank_wolfe", "stochastic_subgradient", "steepest_subgradient", or a
        configured object of `rankopt.optimize`.
    argmax_solver : default "exact"
        The solver of the loss-augmented ranking, "exact" or any of `formulations.solvers`.
    master_solver : default "auto"
        The solver of the master program: "auto", any of `formulations.solvers`, or a function of the master program
        (see `formulations.function_solver`), such as `lambda dual: changed(dual.to_cvxpy())` that returns a changed
        cvxpy.Problem. The bound is that of the unchanged objective, proved from the dual weights that the solver
        returns; a changed program may leave a gap, which training reports. If the solver fails after the first
        step, training returns the best weights so far, their gap, and a ConvergenceWarning.
    tol : default 0.0003
        The relative gap at which training ends.
    random_state : default None
        Seed of methods that draw queries. The model is reproducible with None too.
    warm_start : default False
        Start from the previous `coef_` instead of w₀.

    **Run**

    max_iter : default 2000
        Maximum steps; exceeding them raises a ConvergenceWarning.
    time_limit : default None
        Maximum seconds; exceeding them raises a ConvergenceWarning.
    engine, n_jobs : defaults "threads", None
        What computes the shards of the data ("threads", "serial", "dask", or an object with a method
        `map(function, shards)`), and the number of workers. Results are bit-identical for every engine.
    callbacks : default ()
        Functions (step, state) called after each step; training ends if one returns True.
    checkpoint : default None
        A folder (or `Checkpoint(folder, every=seconds)`) that stores the training state. A fit of the same
        problem with the same folder resumes with identical results; limits may differ, and `master_solver` may
        if it failed.
    verbose : default 0
        1 shows progress; where standard error is no terminal, a line every ten seconds.

    Notes
    -----
    Fitted: `coef_`, `certificate_` (kind, value, bound, gap of J), `history_` (`history_.plot()` draws the gap),
    `n_iter_`, `w0_`. With eval_set, `coef_` is the best iterate on it (`best_score_`), and the certificate is that of
    this iterate.
    """

    _linear_in_gains: ClassVar[bool] = True

    def __init__(
        self,
        measure: types.AnyMeasure = "nDCG@10",
        *,
        feature_map: types.AnyMap = "positional",
        bound: types.AnyBound = "nonconvex",
        target_ranking: types.ReferenceName | None = None,
        position_weights: types.AnyPositionWeights = "power(0.5)",
        w0: types.Start = None,
        method: types.AnyMethod = "bundle",
        argmax_solver: types.AnySolver = "exact",
        master_solver: types.AnySolver = "auto",
        lam: types.Strength = "scale",
        C: float | None = None,
        tol: float = 3e-4,
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
        self.feature_map = feature_map
        self.bound = bound
        self.target_ranking = target_ranking
        self.position_weights = position_weights
        self.argmax_solver = argmax_solver
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
        regret = self._trained_regret()
        admissible = self._admissible()
        if admissible is None:
            solver = self._argmax()
            return shards(queries, lambda some: regret.bind(some, solver))

        def start(queries: Arrangement) -> Floats:
            return row_scores(queries.features, queries.rows, w0())

        def build(queries: Arrangement) -> tuple[Arrangement, Loss]:
            inner, solver, sets = self._inner(), self._argmax_under_constraints(), admissible.for_queries
            chosen, argmax = AdmissibleArgmax.from_queries(queries, inner, regret.position_weights, sets, start, solver)
            return chosen, MarginLoss(argmax, regret.bound)

        return shards(queries, build)

    def _unit_of_gains(self, queries: Arrangement) -> float:
        return unit_of_gains(self.measure, queries)

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
                "which take inner products of position weights and gains; take nDCG@k, P@k, ... and "
                "feature_map='positional'"
            )
        return measure

    def _deployment(self, queries: Queries, constraints: Any = None) -> Deployment:
        admissible = self._admissible(constraints)
        solver = "auto" if admissible is None else self._argmax_under_constraints()
        return Deployment.from_queries(queries, admissible, self._shown_weights, solver)

    def _shown_weights(self, k: int, n: int) -> Floats:
        """The position weights of training if positive and strictly decreasing over k positions, else 1/log2(i + 1)."""
        known = parse_position_weights(self.position_weights).weights(n, parse(self.measure))[:k]
        return known if known[-1] > 0 and (np.diff(known) < 0).all() else log_weights(k, n)

    def _order_matters(self) -> bool:
        return getattr(self._bound(), "reference", None) == "first"

    def _cures(self, flat: bool) -> str:
        parts = () if self.constraints else self._trained_regret().parts
        return cures_at_start(self.bound, [part for _, part in parts], flat)

    def _trained_regret(self) -> RegretBound:
        return RegretBound.named(self.measure, self.feature_map, self._bound(), self.position_weights)

    def _bound(self) -> Bound:
        check_type("target_ranking", self.target_ranking, str, type(None), error=OptionError)
        usual = self.target_ranking is None or {self.target_ranking} == {one.reference for one in self._maps()}
        if isinstance(self.bound, str) and self.bound == "convex":
            return get_bound("convex") if usual else get_bound("convex", reference=self.target_ranking)
        if not usual and self.target_ranking != "average":
            raise OptionError(
                f"target_ranking = {self.target_ranking!r} is an option of bound='convex', not of {self.bound!r}; "
                "leave it out"
            )
        return get_bound(self.bound)

    def _maps(self) -> list[JointFeatureMap]:
        parsed = parse(self.measure)
        parts = parsed.parts if isinstance(parsed, MeasureMix) else ()
        maps = [part.feature_map or self.feature_map for part in parts] or [self.feature_map]
        return [get_feature_map(one) for one in maps]

    def _trained_bound(self) -> Bound:
        return self._bound()

    def _start(self) -> Any:
        return ("zeros" if self._bound().convex else "ridge") if self.w0 is None else self.w0

    def _argmax(self) -> Solver:
        auto, solver = isinstance(self.argmax_solver, str) and self.argmax_solver == "auto", get_solver("exact")
        for _, part in self._trained_regret().parts:
            inner = part.feature_map is PositionalOracle and isinstance(part.measure, PositionalMeasure)
            form = RankTwoAssignment if inner else RelevanceRanking
            solver = as_solver("argmax_solver", solver if auto else self.argmax_solver, form, "rank")
        return solver

    def _argmax_under_constraints(self) -> Solver | str:
        if isinstance(self.argmax_solver, str) and self.argmax_solver in ("exact", "auto"):
            return "auto"
        return as_solver("argmax_solver", self.argmax_solver, ConstrainedRanking, "rank under constraints")


PAPERS: dict[str, dict[str, str]] = {
    "auc": {"measure": "AUC", "feature_map": "pairwise"},
    "map": {"measure": "AP", "feature_map": "pairwise"},
    "mrr": {"measure": "RR", "feature_map": "first-relevant"},
    "ndcg": {"measure": "nDCG@10", "feature_map": "pairwise"},
    "ndcg-nc": {"measure": "nDCG(gain='binary')", "feature_map": "pairwise"},
    "dorm": {"measure": "nDCG@10", "position_weights": "power(0.5)@30"},
    "combo": {"measure": "AP + nDCG@10 + RR", "feature_map": "pairwise"},
}
"""Settings of each name, in addition to the convex bound."""


def svm(name: str, **options: Any) -> LargeMarginRanker:
    """Return the ranker that the literature calls by this name: a `LargeMarginRanker` with settings, and these options.

    "auc": AUC over pairs, the mean hinge of all pairs [Joachims 2005; paper 4, SVMauc]. "map": AP over pairs [Yue et
    al. 2007; SVMmap]. "mrr": RR over the first relevant document [SVMmrr]. "ndcg": nDCG@10 over pairs [SVMndcg].
    "ndcg-nc": nDCG of the full list over pairs of documents that are relevant or not [SVMndcg-nc]. "dorm": nDCG@10 over
    positions, position weights 1 / sqrt(position) to 30 [ORM; paper 4, DORM]. "combo": AP, nDCG@10 and RR over pairs, a
    slack for each [SVMcombo]. All take the convex bound and start from w = 0. OptionError for an unknown name.

    On OHSUMED w = 0 is the proven optimum of "dorm" and "mrr" (all five training parts of LETOR 3.0, lam = 0.01, and
    on the first also 1e-4 and 1e-6): they rank nothing there. bound="nonconvex" moves from it.

    >>> svm("map")
    LargeMarginRanker(bound='convex', feature_map='pairwise', measure='AP')
    """
    if not isinstance(name, str) or name not in PAPERS:
        raise OptionError(f"no ranker of the papers is called {name!r}; known are {', '.join(PAPERS)}")
    return LargeMarginRanker(**{"bound": "convex", **PAPERS[name], **options})
