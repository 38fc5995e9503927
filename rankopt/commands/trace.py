"""`rankopt trace inspect`: show the problems of a trace; with --solve, check its recorded values and bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from rankopt.commands.input_output import as_json, table
from rankopt.commands.options import FILE, Command, json_option

if TYPE_CHECKING:
    from rankopt.experiments.traces import ProblemTrace, RecordedProblem


SHOWN = 40  # problems of the table; --json has all


@click.command(cls=Command)
@click.argument("action", metavar="inspect")
@click.argument("file", type=FILE)
@click.option("--solve", is_flag=True, help="Solve each problem, and check the recorded values and bounds.")
@json_option
def trace(action: str, file: str, solve: bool, json_: bool) -> None:
    """Show the problems of the trace FILE (.npz). Nothing in it is executed.

    \b
    rankopt trace inspect problems.npz --solve

    A trace holds problems, each with a claimed attained value and a claimed bound. Exit code 1: --solve refuted a
    claim.
    """
    from rankopt.experiments.traces import ProblemTrace

    if action != "inspect":
        raise click.UsageError(f"the action is inspect; got {action[:40]!r}; write rankopt trace inspect {file[:80]}")
    recorded = ProblemTrace.load(file)
    false = _false_claims(recorded) if solve else {}
    if json_:
        problems = [_record(problem, false) for problem in recorded.problems]
        as_json({"file": file, "trace": recorded.name, "kind": recorded.kind, "problems": problems, "solved": solve,
                 "false": false})  # fmt: skip
    else:
        click.secho(f"{recorded.name}: {len(recorded.problems)} problems, kind {recorded.kind}", bold=True)
        lines = [_line(_record(problem, false)) for problem in recorded.problems[:SHOWN]]
        table(["problem", "form", "shape_text", "value", "gap known", "claim"], lines)
        if len(recorded.problems) > SHOWN:
            click.echo(f"the first {SHOWN} of {len(recorded.problems)}; --json has all")
        click.echo(f"{len(false)} claims are false" if solve else "claims are the recorder's; --solve checks them")
    if false:
        raise click.exceptions.Exit(1)


def _false_claims(recorded: ProblemTrace) -> dict[str, str]:
    """Problem → why its recorded value or bound is false."""
    false: dict[str, str] = {}
    for problem, again in zip(recorded.problems, recorded.reevaluate().problems, strict=True):
        if problem.known is None or again.known is None:
            continue
        sign = 1.0 if problem.form.is_maximization else -1.0
        slack = 1e-9 * (problem.form.scale or 1.0)
        value, bound = (sign * part for part in problem.known)
        proven = [sign * part for part in again.known]
        if value > proven[1] + slack:
            false[problem.name] = f"{problem.known[0]:.9g} is not attained: nothing is beyond {again.known[1]:.9g}"
        elif bound < proven[0] - slack:
            false[problem.name] = f"{problem.known[1]:.9g} is no bound: {again.known[0]:.9g} is attained"
    return false


def _record(problem: RecordedProblem, false: dict[str, str]) -> dict[str, Any]:
    value, bound = problem.known or (None, None)
    gap = None if value is None or bound is None else abs(bound - value) / (problem.form.scale or 1.0)
    return {
        "problem": problem.name, "step": problem.step, "form": type(problem.form).__name__,
        "shape_text": problem.form.shape_text,
        "value": value, "bound": bound, "gap": gap, "claim": false.get(problem.name, ""),
    }  # fmt: skip


def _line(record: dict[str, Any]) -> list[str]:
    value, gap = record["value"], record["gap"]
    shown = ["-" if value is None else f"{value:.9g}", "-" if gap is None else f"{gap:.0e}"]
    return [record["problem"], record["form"], record["shape_text"], *shown, record["claim"] or "-"]
