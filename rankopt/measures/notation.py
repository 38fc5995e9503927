"""Measures as text: `name`, `name@k`, `name(option=value, ...)@k`, and sums of such.

    nDCG@10    nDCG(gain='linear')@10    ERU(alpha=5, d=3)    P(rel=2)@5    ndcg@10    MAP    2 AP + RR[pairwise]

Names are case-insensitive; values are Python literals. Names of trec_eval (ndcg_cut_10, map, recip_rank, P_5, bpref)
and measures of ir_measures, as text or objects, are accepted. Measures that are not implemented here (Bpref, infAP,
Judged@10) are computed by ir-measures from a run and qrels.

A sum of measures: several criteria in one model [paper 4, SVMcombo].

    mix = Σ_l C_l measure_l                "AP + nDCG@10 + 2 RR"

With one slack per part, the loss of a query is Σ_l C_l loss_l; with one shared slack it is max_l C_l loss_l. Parts may
have their own feature maps: "AP[pairwise] + RR[first-relevant]". Weights and maps distribute over brackets:
"2 (AP + RR)". "1 AP" is a mix of one part, "AP" the measure.

>>> MeasureMix({"AP": 1, "nDCG@10": 2}, slack="shared")
(AP + 2 nDCG@10)(slack='shared')

Names of other programs:

    trec_eval    map  map_cut_10  ndcg  ndcg_cut.10  P_5  recall_100  recip_rank  Rprec  bpref  infAP  success_5
    ir_measures  nDCG@10  nDCG(dcg='exp-log2')@10  AP(rel=2)@100  RBP(p=0.8,rel=1)  Bpref  Judged@10   text or object

Formulas are adopted, conventions are not: the gain of nDCG comes from the convention unless the name sets it. "trec" is
the convention of both programs.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Self

import numpy as np

from formulations.arrays import Bools, Floats, Ints, each
from formulations.typing import Integer
from rankopt.errors import MeasureError
from rankopt.measures import MEASURES
from rankopt.measures.measure import Convention, Measure
from rankopt.measures.tied_ranking import Ranking, query_of_row

UNCUT = {"map": "AP", "ndcg": "nDCG", "recip_rank": "RR", "rprec": "Rprec", "bpref": "Bpref", "infap": "infAP"}
CUT = {"map_cut": "AP", "ndcg_cut": "nDCG", "p": "P", "recall": "R", "success": "Success"}
"""Names of trec_eval in lower case: without a cutoff, and with one after "_" or "."."""

_CUT = re.compile(r"(?P<name>[A-Za-z_]+)[_.](?P<cutoff>[0-9]{1,18})")
DCG = {"log2": "linear", "exp-log2": "exp2"}  # DCG formulas of ir_measures and their gains


def trec_name(text: str) -> tuple[str, int | None] | None:
    """Our name and the cutoff of a trec_eval measure; None for other text."""
    word = text.strip()
    if word.lower() in UNCUT:
        return UNCUT[word.lower()], None
    found = _CUT.fullmatch(word)
    if found is None or found["name"].lower() not in CUT:
        return None
    return CUT[found["name"].lower()], int(found["cutoff"])


def options_of(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of ir_measures under our names. MeasureError for unsupported ones."""
    found = dict(options)
    found.pop("judged_only", None)
    if "dcg" in found and name.lower() in ("ndcg", "dcg"):
        formula = found.pop("dcg")
        if formula not in DCG:
            raise MeasureError(f"{name} cannot have dcg={formula!r}; write one of {', '.join(map(repr, DCG))}.")
        found["gain"] = DCG[formula]
    if isinstance(found.get("gains"), Mapping):
        found["gain"] = _table(name, found.pop("gains"))
    return found


def _table(name: str, gains: Mapping[Any, Any]) -> tuple[float, ...]:
    """Gains of grades 0, 1, ...; a grade that is not listed is its own gain."""
    grades = [grade for grade in gains if isinstance(grade, int) and 0 <= grade < 1000]
    if len(grades) < len(gains) or not grades:
        raise MeasureError(f"{name} cannot have gains={dict(gains)!r}; use integer grades from 0 to 999.")
    return tuple(float(gains.get(grade, grade)) for grade in range(max(grades) + 1))


