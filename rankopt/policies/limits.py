"""Limits on the exposure of groups, per query or amortized over queries, and the best policy under them.

A policy is a distribution over rankings. Its marginals P (k, n) of a query have P[i, j], the probability that document
j is at position i. With the position weights a (k,) of a measure and the gains b (n,), the exposure of the documents is
e = Pᵀa and the utility, the expected value of the measure, is bᵀe. Both are linear in P, so the best policy is a linear
program. A limit r of query q is `rows[r] @ e <= bounds[r]`:

    per query    rows_q[r] @ e_q <= bounds_q[r]                              for each query q
    amortized    Σ_q weight_q (rows_q[r] @ e_q - bounds_q[r]) <= 0           over the queries q that have the limit r

weight_q is the mean merit of the documents of query q, 1 for limits without merit. A policy that keeps the limits of
each query keeps the amortized ones, so these cost no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import block_array, block_diag, csr_array, hstack, kron

from formulations.arrays import Floats, Ints
from formulations.constraints.constraint import unlabeled
from formulations.display import CompactReprMixin
from formulations.errors import InfeasibleError
from formulations.gallery.assignments import marginal_ranking
from formulations.marginals.exposure import (
    DemographicParity,
    DisparateImpact,
    DisparateTreatment,
    DocumentGroups,
    ExposureBounds,
)
from formulations.problems.linear_program import LinearProgram
from formulations.problems.program import Block
from formulations.solving.solve import solve
from rankopt.data.canonical_order import Arrangement
from rankopt.data.validation import column
from rankopt.errors import DataError, OptionError
from rankopt.evaluation.evaluation import random_of, ties_broken
from rankopt.measures.measure import PositionalMeasure
from rankopt.measures.notation import parse

Exposure = DemographicParity | DisparateTreatment | DisparateImpact | ExposureBounds
"""Limits of exposure whose groups, and merit, are names of attributes of documents."""

GAIN = "gain"  # the merit that is the gain of the measure, or 0 where that is negative
ORDERS = 8  # random orders of documents of equal gain
SAFE = 1e-9  # added to the least possible excess, so that a solver finds a point within it


def utility_measure(measure: Any) -> PositionalMeasure:
    """The measure, if its expectation is linear in the marginals of a policy; OptionError for others."""
    found = parse(measure)
    if not isinstance(found, PositionalMeasure) or type(found).constant is not PositionalMeasure.constant:
        raise OptionError(
            f"measure must be an inner product of position weights and gains, whose expectation is linear in the "
            f"marginals of a policy; got {found}. Pass measure='DCG@10', 'nDCG@10' or 'P@10'."
        )
    return found


def attention_of(measure: PositionalMeasure, n: int) -> Floats:
    """(k,) the weights of the positions that count in a query of n documents."""
    weights = np.asarray(measure.discount(n), dtype=np.float64)
    if not (weights >= 0).all() or not weights.any():
        raise OptionError(f"measure must have position weights >= 0; got {weights} of {measure}. Pass 'DCG@10'.")
    return weights[: int(np.flatnonzero(weights)[-1]) + 1]


@dataclass(frozen=True, eq=False)
class PolicyQuery(CompactReprMixin):
    """A query as policies see it: attention (k,), gain (n,), and its limits `rows @ e <= bounds`.

    names: of the limits. weight: of the query in amortized limits. groups, shares (G, n): shares @ e is the exposure
    per merit of each group. Without two groups of positive merit a parity has no limits.
    """

    attention: Floats
    gain: Floats
    names: tuple[Hashable, ...] = ()
    rows: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    bounds: Floats = field(default_factory=lambda: np.zeros(0))
    weight: float = 1.0
    groups: tuple[Hashable, ...] = ()
    shares: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def unit(self) -> float:
        """The mean exposure of a document per mean merit, in which excess and disparity are measured."""
        return float(self.attention.sum() / self.gain.size / self.weight)

    def excess(self, exposure: Floats) -> Floats:
        """(r,) by how much the exposure (n,) of the documents breaks each limit; negative where it keeps it."""
        return self.rows @ exposure - self.bounds if self.names else np.zeros(0)


def check_exposure(exposure: Any, attributes: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    """The attributes that the limits need; OptionError unless they are limits by names of attributes, DataError if one
    is not among the attributes. None is no limit."""
    if exposure is None:
        return ()
    if not isinstance(exposure, Exposure):
        raise OptionError(
            f"exposure must be a DemographicParity, DisparateTreatment, DisparateImpact or ExposureBounds; got "
            f"{exposure!r:.80}"
        )
    names = (exposure.groups, *([exposure.merit] if hasattr(exposure, "merit") else []))
    if not all(isinstance(name, str) for name in names):
        raise OptionError(
            f"groups and merit of exposure must be names of attributes (merit may be {GAIN!r}); got {names!r:.80}. "
            "Pass DemographicParity('gender') and fit(X, y, qid=qid, attributes=frame)."
        )
    if not isinstance(exposure, ExposureBounds):
        bounds = {"difference_bound": exposure.difference_bound, "ratio_bound": exposure.ratio_bound}
        DemographicParity(["a", "b"], **bounds).rows(np.ones(1), 2)  # raises for bounds that cannot be
    names = tuple(name for name in names if name != GAIN)
    missing = [] if attributes is None else [name for name in names if name not in attributes]
    if missing:
        every = ", ".join(map(repr, names))
        raise DataError(f"exposure needs the attribute {missing[0]!r}, one value a document; pass attributes= {every}.")
    return names


def check_groups(exposure: Any, attributes: Mapping[str, Any]) -> None:
    """DataError for a limit of a group that no document belongs to."""
    if exposure is None:
        return
    known = {label for label in np.array(attributes[exposure.groups], dtype=object).tolist() if not unlabeled(label)}
    named = [getattr(exposure, "protected", None)]
    for side in ("lower", "upper"):
        stated = getattr(exposure, side, None)
        named += list(stated) if isinstance(stated, Mapping) else []
    missing = [label for label in named if label is not None and label not in known]
    if missing:
        labels = ", ".join(sorted(map(repr, known))[:5])
        raise DataError(
            f"no document has {exposure.groups} = {missing[0]!r}; the groups are {labels}. Name one of them."
        )


def policy_queries(queries: Arrangement, gain: Floats, measure: PositionalMeasure, exposure: Any) -> list[PolicyQuery]:
    """The queries with their gains (N,) and limits. exposure: None is no limit."""
    found = []
    for low, high in zip(queries.offsets[:-1].tolist(), queries.offsets[1:].tolist(), strict=True):
        attention, own = attention_of(measure, high - low), gain[low:high]
        attributes = {name: values[low:high] for name, values in queries.attributes.items()}
        limits = {} if exposure is None else _limits(exposure, attributes, own)
        found.append(PolicyQuery(attention, own, **limits))
    return found


def _limits(exposure: Exposure, attributes: Mapping[str, Any], gain: Floats) -> dict[str, Any]:
    """The fields of a `PolicyQuery` that are limits; none where groups cannot be compared."""
    labels, merit = np.array(attributes[exposure.groups], dtype=object), np.ones(gain.size)
    if isinstance(exposure, DisparateTreatment | DisparateImpact):
        merit = np.maximum(gain, 0.0)  # a linear model estimates small gains below 0
        if exposure.merit != GAIN:
            merit = column(attributes[exposure.merit], gain.size, "merit", np.float64)
        if not (merit >= 0).all():
            raise DataError(f"merit must be >= 0 for every document; got {merit.min():g}. Clip the attribute at 0.")
        for label in set(labels.tolist()):
            if not merit[labels == label].sum() > 0:
                labels[labels == label] = None
    if all(map(unlabeled, labels.tolist())):
        return {}
    groups = DocumentGroups.from_labels(labels, gain.size)
    weight = merit if isinstance(exposure, DisparateImpact) else np.ones(gain.size)
    shares = groups.exposure(np.ones(1), weight).toarray() / groups.mean(merit)[:, None]
    names, rows, bounds = list[Hashable](), list[Floats](), list[float]()
    if isinstance(exposure, ExposureBounds):
        for side, sign, stated in (("least", -1.0, exposure.lower), ("most", 1.0, exposure.upper)):
            for g, label in enumerate(groups.labels):
                limit = stated.get(label, sign * np.inf) if isinstance(stated, Mapping) else stated
                if np.isfinite(limit):
                    names.append((label, side))
                    rows.append(sign * shares[g])
                    bounds.append(sign * float(limit))
    else:
        ratio = 1.0 if exposure.ratio_bound is None else exposure.ratio_bound
        for g, other in permutations(range(len(groups.labels)), 2):
            if exposure.protected in (None, groups.labels[other]):
                names.append((groups.labels[g], groups.labels[other]))
                rows.append(ratio * shares[g] - shares[other])
                bounds.append(float(exposure.difference_bound or 0.0))
    return {
        "names": tuple(names), "rows": np.reshape(rows, (-1, gain.size)), "bounds": np.array(bounds),
        "weight": float(merit[groups.member >= 0].mean()), "groups": groups.labels, "shares": shares,
    }  # fmt: skip


@dataclass(frozen=True, eq=False)
class BestPolicy(CompactReprMixin):
    """The best marginals of each query under limits, `bound` on the utility of any policy that keeps them, summed over
    the queries, and `excess`, the least by which every policy breaks a limit (0 if the limits can be kept), in units of
    the mean exposure per merit."""

    marginals: tuple[Floats, ...]
    bound: float
    excess: float


def best_policy(
    queries: Sequence[PolicyQuery], *, carried: Mapping[Hashable, float] | None = None, tolerance: float = 0.0,
    averaged: bool = False,
) -> BestPolicy:  # fmt: skip
    """Maximize the utility of all queries together under their amortized limits; of one query, under its own.

    Parameters
    ----------
    queries : sequence of PolicyQuery
        The queries; limits of one name are summed.
    carried : mapping, optional
        What earlier queries add to the sum of each limit, by name.
    tolerance : float, default 0
        What is added to each bound, in units of the mean exposure per merit.
    averaged : bool, default False
        Of documents of equal gain the limits may favor any: the mean of the best policies of `ORDERS` random orders.

    Returns
    -------
    BestPolicy
        Where no policy keeps the limits, the best one of those that break the worst of them least.
    """
    parts = [marginal_ranking(np.outer(one.attention, one.gain), exposure=one.attention) for one in queries]
    cells = np.cumsum([0, *(part.objective.size for part in parts)])
    index: dict[Hashable, int] = {}
    member = [np.array([index.setdefault(name, len(index)) for name in one.names], dtype=np.int64) for one in queries]
    upper, weights = -np.array([(carried or {}).get(name, 0.0) for name in index]), np.zeros(len(index))
    blocks = list[csr_array]()
    for one, own in zip(queries, member, strict=True):
        upper[own] += one.weight * (one.bounds + tolerance * one.unit)
        weights[own] += one.weight * one.unit
        place = csr_array((np.full(own.size, one.weight), (own, np.arange(own.size))), shape=(len(index), own.size))
        rows = one.rows if own.size else np.zeros((0, one.gain.size))
        blocks.append(csr_array(place @ csr_array(kron(one.attention[None, :], rows))))
    limits = hstack(blocks)

    def program(objective: Floats, more: int, upper: Floats) -> LinearProgram:
        """`more`: 1 with a last variable, the excess of the worst limit."""
        base = block_diag([part.matrix for part in parts], format="csr")
        column = csr_array(-weights[:, None] if more else np.zeros((weights.size, 0)))
        return LinearProgram(
            objective=objective,
            matrix=csr_array(block_array([[base, csr_array((base.shape[0], more))], [limits, column]])),
            row_lower=np.concatenate([*(part.row_lower for part in parts), np.full(weights.size, -np.inf)]),
            row_upper=np.concatenate([*(part.row_upper for part in parts), upper]),
            lower=np.zeros(cells[-1] + more),
            upper=np.append(np.ones(cells[-1]), [np.inf] * more),
            variables=(Block("P", (int(cells[-1]),)), *([Block("excess", (1,))] if more else [])),
        )

    worth, excess = np.concatenate([part.objective for part in parts]), 0.0
    unit = np.ldexp(1.0, int(np.frexp(np.abs(worth).max(initial=0.0))[1]))  # the solver's tolerances are absolute
    worth = worth / unit
    try:
        solution = solve(program(worth, 0, upper), "highs")
    except InfeasibleError:
        excess = -float(solve(program(np.append(0.0 * worth, -1.0), 1, upper), "highs").value)
        upper = upper + (excess + SAFE) * weights
        solution = solve(program(worth, 0, upper), "highs")
    flat = np.asarray(solution.primal["P"])
    spans = [slice(low, high) for low, high in pairwise(cells.tolist())]
    if averaged:
        even = np.concatenate(
            [
                _mean_over(flat[own].reshape(-1, one.gain.size), one.gain).ravel()
                for own, one in zip(spans, queries, strict=True)
            ]
        )
        if (limits @ even <= upper + SAFE * (1.0 + np.abs(upper))).all():  # documents of equal gain need no preference
            flat = even
        elif any(_kinds(one).max() >= np.unique(one.gain).size for one in queries):
            drawn = []
            for broken in zip(*map(_random_gains, queries), strict=True):
                pairs = zip(queries, broken, strict=True)
                worth = np.concatenate([np.outer(one.attention, gain).ravel() for one, gain in pairs])
                drawn.append(solve(program(worth / unit, 0, upper), "highs", solution).primal["P"])
            flat = np.mean(drawn, axis=0)
    marginals = tuple(
        _mean_over(flat[own].reshape(-1, one.gain.size), _kinds(one)) for own, one in zip(spans, queries, strict=True)
    )
    return BestPolicy(marginals, float(unit * solution.bound), excess)


def _kinds(query: PolicyQuery) -> Ints:
    """(n,) the kind of each document, by gain and limits."""
    alike = np.vstack([query.gain, query.rows]) if query.names else query.gain[None]
    return np.asarray(np.unique(alike, axis=1, return_inverse=True)[1]).ravel()


def _random_gains(query: PolicyQuery) -> Floats:
    """(ORDERS, n) the gains, equal ones in random orders; the order of rows decides nothing after `_mean_over`."""
    order = np.argsort(_kinds(query), kind="stable")
    return ties_broken(query.gain, order, random_of(query.gain[order]), ORDERS)


def _mean_over(P: Floats, key: NDArray[Any]) -> Floats:
    """The mean of P over exchanges of documents of equal keys, so that the order of rows decides nothing."""
    _, kind, count = np.unique(key, return_inverse=True, return_counts=True)
    total = csr_array((np.ones(kind.size), (np.arange(kind.size), kind)))
    return np.asarray((P @ total / count)[:, kind])


def worst_excess(queries: Sequence[PolicyQuery], exposures: Sequence[Floats], amortized: bool) -> Floats:
    """By how much the exposures (n,) of each query break the worst limit, in units of the mean exposure per merit: (1,)
    if amortized, else (m,); 0 if they break none."""
    own = [query.excess(exposure) for query, exposure in zip(queries, exposures, strict=True)]
    if not amortized:
        return np.array([one.max(initial=0.0) / query.unit for query, one in zip(queries, own, strict=True)])
    total, weight = defaultdict[Hashable, float](float), defaultdict[Hashable, float](float)
    for query, one in zip(queries, own, strict=True):
        for name, value in zip(query.names, one, strict=True):
            total[name] += query.weight * value
            weight[name] += query.weight * query.unit
    return np.array([max([0.0, *(total[name] / weight[name] for name in total)])])
