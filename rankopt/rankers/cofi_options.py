"""Whether the options of `CofiRanker` can work, and whether what it learned fits together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.parallel import at_most
from rankopt.collaborative.alternation import AlternationHistory
from rankopt.collaborative.certificate import FactorCertificate
from rankopt.collaborative.regularization import PRIORS
from rankopt.collaborative.user_loss import UserLoss
from rankopt.engines import ended, engine_named
from rankopt.errors import ModelError, OptionError, RankoptError
from rankopt.measures.notation import parse
from rankopt.rankers.options import check_options, number

STARTS = ("residual", "random")

LEAST = 1e-100
"""Of what is squared or divided by: its products are neither 0 nor infinite."""

RANGE = f"{LEAST:g} to {1 / LEAST:g}"


def check_cofi(**given: Any) -> None:
    """Raise OptionError for a value that cannot work."""
    strength, lam, factors = given["strength"], given["lam"], given["factors"]
    tol = 0.0 if given["tol"] is None else given["tol"]
    check_options(C=None, **{**given, "tol": tol, "lam": 1.0 if lam is None else lam})
    if isinstance(strength, str) and strength != "auto":
        raise OptionError(f"strength = {strength!r} is no part of λ_max; give a positive number, or 'auto'")
    if not isinstance(strength, str) and not LEAST <= number(strength) <= 1 / LEAST:
        raise OptionError(f"strength = {strength!r} is no part of λ_max; give a number of {RANGE}, or 'auto'")
    users = given["user_strength"]
    if (
        users is not None
        and not (isinstance(users, str) and users == "auto")
        and not LEAST <= number(users) <= 1 / LEAST
    ):
        raise OptionError(f"user_strength = {users!r} is no part of λ_max; give a number of {RANGE}, 'auto', or None")
    if lam is not None and not LEAST <= number(lam) <= 1 / LEAST:
        raise OptionError(f"lam = {lam!r} is no λ; give a number of {RANGE}, or None and a strength")
    if factors != "free" and not (number(factors) >= 1 and number(factors).is_integer()):
        raise OptionError(f"factors = {factors!r} is no number of factors; give 1 or more, or 'free'")
    if given["offset_strength"] is not None and not LEAST <= number(given["offset_strength"]) <= 1 / LEAST:
        raise OptionError(f"offset_strength = {given['offset_strength']!r} must be a positive number of ratings")
    if given["prior"] not in ("auto", *PRIORS):
        known = ", ".join(map(repr, ("auto", *PRIORS)))
        raise OptionError(f"prior = {given['prior']!r} is unknown; it is one of {known}")
    if not 0 <= number(given["popularity"]) <= 1 / LEAST:
        raise OptionError(f"popularity = {given['popularity']!r} must be a number of 0 or more")
    if not (number(given["patience"]) >= 1 and number(given["patience"]).is_integer()):
        raise OptionError(f"patience = {given['patience']!r} is no number of rounds; give 1 or more")
    if given["start"] not in STARTS:
        raise OptionError(f"start = {given['start']!r} is unknown; it is one of {', '.join(map(repr, STARTS))}")
    for name in ("offsets", "by_counts", "certify"):
        if not isinstance(given[name], bool | np.bool_):
            raise OptionError(f"{name} = {given[name]!r} is neither True nor False; give one of them")
    parse(given["measure"])
    UserLoss.named(given["loss"], given["bound"], given["decay"])


@contextmanager
def workers_of(engine: Any, n_jobs: int | None) -> Iterator[Any]:
    """The engine, and the threads of this process that belong to it."""
    known = engine_named(engine, None if n_jobs == -1 else n_jobs)
    with ended(known, isinstance(engine, str)), at_most(1 if engine == "serial" else None if n_jobs == -1 else n_jobs):
        yield known


def check_learned(ranker: Any) -> None:
    """Raise ModelError where fitted attributes are missing, of other shapes, or not finite."""
    ids = [getattr(ranker, name, None) for name in ("users_", "items_")]
    if not all(isinstance(one, np.ndarray) and one.ndim == 1 for one in ids):
        raise ModelError("users_ or items_ are missing or are no ids.")
    n, m = len(ids[0]), len(ids[1])  # type: ignore[arg-type]
    known = getattr(ranker, "item_factors_", None)
    width = known.shape[-1:] if isinstance(known, np.ndarray) else ()
    shapes: dict[str, tuple[int, ...]] = {
        "user_factors_": (n, *width), "item_factors_": (m, *width), "item_offsets_": (m,), "user_offsets_": (n,),
        "trained_user_factors_": (n, *width), "trained_user_offsets_": (n,),
        "item_prior_": (m,), "item_counts_": (m,), "dual_heights_": (n,), "item_dual_heights_": (n,),
    }  # fmt: skip
    for name, shape in shapes.items():
        array: NDArray[Any] | None = getattr(ranker, name, None)
        kind = "i" if name == "item_counts_" else "f"
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype.kind != kind:
            raise ModelError(f"{name} is missing or has another shape than {shape}.")
        if not np.isfinite(array).all():
            raise ModelError(f"{name} holds numbers that are not finite.")
    for name in ("dual_slopes_", "item_dual_slopes_"):
        slopes = getattr(ranker, name, None)
        if not isinstance(slopes, np.ndarray) or slopes.shape != (int(ranker.item_counts_.sum()),):
            raise ModelError(f"{name} is missing or holds not one number a rating.")
        if slopes.dtype.kind != "f" or not np.isfinite(slopes).all():
            raise ModelError(f"{name} holds what is no finite number.")
    duals = [getattr(ranker, name, None) for name in ("user_dual_slopes_", "user_dual_heights_")]
    for one, size in zip(duals, (int(ranker.item_counts_.sum()), n), strict=True):
        if not isinstance(one, np.ndarray) or one.dtype.kind != "f" or one.shape not in ((size,), (0,)):
            raise ModelError("user_dual_slopes_ or user_dual_heights_ are missing or have another shape.")
        if not np.isfinite(one).all():
            raise ModelError("user_dual_slopes_ or user_dual_heights_ hold what is no finite number.")
    if not number(getattr(ranker, "user_gap_", None)) >= 0:
        raise ModelError("user_gap_ is missing or no gap.")
    for name in ("unknown_", "lam_", "lam_max_", "strength_", "user_strength_", "offset_strength_"):
        if not np.isfinite(number(getattr(ranker, name, None))):
            raise ModelError(f"{name} is missing or no number.")
    if min(ranker.lam_max_, ranker.offset_strength_) < 0:
        raise ModelError("lam_max_ and offset_strength_ cannot be negative.")
    if min(ranker.lam_, ranker.strength_, ranker.user_strength_) <= 0:
        raise ModelError("lam_, strength_ and user_strength_ are above 0.")
    if not isinstance(getattr(ranker, "certificate_", None), FactorCertificate):
        raise ModelError("certificate_ is missing or is no certificate of factors.")
    if not isinstance(getattr(ranker, "history_", None), AlternationHistory):
        raise ModelError("history_ is missing or is no history of an alternation.")
    if type(getattr(ranker, "n_iter_", None)) is not int or ranker.n_iter_ != len(ranker.history_) - 1:
        raise ModelError("n_iter_ does not count the rounds of history_.")
    try:
        check_cofi(**ranker.get_params(deep=False))
        ranker._known()
    except (RankoptError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"a parameter or an id has a value that cannot work ({error}).") from error
