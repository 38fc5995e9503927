"""Measures as other programs name them: trec_eval's words, and the objects of ir_measures, which is not imported.

    trec_eval    map  map_cut_10  ndcg  ndcg_cut.10  P_5  recall_100  recip_rank  Rprec  bpref  infAP  success_5
    ir_measures  nDCG@10  nDCG(dcg='exp-log2')@10  AP(rel=2)@100  RBP(p=0.8,rel=1)  Bpref  Judged@10   text or object

Formulas are taken over, conventions are not: what nDCG counts for a grade is the convention's to say unless the name
does, and "trec" is that of both programs.
"""

import re
from collections.abc import Mapping
from typing import Any

from rankopt.errors import MeasureError

__all__ = ["is_foreign", "options_of", "our_spelling", "trec_name", "words_of"]

WHOLE = {"map": "AP", "ndcg": "nDCG", "recip_rank": "RR", "rprec": "Rprec", "bpref": "Bpref", "infap": "infAP"}
CUT = {"map_cut": "AP", "ndcg_cut": "nDCG", "p": "P", "recall": "R", "success": "Success"}
"""Names of trec_eval in lower case: alone, and with a cutoff behind "_" or "."."""

_CUT = re.compile(r"(?P<name>[A-Za-z_]+)[_.](?P<cutoff>[0-9]{1,18})")

_ALPHA = re.compile(r"\s*(?:alpha|α)[-_](?=ndcg\b)", re.IGNORECASE)

DCG = {"log2": "linear", "exp-log2": "exp2"}
"""What ir_measures calls a formula of DCG, and its gain."""


def trec_name(text: str) -> tuple[str, int | None] | None:
    """The measure's own name and its cutoff, where the text is a word of trec_eval."""
    word = text.strip()
    if word.lower() in WHOLE:
        return WHOLE[word.lower()], None
    found = _CUT.fullmatch(word)
    if found is None or found["name"].lower() not in CUT:
        return None
    return CUT[found["name"].lower()], int(found["cutoff"])


def our_spelling(text: str) -> str:
    """The text, with alpha_nDCG as we write it where it begins as papers and ndeval do: α-nDCG, alpha-nDCG, α_nDCG."""
    return _ALPHA.sub("alpha_", text, count=1) if _ALPHA.match(text) else text


def is_foreign(measure: Any) -> bool:
    """Whether it is a measure of ir_measures: it has a NAME and `params`."""
    return isinstance(getattr(measure, "NAME", None), str) and isinstance(getattr(measure, "params", None), Mapping)


def words_of(measure: Any) -> tuple[str, dict[str, Any], Any]:
    """Name, options and cutoff of a measure of ir_measures."""
    options = dict(measure.params)
    return measure.NAME, options, options.pop("cutoff", None)


def options_of(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of ir_measures in our words. MeasureError for what is not computed here."""
    found = dict(options)
    if "judged_only" in found and not found.pop("judged_only"):
        return options_of(name, found)
    if "judged_only" in options:
        raise MeasureError(
            f"{name} cannot leave out unjudged documents here; write Bpref, which ignores them, or cut them out."
        )
    if "dcg" in found and name.lower() in ("ndcg", "dcg"):
        formula = found.pop("dcg")
        if formula not in DCG:
            raise MeasureError(f"{name} cannot have dcg={formula!r}; write one of {', '.join(map(repr, DCG))}.")
        found["gain"] = DCG[formula]
    if isinstance(found.get("gains"), Mapping):
        found["gain"] = _table(name, found.pop("gains"))
    return found


def _table(name: str, gains: Mapping[Any, Any]) -> tuple[float, ...]:
    """Gains of grades 0, 1, ..., of which those that are not listed count themselves."""
    whole = [grade for grade in gains if isinstance(grade, int) and 0 <= grade < 1000]
    if len(whole) < len(gains) or not whole:
        raise MeasureError(f"{name} cannot have gains={dict(gains)!r}; list whole grades from 0 to 999.")
    return tuple(float(gains.get(grade, grade)) for grade in range(max(whole) + 1))
