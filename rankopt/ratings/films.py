"""Synthetic ratings of films, the same in every run: 240 users, 160 films, overlapping genres.

A film has a quality, a fame, one to three of seven genres and three latent traits. A user has a level and tastes for
traits, and sees famous films more often. A rating from 1 to 5 is quality + level + agreement of traits + noise. As in
real data, film means explain much, tastes explain some, and ratings are not missing at random.
"""

from functools import cache
from typing import Literal

import numpy as np

from rankopt.errors import OptionError
from rankopt.ratings.table import Ratings

USERS, FILMS, TRAITS = 240, 160, 3
GENRES = ("Adventure", "Comedy", "Crime", "Drama", "Horror", "Romance", "War")
SEEN = 30  # approximate number of ratings per user


RatingsSampleName = Literal["films"]


def load_ratings_sample(name: RatingsSampleName = "films") -> Ratings:
    """The sample of ratings of this name, the same on every machine. Raises OptionError for an unknown name."""
    if not isinstance(name, str) or name != "films":
        raise OptionError(f"unknown sample of ratings {name!r}; available: 'films'.")
    return films()


@cache
def films() -> Ratings:
    """About 7,000 ratings of users 1 to 240 for films 1 to 160, with the attributes `genre` (tuples) and `title`."""
    random = np.random.default_rng(20260101)
    genres = [tuple(sorted(random.choice(GENRES, n, replace=False).tolist())) for n in random.integers(1, 4, FILMS)]
    traits = np.array([[1.0 if genre in of else 0.0 for genre in GENRES] for of in genres])
    traits = traits @ random.standard_normal((len(GENRES), TRAITS)) + random.standard_normal((FILMS, TRAITS))
    quality, level = random.standard_normal(FILMS) * 0.6, random.standard_normal(USERS) * 0.3
    tastes = random.standard_normal((USERS, TRAITS)) / np.sqrt(TRAITS)
    fame = 0.6 * quality + random.standard_normal(FILMS)
    chances = np.exp(fame - fame.max())
    odds = chances / chances.sum()
    user, film = [], []
    for one, many in enumerate(np.maximum(12, random.geometric(1 / SEEN, USERS)).tolist()):
        seen = random.choice(FILMS, min(many, FILMS // 2), replace=False, p=odds)
        user += [one] * seen.size
        film += seen.tolist()
    u, j = np.array(user), np.array(film)
    liking = (
        3.4 + quality[j] + level[u] + 0.35 * (tastes[u] * traits[j]).sum(axis=1) + 0.7 * random.standard_normal(u.size)
    )
    titles = {f + 1: f"Film {f + 1}" for f in range(FILMS)}
    return Ratings.from_arrays(
        u + 1, j + 1, np.clip(np.rint(liking), 1, 5), users=range(1, USERS + 1), items=range(1, FILMS + 1),
        attributes={"genre": {f + 1: of for f, of in enumerate(genres)}, "title": titles},
    )  # fmt: skip
