"""What evaluators disagree about, as data.

A measure's formula leaves things open: which gain, which discount, what a query without relevant documents counts, what
NDCG@10 of a list of 7 is, and in which order documents of equal score stand. Each published number was computed under
some answer to these, so the answer is an argument and is printed with every result.
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
    """How the open points are settled.

    gain      of DCG and nDCG that name none: "exp2" 2^y - 1, "linear" y, None the measure's own default
    discount  likewise: "log2" 1/log2(i + 1), or LETOR's "letor" 1, 1, 1/log2(i) from i = 3
    empty     what a query counts on which the measure is not defined (no relevant document for nDCG, NERU, AP, RR; one
              class only for AUC): 0, 1, or "skip" to leave it out of the mean. Sums such as DCG, P and ERR are
              defined there, as 0
    short     value at a cutoff k of a query with fewer than k documents: "own" that of the whole list, "zero" 0 for
              nDCG and P, "zero-ndcg" 0 for nDCG only
    ties      documents of equal score: "average" the exact mean over all their orders, "input" as they are given,
              "worst" worst first, "id" by document id, descending
    float32   scores are rounded to single precision first, which makes ties (trec_eval does so)
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

default   ties averaged, undefined queries left out of the mean: neither the order of the file nor a query on which
          every order is as good as any other says anything about a ranker
letor2    the evaluation script of LETOR 2.0, whose successor `letor3` computes the same
letor4    the script of LETOR 4.0: P@k of a short list divides by k
trec      trec_eval
sklearn   `sklearn.metrics.ndcg_score`, `dcg_score`
burges    RankNet's formula: exponential gain, logarithmic discount from the first position
"""


def convention_named(convention: str | Convention) -> Convention:
    """The convention of that name; a convention is returned as it is. MeasureError for unknown names."""
    if isinstance(convention, Convention):
        return convention
    if convention not in conventions:
        raise MeasureError(f"There is no convention {convention!r}; choose one of {', '.join(conventions)}.")
    return conventions[convention]
