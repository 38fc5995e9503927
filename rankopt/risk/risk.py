"""The risk: the weighted mean of a loss over queries, as a function of w. It depends on scores alone, not on rankings.

A shard holds complete queries, their scores as a function of the parameters, and their loss. The partition of queries
into shards depends on the data alone, not on the number of workers. Values and planes at one w, or value and gradient
of a smooth risk, are evaluated shard by shard.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from formulations.arrays import Floats, Ints, frozen
from formulations.display import CompactReprMixin
from rankopt.data.canonical_order import Arrangement
from rankopt.errors import EngineError, OptionError
from rankopt.losses import make_loss
from rankopt.losses.loss import GradientLoss, Loss, check_sign, is_nonnegative, protocol_of
from rankopt.scorers.linear import Linear, Scorer, Slots, parts_of

Answer = TypeVar("Answer")
Result = TypeVar("Result", covariant=True)


class ShardFunction(Protocol[Result]):
    """A function evaluated on a shard: plain data that can be sent to the shard's process."""

    def __call__(self, shard: Shard) -> Result: ...


@dataclass(eq=False)
class Touched:
    """The majorant that touches a loss at `touch`, and its summed references, cached until `touch` changes."""

    touch: Floats | None
    loss: Loss
    references: dict[bool, Floats] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Shard(CompactReprMixin):
    """Queries first, first + 1, ... of a risk: their documents, cut by offsets (m + 1,), get their scores from
    `scorer`; their weights (m,) in the risk, and their loss.

    remembered: for the shard itself; it saves work and changes no answer.
    """

    scorer: Scorer
    offsets: Ints
    weights: Floats
    loss: Loss
    first: int = 0
    remembered: dict[str, Any] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return int(self.weights.size)

    def own(self, queries: tuple[int, int] | None) -> tuple[int, int]:
        """Which of these queries of the risk are here, counted within the shard; all if None."""
        if queries is None:
            return 0, len(self)
        return max(queries[0] - self.first, 0), min(queries[1] - self.first, len(self))

    def scores(self, w: Floats, first: int = 0, last: int | None = None) -> Floats:
        """The scores, read-only, of the documents of the queries first <= q < last: (n,) or (n, slots)."""
        last = len(self) if last is None else last
        return frozen(self.scorer.scores(w, int(self.offsets[first]), int(self.offsets[last])))

    def touched(self, touch: Floats | None) -> Touched:
        """The loss, or its majorant that touches at `touch`; cached."""
        known: Touched | None = self.remembered.get("last")
        if known is None or not _same(known.touch, touch):
            loss = self.loss if touch is None else self.loss.majorant(self.scores(touch))
            known = self.remembered["last"] = Touched(touch, loss)
        return known

    def references(self, known: Touched, merged: bool) -> Floats:
        """The summed references of a loss with a fixed reference; cached."""
        if merged not in known.references:
            zeros = np.zeros(int(self.offsets[-1]))
            weights = known.loss.reference_weights(zeros)
            (known.references[merged],) = self.summed((weights,), 0, len(self), merged)
        return known.references[merged]

    def summed(self, slopes: tuple[Floats, ...], first: int, last: int, merged: bool) -> tuple[Floats, ...]:
        """Σ r × ∂s/∂w of each r, for the queries first <= q < last: over all of them with their weights (1,
        dimensions), or one a query."""
        bounds = self.offsets[first : last + 1]
        if merged:
            spread = np.repeat(self.weights[first:last], np.diff(bounds))
            slopes = tuple(r * (spread if r.ndim == 1 else spread[:, None]) for r in slopes)
            bounds = self._parts if last - first == len(self) else parts_of(bounds - bounds[0]) + bounds[0]
        sums = self.scorer.pull(slopes, bounds)
        return tuple(part.sum(axis=0, keepdims=True) for part in sums) if merged else sums

    @cached_property
    def _parts(self) -> Ints:
        return parts_of(self.offsets)


def _same(one: Floats | None, other: Floats | None) -> bool:
    return one is other or (one is not None and other is not None and np.array_equal(one, other))


SHARD_ROWS = 1 << 17  # rows after which a shard is closed

Build = Callable[[Arrangement], tuple[Arrangement, Loss]]
"""From queries to those of them that a loss can learn from (`Arrangement.learnable`), and the loss of these."""


