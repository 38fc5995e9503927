"""Data sets of the suites and how they are split; those of the folder RANKOPT_DATA are not part of the repository.

* MQ2008: parts S1 to S3 of LETOR 4.0; three rotations, two parts to train and the third to test.
* OHSUMED: LETOR 3.0, QueryLevelNorm, five folds; training and validation parts to train.
* MSLR: the 72 queries of the sample in four parts, three to train; raw, and zscore within the query.
* LightGBM: its ranking example. Les Miserables, digits: the bundled samples.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from benchmarks.cases import Run
from rankopt.data import Queries, concatenate, load_sample, read_svmlight
from rankopt.data.normalization import normalize


@dataclass(frozen=True)
class Split:
    """Queries to train on and queries to test on; choices are made by `folds` of the training queries."""

    train: Queries
    test: Queries


def data_folder() -> Path:
    return Path(os.environ["RANKOPT_DATA"])


def letor(folder: str, parts: Sequence[int] = (1, 2, 3)) -> list[Queries]:
    return [read_svmlight(data_folder() / folder / f"S{i}.txt.gz") for i in parts]


mq2008 = partial(letor, "letor4-mq2008")


def ohsumed_fold(fold: int, *parts: str) -> list[Queries]:
    """Parts ("train", "vali", "test") of a fold of OHSUMED (LETOR 3.0)."""
    home = data_folder() / "letor3-ohsumed" / "QueryLevelNorm" / f"Fold{fold}"
    return [read_svmlight(home / f"{part}.txt.gz") for part in parts]


def rotations(parts: list[Queries]) -> list[Split]:
    return [Split(concatenate(parts[:i] + parts[i + 1 :]), part) for i, part in enumerate(parts)]


def mslr(method: str | None = None) -> list[Split]:
    home = data_folder() / "mslr-web30k-sample"
    whole = concatenate([read_svmlight(home / f"{part}.txt.gz") for part in ("train", "vali")])
    parts = [whole.select(np.arange(part, len(whole), 4)) for part in range(4)]
    return rotations([normalize(part, method) for part in parts] if method else parts)


def lightgbm_example() -> list[Split]:
    files = (data_folder() / "lightgbm-rank" / f"rank.{part}.qid.txt.gz" for part in ("train", "test"))
    return [Split(*(read_svmlight(file, n_features=300, sparse=False) for file in files))]


def sample(name: str) -> list[Split]:
    loaded = load_sample(name)
    return [Split(loaded.train, loaded.test)]


def ohsumed() -> list[Split]:
    folds = [ohsumed_fold(fold, "train", "vali", "test") for fold in range(1, 6)]
    return [Split(concatenate([train, vali]), test) for train, vali, test in folds]


SETS = {
    "MQ2008": lambda: rotations(mq2008()),
    "OHSUMED": ohsumed,
    "MSLR": mslr,
    "MSLR zscore": partial(mslr, "zscore"),
    "LightGBM": lightgbm_example,
    "Les Miserables": partial(sample, "les-miserables"),
    "digits": partial(sample, "digits"),
}
BUNDLED = ("Les Miserables", "digits")


@cache
def splits(name: str) -> list[Split]:
    return [generated(int(name.split()[1].replace(",", "")))] if name.startswith("generated") else SETS[name]()


def generated(rows: int) -> Split:
    """So many rows to train on and 500 test queries, all of 60 documents.

    40 features, ten log-normal; products, |x|, thresholds, noise of deviation 1. None of these sets was used to choose
    a default."""
    queries, test = rows // 60, 500
    random = np.random.default_rng([rows, 1])
    X = random.normal(size=(queries + test, 60, 40)) + random.normal(size=(queries + test, 1, 40)) / 2
    X[..., 30:] = np.exp(X[..., 30:])
    x = np.moveaxis(X, 2, 0)
    worth = 0.4 * (x[0] - x[1] + x[2]) + x[4] * x[5] + x[6] * x[7] + np.abs(x[8]) + (x[9] > 0.5) + (x[10] > x[11])
    worth += 0.5 * np.log1p(x[30]) - 0.4 * np.log1p(x[31]) * (x[12] > 0) + random.normal(size=worth.shape)
    grades = np.digitize(worth, np.quantile(worth, [0.6, 0.8, 0.92, 0.98]))
    every = Queries.from_arrays(X.reshape(-1, 40), grades.ravel(), group=[60] * (queries + test))
    return Split(every.select(np.arange(queries)), every.select(np.arange(queries, queries + test)))


def set_names(run: Run, names: Sequence[str] = tuple(SETS)) -> list[str]:
    """Sets of a run: those of `--sets`, one bundled sample with `--quick`, the bundled ones without data."""
    if run.quick and not run.sets:
        return list(BUNDLED[:1])
    return [name for name in run.chosen(names) if name in BUNDLED or "RANKOPT_DATA" in os.environ]


def folds(queries: Queries, count: int, seed: int = 0) -> Iterator[Split]:
    """Whole queries dealt into `count` folds at random, each in turn to test on."""
    dealt = np.random.default_rng(seed).permutation(len(queries))
    for fold in range(count):
        out = np.sort(dealt[fold::count])
        yield Split(queries.select(np.setdiff1d(dealt, out)), queries.select(out))


def resampled(split: Split, size: int, seed: int) -> Split:
    """The split with `size` training queries drawn without replacement."""
    drawn = np.random.default_rng([seed, size]).permutation(len(split.train))[:size]
    return Split(split.train.select(np.sort(drawn)), split.test)


def validation_folds(name: str) -> list[tuple[Queries, Queries, Queries]]:
    """(train, validation, test): MQ2008 by single parts, zscore; OHSUMED as given; Les Miserables by thirds."""
    if name == "MQ2008":
        parts = [normalize(part, "zscore") for part in mq2008()]
        return [(parts[f], parts[(f + 1) % 3], parts[(f + 2) % 3]) for f in range(3)]
    if name == "OHSUMED":
        return [tuple(ohsumed_fold(fold, "train", "vali", "test")) for fold in range(1, 6)]
    (split,) = splits(name)
    last = np.arange(len(split.train)) % 3 == 2
    return [(split.train.select(np.flatnonzero(~last)), split.train.select(np.flatnonzero(last)), split.test)]


def mslr_like(queries: int, documents: int = 120, features: int = 136, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features and grades 0 to 4 of the shape of MSLR-WEB30K, which a linear score explains in part."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((queries * documents, features))
    latent = X @ (random.standard_normal(features) / np.sqrt(features)) + 0.8 * random.standard_normal(len(X))
    return X, np.digitize(latent, [0.6, 1.2, 1.8, 2.4]).astype(float)


# MovieLens 100k as queries: the films that a user rated, features from other ratings.

USERS, FILMS, SHRINK = 943, 1682, 5.0


def read_lines(file: Path) -> list[str]:
    return gzip.decompress(file.read_bytes()).decode("latin-1").splitlines()


def film_ratings(file: Path) -> np.ndarray:
    """(r, 3): user and film, counted from 0, and the rating."""
    return np.array([line.split("\t")[:3] for line in read_lines(file)], dtype=np.int64) - [1, 1, 0]


def film_genres() -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Genre flags (films, 19), years in units of 20 from 1990, names of the genres."""
    folder = data_folder() / "ml-100k"
    lines = [line.split("|") for line in read_lines(folder / "u.item.gz")]
    flags = np.array([line[-19:] for line in lines], dtype=np.int64)
    years = np.array([int(line[2][-4:]) if line[2] else 1990 for line in lines])
    names = [line.split("|")[0] for line in (folder / "u.genre").read_text().split("\n") if line]
    return flags, (years - 1990) / 20.0, names


