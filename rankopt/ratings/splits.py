"""Train-test splits of ratings for known users (weak generalization) and new users (strong generalization).

* weak generalization: n ratings of every user are for training, all others for the test
* strong generalization: items with few ratings are removed, and the users with the most ratings are new. All ratings
  of the other users are for training; n ratings of each new user are known at prediction, the others for the test

Source: Weimer, Karatzoglou, Le and Smola 2007, section 6 (n = 10, 20, 50; 100 new users, items of 50 ratings or more).
That users of weak generalization have at least n + 10 ratings is later practice, not in the paper.
"""

import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.arrays import Bools, generator, to_integer
from formulations.display import CompactReprMixin
from rankopt.errors import DataError, OptionError
from rankopt.ratings.ids import check_spelling
from rankopt.ratings.table import Ratings

TESTED = 10  # minimum number of test ratings per user


@dataclass(frozen=True, repr=False)
class Split(CompactReprMixin):
    """Ratings for training and for the test, over the same users and items.

    * `known`: for strong generalization, the known ratings of the new users; else None
    * `protocol`: description of the split
    """

    train: Ratings
    test: Ratings
    protocol: str
    known: Ratings | None = None

    @property
    def seen(self) -> Ratings:
        """Known ratings of the tested users: `train` for weak generalization, else `known`."""
        return self.train if self.known is None else self.known

    def __str__(self) -> str:
        known = "" if self.known is None else f", {self.known.n_ratings} known"
        return f"Split({self.protocol}: {self.train.n_ratings} ratings train{known}, {self.test.n_ratings} test)"


def weak_split(ratings: Ratings | Any, n: int = 10, seed: int = 0) -> Split:
    """Split off n random ratings of every user for training, the others for the test.

    Users with fewer than n + 10 ratings are removed. ratings: `Ratings`, or a data frame of user, item and rating.
    Raises DataError if no user is left.
    """
    ratings = as_ratings(ratings, "weak_split")
    n, seed = _integers(n=n, seed=seed)
    sizes = np.diff(ratings.bounds)
    chosen = sizes >= n + TESTED
    if not chosen.any():
        raise DataError(
            f"no user has {n + TESTED} ratings ({n} to train, {TESTED} or more to test), the most is "
            f"{sizes.max(initial=0)}; lower n."
        )
    first = _draw_mask(ratings, n, generator("seed", seed))
    inside = np.repeat(chosen, sizes)
    return Split(
        ratings.select(first & inside),
        ratings.select(~first & inside),
        f"weak generalization, n = {n}, {number_of_users(int(chosen.sum()))}, seed {seed}",
    )


def leave_out_split(ratings: Ratings | Any, n: int = 1, seed: int = 0) -> Split:
    """Split off n random ratings of every user for the test, all others for training.

    Users with n ratings or fewer are not tested; their ratings are for training. ratings: as in `weak_split`. Raises
    DataError if no user is tested.
    """
    ratings = as_ratings(ratings, "leave_out_split")
    n, seed = _integers(n=n, seed=seed)
    sizes = np.diff(ratings.bounds)
    tested = sizes > n
    if not tested.any():
        raise DataError(
            f"no user has more than {n} ratings ({n} to test, the others to train), the most is "
            f"{sizes.max(initial=0)}; lower n."
        )
    test = _draw_mask(ratings, n, generator("seed", seed)) & np.repeat(tested, sizes)
    return Split(
        ratings.select(~test),
        ratings.select(test),
        f"{n} ratings of each user left out, {number_of_users(int(tested.sum()))}, seed {seed}",
    )


def strong_split(ratings: Ratings | Any, n: int = 10, users: int = 100, least: int = 50, seed: int = 0) -> Split:
    """Split users: the `users` with the most ratings are new, all others are for training.

    Items with fewer than `least` ratings are removed first, and users left without ratings. Ties between users are
    broken by id. n random ratings of each new user are known, the others are for the test. ratings: as in `weak_split`.
    Raises DataError if fewer than `users` users have more than n ratings.
    """
    ratings = as_ratings(ratings, "strong_split")
    n, seed, users, least = _integers(n=n, seed=seed, users=users, least=least)
    left = ratings.select(ratings.counts[ratings.columns] >= least, drop=True)
    sizes = np.diff(left.bounds)
    order = np.argsort(-sizes, kind="stable")[:users]
    if users >= left.n_users or sizes[order[-1]] <= n:
        raise DataError(
            f"{users} new users with more than n = {n} ratings, and others to learn from, do not exist among the "
            f"{left.n_users} users with ratings of the {left.n_items} items of {least} ratings or more; lower users, n "
            "or least."
        )
    new = np.zeros(left.n_users, dtype=bool)
    new[order] = True
    first, inside = _draw_mask(left, n, generator("seed", seed)), np.repeat(new, sizes)
    return Split(
        left.select(~inside),
        left.select(~first & inside),
        f"strong generalization, n = {n}, the {number_of_users(users)} with the most ratings new, items of {least} "
        f"ratings or more, seed {seed}",
        left.select(first & inside),
    )


