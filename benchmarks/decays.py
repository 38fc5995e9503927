"""Does the decay matter? The spread between decays against 1/√m, m the number of training queries [ORM, Figure 3].

    RANKOPT_DATA=folder python benchmarks/decays.py

MQ2008 and OHSUMED (LETOR 3.0), zscore per query; the sets' queries are cut into thirds, to draw training queries from,
for validation, and for test. For each m, 10 draws of m queries; for each draw and decay λ from .1, .01 by nDCG@10 on
the validation third (`path(position_weights=, lams=)`). Spread: nDCG@10 on test of the best of the decays minus that
of the worst, the mean over draws with its standard error; of the means: the same of the five columns. Between draws:
the standard deviation of one decay over draws. The last line is the least-squares fit of the spread by a + b/√m.
"""

import os
import warnings
from pathlib import Path

import numpy as np

from rankopt.data import concatenate, read_svmlight
from rankopt.data.normalisation import normalise
from rankopt.measures import evaluate
from rankopt.rankers import LargeMarginRanker

DECAYS = ("linear", "power(0.5)", "log", "loglog", "discount")
LAMS, DRAWS = (0.1, 0.01), 10


def thirds(folder):
    mq = concatenate([read_svmlight(folder / "letor4-mq2008" / f"S{i}.txt.gz") for i in (1, 2, 3)])
    fold = folder / "letor3-ohsumed" / "QueryLevelNorm" / "Fold1"
    oh = concatenate([read_svmlight(fold / f"{part}.txt.gz") for part in ("train", "vali", "test")])
    for name, queries in {"MQ2008": mq, "OHSUMED": oh}.items():
        queries = normalise(queries, "zscore")
        part = np.random.default_rng(0).permutation(len(queries)) % 3
        yield name, [queries.select(np.flatnonzero(part == i)) for i in range(3)]


def spread_at(m, train, validation, test):
    """(draws, decays) nDCG@10 on test."""
    found = np.empty((DRAWS, len(DECAYS)))
    for draw in range(DRAWS):
        some = np.random.default_rng([m, draw]).choice(len(train), m, replace=False)
        path = LargeMarginRanker("nDCG@10", w0="regression", engine="serial", time_limit=20).path(
            train.select(np.sort(some)), position_weights=DECAYS, lams=LAMS
        )
        for place, decay in enumerate(DECAYS):
            models = [model for model in path if model.position_weights == decay]
            found[draw, place] = value(max(models, key=lambda model: value(model, validation)), test)
    return found


def value(model, queries):
    return evaluate(queries, model.predict(queries), "nDCG@10").mean()


def main():
    warnings.simplefilter("ignore")
    for name, (train, validation, test) in thirds(Path(os.environ["RANKOPT_DATA"])):
        sizes = [m for m in (8, 16, 32, 64, 128) if m < len(train)]
        print(f"\n### {name}: {len(train)}, {len(validation)}, {len(test)} queries\n")
        print(
            f"| m | {' | '.join(DECAYS)} | spread | of the means | between draws |\n|---|" + "---|" * (len(DECAYS) + 3)
        )
        spreads = []
        for m in sizes:
            found = spread_at(m, train, validation, test)
            apart, means = np.ptp(found, axis=1), found.mean(axis=0)
            spreads.append(apart.mean())
            cells = [*(f"{value:.4f}" for value in means), f"{apart.mean():.4f} ± {apart.std(ddof=1) / DRAWS**0.5:.4f}"]
            cells += [f"{np.ptp(means):.4f}", f"{found.std(axis=0, ddof=1).mean():.4f}"]
            print(f"| {m} | {' | '.join(cells)} |", flush=True)
        b, a = np.polyfit(1.0 / np.sqrt(sizes), spreads, 1)
        print(f"\nspread = {a:.4f} + {b:.4f} / √m, correlation with 1/√m "
              f"{np.corrcoef(1.0 / np.sqrt(sizes), spreads)[0, 1]:.2f}")  # fmt: skip


if __name__ == "__main__":
    main()
