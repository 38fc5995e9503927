"""Few candidates for a list under rules: items that no best admissible list needs.

Rules tell items apart by what they count: item i may take the place of item j, whatever else is listed, if i counts for
no limit from above that j does not count for, for all limits from below that j counts for, and for the same exact ones.
Where some must stand before others, those that wait count as from above and those that they wait for as from below.
If k such items have scores as high, one of them is not in a list of k that holds j, and in its place the list is as
good. So j is left out; what is left holds a best list, for any weights of the positions >= 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.sets.cells import by_label
from rankopt.constraints.rule import Rule

__all__ = ["CandidateClasses"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CandidateClasses:
    """kind (n,): which items the rules do not tell apart. replaces (kinds, kinds): [a, b] whether an item of kind a may
    stand for any of kind b. counted: of each rule, the column of each label and which items (n, labels) it counts."""

    kind: Ints
    replaces: NDArray[np.bool_]
    counted: tuple[tuple[dict[Any, int], NDArray[np.bool_]], ...]

    @classmethod
    def of(cls, rules: tuple[Rule, ...], attributes: Mapping[str, NDArray[Any]], n: int) -> CandidateClasses:
        """What the rules see of n items."""
        above, below, exact = (np.zeros((n, 0), dtype=bool) for _ in range(3))
        every = tuple(_counted(rule, attributes, n) for rule in rules)
        for rule, (_, counted) in zip(rules, every, strict=True):
            if rule.word in ("at most", "ban"):
                above = np.hstack([above, counted])
            elif rule.word == "at least":
                below = np.hstack([below, counted])
            elif rule.word == "before":
                waiting = rule.called_for(attributes, n)[:, None]
                above, below = np.hstack([above, waiting & ~counted]), np.hstack([below, counted])
            elif rule.word == "if then":
                exact = np.hstack([exact, counted, rule.called_for(attributes, n)[:, None]])
            else:
                exact = np.hstack([exact, counted])
        width = above.shape[1], above.shape[1] + below.shape[1]
        table, kind = np.unique(np.hstack([above, below, exact]), axis=0, return_inverse=True)
        a, b, c = (part.astype(np.float64) for part in np.split(table, width, axis=1))
        # [i, j]: how many limits from above i counts for and j does not, from below j does and i does not, differences.
        worse = a @ (1.0 - a).T + (1.0 - b) @ b.T + c @ (1.0 - c).T + (1.0 - c) @ c.T
        return cls(kind.reshape(-1).astype(np.int64), worse == 0.0, every)

    def needed(self, scores: Floats, items: Ints, k: int) -> Ints:
        """Of these items, whose scores (items.size,) stand beside them, those that a best list of k needs: their places
        in `items`, best first, equal scores as they come."""
        kind = self.kind[items]
        order = np.lexsort((-scores, kind))  # stable: equal scores as they come
        starts = np.flatnonzero(np.concatenate([[True], np.diff(kind[order]) > 0]))
        rank = np.arange(order.size) - np.repeat(starts, np.diff(np.append(starts, order.size)))
        first = np.sort(order[rank < k])
        first = first[np.argsort(-scores[first], kind="stable")]
        better = np.zeros(self.replaces.shape[0], dtype=np.int64)  # of items so far that may stand for each kind
        kept = []
        for place, own in zip(first.tolist(), kind[first].tolist(), strict=True):
            if better[own] < k:
                kept.append(place)
                better += self.replaces[own]
        return np.array(kept, dtype=np.int64)


def _counted(rule: Rule, attributes: Mapping[str, NDArray[Any]], n: int) -> tuple[dict[Any, int], NDArray[np.bool_]]:
    """The column of each label that a rule limits (None: it has no labels), and which items each limit counts."""
    among = rule.among(attributes, n)
    if rule.by is None:
        return {None: 0}, (np.ones(n, dtype=bool) if among is None else among)[:, None]
    limited = None if isinstance(rule.count, int) else dict(rule.count)
    labels = {
        label: members
        for label, members in by_label(attributes[rule.by], n).items()
        if limited is None or label in limited
    }
    table = np.zeros((n, len(labels)), dtype=bool)
    for column, members in enumerate(labels.values()):
        table[members, column] = True
    columns = {label: column for column, label in enumerate(labels)}
    return columns, table if among is None else table & among[:, None]