def film_queries(known: np.ndarray, ranked: np.ndarray, least: int = 10) -> Queries:
    """A query for each user with `least` ratings: grade = rating - 1; "genre" is the rarest genre, "genres" all."""
    flags, years, names = film_genres()
    ranked = ranked[np.isin(ranked[:, 0], np.flatnonzero(np.bincount(ranked[:, 0], minlength=USERS) >= least))]
    ranked = ranked[np.lexsort((ranked[:, 1], ranked[:, 0]))]
    count, every = flags.sum(axis=0), np.empty(len(flags), dtype=object)
    every[:] = [tuple(names[g] for g in np.flatnonzero(row)) for row in flags]
    rarest = np.array([names[min(np.flatnonzero(row), key=lambda g: count[g])] for row in flags], dtype=object)
    return Queries.from_arrays(
        _film_features(known, ranked, flags, years), ranked[:, 2] - 1.0, qid=ranked[:, 0],
        attributes={"genre": rarest[ranked[:, 1]], "genres": every[ranked[:, 1]]},
    )  # fmt: skip


def _film_features(known: np.ndarray, ranked: np.ndarray, flags: np.ndarray, years: np.ndarray) -> np.ndarray:
    """Mean of the film, its count, tastes of the user for its genres, neighbors, year, genres."""
    user, film, rating = known.T
    films, mean = np.bincount(film, minlength=FILMS), rating.mean()
    height = np.bincount(film, rating - mean, FILMS) / (films + SHRINK)
    users = np.bincount(user, minlength=USERS)
    level = np.bincount(user, rating - mean - height[film], USERS) / (users + SHRINK)
    residual = csr_array((rating - mean - height[film] - level[user], (user, film)), shape=(USERS, FILMS))
    seen = csr_array((np.ones(film.size), (user, film)), shape=(USERS, FILMS))
    own, dense = flags[ranked[:, 1]], residual.toarray()
    tastes = ((residual @ flags) / (seen @ flags + SHRINK))[ranked[:, 0]] * own
    unit = dense / np.maximum(np.linalg.norm(dense, axis=0), 1e-9)
    alike = np.maximum(unit.T @ unit, 0.0) ** 2
    np.fill_diagonal(alike, 0.0)
    near = (dense @ alike) / (seen.toarray() @ alike + 0.1)
    columns = [
        height[ranked[:, 1]], np.log1p(films[ranked[:, 1]]) / 5.0, tastes.sum(axis=1) / own.sum(axis=1),
        tastes.max(axis=1), near[ranked[:, 0], ranked[:, 1]], years[ranked[:, 1]],
    ]  # fmt: skip
    return np.column_stack([*columns, own.astype(float)])