ALIASES = {
    "map": "AP", "mrr": "RR", "prec": "P", "precision": "P", "mean_ndcg": "MeanNDCG", "recall": "R", "recip_rank": "RR",
}  # fmt: skip
"""Names of other programs, in lower case."""

THEIRS = {
    "hit": "Success", "hits": "Success", "hitrate": "Success", "hr": "Success",
    "lambdarank": "nDCG", "lambdamart": "nDCG", "rankndcg": "nDCG", "rankmap": "AP", "rankpairwise": "AUC",
}  # fmt: skip
"""Objectives and measures of other programs, without signs, and the measure to suggest."""

NAMES = {name.lower(): name for name in MEASURES} | ALIASES  # measure name by lower-case alias


def measure_of(text: str) -> Measure:
    """Parse one measure. MeasureError for other text."""
    theirs = trec_name(text)
    if theirs is not None:
        return measure_with(theirs[0], {}, theirs[1])
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise _unreadable(text) from error
    cutoff = None
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.MatMult):
        cutoff, tree = _literal(tree.right, text), tree.left
    options = {}
    if isinstance(tree, ast.Call) and tree.args and isinstance(tree.func, ast.Name):
        raise _positional_option_error(
            measure_with(tree.func.id, {}, None), text, [_literal(value, text) for value in tree.args]
        )
    if isinstance(tree, ast.Call) and not tree.args:
        options = {  # a name is a word whose quotes the shell removed
            str(keyword.arg): keyword.value.id if isinstance(keyword.value, ast.Name) else _literal(keyword.value, text)
            for keyword in tree.keywords
        }
        tree = tree.func
    if not isinstance(tree, ast.Name):
        raise _unreadable(text)
    return measure_with(tree.id, options, cutoff)


def measure_with(name: str, options: Mapping[str, Any], cutoff: Any) -> Measure:
    """The measure of this name, options (ours or those of ir_measures) and cutoff or None."""
    if options.get("judged_only") or NAMES.get(name.lower()) is None:
        return _external(name, options, cutoff)
    measure = named(name)
    found = options_of(measure.name, options)
    if found:
        measure = measure(**found)
    return measure if cutoff is None else measure @ cutoff


def named(name: str) -> Measure:
    """The measure of this name in `MEASURES`, with default options."""
    known = NAMES.get(name.lower())
    if known is None:
        hint = f"did you mean {near}? There" if (near := _nearest(name)) else "there"
        more = "" if find_spec("ir_measures") else " For those of ir-measures run: pip install 'rankopt[trec]'."
        raise MeasureError(f"There is no measure {name!r}; {hint} are {', '.join(MEASURES)}.{more}")
    module, _, attribute = MEASURES[known].partition(":")
    measure = getattr(import_module(module), attribute)
    assert isinstance(measure, Measure)
    return measure


