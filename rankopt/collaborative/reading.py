"""What a caller may pass as ratings, read into one `Ratings` with a weight each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from formulations.arrays import Floats, Ints, check_no_mask
from rankopt.data.validation import in_order_of, plain_name
from rankopt.errors import DataError
from rankopt.ratings.ids import ITEM, RATING, USER, check_present, check_spelling
from rankopt.ratings.table import Ratings

LARGEST = 1e100  # ratings and weights up to which sums of their squares and products are finite


def pairs_of(X: Any) -> tuple[Any, Any]:
    """Users and items (n,), of n rows (user, item): an (n, 2) array, a data frame with the usual names of columns, or
    of two columns without such names, or a sequence of pairs. DataError for anything else."""
    if hasattr(X, "columns") and hasattr(X, "shape"):
        user, item = _named_pair(list(X.columns))
        return X[user], X[item]
    check_no_mask("pairs", X, DataError)
    table = X if isinstance(X, np.ndarray) else None
    if table is None:
        plain = hasattr(X, "__iter__") and not isinstance(X, str | bytes) and not hasattr(X, "tocsr")
        rows = list(X) if plain else None
        if rows is None or not all(map(_is_pair, rows)):
            raise DataError(f"pairs cannot be read from a {type(X).__name__}; pass rows (user, item), or Ratings")
        return [row[0] for row in rows], [row[1] for row in rows]
    if table.ndim != 2 or table.shape[1] != 2:
        raise DataError(f"pairs have shape {table.shape}, but a row is (user, item): pass (n, 2)")
    return table[:, 0], table[:, 1]


def _is_pair(row: Any) -> bool:
    if isinstance(row, np.ndarray):
        return bool(row.shape == (2,))
    return isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) == 2


def _named_pair(names: list[Any]) -> tuple[Any, Any]:
    """The columns of user and item. Names take precedence over positions."""
    found = [[name for name in names if plain_name(name) in usual] for usual in (USER, ITEM)]
    clear = [len(some) for some in found]
    if clear == [1, 1]:
        return found[0][0], found[1][0]
    if len({*names}) == len(names) == 2 and max(clear) + sum(plain_name(name) in RATING for name in names) < 2:
        other = found[0] == names[1:] or found[1] == names[:1]
        return (names[1], names[0]) if other else (names[0], names[1])
    raise DataError(
        f"a frame of the columns {names} has no clear pair of user and item; pass these two alone, called user and item"
    )


def indices_of_pairs(known: Ratings, X: Any) -> tuple[Ints, Ints]:
    """The indices (n,) of the users and items of pairs, or of all pairs of `Ratings`; -1 for one that is unknown.
    DataError for a missing id, and for a text id that is known as a number or the reverse."""
    if isinstance(X, Ratings):
        users, items = known.user_index(X.users), known.item_index(X.items)
        check_spelling(known.users, X.users, users, "user")
        check_spelling(known.items, X.items, items, "item")
        return users[X.user_of()], items[X.columns]
    first, second = pairs_of(X)
    for ids, what in ((first, "user"), (second, "item")):
        if isinstance(ids, list):
            wrong = next((one for one in ids if not isinstance(one, Hashable)), None)
            if wrong is not None:
                raise DataError(f"{what} {wrong!r} is not hashable and so no id; pass rows (user, item)")
    users, items = known.user_index(first), known.item_index(second)
    check_present(first, users, "user", "pair")
    check_present(second, items, "item", "pair")
    check_spelling(known.users, first, users, "user")
    check_spelling(known.items, second, items, "item")
    return users, items


def read_ratings_and_weights(
    X: Any, y: Any, sample_weight: Any = None, user_weight: Any = None
) -> tuple[Ratings, Floats | None]:
    """The ratings, and a weight (n_ratings,) each in their order, or None for 1 each.

    X: `Ratings`, which bring their values along, a data frame with a column of ratings, or pairs with y (n,).
    sample_weight: (n,) one a row. user_weight: a mapping from user (or a pandas Series whose index has the users), or
    (n_users,) in the order of `Ratings.users`; a mapping must hold every user, and may hold others.
    """
    row_weight = None
    if isinstance(X, Ratings):
        if y is not None:
            raise DataError("y cannot be passed with Ratings, which have their own values; leave y out")
        ratings = X
        if sample_weight is not None:
            row_weight = _check_values(sample_weight, ratings.n_ratings, "sample_weight", "ratings")
    elif y is None and hasattr(X, "columns"):
        ratings = Ratings.from_frame(X)
        if sample_weight is not None:
            raise DataError("sample_weight needs rows; pass it with pairs and y=, or with Ratings")
    elif y is None and hasattr(X, "tocsr"):
        raise DataError("a sparse table is read by Ratings.from_csr(X), in which a stored zero is a rating; pass these")
    elif y is None:
        raise DataError("requires y to be passed, but the target y is None: pass the ratings of the pairs, or Ratings")
    else:
        users, items = pairs_of(X)
        ratings = Ratings.from_arrays(users, items, y)
        if sample_weight is not None:
            passed = _check_values(sample_weight, ratings.n_ratings, "sample_weight", "rows")
            row_weight = np.empty_like(passed)
            wanted = ratings.user_index(users) * np.int64(ratings.n_items) + ratings.item_index(items)
            known = ratings.user_of().astype(np.int64) * ratings.n_items + ratings.columns
            row_weight[np.searchsorted(known, wanted)] = passed
    weights = row_weight
    if user_weight is not None:
        user_weight = in_order_of("user_weight", user_weight, ratings.users.tolist(), "user")
        user_weight = _check_values(user_weight, ratings.n_users, "user_weight", "users")
        spread = np.repeat(user_weight, np.diff(ratings.bounds))
        weights = spread if weights is None else weights * spread
    if np.abs(ratings.values).max(initial=0.0) > LARGEST:
        row = int(np.abs(ratings.values).argmax())
        user, item = ratings.users.item(int(ratings.user_of()[row])), ratings.items.item(int(ratings.columns[row]))
        raise DataError(
            f"the rating {ratings.values[row]:g} of user {user!r} and item {item!r} is too large: sums of such squares "
            f"overflow; divide all ratings by a number, or mend it (up to {LARGEST:g} can be learned from)"
        )
    if ratings.n_ratings == 0:
        raise DataError("there is nothing to learn because there are no ratings (0 samples); give one or more")
    return ratings, weights


def held_out(eval_set: Any, train: Ratings) -> Ratings:
    """The ratings of an eval_set: `Ratings`, a data frame, or a pair (X, y). DataError for anything else, for ids of
    another type than those of training, and where no user or no item is one of training."""
    if isinstance(eval_set, list) and len(eval_set) == 1:  # as LightGBM has them
        (eval_set,) = eval_set
    if isinstance(eval_set, tuple | list):
        if len(eval_set) != 2:
            raise DataError(f"eval_set has {len(eval_set)} parts; pass Ratings, a frame of ratings, (X, y) or [(X, y)]")
        found = read_ratings_and_weights(*eval_set)[0]
    else:
        found = read_ratings_and_weights(eval_set, None)[0]
    users, items = indices_of_pairs(train, found)
    for what, index in (("item", items), ("user", users)):
        if (index < 0).all():
            raise DataError(f"eval_set has no {what} of training; hold out ratings of the same {what}s")
    return found


def _check_values(values: Any, size: int, name: str, what: str) -> Floats:
    check_no_mask(name, values, DataError)
    try:
        found = np.array(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{name} cannot be read: {error}; pass one number for each of {size} {what}") from None
    if found.shape != (size,):
        raise DataError(f"{name} has shape {found.shape} but there are {size} {what}; pass one number each")
    if not (np.isfinite(found) & (found > 0)).all():
        raise DataError(f"{name} has weights that are not positive and finite; leave ratings of no weight out")
    if not ((found <= LARGEST) & (found >= 1 / LARGEST)).all():
        raise DataError(f"{name} has weights beyond {1 / LARGEST:g} to {LARGEST:g}, whose sums overflow; rescale them")
    return found
