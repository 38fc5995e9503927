"""The best admissible list of one user after another, under the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.errors import Infeasible
from formulations.forms.form import Solution, Status
from formulations.problems.ranking_set import ranking_set
from formulations.sets.constrained_ranking import ConstrainedRanking
from formulations.sets.prices import earned, pressing
from formulations.sets.ranking_set import RankingSet
from formulations.solving.solve import solve
from rankopt.collaborative.lists.few_candidates import CandidateClasses
from rankopt.constraints.admissible import Admissible
from rankopt.constraints.greedy import GroupCapacities
from rankopt.errors import DataError

__all__ = ["ConstrainedRecommender"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ASKING = ("at least", "exactly")
"""Words of rules that an empty list does not follow."""

FIT_ANEW = "give the ratings such values by ratings.with_attributes({name: {item: value}}), and fit to these"
"""How items get an attribute."""

FIRST = 6
"""How many times k items, the best by score, are tried before all that may be needed."""


@dataclass(frozen=True, eq=False)
class ConstrainedRecommender:
    """Rules over n items with these attributes. caps: where one pass by score finds the best list; kinds: else."""

    admissible: Admissible
    attributes: Mapping[str, NDArray[Any]]
    caps: GroupCapacities | None
    kinds: CandidateClasses | None

    @classmethod
    def of(cls, admissible: Admissible, attributes: Mapping[str, NDArray[Any]], n: int) -> ConstrainedRecommender:
        """DataError for an attribute that is missing."""
        admissible.check(attributes, FIT_ANEW)
        used = {name: attributes[name] for name in admissible.attributes}
        caps = GroupCapacities.of(admissible.rules, used, n, min(admissible.k, n))
        return cls(admissible, used, caps, None if caps is not None else CandidateClasses.of(admissible.rules, used, n))

    def best(self, scores: Floats, user: Any) -> Ints:
        """The list that maximises Σ_i s_π(i) / log2(i + 1) over items of finite score, best first. DataError naming the
        user for whom there is none."""
        user = user.item() if isinstance(user, np.generic) else user  # as it is printed
        free = np.flatnonzero(scores > -np.inf)
        if not free.size:
            if self.admissible.short == "error" and any(rule.word in ASKING for rule in self.admissible.rules):
                raise DataError(
                    f"user {user!r} has no admissible list because no item is left and the rules ask for some; pass "
                    "seen='keep', more items by among=, or rules with short='cut'"
                )
            return free
        if self.caps is not None:
            found = self.caps.order(scores)
            found = found[scores[found] > -np.inf]
            if found.size == min(self.admissible.k, free.size) or (found.size and self.admissible.short == "cut"):
                return found
        needed = free if self.kinds is None else free[self.kinds.needed(scores[free], free, self.admissible.k)]
        first = needed[: FIRST * self.admissible.k]
        if first.size < needed.size and self.kinds is not None and self._only_above:
            proved = self._proved(first, needed[first.size :], scores, self.kinds)
            if proved is not None:
                return proved
        try:
            return needed[self._solved(needed, scores[needed]).order]
        except Infeasible:
            pass  # the words are of all items that are left
        try:
            return free[self._solved(free, scores[free]).order]
        except Infeasible as error:
            raise self.admissible.refusal(user, error, "user", "item") from error

    @property
    def _only_above(self) -> bool:
        return all(rule.word in ("at most", "ban") and rule.price is None for rule in self.admissible.rules)

    def _solved(self, items: Ints, scores: Floats) -> Solution:
        """The best list of these items. A constant moves no order: near 0 the profits keep their digits."""
        allowed = self._allowed(items)
        return solve(ranking_set(np.outer(_weights(allowed.positions), scores - scores.min()), allowed))

    def _allowed(self, items: Ints) -> RankingSet:
        return self.admissible.on({name: of[items] for name, of in self.attributes.items()}, items.size)

    def _proved(self, first: Ints, others: Ints, scores: Floats, kinds: CandidateClasses) -> Ints | None:
        """The best list of the first items, if its prices prove that no other item belongs into it; else None."""
        lowest = scores[others].min()
        try:
            allowed = self._allowed(first)
        except Infeasible:
            return None
        k = allowed.positions
        if k < min(self.admissible.k, first.size):
            return None
        weights, stated = _weights(k), allowed.stated
        problem = ConstrainedRanking(np.outer(weights, scores[first] - lowest), allowed)
        found = solve(problem)
        if found.status is not Status.OPTIMAL or found.y is None or found.y.ndim != 1:
            return None
        price, _ = pressing(stated, found.y)
        room = earned(stated, problem.profit, price, np.empty(0))
        offered = np.outer(weights, scores[others] - lowest)
        row = stated.own_row.size
        rules = [one for one in zip(self.admissible.rules, kinds.counted, strict=True) if one[0].word != "ban"]
        counting = [constraint for constraint in allowed.constraints if constraint.forbids is None]
        if len(rules) != len(counting):
            return None
        for (rule, (columns, counted)), constraint in zip(rules, counting, strict=True):
            labels = (None,) if constraint.labels is None else constraint.labels
            prices = np.zeros(counted.shape[1])
            prices[[columns[label] for label in labels]] = price[row : row + len(labels)]
            here = np.ones(k, dtype=bool) if rule.positions is None else np.isin(np.arange(k), rule.positions)
            offered[here] -= counted[others] @ prices
            row += len(labels)
        return first[found.order] if (offered <= room[:, None] + found.problem.rounding).all() else None


def _weights(k: int) -> Floats:
    return np.asarray(1.0 / np.log2(np.arange(2.0, k + 2.0)))
