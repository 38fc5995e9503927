"""`rankopt verify`: prove or refute that a linear program, such as that of a set of rankings, is integral.

`--sensitivity NAME=LOW:HIGH` computes the cost of each limit of a constraint.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

import click

from rankopt.commands.input_output import as_given, as_json, write_report
from rankopt.commands.options import FILE, Command, json_option, report_option

if TYPE_CHECKING:
    from formulations.integrality.evidence import Proof, Undecided, Witness
    from formulations.solving.sensitivity import SensitivityCurve, Side

FORM = "NAME=LOW:HIGH[:STEP][:SIDE]"

NUMBER = r"\d{1,15}(?:\.\d{1,15})?"

WRITTEN = re.compile(
    rf"(?P<name>.+)=(?P<low>{NUMBER}):(?P<high>{NUMBER})(?::(?P<step>{NUMBER}))?"
    r"(?::(?P<side>at_most|at_least|exactly))?"
)
"""The name of a constraint or of one of its rows; the side as in TOML files."""


def _read_sweep(text: str) -> tuple[str, Iterator[float], Side | None]:
    """The name, limits and side of one value of `--sensitivity`. Raises a usage error for invalid text."""
    found = WRITTEN.fullmatch(text)
    parts = found.group("low", "high", "step") if found else "000"
    low, high, by = map(Fraction, (*parts[:2], parts[2] or ("0.1" if "." in parts[0] + parts[1] else "1")))
    if found is None or low > high or not by:
        raise click.UsageError(
            f"--sensitivity {text!r}: write {FORM}, such as site=1:4, site=0:90:10:at_least or women=0.2:0.5:0.1"
        )
    limits = (float(low + i * by) for i in range((high - low) // by + 1))
    side: Any = None if found["side"] is None else found["side"].replace("_", " ")
    return found["name"], limits, side


def swept_by(problem: Any, sweeps: tuple[str, ...], profit: Any = None) -> list[SensitivityCurve]:
    """The sensitivity curve of each constraint. Raises a usage error for an unknown constraint or invalid limits, and
    `InfeasibleError` for a set that is empty at all limits."""
    from formulations.constraints.constrained_ranking import ConstrainedRanking
    from formulations.errors import InvalidProblemError
    from formulations.problems.linear_program import LinearProgram
    from formulations.solving.sensitivity import sensitivity

    read = [_read_sweep(text) for text in sweeps]
    if read and profit is None and not isinstance(problem, ConstrainedRanking | LinearProgram):
        raise click.UsageError("--sensitivity computes the cost of limits: FILE needs a profit, or weights and scores")
    swept = []
    for text, (name, limits, side) in zip(sweeps, read, strict=True):
        try:
            swept.append(sensitivity(problem, name, limits, profit=profit, side=side))
        except InvalidProblemError as error:
            message = str(error).replace("range(0, 1000, 10)", "NAME=0:1000:10")
            message = message.replace("pass side='at most' or side='at least'", "end with :at_most or :at_least")
            raise click.UsageError(f"--sensitivity {text!r}: {message}") from None
    return swept


ADVISED, LOOKED = 4, 10.0  # number of suggested changes that are printed, and the time limit of the search in seconds


@click.command(cls=Command)
@click.argument("file", type=FILE)
@click.option("--max-effort", "effort", default=1, type=click.IntRange(1), help="Effort of the search for a witness.")
@click.option("--random-state", "seed", default=0, type=click.IntRange(0), help="Seed of that search.")
@click.option(
    "--sensitivity", "sweeps", multiple=True, metavar=FORM,
    help="Cost of each limit of a constraint, a count or a share. STEP: default 1, for decimals 0.1. SIDE: at_most, "
    "at_least or exactly, if it has both limits.",
)  # fmt: skip
@report_option
@json_option
def verify(file: str, effort: int, seed: int, sweeps: tuple[str, ...], report: str | None, json_: bool) -> None:
    """Prove or refute that the linear program in FILE is integral: a set of rankings (TOML), or a program (MPS, LP).

    \b
    rankopt verify set.toml --report page.html

    The answer is checked by an independent function. If FILE has a profit, its optimum is computed too, by the solver
    that FILE names, else by highs. Exit code 0: the set is proved integral for every objective; 1: refuted or
    undecided, even if the optimum for the objective in FILE is proved integral; 2: --sensitivity names no constraint
    or invalid limits; 3: the set is empty (prints the ranking with the least violation and the cost of other limits),
    or a limit in FILE is not an integer; limits of integer variables and rows are rounded inwards.

    \b
    documents = 4
    positions = 2
    [attributes]
    site = ["a.org", "a.org", "b.org", "c.org"]
    [[constraint]]
    at_most = 1
    by = "site"
    """
    import numpy as np

    from formulations.constraints.constrained_ranking import ConstrainedRanking, PenalizedRanking
    from formulations.constraints.ranking_set import RankingSet
    from formulations.display import first_lines, plural
    from formulations.errors import InfeasibleError
    from formulations.integrality.checker import check_evidence
    from formulations.integrality.evidence import Proof
    from formulations.integrality.verify import verify_integrality
    from formulations.io.toml_file import read_program, read_ranking_set, read_solver
    from formulations.problems.linear_program import LinearProgram
    from formulations.solving.integrality import integrality_gap
    from formulations.solving.solve import solve

    if is_zipfile(file):
        raise click.UsageError(
            f"{file} is a saved model, and verify reads a set of rankings or a linear program; the bounds of a model "
            "of ratings are verified in Python: load_model(path).verify(ratings)"
        )
    try:
        is_program = file.removesuffix(".gz").endswith((".mps", ".lp"))
        problem: Any = read_program(file) if is_program else read_ranking_set(file)
        if isinstance(problem, LinearProgram):
            problem = problem.with_integer_limits()
        admissible = problem.admissible if isinstance(problem, ConstrainedRanking) else problem
        if isinstance(admissible, RankingSet):
            admissible.check_nonempty()
    except InfeasibleError:
        _print_empty(file, sweeps, json_)
        raise
    if not isinstance(admissible, np.ndarray):
        rows, columns = admissible.program.matrix.shape
        shown = first_lines(str(admissible), "formulations.read_program shows") if is_program else admissible
        stated = f"{shown}\n{plural(rows, 'row')} × {plural(columns, 'variable')}"
    else:
        rows, columns = np.shape(admissible)
        stated = f"matrix of {plural(rows, 'row')} × {plural(columns, 'column')}"
    swept = swept_by(problem, sweeps)
    found, of_objective = verify_integrality(problem, seed=seed, max_effort=effort), None
    check_evidence(problem, found)
    if isinstance(found, Proof) and found.kind == "prefix groups":  # a statement about this objective, not the set
        of_objective, found = found, verify_integrality(admissible, seed=seed, max_effort=effort)
        check_evidence(admissible, found)
    solver = None if is_program else read_solver(file)
    has_objective = isinstance(problem, ConstrainedRanking | LinearProgram)
    gap = integrality_gap(problem, solver or "highs") if has_objective else None
    if not json_:
        _print_result(stated, found, of_objective, gap)
    advice = [] if of_objective is not None else _suggested_changes(admissible, found)  # this objective needs none
    violations = solve(problem, solver or "auto").violations if isinstance(problem, PenalizedRanking) else None
    verdict = type(found).__name__.lower()
    if report is not None:
        from rankopt.report.set_page import page_of_set

        page = page_of_set(Path(file).name, problem, stated, found, of_objective, gap, as_given(), swept, advice)
        write_report(report, page)
    if json_:
        record: dict[str, Any] = {"file": file, "rows": rows, "columns": columns, "verdict": verdict, **_details(found)}
        if of_objective is not None:
            record["objective"] = {"verdict": "proof", **_details(of_objective)}
        if advice:
            record["advice"] = advice
        if gap is not None:
            record["optimum"] = {
                "integral": gap.integral,
                "relaxation": gap.relaxed.value,
                "integer": gap.integer.value,
                "overestimate": gap.absolute,
            }
            if violations is not None:
                record["optimum"]["violations"] = violations
        if swept:
            record["sweep"] = [_columns(one) for one in swept]
        as_json(record)
    else:
        for line in [*advice, *swept]:
            click.echo(str(line))
        if violations is not None:
            violated = ", ".join(f"{name} by {amount:g}" for name, amount in violations.items())
            click.echo(f"Violated at the optimum, at a penalty: {violated or 'nothing'}")
    if verdict != "proof":
        raise click.exceptions.Exit(1)


def _print_result(stated: str, found: Proof | Witness | Undecided, of_objective: Proof | None, gap: Any) -> None:
    """Print the verdicts, on the set and on its objective, before the search for advice."""
    click.echo(stated)
    click.echo(str(found))
    if type(found).__name__ != "Undecided":
        click.echo("Checked again from the matrix alone: it holds.")
    if of_objective is not None:
        click.echo(f"For this objective: {of_objective}")
        click.echo("Checked again from set and objective alone: it holds.")
    if gap is not None:
        click.echo(str(gap))


def _print_empty(file: str, sweeps: tuple[str, ...], json_: bool) -> None:
    """Print, for an empty set, the requested sensitivity curves and the ranking with the least violation."""
    from formulations.errors import FormulationError, InfeasibleError
    from formulations.io.toml_file import read_set

    admissible, profit = read_set(file)
    swept: list[Any] = []
    with suppress(InfeasibleError):
        swept = swept_by(admissible, sweeps, profit)
    least: Any = None
    try:
        least = admissible.repair()
        nearest = f"The least broken ranking: {least}"
    except FormulationError as error:  # the conflict is reported in any case
        nearest = f"The least broken ranking is not known: {error}"
    if json_:
        record: dict[str, Any] = {"file": file, "verdict": "empty", "sweep": [_columns(one) for one in swept]}
        broken = least and {"order": least.order.tolist(), "violations": least.violations, "cost": least.cost}
        as_json({**record, "least_broken": broken})
        return
    for line in [str(admissible), *swept, nearest]:
        click.echo(str(line))


def _columns(swept: SensitivityCurve) -> dict[str, Any]:
    names = ("limits", "value", "bound", "relaxed", "price", "integral")
    return {"name": swept.name, **{name: getattr(swept, name).tolist() for name in names}}


def _suggested_changes(admissible: Any, found: Any) -> list[str]:
    """Changes that make a refuted set integral, each tried and proved."""
    from formulations.constraints.ranking_set import RankingSet
    from formulations.integrality.evidence import Witness
    from formulations.solving.integrality import suggest_changes

    if not isinstance(found, Witness) or not isinstance(admissible, RankingSet):
        return []
    began = perf_counter()
    advice = [f"Advice: {one}" for one in suggest_changes(admissible, found, seconds=LOOKED)[:ADVISED]]
    if perf_counter() - began > LOOKED:
        advice.append(f"The search for advice stopped after {LOOKED:g} s; formulations.suggest_changes has no limit")
    if admissible.soft_constraints and not advice:
        advice = ["Advice is for hard constraints only; no change of them was found"]
    return advice


def _details(found: Proof | Witness | Undecided) -> dict[str, Any]:
    from formulations.integrality.evidence import Proof, Witness

    if isinstance(found, Proof):
        return {"kind": found.kind, "transposed": found.transposed}
    if isinstance(found, Witness):
        return {
            "determinant": str(found.determinant),
            "entries": [[i, j, str(value)] for i, j, value in found.entries],
            "row_names": list(found.row_names),
            "column_names": list(found.column_names),
            "fractional_vertex": None if found.vertex is None else found.vertex.x.tolist(),
        }
    return {"tried": list(found.tried)}