@dataclass(frozen=True, repr=False)
class ExternalMeasure(Measure):
    """A measure computed by ir-measures from a run and qrels. It cannot be trained."""

    computed: Any = None

    @property
    def name(self) -> str:  # type: ignore[override]
        return str(self.computed)

    def __call__(self, **options: Any) -> Self:
        return replace(self, computed=_valid(self.computed(**options)))

    def __matmul__(self, cutoff: Integer) -> Self:
        return replace(self, computed=_valid(self.computed @ cutoff))

    def values(self, ranking: Ranking) -> Floats:
        import ir_measures

        pool, grades = ranking.pool, ranking.relevance
        if pool is None:
            raise MeasureError(
                f"{self} needs the judgments of a run; evaluate(*join(read_qrels(...), read_run(...)), ...), or "
                "`rankopt evaluate --qrels QRELS RUN`."
            )
        if np.any(np.diff(ranking.group[pool.retrieved]) == 0):
            raise MeasureError(f"{self} has no mean over the orders of tied documents; use convention='trec'.")
        if np.any(grades % 1):
            raise MeasureError(f"{self} needs integer grades; got {grades[grades % 1 != 0][0]:g}. Round the grades.")
        qrels: dict[str, dict[str, int]] = {}
        run: dict[str, dict[str, float]] = {}
        for row, query in enumerate(map(str, query_of_row(ranking.offsets))):
            if pool.pooled[row]:
                qrels.setdefault(query, {})[str(row)] = int(grades[row]) if pool.judged[row] else -1
            if pool.retrieved[row]:
                run.setdefault(query, {})[str(row)] = float(-row)
        try:
            found = {one.query_id: one.value for one in ir_measures.iter_calc([self.computed], qrels, run)}
        except (RuntimeError, ValueError) as error:
            raise MeasureError(f"ir-measures cannot compute {self}: {error}.") from error
        return np.array([found.get(str(query), 0.0) for query in range(len(ranking.offsets) - 1)])


def _external(name: str, options: Mapping[str, Any], cutoff: Any) -> ExternalMeasure:
    """The measure of this name in ir-measures. MeasureError if it is unknown or ir-measures is not installed."""
    registry: dict[str, Any] = {}
    if find_spec("ir_measures"):
        from ir_measures import measures

        registry = measures.registry
    known = {one.lower(): one for one in registry}.get(name.lower())
    if known is None:
        named(name)
        raise MeasureError(f"{name} with judged_only=True is computed by ir-measures: pip install 'rankopt[trec]'.")
    kind = registry[known]
    if any(one.__module__.endswith("measures.diversity") for one in type(kind).__mro__):  # PyTerrier derives from them
        raise MeasureError(f"{known} needs subtopics, which qrels do not hold here; call ir_measures itself.")
    return ExternalMeasure(computed=_valid(kind(**options, **({} if cutoff is None else {kind.AT_PARAM: cutoff}))))


def _valid(measure: Any) -> Any:
    try:
        measure.validate_params()
    except AssertionError as error:
        raise MeasureError(f"ir-measures has no {measure.NAME} with {measure.params}: {error}.") from error
    return measure


def _literal(node: ast.expr, text: str) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise _unreadable(text) from error


def _positional_option_error(measure: Measure, text: str, values: list[Any]) -> MeasureError:
    """The error for positional options; it suggests the options that are always printed, or all."""
    known = [one for one in fields(measure) if "option" in one.metadata]
    shown = [one.metadata["option"] for one in known if one.metadata.get("shown")]
    named_options = shown or [one.metadata["option"] for one in known]
    if len(named_options) == len(values):
        pairs = zip(named_options, values, strict=True)
        text_with_names = f"{measure.name}({', '.join(f'{name}={value!r}' for name, value in pairs)})"
    else:
        listed = ", ".join(f"{name}=..." for name in named_options)
        text_with_names = repr(measure) if shown or not named_options else f"{measure.name}({listed})"
    return MeasureError(f"The measure {text!r} cannot be read: its options have no names; write {text_with_names}.")


def _nearest(text: str) -> str | None:
    """The measure, with its cutoff, that the text is likely to mean."""
    found = re.fullmatch(r"(.*?[a-z])(?:[^a-z]?at)?[^a-z0-9]*([1-9][0-9]{0,5})?", text[:80].lower())
    if found is None:
        return None
    words = NAMES | THEIRS
    bare = re.sub("[^a-z]", "", found[1])
    close = [bare] if bare in words else get_close_matches(found[1], NAMES, n=1, cutoff=0.7)
    return words[close[0]] + (f"@{found[2]}" if found[2] else "") if close else None


def _unreadable(text: str) -> MeasureError:
    hint = f"did you mean {near}? Write" if (near := _nearest(text)) else "write"
    return MeasureError(
        f"The measure {text!r} cannot be read; {hint} name(option=value)@k, as in nDCG(gain='linear')@10, or a sum."
    )


