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

A new measure needs a class in one of these files and an entry in `MEASURES`.
"""

from typing import TYPE_CHECKING

from formulations.registry import lazy, public_names

if TYPE_CHECKING:
    from rankopt.evaluation.comparison import Comparison as Comparison
    from rankopt.evaluation.comparison import compare as compare
    from rankopt.evaluation.comparison import holm as holm
    from rankopt.evaluation.evaluation import Evaluation as Evaluation
    from rankopt.evaluation.evaluation import evaluate as evaluate
    from rankopt.evaluation.evaluation import ndcg_scorer as ndcg_scorer
    from rankopt.evaluation.runs import RunComparison as RunComparison
    from rankopt.evaluation.runs import compare_runs as compare_runs
    from rankopt.evaluation.trec import join as join
    from rankopt.evaluation.trec import read_qrels as read_qrels
    from rankopt.evaluation.trec import read_run as read_run
    from rankopt.evaluation.trec import write_qrels as write_qrels
    from rankopt.evaluation.trec import write_run as write_run
    from rankopt.measures.average_precision import AP as AP
    from rankopt.measures.average_precision import AUC as AUC
    from rankopt.measures.binary import WTA as WTA
    from rankopt.measures.binary import P as P
    from rankopt.measures.binary import R as R
    from rankopt.measures.binary import Rprec as Rprec
    from rankopt.measures.dcg import DCG as DCG
    from rankopt.measures.dcg import Custom as Custom
    from rankopt.measures.dcg import MeanNDCG as MeanNDCG
    from rankopt.measures.dcg import nDCG as nDCG
    from rankopt.measures.first_relevant import RR as RR
    from rankopt.measures.first_relevant import Success as Success
    from rankopt.measures.measure import Convention as Convention
    from rankopt.measures.measure import Measure as Measure
    from rankopt.measures.measure import PositionalMeasure as PositionalMeasure
    from rankopt.measures.measure import conventions as conventions
    from rankopt.measures.notation import MeasureMix as MeasureMix
    from rankopt.measures.notation import parse as parse
    from rankopt.measures.user_models import ERR as ERR
    from rankopt.measures.user_models import ERU as ERU
    from rankopt.measures.user_models import NERU as NERU
    from rankopt.measures.user_models import RBP as RBP

_NAMES = public_names(__name__)
MEASURES = {name: _NAMES[name] for name in (
    "nDCG", "DCG", "P", "WTA", "RR", "ERU", "NERU", "AUC", "Custom", "AP", "ERR", "MeanNDCG", "R", "Rprec", "RBP",
    "Success",
)}  # fmt: skip
"""Every measure: name in the notation -> "module:object"."""

PARTS = {name: place for name, place in _NAMES.items() if name not in MEASURES}
"""The other public names, `name: "module:object"`."""

__all__ = [*MEASURES, *PARTS]

if not TYPE_CHECKING:  # a type checker would accept any misspelled name
    __getattr__, __dir__ = lazy(__name__, _NAMES)
