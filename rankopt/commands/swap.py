"""`rankopt swap`: compare solvers on recorded problems and in live training.

`rankopt swap --baseline rows.jsonl` replays earlier traces with the installed versions and reports changes.
`rankopt swap a.mps b.lp set.toml trace.npz` replays the problems of these files.
Output: one table per trace and per swapped part, with one line per solver.
"""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isnan
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from formulations.solvers.solver import listed
from rankopt.commands import options as common
from rankopt.commands.input_output import as_given, as_json, queries_at, table, waiting, write_report
from rankopt.losses import BOUNDS, FEATURE_MAPS

if TYPE_CHECKING:
    from rankopt.experiments.regression import Changed
    from rankopt.experiments.rows import BenchmarkRow
    from rankopt.experiments.solver_swap import SolverSwap
    from rankopt.experiments.traces import ProblemTrace
    from rankopt.rankers.typing import BoundName, MapName

PARTS = {"argmax": "rankings or linear programs", "master": "quadratic programs"}  # the problems that each part solves


def are_problems(files: Sequence[str]) -> bool:
    """Whether the files contain problems, or are folders of these. Raises a usage error if only some of several do."""
    from rankopt.experiments.traces import ENDINGS, problem_files

    others = [file for file in files if not file.lower().endswith(ENDINGS) and not problem_files(file)]
    if others and len(files) > 1:
        raise click.UsageError(
            f"{others[0]} is one of {len(files)} files and not a problem; give files that end with one of "
            f"{', '.join(ENDINGS)}, or queries alone, in one file"
        )
    return bool(files) and not others


def traces_at(files: Sequence[str], argmax: str | None, master: str | None, seconds: float) -> list[ProblemTrace]:
    """The problems of the files. Raises a usage error for solvers of a part that is missing, or without any solver."""
    from rankopt.experiments.traces import traces_of

    traces = traces_of(list(files), seconds)
    kinds = dict.fromkeys(trace.kind for trace in traces)
    named_solvers = {"argmax": argmax, "master": master}
    for kind, names in named_solvers.items():
        other = "master" if kind == "argmax" else "argmax"
        if names not in (None, "none") and kind not in kinds:
            have = "has" if len(files) == 1 else "have"
            raise click.UsageError(
                f"{', '.join(files)} {have} no {PARTS[kind]}, which --{kind}-solvers is for; "
                f"use --{other}-solvers: {_fitting(traces)}"
            )
    if all(named_solvers[kind] == "none" for kind in kinds):
        named = " and ".join(f"--{kind}-solvers none" for kind in sorted(kinds))
        raise click.UsageError(f"{named} excludes all solvers; name solvers: {_fitting(traces)}")
    return traces


def forms_of(traces: Iterable[ProblemTrace], kind: str) -> list[Any]:
    """The problems that this part solves."""
    return [recorded.form for trace in traces if trace.kind == kind for recorded in trace.problems]


def all_of(forms: Iterable[Any]) -> list[str]:
    """All installed solvers for any of these problems, or classes of problems."""
    from formulations.solvers import compatible_solvers

    return list(dict.fromkeys(solver for form in forms for solver in compatible_solvers(form)))


def other_solvers(traces: Sequence[ProblemTrace], rows: Iterable[BenchmarkRow], **named: str | None) -> list[str]:
    """A line for each part whose problems can be solved by solvers that have no rows, if no solvers were named for it,
    or some that do not support a problem; for all solvers those that are left out."""
    from rankopt.experiments.rows import Outcome

    used, lines = {row.solver for row in rows}, []
    refused = {row.kind for row in rows if row.status is Outcome.UNSUPPORTED}
    for kind in (kind for kind in PARTS if named[kind] is None or kind in refused):
        others = [solver for solver in all_of(forms_of(traces, kind)) if solver not in used]
        if others:
            lines.append(f"other compatible solvers: {', '.join(others)}; compare all with --{kind}-solvers all")
    for kind in (kind for kind in PARTS if named[kind] == "all"):
        of_classes = all_of(dict.fromkeys(map(type, forms_of(traces, kind))))
        if left := [solver for solver in of_classes if solver not in used]:
            lines.append(f"left out, because they support none of the problems: {', '.join(left)}")
    return lines


