"""Measures as frozen values with a name, options and a cutoff; conventions of evaluation.

A positional measure is an inner product: value(order) = Σ_j a[π(j)] b(y)_j - constant. The discount a weighs positions
and is non-increasing. The gain b weighs documents and is non-decreasing in the grade. Sorting by grade is therefore
optimal, and the regret best - value is non-negative.

The formula of a measure leaves choices open: gain, discount, the value of a query without relevant documents, nDCG@10
of a list of 7, and the order of ties. The convention is an argument and is printed with every result.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np

from formulations.arrays import Bools, Floats, Ints, to_integer
from formulations.typing import Integer
from rankopt.errors import MeasureError
from rankopt.measures.tied_ranking import Ranking, descending, position_in_query, query_of_row, totals

if TYPE_CHECKING:
    from formulations.problems.relevance_values import GainTable


Gain = Literal["exp2", "linear"]
Discount = Literal["log2", "letor"]
Empty = Literal["skip"]
Short = Literal["own", "zero", "zero-ndcg"]
Ties = Literal["average", "input", "worst", "id"]


@dataclass(frozen=True)
class Convention:
    """The choices of an evaluation that the formula of a measure leaves open.

    gain          default gain of DCG and nDCG: "exp2" 2^y - 1, "linear" y, None the measure's own default
    discount      default discount: "log2" 1/log2(i + 1), or LETOR's "letor" 1, 1, 1/log2(i) from i = 3
    no_relevant   value of a query on which the measure is undefined (no relevant document for nDCG, NERU, AP, RR; one
                  class only for AUC): 0, 1, or "skip" to exclude it from the mean. DCG, P and ERR are 0 there
    fewer_than_k  value at cutoff k of a query with fewer than k documents: "own" that of the full list, "zero" 0 for
                  nDCG and P, "zero-ndcg" 0 for nDCG only
    ties          documents of equal score: "average" the exact mean over all their orders, "input" the input order,
                  "worst" worst first, "id" by document id, descending
    float32       round scores to single precision first, which creates ties (as trec_eval does)
    """

    gain: Gain | None = None
    discount: Discount | None = None
    no_relevant: float | Empty = "skip"
    fewer_than_k: Short = "own"
    ties: Ties = "average"
    float32: bool = False

    def __post_init__(self) -> None:
        for name, value, known in (
            ("gain", self.gain, (None, *get_args(Gain))),
            ("discount", self.discount, (None, *get_args(Discount))),
            ("no_relevant", self.no_relevant, ("skip", 0.0, 1.0)),
            ("fewer_than_k", self.fewer_than_k, get_args(Short)),
            ("ties", self.ties, get_args(Ties)),
            ("float32", self.float32, (False, True)),
        ):
            if not isinstance(value, str | float | int | None) or value not in known:
                choices = ", ".join(repr(choice) for choice in known)
                raise MeasureError(f"A convention cannot have {name}={value!r}; choose one of {choices}.")

    @property
    def name(self) -> str:
        """The names in `conventions` that mean this convention ("letor2 = letor3"), or its fields written out."""
        return " = ".join(name for name, known in conventions.items() if known == self) or repr(self)


_LETOR = Convention(gain="exp2", discount="letor", no_relevant=0.0, fewer_than_k="zero", ties="input")

conventions: dict[str, Convention] = {
    "default": Convention(),
    "letor2": _LETOR,
    "letor3": _LETOR,
    "letor4": Convention(gain="exp2", discount="letor", no_relevant=0.0, fewer_than_k="zero-ndcg", ties="input"),
    "trec": Convention(gain="linear", discount="log2", no_relevant=0.0, ties="id", float32=True),
    "sklearn": Convention(gain="linear", discount="log2", no_relevant=0.0),
    "burges": Convention(gain="exp2", discount="log2", no_relevant=0.0),
    "lightgbm": Convention(gain="exp2", discount="log2", no_relevant=1.0, ties="input"),
    "xgboost": Convention(gain="exp2", discount="log2", no_relevant=1.0, ties="input", float32=True),
}
"""Named conventions.

default   ties averaged, undefined queries excluded from the mean
letor2    the evaluation script of LETOR 2.0, whose successor `letor3` computes the same
letor4    the script of LETOR 4.0: P@k of a short list divides by k
trec      trec_eval
sklearn   `sklearn.metrics.ndcg_score`, `dcg_score`
burges    RankNet's formula: exponential gain, logarithmic discount from the first position
lightgbm  nDCG of LightGBM's log, and its MAP without a cutoff: 1 on a query without relevant documents. Its map@k
          divides by min(k, number of relevant documents), AP@k by the number
