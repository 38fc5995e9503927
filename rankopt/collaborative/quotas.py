"""The best admissible list of each user under the same constraints, with candidate pruning.

Item i dominates item j if i counts for no upper limit that j does not count for, for all lower limits that j counts
for, and for the same exact limits. In precedence constraints, successors count as an upper limit and predecessors as a
lower one. If k dominating items have scores at least as high, one of them is not in a list of k that contains j, and
replacing j by it is at least as good. So j is pruned; the rest contains a best list, for any position weights >= 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints
from formulations.constraints.constrained_ranking import ConstrainedRanking
from formulations.constraints.constraint import by_label
from formulations.constraints.duals import earned, pressing
from formulations.constraints.language import ConstraintSpec
from formulations.constraints.ranking_set import RankingSet
from formulations.errors import InfeasibleError
from formulations.gallery.assignments import constrained_ranking
from formulations.problems.problem import Solution, Status
from formulations.solving.solve import solve
from rankopt.constraints.admissible import SHORTEN, Admissible, infeasible_error
from rankopt.constraints.specs import GroupCapacities, check_values, limits_count, select, selectors
from rankopt.errors import DataError


@dataclass(frozen=True, eq=False)
class CandidateClasses:
    """kind (n,): the class of items that the rules treat alike. replaces (kinds, kinds): whether an item of
    kind a may replace any of kind b. counted: of each rule, the column of each label and the items (n, labels)."""

    kind: Ints
    replaces: Bools
    counted: tuple[tuple[dict[Any, int], Bools], ...]

    @classmethod
    def from_constraints(
        cls, specs: tuple[ConstraintSpec, ...], attributes: Mapping[str, NDArray[Any]], n: int
    ) -> CandidateClasses:
        """What the rules see of n items."""
        above, below, exact = (np.zeros((n, 0), dtype=bool) for _ in range(3))
        every = tuple(_label_limits(spec, attributes, n) for spec in specs)
        for spec, (_, counted) in zip(specs, every, strict=True):
            chosen = [select(selector, attributes, n)[:, None] for selector in selectors(spec)]
            if spec.kind in ("at_most", "forbid", "min_distance"):
                above = np.hstack([above, counted])
            elif spec.kind == "at_least":
                below = np.hstack([below, counted])
            elif spec.kind == "position_in":
                below = np.hstack([below, *chosen])
            elif spec.kind in ("precedes", "precedence_chain"):
                for first, second in pairwise(chosen):
                    above, below = np.hstack([above, second & ~first]), np.hstack([below, first])
            else:
                exact = np.hstack([exact, counted, *chosen])
        width = above.shape[1], above.shape[1] + below.shape[1]
        table, kind = np.unique(np.hstack([above, below, exact]), axis=0, return_inverse=True)
        a, b, c = (part.astype(np.float64) for part in np.split(table, width, axis=1))
        # [i, j]: how many limits from above i counts for and j does not, from below j does and i does not, differences.
        worse = a @ (1.0 - a).T + (1.0 - b) @ b.T + c @ (1.0 - c).T + (1.0 - c) @ c.T
        return cls(kind.reshape(-1).astype(np.int64), worse == 0.0, every)

    def needed(self, scores: Floats, items: Ints, k: int) -> Ints:
        """The items that a best list of k needs: their indices in `items`, best first, equal scores in input order.
        scores: (items.size,)."""
        kind = self.kind[items]
        order = np.lexsort((-scores, kind))  # stable: equal scores as they come
        starts = np.flatnonzero(np.concatenate([[True], np.diff(kind[order]) > 0]))
        rank = np.arange(order.size) - np.repeat(starts, np.diff(np.append(starts, order.size)))
        first = np.sort(order[rank < k])
        first = first[np.argsort(-scores[first], kind="stable")]
        better = np.zeros(self.replaces.shape[0], dtype=np.int64)  # of items so far that may replace each kind
        needed = []
        for index, own in zip(first.tolist(), kind[first].tolist(), strict=True):
            if better[own] < k:
                needed.append(index)
                better += self.replaces[own]
        return np.array(needed, dtype=np.int64)


def _label_limits(spec: ConstraintSpec, attributes: Mapping[str, NDArray[Any]], n: int) -> tuple[dict[Any, int], Bools]:
    """The column of each label that a rule limits (None: it has no labels), and which items each limit counts."""
    among = select(spec.documents, attributes, n)
    if spec.by is None:
        return {None: 0}, among[:, None]
    count = dict(spec.options).get("share", spec.args[0] if spec.args else None)
    limited = dict(count) if isinstance(count, tuple) else None
    members = by_label(attributes[spec.by], n)
    labels = [label for label in members if limited is None or label in limited]
    table = np.zeros((n, len(labels)), dtype=bool)
    for column, label in enumerate(labels):
        table[members[label], column] = True
    return {label: column for column, label in enumerate(labels)}, table & among[:, None]


REQUIRING = ("at_least", "exactly", "between", "position_in")  # kinds of constraints that an empty list violates
FIT_ANEW = "give the ratings such values by ratings.with_attributes({name: {item: value}}), and fit to these"
"""How items get an attribute."""

FIRST = 6  # how many times k items, the best by score, are tried before all that may be needed


@dataclass(frozen=True, eq=False)
class ConstrainedRecommender:
    """Rules over n items with these attributes. caps: where one pass by score finds the best list; kinds: else."""

    admissible: Admissible
    attributes: Mapping[str, NDArray[Any]]
    caps: GroupCapacities | None
    kinds: CandidateClasses | None

    @classmethod
    def from_admissible(
        cls, admissible: Admissible, attributes: Mapping[str, NDArray[Any]], n: int
    ) -> ConstrainedRecommender:
        """DataError for an attribute that is missing."""
        admissible.validate(attributes, FIT_ANEW)
        used = {name: attributes[name] for name in admissible.attributes}
        check_values(admissible.specs, used, "item")
        caps = GroupCapacities.from_specs(admissible.specs, used, n, min(admissible.k, n))
        kinds = None if caps is not None else CandidateClasses.from_constraints(admissible.specs, used, n)
        return cls(admissible, used, caps, kinds)

    def best(self, scores: Floats, user: Any) -> Ints:
        """The list that maximizes Σ_i s_π(i) / log2(i + 1) over items of finite score, best first. DataError naming the
        user for whom there is none."""
        user = user.item() if isinstance(user, np.generic) else user  # as it is printed
        free = np.flatnonzero(scores > -np.inf)
        if not free.size:
            required = any(spec.kind in REQUIRING for spec in self.admissible.specs)
            if required and self.admissible.on_infeasible == "error":
                raise DataError(
                    f"user {user!r} has no admissible list because no item is left but the rules need some; pass "
                    "seen='keep', more items by among=, or rules with on_infeasible='truncate'"
                )
            return free
        if self.caps is not None:
            found = self.caps.order(scores)
            found = found[scores[found] > -np.inf]
            complete = found.size == min(self.admissible.k, free.size)
            if complete or (found.size and self.admissible.on_infeasible == "truncate"):
                return found
        needed = free if self.kinds is None else free[self.kinds.needed(scores[free], free, self.admissible.k)]
        first = needed[: FIRST * self.admissible.k]
        if first.size < needed.size and self.kinds is not None and all(map(limits_count, self.admissible.specs)):
            proved = self._try_first_items(first, needed[first.size :], scores, self.kinds)
            if proved is not None:
                return proved
        try:
            return needed[self._solve(needed, scores[needed]).order]
        except InfeasibleError:
            pass  # the words are of all items that are left
        try:
            return free[self._solve(free, scores[free]).order]
        except InfeasibleError as error:
            shorter = self.admissible.on_infeasible == "error" and "admits at most" in str(error)
            raise infeasible_error(user, error, SHORTEN if shorter else "", "user", "item") from error

    def _solve(self, items: Ints, scores: Floats) -> Solution:
        """The best list of these items. A constant moves no order: near 0 the profits keep their digits."""
        allowed = self._ranking_set(items)
        return solve(constrained_ranking(np.outer(_weights(allowed.positions), scores - scores.min()), allowed))

    def _ranking_set(self, items: Ints) -> RankingSet:
        return self.admissible.for_query({name: of[items] for name, of in self.attributes.items()}, items.size)

    def _try_first_items(self, first: Ints, others: Ints, scores: Floats, kinds: CandidateClasses) -> Ints | None:
        """The best list of the first items, if its duals prove that no other item improves it; else None."""
        lowest = scores[others].min()
        try:
            allowed = self._ranking_set(first)
        except InfeasibleError:
            return None
        k = allowed.positions
        if k < min(self.admissible.k, first.size):
            return None
        weights, stated = _weights(k), allowed.compiled
        problem = ConstrainedRanking(np.outer(weights, scores[first] - lowest), allowed)
        found = solve(problem)
        if found.status is not Status.OPTIMAL or found.y is None or found.y.ndim != 1:
            return None
        price, _ = pressing(stated, found.y)
        bound = earned(stated, problem.profit, price)
        offered = np.outer(weights, scores[others] - lowest)
        row = stated.own_row.size
        specs = [one for one in zip(self.admissible.specs, kinds.counted, strict=True) if one[0].kind != "forbid"]
        counting = [constraint for constraint in allowed.constraints if constraint.forbids is None]
        if len(specs) != len(counting):
            return None
        for (spec, (columns, counted)), constraint in zip(specs, counting, strict=True):
            labels = (None,) if constraint.labels is None else constraint.labels
            prices = np.zeros(counted.shape[1])
            prices[[columns[label] for label in labels]] = price[row : row + len(labels)]
            here = np.ones(k, dtype=bool) if spec.positions is None else np.isin(np.arange(k), spec.positions)
            offered[here] -= counted[others] @ prices
            row += len(labels)
        return first[found.order] if (offered <= bound[:, None] + found.problem.rounding).all() else None


def _weights(k: int) -> Floats:
    return np.asarray(1.0 / np.log2(np.arange(2.0, k + 2.0)))
