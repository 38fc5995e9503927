"""The best admissible list of one user after another, under the same rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.errors import Infeasible
from formulations.sets.constrained_ranking import ConstrainedRanking
from formulations.solving.solve import solve
from rankopt.collaborative.few_candidates import Kinds
from rankopt.constraints.admissible import Admissible
from rankopt.constraints.greedy import Caps

__all__ = ["Quotas"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Quotas:
    """Rules over n items with these attributes. caps: where one pass by score finds the best list; kinds: else."""

    admissible: Admissible
    attributes: Mapping[str, NDArray[Any]]
    caps: Caps | None
    kinds: Kinds | None

    @classmethod
    def of(cls, admissible: Admissible, attributes: Mapping[str, NDArray[Any]], n: int) -> Quotas:
        """DataError for an attribute that is missing."""
        admissible.check(attributes)
        used = {name: attributes[name] for name in admissible.attributes}
        caps = Caps.of(admissible.rules, used, n, min(admissible.k, n))
        return cls(admissible, used, caps, None if caps is not None else Kinds.of(admissible.rules, used, n))

    def best(self, scores: Floats, user: Any) -> Ints:
        """The list that maximises Σ_i s_π(i) / log2(i + 1) over items of finite score, best first. DataError naming the
        user for whom there is none."""
        free = np.flatnonzero(scores > -np.inf)
        if not free.size:
            return free
        if self.caps is not None:
            found = self.caps.order(scores)
            found = found[scores[found] > -np.inf]
            if found.size == min(self.admissible.k, free.size) or (found.size and self.admissible.short == "cut"):
                return found
        needed = free if self.kinds is None else free[self.kinds.needed(scores[free], free, self.admissible.k)]
        try:
            allowed = self.admissible.on({name: of[needed] for name, of in self.attributes.items()}, needed.size)
        except Infeasible as error:
            raise self.admissible.refusal(user, error) from error
        own = scores[needed]
        weights = 1.0 / np.log2(np.arange(2.0, allowed.positions + 2.0))
        # A constant moves no order; near 0 the profits keep their digits.
        order = solve(ConstrainedRanking(np.outer(weights, own - own.min()), allowed)).order
        return np.asarray(needed[order])