xgboost   the same of XGBoost's log, of scores in single precision
"""


def convention_named(convention: str | Convention) -> Convention:
    """Look up a convention by name; a Convention is returned unchanged. MeasureError for unknown names."""
    if isinstance(convention, Convention):
        return convention
    if not isinstance(convention, str) or convention not in conventions:
        raise MeasureError(f"There is no convention {convention!r}; choose one of {', '.join(conventions)}.")
    return conventions[convention]


@dataclass(frozen=True, repr=False)
class Measure:
    """A measure, written `name(options)@cutoff`.

    Calling a measure sets options, `@` sets the cutoff; both return a new value. An option is a field with the metadata
    {"option": its name in the notation}, and {"shown": True} if it is printed even at its default.

    >>> from rankopt.measures import nDCG
    >>> nDCG(gain="linear") @ 10
    nDCG(gain='linear')@10
    """

    name: ClassVar[str]
    trainable: ClassVar[bool] = False
    """Whether it is an inner product of a discount and a gain, the form that training needs."""
    has_gain_table: ClassVar[bool] = False
    """Whether `gain_table` is implemented, as the pairwise and first-relevant feature maps require."""
    graded: ClassVar[bool] = False
    """Whether its gain table depends on the grades, not only on their order."""
    takes_cutoff: ClassVar[bool] = True
    averages_exchanges: ClassVar[bool] = False
    """Whether `values` averages over exchanges of documents of one class (`Ranking.classes`)."""
    max_value: ClassVar[float] = np.inf
    """The largest value; evaluation never exceeds it by rounding."""
    sweep_kind: ClassVar[str] = "crossings"
    """The sweep algorithm: "positions" for a discount and a gain, "precision" for `AP`, "cascade" for `ERR`,
    "first relevant" for `RR`, "sum" for `summands`, else "crossings"."""
    zero_if_short: ClassVar[tuple[str, ...]] = ()
    """Settings of `Convention.fewer_than_k` under which a query with fewer documents than the cutoff has value 0."""

    cutoff: int | None = field(default=None, kw_only=True)

    def __call__(self, **options: Any) -> Self:
        """The measure with these options. MeasureError for unknown options."""
        names = {f.metadata["option"]: f.name for f in fields(self) if "option" in f.metadata}
        for option in options:
            if option not in names:
                known = f"its options are {', '.join(names)}" if names else "it has none"
                raise MeasureError(f"{self.name} has no option {option!r}; {known}.")
        return replace(self, **{names[option]: value for option, value in options.items()})

    def __matmul__(self, cutoff: Integer) -> Self:
        """The measure on the first `cutoff` positions."""
        if not self.takes_cutoff:
            raise MeasureError(f"{self.name} takes no cutoff: it is defined on all positions; write {self.name}.")
        k = to_integer(cutoff)
        if k is None or k < 1:
            raise MeasureError(f"A cutoff cannot be {cutoff!r}; write {self.name}@k with an integer k >= 1.")
        return replace(self, cutoff=k)

    def __repr__(self) -> str:
        options = ", ".join(
            f"{f.metadata['option']}={_option_text(getattr(self, f.name))}"
            for f in fields(self)
            if "option" in f.metadata and (f.metadata.get("shown") or getattr(self, f.name) != f.default)
        )
        return self.name + (f"({options})" if options else "") + ("" if self.cutoff is None else f"@{self.cutoff}")

    def with_convention(self, convention: Convention) -> Self:
        """The measure with unset options taken from the convention."""
        return self

    def defined(self, relevance: Floats, offsets: Ints) -> Bools:
        """Which queries (m,) the measure is defined on; the convention sets the value of the others."""
        return np.ones(len(offsets) - 1, dtype=np.bool_)

    def is_inner_product(self, relevance: Floats, offsets: Ints) -> bool:
        """Whether it is an inner product a[π]ᵀb of a discount and a gain on all these queries."""
        return False

    def optimal_rankings(self, relevance: Floats, offsets: Ints) -> tuple[Floats, Floats]:
        """b (N,) of documents and non-increasing a (N,) of positions whose a[π]ᵀb is maximal exactly for the
        optimal rankings of the measure. Raises MeasureError for a measure without them, which cannot be trained on.
        """
        raise MeasureError(f"{self} cannot be trained on: it defines no optimal rankings; use it for evaluation.")

    def gain_table(self, classes: Floats, relevance: Floats, offsets: Ints) -> GainTable:
        """The gain of documents at each position, a function of the relevance vector; see `has_gain_table`.

        classes: (N,) grade classes that the measure distinguishes: 0 and 1 for binary measures, else counted from 0.
        """
        raise NotImplementedError(f"{type(self).__name__} has no gain table; evaluate with it.")

    def values(self, ranking: Ranking) -> Floats:
        """The value (m,) of each query, averaged over the orders of tie groups; 0 where undefined."""
        raise NotImplementedError(f"{type(self).__name__} has no `values`; write it.")


def _option_text(value: Any) -> str:
    """Shortest form of numbers that parses back; functions by name."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return getattr(value, "__qualname__", None) or repr(value)


