"""Collaborative rankers on MovieLens 100k, under weak and strong generalisation, with paired tests.

    RANKOPT_DATA=folder python benchmarks/cofi.py RESULTS.jsonl [--splits 10] [--methods NAME ...] [--strong]
    python benchmarks/cofi.py RESULTS.jsonl --table

One line a fit: protocol, N, split, method, NDCG@10 of the test users (exponential gain, ties averaged) over rated items
and over all items, the strength that was chosen, gaps, seconds. What is in the file is not computed again. All choices
are made inside the training ratings. The tests are paired over splits: Student's t against the regression, Holm over
the methods of a column.
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from collections import defaultdict
from pathlib import Path
from time import process_time

import numpy as np
from scipy import stats

from rankopt.data import read_ratings
from rankopt.evaluation import ItemMean, Popularity, evaluate_ratings, strong_split, weak_split
from rankopt.evaluation.comparison import holm
from rankopt.rankers import CofiRanker

METHODS = {
    "popularity": Popularity,
    "item mean, shrunk by 5": lambda: ItemMean(5.0),
    "item mean by 10, + .1 log(1 + count)": lambda: ItemMean(10.0, 0.1),
    "regression": CofiRanker,
    "ordinal": lambda: CofiRanker("ordinal"),
    "preferences": lambda: CofiRanker("preferences"),
    "ERU(d=3), convex": lambda: CofiRanker("ERU(d=3)"),
    "nDCG@10, convex": lambda: CofiRanker("nDCG@10"),
    "nDCG@10, tie-aware": lambda: CofiRanker("nDCG@10", bound="tie-aware"),
    "nDCG@10, nonconvex": lambda: CofiRanker("nDCG@10", bound="nonconvex"),
    "regression, own popularity": lambda: CofiRanker(popularity=1.0),
    "nDCG, convex": lambda: CofiRanker("nDCG"),
}
SIZES = (10, 20, 50)


def fitted(cut, make):
    """One line of the results."""
    ranker, began = make(), process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ranker.fit(cut.train)
    seconds = process_time() - began
    found = {"rated": evaluate_ratings(cut, model).mean, "all": evaluate_ratings(cut, model, candidates="all").mean}
    if hasattr(model, "certificate_"):
        found |= {"strength": float(model.strength_), "rounds": int(model.n_iter_), "proved": str(model.certificate_)}
    return {**found, "seconds": round(seconds, 2)}


def compute(path, splits, names, strong, sizes):
    ratings = read_ratings(Path(os.environ["RANKOPT_DATA"]) / "ml-100k")
    done = {key(one) for one in read(path)}
    for seed in range(splits):
        for n in sizes:
            cut = (strong_split if strong else weak_split)(ratings, n, seed=seed)
            for name in names:
                line = {"protocol": "strong" if strong else "weak", "n": n, "split": seed, "method": name}
                if key(line) in done:
                    continue
                line |= fitted(cut, METHODS[name])
                with open(path, "a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)


def key(line):
    return line["protocol"], line["n"], line["split"], line["method"]


def read(path):
    return [json.loads(line) for line in Path(path).read_text().splitlines()] if Path(path).exists() else []


def table(lines, candidates):
    """Means ± deviations over splits, and the adjusted p of the difference to the regression."""
    cells = defaultdict(dict)
    for one in lines:
        cells[one["protocol"], one["n"], one["method"]][one["split"]] = one[candidates]
    for protocol in ("weak", "strong"):
        sizes = sorted({n for p, n, _ in cells if p == protocol})
        names = [name for name in METHODS if any((protocol, n, name) in cells for n in sizes)]
        if not names:
            continue
        tests = {n: paired(cells, protocol, n, names) for n in sizes}
        print(f"\n| {protocol}, {candidates} items | {' | '.join(f'N = {n} | p' for n in sizes)} |")
        print("|---" * (1 + 2 * len(sizes)) + "|")
        for name in names:
            row = []
            for n in sizes:
                values = list(cells.get((protocol, n, name), {}).values())
                row.append(f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}" if len(values) > 1 else "")
                row.append(f"{tests[n][name]:.3f}" if name in tests[n] else "")
            print(f"| {name} | {' | '.join(row)} |")


def paired(cells, protocol, n, names):
    """Adjusted p values by name, over the splits that both have."""
    base, found = cells.get((protocol, n, "regression"), {}), {}
    for name in names:
        own = cells.get((protocol, n, name), {})
        both = sorted(set(base) & set(own))
        if name != "regression" and len(both) > 1:
            found[name] = stats.ttest_rel([own[s] for s in both], [base[s] for s in both]).pvalue
    return dict(zip(found, holm(list(found.values())), strict=True)) if found else {}


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("results")
    asked.add_argument("--splits", type=int, default=10)
    asked.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS)[:8])
    asked.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    asked.add_argument("--strong", action="store_true")
    asked.add_argument("--table", action="store_true")
    asked = asked.parse_args()
    if not asked.table:
        compute(asked.results, asked.splits, asked.methods, asked.strong, asked.sizes)
    for candidates in ("rated", "all"):
        table(read(asked.results), candidates)


if __name__ == "__main__":
    main()