def given_split(train: Ratings | Any, test: Ratings | Any) -> Split:
    """Build a split from given training and test ratings, over the users and items of both.

    Attributes are merged; those of `train` take precedence. The protocol states how many test users are unknown. Raises
    DataError for a pair in both, for ids that are numbers in one and text in the other, and if no test item or no test
    user is known. Warns if most test users are unknown.
    """
    train, test = as_ratings(train, "given_split"), as_ratings(test, "given_split")
    users_known, items_known = train.user_index(test.users), train.item_index(test.items)
    check_spelling(train.users, test.users, users_known, "of the test, user")
    check_spelling(train.items, test.items, items_known, "of the test, item")
    tested = np.diff(test.bounds) > 0
    strangers = int((tested & (users_known < 0)).sum())
    if test.n_ratings and (items_known < 0)[test.columns].all():
        raise DataError(
            f"no item of the test is one of training ({test.items.item(int(test.columns[0]))!r} is not): nothing can "
            "be evaluated; pass files of one catalog"
        )
    if strangers and strangers == tested.sum():
        one, own = test.users.item(int(tested.argmax())), train.users.item(0)
        raise DataError(
            f"no user of the test is one of training (the test has {one!r}, training {own!r}): only offsets of items "
            "could be evaluated; write the ids of both alike, or use strong_split(ratings) for new users"
        )
    if 2 * strangers > tested.sum():
        message = f"{strangers} of {tested.sum()} users of the test are not in training; check that their ids agree"
        warnings.warn(message, UserWarning, stacklevel=2)
    users = list(dict.fromkeys([*train.users.tolist(), *test.users.tolist()]))
    items = list(dict.fromkeys([*train.items.tolist(), *test.items.tolist()]))
    first, second = (
        Ratings.from_arrays(one.users[one.user_of()], one.items[one.columns], one.values, users=users, items=items)
        for one in (train, test)
    )
    both = first.to_csr()
    both.data = np.ones(first.n_ratings)
    other = second.to_csr()
    other.data = np.ones(second.n_ratings)
    shared = both.multiply(other).tocoo()
    if shared.nnz:
        user, item = first.users.item(shared.row[0]), first.items.item(shared.col[0])
        raise DataError(f"user {user!r} rates item {item!r} in training and in the test; remove one of the two.")
    known = _attributes(train, test)
    first, second = (one.with_attributes(known) if known else one for one in (first, second))
    unknown = f", {strangers} of them not known" if strangers else ""
    return Split(first, second, f"given files, {number_of_users(int(tested.sum()))} with test ratings{unknown}")


def number_of_users(count: int) -> str:
    """1 user, 2 users."""
    return f"{count} user{'' if count == 1 else 's'}"


def as_ratings(ratings: Any, caller: str) -> Ratings:
    """`Ratings` as they are, those of a data frame, or DataError."""
    if isinstance(ratings, Ratings):
        return ratings
    if hasattr(ratings, "columns"):
        return Ratings.from_frame(ratings)
    raise DataError(
        f"{caller} cannot read a {type(ratings).__name__}; pass Ratings, as "
        "Ratings.from_arrays(user, item, rating) returns, or a data frame with these columns"
    )


def _attributes(train: Ratings, test: Ratings) -> dict[str, dict[Hashable, Any]]:
    """Merged attributes of the items of both."""
    known: dict[str, dict[Hashable, Any]] = {}
    for one in (test, train):
        for name, values in one.attributes.items():
            own = known.setdefault(name, {})
            own.update((item, value) for item, value in zip(one.items.tolist(), values.tolist(), strict=True)
                       if value is not None or item not in own)  # fmt: skip
    return known


def _draw_mask(ratings: Ratings, n: int, random: np.random.Generator) -> Bools:
    """(n_ratings,) mask of n random ratings of each user."""
    order = np.lexsort((random.random(ratings.n_ratings), ratings.user_of()))
    rank = np.arange(ratings.n_ratings) - np.repeat(ratings.bounds[:-1], np.diff(ratings.bounds))
    chosen = np.zeros(ratings.n_ratings, dtype=bool)
    chosen[order[rank < n]] = True
    return chosen


def _integers(**numbers: int) -> list[int]:
    for name, value in numbers.items():
        if (number := to_integer(value)) is None or number < (name != "seed"):
            raise OptionError(f"{name} cannot be {value!r}; it must be an integer from {int(name != 'seed')}.")
    return [int(value) for value in numbers.values()]