@dataclass(frozen=True, repr=False)
class PositionalMeasure(Measure):
    """A measure defined by `discount`, `gain` and an optional `constant`."""

    trainable: ClassVar[bool] = True
    averages_exchanges: ClassVar[bool] = True
    has_gain_table: ClassVar[bool] = True
    sweep_kind: ClassVar[str] = "positions"

    def discount(self, n: int) -> Floats:
        """Position weights a (n,): non-increasing, 0 beyond the cutoff."""
        raise NotImplementedError(f"{type(self).__name__} has no `discount`; write it.")

    def gain(self, relevance: Floats, offsets: Ints) -> Floats:
        """Document weights b (N,) of all queries; all 0 in queries on which the measure is undefined."""
        raise NotImplementedError(f"{type(self).__name__} has no `gain`; write it.")

    def constant(self, relevance: Floats, offsets: Ints) -> Floats:
        """The constant (m,) subtracted from the inner product of each query."""
        return np.zeros(len(offsets) - 1)

    def discounts(self, offsets: Ints) -> Floats:
        """The discount (N,) of every position of every query."""
        lengths, which = np.unique(np.diff(offsets), return_inverse=True)
        if len(lengths) == 0:
            return np.zeros(0)
        table = np.concatenate([self.discount(int(n)) for n in lengths])
        starts = np.cumsum(lengths) - lengths
        return np.asarray(table[starts[which][query_of_row(offsets)] + position_in_query(offsets)])

    def is_inner_product(self, relevance: Floats, offsets: Ints) -> bool:
        return True

    def optimal_rankings(self, relevance: Floats, offsets: Ints) -> tuple[Floats, Floats]:
        return self.gain(relevance, offsets), self.discounts(offsets)

    def gain_table(self, classes: Floats, relevance: Floats, offsets: Ints) -> GainTable:
        from formulations.problems.relevance_losses import Discounted

        return Discounted(self.discount, self.gain(relevance, offsets)).gain_table(relevance, offsets)

    def best(self, relevance: Floats, offsets: Ints) -> Floats:
        """The value (m,) of the best order of each query."""
        gain = self.gain(relevance, offsets)
        return best_sum(self.discounts(offsets), gain, offsets) - self.constant(relevance, offsets)

    def values(self, ranking: Ranking) -> Floats:
        """Linear in a, so the mean over the orders of a tie group is that of its mean discount."""
        gain = self.gain(ranking.relevance, ranking.offsets)
        products = ranking.averaged(self.discounts(ranking.offsets)) * ranking.exchanged(gain) * ranking.retrieved
        return totals(products, ranking.offsets) - self.constant(ranking.relevance, ranking.offsets)


def best_sum(discounts: Floats, gain: Floats, offsets: Ints) -> Floats:
    """max over orders of Σ_j a[π(j)] b_j of each query (m,): largest gains first."""
    return totals(discounts * descending(gain, offsets), offsets)


def per_best(gain: Floats, discounts: Floats, offsets: Ints) -> Floats:
    """The gains divided by the best sum of their query; 0 where that is 0."""
    best = best_sum(discounts, gain, offsets)
    if not np.all(np.isfinite(best)):
        raise MeasureError(
            f"The gains of query {int(np.argmin(np.isfinite(best)))} (from 0) are too large to add up; "
            "use gain='linear' or smaller grades."
        )
    scale = np.divide(1.0, best, out=np.zeros_like(best), where=best > 0)
    return np.asarray(gain * scale[query_of_row(offsets)])
