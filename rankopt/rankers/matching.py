"""A linear ranker that assigns documents to slots with weights of their own [ORM, section 7.3].

The grade of a document is the number of its slot. A document in its slot earns the weight of the slot. Training starts
from W₀ (k, d): zeros, an array, or a regression for each slot.
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from formulations.problems.assignment import Assignment
from formulations.solvers import compatible_solvers, get_solver
from formulations.solvers.solver import Solver, suits
from rankopt.data.canonical_order import Arrangement
from rankopt.data.queries import Queries
from rankopt.data.typing import Attributes, Ids, PlainRows, Sizes, Values
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.explanations.contributions import Explanation
from rankopt.losses import get_bound
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle_slots import EMPTY, SlotArgmax, assign_slots
from rankopt.optimize.least_squares import least_squares
from rankopt.options import COUNT, Interval, as_numbers, check
from rankopt.rankers import SLOT_STARTS
from rankopt.rankers.deployment import RegretReport, as_arranged, tie_order
from rankopt.rankers.inputs import documents_of, read_queries, read_rows
from rankopt.rankers.linear import row_weights
from rankopt.rankers.optimized import OptimizedRanker
from rankopt.rankers.path import LOSS_FACTORS
from rankopt.rankers.run import cures_at_start
from rankopt.rankers.typing import (
    AnyBound,
    AnyCheckpoint,
    AnyEngine,
    AnyMethod,
    AnyRows,
    AnySolver,
    Callbacks,
    CoefBounds,
    Document,
    Missing,
    Normalize,
    SlotStart,
    Strength,
)
from rankopt.risk.risk import Shard, shards
from rankopt.scorers.linear import Slots, slot_scores

if TYPE_CHECKING:
    from rankopt.constraints.admissible import Admissible
    from rankopt.losses.loss import Loss
    from rankopt.optimize.concave_convex import Training
    from rankopt.optimize.objective import Objective

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def slot_weights(slots: Any, position_weight: Any, queries: Queries | Arrangement) -> Floats:
    """(k,) what a right document earns in each slot. k is `n_positions`, else the length of position_weight, else the
    largest grade. Raises OptionError where they contradict each other."""
    check("n_positions", slots, (COUNT, None))
    if slots is not None and slots >= 1 << 31:
        raise OptionError(f"n_positions must be less than 2^31; got {slots}")
    if position_weight is None:
        largest = float(np.max(queries.relevance)) if slots is None and queries.relevance is not None else 1.0
        return np.ones(int(slots) if slots is not None else max(int(largest), 1))
    weights = as_numbers("position_weight", position_weight)
    if weights.ndim != 1 or not weights.size or not (np.isfinite(weights) & (weights > 0)).all():
        raise OptionError(
            "position_weight must hold a positive finite number for each slot; leave out slots worth nothing"
        )
    if slots is not None and weights.size != slots:
        raise OptionError(f"position_weight has {weights.size} entries but n_positions = {slots}; give one a slot")
    return weights


def benefit(queries: Queries | Arrangement, weights: Floats) -> Floats:
    """(N, k) the slot's weight where the document belongs there, else 0; DataError for a grade that is no slot."""
    grades = queries.relevance
    if grades is None:
        raise DataError("slots cannot be learned because the queries carry no relevance; give y, each document's slot")
    wrong = (grades != np.floor(grades)) | (grades > weights.size)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise DataError(
            f"Query {queries.query_ids[queries.query_of(row)]!r} has the grade {grades[row]:g}, which is not a slot: "
            f"they count from 1 to {weights.size}, and 0 means no slot; correct y, or pass n_positions="
        )
    return np.asarray((grades[:, None] == np.arange(1, weights.size + 1)) * weights)


def reached_benefit(queries: Queries, worth: Floats, matching: list[Ints]) -> Floats:
    """(m,) which part of the best benefit these matchings reach; NaN where no document belongs anywhere."""
    found = np.empty(len(queries))
    for q, (low, high) in enumerate(pairwise(queries.offsets.tolist())):
        filled = np.flatnonzero(matching[q] != EMPTY)
        best = worth[low:high].max(axis=0).sum()
        found[q] = worth[low + matching[q][filled], filled].sum() / best if best > 0 else np.nan
    return found