def _fitting(traces: Iterable[ProblemTrace]) -> str:
    return f"{', '.join(all_of(recorded.form for trace in traces for recorded in trace.problems))} fit"


SHOWN = ("nDCG@1", "nDCG@5", "nDCG@10")  # the measures that have a column; the report draws the others too


def summary(rows: list[BenchmarkRow]) -> list[dict[str, Any]]:
    """One line per trace and solver, and per live run.

    seconds: the shifted geometric mean over supported problems, None without a solved one; for a live run its time.
    """
    from rankopt.experiments.rows import Outcome
    from rankopt.experiments.summaries import shifted_geometric_means

    lines: list[dict[str, Any]] = []
    for trace, role in dict.fromkeys((row.trace, row.role) for row in rows):
        here = [row for row in rows if row.trace == trace and row.role == role]
        for solver, mean in shifted_geometric_means(here).items():
            own = [row for row in here if row.solver == solver]
            time = None if isnan(mean) else mean
            gaps = [row.gap for row in own if row.gap is not None]
            overheads = [row.overhead for row in own if row.overhead is not None]
            lines.append({
                "trace": trace, "role": role, "solver": solver, "problems": len(own),
                "solved": sum(row.solved for row in own),
                "otherwise": sorted({row.verdict for row in own if row.status is not Outcome.SOLVED}),
                "largest_gap": max(gaps, default=None), "seconds": own[0].seconds if role else time,
                "overhead": None if role or not overheads else median(overheads),
                "measures": dict(own[0].measures),
            })  # fmt: skip
    return lines


def show(rows: list[BenchmarkRow]) -> None:
    """Print the summary, and why solvers do not support problems."""
    from rankopt.experiments.rows import Outcome

    lines = summary(rows)
    for trace, role in dict.fromkeys((line["trace"], line["role"]) for line in lines):
        here = [line for line in lines if line["trace"] == trace and line["role"] == role]
        click.secho(f"live training, {role} swapped" if role else trace, bold=True)
        measures = [name for name in SHOWN if any(name in line["measures"] for line in here)]
        times = ["seconds"] if role else ["ms (mean)", "with checks"]
        head = ["solver", "solved", "other than optimal", "largest gap", *times, *measures]
        table(head, [_line(line, measures, 1.0 if role else 1e3) for line in here])
        explained = (Outcome.UNSUPPORTED, Outcome.WRONG, Outcome.INACCURATE, Outcome.FAILED, Outcome.CRASHED)
        firsts: dict[tuple[str, Outcome], BenchmarkRow] = {}
        for row in rows:
            if (row.trace, row.role) == (trace, role) and row.status in explained:
                firsts.setdefault((row.solver, row.status), row)
        for row in firsts.values():
            click.echo(f"{row.solver}, {row.problem}, {row.verdict}: {row.message}")
        click.echo()
    click.echo("gap: from value to proven bound, as a part of the size of the objective's terms at the solution.")
    click.echo("ms: shifted geometric mean over supported problems; an unsolved one counts ten times the longest")
    click.echo("time of any solver. Compare means where all are solved; a claimed optimum counts as solved.")
    click.echo("with checks: the median factor by which restating the problem and checking the answer take longer.")


def _line(line: dict[str, Any], measures: list[str], unit: float) -> list[str]:
    gap, seconds = line["largest_gap"], line["seconds"]
    return [
        line["solver"],
        f"{line['solved']}/{line['problems']}",
        ", ".join(line["otherwise"]) or "-",
        "-" if gap is None else f"{gap:.0e}",
        "-" if seconds is None else f"{unit * seconds:.3g}",
        *([] if line["role"] else ["-" if line["overhead"] is None else f"x {line['overhead']:.3g}"]),
        *("-" if line["measures"].get(name) is None else f"{line['measures'][name]:.4f}" for name in measures),
    ]


