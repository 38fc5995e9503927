"""Measures of rankings as values: they print, parse, compare and hash.

    value(order) = Σ_j a[π(j)] b(y)_j - constant        positional measures: a the discount, b the gain
    regret       = best value - value                   never negative

>>> from rankopt.measures import evaluate, nDCG, parse
>>> nDCG @ 10
nDCG@10
>>> parse("nDCG(gain='linear')@10") == nDCG(gain="linear") @ 10
True
>>> print(evaluate([2, 1, 0, 0], [.1, .9, .5, .5], nDCG @ 4))  # grades and scores of one query
measure     mean  queries  tied    (convention default)
nDCG@4    0.6313        1     0

A new family of measures is one file here and one line in `MEASURES`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rankopt.measures.convention import Convention, conventions
    from rankopt.measures.evaluation import Evaluation, evaluate
    from rankopt.measures.measure import Measure
    from rankopt.measures.notation import parse
    from rankopt.measures.positional import Positional

MEASURES = {
    "nDCG": "rankopt.measures.dcg:nDCG",
    "DCG": "rankopt.measures.dcg:DCG",
    "P": "rankopt.measures.precision:P",
    "WTA": "rankopt.measures.winner_takes_all:WTA",
    "RR": "rankopt.measures.reciprocal_rank:RR",
    "ERU": "rankopt.measures.expected_utility:ERU",
    "NERU": "rankopt.measures.expected_utility:NERU",
    "AUC": "rankopt.measures.auc:AUC",
    "Custom": "rankopt.measures.custom:Custom",
    "AP": "rankopt.measures.average_precision:AP",
    "ERR": "rankopt.measures.expected_reciprocal_rank:ERR",
    "MeanNDCG": "rankopt.measures.mean_ndcg:MeanNDCG",
}
"""Every measure: its name in the notation, and where it lives."""

_OTHER = {
    "Convention": "rankopt.measures.convention:Convention",
    "Evaluation": "rankopt.measures.evaluation:Evaluation",
    "Measure": "rankopt.measures.measure:Measure",
    "Positional": "rankopt.measures.positional:Positional",
    "conventions": "rankopt.measures.convention:conventions",
    "evaluate": "rankopt.measures.evaluation:evaluate",
    "parse": "rankopt.measures.notation:parse",
}

__all__ = ["Convention", "Evaluation", "Measure", "Positional", "conventions", "evaluate", "parse"]


def __getattr__(name: str) -> Any:
    where = MEASURES.get(name) or _OTHER.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = where.partition(":")
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return sorted([*globals(), *MEASURES, *_OTHER])
