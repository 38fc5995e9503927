"""How tight the bounds of the regret are, query by query.

    regret     = max_π a[π]ᵀb - a[π_s]ᵀb               π_s the worst order that the scores s allow
    bound      = H(s) + best - r̄ᵀs                     r̄ by the bound: convex, tie-aware, nonconvex, your own
    looseness  = bound - regret >= 0
    max_regret = best - worst                          the regret of the worst ranking

A bound that reaches `max_regret` is trivial for its query: no ranking can lose more. Bounds follow the scale of the
scores, the regret does not: as the scores grow apart, the nonconvex bound falls to the regret, the convex one grows
wherever the order is wrong, or spreads documents of one grade.

A mix of measures has the tightness of each part, and of their sum or maximum.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from formulations.arrays import Bools, Floats, Ints
from formulations.display import CompactReprMixin, aligned, data_frame, first_lines
from rankopt.losses.margin import Bound, reference_of
from rankopt.losses.oracle import MaxOracle

SHOWN = 10  # queries that a printed table lists, those of the largest regret first
BRIEFLY = 5  # the same at a prompt
ROUNDING = 1e-9
TIGHT = 0.1  # part of the mean bound that may be looseness in one that is called tight
SLIGHT = 0.01  # part of the mean bound; what a change of scale by e would change it by less is not worth a word


def bounds_at(argmax: MaxOracle, scores: Floats, bounds: Mapping[str, Bound]) -> tuple[dict[str, Floats], Floats]:
    """The value (m,) of each bound at these scores, and `growth` (bounds, m): the derivative of each with respect to
    the logarithm of the scale of the scores. The loss-augmented argmax is taken once for all of them."""
    found = argmax.at(scores)
    height = argmax.best - found.earned
    heights, growth = {}, {}
    for name, bound in bounds.items():
        reference, paid = reference_of(argmax, bound, scores)
        apart = (found.slope - reference) * scores
        growth[name] = np.add.reduceat(apart.reshape(apart.shape[0], -1).sum(axis=1), argmax.offsets[:-1])
        heights[name] = height if paid is None else height + paid
    return {name: heights[name] + grown for name, grown in growth.items()}, np.array([*growth.values()])


def max_regret_of(argmax: MaxOracle) -> Floats:
    """(m,) the regret of the worst ranking; penalties of soft constraints are not included."""
    unpaid: Floats | None = getattr(argmax, "worst_unpaid", None)
    return argmax.best + argmax.at(np.zeros(argmax.shape)).value if unpaid is None else argmax.best - unpaid


@dataclass(frozen=True, eq=False)
class Tightness(CompactReprMixin):
    """A row a query that has something to order; `print` shows those of the largest regret, `to_frame()` all.

    Columns (m,): `query`, their ids in the order of the data; `documents`, how many; `regret` of the worst order that
    equal scores allow, which is what a bound bounds, and `expected`, its mean over these orders, which is what `score`
    counts; `bounds` by name; `max_regret`, that of the worst ranking; `looseness`, of the bound named
    `trained` (for rankers that train no bound of the regret the nonconvex one, the tightest). `growth`: how that bound
    would change with the logarithm of the scale of the scores. Regret and bounds are in the units of the measure.
    `feature_map`, `position_weights`: the feature map, and the position weights of "positional". `parts`: of a mix of
    measures a table for each of its parts, by name, not weighted; their queries are those that the part
    distinguishes. `function_solver`, `lam`, `linear`: whether the ranker trained a bound of the regret, and under a
    λ, and has weights.
    """

    measure: str
    position_weights: str
    trained: str
    own: bool
    lam: bool
    query: tuple[Hashable, ...]
    documents: Ints
    regret: Floats
    expected: Floats
    bounds: Mapping[str, Floats]
    max_regret: Floats
    growth: Floats
    linear: bool = True
    feature_map: str = "positional"
    parts: Mapping[str, Tightness] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.query)

    @property
    def bound(self) -> Floats:
        """(m,) the bound named `trained`."""
        return self.bounds[self.trained]

    @property
    def looseness(self) -> Floats:
        return self.bound - self.regret

    @property
    def is_loose(self) -> Bools:
        """(m,) where the bound is trivial: not below the regret of the worst ranking."""
        return self._is_loose(self.trained)

    def worst(self, n: int = SHOWN) -> Ints:
        """The rows of the n largest regrets, of equal ones the largest bound first."""
        return np.lexsort((-self.bound, -self.regret))[:n]

    @property
    def slopes(self) -> str:
        """What the bounds make of an order, in words."""
        return (
            f"position weights {self.position_weights}"
            if self.feature_map == "positional"
            else f"feature map {self.feature_map}"
        )

    @property
    def finding(self) -> str:
        """One sentence of what was found, and one of what to do."""
        m, loose = len(self), int(self.is_loose.sum())
        means = f"on average {_brief(self.regret.mean())} of {self.measure} are lost, and the mean bound is "
        means += f"{_brief(self.bound.mean())}"
        if not loose:
            return f"The {self.trained} bound is informative on all {m} queries: {means}. {self._cure(loose)}"
        text = f"The {self.trained} bound is loose on {loose} of {m} queries: there it is no lower than what the worst "
        return f"{text}ranking would lose; {means}. {self._cure(loose)}"

    def _cure(self, loose: int) -> str:
        if not self.own:
            cure = (
                "start LargeMarginRanker from it, w0=ranker.coef_"
                if self.linear
                else "BoostedRanker grows trees on one"
            )
            return f"This ranker trained no bound of the regret: {cure}."
        if self.looseness.mean() <= TIGHT * self.bound.mean():
            return "It is nearly all regret, so better features or more data are what can help."
        best = min(self.bounds, key=lambda name: (int(self._is_loose(name).sum()), float(self.bounds[name].mean())))
        if best != self.trained and self.bounds[best].mean() < 0.9 * self.bound.mean():
            mean = _brief(self.bounds[best].mean())
            return f"The {best} bound is tighter here ({mean}): train with bound={best!r}."
        grows = float(self.growth.mean()) / float(self.bound.mean())
        if abs(grows) <= SLIGHT:
            return "Scores of another scale would not bring the bound nearer to the regret."
        way, lam = ("further apart", "smaller") if grows < 0.0 else ("closer together", "larger")
        cure = f": try a {lam} lam." if self.lam else "."
        return f"Training lowers the bound for the regret. Scores {way} would bring the two nearer{cure}"

    def to_frame(self) -> Any:
        """All rows as a pandas data frame, a row a query; raises FormulationError where pandas is not installed."""
        return data_frame(self.columns())

    def columns(self) -> dict[str, Any]:
        """The columns by name, in their order."""
        alike = np.allclose(self.regret, self.expected, rtol=0.0, atol=1e-12)
        return {
            "query": [*self.query],
            "documents": self.documents,
            "regret": self.regret,
            **({} if alike else {"expected": self.expected}),
            **self.bounds,
            "max_regret": self.max_regret,
            "looseness": self.looseness,
        }

    def shown(self, n: int = SHOWN) -> str:
        """The n queries of the largest regret, and the means of all."""
        rows, columns = self.worst(n), self.columns()
        shown: dict[str, Any] = {"query": [self.query[row] for row in rows.tolist()]}
        shown |= {name: column[rows] for name, column in columns.items() if name != "query"}
        means: dict[str, Any] = {name: float(np.mean(columns[name])) for name in columns if name != "query"}
        means["documents"] = round(means["documents"])
        table = lines_of({name: [*shown[name], means.get(name, "mean of all")] for name in columns})
        left = len(self) - rows.size
        more = [f"{left} others"] if left > 0 else []
        head = f"regret and bounds, in units of {self.measure}; {self.slopes}; looseness: {self.trained} - regret"
        return "\n".join([head, *table[:-1], *more, table[-1]])

    def __repr__(self) -> str:
        more = "\nprint() shows more, to_frame() all" if len(self) > BRIEFLY else ""
        return first_lines(f"{self.shown(BRIEFLY)}{more}")

    def __str__(self) -> str:
        return self.shown()

    def _is_loose(self, name: str) -> Bools:
        return np.asarray(self.bounds[name] >= self.max_regret * (1.0 - ROUNDING))


def _brief(value: float) -> str:
    return f"{value:.3f}"


def of_parts(
    name: str, parts: Sequence[tuple[float, str, Tightness]], query_ids: Sequence[Hashable], shared: bool
) -> Tightness:
    """The table of a mix called `name`. parts: the weight C_l, name and table of each. query_ids: of the data, in order
    (a query counts that is in one of the tables). Every number of a query is Σ_l C_l times that of part l; where the
    slack is shared the largest of these, and the growth of the bound is that of the part with the largest."""
    tables = [table for _, _, table in parts]
    known = {query: int(count) for table in tables for query, count in zip(table.query, table.documents, strict=True)}
    chosen = [query for query in query_ids if query in known]
    index = {query: number for number, query in enumerate(chosen)}
    rows = [np.array([index[query] for query in table.query], dtype=np.int64) for table in tables]

    def spread(columns: Sequence[Floats]) -> Floats:
        total = np.zeros((len(parts), len(chosen)))
        for number, ((weight, _, _), own, column) in enumerate(zip(parts, rows, columns, strict=True)):
            total[number, own] = weight * column
        return total

    def mixed(columns: Sequence[Floats]) -> Floats:
        every = spread(columns)
        return np.asarray(every.max(axis=0) if shared else every.sum(axis=0))

    first = tables[0]
    growth = spread([table.growth for table in tables])
    if shared:
        largest = spread([table.bound for table in tables]).argmax(axis=0)
        grown = growth[largest, np.arange(len(chosen))]
    else:
        grown = growth.sum(axis=0)
    return replace(
        first,
        measure=name,
        query=tuple(chosen),
        documents=np.array([known[query] for query in chosen], dtype=np.int64),
        regret=mixed([table.regret for table in tables]),
        expected=mixed([table.expected for table in tables]),
        bounds={bound: mixed([table.bounds[bound] for table in tables]) for bound in first.bounds},
        max_regret=mixed([table.max_regret for table in tables]),
        growth=grown,
        parts={part: table for _, part, table in parts},
    )


def lines_of(columns: Mapping[str, Sequence[object]]) -> list[str]:
    """A line of names and a line a row; columns are of one length.

    >>> print(*lines_of({"query": ["a", "bcd"], "regret": [0.5, 0.25]}), sep="\\n")
    query  regret
    a      0.5000
    bcd    0.2500
    """
    texts = [[text_of(value) for value in column] for column in columns.values()]
    left = [any(isinstance(value, str) for value in column) for column in columns.values()]
    return aligned([[*columns], *map(list, zip(*texts, strict=True))], left)


def text_of(value: object) -> str:
    """A number to four decimals, all else as it is."""
    if isinstance(value, Integral) or not isinstance(value, Real):
        return str(value)
    return f"{float(value):.4f}" if abs(float(value)) < 1e4 else f"{float(value):.4g}"
