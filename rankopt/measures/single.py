"""One measure as text: `name`, `name@k`, `name(option=value, ...)@k`, or a word of trec_eval, `ndcg_cut_10`."""

import ast
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from rankopt.errors import MeasureError
from rankopt.measures import MEASURES
from rankopt.measures.foreign import options_of, our_spelling, trec_name
from rankopt.measures.measure import Measure

ALIASES = {
    "map": "AP", "mrr": "RR", "prec": "P", "precision": "P", "mean_ndcg": "MeanNDCG", "recall": "R", "recip_rank": "RR",
}  # fmt: skip
"""Names of other programs, in lower case."""


def measure_of(text: str) -> Measure:
    """The measure that the text says; MeasureError for anything else."""
    theirs = trec_name(text)
    if theirs is not None:
        return measure_with(theirs[0], {}, theirs[1])
    try:
        tree = ast.parse(our_spelling(text).strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _unreadable(text) from error
    cutoff = None
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.MatMult):
        cutoff, tree = _literal(tree.right, text), tree.left
    options = {}
    if isinstance(tree, ast.Call) and tree.args and isinstance(tree.func, ast.Name):
        raise _unnamed(named(tree.func.id), text, [_literal(value, text) for value in tree.args])
    if isinstance(tree, ast.Call) and not tree.args:
        options = {str(keyword.arg): _literal(keyword.value, text) for keyword in tree.keywords}
        tree = tree.func
    if not isinstance(tree, ast.Name):
        raise _unreadable(text)
    return measure_with(tree.id, options, cutoff)


def measure_with(name: str, options: Mapping[str, Any], cutoff: Any) -> Measure:
    """The measure of that name with these options, ours or those of ir_measures, and this cutoff, None for none."""
    measure = named(name)
    found = options_of(measure.name, options)
    if found:
        measure = measure(**found)
    return measure if cutoff is None else measure @ cutoff


def named(name: str) -> Measure:
    """The measure of that name in the table, with its default options."""
    written = {known.lower(): known for known in MEASURES} | ALIASES
    key = name.lower()
    if key not in written or written[key] not in MEASURES:
        close = get_close_matches(key, written, n=1, cutoff=0.7)
        hint = f"did you mean {written[close[0]]}? There" if close else "there"
        raise MeasureError(f"There is no measure {name!r}; {hint} are {', '.join(MEASURES)}.")
    module, _, attribute = MEASURES[written[key]].partition(":")
    measure = getattr(import_module(module), attribute)
    assert isinstance(measure, Measure)
    return measure


def _literal(node: ast.expr, text: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise _unreadable(text) from error


def _unnamed(measure: Measure, text: str, values: list[Any]) -> MeasureError:
    """For options that are given without their names; the cure says those that are always written, or all."""
    known = [one for one in fields(measure) if "option" in one.metadata]
    shown = [one.metadata["option"] for one in known if one.metadata.get("shown")]
    told = shown or [one.metadata["option"] for one in known]
    if len(told) == len(values):
        said = f"{measure.name}({', '.join(f'{name}={value!r}' for name, value in zip(told, values, strict=True))})"
    else:
        said = repr(measure) if shown or not told else f"{measure.name}({', '.join(f'{name}=...' for name in told)})"
    return MeasureError(f"The measure {text!r} cannot be read because its options have no names; write {said}.")


def _unreadable(text: str) -> MeasureError:
    return MeasureError(
        f"The measure {text!r} cannot be read; write name(option=value)@k, as in nDCG(gain='linear')@10, or a sum."
    )
