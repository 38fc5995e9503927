"""Deployment in one pass: take documents from the best score down, skip what a rule has enough of [ORM, section 7.1].

Where every rule limits a set of documents over all positions, and these sets are nested or disjoint (Π(B, k) is the
case of disjoint sets and limits of one), the admissible choices of documents are a laminar matroid: the first t that
the pass takes have the largest sum of scores of any admissible t documents, for every t. So the pass maximises
Σ c_i s_π(i) for every non-increasing c >= 0, and takes as many documents as any admissible list has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.constraints.rule import Attributes, Rule

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GroupCapacities:
    """Limits on nested or disjoint sets of documents. of_document: the limits that each document counts for."""

    k: int
    limits: tuple[int, ...]
    of_document: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, rules: Iterable[Rule], attributes: Attributes, n: int, k: int) -> GroupCapacities | None:
        """The rules for k of n documents as limits; None where they are more than that, or overlap."""
        found: list[tuple[Ints, int]] = []
        for rule in rules:
            caps = rule.caps(attributes, n, k)
            if caps is None:
                return None
            found += caps
        found.sort(key=lambda cap: -cap[0].size)
        smallest = np.full(n, -1)  # of the sets so far that hold each document
        of_document: list[list[int]] = [[] for _ in range(n)]
        for number, (documents, _) in enumerate(found):
            if documents.size and (smallest[documents] != smallest[documents[0]]).any():
                return None
            smallest[documents] = number
            for document in documents.tolist():
                of_document[document].append(number)
        return cls(k, tuple(limit for _, limit in found), tuple(map(tuple, of_document)))

    def order(self, scores: Floats) -> Ints:
        """The documents of the list, best first, equal scores as they come; fewer than k where there is no room."""
        left = list(self.limits)
        placed: list[int] = []
        for document in np.argsort(-scores, kind="stable").tolist():
            limits = self.of_document[document]
            if all(left[limit] > 0 for limit in limits):
                placed.append(document)
                for limit in limits:
                    left[limit] -= 1
                if len(placed) == self.k:
                    break
        return np.array(placed, dtype=np.int64)
