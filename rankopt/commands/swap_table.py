"""What `rankopt swap` prints: a table a tape, a line a solver; and one for each part that was swapped live."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

import click

from rankopt.commands.output import table

if TYPE_CHECKING:
    from rankopt.experiments.rows import Row

__all__ = ["show", "summary", "watched"]

SHOWN = ("nDCG@1", "nDCG@5", "nDCG@10")
"""The measures that have a column; the report draws the others too."""


def summary(rows: list[Row]) -> list[dict[str, Any]]:
    """One line a tape and solver, and a live run. seconds: the shifted geometric mean over all problems, None where it
    solved none of them; of a live run what it took."""
    from rankopt.experiments.rows import Outcome
    from rankopt.experiments.summaries import shifted_geometric_means

    lines: list[dict[str, Any]] = []
    for tape, role in dict.fromkeys((row.tape, row.role) for row in rows):
        here = [row for row in rows if row.tape == tape and row.role == role]
        for solver, mean in shifted_geometric_means(here).items():
            own = [row for row in here if row.solver == solver]
            time = None if isnan(mean) else mean
            gaps = [row.gap for row in own if row.gap is not None]
            lines.append({
                "tape": tape, "role": role, "solver": solver, "problems": len(own),
                "solved": sum(row.solved for row in own),
                "otherwise": sorted({row.status.name for row in own if row.status is not Outcome.SOLVED}),
                "largest_gap": max(gaps, default=None), "seconds": own[0].seconds if role else time,
                "measures": dict(own[0].measures),
            })  # fmt: skip
    return lines


def show(rows: list[Row]) -> None:
    """Print the summary."""
    lines = summary(rows)
    for tape, role in dict.fromkeys((line["tape"], line["role"]) for line in lines):
        here = [line for line in lines if line["tape"] == tape and line["role"] == role]
        click.secho(f"live training, {role} swapped" if role else tape, bold=True)
        measures = [name for name in SHOWN if any(name in line["measures"] for line in here)]
        head = ["solver", "solved", "otherwise", "largest gap", "seconds" if role else "ms (mean)", *measures]
        table(head, [_line(line, measures, 1.0 if role else 1e3) for line in here])
        click.echo()
    click.echo(
        "gap: proven, relative to the scale of the problem. ms: shifted geometric mean over all problems of the tape;"
    )
    click.echo(
        "a problem that was not solved counts ten times the longest time of any solver; who solved none has none."
    )


def _line(line: dict[str, Any], measures: list[str], unit: float) -> list[str]:
    gap, seconds = line["largest_gap"], line["seconds"]
    return [
        line["solver"],
        f"{line['solved']}/{line['problems']}",
        ", ".join(line["otherwise"]) or "-",
        "-" if gap is None else f"{gap:.0e}",
        "-" if seconds is None else f"{unit * seconds:.3g}",
        *("-" if line["measures"].get(name) is None else f"{line['measures'][name]:.4f}" for name in measures),
    ]


def watched(rows: Any) -> list[Row]:
    """The rows, the latest of them shown on a terminal while work goes on."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        return list(rows)
    found: list[Row] = []
    with console.status("recording tapes ...") as status:
        for row in rows:
            found.append(row)
            status.update(f"{len(found)} rows; {row.kind} {row.role} {row.solver}: {row.problem} {row.status.name}")
    return found
