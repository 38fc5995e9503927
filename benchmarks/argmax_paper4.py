"""What the argmax of pattern rankings costs beyond its own sorting, by the time of sorting the scores.

    python benchmarks/argmax_paper4.py

For each measure, map and size 8,000,000 / (n log2 n) queries of n documents, n₊ of them relevant, scores normal with a
shift of a half; every kernel on one thread. Sorting is that of all scores of a query by the package's own merge sort,
which also sorts the chains (n₊ and n₋) inside the argmax; `argsort` is NumPy's on the same scores. Each number is the
least processor time of seven rounds by turns. Beyond sorting: the whole answer (orders, slopes, gains, values, bounds)
less the sorting of chains.
"""

import sys
from time import process_time

import numpy as np

from formulations import first_relevant_ranking, pairwise_ranking, relevance_ranking, solve_batch
from formulations.argmax.relevance_layout import RelevanceLayout
from formulations.argmax.relevance_two_grades import sort_range
from formulations.parallel import at_most
from formulations.solvers.exact import ExactArgmax

ROUNDS = 7

MAPS = {
    "pairwise": pairwise_ranking,
    "first-relevant": first_relevant_ranking,
    "positional": lambda *given, **offsets: relevance_ranking(
        *given, position_weights=lambda n: np.arange(1.0, n + 1.0) ** -0.5, **offsets
    ),
}
ASKED = [
    ("AP", "pairwise"), ("AUC", "pairwise"), ("nDCG", "pairwise"), ("RR", "pairwise"), ("nDCG@10", "pairwise"),
    ("P@10", "pairwise"), ("RR", "first-relevant"), ("AP", "first-relevant"), ("AP", "positional"),
    ("RR@10", "positional"),
]  # fmt: skip
GROWTH = ("AP", "AUC", "nDCG", "RR", "nDCG@10")


def queries(n, relevant, count, seed=0):
    random = np.random.default_rng(seed)
    grade = np.zeros((count, n))
    grade[:, :relevant] = 1.0
    grade = random.permuted(grade, axis=1).ravel()
    return random.normal(size=grade.size) + 0.5 * grade, grade, np.arange(count + 1) * n


def least(*asked):
    best = [np.inf] * len(asked)
    for _ in range(ROUNDS):
        for which, ask in enumerate(asked):
            began = process_time()
            ask()
            best[which] = min(best[which], process_time() - began)
    return best


def chains_of(grade, offsets):
    """The batch's layout, and that of the same queries as one chain."""
    stated = (pairwise_ranking(np.zeros(grade.size), part, "AUC", offsets=offsets) for part in (grade, 0.0 * grade))
    return [RelevanceLayout.from_batch(batch) for batch in stated]


def sorting(scores, offsets, layout):
    height, document = np.empty(scores.size), np.empty(scores.size, np.int32)
    rising = np.zeros(layout.chain_grade.size, dtype=bool)
    given = (scores, offsets, layout.members, layout.chain_start, layout.first_chain, rising)
    return lambda: sort_range(*given, 0, offsets.size - 1, height, document)


def measured(n, relevant, asked, budget=8e6):
    count = max(1, int(budget / (n * np.log2(n))))
    scores, grade, offsets = queries(n, relevant, count)
    parted, whole = (sorting(scores, offsets, layout) for layout in chains_of(grade, offsets))
    batches = [MAPS[map_](scores, grade, measure, offsets=offsets) for measure, map_ in asked]
    solver = ExactArgmax(compiled=True)
    ask = [lambda batch=batch: solve_batch(batch, solver, directed_rounding=False) for batch in batches]
    ways = [one().algorithm[0] for one in ask]
    rows = scores.reshape(count, n)
    parts, sort, numpy_sort, *times = least(parted, whole, lambda: np.argsort(rows, axis=1, kind="stable"), *ask)
    return [part / count * 1e6 for part in (parts, sort, numpy_sort)], [time / count * 1e6 for time in times], ways


def main():
    with at_most(1):
        for n in (100, 1000):
            for relevant in (10, 100, 500):
                if relevant >= n:
                    continue
                (parts, sort, numpy_sort), times, ways = measured(n, relevant, ASKED)
                print(f"\nn = {n}, n₊ = {relevant}: sorting {sort:.2f} µs a query, NumPy's argsort {numpy_sort:.2f}\n")
                print("| measure | map | way | whole (µs) | beyond sorting, by sorting | by NumPy's sorting |")
                print("|---" * 6 + "|")
                for (measure, map_), time, way in zip(ASKED, times, ways, strict=True):
                    beyond = time - parts
                    print(
                        f"| {measure} | {map_} | {way} | {time:.2f} | {beyond / sort:.2f} | {beyond / numpy_sort:.2f} |"
                    )
                sys.stdout.flush()
        print("\nGrowth, a tenth relevant, pairwise map: whole time by n log2 n (ns)\n")
        print("| n | sorting | " + " | ".join(GROWTH) + " |\n" + "|---" * (2 + len(GROWTH)) + "|")
        for n in (100, 1000, 10_000, 100_000):
            (_, sort, _), times, _ = measured(n, n // 10, [(measure, "pairwise") for measure in GROWTH])
            unit = n * np.log2(n) / 1e3
            print(f"| {n} | {sort / unit:.2f} | " + " | ".join(f"{time / unit:.2f}" for time in times) + " |")


if __name__ == "__main__":
    main()
