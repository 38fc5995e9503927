"""Measures as text: `name`, `name@k`, `name(option=value, ...)@k`, and sums of such.

    nDCG@10    nDCG(gain='linear')@10    ERU(alpha=5, d=3)    P(rel=2)@5    ndcg@10    MAP    2 AP + RR[pairwise]

Names are read in any case; values are Python literals. Words of trec_eval (ndcg_cut_10, map, recip_rank, P_5, bpref)
and measures of ir_measures, as text or as they are, mean the same here,
and α-nDCG is alpha_nDCG: `rankopt.measures.foreign`.
"""

from typing import Any

from rankopt.errors import MeasureError
from rankopt.measures.foreign import is_foreign, words_of
from rankopt.measures.measure import Measure
from rankopt.measures.measure_mix import mix_of
from rankopt.measures.single import measure_of, measure_with

__all__ = ["parse"]


def parse(text: str | Measure | Any) -> Measure:
    """The measure that the text says; a measure is returned as it is. MeasureError for anything else."""
    if isinstance(text, Measure):
        return text
    if is_foreign(text):
        return measure_with(*words_of(text))
    if not isinstance(text, str):
        raise MeasureError(f"A measure cannot be {text!r}; write it as text ('nDCG@10') or as a value (nDCG @ 10).")
    mix = mix_of(text)
    return measure_of(text) if mix is None else mix
