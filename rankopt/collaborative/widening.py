"""Where factors start, without a draw: at the top singular pairs of what offsets alone leave over.

As many factors as the problem wants: the top singular pairs of its own dual state are added until nothing is left.

Where ‖Ψ‖₂ in the units of the regulariser exceeds 1, some pair p, q with pᵀΨq < -1 is a direction along which J falls
and which the present factors lack; where it does not, the bound of the whole is touched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.collaborative.alternation import Alternation, AlternationResult, gone_on, idle
from rankopt.collaborative.certificate import whole_bound
from rankopt.collaborative.factors import Factors
from rankopt.collaborative.least_squares import balanced
from rankopt.collaborative.problem import ModelState
from rankopt.collaborative.singular_value import scaled, top_pairs
from rankopt.errors import OptionError
from rankopt.optimize.certificate import Stop

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Start:
    """factors: U = P √s, M = Q √s for -Ψ ≈ P s Qᵀ, with the offsets that are best alone. lam_max: ‖Ψ‖₂, from which on
    √(λ_U λ_M) leaves no factors. alone: the offsets alone."""

    factors: Factors
    lam_max: float
    alone: Factors


def start_of(blocks: Any, count: int) -> Start:
    """Of so many factors; Ψ is the dual state of the best offsets, in units of the users' and items' scales."""
    problem, alone = blocks.problem, blocks.offsets_only()
    table = scaled(problem.rated.table(alone.slopes), problem.user_scale, problem.item_scale)
    left, size, right = top_pairs(table, max(count, 1))
    root = np.sqrt(size[:count])
    users = -left[:, :count] * (root / np.sqrt(problem.user_scale)[:, None])
    items = right[:, :count] * (root / np.sqrt(problem.item_scale)[:, None])
    factors = Factors(
        np.ascontiguousarray(users), np.ascontiguousarray(items), alone.factors.offsets, alone.factors.user_offsets
    )
    return Start(factors, float(size[0]), alone.factors)


def random_start(start: Start, random_state: Any) -> Factors:
    """Factors drawn from a normal distribution instead, of about the size of those of `start`."""
    from sklearn.utils import check_random_state

    factors = start.factors
    try:
        draws = check_random_state(random_state)
    except ValueError:
        raise OptionError(f"random_state = {random_state!r} draws nothing; give a whole number, or None") from None
    size = [float(np.sqrt(np.mean(one * one))) for one in (factors.users, factors.items)]
    users, items = (
        draws.normal(size=one.shape) * s for one, s in zip((factors.users, factors.items), size, strict=True)
    )
    return replace(factors, users=users, items=items)


FIRST = 8
"""Factors to begin with."""

FINER = 100.0
"""How much finer than the gap of the whole both blocks are solved."""

GONE = 1e-4
"""A factor of a smaller part of the largest one makes room for another."""

GAIN = 0.05
"""The part of the open gap that a widening must close for another to follow."""


def widened(
    blocks: Any,
    done: AlternationResult,
    run: Callable[[Callable[[], AlternationResult], AlternationResult, float], AlternationResult],
    settings: Alternation,
    judged: bool,
    resumed: AlternationResult | None = None,
) -> AlternationResult:
    """Twice as many factors, again and again, while the gap of the whole is above `settings.tol` and closes.

    run: a part of the run from where `begin()` stands, of more factors, after the part before, to a gap of both blocks:
    a part of the gap of the whole, which new factors would else end within before they have grown. judged: the best on
    eval_set is what is looked for; then the gap is that of where the run stands, and it ends with its patience.
    resumed: such a part, of more factors than `done`, that an earlier run began.
    """
    most = min(blocks.problem.rated.n_users, blocks.problem.rated.n_items)
    try:
        gap = _gap(blocks, done, judged)
        while resumed is not None or _may_widen(done, gap, settings, judged):
            at, resumed = resumed, None
            wider = _with_pairs(blocks, _stands(done, judged), most) if at is None else None
            if at is None and wider is None:
                break
            tried = run(partial(_begin, blocks, done, at, wider, judged), done, min(gap / FINER, settings.tol))
            left = _gap(blocks, tried, judged)
            closes = left <= (1.0 - GAIN) * gap
            done, gap = _better(done, tried, left < gap, judged), min(left, gap)
            if not closes:
                break
    except KeyboardInterrupt:  # between two parts: each of them ends by itself
        done = replace(done, stop=Stop.INTERRUPTED)
    return done


def _may_widen(done: AlternationResult, gap: float, settings: Alternation, judged: bool) -> bool:
    closed = done.stop in (Stop.GAP, Stop.CHOSEN) and not (judged and idle(done) >= settings.patience)
    return gap > settings.tol and closed


def _begin(
    blocks: Any, done: AlternationResult, at: AlternationResult | None, wider: Factors | None, judged: bool
) -> AlternationResult:
    if at is not None:
        return at
    assert wider is not None
    return gone_on(done, blocks.begun(wider), judged)


def _better(done: AlternationResult, tried: AlternationResult, closer: bool, judged: bool) -> AlternationResult:
    """What the two parts leave: the wider one if it is closer to the optimum of the whole, or may have a better round
    on eval_set; else the narrower one, with all rounds, and with why the run ended, if the wider part did not end by
    itself."""
    if closer or judged:
        return tried
    stop = done.stop if tried.stop in (Stop.GAP, Stop.STALLED) else tried.stop
    return replace(done, steps=tried.steps, stop=stop, spent=tried.spent)


def _stands(done: AlternationResult, judged: bool) -> ModelState:
    """From where factors are added: the best of J, or where a run stands whose best is of another measure."""
    return done.now if judged else done.best


def _gap(blocks: Any, done: AlternationResult, judged: bool) -> float:
    now = _stands(done, judged)
    return whole_bound(blocks, now).gap(now.value)


def _with_pairs(blocks: Any, now: ModelState, most: int) -> Factors | None:
    """The factors that have not gone to 0, and as many more, along the singular pairs of -Ψ above 1, of the size of
    those there are: smaller ones would not have grown before the blocks count as closed. None where there are none."""
    problem, factors = blocks.problem, balanced(blocks.problem, now.factors)
    held = problem.of_users @ factors.users**2  # λ‖column‖², twice what each factor costs; the largest first
    alive = held > GONE * held.max(initial=0.0)
    alive[most - 1 :] = False  # as many as the table has rows or columns are all there can be: the least makes room
    factors = replace(factors, users=factors.users[:, alive], items=factors.items[:, alive])
    held, d = held[alive], factors.dimensions
    table = scaled(problem.rated.table(blocks.whole(now).slopes), problem.of_users, problem.of_items)
    left, size, right = top_pairs(table, min(max(d, 1), most - d))
    fresh = size > 1.0
    if not fresh.any():
        return None
    root = np.sqrt(np.median(held) if d else size[fresh])
    users = -left[:, fresh] * root / np.sqrt(problem.of_users)[:, None]
    items = right[:, fresh] * root / np.sqrt(problem.of_items)[:, None]
    return replace(
        factors,
        users=np.ascontiguousarray(np.hstack([factors.users, users])),
        items=np.ascontiguousarray(np.hstack([factors.items, items])),
    )
