"""`rankopt evaluate`: measures of rankings and paired comparisons; with `--qrels`, of runs in TREC's format."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zipfile import is_zipfile

import click
from click.core import ParameterSource

from rankopt.commands import options as common
from rankopt.commands.input_output import as_json, check_attributes, model_and_queries, queries_at, shortened, table
from rankopt.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from rankopt.data.queries import Queries
    from rankopt.evaluation.comparison import Comparison, Test
    from rankopt.evaluation.evaluation import Evaluation, IntervalBy
    from rankopt.evaluation.trec import Qrels, Run
    from rankopt.measures.measure import Convention, Measure

MEASURES = ("nDCG@10", "AP", "P@10", "RR", "R@100")


def evaluate_runs(
    qrels: str,
    runs: Sequence[str],
    measures: Sequence[Measure],
    convention: Convention,
    missing: Literal["error", "skip", "zero"],
    negative: float | None,
    test: Test,
    interval: IntervalBy,
    json_: bool,
) -> None:
    """Measure the runs of these files, compare each with the first, and print the coverage of each."""
    from rankopt.data.tables import is_table
    from rankopt.evaluation.runs import compare_runs
    from rankopt.evaluation.trec import read_qrels, read_run
    from rankopt.measures import evaluate, join

    try:
        known = read_qrels(qrels, negative="unjudged" if negative is None else negative)
    except DataError as error:
        if not is_table(qrels):
            raise
        cure = f"rankopt convert {qrels} --qrels FILE writes its grades as qrels"
        raise DataError(f"{str(error).rstrip('.')}; {cure}") from error
    read = {name: read_run(path) for name, path in zip(_names(runs), runs, strict=True)}
    found = {
        name: evaluate(*join(known, run, missing=missing), measures, convention=convention)
        for name, run in read.items()
    }
    compared = compare_runs(found, test=test, interval=interval)
    lacks = _lacks(known, read)
    if json_:
        ties = {name: dict(zip(compared.measures, run.tied.tolist(), strict=True)) for name, run in found.items()}
        as_json({"qrels": qrels, "missing": missing, **compared.as_dict(), "coverage": lacks, "tied": ties})
        return
    for name, own in lacks.items():
        if own["unjudged_documents"] == own["documents"]:
            click.echo(f"warning: no document of {name} is in {qrels}: compare the ids of documents", err=True)
    click.echo(str(compared))
    for line in _coverage_lines(lacks, len(known.query_ids), missing):
        click.echo(line)


def _names(paths: Sequence[str]) -> list[str]:
    """Names of the runs: file names without folder, or full paths if two names would be equal."""
    short = [Path(path).name for path in paths]
    return short if len(set(short)) == len(short) else list(paths)


def _lacks(qrels: Qrels, runs: Mapping[str, Run]) -> dict[str, dict[str, int]]:
    """Counts for each run: missing judged queries, queries without judgments, unjudged documents."""
    from rankopt.evaluation.trec import by_query

    graded = by_query(qrels, qrels.judged)
    judged = {query: {name for name, has_grade in own.items() if has_grade} for query, own in graded.items()}
    known: dict[str, dict[str, int]] = {}
    for name, run in runs.items():
        retrieved = by_query(run, run.scores)
        both = [query for query in judged if query in retrieved]
        known[name] = {
            "queries": len(both),
            "missing_queries": len(judged) - len(both),
            "queries_without_judgments": len(retrieved) - len(both),
            "documents": sum(len(retrieved[query]) for query in both),
            "unjudged_documents": sum(len(retrieved[query].keys() - judged[query]) for query in both),
        }
    return known


def _coverage_lines(lacks: Mapping[str, Mapping[str, int]], queries: int, missing: str) -> list[str]:
    """A line for each run: its unjudged documents and missing queries, and how these count."""
    lines = []
    for name, own in lacks.items():
        share = own["unjudged_documents"] / max(own["documents"], 1)
        line = f"{name}: {share:.1%} of {own['documents']} retrieved documents are unjudged and count as not relevant"
        if own["missing_queries"]:
            made = "left out of its means, as by trec_eval" if missing == "skip" else "counted 0, as by trec_eval -c"
            line += f"; {own['missing_queries']} of {queries} judged queries are missing, {made}"
        if own["queries_without_judgments"]:
            line += f"; {own['queries_without_judgments']} queries without judgments are left out"
        lines.append(line)
    return lines


MEASURES_EVALUATE = ("nDCG@1", "nDCG@3", "nDCG@5", "nDCG@10", "AP")


@click.command(cls=common.Command)
@click.argument("files", nargs=-1, required=True, metavar="DATA | RUN...", type=common.EXISTING)
@common.column_options
@click.option("--qrels", type=common.FILE, help="Judgments; the files are then TREC runs.")
@click.option("--scores", multiple=True, type=common.FILE, help="A file with one score a line; repeat to compare.")
@click.option("--model", multiple=True, type=common.FILE, help="A model; repeat to compare.")
@click.option("--baseline", type=common.FILE, help="File to compare with.  [default: the first]")
@common.attributes_option
@common.quota_options
@click.option(
    "--measure", multiple=True,
    help=f"A measure; repeatable.  [default: {', '.join(MEASURES_EVALUATE)}; of runs {', '.join(MEASURES)}]",
)  # fmt: skip
@click.option(
    "--convention",
    help="default, letor2, letor3, letor4, trec, sklearn, burges, lightgbm, xgboost.  [default: default; of runs trec]",
)
@click.option(
    "--missing", type=click.Choice(["skip", "zero", "error"]), default="skip",
    help="Judged queries that a run lacks (not features): left out of its means, or 0 (trec_eval -c).",
)  # fmt: skip
@click.option(
    "--test", type=click.Choice(["randomization", "t", "wilcoxon"]), default="randomization",
    help="The paired test of runs.",
)  # fmt: skip
@click.option("--interval", type=click.Choice(["t", "bootstrap"]), default="t", help="Confidence intervals of runs.")
@click.option("--unjudged-grade", "unjudged", type=float, help="Grade for negative labels.  [of qrels: none]")
@common.json_option
def evaluate(
    files: tuple[str, ...],
    qrels: str | None,
    scores: tuple[str, ...],
    model: tuple[str, ...],
    baseline: str | None,
    measure: tuple[str, ...],
    convention: str | None,
    missing: Literal["error", "skip", "zero"],
    test: Test,
    interval: IntervalBy,
    unjudged: float | None,
    attributes: str | None,
    json_: bool,
    quotas: common.Quotas,
    columns: common.Columns,
) -> None:
    """Measure the rankings of DATA by score files or models; with --qrels, measure RUNs in TREC's format.

    \b
    rankopt evaluate test.parquet --model model.rankopt

    Several are compared with --baseline by a paired test over queries; p of runs is corrected by Holm. The default is
    the first RUN or the first --scores; without these, the first --model.
    Lists are those of `rankopt rank`: under the quotas, else under the constraints that the model was trained under.
    What these cost is shown by a paired test against lists of the same length without them.
    """
    from rankopt.measures import parse
    from rankopt.measures.measure import convention_named

    quotas.check_k(alone=False)
    if qrels is not None:
        columns.check_unused("runs have none")
        if scores or model:
            raise click.UsageError("--qrels is for runs, which have their own scores: leave --scores and --model out")
        if quotas or attributes is not None:
            raise click.UsageError("--qrels is for runs, evaluated as they are: leave --attributes and quotas out")
        parsed, rules = measure or MEASURES, convention_named("trec" if convention is None else convention)
        runs = _compared(files, baseline)
        evaluate_runs(qrels, runs, [*map(parse, parsed)], rules, missing, unjudged, test, interval, json_)
        return
    _check_alone(files)
    data = files[0]
    if not scores and not model:
        raise click.UsageError("nothing to evaluate: give --scores FILE or --model FILE")
    first, *others = _compared((*scores, *model), baseline)
    from rankopt.commands.input_output import with_attributes
    from rankopt.constraints import Admissible
    from rankopt.measures import compare
    from rankopt.rankers.deployment import Deployment

    wanted = [parse(text) for text in measure or MEASURES_EVALUATE]
    rules = convention_named("default" if convention is None else convention)
    found: dict[str, Evaluation] = {}
    free: dict[str, Evaluation] = {}  # lists of as many documents without the constraints
    cut: dict[str, str] = {}  # how many lists are shorter than k

    def add(path: str, queries: Queries, run: NDArray[np.float64], deploy: Callable[..., Deployment], own: Any) -> None:
        admissible = quotas.admissible(queries, own)
        check_attributes(queries, admissible)
        with common.cures_as_options():
            shown = deploy(queries.grouped(), admissible)
            found[path] = shown.evaluate(run[queries.rows], wanted, rules)
        if admissible is not None:
            plain = deploy(queries.grouped(), Admissible(admissible.k))
            free[path] = plain.evaluate(run[queries.rows], wanted, rules, cut_to=found[path])
            cut[path] = shortened(found[path].lengths, queries, admissible.k)

    trained: dict[str, str] = {}
    for path in model:
        ranker, queries = model_and_queries(path, data, unjudged, columns, attributes, True, quotas.labels)
        trained = getattr(ranker, "columns_", {}) | trained
        add(path, queries, ranker.predict(queries), ranker._deployment, getattr(ranker, "constraints", None))
    if scores:
        queries = queries_at(data, unjudged, columns=columns, labels=quotas.labels, keep_missing=True, trained=trained)
        queries = with_attributes(queries, attributes, trained | columns.named)
        for path in scores:
            add(path, queries, _read_scores(path, queries), Deployment.from_queries, None)
    found = {path: found[path] for path in (first, *others)}
    pairs = {
        (other, repr(m)): compare(found[other], found[first], measure=m)
        for other in others
        for m in found[first].measures
    }
    cost = {
        (path, repr(m)): compare(found[path], free[path], measure=m)
        for path in free
        for m in found[path].measures
        if found[path].n_evaluated(m) > 1
    }
    if json_:
        record: dict[str, Any] = {
            path: one.as_dict() | _cost_per_query(one, free.get(path)) for path, one in found.items()
        }
        compared = [{"run": other, "baseline": first, **result.as_dict()} for (other, _), result in pairs.items()]
        costs = [{"run": path, **result.as_dict(), "lists": cut[path]} for (path, _), result in cost.items()]
        as_json({"runs": record, "compared": compared, "constraints": costs})
        return
    for path, evaluation in found.items():
        click.secho(path, bold=True)
        click.echo(str(evaluation))
    if pairs:
        click.secho(f"\nagainst {first}", bold=True)
        _differences(pairs)
    if cost:
        click.secho("\nconstraints against none, in lists of the same length", bold=True)
        _differences(cost)
        for text in dict.fromkeys(filter(None, cut.values())):
            click.echo(text)


def _cost_per_query(constrained: Evaluation, free: Evaluation | None) -> dict[str, Any]:
    """Each query's measures under the constraints less those without them."""
    if free is None:
        return {}
    lost = {name: (constrained.per_query(name) - free.per_query(name)).tolist() for name in constrained.measures}
    rows = zip(constrained.query_ids, *lost.values(), strict=True)
    return {"cost_per_query": {str(query): dict(zip(map(str, lost), row, strict=True)) for query, *row in rows}}


