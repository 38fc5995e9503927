"""`rankopt swap --against rows.jsonl`: the same tapes by what is installed now, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankopt.commands.output import as_given, as_json, table, write_report
from rankopt.commands.swap_table import watched

if TYPE_CHECKING:
    from rankopt.experiments.changes import Changed
    from rankopt.experiments.isolation.limits import Limits

__all__ = ["compare"]

NAMED = 20
"""Problems that are named one by one."""


def compare(
    against: str,
    argmax: tuple[str, ...] | None,
    master: tuple[str, ...] | None,
    repeats: int,
    margin: float,
    limits: Limits,
    output: str | None,
    resume: bool,
    report: str | None,
    json_: bool,
) -> None:
    """Replay, compare, print. Exit code 1 says that an answer is wrong, or that a solver lost a problem."""
    from rankopt.experiments.against import Against
    from rankopt.experiments.changes import Kind
    from rankopt.experiments.rows import read_rows

    if output is not None and Path(output).resolve() == Path(against).resolve():
        raise click.UsageError("--output is the file of --against; choose another")
    run = Against(against, argmax, master, repeats, margin, limits)
    rows = watched(run.rows(output, resume=resume))
    found = run.changes(rows if output is None else read_rows(output))
    if report is not None:
        from rankopt.report.of_changes import page_of_changes

        write_report(report, page_of_changes(found, margin, as_given()))
    if json_:
        as_json({"problems": len(found), "summary": summary(found), "named": [_named(one) for one in _odd(found)],
                 "output": output, "report": report})  # fmt: skip
    else:
        _show(found)
        if output is not None:
            click.echo(f"wrote {output}")
    if any(one.kind in (Kind.WRONG, Kind.LOST) for one in found):
        raise click.exceptions.Exit(1)


def summary(found: Sequence[Changed]) -> list[dict[str, Any]]:
    """One line a tape and solver: versions, the factor with its interval, and how many problems became what."""
    from rankopt.experiments.changes import by_solver, mean_factor

    lines: list[dict[str, Any]] = []
    for (tape, solver), own in by_solver(found).items():
        mean = mean_factor(own)
        counts = {kind: sum(one.kind is kind for one in own) for kind in dict.fromkeys(one.kind for one in own)}
        lines.append({
            "tape": tape, "solver": solver, "before": _version(one.before.version for one in own),
            "after": _version(one.after.version for one in own), "problems": len(own),
            "factor": None if mean is None else mean[0], "interval": None if mean is None else list(mean[1:]),
            "became": {kind.words: count for kind, count in counts.items()},
        })  # fmt: skip
    return lines


def _show(found: Sequence[Changed]) -> None:
    lines = summary(found)
    for tape in dict.fromkeys(line["tape"] for line in lines):
        click.secho(tape, bold=True)
        table(
            ["solver", "before", "now", "time, now / before", "became"], [_line(x) for x in lines if x["tape"] == tape]
        )
        click.echo()
    odd = _odd(found)
    for one in odd[:NAMED]:
        click.echo(f"{one.kind.words}: {one.after.solver}, {one.after.problem}: {one.why}")
    if len(odd) > NAMED:
        click.echo(f"and {len(odd) - NAMED} more; --report shows all")
    click.echo("time: geometric mean over the problems that both solved, in an interval of 95% (problems and repeats")
    click.echo("drawn anew); slower, faster: by the repeats of that problem alone, beyond the margin.")


def _line(line: dict[str, Any]) -> list[str]:
    low, high = line["interval"] or (None, None)
    factor = "-" if line["factor"] is None else f"{line['factor']:.3g} ({low:.3g} to {high:.3g})"
    became = ", ".join(f"{count} {word}" for word, count in line["became"].items())
    return [line["solver"], line["before"] or "-", line["after"] or "-", factor, became]


def _odd(found: Sequence[Changed]) -> list[Changed]:
    """What a reader has to look at, one by one."""
    from rankopt.experiments.changes import Kind

    return [one for kind in (Kind.WRONG, Kind.LOST, Kind.MENDED) for one in found if one.kind is kind]


def _named(one: Changed) -> dict[str, Any]:
    return {"tape": one.after.tape, "solver": one.after.solver, "problem": one.after.problem, "became": one.kind.words,
            "why": one.why}  # fmt: skip


def _version(told: Any) -> str:
    """The versions, most often one."""
    return ", ".join(sorted({version for version in told if version}))
