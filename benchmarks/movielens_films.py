"""MovieLens 100k as queries: a user's rated films, features from other ratings, one genre a film as its block."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from rankopt.data import Queries

USERS, FILMS, SHRINK = 943, 1682, 5.0
NAMES = ("film mean", "log ratings", "genre taste", "best genre taste", "neighbours", "year")


def read_lines(file: Path) -> list[str]:
    return gzip.decompress(file.read_bytes()).decode("latin-1").splitlines()


def read_ratings(file: Path) -> np.ndarray:
    """(r, 3) user and film, counted from 0, and the rating."""
    return np.array([line.split("\t")[:3] for line in read_lines(file)], dtype=np.int64) - [1, 1, 0]


def read_films(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """(films, 19) genre flags, and the years (0 where unknown, scaled to about one)."""
    lines = [line.split("|") for line in read_lines(folder / "u.item.gz")]
    flags = np.array([line[-19:] for line in lines], dtype=np.int64)
    years = np.array([int(line[2][-4:]) if line[2] else 1990 for line in lines])
    return flags, (years - 1990) / 20.0


def read_genres(folder: Path) -> list[str]:
    return [line.split("|")[0] for line in (folder / "u.genre").read_text().split("\n") if line]


def blocks(flags: np.ndarray, genres: list[str]) -> np.ndarray:
    """One genre a film: the rarest of those it has."""
    count = flags.sum(axis=0)
    return np.array([genres[min(np.flatnonzero(row), key=lambda g: count[g])] for row in flags], dtype=object)


def labels(flags: np.ndarray, genres: list[str]) -> np.ndarray:
    """All genres of a film, as a tuple."""
    found = np.empty(len(flags), dtype=object)
    found[:] = [tuple(genres[g] for g in np.flatnonzero(row)) for row in flags]
    return found


def queries(known: np.ndarray, asked: np.ndarray, folder: Path, least: int = 10) -> Queries:
    """A query a user with `least` asked ratings or more: grade = rating - 1, features from the known ratings only."""
    (flags, years), genres = read_films(folder), read_genres(folder)
    kept = np.isin(asked[:, 0], np.flatnonzero(np.bincount(asked[:, 0], minlength=USERS) >= least))
    asked = asked[kept]
    asked = asked[np.lexsort((asked[:, 1], asked[:, 0]))]
    return Queries.from_arrays(
        _features(known, asked, flags, years),
        asked[:, 2] - 1.0,
        qid=asked[:, 0],
        attributes={"genre": blocks(flags, genres)[asked[:, 1]], "genres": labels(flags, genres)[asked[:, 1]]},
        feature_names=[*NAMES, *genres],
    )


def _features(known: np.ndarray, asked: np.ndarray, flags: np.ndarray, years: np.ndarray) -> np.ndarray:
    user, film, rating = known.T
    mean = rating.mean()
    films = np.bincount(film, minlength=FILMS)
    height = np.bincount(film, rating - mean, FILMS) / (films + SHRINK)
    users = np.bincount(user, minlength=USERS)
    level = np.bincount(user, rating - mean - height[film], USERS) / (users + SHRINK)
    residual = csr_array((rating - mean - height[film] - level[user], (user, film)), shape=(USERS, FILMS))
    seen = csr_array((np.ones(film.size), (user, film)), shape=(USERS, FILMS))
    taste = (residual @ flags) / (seen @ flags + SHRINK)  # users × genres
    of_film = flags[asked[:, 1]]
    tastes = taste[asked[:, 0]] * of_film
    unit = residual.toarray() / np.maximum(np.linalg.norm(residual.toarray(), axis=0), 1e-9)
    alike = np.maximum(unit.T @ unit, 0.0) ** 2
    np.fill_diagonal(alike, 0.0)
    weight = seen.toarray() @ alike
    near = (residual.toarray() @ alike) / (weight + 0.1)
    columns = [
        height[asked[:, 1]],
        np.log1p(films[asked[:, 1]]) / 5.0,
        tastes.sum(axis=1) / of_film.sum(axis=1),
        tastes.max(axis=1),
        near[asked[:, 0], asked[:, 1]],
        years[asked[:, 1]],
    ]
    return np.column_stack([*columns, of_film.astype(float)])
