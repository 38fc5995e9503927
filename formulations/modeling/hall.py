"""Positions that no matching can fill."""

import numpy as np

from formulations.arrays import Bools, Ints

__all__ = ["deficient_positions"]


def deficient_positions(allowed: Bools) -> Ints:
    """A set of positions with fewer allowed documents than positions (Hall's condition fails), empty if there is none.

    From a maximum matching, the positions reached from one unmatched position along alternating paths.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    matched = maximum_bipartite_matching(csr_array(allowed.astype(np.int8)), perm_type="column")
    unmatched = np.flatnonzero(matched < 0)
    if not unmatched.size:
        return unmatched.astype(np.int64)
    position_of = np.full(allowed.shape[1], -1)
    position_of[matched[matched >= 0]] = np.flatnonzero(matched >= 0)
    reached = {int(unmatched[0])}
    frontier = [int(unmatched[0])]
    while frontier:
        for document in np.flatnonzero(allowed[frontier.pop()]):
            position = int(position_of[document])
            if position >= 0 and position not in reached:
                reached.add(position)
                frontier.append(position)
    return np.array(sorted(reached), dtype=np.int64)
