"""Who stands where: slots are documents in the order of their chains, positions hold slots.

Documents of one chain stand in the order of the chain. stands[slot] is a position, IDLE (the number of positions) if
the document is left out, FREE if it has no place yet; holds[p] is a slot, or FREE. after[p, g] is the slot that follows
the last one of chain g at positions up to p.
"""

import numba as nb

from formulations.arrays import Bytes, Floats, Ints, Shorts
from formulations.compiled import BYTES, FLOATS, INTS, compiled

__all__ = ["FREE", "TABLE", "restore_order"]

FREE = -1

TABLE = nb.types.Array(nb.int32, 2, "C")


@compiled(nb.void(INTS, INTS, INTS, INTS, BYTES, TABLE, BYTES, INTS, nb.int64, nb.int64, FLOATS, nb.float64))
def restore_order(
    holds: Ints,
    stands: Ints,
    start: Ints,
    size: Ints,
    chain: Bytes,
    after: Shorts,
    label: Bytes,
    at: Ints,
    begin: int,
    end: int,
    price: Floats,
    idle: float,
) -> None:
    """After changes at begin <= p < end: each chain in order again (ties may cross), `after` brought up to date.

    label, at: room for a position, a chain. idle: price of the documents left out.
    """
    positions, chains = holds.size, at.size
    for g in range(chains):
        at[g] = after[begin - 1, g] if begin else start[g]
    for p in range(begin, end):
        label[p] = chain[holds[p]] if holds[p] >= 0 else FREE
    for p in range(begin, end):
        g = label[p]
        if g >= 0:
            slot = at[g]
            while stands[slot] == FREE:
                slot += 1
            if stands[slot] == positions:
                price[slot] = idle
            holds[p], stands[slot], at[g] = slot, p, slot + 1
        for h in range(chains):
            after[p, h] = at[h]
    if end == positions:
        for g in range(chains):
            slot = at[g]
            while slot < start[g] + size[g]:
                if 0 <= stands[slot] < positions:
                    stands[slot], price[slot] = positions, idle
                slot += 1
        return
    for p in range(end, positions):
        if holds[p] >= 0:
            at[chain[holds[p]]] = holds[p] + 1
        same = True
        for h in range(chains):
            same = same and after[p, h] == at[h]
            after[p, h] = at[h]
        if same:
            break