SLACKS = ("separate", "shared")
PARTS = 100  # maximum number of parts of a mix
LEAST, MOST = 1e-100, 1e100  # range of weights: training squares them, which must not leave double precision

_TERM = re.compile(
    r"((?P<weight>(\d[\d.]*|\.\d+)([eE][+-]?\d+)?)\s*\*?\s*)?(?P<measure>.*?)(\[(?P<map>[A-Za-z][^\[\]'\"]*)\])?",
    re.DOTALL,
)
_SLACK = re.compile(
    r"\((?P<sum>.*)\)\s*\(\s*slack\s*=\s*(?P<quote>['\"]?)(?P<slack>[^'\"()]*)(?P=quote)\s*\)", re.DOTALL
)


@dataclass(frozen=True)
class WeightedMeasure:
    """A part of a mix. weight: C_l > 0. feature_map: the feature map that trains it, None for the ranker's."""

    weight: float
    measure: Measure
    feature_map: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.weight, bool) or not isinstance(self.weight, int | float | np.number):
            raise MeasureError(f"A part of a mix cannot weigh {self.weight!r}; give a number above 0.")
        if not 0 < self.weight < math.inf:
            raise MeasureError(f"A part of a mix cannot weigh {self.weight:g}; give a finite number above 0.")
        if not LEAST <= self.weight <= MOST:
            raise MeasureError(
                f"{self.measure} cannot weigh {self.weight:g} in a mix because its square leaves double precision; "
                f"give a number from {LEAST:g} to {MOST:g}."
            )
        object.__setattr__(self, "weight", float(self.weight))

    def __str__(self) -> str:
        number = int(self.weight) if self.weight.is_integer() and self.weight < 1e15 else self.weight
        return (
            ("" if self.weight == 1 else f"{number!r} ")
            + f"{self.measure}"
            + (f"[{self.feature_map}]" if self.feature_map else "")
        )


@dataclass(frozen=True, repr=False)
class MeasureMix(Measure):
    """A weighted sum of measures, undefined where one of them is.

    parts: a mapping from measures, or their notation with or without a map in brackets, to weights; or a list of
    measures of weight 1. slack: "separate" or "shared"; it matters only in training.
    """

    parts: Any = ()
    slack: str = "separate"
    fewer_than_k: str = "own"

    def __post_init__(self) -> None:
        source = self.parts
        if isinstance(source, str | Measure) or not isinstance(source, Iterable):
            raise MeasureError(f"A mix cannot have the parts {source!r}; write a mapping, as in {{'AP': 1, 'RR': 2}}.")
        terms = (
            source.items()
            if isinstance(source, Mapping)
            else [(part, 1.0) for part in each("parts", source, MeasureError)]
        )
        parts = tuple(part for term, weight in terms for part in _parts_of(term, weight, self.slack))
        if not 0 < len(parts) <= PARTS:
            raise MeasureError(f"A mix cannot have {len(parts)} parts; give 1 to {PARTS}.")
        if not isinstance(self.slack, str) or self.slack not in SLACKS:
            raise MeasureError(f"A mix cannot have slack={self.slack!r}; write 'separate' or 'shared'.")
        object.__setattr__(self, "parts", parts)

    @property
    def name(self) -> str:  # type: ignore[override]
        return " + ".join(map(str, self.parts))

    def __call__(self, **options: Any) -> Self:
        if set(options) != {"slack"}:
            raise MeasureError(f"{self.name} has the option slack alone; set those of a part in its notation.")
        return replace(self, slack=options["slack"])

    def __matmul__(self, cutoff: Integer) -> Self:
        raise MeasureError(f"({self.name}) takes no cutoff for the sum; write one after each part.")

    def __repr__(self) -> str:
        if self.slack != "separate":
            return f"({self.name})(slack={self.slack!r})"
        alone = len(self.parts) == 1 and self.name == str(self.parts[0].measure)
        return f"1 {self.name}" if alone else self.name  # the name alone parses as the measure

    def with_convention(self, convention: Convention) -> Self:
        parts = tuple(replace(part, measure=part.measure.with_convention(convention)) for part in self.parts)
        return replace(self, parts=parts, fewer_than_k=convention.fewer_than_k)

    def defined(self, relevance: Floats, offsets: Ints) -> Bools:
        known = [part.measure.defined(relevance, offsets) for part in self.parts]
        return np.asarray(np.logical_and.reduce(known))

    @property
    def sweep_kind(self) -> str:  # type: ignore[override]
        """ "crossings" if a part requires it, else "sum"."""
        return "crossings" if any(part.measure.sweep_kind == "crossings" for part in self.parts) else "sum"

    def summands(self, offsets: Ints) -> list[tuple[Measure, Floats]]:
        """The measure of each part and its weight in each query (m,)."""
        lengths, found = np.diff(offsets), []
        for part in self.parts:
            weights = np.full(lengths.size, part.weight)
            if part.measure.cutoff is not None and self.fewer_than_k in part.measure.zero_if_short:
                weights[lengths < part.measure.cutoff] = 0.0
            found.append((part.measure, weights))
        return found

    def values(self, ranking: Ranking) -> Floats:
        total = np.zeros(len(ranking.offsets) - 1)
        for measure, weights in self.summands(ranking.offsets):
            total += weights * measure.values(ranking)
        return total


