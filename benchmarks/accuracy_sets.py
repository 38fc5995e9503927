"""The data sets on which accuracy is measured and defaults are chosen, and how they are cut.

A split is a pair (train, test) of whole queries. What a learner chooses (a ridge, rounds, leaves) it chooses inside
`train`, by folds of whole queries (`folds`), and learns once more on all of it; nobody sees `test`.

* MQ2008: parts S1 to S3 of LETOR 4.0, two to learn from and the third to test on, three rotations.
* OHSUMED: LETOR 3.0, QueryLevelNorm, five folds; the training and the validation part to learn from.
* MSLR: the 72 queries of the sample, four parts, three to learn from; as they are, and zscore within the query.
* LightGBM: its ranking example, as given.
* Les Miserables, digits: the samples of `rankopt.data.samples`, as given.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rankopt.data import Queries, concatenate, load_sample, read_svmlight
from rankopt.data.normalisation import normalise


@dataclass(frozen=True)
class Split:
    """Queries to learn from and queries to test on."""

    train: Queries
    test: Queries


def sets() -> dict[str, list[Split]]:
    """Every data set, cut; those of the folder RANKOPT_DATA are left out where it is not given."""
    found = {}
    if "RANKOPT_DATA" in os.environ:
        folder = Path(os.environ["RANKOPT_DATA"])
        found["MQ2008"] = rotations([read_svmlight(folder / "letor4-mq2008" / f"S{i}.txt.gz") for i in (1, 2, 3)])
        found["OHSUMED"] = ohsumed(folder / "letor3-ohsumed" / "QueryLevelNorm")
        mslr = mslr_parts(folder / "mslr-web30k-sample")
        found["MSLR"] = rotations(mslr)
        found["MSLR zscore"] = rotations([normalise(part, "zscore") for part in mslr])
        train, test = (
            read_svmlight(folder / "lightgbm-rank" / f"rank.{part}.qid.txt.gz", n_features=300, sparse=False)
            for part in ("train", "test")
        )
        found["LightGBM"] = [Split(train, test)]
    for name, sample in (("Les Miserables", "les-miserables"), ("digits", "digits")):
        loaded = load_sample(sample)
        found[name] = [Split(loaded.train, loaded.test)]
    return found


def rotations(parts: list[Queries]) -> list[Split]:
    """Each part in turn to test on, the others to learn from."""
    return [Split(concatenate(parts[:i] + parts[i + 1 :]), part) for i, part in enumerate(parts)]


def ohsumed(folder: Path) -> list[Split]:
    """The five folds of LETOR 3.0."""
    return [
        Split(
            concatenate([read_svmlight(folder / f"Fold{fold}" / f"{part}.txt.gz") for part in ("train", "vali")]),
            read_svmlight(folder / f"Fold{fold}" / "test.txt.gz"),
        )
        for fold in range(1, 6)
    ]


def mslr_parts(folder: Path, parts: int = 4) -> list[Queries]:
    """The queries of the sample dealt out in turn, in the order of the files."""
    whole = concatenate([read_svmlight(folder / f"{part}.txt.gz") for part in ("train", "vali")])
    return [whole.select(np.arange(part, len(whole), parts)) for part in range(parts)]


def folds(queries: Queries, count: int, seed: int = 0) -> Iterator[Split]:
    """Whole queries dealt into `count` folds at random, each in turn to test on."""
    dealt = np.random.default_rng(seed).permutation(len(queries))
    for fold in range(count):
        out = np.sort(dealt[fold::count])
        yield Split(queries.select(np.setdiff1d(dealt, out)), queries.select(out))


def resampled(split: Split, size: int, seed: int) -> Split:
    """The split with `size` queries drawn without replacement to learn from."""
    drawn = np.random.default_rng([seed, size]).permutation(len(split.train))[:size]
    return Split(split.train.select(np.sort(drawn)), split.test)
