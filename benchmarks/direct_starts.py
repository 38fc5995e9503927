"""How far apart ascents on the measure end that begin at 100 random places [paper 3, section 3.3].

    RANKOPT_DATA=folder python benchmarks/direct_starts.py RESULTS.jsonl [--sets MQ2008 OHSUMED] [--starts 100]
    python benchmarks/direct_starts.py RESULTS.jsonl --table [--picture FILE.png]

A start is a vector of normal numbers, each in units of one deviation of its feature inside queries; `DirectRanker` does
the rest, as it comes. Splits are those of `accuracy_sets.py`, start i the same in every split.

nDCG@10, queries without relevant documents count 0. "over starts" is the mean over the splits for each start, its mean
and deviation over the starts; "in a split" the root mean square of the deviations inside splits; r is the correlation
of training and test measure over the starts of a split, the mean over splits. "begun at" is the measure of the starts
themselves; one row is the ranker that takes the mean of all ends, each at scores of deviation 1.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
from accuracy_sets import Split, sets
from direct import MEASURE, RANKERS, reached

from formulations.parallel import at_most
from rankopt.optimize import LineSearch
from rankopt.rankers import DirectRanker

DRAWN = "window"
"""What the rows of random starts are called: where the ranker stands on a line."""
KNOWN = ("ridge", "large margin", "direct, smooth")
"""Rankers without a draw, beside which the spread is seen."""


def run(file: Path, names: list[str], starts: int) -> None:
    known = {(row["set"], row["split"], row["point"]) for row in rows_of(file)}
    found = sets()
    for name in names:
        for place, split in enumerate(found[name]):
            for point in (DRAWN, *KNOWN):
                if (name, place, point) not in known:
                    row = {"set": name, "split": place, "point": point}
                    with at_most(1), open(file, "a") as opened:
                        ends = followed(split, starts) if point == DRAWN else learned(split, point)
                        opened.write(json.dumps(row | ends) + "\n")


def followed(split: Split, starts: int) -> dict:
    search = LineSearch.from_measure(MEASURE, split.train, engine="serial")
    units = np.where(search.deviations > 0, search.deviations, 1.0)
    found, together = defaultdict(list), np.zeros(search.features)
    for number in range(starts):
        start = np.random.default_rng(number).normal(size=search.features) / units
        ranker = DirectRanker(MEASURE, init=start, engine="serial").fit(split.train)
        together += ranker.coef_ / (search.deviation(ranker.coef_) or 1.0)
        for when, w in (("begun", start), ("ended", ranker.coef_)):
            found[f"{when} train"].append(reached(split.train, w))
            found[f"{when} test"].append(reached(split.test, w))
    return dict(found) | {"mean": [reached(split.train, together), reached(split.test, together)]}


def learned(split: Split, label: str) -> dict:
    w = RANKERS[label](0).fit(split.train).coef_
    return {"mean": [reached(split.train, w), reached(split.test, w)]}


def rows_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def gathered(file: Path) -> dict[tuple[str, str], dict[str, np.ndarray]]:
    """By set and point: (splits, starts) of what each start began and ended at."""
    found = defaultdict(lambda: defaultdict(list))
    for row in rows_of(file):
        for key, one in row.items():
            if isinstance(one, list):
                found[row["set"], row["point"]][key].append(one)
    return {key: {what: np.array(parts) for what, parts in one.items()} for key, one in found.items()}


def table(file: Path) -> None:
    found = gathered(file)
    print("| | train, over starts | in a split | test, over starts | in a split | r |")
    print("|---" * 6 + "|")
    for (name, point), one in found.items():
        label = "mean of the ends" if point == DRAWN else point
        if point == DRAWN:
            for when in ("begun", "ended"):
                train, test = one[f"{when} train"], one[f"{when} test"]
                r = np.mean([np.corrcoef(*pair)[0, 1] for pair in zip(train, test, strict=True)])
                print(f"| {name}, {when} at | {spread(train)} | {spread(test)} | {r:+.2f} |")
        train, test = one["mean"].mean(axis=0)
        print(f"| {name}, {label} | {train:.4f} | | {test:.4f} | | |")


def spread(values: np.ndarray) -> str:
    """Of (splits, starts)."""
    inside = np.sqrt(values.var(axis=1, ddof=1).mean())
    return f"{values.mean():.4f} ± {values.mean(axis=0).std(ddof=1):.4f} | {inside:.4f}"


def picture(file: Path, to: Path) -> None:
    """Training and test measure of every start, the mean over splits."""
    import matplotlib.pyplot as plt

    found = gathered(file)
    names = list(dict.fromkeys(name for name, _ in found))
    figure, panels = plt.subplots(1, len(names), figsize=(4.5 * len(names), 3.6), layout="constrained", squeeze=False)
    for axes, name in zip(panels[0], names, strict=True):
        drawn = found[name, DRAWN]
        train, test = drawn["ended train"].mean(axis=0), drawn["ended test"].mean(axis=0)
        axes.plot(train, test, ".", color="C0", alpha=0.6, label="from a random start")
        axes.plot(*drawn["mean"].mean(axis=0), "D", color="C0", markeredgecolor="black", label="mean of those ends")
        for marker, label in zip("^sP", KNOWN, strict=True):
            if (name, label) in found:
                axes.plot(*found[name, label]["mean"].mean(axis=0), marker, color="black", linestyle="", label=label)
        axes.locator_params(axis="x", nbins=5)
        axes.set(title=name, xlabel=f"{MEASURE}, training", ylabel=f"{MEASURE}, test")
    panels[0, 0].legend(frameon=False, fontsize="small")
    figure.savefig(to, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--sets", nargs="+", default=["MQ2008", "OHSUMED"])
    parser.add_argument("--starts", type=int, default=100)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.table:
        run(given.results, given.sets, given.starts)
    table(given.results)
    if given.picture is not None:
        picture(given.results, given.picture)