def shards(
    queries: Arrangement,
    build: Build,
    scorer: Callable[[Linear], Linear | Slots] = lambda linear: linear,
) -> tuple[Shard, ...]:
    """The queries that a loss can learn from, with that loss, in shards.

    scorer: maps features to scores, if these are not one linear function.
    Raises DataError if no query can be learned from.
    """
    queries, loss = build(queries)
    return shards_of(scorer(Linear(queries.features, queries.rows)), queries.offsets, queries.weights, loss)


def shards_of(
    scorer: Linear | Slots, offsets: Ints, weights: Floats, loss: Loss, rows: int | None = None
) -> tuple[Shard, ...]:
    """Queries of these documents, with weights (m,) and a loss, in shards of at least `rows` rows but the last."""
    cuts = cut(offsets, rows)
    return tuple(
        Shard(
            scorer.select(int(offsets[first]), int(offsets[last])),
            offsets[first : last + 1] - offsets[first],
            weights[first:last],
            loss if len(cuts) == 1 else loss.select_queries(first, last),
            first,
        )
        for first, last in cuts
    )


def shards_of_grades(queries: Arrangement, factory: Callable[..., Loss]) -> tuple[Shard, ...]:
    """The queries that have documents of different grades, in shards, with the loss that `factory` makes of relevance
    and offsets (see `make_loss`). Raises DataError where there are none."""

    def build(queries: Arrangement) -> tuple[Arrangement, Loss]:
        grades, starts = queries.graded, queries.offsets[:-1]
        useful = np.maximum.reduceat(grades, starts) > np.minimum.reduceat(grades, starts)
        queries = queries.learnable(useful, "have different grades")
        return queries, make_loss(factory, queries)

    return shards(queries, build)


def cut(offsets: Ints, rows: int | None = None) -> list[tuple[int, int]]:
    """Ranges of queries, each of at least `rows` rows but the last; None is SHARD_ROWS."""
    rows = SHARD_ROWS if rows is None else rows
    ranges, first = [], 0
    for query in range(1, offsets.size):
        if offsets[query] - offsets[first] >= rows or query == offsets.size - 1:
            ranges.append((first, query))
            first = query
    return ranges


@dataclass(frozen=True, eq=False)
class ShardResult:
    """A shard at one w. value, bound, heights: one for each evaluated query. slopes, references: one row a plane: the
    weighted sum over these queries if merged, else one unweighted row a query. seconds: time in the argmax.
    paid: the part of each height that belongs to the reference.
    """

    value: Floats
    bound: Floats
    heights: Floats
    slopes: Floats
    references: Floats
    seconds: float
    paid: Floats


@dataclass(frozen=True, eq=False)
class CuttingPlaneEvaluation:
    """Values and planes of all queries of a shard at w.

    merged: sum the planes with the weights of the queries, else one a query.
    prove: bounds from dual variables of every ranking.
    touch: the point at which the convex majorant of a nonconvex loss touches it; None evaluates the loss itself. A
        shard computes the majorant if it has not cached it, so results do not depend on the worker.
    queries: only the queries first <= q < last, counted over all shards.
    """

    w: Floats
    merged: bool = True
    prove: bool = False
    touch: Floats | None = None
    queries: tuple[int, int] | None = None

    def __call__(self, shard: Shard) -> ShardResult:
        first, last = shard.own(self.queries)
        if first >= last:
            none, planes = np.zeros(0), np.zeros((1 if self.merged else 0, shard.scorer.dimensions))
            return ShardResult(none, none, none, planes, planes, 0.0, none)
        known = shard.touched(self.touch)
        complete = last - first == len(shard)
        loss = known.loss if complete else known.loss.select_queries(first, last)
        scores = shard.scores(self.w, first, last)
        there = loss.at(scores, self.prove)
        check_sign(shard.loss, there.bound, scores)  # the value of an inexact argmax may be below 0
        if known.loss.convex and (complete or not self.merged):
            (slopes,) = shard.summed((there.assigned,), first, last, self.merged)
            references = shard.references(known, self.merged)
            references = references if self.merged else references[first:last]
        else:
            slopes, references = shard.summed((there.assigned, there.reference), first, last, self.merged)
        paid = np.zeros_like(there.height) if there.paid is None else there.paid
        return ShardResult(there.value, there.bound, there.height, slopes, references, there.seconds, paid)


class Engine(Protocol):
    """Evaluates shards: applies the function to each of them and preserves their order."""

    def map(self, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]: ...