def movielens(folds: Sequence[int] = (1, 2, 3, 4, 5)) -> Iterator[tuple[Queries, Queries]]:
    """(train, test) of folds u1 to u5: half of the training ratings make features, the other half grades."""
    for fold in folds:
        base, test = (film_ratings(data_folder() / "ml-100k" / f"u{fold}.{part}.gz") for part in ("base", "test"))
        half = np.random.default_rng(fold).random(len(base)) < 0.5
        yield film_queries(base[half], base[~half]), film_queries(base, test)


def experts(folds: Sequence[int] = (1, 2, 3, 4, 5, 6)) -> Iterator[tuple[Queries, Queries]]:
    """(train, test) of TREC W3C experts; the attribute "protected" is gender."""
    for fold in folds:
        home = data_folder() / "deltr-w3c-experts" / f"fold_{fold}"
        yield protected_queries(home / "train.csv.gz"), protected_queries(home / "test.csv.gz")


def students(folds: Sequence[int] = (1, 2, 3, 4, 5)) -> Iterator[tuple[Queries, Queries]]:
    """(train, test) of Chilean engineering students, one query per year; the attribute "protected" is the school."""
    for fold in folds:
        home = data_folder() / "deltr-engineering" / "highschool"
        yield protected_queries(home / f"fold{fold}_train.csv.gz"), protected_queries(home / f"fold{fold}_test.csv.gz")


def protected_queries(file: Path) -> Queries:
    """Rows of query, protected, features, judgment (moved to begin at 0)."""
    rows = np.array([line.split(",") for line in read_lines(file)], dtype=float)
    relevance, attributes = rows[:, -1] - min(0.0, rows[:, -1].min()), {"protected": rows[:, 1] == 1.0}
    return Queries.from_arrays(rows[:, 2:-1], relevance, qid=rows[:, 0].astype(int), attributes=attributes)
