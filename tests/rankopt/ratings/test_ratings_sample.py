"""The sample of ratings is made up, the same in every run, and shaped as real ratings are."""

import numpy as np
import pytest

from rankopt.errors import OptionError
from rankopt.ratings import load_ratings_sample
from rankopt.ratings.films import GENRES


def test_it_is_the_same_in_every_run_and_shaped_as_ratings_are():
    films = load_ratings_sample("films")
    assert films == load_ratings_sample()
    assert (films.n_users, films.n_items) == (240, 160)
    assert set(np.unique(films.values)) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert np.diff(films.bounds).min() >= 12
    genres = films.attributes["genre"].tolist()
    assert {label for of in genres for label in of} == set(GENRES)
    assert {len(of) for of in genres} == {1, 2, 3}
    means = np.bincount(films.columns, films.values, 160) / films.counts
    assert np.corrcoef(np.log(films.counts), means)[0, 1] > 0.3  # what is rated is no random choice


def test_another_name_is_refused():
    with pytest.raises(OptionError, match="available: 'films'"):
        load_ratings_sample("books")
