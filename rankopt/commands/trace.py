"""`rankopt trace inspect`: what a trace of problems holds, read as data; with --solve what its claims are worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rankopt.commands.input_output import as_json, json_option, table

if TYPE_CHECKING:
    from rankopt.experiments.traces import ProblemTrace, RecordedProblem


SHOWN = 40
"""Problems of the table; --json has all."""


@click.command()
@click.argument("action", metavar="inspect")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--solve", is_flag=True, help="Solve each problem here, and hold what the tape says of it against that.")
@json_option
def trace(action: str, file: str, solve: bool, json_: bool) -> None:
    """Show the trace FILE (.npz), without trust: nothing of it is executed.

    A trace holds problems, and of each a value that is attained and a bound that is proven, by the word of who recorded
    it. Exit code 1: --solve found one of these claims false.
    """
    from rankopt.experiments.traces import ProblemTrace

    if action != "inspect":
        raise click.UsageError(
            f"the action must be inspect; got {action[:40]!r}; write rankopt trace inspect {file[:80]}"
        )
    kept = ProblemTrace.load(file)
    false = _false_claims(kept) if solve else {}
    if json_:
        problems = [_record(taped, false) for taped in kept.problems]
        as_json({"file": file, "tape": kept.name, "kind": kept.kind, "problems": problems, "solved": solve,
                 "false": false})  # fmt: skip
    else:
        click.secho(f"{kept.name}: {len(kept.problems)} problems, kind {kept.kind}", bold=True)
        lines = [_line(_record(taped, false)) for taped in kept.problems[:SHOWN]]
        table(["problem", "form", "shape_text", "value", "gap known", "claim"], lines)
        if len(kept.problems) > SHOWN:
            click.echo(f"the first {SHOWN} of {len(kept.problems)}; --json has all")
        click.echo(f"{len(false)} claims are false" if solve else "claims are the recorder's; --solve checks them")
    if false:
        raise click.exceptions.Exit(1)


def _false_claims(kept: ProblemTrace) -> dict[str, str]:
    """Problem → why what the tape says of it cannot be."""
    false: dict[str, str] = {}
    for taped, again in zip(kept.problems, kept.reevaluate().problems, strict=True):
        if taped.known is None or again.known is None:
            continue
        sign = 1.0 if taped.form.is_maximization else -1.0
        slack = 1e-9 * (taped.form.scale or 1.0)
        value, bound = (sign * part for part in taped.known)
        proven = [sign * part for part in again.known]
        if value > proven[1] + slack:
            false[taped.name] = f"{taped.known[0]:.9g} is not attained: nothing is beyond {again.known[1]:.9g}"
        elif bound < proven[0] - slack:
            false[taped.name] = f"{taped.known[1]:.9g} is no bound: {again.known[0]:.9g} is attained"
    return false


def _record(taped: RecordedProblem, false: dict[str, str]) -> dict[str, Any]:
    value, bound = taped.known or (None, None)
    gap = None if value is None or bound is None else abs(bound - value) / (taped.form.scale or 1.0)
    return {
        "problem": taped.name, "step": taped.step, "form": type(taped.form).__name__,
        "shape_text": taped.form.shape_text,
        "value": value, "bound": bound, "gap": gap, "claim": false.get(taped.name, ""),
    }  # fmt: skip


def _line(record: dict[str, Any]) -> list[str]:
    value, gap = record["value"], record["gap"]
    shown = ["-" if value is None else f"{value:.9g}", "-" if gap is None else f"{gap:.0e}"]
    return [record["problem"], record["form"], record["shape_text"], *shown, record["claim"] or "-"]
