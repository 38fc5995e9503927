"""Tiny trainings beside an optimum found apart: every ranking written out, and what a certificate says held against it.

Nothing of losses, argmax, methods or masters is used but the references that training fixed, and of these it is checked
that they are what the bound calls for: a mean of best rankings (convex), of best rankings that the scores like most
(tie-aware), of rankings that the scores like most (nonconvex).
"""

import warnings
from dataclasses import dataclass, field
from itertools import permutations, product

import numpy as np
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from formulations import FormulationError, margin_dual, solve
from rankopt.constraints import Admissible
from rankopt.data.queries import Queries
from rankopt.errors import NoProgressWarning
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures.notation import parse
from rankopt.optimize import METHODS
from rankopt.optimize.certificate import Stop
from rankopt.rankers import LargeMarginRanker

BOUNDS = ("convex", "tie-aware", "nonconvex")
MASTERS = (
    "auto", "qpsolvers:clarabel", "qpsolvers:daqp", "qpsolvers:piqp", "cvxpy:CLARABEL", "cvxpy:PIQP", "cvxpy:DAQP",
    "qpsolvers:highs", "cvxpy:HIGHS", "qpsolvers:osqp",
)  # fmt: skip
SETS = (False, True)
STARTS = ("zeros", "regression", "given")
CASES = tuple(product(METHODS, MASTERS, BOUNDS, SETS, STARTS))
"""Every method × master × bound × with a set or without × what the regularizer pulls to."""


def case_of(number):
    """Cases in an order in which neighbors differ in everything."""
    return CASES[number * 389 % len(CASES)]


@dataclass
class Tiny:
    """A training of a few queries of at most four documents; `k` is None where all rankings are admissible."""

    case: tuple
    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    weight: dict
    measure: str
    position_weights: str
    lam: float
    tol: float
    site: np.ndarray
    k: int | None
    most: int
    w0: np.ndarray | str
    seen: dict = field(default_factory=dict)

    @classmethod
    def drawn(cls, number, seed):
        """Case `number` of the table, its numbers drawn: ties, copies, features of other units, λ of 1e-5 to 1e2."""
        rng = np.random.default_rng([seed, number])
        case = case_of(number)
        _, _, _, constrained, start = case
        queries, d = int(rng.integers(1, 4)), int(rng.integers(1, 4))
        sizes = rng.integers(2, 5, queries)
        n = int(sizes.sum())
        X = np.round(rng.normal(size=(n, d)), int(rng.integers(0, 3)))
        X = X * 10.0 ** rng.integers(-2, 3, d)
        if rng.random() < 0.2:
            X[rng.integers(n)] = X[rng.integers(n)]
        y = rng.integers(0, 4, n).astype(float)
        y[0], y[1] = 0.0, 2.0
        qid = np.repeat(np.arange(queries), sizes)
        k = int(rng.integers(1, 4)) if constrained else None
        w0 = rng.normal(size=d) if start == "given" else start
        return cls(
            case, X, y, qid, {q: float(rng.choice([1.0, 2.0, 0.3])) for q in range(queries)},
            str(rng.choice(["nDCG", "nDCG@2", "P@1", "P@2", "P@3", "DCG@3"])),
            str(rng.choice(["linear", "power(0.5)", "log@2", "discount", "power(1)@3"])),
            float(10.0 ** rng.uniform(-5, 2)), float(rng.choice([1e-2, 1e-3, 1e-5])),
            rng.integers(0, 2, n), k, int(rng.integers(1, 4)), w0,
        )  # fmt: skip

    def ranker(self, **options):
        method, master, bound, constrained, _ = self.case
        rules = Admissible(self.k, on_infeasible="truncate").at_most(self.most, by="site") if constrained else None
        return LargeMarginRanker(
            self.measure, bound=bound, position_weights=self.position_weights, w0=self.w0, method=method,
            master_solver=master, lam=self.lam,
            tol=self.tol, constraints=rules, engine="serial", **{"max_iter": 150, **options},
        )  # fmt: skip

    @property
    def queries(self):
        return Queries.from_arrays(self.X, self.y, qid=self.qid, attributes={"site": self.site})

    def tables(self):
        """For each query that counts: its rows, its weight, and of every admissible ranking c[π] and a[π]ᵀb."""
        measure, decay, found = parse(self.measure), parse_position_weights(self.position_weights), []
        for q in np.unique(self.qid):
            rows = np.flatnonzero(self.qid == q)
            n = rows.size
            orders = self._admissible(rows)
            k = len(orders[0])
            gain = measure.gain(self.y[rows], np.array([0, n]))
            a, c = measure.discount(n)[:k], decay.weights(n, measure)[:k]
            placed = np.zeros((len(orders), n))
            for i, order in enumerate(orders):
                placed[i, list(order)] = c
            earned = np.array([a @ gain[list(order)] for order in orders])
            if earned.max() - earned.min() > 1e-12:
                found.append((rows, self.weight[int(q)], placed, earned))
        total = sum(part[1] for part in found)
        return [(rows, weight / total, placed, earned) for rows, weight, placed, earned in found]

    def _admissible(self, rows):
        if self.k is None:
            return list(permutations(range(rows.size)))
        for k in range(min(self.k, rows.size), 0, -1):  # a short list is cut
            orders = [
                order
                for order in permutations(range(rows.size), k)
                if max(np.bincount(self.site[rows[list(order)]])) <= self.most
            ]
            if orders:
                return orders
        raise AssertionError("no ranking of one document is admissible")