def matching_solver(argmax: Any) -> Solver | str:
    """The solver of the matchings; OptionError for one that cannot match."""
    if isinstance(argmax, str) and argmax == "auto":
        return "auto"
    solver = get_solver(argmax) if isinstance(argmax, str) else argmax
    if not isinstance(solver, Solver) or not suits(solver, Assignment):
        raise OptionError(
            f"argmax_solver = {argmax!r} cannot solve assignment problems; use 'auto' or one of "
            f"{', '.join(compatible_solvers(Assignment))}"
        )
    return solver


class MatchingRanker(OptimizedRanker):
    """Linear ranker that assigns documents to k slots, trained on a bound of the regret of the assignment.

    It minimizes (λ/2)‖W - W₀‖² + Σ_q v_q loss_q(X_q Wᵀ). loss_q is an upper bound of the benefit lost by the best
    matching of documents to slots under the scores ⟨W_i, x_j⟩.

    A grade y is a slot: i >= 1 is slot i, 0 is none. Several documents may have the same slot; any of them earns its
    weight. Slots are positions of a list, sections of a page, or the other side of a matching. Each slot takes one
    document. A query of n < k documents leaves k - n slots empty and assigns all its documents.

    `score` is the mean fraction of the best benefit that the matchings by score earn, over the queries in which a
    document has a slot.

    Parameters
    ----------
    **Start here**

    n_positions : default None
        k, or None: the largest grade of fit.
    position_weight : default None
        (k,) the positive benefit of a correct document in each slot; 1 each by default.
    bound : default "convex"
        "convex", "tie-aware" or "nonconvex" (see `rankopt.losses.oracle_slots`).
    w0 : default None
        "zeros", "regression" (least squares on slot membership), or an array (k, d). The default is zeros for
        the convex bound and regression for the others.
    lam, C, normalize, missing : defaults "scale", None, None, "error"
        As in `LargeMarginRanker`, but with w0="zeros" "scale" is U / (10 m). A scale of one feature, or of
        position_weight, leaves the matchings the same.
    coef_bounds : default None
        As in `LargeMarginRanker`, the same limits for every slot; or (k, d, 2).

    **Solver**

    argmax_solver : default "auto"
        The solver of the matchings, "auto" or any of `formulations.solvers`.
    method, master_solver, tol, warm_start : defaults "bundle", "auto", 0.001, False
        As in `LargeMarginRanker`.

    **Run**

    max_iter, time_limit, engine, n_jobs, callbacks, checkpoint, verbose : defaults 2000, None, "threads", None, (), ...
        As in `LargeMarginRanker`.

    Notes
    -----
    Fitted: `coef_` (k, d), `certificate_`, `history_`, `n_iter_`, `w0_`, `lam_`; with eval_set `best_score_`.
    """

    _saved: ClassVar[tuple[str, ...]] = (*OptimizedRanker._saved, "position_weight_")

    _starts: ClassVar[dict[str, str]] = SLOT_STARTS

    _from_zero: ClassVar[tuple[float, ...]] = LOSS_FACTORS

    _unlimited: ClassVar[str] = "slots are matched, not ranked, and take no constraints"

    position_weight_: Floats

    def __init__(
        self,
        n_positions: int | None = None,
        *,
        position_weight: Values | None = None,
        bound: AnyBound = "convex",
        w0: SlotStart = None,
        method: AnyMethod = "bundle",
        argmax_solver: AnySolver = "auto",
        master_solver: AnySolver = "auto",
        lam: Strength = "scale",
        C: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 2000,
        time_limit: float | None = None,
        engine: AnyEngine = "threads",
        n_jobs: int | None = None,
        warm_start: bool = False,
        callbacks: Callbacks = (),
        checkpoint: AnyCheckpoint = None,
        verbose: int = 0,
        normalize: Normalize = None,
        coef_bounds: CoefBounds = None,
        missing: Missing = "error",
    ) -> None:
        self.n_positions = n_positions
        self.position_weight = position_weight
        self.bound = bound
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
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.normalize = normalize
        self.coef_bounds = coef_bounds
        self.missing = missing

    def _before(self, queries: Queries) -> None:
        self.position_weight_ = slot_weights(self.n_positions, self.position_weight, queries)

    def _cures(self, flat: bool) -> str:
        return cures_at_start(self.bound, (), flat)

    def _shards(self, queries: Arrangement, w0: Callable[[], Floats]) -> tuple[Shard, ...]:
        bound, solver = get_bound(self.bound), matching_solver(self.argmax_solver)
        worth = benefit(queries, slot_weights(self.n_positions, self.position_weight, queries))

        def build(queries: Arrangement) -> tuple[Arrangement, Loss]:
            chosen, argmax = SlotArgmax.from_queries(queries, worth, solver)
            return chosen, MarginLoss.build(argmax, bound)

        return shards(queries, build, lambda linear: Slots(linear, worth.shape[1]))

    def _unit_of_gains(self, queries: Arrangement) -> float:
        return float(slot_weights(self.n_positions, self.position_weight, queries).mean())

    def _start(self) -> Any:
        return ("zeros" if get_bound(self.bound).convex else "regression") if self.w0 is None else self.w0

    def _shape(self, queries: Arrangement) -> tuple[int, ...]:
        return (slot_weights(self.n_positions, self.position_weight, queries).size, queries.n_features)

    def _keep(self, outcome: Training, objective: Objective) -> None:
        super()._keep(outcome, objective)
        self.coef_ = self.coef_.reshape(self.position_weight_.size, -1)
        self.w0_ = self.w0_.reshape(self.coef_.shape)

    def _values(self, queries: Queries, measures: Sequence[Any] | None = None) -> Callable[[Floats], Floats]:
        worth, order = benefit(queries, self.position_weight_), _by_ties(queries)

        def values(w: Floats) -> Floats:
            return reached_benefit(
                queries, worth, self._matchings(queries, w.reshape(self.position_weight_.size, -1), order)
            )

        return values

    def predict(self, X: AnyRows, *, qid: Ids | None = None, group: Sizes | None = None) -> Floats:
        """The scores (N, k) of the documents for the slots, in the caller's order of rows; qid and group as there."""
        check_is_fitted(self, "coef_")
        return slot_scores(read_rows(self, X, qid=qid, group=group), self.coef_)

    def _mean(self, queries: Queries, weights: Floats, constraints: Any) -> float:
        self._admissible(constraints)
        found = reached_benefit(queries, benefit(queries, self.position_weight_), self._matchings(queries, self.coef_))
        counted = ~np.isnan(found)
        if not weights[counted].any():
            raise DataError("score has no query in which a document belongs in a slot; check y (0 belongs nowhere)")
        return float(np.average(found[counted], weights=weights[counted]))

    def _evaluation(self, queries: Queries, constraints: Any, *_: Any) -> Any:
        raise OptionError("evaluate is not supported because slots are matched, not ranked; use score")

    @overload
    def rank(
        self,
        X: PlainRows,
        qid: None = None,
        k: int | None = None,
        *,
        group: None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
    ) -> NDArray[Any]: ...

    @overload
    def rank(
        self,
        X: AnyRows,
        qid: Ids | None = None,
        k: int | None = None,
        *,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
    ) -> NDArray[Any] | dict[Hashable, NDArray[Any]]: ...

    def rank(
        self,
        X: AnyRows,
        qid: Ids | None = None,
        k: int | None = None,
        *,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
    ) -> NDArray[Any] | dict[Hashable, NDArray[Any]]:
        """Return the document in each slot (of the first k) of each query: the matching with the largest score.

        Documents and queries are named as in `LinearRanker.rank`. An empty slot is -1, or None if documents have ids.
        """
        check_is_fitted(self, "coef_")
        self._admissible(constraints)
        check("k", k, (COUNT, None))
        queries = read_queries(self, X, None, qid=qid, group=group, attributes=attributes, reset=False, labels=False)
        nothing = np.array([EMPTY if queries.document_ids is None else None])
        documents, ranked = documents_of(queries), dict[Hashable, NDArray[Any]]()
        for q, matching in enumerate(self._matchings(queries, self.coef_)):
            own = np.append(documents[queries.offsets[q] : queries.offsets[q + 1]], nothing)
            ranked[queries.query_ids[q]] = own[np.where(matching == EMPTY, own.size - 1, matching)][
                : None if k is None else int(k)
            ]
        return ranked if len(ranked) > 1 else next(iter(ranked.values()))

    def explain(self, x: Document, y: Document, slot: int = 1, *, among: AnyRows | None = None) -> Explanation:
        """Why document x (d,) scores above document y (d,) for a slot, counted from 1: the terms, largest first."""
        check_is_fitted(self, "coef_")
        if slot not in Interval(1, self.coef_.shape[0], "both", integer=True):
            raise DataError(f"there is no slot {slot}; they count from 1 to {self.coef_.shape[0]}")
        return self._explained(x, y, self.coef_[int(slot) - 1], among)

    def _judged(
        self, queries: Queries, constraints: Any, measure: Any, position_weights: Any, feature_map: Any
    ) -> RegretReport:
        """Regret in units of the benefit: what the matching by score earns less than the best one."""
        self._admissible(constraints)
        if not (measure is None and position_weights is None and feature_map is None):
            raise OptionError(
                "measure, position_weights and feature_map do not apply to slots, whose weights are position_weight_; "
                "leave them out"
            )
        arranged = as_arranged(queries)
        worth = benefit(queries, self.position_weight_)
        chosen, argmax = SlotArgmax.from_queries(arranged, worth, matching_solver(self.argmax_solver))
        index = {query: number for number, query in enumerate(queries.query_ids)}
        reach = reached_benefit(queries, worth, self._matchings(queries, self.coef_))
        lost = np.maximum(argmax.best * (1.0 - reach[[index[query] for query in chosen.query_ids]]), 0.0)
        scores = slot_scores(queries.features, self.coef_)[chosen.rows]
        return RegretReport(chosen, scores, argmax, lost, lost, "the benefit", "one for one")

    def _matchings(self, queries: Queries, coef: Floats, order: Ints | None = None) -> list[NDArray[np.int64]]:
        """The matching with the largest score of each query: the document in each slot, counted within the query. Among
        several the solver chooses, from documents in `order` (N,), by default `_by_ties`."""
        scores, solver = slot_scores(queries.features, coef), matching_solver(self.argmax_solver)
        order, found = _by_ties(queries) if order is None else order, []
        for low, high in pairwise(queries.offsets.tolist()):
            own = order[low:high]
            matching = assign_slots(scores[own], solver)[0]
            found.append(np.where(matching == EMPTY, EMPTY, own[matching] - low))
        return found

    def _admissible(self, constraints: Any = None) -> None:
        if constraints is not None:
            raise OptionError("constraints are not supported because slots are matched, not ranked; leave them out")

    def _coef_shape(self) -> tuple[int, ...]:
        return (int(np.size(self.position_weight_)), *super()._coef_shape())

    def _check_loaded(self) -> None:
        weights = getattr(self, "position_weight_", None)
        if not (isinstance(weights, np.ndarray) and weights.dtype == np.float64 and weights.ndim == 1 and weights.size):
            raise ModelError("position_weight_ is missing or is no array of float64 numbers.")
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise ModelError("position_weight_ has a value that is not positive and finite.")
        super()._check_loaded()


def _by_ties(queries: Queries) -> Ints:
    """(N,) rows, query by query in `tie_order`."""
    rows = np.arange(queries.n_documents)
    return np.lexsort((tie_order(queries, rows), queries.query_of(rows)))


def regression(ranker: Any, queries: Arrangement, box: Floats | None = None) -> Floats:
    """Least squares on belonging in the slot, in units of the mean benefit."""
    belongs = benefit(queries, slot_weights(ranker.n_positions, ranker.position_weight, queries)) > 0
    weights, targets = row_weights(queries), belongs.T * ranker._unit_of_gains(queries)
    return np.stack([least_squares(queries.features, own, weights, 0.0, queries.rows) for own in targets])