def mix_of(text: str) -> MeasureMix | None:
    """Parse a mix; None for one measure without weight and map. MeasureError for invalid text."""
    shared = _SLACK.fullmatch(text.strip())
    try:
        parts = _parts_in(shared["sum"] if shared else text)
    except RecursionError:
        raise MeasureError(f"The measure {text!r:.80} cannot be read because its brackets are too deep.") from None
    if parts is None:
        if shared is None:
            return None
        parts = (WeightedMeasure(1.0, measure_of(shared["sum"])),)
    return MeasureMix(parts, shared["slack"].strip() if shared else "separate")


def _parts_in(text: str) -> tuple[WeightedMeasure, ...] | None:
    """The parts of a sum; None for one measure without weight and map."""
    terms = _terms(text)
    if len(terms) == 1:
        return _parts_in_term(text, text)
    for number, term in enumerate(terms, 1):
        if not term.strip():
            raise MeasureError(
                f"The sum {text.strip()!r} cannot be read because its summand {number} is empty; write a measure there."
            )
        if _SLACK.fullmatch(term.strip()):
            raise MeasureError(
                f"{term.strip()} cannot be a summand because its slack is shared by the full sum; write (...)"
                "(slack='shared') around all summands."
            )
    found = [(term, _parts_in_term(term, text)) for term in terms]
    return tuple(part for term, some in found for part in some or (WeightedMeasure(1.0, measure_of(term)),))


def _parts_in_term(term: str, text: str) -> tuple[WeightedMeasure, ...] | None:
    """The parts of one term: weight, measure or bracketed sum, and map; None for a measure alone."""
    found = _TERM.fullmatch(term.strip())
    assert found is not None  # the pattern matches every text
    written, measure = found["weight"], found["measure"].strip()
    inner = measure[1:-1] if _is_bracketed(measure) else ""
    if len(_terms(inner)) < 2 and written is None and found["map"] is None:
        return None
    try:
        weight = float(written or 1.0)
    except ValueError:
        raise MeasureError(f"{written!r} is no weight of {measure}; write a number.") from None
    if not measure:
        raise MeasureError(
            f"The sum {text.strip()!r} cannot be read because {term.strip()!r} names no measure; write weight measure."
        )
    parts = _parts_in(inner) if len(_terms(inner)) > 1 else None
    parts = (WeightedMeasure(1.0, _term_measure(measure, term.strip())),) if parts is None else parts
    return tuple(_times(replace(part, feature_map=part.feature_map or found["map"]), weight) for part in parts)