def mixed(rows, point):
    """Whether the point is a mean of these rows."""
    if not rows.size:
        return False
    system = np.vstack([rows.T, np.ones(len(rows))])
    found = linprog(np.zeros(len(rows)), A_eq=system, b_eq=np.append(point, 1.0), bounds=(0, None), method="highs")
    return bool(found.status == 0) or np.abs(rows - point).max(axis=1).min() < 1e-9


def check(tiny):
    """What is wrong with the fit's certificate, what else is to be told, and how it ended: words, "" where nothing."""
    ranker = tiny.ranker()
    tables = tiny.tables()
    if not tables:
        return "", "nothing to learn", None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", NoProgressWarning)
        try:
            ranker.fit(tiny.queries, query_weight=tiny.weight)
        except FormulationError as error:
            return "", f"lost: {type(error).__name__}: {error}", None
    proved, w, w0 = ranker.certificate_, ranker.coef_, ranker.w0_
    objective = ranker.objective(tiny.queries, np.array([tiny.weight[q] for q in range(len(tiny.weight))]))
    if objective.risk.weights.size != len(tables):
        return f"{objective.risk.weights.size} queries count, not {len(tables)}", "", proved
    references = references_of(objective.majorant(w).risk)
    planes, heights, groups, weights, here = [], [], [], [], objective.regularizer(w)
    size = 0.0
    for g, (rows, v, placed, earned) in enumerate(tables):
        reference, scores = references[tuple(rows.tolist())], tiny.X[rows] @ w
        wrong = misplaced(tiny.case[2], reference, placed, earned, scores)
        if wrong:
            return wrong, "", proved
        losses = placed @ scores - earned + earned.max() - reference @ scores
        here += v * losses.max()
        size += v * float(np.abs(placed @ scores).max() + np.abs(earned).max())
        planes.append(v * (placed - reference) @ tiny.X[rows])
        heights.append(v * (earned.max() - earned))
        groups.append(np.full(len(placed), g))
        weights.append(v)
    size += objective.regularizer(w) + tiny.lam * float(w @ w + w0 @ w0)
    rounding = 1e-11 * (size + abs(here))
    if not proved.primal >= here - rounding:
        return f"primal {proved.primal!r} is below J(w) = {here!r}", "", proved
    if not proved.primal <= here + rounding + 1e-9 * abs(here):
        return f"primal {proved.primal!r} is above J(w) = {here!r}", "", proved
    least, bound = optimum(tiny, np.vstack(planes), np.concatenate(heights), np.concatenate(groups), w0)
    if proved.bound > least + rounding:
        return f"bound {proved.bound!r} is above the optimum {least!r}", "", proved
    if proved.primal < bound - rounding:
        return f"primal {proved.primal!r} is below the optimum {bound!r}", "", proved
    if proved.kind != ("global" if tiny.case[2] == "convex" else "stationary"):
        return f"kind {proved.kind}", "", proved
    if proved.stop is Stop.GAP and proved.relative_gap > max(tiny.tol, 1e-12) and proved.gap > rounding:
        return "it stopped for a gap that is open", "", proved
    if proved.stop is Stop.STALLED and proved.gap > 1e-9 * abs(proved.primal) + 10 * rounding:
        return "", f"stalled at a gap of {proved.relative_gap:.1e}", proved
    if proved.stop is Stop.MASTER:
        return "", "the master failed on the way", proved
    apart = (least - bound) / max(abs(least), 1e-300)
    return "", f"the optimum is known to {apart:.0e} only" if apart > 1e-6 and least - bound > rounding else "", proved


def references_of(risk):
    """The reference that training fixed for each query, by the rows of its documents in ascending order."""
    found = {}
    for shard in risk.shards:
        loss = shard.touched(risk.touch).loss
        fixed = loss.reference_weights(np.zeros(int(shard.offsets[-1])))
        for low, high in zip(shard.offsets[:-1], shard.offsets[1:], strict=True):
            rows = shard.scorer.rows[low:high]
            turns = np.argsort(rows)
            found[tuple(rows[turns].tolist())] = fixed[low:high][turns]
    return found


def misplaced(bound, target_ranking, placed, earned, scores):
    """What is wrong with a reference; "" if it is a mean of rankings that this bound may take."""
    best = earned >= earned.max() - 1e-9
    liked = placed @ scores
    near = 1e-9 * (1.0 + np.abs(liked).max())
    if bound == "convex":
        allowed = best
    elif bound == "tie-aware":
        allowed = best & (liked >= liked[best].max() - near)
    else:
        allowed = liked >= liked.max() - near
    return (
        ""
        if mixed(placed[allowed], target_ranking)
        else f"the reference {target_ranking} is no mean of {bound} rankings"
    )


def optimum(tiny, slopes, heights, groups, w0):
    """The least objective of these planes from above and from below, both worked out here from a solver's weights."""
    count = groups.max() + 1
    above, below = np.inf, 0.0
    program = margin_dual(slopes, heights, lam=tiny.lam, groups=groups, group_mass=np.ones(count), w0=w0)
    for solver in ("qpsolvers:piqp", "qpsolvers:clarabel", "active_set"):
        try:
            alpha = solve(program, solver).x
        except FormulationError:
            continue
        alpha = np.maximum(alpha, 0.0)
        used = np.bincount(groups, alpha, count)
        alpha = alpha / np.maximum(used, 1.0)[groups]
        step = -(slopes.T @ alpha) / tiny.lam
        rise = heights + slopes @ w0
        below = max(below, float(alpha @ rise - tiny.lam / 2 * step @ step))
        there = np.full(count, -np.inf)
        np.maximum.at(there, groups, rise + slopes @ step)
        above = min(above, float(tiny.lam / 2 * step @ step + np.maximum(there, 0.0).sum()))
        if above - below <= 1e-9 * abs(above):
            break
    return above, below
