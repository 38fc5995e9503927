"""Collaborative rankers on MovieLens 100k beside what they must beat, under each protocol.

    RANKOPT_DATA=folder python benchmarks/cofi.py baselines [--splits 10]
    RANKOPT_DATA=folder python benchmarks/cofi.py rankers rows.jsonl [--splits 10] [--losses regression nDCG@10 ...]
    python benchmarks/cofi.py table rows.jsonl

NDCG@10, exponential gain, ties averaged; the mean over splits of the mean over users, and the standard deviation over
splits. Weak generalisation trains on N ratings of every user with N + 10 or more, strong on all users but the 100 with
the most ratings, of whom N ratings are known (which means cannot use); see `rankopt.evaluation`. `rankers` goes on with
a file of rows; all choices are made inside the training ratings. A loss may carry a bound, factors, the ρ at which
users are folded in (those that are new in strong generalisation, in weak all, once more and by the same ratings) and
that of the training: "nDCG@10/nonconvex", "regression//100", "regression///0.15", "nDCG@10///0.25/0.85". p is of a
paired t-test over the splits against the regression.
"""

import argparse
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np

from rankopt.ratings import (
    ItemMeanBaseline,
    PopularityBaseline,
    evaluate_ratings,
    read_ratings,
    strong_split,
    weak_split,
)

BASELINES = {
    "item mean, shrunk by 5": ItemMeanBaseline(5.0),
    "by 10, + .1 log(1 + count)": ItemMeanBaseline(10.0, 0.1),
    "popularity": PopularityBaseline(),
}
SPLITS = {"weak": weak_split, "strong": strong_split}
CANDIDATES = ("rated", "all")
KNOWN = (10, 20, 50)
LOSSES = ("regression", "ordinal", "preferences", "ERU(d=3)", "nDCG@10", "nDCG@10/tie-aware", "nDCG@10/nonconvex")


def ratings_at_hand():
    return read_ratings(Path(os.environ["RANKOPT_DATA"]) / "ml-100k")


def baselines(splits):
    """Rows of all baselines."""
    ratings = ratings_at_hand()
    for protocol, split_of in SPLITS.items():
        for n in KNOWN:
            for seed in range(splits):
                split = split_of(ratings, n, seed=seed)
                for name, one in BASELINES.items():
                    yield of(split, one.fit(split.train), name, protocol, n, seed)


def of(split, model, name, protocol, n, seed, **more):
    """A row: what one fitted ranker reaches on a split, among rated items and among all."""
    values = {one: evaluate_ratings(split, model, candidates=one).mean for one in CANDIDATES}
    return {"ranker": name, "protocol": protocol, "n": n, "seed": seed, **values, **more}


def rankers(file, losses, seeds, protocols, known):
    """Rows of rankers that the file lacks, written to it one by one."""
    from rankopt.rankers import CofiRanker

    path = Path(file)
    done = {tuple(json.loads(line)[key] for key in ("ranker", "protocol", "n", "seed")) for line in lines(path)}
    ratings = ratings_at_hand()
    for seed in seeds:
        for protocol in protocols:
            for n in known:
                split = SPLITS[protocol](ratings, n, seed=seed)
                for spec in losses:
                    if (spec, protocol, n, seed) in done:
                        continue
                    loss, bound, factors, fold, strength = [*spec.split("/"), "", "", "", ""][:5]
                    ranker = CofiRanker(
                        loss, bound=bound or "convex", factors=int(factors or 15),
                        reg=float(strength) if strength else "auto",
                    )  # fmt: skip
                    began = time.process_time()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # how it ended is in the row
                        ranker.fit(split.train)
                    seconds, proved = time.process_time() - began, ranker.certificate_
                    model = ranker
                    if fold:
                        given = split.train if split.known is None else split.known
                        model = ranker.fold_in(given, strength=float(fold))
                    row = of(
                        split, model, spec, protocol, n, seed, seconds=seconds, strength=ranker.reg_,
                        users_gap=proved.users_gap, items_gap=proved.items_gap, gap=proved.relative_gap,
                        stop=str(proved.stop.value),
                    )  # fmt: skip
                    with path.open("a", encoding="utf-8") as out:
                        out.write(json.dumps(row) + "\n")


def lines(path):
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def show(rows):
    """Tables of all rows, one a protocol and kind of candidates."""
    from scipy.stats import ttest_rel

    for protocol in SPLITS:
        for candidates in CANDIDATES:
            here = [row for row in rows if row["protocol"] == protocol]
            names = list(dict.fromkeys(row["ranker"] for row in here))
            if not names:
                continue
            print(f"\n| {protocol}, {candidates} items | N = 10 | 20 | 50 |\n|---|---|---|---|")
            for name in names:
                cells = []
                for n in KNOWN:
                    own = {r["seed"]: r[candidates] for r in here if r["ranker"] == name and r["n"] == n}
                    first = {r["seed"]: r[candidates] for r in here if r["ranker"] == "regression" and r["n"] == n}
                    values = np.array(list(own.values()))
                    cell = f"{values.mean():.4f} ± {values.std(ddof=1):.4f}" if values.size > 1 else "-"
                    both = sorted(own.keys() & first.keys())
                    if name != "regression" and len(both) > 2:
                        p = ttest_rel([own[s] for s in both], [first[s] for s in both]).pvalue
                        cell += f" (p = {p:.2g})"
                    cells.append(cell)
                print(f"| {name} | {' | '.join(cells)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", choices=("baselines", "rankers", "table"))
    parser.add_argument("rows", nargs="?", help="a file of rows, for rankers and table")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first split of rankers")
    parser.add_argument("--losses", nargs="+", default=LOSSES)
    parser.add_argument("--protocols", nargs="+", choices=[*SPLITS], default=[*SPLITS])
    parser.add_argument("--n", nargs="+", type=int, default=KNOWN)
    given = parser.parse_args()
    if given.mode == "baselines":
        show(list(baselines(given.splits)))
        return
    if given.rows is None:
        parser.error("name the file of rows")
    if given.mode == "rankers":
        seeds = range(given.first, given.first + given.splits)
        rankers(given.rows, given.losses, seeds, given.protocols, given.n)
    show([json.loads(line) for line in lines(Path(given.rows))])


if __name__ == "__main__":
    main()
