"""Models of clicks, and logs that they generate from graded queries, for tests and teaching."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from formulations.arrays import Bools, Floats, Ints, check_type, generator
from formulations.marginals.plackett_luce import plackett_luce_marginals
from rankopt.clicks.log import ClickLog
from rankopt.clicks.propensities import PositionBias
from rankopt.data.queries import Queries
from rankopt.errors import DataError, OptionError
from rankopt.options import COUNT, NOT_NEGATIVE, Interval, as_numbers, check

SHARE = Interval(0, 1, "both")
AT_ONCE = 2**22


class ClickModel(Protocol):
    """What clicks lists of documents with these relevances."""

    def clicks(self, relevance: Floats, random: np.random.Generator) -> Bools:
        """(S, K) whether each document is clicked; relevance (S, K) in [0, 1], the top first."""


@dataclass(frozen=True)
class PositionBased:
    """P(click at p) = e_p r. propensities: e, by default 1/p."""

    propensities: Any = None

    def position_bias(self, positions: int) -> PositionBias:
        """e of the first positions; beyond those given it is 0."""
        if self.propensities is None:
            return PositionBias.from_power(1.0, positions)
        given = as_numbers("propensities", self.propensities)
        if given.ndim != 1 or not ((given >= 0) & (given <= 1)).all():
            raise OptionError("propensities must be probabilities, one a position.")
        return PositionBias(np.pad(given, (0, max(positions - given.size, 0)))[:positions])

    def clicks(self, relevance: Floats, random: np.random.Generator) -> Bools:
        bias = self.position_bias(relevance.shape[1])
        return np.asarray(random.random(relevance.shape) < bias.propensities * relevance + bias.trust)


@dataclass(frozen=True)
class TrustBias(PositionBased):
    """P(click at p) = e_p (a_p r + b_p (1 - r)): examined documents are clicked with probability a_p if relevant and
    b_p if not, which is more likely at the top [Agarwal et al. 2019].

    propensities: e, by default 1/p. relevant, irrelevant: a, .98 by default, and b, .65 / p."""

    relevant: Any = 0.98
    irrelevant: Any = None

    def position_bias(self, positions: int) -> PositionBias:
        """P(click at p) = e_p (a_p - b_p) r + e_p b_p: propensities, not divided by that of position 1, and trust."""
        e = super().position_bias(positions).propensities
        b = 0.65 / np.arange(1, positions + 1) if self.irrelevant is None else self._each("irrelevant", positions)
        a = self._each("relevant", positions)
        if (a < b).any():
            raise OptionError("relevant documents cannot be clicked less than irrelevant ones at a position.")
        return PositionBias(e * (a - b), e * b)

    def _each(self, name: str, positions: int) -> Floats:
        """A number for all positions, or one each, of which those beyond the last are like the last."""
        values = np.atleast_1d(as_numbers(name, getattr(self, name)))
        if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
            raise OptionError(f"{name} must be a probability, or one for each position.")
        return np.asarray(values[np.minimum(np.arange(positions), values.size - 1)])


@dataclass(frozen=True)
class Cascade:
    """Users look from the top down, click with probability r, and stop after a click with probability `stop`."""

    stop: float = 1.0

    def clicks(self, relevance: Floats, random: np.random.Generator) -> Bools:
        check("stop", self.stop, (SHARE,))
        wanted = random.random(relevance.shape) < relevance
        ends = wanted & (random.random(relevance.shape) < self.stop)
        before: Ints = np.cumsum(ends, axis=1) - ends
        return np.asarray(wanted & (before == 0))


def click_probability(relevance: Floats, noise: float = 0.1) -> Floats:
    """r = noise + (1 - noise) (2^y - 1) / (2^y_max - 1), the usual assumption of simulations, of grades y."""
    check("noise", noise, (SHARE,))
    grades = as_numbers("relevance", relevance)
    gain = np.exp2(grades) - 1
    if not ((gain >= 0) & (gain < np.inf)).all():
        raise DataError("relevance must be finite grades >= 0, and 2^y finite.")
    return np.asarray(noise + (1 - noise) * gain / max(float(gain.max(initial=0.0)), 1e-300))


def simulate_clicks(
    queries: Queries,
    ranker: Any,
    model: ClickModel | None = None,
    *,
    sessions: int = 10_000,
    positions: int = 10,
    noise: float = 0.1,
    temperature: float = 0.0,
    random_state: Any = 0,
) -> ClickLog:
    """Return the log of sessions in which users see lists of a ranker and click.

    queries: with grades y, which give the probability of a click on an examined document, `click_probability`; the log
    keeps them. ranker: a fitted ranker, scores (N,), or a list of them, of which each session sees one at random.
    model: `PositionBased()` by default, `TrustBias` or `Cascade`. sessions: drawn from the queries uniformly.
    positions: length of the lists. temperature: above 0 lists are drawn without replacement with probabilities
    proportional to exp(score / temperature) (Plackett-Luce). The log has the exact
    `placements`. Nothing depends on the order of rows or queries.
    """
    check_type("queries", queries, Queries, error=DataError)
    if queries.relevance is None:
        raise DataError("clicks are simulated from grades, and these Queries have none.")
    for name, value in (("sessions", sessions), ("positions", positions)):
        check(name, value, (COUNT,))
    check("temperature", temperature, (NOT_NEGATIVE,))
    several = isinstance(ranker, list | tuple) and any(
        hasattr(one, "predict") or isinstance(one, list | tuple | np.ndarray) for one in ranker
    )
    rankers = list(ranker) if several else [ranker]
    scores = np.array([scores_of(one, queries) for one in rankers])
    user: ClickModel = PositionBased() if model is None else model
    if not callable(getattr(user, "clicks", None)) or isinstance(user, type):
        raise OptionError(f"model cannot be {model!r:.80}; pass PositionBased(), TrustBias(), Cascade(), or your own.")
    random, r = generator("random_state", random_state), click_probability(queries.relevance, noise)
    m, k = len(queries), min(int(positions), int(np.diff(queries.offsets).max()))
    drawn = np.bincount(random.integers(0, m, int(sessions)), minlength=m)
    times, placements = np.zeros(m, dtype=np.int64), np.zeros((queries.n_documents, k))
    found: list[tuple[Ints, Ints, Ints, Ints]] = []
    for number, q in enumerate(sorted(range(m), key=lambda q: str(queries.query_ids[q]))):
        own = queries.rows[queries.offsets[q] : queries.offsets[q + 1]]
        own = own[_by_content(queries, own)]
        times[q], width = drawn[number], min(k, own.size)
        shown, clicked = np.zeros((own.size, width), dtype=np.int64), np.zeros((own.size, width), dtype=np.int64)
        left = int(times[q])
        while left:
            some = min(left, max(1, AT_ONCE // own.size))
            lists = _lists(scores[:, own], some, width, float(temperature), random)
            clicks = user.clicks(r[own][lists], random)
            place = lists * width + np.arange(width)
            shown += np.bincount(place.ravel(), minlength=shown.size).reshape(shown.shape)
            clicked += np.bincount(place[clicks], minlength=shown.size).reshape(shown.shape)
            left -= some
        if temperature:
            shares = np.mean([_placements((one / temperature).tobytes(), width) for one in scores[:, own]], axis=0)
        else:
            lists = np.argsort(-scores[:, own], axis=1, kind="stable")[:, :width] * width + np.arange(width)
            shares = np.bincount(lists.ravel(), minlength=shown.size).reshape(shown.shape) / len(lists)
        placements[own, :width] = shares
        at, place = np.nonzero(shown)
        found.append((own[at], place + 1, shown[at, place], clicked[at, place]))
    rows, at, shown, clicked = (np.concatenate(part) for part in zip(*found, strict=True))
    return ClickLog(queries, rows, at, shown, clicked, times, placements)


@lru_cache(1 << 12)
def _placements(scores: bytes, width: int) -> Floats:
    """(n, width) of Plackett-Luce lists; kept for other logs of the same ranker."""
    return np.ascontiguousarray(plackett_luce_marginals(np.frombuffer(scores), width).T)


def scores_of(ranker: Any, queries: Queries) -> Floats:
    """The scores (N,) of a fitted ranker, or those passed in place of one. DataError for others."""
    scores = as_numbers("ranker", ranker.predict(queries) if hasattr(ranker, "predict") else ranker)
    right = scores.shape == (queries.n_documents,)
    if not right or not np.isfinite(scores).all():
        got = f"{scores[~np.isfinite(scores)][0]:g}" if right else f"shape {scores.shape}"
        raise DataError(f"scores must be {queries.n_documents} finite numbers, one a row; got {got}.")
    return scores


def _by_content(queries: Queries, rows: Ints) -> Ints:
    """An order of rows that does not depend on theirs: by document id, else by features and grade."""
    if queries.document_ids is not None:
        names = [str(queries.document_ids[row]) for row in rows]
        return np.array(sorted(range(rows.size), key=names.__getitem__), dtype=np.int64)
    features = queries.features[rows]
    table = np.asarray(features if isinstance(features, np.ndarray) else features.toarray())
    return np.lexsort((np.asarray(queries.relevance)[rows], *table.T[::-1]))


def _lists(scores: Floats, count: int, width: int, temperature: float, random: np.random.Generator) -> Ints:
    """(count, width) lists of one query, by one of the rows of scores (rankers, n) each."""
    which = random.integers(0, len(scores), count)
    if not temperature:
        return np.asarray(np.argsort(-scores, axis=1, kind="stable")[:, :width][which])
    noisy = scores[which] / temperature + random.gumbel(size=(count, scores.shape[1]))
    return np.argsort(-noisy, axis=1, kind="stable")[:, :width]
