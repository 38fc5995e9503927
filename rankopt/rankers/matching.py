"""A linear ranker that assigns documents to slots with weights of their own, or matches pairs [ORM, section 7.3].

The grade of a document is the number of its slot. A document in its slot earns the weight of the slot. Training starts
from W₀ (k, d): zeros, an array, or a regression for each slot. Of pairs (i, j) with features φ(i, j), the grade is
what the pair is worth, and W₀ is (d,).
"""

# mypy: allow-subclassing-any
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from formulations import LinearProgram, RankingSet
from formulations.arrays import Floats, Ints
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.errors import InfeasibleError
from formulations.problems.assignment import Assignment
from formulations.problems.problem import Problem
from formulations.solvers.solver import Solver
from rankopt.constraints.admissible import ADD_ATTRIBUTES, Admissible, sets_of_queries
from rankopt.data.canonical_order import Arrangement
from rankopt.data.queries import Queries
from rankopt.data.typing import Values
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.explanations.contributions import Explanation
from rankopt.losses import get_bound
from rankopt.losses.loss import Loss
from rankopt.losses.margin import MarginLoss
from rankopt.losses.oracle import MaxOracle
from rankopt.losses.oracle_problem import ProblemOracle
from rankopt.losses.oracle_slots import EMPTY, SlotArgmax, assign_slots, constrained_slots, pair_argmax
from rankopt.optimize.concave_convex import Training
from rankopt.optimize.least_squares import least_squares
from rankopt.optimize.minimize import as_solver
from rankopt.optimize.objective import Objective
from rankopt.options import COUNT, Interval, as_numbers, check
from rankopt.rankers import SLOT_STARTS
from rankopt.rankers import typing as types
from rankopt.rankers.deployment import Deployment, RegretReport, as_arranged, tie_order
from rankopt.rankers.inputs import documents_of
from rankopt.rankers.linear import row_weights
from rankopt.rankers.optimized import OptimizedRanker
from rankopt.rankers.path import LOSS_FACTORS
from rankopt.rankers.run import cures_at_start
from rankopt.risk.risk import Shard, shards
from rankopt.scorers.linear import Slots, slot_scores


def matching_solver(argmax: Any, form: type[Problem] = Assignment) -> Solver | str:
    """The solver of the matchings, problems of this form; OptionError for one that cannot match."""
    auto = isinstance(argmax, str) and argmax == "auto"
    return "auto" if auto else as_solver("argmax_solver", argmax, form, "match")