def _term_measure(measure: str, term: str) -> Measure:
    """The measure of a term. If it is unknown, the error names it with a weight that precedes it (11pt_avg)."""
    try:
        return measure_of(measure)
    except MeasureError:
        word = re.match(r"[\d.]+(?P<name>[^\W\d]\w*)", term)
        if word is not None:
            try:
                named(word["name"])
            except MeasureError:
                named(word[0])  # no name begins with a digit, so this raises
        raise


def _is_bracketed(text: str) -> bool:
    """Whether the first bracket is closed by the last character."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for index, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return index == len(text) - 1
    return False


def _terms(text: str) -> list[str]:
    """The summands of a sum; brackets and quotes are not split."""
    terms, depth, quote, begin = [], 0, "", 0
    for index, sign in enumerate(text):
        if quote or sign in "'\"":
            quote = "" if sign == quote else (quote or sign)
        elif sign in "([{":
            depth += 1
        elif sign in ")]}":
            depth -= 1
        elif sign == "+" and depth == 0 and not re.fullmatch(r"\s*\d[\d.]*[eE]", text[begin:index]):
            terms.append(text[begin:index])
            begin = index + 1
    return [*terms, text[begin:]]


def _parts_of(term: Any, weight: Any, slack: str) -> tuple[WeightedMeasure, ...]:
    """The parts of a measure, its notation, or another mix, with their weights multiplied by `weight`."""
    if isinstance(term, str):
        mix = mix_of(term)
        term = measure_of(term) if mix is None else mix
    if isinstance(term, MeasureMix):
        if term.slack == "shared" and slack != "shared":
            raise MeasureError(
                f"{term} cannot be a part of a mix because a shared slack applies to the full sum; pass its parts, and "
                "slack='shared' to the mix of all."
            )
        return tuple(_times(part, weight) for part in term.parts)
    if isinstance(term, WeightedMeasure):
        return (_times(term, weight),)
    if isinstance(term, Measure):
        return (WeightedMeasure(weight, term),)
    raise MeasureError(f"A part of a mix cannot be {term!r}; write a measure or its notation.")


def _times(part: WeightedMeasure, weight: Any) -> WeightedMeasure:
    """The part with its weight multiplied; an invalid weight raises before."""
    return replace(part, weight=WeightedMeasure(weight, part.measure).weight * part.weight)


def parse(text: str | Measure | Any) -> Measure:
    """Parse the notation of a measure; a measure is returned unchanged. MeasureError for anything else."""
    if isinstance(text, Measure):
        return text
    if not isinstance(text, str):
        if isinstance(getattr(text, "NAME", None), str) and isinstance(getattr(text, "params", None), Mapping):
            options = dict(text.params)  # a measure of ir_measures
            return measure_with(text.NAME, options, options.pop("cutoff", None))
        raise MeasureError(f"A measure cannot be {text!r}; write it as text ('nDCG@10') or as a value (nDCG @ 10).")
    mix = mix_of(text)
    return measure_of(text) if mix is None else mix


def linear_in_gains(measure: Any) -> Measure:
    """The measure with gains in place of grades. MeasureError for one that is not linear in them.

    An estimate from clicks is unbiased of such measures only: DCG@k, P@k, WTA and Custom discounts, but not nDCG, whose
    best value is no linear function of the gains.
    """
    from rankopt.measures.dcg import PrecisionOfGains

    parsed: Any = parse(measure)
    name = getattr(parsed, "name", None)
    if name in ("DCG", "Custom") and parsed.stated_gain in (None, "linear"):
        made: Measure = parsed(gain="linear")
        return made
    k = {"P": parsed.cutoff, "WTA": 1}.get(name or "")
    if k is not None and parsed.rel is None:
        return PrecisionOfGains([1 / k] * k, "linear", notation=repr(parsed))
    if name == "RBP" and parsed.rel is None:
        raise MeasureError(f"{parsed} is not supported with gains; use measure='DCG@10', or P@k.")
    raise MeasureError(
        f"{parsed} is not linear in the gains of the documents, so what clicks estimate without bias is not its "
        "value (nDCG divides by a best value that is unknown); use measure='DCG@10', or P@k."
    )
