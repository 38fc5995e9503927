"""Evaluation conventions: the choices on which evaluation tools differ.

The formula of a measure leaves choices open: gain, discount, the value of a query without relevant documents, nDCG@10
of a list of 7, and the order of ties. The convention is an argument and is printed with every result.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from rankopt.errors import MeasureError

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
            if value not in known:
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
}
"""Named conventions.

default   ties averaged, undefined queries excluded from the mean
letor2    the evaluation script of LETOR 2.0, whose successor `letor3` computes the same
letor4    the script of LETOR 4.0: P@k of a short list divides by k
trec      trec_eval
sklearn   `sklearn.metrics.ndcg_score`, `dcg_score`
burges    RankNet's formula: exponential gain, logarithmic discount from the first position
"""


def convention_named(convention: str | Convention) -> Convention:
    """Look up a convention by name; a Convention is returned unchanged. MeasureError for unknown names."""
    if isinstance(convention, Convention):
        return convention
    if convention not in conventions:
        raise MeasureError(f"There is no convention {convention!r}; choose one of {', '.join(conventions)}.")
    return conventions[convention]