class MatchingRanker(OptimizedRanker):
    """Linear ranker that assigns documents to k slots, or matches pairs, trained on a bound of the regret.

    It minimizes (λ/2)‖W - W₀‖² + Σ_q v_q loss_q(X_q Wᵀ). loss_q is an upper bound of the benefit lost by the best
    matching of documents to slots under the scores ⟨W_i, x_j⟩.

    A grade y is a slot: i >= 1 is slot i, 0 is none. Several documents may have the same slot; any of them earns its
    weight. Slots are positions of a list, sections of a page, or the other side of a matching. Each slot takes one
    document. A query of n < k documents leaves k - n slots empty and assigns all its documents.

    With `pairs=("left", "right")` a row is a pair with features φ(i, j) of its own, and all pairs have one weight
    vector. The attributes `left` and `right` name its members; pairs without a row are forbidden. y is what the pair is
    worth; a pair of y = 0 is wrong and costs the mean of the others. Members may stay without a pair.

    `predict` returns the scores (N, k) of documents for slots, or (P,) of pairs. `rank` returns the document in each
    slot, -1 in an empty one (None if documents have ids), or the pairs of the matching, the highest score first.
    `score` is the mean fraction of the best benefit that the matchings by score earn, over the queries in which a
    document has a slot, or a pair is worth something.

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
        "zeros", "regression" (least squares on slot membership), or an array (k, d), of pairs (d,). The default is
        zeros for the convex bound and regression for the others.
    constraints : default None
        An `Admissible(k)` of the k slots, in which slots are positions: `at_most(1, by="site")`, or
        `at_most(0, documents="video", positions=[2])` for forbidden slots. They are hard; on_infeasible="truncate"
        leaves as few slots empty as possible.
    pairs, degrees : defaults None, (1, 1)
        The attributes that name the two members of a pair, and the largest number of pairs of a member of each side.
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
    Fitted: `coef_` (k, d), of pairs (d,), `certificate_`, `history_`, `n_iter_`, `w0_`, `lam_`; with eval_set
    `best_score_`.
    """

    _saved: ClassVar[tuple[str, ...]] = (*OptimizedRanker._saved, "position_weight_")

    _starts: ClassVar[dict[str, str]] = SLOT_STARTS

    _from_zero: ClassVar[tuple[float, ...]] = LOSS_FACTORS

    _unlimited: ClassVar[str] = "slots are matched, not ranked"

    position_weight_: Floats

    def __init__(
        self,
        n_positions: int | None = None,
        *,
        position_weight: Values | None = None,
        bound: types.AnyBound = "convex",
        w0: types.SlotStart = None,
        method: types.AnyMethod = "bundle",
        argmax_solver: types.AnySolver = "auto",
        master_solver: types.AnySolver = "auto",
        lam: types.Strength = "scale",
        C: float | None = None,
        tol: float = 1e-3,
        max_iter: int = 2000,
        time_limit: float | None = None,
        engine: types.AnyEngine = "threads",
        n_jobs: int | None = None,
        warm_start: bool = False,
        callbacks: types.Callbacks = (),
        checkpoint: types.AnyCheckpoint = None,
        verbose: int = 0,
        normalize: types.Normalize = None,
        coef_bounds: types.CoefBounds = None,
        missing: types.Missing = "error",
        constraints: Admissible | None = None,
        pairs: tuple[str, str] | None = None,
        degrees: tuple[int, int] = (1, 1),
    ) -> None:
        self.n_positions = n_positions
        self.position_weight = position_weight
        self.bound = bound
        self.argmax_solver = argmax_solver
        self.pairs = pairs
        self.degrees = degrees
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
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.normalize = normalize
        self.coef_bounds = coef_bounds
        self.missing = missing
        self.constraints = constraints

    def _before(self, queries: Queries) -> None:
        if self.pairs is None:
            self.position_weight_ = self._slot_weights(queries)

    def _slot_weights(self, queries: Queries | Arrangement) -> Floats:
        """(k,) what a right document earns in each slot. k is `n_positions`, else that of the constraints, else the
        length of position_weight, else the largest grade. Raises OptionError where they contradict each other."""
        admissible = self._admissible()
        slots = admissible.k if self.n_positions is None and admissible is not None else self.n_positions
        check("n_positions", slots, (COUNT, None))
        if slots is not None and slots >= 1 << 31:
            raise OptionError(f"n_positions must be less than 2^31; got {slots}")
        if self.position_weight is None:
            largest = float(np.max(queries.relevance)) if slots is None and queries.relevance is not None else 1.0
            return np.ones(int(slots) if slots is not None else max(int(largest), 1))
        weights = as_numbers("position_weight", self.position_weight)
        if weights.ndim != 1 or not weights.size or not (np.isfinite(weights) & (weights > 0)).all():
            raise OptionError(
                "position_weight must hold a positive finite number for each slot; leave out slots worth nothing"
            )
        if slots is not None and weights.size != slots:
            raise OptionError(f"position_weight has {weights.size} entries but n_positions = {slots}; give one a slot")
        return weights

    def _worth(self, queries: Queries | Arrangement, weights: Floats | None = None) -> Floats:
        """(N, k) the slot's weight where a document belongs there, else 0; or (P,) what a pair earns: its grade, and of
        grade 0 minus the mean of the others. DataError for grades that are no slots, or all 0."""
        grades = queries.relevance
        if self.pairs is not None:
            if grades is None or not (grades > 0).any():
                raise DataError(
                    "pairs cannot be learned or judged because none is worth anything; give y > 0 to right pairs"
                )
            return np.asarray(np.where(grades > 0, grades, -grades[grades > 0].mean()))
        weights = self._slot_weights(queries) if weights is None else weights
        if grades is None:
            raise DataError(
                "slots cannot be learned because the queries carry no relevance; give y, each document's slot"
            )
        wrong = (grades != np.floor(grades)) | (grades > weights.size)
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise DataError(
                f"Query {queries.query_ids[queries.query_of(row)]!r} has the grade {grades[row]:g}, which is not a "
                f"slot: they count from 1 to {weights.size}, and 0 means no slot; correct y, or pass n_positions="
            )
        return np.asarray((grades[:, None] == np.arange(1, weights.size + 1)) * weights)

    def _cures(self, flat: bool) -> str:
        return cures_at_start(self.bound, (), flat)

    def _shards(self, queries: Arrangement, w0: Callable[[], Floats]) -> tuple[Shard, ...]:
        bound, worth = get_bound(self.bound), self._worth(queries)

        def build(queries: Arrangement) -> tuple[Arrangement, Loss]:
            chosen, argmax = self._learnable(queries, worth)
            return chosen, MarginLoss(argmax, bound)

        return shards(queries, build, lambda linear: linear if worth.ndim == 1 else Slots(linear, worth.shape[1]))

    def _learnable(self, queries: Arrangement, worth: Floats, constraints: Any = None) -> tuple[Arrangement, MaxOracle]:
        """The queries in which matchings differ in worth, and their argmax."""
        every = self._argmax(queries, worth, constraints)
        useful = every.best - every.worst > 1e-12 * np.abs(every.best)
        chosen = queries.learnable(useful, "belong in different slots")
        rows = np.repeat(useful & (queries.weights > 0), np.diff(queries.offsets))
        return chosen, self._argmax(chosen, worth[rows], constraints)

    def _argmax(self, queries: Arrangement, worth: Floats, constraints: Any = None) -> SlotArgmax | ProblemOracle:
        """The argmax of these queries, with the worth of their documents or pairs."""
        admissible = self._admissible(constraints)
        if self.pairs is not None:
            sides = [queries.attributes[name].tolist() for name in self.pairs]
            form: type[Problem] = Assignment if tuple(self.degrees) == (1, 1) else LinearProgram
            solver = matching_solver(self.argmax_solver, form)
            return pair_argmax(worth, queries.offsets, sides, self.degrees, solver)
        if admissible is None:
            return SlotArgmax(worth, queries.offsets, matching_solver(self.argmax_solver))
        k = worth.shape[1]
        if admissible.k != k:
            raise OptionError(
                f"constraints are of {admissible.k} positions, but there are {k} slots; pass Admissible({k})"
            )

        def build(admissible: Admissible, q: int) -> RankingSet:
            low, high = queries.offsets[q : q + 2].tolist()
            hard, empty = replace(admissible, on_infeasible="error"), max(k - (high - low), 0)
            while True:  # blanks behind the documents, without attributes, are in slots that stay empty
                none = np.full(empty, None)
                own = {name: np.append(queries.attributes[name][low:high], none) for name in admissible.attributes}
                try:
                    return hard.for_query(own, high - low + empty)
                except InfeasibleError:
                    if admissible.on_infeasible == "error" or empty == k:
                        raise
                empty += 1

        sets = sets_of_queries(admissible, queries, build, soft=False)
        return constrained_slots(worth, queries.offsets, sets, matching_solver(self.argmax_solver, ConstrainedRanking))

    def _unit_of_gains(self, queries: Arrangement) -> float:
        weights = self._worth(queries) if self.pairs is not None else self._slot_weights(queries)
        return float(weights[weights > 0].mean())

    def _start(self) -> Any:
        return ("zeros" if get_bound(self.bound).convex else "regression") if self.w0 is None else self.w0

    def _shape(self, queries: Arrangement) -> tuple[int, ...]:
        own = () if self.pairs is not None else (self._slot_weights(queries).size,)
        return (*own, queries.n_features)

    def _keep(self, outcome: Training, objective: Objective) -> None:
        super()._keep(outcome, objective)
        self.coef_, self.w0_ = (w.reshape(self._coef_shape()) for w in (self.coef_, self.w0_))

    def _values(self, queries: Queries, measures: Sequence[Any] | None = None) -> Callable[[Floats], Floats]:
        reached, order = self._reached(queries), _by_ties(queries)
        return lambda w: reached(self._matchings(queries, w.reshape(self._coef_shape()), order=order))

    def _reached(self, queries: Queries, constraints: Any = None) -> Callable[[Floats], Floats]:
        """From matchings to the part (m,) of the best benefit that they reach; NaN where that is 0."""
        arranged = as_arranged(queries)
        worth = self._worth(arranged, getattr(self, "position_weight_", None))
        best = self._argmax(arranged, worth, constraints).best

        def reached(matchings: Floats) -> Floats:
            earned = _sums(matchings * worth, queries.offsets)
            return np.asarray(np.divide(earned, best, out=np.full(best.size, np.nan), where=best > 0))

        return reached

    def _mean(self, queries: Queries, weights: Floats, constraints: Any) -> float:
        found = self._reached(queries, constraints)(self._matchings(queries, self.coef_, constraints))
        counted = ~np.isnan(found)
        if not weights[counted].any():
            raise DataError("score has no query in which a document belongs in a slot; check y (0 belongs nowhere)")
        return float(np.average(found[counted], weights=weights[counted]))

    def _evaluation(self, queries: Queries, constraints: Any, *_: Any) -> Any:
        raise OptionError("evaluate is not supported because slots are matched, not ranked; use score")

    def _ranked(self, queries: Queries, constraints: Any) -> Iterator[NDArray[Any]]:
        documents, scores = documents_of(queries), slot_scores(queries.features, self.coef_)
        matchings = self._matchings(queries, self.coef_, constraints)
        nothing = np.array([EMPTY if queries.document_ids is None else None])
        for low, high in pairwise(queries.offsets.tolist()):
            own, matched = np.append(documents[low:high], nothing), matchings[low:high]
            if self.pairs is None:
                yield own[np.where(matched.any(axis=0), matched.argmax(axis=0), -1)]
            else:
                chosen = np.flatnonzero(matched)
                yield own[chosen[np.argsort(-scores[low:high][chosen], kind="stable")]]

    def explain(
        self, x: types.Document, y: types.Document, slot: int = 1, *, among: types.AnyRows | None = None
    ) -> Explanation:
        """Why document x (d,) scores above document y (d,) for a slot, counted from 1, or a pair above another: the
        terms, largest first."""
        check_is_fitted(self, "coef_")
        if self.coef_.ndim == 1:
            return self._explained(x, y, self.coef_, among)
        if slot not in Interval(1, self.coef_.shape[0], "both", integer=True):
            raise DataError(f"there is no slot {slot}; they count from 1 to {self.coef_.shape[0]}")
        return self._explained(x, y, self.coef_[int(slot) - 1], among)

    def _judged(
        self, queries: Queries, constraints: Any, measure: Any, position_weights: Any, feature_map: Any
    ) -> RegretReport:
        """Regret in units of the benefit: what the matching by score earns less than the best one."""
        if not (measure is None and position_weights is None and feature_map is None):
            raise OptionError(
                "measure, position_weights and feature_map do not apply to slots, whose weights are position_weight_; "
                "leave them out"
            )
        arranged = as_arranged(queries)
        worth = self._worth(arranged, getattr(self, "position_weight_", None))
        chosen, argmax = self._learnable(arranged, worth, constraints)
        matched = (self._matchings(queries, self.coef_, constraints) * worth)[chosen.rows]
        lost = np.maximum(argmax.best - _sums(matched, chosen.offsets), 0.0)
        scores = slot_scores(queries.features, self.coef_)[chosen.rows]
        return RegretReport(chosen, scores, argmax, lost, lost, "the benefit", "one for one")

    def _matchings(self, queries: Queries, coef: Floats, constraints: Any = None, order: Ints | None = None) -> Floats:
        """(N, k) or (P,) the 0/1 matrix of the matching with the largest score of each query. Among several the solver
        chooses, from documents in `order` (N,), by default `_by_ties`."""
        scores, order = slot_scores(queries.features, coef), _by_ties(queries) if order is None else order
        found = np.zeros(scores.shape)
        if self.pairs is None and self._admissible(constraints) is None:
            solver = matching_solver(self.argmax_solver)
            for low, high in pairwise(queries.offsets.tolist()):
                matching = assign_slots(scores[order[low:high]], solver)[0]
                filled = np.flatnonzero(matching != EMPTY)
                found[order[low + matching[filled]], filled] = 1.0
            return found
        attributes = {name: queries.attributes[name][order] for name in self._content(queries, constraints)}
        ordered = replace(as_arranged(queries), attributes=attributes)
        found[order] = np.rint(self._argmax(ordered, scores[order], constraints).mean_of_best())  # worth is the score
        return found

    def _admissible(self, constraints: Any = None) -> Admissible | None:
        found = super()._admissible(constraints)
        if found is not None and self.pairs is not None:
            raise OptionError("pairs take no constraints; leave out the rows of forbidden pairs, and set degrees")
        if found is not None and any(one.penalty is not None for one in found.specs):
            raise OptionError("constraints of slots are hard; leave out penalized()")
        return found

    def _deployment(self, queries: Queries, constraints: Any = None) -> Deployment:
        raise OptionError("sensitivity is not supported because slots are matched, not ranked")

    def _attribute_names(self, constraints: Any = None) -> Sequence[str]:
        if self.pairs is None:
            if (as_numbers("degrees", self.degrees) != 1).any():
                raise OptionError(f"degrees = {self.degrees!r} limits pairs; pass pairs, or leave it out")
            return super()._attribute_names(constraints)
        for name, what in (("pairs", "two attributes"), ("degrees", "two positive integers")):
            own = getattr(self, name)
            items = own if np.iterable(own) and not hasattr(own, "tocsr") else ()
            right = [isinstance(one, str) if name == "pairs" else one in COUNT for one in items]
            if len(right) != 2 or not all(right):
                raise OptionError(f"{name} must be {what}; got {own!r:.80}")
        if self.n_positions is not None or self.position_weight is not None:
            raise OptionError("n_positions and position_weight are options of slots; leave them out, or pairs")
        return self.pairs

    def _content(self, queries: Queries, constraints: Any = None) -> Sequence[str]:
        names, admissible = self._attribute_names(constraints), self._admissible(constraints)
        if admissible is not None:
            admissible.validate(queries.attributes)
        for name in names:
            if name not in queries.attributes:
                raise DataError(f"pairs need the attribute {name!r}, which is missing; {ADD_ATTRIBUTES}")
        return names

    def _coef_shape(self) -> tuple[int, ...]:
        own = () if self.pairs is not None else (int(np.size(self.position_weight_)),)
        return (*own, *super()._coef_shape())

    def _check_params(self) -> None:
        super()._check_params()
        self._attribute_names()

    def _check_loaded(self) -> None:
        weights = np.ones(1) if self.pairs is not None else getattr(self, "position_weight_", None)
        if not (isinstance(weights, np.ndarray) and weights.dtype == np.float64 and weights.ndim == 1 and weights.size):
            raise ModelError("position_weight_ is missing or is no array of float64 numbers.")
        if not (np.isfinite(weights) & (weights > 0)).all():
            raise ModelError("position_weight_ has a value that is not positive and finite.")
        super()._check_loaded()


def _sums(values: Floats, offsets: Ints) -> Floats:
    """(m,) the sums of the numbers (N, k) or (N,) of each query."""
    return np.asarray(np.add.reduceat(values.reshape(len(values), -1).sum(axis=1), offsets[:-1]))


def _by_ties(queries: Queries) -> Ints:
    """(N,) rows, query by query in `tie_order`."""
    rows = np.arange(queries.n_documents)
    return np.lexsort((tie_order(queries, rows), queries.query_of(rows)))


def regression(ranker: Any, queries: Arrangement, box: Floats | None = None) -> Floats:
    """Least squares on belonging in the slot, in units of the mean benefit."""
    belongs = ranker._worth(queries) > 0
    weights, targets = row_weights(queries), np.atleast_2d(belongs.T * ranker._unit_of_gains(queries))
    return np.stack([least_squares(queries.features, own, weights, 0.0, queries.rows) for own in targets])