def watched(experiment: SolverSwap, output: str | None, resume: bool) -> list[BenchmarkRow]:
    """The rows; the solver that is running and the latest row are shown during the run."""
    found: list[BenchmarkRow] = []
    with waiting("recording traces ...") as show_status:

        def announce(running: str) -> None:
            last = f"; last: {found[-1].solver}, {found[-1].problem}: {found[-1].verdict}" if found else ""
            show_status(f"running {running}; {len(found)} rows{last}")

        for row in replace(experiment, announce=announce).rows(output, resume=resume):
            found.append(row)
    return found


def _finite(_: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    least = 1.0 if parameter.name == "tolerance" else math.ulp(0.0)
    if value is not None and not least <= value < math.inf:
        wanted = ">= 1" if least == 1.0 else "> 0"
        raise click.BadParameter(f"it must be a finite number {wanted}; got {value:g}.", param=parameter)
    return value


@click.command(cls=common.Command)
@click.argument("data", nargs=-1, type=common.EXISTING)
@common.column_options
@click.option(
    "--baseline", metavar="ROWS", type=common.FILE,
    help="Rows of an earlier swap: replay its traces by the installed versions, and print what changed.",
)  # fmt: skip
@click.option(
    "--tolerance", type=float, callback=_finite, default=1.1,
    help="With --baseline: the factor up to which seconds count as the same.",
)  # fmt: skip
@click.option("--test", "test_file", type=common.EXISTING, help="Queries to measure trained rankers on.")
@click.option(
    "--argmax-solvers",
    help="Solvers of the ranking problem, separated by commas; 'all' for all installed ones, or 'none'.",
)
@click.option("--master-solvers", help="Solvers of the master program, likewise; module:attribute is a custom solver.")
@click.option("--methods", help="Optimization methods, likewise.")
@click.option("--measure", default="nDCG@10", help="The measure that is optimized.")
@click.option("--feature-map", "map_", type=click.Choice([*FEATURE_MAPS]), default="positional", help="Feature map.")
@click.option("--bound", type=click.Choice([*BOUNDS]), default="nonconvex", help="Upper bound of the measure's regret.")
@click.option("--lam", type=float, default=0.1, help="Weight of the regularizer.")
@click.option("--problems", type=click.IntRange(1), default=24, help="About how many problems an argmax trace has.")
@click.option(
    "--repeats", type=click.IntRange(1), default=3,
    help="Timed runs of a problem, after an untimed one if time allows; the median is reported.",
)  # fmt: skip
@click.option("--train/--no-train", "train", default=True, help="Also swap solvers in live training.")
@click.option(
    "--time-limit", type=float, callback=_finite,
    help="Seconds of a solver for a problem [10], and for a recorded trace of training [3]; two thirds of it for a "
    "live run, which is killed five seconds after twice that. Each solver first loads its modules in a tiny problem, "
    "with 60 seconds more: one that hangs there is stopped only then.",
)  # fmt: skip
@click.option("--memory-limit", type=float, callback=_finite, default=4.0, help="Gigabytes that a solver may use.")
@common.unjudged_option
@click.option("--output", type=common.OutputPath(), help="File of the rows, one JSON object per line.")
@click.option("--csv", "table_", type=common.OutputPath(), help="CSV file of the rows: a line per problem and solver.")
@click.option(
    "--resume", is_flag=True,
    help="Continue the file of --output; its rows are not recomputed, also those that reached a limit.",
)  # fmt: skip
@common.report_option
@common.json_option
def swap(
    data: tuple[str, ...],
    baseline: str | None,
    tolerance: float,
    test_file: str | None,
    argmax_solvers: str | None,
    master_solvers: str | None,
    methods: str | None,
    measure: str,
    map_: str,
    bound: str,
    lam: float,
    time_limit: float | None,
    memory_limit: float,
    unjudged: float | None,
    output: str | None,
    table_: str | None,
    resume: bool,
    report: str | None,
    json_: bool,
    columns: common.Columns,
    **options: Any,
) -> None:
    """Compare solvers on the queries of DATA (default: a bundled dataset), or on problem files.

    \b
    rankopt swap knapsack.mps facility.mps --argmax-solvers highs,cvxpy:SCIPY --report page.html

    Problem files end with .mps, .lp, .toml or .npz (a trace), and may be in a folder; nothing is learned from them.
    Each solver has the time limit for each of them. Of queries, the problems
    of a training run are recorded and replayed with every solver. Then training runs with one argmax, master or method
    replaced. Each solver has its own process: crashes, hangs and wrong answers are rows of the result. Exit code 1: an
    answer was refuted.
    """
    from formulations.problems.ranking import RankTwoAssignment
    from formulations.problems.relevance_ranking import RelevanceRanking
    from formulations.problems.simplex_qp import GroupedSimplexQP
    from formulations.solvers import get_solver
    from formulations.solvers.solver import suits
    from rankopt.data import load_sample
    from rankopt.experiments.isolation import Limits, method_spec
    from rankopt.experiments.regression import Kind, changes
    from rankopt.experiments.rows import Outcome
    from rankopt.experiments.solver_swap import ARGMAX, MASTERS, METHODS, SolverSwap
    from rankopt.measures.measure import PositionalMeasure
    from rankopt.measures.notation import parse
    from rankopt.optimize import METHODS as KNOWN
    from rankopt.rankers import LargeMarginRanker

    if resume and output is None:
        raise click.UsageError("--resume continues the file of --output; add --output FILE")
    if output is not None and Path(output).exists() and not resume:
        raise click.UsageError(f"{output} exists; remove it, choose another file, or add --resume to continue it")
    sys.path.append(os.getcwd())  # a custom solver may be there
    seconds = 3.0 if time_limit is None else time_limit
    usual = {method_spec(one): one for one in METHODS}
    what: Any
    usual_argmax: Any = ARGMAX
    usual_masters: Any = MASTERS
    before: list[BenchmarkRow] = []
    stated = baseline is not None or are_problems(data)
    limits = Limits(
        problem=time_limit or 10.0, trace=None if stated else seconds, training_time=seconds * 2 / 3,
        memory=int(memory_limit * 2**30),
    )  # fmt: skip
    if stated or not data:
        columns.check_unused("DATA has no table of queries")
    if baseline is not None:
        from rankopt.experiments.regression import baseline_solvers, read_baseline

        if any(part not in (None, (), False) for part in (data, test_file, methods, unjudged)):
            raise click.UsageError("--baseline replays traces; leave DATA, --test, --methods and --unjudged-grade out")
        if output is not None and Path(output).resolve() == Path(baseline).resolve():
            raise click.UsageError("--output is the file of --baseline; choose another")
        (before, what), methods = read_baseline(baseline), "none"
        usual_argmax = baseline_solvers(before, "argmax") if argmax_solvers is None else ARGMAX
        usual_masters = baseline_solvers(before, "master") if master_solvers is None else MASTERS
        if click.get_current_context().get_parameter_source("repeats") is not ParameterSource.COMMANDLINE:
            options["repeats"] = 5
    elif stated:
        if test_file is not None or methods is not None:
            raise click.UsageError("a problem is not trained on; leave --test and --methods out")
        what, methods = traces_at(data, argmax_solvers, master_solvers, limits.problem), "none"
    else:
        what = queries_at(data[0], unjudged, columns=columns) if data else load_sample("les-miserables")
    features, names = (what.n_features, what.feature_names) if data and not stated else (None, None)
    ranker = LargeMarginRanker(measure, feature_map=cast("MapName", map_), bound=cast("BoundName", bound), lam=lam)
    inner = map_ == "positional" and isinstance(parse(measure), PositionalMeasure)
    forms = forms_of(what, "argmax") if stated else {RankTwoAssignment if inner else RelevanceRanking}
    planes = forms_of(what, "master") if stated else {GroupedSimplexQP}
    if not stated:
        usual_argmax = [one for one in ARGMAX if suits(get_solver(str(one)), *forms)]
    experiment = SolverSwap(
        what,
        argmax_solvers=_choose(argmax_solvers, usual_argmax, lambda: all_of(forms)),
        master_solvers=_choose(master_solvers, usual_masters, lambda: all_of(planes)),
        methods=[usual.get(name, name) for name in _choose(methods, usual, lambda: dict.fromkeys([*usual, *KNOWN]))],
        ranker=ranker,
        test=None if test_file is None else queries_at(test_file, unjudged, features, columns, names),
        limits=limits,
        **options,
    )
    rows = watched(experiment, output, resume)
    if output is not None:  # with the earlier rows
        from rankopt.experiments.rows import read_rows

        rows = read_rows(output)
    if table_ is not None:
        from rankopt.experiments.rows import rows_to_frame

        rows_to_frame(rows).to_csv(table_, index=False)
    if report is not None:
        from rankopt.report.swap_page import page_of_swap

        write_report(report, page_of_swap(rows, as_given()))
    found = [] if baseline is None else changes(before, rows, tolerance)
    if json_:
        record = {"rows": len(rows), "summary": summary(rows), "output": output, "report": report}
        if baseline is not None:
            record |= {"changes": changes_summary(found), "named": changes_named(found)}
        as_json(record)
    else:
        if baseline is None:
            show(rows)
            for line in other_solvers(what, rows, argmax=argmax_solvers, master=master_solvers) if stated else ():
                click.echo(line)
        else:
            show_changes(found, tolerance)
        for path in filter(None, (output, table_)):
            click.echo(f"wrote {path}")
    if any(row.status is Outcome.WRONG for row in rows) or any(one.kind in (Kind.WRONG, Kind.LOST) for one in found):
        raise click.exceptions.Exit(1)


def _choose(names: str | None, usual: Any, every: Any) -> tuple[Any, ...]:
    """The named ones; by default the usual ones, for "all" all installed ones, for "none" none."""
    if names is None:
        return usual if isinstance(usual, tuple) else tuple(usual)  # `SolverSwap` compares a table by identity
    if names == "none":
        return ()
    return tuple(every()) if names == "all" else tuple(listed(names))


def changes_summary(found: Sequence[Changed]) -> list[dict[str, Any]]:
    """One line per trace and solver: versions, the mean factor of time, and counts of the changes."""
    from rankopt.experiments.regression import by_solver, mean_factor

    return [
        {
            "trace": trace, "solver": solver, "before": _versions(one.before for one in own),
            "after": _versions(one.after for one in own), "problems": len(own), "factor": mean_factor(own),
            "became": dict(Counter(one.kind.words for one in own)),
        }
        for (trace, solver), own in by_solver(found).items()
    ]  # fmt: skip


def changes_named(found: Sequence[Changed]) -> list[dict[str, str]]:
    """The problems whose outcome changed."""
    from rankopt.experiments.regression import Kind

    return [
        {"trace": one.after.trace, "solver": one.after.solver, "problem": one.after.problem, "became": one.kind.words,
         "why": one.why}
        for kind in (Kind.WRONG, Kind.LOST, Kind.MENDED) for one in found if one.kind is kind
    ]  # fmt: skip


def show_changes(found: Sequence[Changed], tolerance: float) -> None:
    """Print what changed since the baseline."""
    table(
        ["trace", "solver", "before", "now", "time, now / before", "became"],
        [
            [
                line["trace"], line["solver"], line["before"] or "-", line["after"] or "-",
                "-" if line["factor"] is None else f"{line['factor']:.3g}",
                ", ".join(f"{count} {word}" for word, count in line["became"].items()),
            ]
            for line in changes_summary(found)
        ],
    )  # fmt: skip
    for one in changes_named(found):
        click.echo(f"{one['became']}: {one['solver']}, {one['problem']}: {one['why']}")
    click.echo(
        "time: geometric mean over the problems with the same answer; slower, faster: by the repeats of that problem, "
        f"by more than the tolerance {tolerance:g}."
    )


def _versions(rows: Iterable[BenchmarkRow]) -> str:
    return ", ".join(sorted({row.version for row in rows if row.version}))