def _differences(pairs: Mapping[tuple[str, str], Comparison]) -> None:
    table(
        ["run", "measure", "difference", "95% interval", "p (randomization)", "p (t)", "better", "equal", "worse"],
        [
            [
                run, name, f"{r.difference:+.4f}", f"[{r.interval[0]:+.4f}, {r.interval[1]:+.4f}]",
                f"{r.p_randomization:.4f}", f"{r.p_t:.4f}", r.wins, r.ties, r.losses,
            ]
            for (run, name), r in pairs.items()
        ],
    )  # fmt: skip


def _compared(files: tuple[str, ...], baseline: str | None) -> list[str]:
    """The files that are compared, the baseline first. Raises UsageError for one that is twice or not among them."""
    if len(set(files)) < len(files):
        raise click.UsageError("a file occurs twice; name each file once")
    if baseline is not None and baseline not in files:
        raise click.UsageError(f"--baseline {baseline} is not compared; name one of {', '.join(files)}")
    return sorted(files, key=lambda path: path != baseline)


def _check_alone(files: tuple[str, ...]) -> None:
    """Raise UsageError for what only runs have."""
    if len(files) == 2 and is_zipfile(files[0]):
        raise click.UsageError(f"a model is an option: write rankopt evaluate {files[1]} --model {files[0]}")
    if len(files) > 1:
        raise click.UsageError(f"{files[1]} is one file too many; several are runs, which need --qrels FILE")
    context = click.get_current_context()
    for name in ("missing", "test", "interval"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} is for runs: give --qrels FILE, or leave it out")


def _read_scores(path: str, queries: Queries) -> NDArray[np.float64]:
    """One score a line, in the order of the data file."""
    import numpy as np

    from rankopt.data.svmlight.parser import NUMBER
    from rankopt.data.text import clipped, text_lines

    values = []
    for number, line in text_lines(path):
        word = line.strip()
        if not NUMBER.fullmatch(word) or not np.isfinite(float(word)):
            raise DataError(f"{path}, line {number}: {clipped(line)!r} is no finite number; write one score a line.")
        values.append(float(word))
    if len(values) != queries.n_documents:
        raise DataError(f"{path} has {len(values)} scores for {queries.n_documents} documents; write one for each.")
    return np.array(values)