def answers(engine: Engine, question: ShardFunction[Answer], shards: Sequence[Shard]) -> list[Answer]:
    """The answer of each shard; EngineError for an engine that returns another number of them."""
    found = engine.map(question, shards)
    if len(found) != len(shards):
        raise EngineError(
            f"{type(engine).__name__} returned {len(found)} results for {len(shards)} shards; its map() must return "
            "one per shard"
        )
    return found


@dataclass(frozen=True, eq=False)
class Planes:
    """The risk at one w: its value, its proven bound, and planes below it.

    losses: (m,) one a query. slopes, references: (p, d), heights: (p,); plane i is
    heights[i] + ⟨slopes[i] - references[i], w⟩. p = 1 if merged (the planes summed with the queries' weights), else m.
    paid: (p,) the part of heights that belongs to the references, such as the penalty of soft constraints.
    """

    value: float
    bound: float
    losses: Floats
    heights: Floats
    slopes: Floats
    references: Floats
    seconds: float
    paid: Floats


@dataclass(frozen=True, eq=False)
class Risk:
    """R(w) = Σ_q v_q loss_q(X_q w), the weights v summing to 1, as a sum over shards in their order.

    touch: where the convex majorant of a nonconvex risk touches it; None is the risk itself.
    cuts: (G + 1,) where groups of queries begin that methods keep apart; None leaves that to them.
    """

    shards: tuple[Shard, ...]
    engine: Engine
    touch: Floats | None = None
    cuts: Ints | None = None

    @property
    def features(self) -> int:
        """The length of w."""
        return self.shards[0].scorer.dimensions

    @cached_property
    def weights(self) -> Floats:
        """(m,) v, one weight a query."""
        return np.concatenate([shard.weights for shard in self.shards])

    @cached_property
    def floor(self) -> float:
        """What each loss is never below: 0, or -inf if one of them declares `is_nonnegative = False`."""
        return 0.0 if all(is_nonnegative(shard.loss) for shard in self.shards) else -np.inf

    @property
    def claimed(self) -> str:
        """What the bounds take from solvers unproved; "" if all is proved."""
        return max((str(getattr(getattr(one.loss, "argmax", None), "claimed", "")) for one in self.shards), key=len)

    @property
    def convex(self) -> bool:
        return self.touch is not None or all(shard.loss.convex for shard in self.shards)

    def at(self, w: Floats, merged: bool = True, queries: tuple[int, int] | None = None, prove: bool = False) -> Planes:
        """Value, bound and planes at w, (d,); `queries` restricts them to first <= q < last.

        `prove` takes the bound from dual variables of every ranking, which costs more than the rankings.
        """
        parts = answers(self.engine, CuttingPlaneEvaluation(w, merged, prove, self.touch, queries), self.shards)

        def joined(name: str) -> Floats:
            return np.concatenate([getattr(part, name) for part in parts])

        v = self.weights if queries is None else self.weights[slice(*queries)]
        losses, bounds, heights = joined("value"), joined("bound"), joined("heights")
        slopes, references, paid = joined("slopes"), joined("references"), joined("paid")
        if merged:
            heights, paid = np.array([v @ heights]), np.array([v @ paid])
            slopes, references = slopes.sum(axis=0, keepdims=True), references.sum(axis=0, keepdims=True)
        seconds = sum(part.seconds for part in parts)
        return Planes(float(v @ losses), float(v @ bounds), losses, heights, slopes, references, seconds, paid)

    def majorant(self, w: Floats) -> Risk:
        """The convex risk nowhere below this one that touches it at w; itself if convex."""
        return self if self.convex else replace(self, touch=w)


@dataclass(frozen=True, eq=False)
class GradientEvaluation:
    """Σ_q v_q loss_q(X_q w; sigma) of shards with a smooth loss, and the gradient (dimensions,). sigma: the width of an
    annealed loss; None is its own. value_only: an empty gradient, without its pass over the features."""

    w: Floats
    sigma: float | None = None
    value_only: bool = False

    def __call__(self, shard: Shard) -> tuple[float, Floats]:
        loss: Any = shard.loss
        if protocol_of(loss) != "gradient":
            raise OptionError(f"{type(loss).__name__} has no gradient; train it with planes, as LossRanker does")
        smooth: GradientLoss = loss
        there = smooth.gradient(shard.scores(self.w), self.sigma)
        value = float(shard.weights @ there.value)
        if self.value_only:
            return value, np.zeros(0)
        (gradient,) = shard.summed((there.slope,), 0, len(shard), merged=True)
        return value, gradient[0]
