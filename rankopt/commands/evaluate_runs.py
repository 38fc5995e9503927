"""Runs in TREC's format held against qrels: what `rankopt evaluate --qrels` prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from rankopt.commands.output import as_json

if TYPE_CHECKING:
    from rankopt.evaluation.comparison import Test
    from rankopt.evaluation.intervals import IntervalBy
    from rankopt.evaluation.trec import Qrels, Run
    from rankopt.measures.convention import Convention
    from rankopt.measures.measure import Measure

__all__ = ["MEASURES", "evaluate_runs"]

MEASURES = ("nDCG@10", "AP", "P@10", "RR", "R@100")


def evaluate_runs(
    qrels: str,
    runs: Sequence[str],
    measures: Sequence[Measure],
    convention: Convention,
    *,
    missing: str,
    negative: float | None,
    test: str,
    interval: str,
    json_: bool,
) -> None:
    """Measure the runs of these files, compare each with the first, and say what they lack."""
    from rankopt.evaluation.runs import compare_runs
    from rankopt.evaluation.trec import read_qrels, read_run
    from rankopt.measures import evaluate, judge

    known = read_qrels(qrels, negative="unjudged" if negative is None else negative)
    read = {name: read_run(path) for name, path in zip(_names(runs), runs, strict=True)}
    how = cast(Literal["error", "skip", "zero"], missing)
    found = {
        name: evaluate(*judge(known, run, missing=how), measures, convention=convention) for name, run in read.items()
    }
    compared = compare_runs(found, test=cast("Test", test), interval=cast("IntervalBy", interval))
    lacks = _lacks(known, read)
    if json_:
        coverage = {name: own for name, own in lacks.items()}
        ties = {name: dict(zip(compared.measures, run.tied.tolist(), strict=True)) for name, run in found.items()}
        as_json({"qrels": qrels, "missing": missing, **compared.as_dict(), "coverage": coverage, "tied": ties})
        return
    click.echo(str(compared))
    for line in _told(lacks, len(known.query_ids), missing):
        click.echo(line)


def _names(paths: Sequence[str]) -> list[str]:
    """What a run is called: its file without folder, or all of its path where two would be the same."""
    short = [Path(path).name for path in paths]
    return short if len(set(short)) == len(short) else list(paths)


def _lacks(qrels: Qrels, runs: Mapping[str, Run]) -> dict[str, dict[str, int]]:
    """How many judged queries a run lacks, how many of its own have no judgments, how many documents of the others."""
    judged = _documents(qrels)
    known: dict[str, dict[str, int]] = {}
    for name, run in runs.items():
        retrieved = _documents(run)
        both = [query for query in judged if query in retrieved]
        known[name] = {
            "queries": len(both),
            "missing_queries": len(judged) - len(both),
            "queries_without_judgments": len(retrieved) - len(both),
            "documents": sum(len(retrieved[query]) for query in both),
            "unjudged_documents": sum(len(retrieved[query] - judged[query]) for query in both),
        }
    return known


def _documents(file: Any) -> dict[str, set[str]]:
    """query -> its documents; of qrels those that have a grade."""
    kept = getattr(file, "judged", None)
    return {
        query: {file.document_ids[row] for row in range(start, stop) if kept is None or kept[row]}
        for query, start, stop in zip(
            file.query_ids, file.offsets[:-1].tolist(), file.offsets[1:].tolist(), strict=True
        )
    }


def _told(lacks: Mapping[str, Mapping[str, int]], queries: int, missing: str) -> list[str]:
    """A line for each run on what it lacks, and what is made of that."""
    lines = []
    for name, own in lacks.items():
        share = own["unjudged_documents"] / max(own["documents"], 1)
        line = f"{name}: {share:.1%} of {own['documents']} retrieved documents are unjudged and count as not relevant"
        if own["missing_queries"]:
            made = (
                "left out of its means, as trec_eval does" if missing == "skip" else "counted 0, as trec_eval -c does"
            )
            line += f"; {own['missing_queries']} of {queries} judged queries are missing, {made}"
        if own["queries_without_judgments"]:
            line += f"; {own['queries_without_judgments']} queries without judgments are left out"
        lines.append(line)
    return lines
