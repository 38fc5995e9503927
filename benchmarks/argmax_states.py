"""Which ways the argmax takes on problems of real training runs, the states it could reach, what it costs.

    RANKOPT_DATA=folder python benchmarks/argmax_states.py [data set ...]

Problems as in `argmax.py`. The first table: for w = 0, the middle and the end of a run the share of queries that took
each way, the states of a query (median and most) and microseconds a query, solved as one batch on one thread, the least
of several calls. At w = 0 all scores are equal, which is seen before any state is made. The second table: the same for
each way, over all kinds and all points but w = 0, timed on those queries alone.

States are those of the dynamic program over order ideals, counted here by a search of its own that leaves nothing out:
how many of each gain may have been placed before each position, a head that another dominates in all steps that remain
never being next. One state a position means that sorting is enough.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections import defaultdict
from pathlib import Path
from time import thread_time

import numba as nb
import numpy as np
from argmax import sampled
from argmax_problems import DECAYS, MEASURES, SETS, notation, part, posed, rows, trials

from formulations import solve_batch
from formulations.argmax.layout import Layout
from formulations.parallel import at_most
from formulations.problems.ranking import RankTwoBatch

KINDS = {"linear": DECAYS[:1], "power, log": DECAYS[1:]}
MOST = 1 << 20
"""States at which counting stops."""


@nb.njit
def states(height, worth, start, size, discount, position_weights, low, high, stop):
    """How many states the positions before `stop` have together; arguments as in `best_labels`."""
    chains = worth.size
    unit = np.ones(chains + 1, np.int64)
    for g in range(chains):
        unit[g + 1] = unit[g] * (size[g] + 1)
    one, two = np.empty(chains), np.empty(chains)
    layer, total = {np.int64(0)}, 0
    for p in range(stop):
        total += len(layer)
        if total > MOST:
            break
        dc, da = position_weights[low[p]] - position_weights[low[p] + 1], discount[low[p]] - discount[low[p] + 1]
        ec, ea = position_weights[high[p]] - position_weights[high[p] + 1], discount[high[p]] - discount[high[p] + 1]
        after = {np.int64(0)}
        after.clear()
        for state in layer:
            for g in range(chains):
                placed = state // unit[g] % (size[g] + 1)
                one[g], two[g] = -np.inf, -np.inf
                if placed < size[g]:
                    s = height[start[g] + placed]
                    one[g], two[g] = dc * s - da * worth[g], ec * s - ea * worth[g]
            for g in range(chains):
                free = one[g] > -np.inf
                for h in range(chains):
                    better = one[h] > one[g] or two[h] > two[g] or h < g
                    if h != g and one[h] >= one[g] and two[h] >= two[g] and better:
                        free = False
                if free:
                    after.add(state + unit[g])
        layer = after
    return total


def counted(batch: RankTwoBatch) -> np.ndarray:
    """The states of each query."""
    layout = Layout.from_arrays(batch.gain, batch.discount, batch.position_weights, batch.offsets)
    found = np.empty(len(batch), dtype=np.int64)
    for query in range(len(batch)):
        own = rows(batch, query)
        chains = slice(layout.first_chain[query], layout.first_chain[query + 1])
        start = layout.chain_start[chains] - own.start
        size = np.diff(np.append(start, own.stop - own.start))
        height = batch.scores[own][np.lexsort((-batch.scores[own], batch.gain[own]))]
        stop = int(layout.stop[query])
        found[query] = states(
            height, layout.worth[chains], start, np.minimum(size, stop + 1), batch.discount[own],
            batch.position_weights[own],
            layout.low[own], layout.high[own], stop,
        )  # fmt: skip
    return found


def microseconds(batch: RankTwoBatch) -> float:
    """A query."""
    with at_most(1):
        times: list[float] = []
        while len(times) < 4 or (sum(times) < 0.005 and len(times) < 30):
            began = thread_time()
            solve_batch(batch)
            times.append(thread_time() - began)
    return 1e6 * min(times) / len(batch)


def written(found: list[int]) -> str:
    median, most = int(np.median(found)), max(found)
    return f"{median:,}, {most:,}" if most <= MOST else f"{median:,}, more than {MOST:,}"


def main() -> None:
    warnings.simplefilter("ignore")
    folder, ways = Path(os.environ["RANKOPT_DATA"]), {}
    print("| data | gain | decay | w = 0: states | µs | middle: ways, % | states | µs | end: ways, % | states | µs |")
    print("|" + "---|" * 11)
    for name in sys.argv[1:] or SETS:
        queries = SETS[name](folder)
        table = ways[name] = defaultdict(lambda: ([], []))
        for measure in MEASURES:
            for kind, decays in KINDS.items():
                cells = [([], [], []) for _ in range(3)]
                for decay in decays:
                    said = notation(measure, name)
                    at = trials(queries, said, decay)
                    for cell, w in zip(cells, (at[0], at[2], at[3]), strict=True):
                        batch = posed(sampled(queries, None if w is at[0] else DECAYS.index(decay)), said, decay, w)
                        taken, reached = solve_batch(batch).algorithm, counted(batch)
                        cell[0].extend(taken)
                        cell[1].extend(reached.tolist())
                        cell[2].append(microseconds(batch))
                        for way in set(taken) if w.any() else ():
                            which = np.flatnonzero(taken == way)
                            table[way][0].extend(reached[which].tolist())
                            table[way][1].extend([microseconds(part(batch, np.resize(which, 64)))] * which.size)
                row = [name, measure, kind]
                for point, (taken, reached, times) in enumerate(cells):
                    shares = [(100 * taken.count(way) / len(taken), way) for way in set(taken)]
                    row += [", ".join(f"{way} {share:.0f}" for share, way in sorted(shares, reverse=True))] * (
                        point > 0
                    )
                    row += [written(reached), f"{np.mean(times):.1f}"]
                print(f"| {' | '.join(row)} |", flush=True)
    print("\n| data | way | queries, % | states | µs |\n|---|---|---|---|---|")
    for name, table in ways.items():
        total = sum(len(reached) for reached, _ in table.values())
        for way, (reached, times) in sorted(table.items(), key=lambda entry: -len(entry[1][0])):
            share = 100 * len(reached) / total
            print(f"| {name} | {way} | {share:.1f} | {written(reached)} | {np.mean(times):.1f} |")


if __name__ == "__main__":
    main()
