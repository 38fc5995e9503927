"""`rankopt swap`: every solver on the same work, live training with each of them, a table and a report."""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from formulations.solvers.options import listed
from rankopt.commands.output import as_given, as_json, json_option, report_option, write_report
from rankopt.commands.reading import queries_at
from rankopt.commands.swap_problems import all_of, are_problems, forms_of, tapes_at
from rankopt.commands.swap_table import show, summary, watched
from rankopt.commands.target import OutputPath
from rankopt.losses import BOUNDS, MAPS

if TYPE_CHECKING:
    from rankopt.rankers.choices import BoundName, MapName


def _positive(_: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value > 0):
        raise click.BadParameter(f"{value:g} is no limit; give a positive finite number", param=parameter)
    return value


def _margin(_: click.Context, parameter: click.Parameter, value: float) -> float:
    if not (math.isfinite(value) and value >= 1):
        raise click.BadParameter(f"{value:g} is no margin; give a factor of 1 or more", param=parameter)
    return value


@click.command()
@click.argument("data", nargs=-1, type=click.Path(exists=True))
@click.option(
    "--ratings", is_flag=True,
    help="DATA are ratings, as `rankopt cofi` reads them: replay the masters of users and of items.",
)  # fmt: skip
@click.option(
    "--against", metavar="ROWS", type=click.Path(exists=True, dir_okay=False),
    help="Rows of an earlier swap: replay its tapes by what is installed now, and say what changed.",
)  # fmt: skip
@click.option(
    "--margin", type=float, callback=_margin, default=1.1, show_default=True,
    help="With --against: the factor up to which seconds count as the same.",
)  # fmt: skip
@click.option("--test", "test_file", type=click.Path(exists=True), help="Queries on which learnt rankers are measured.")
@click.option("--argmax", help="Solvers of the ranking, comma between them; 'all' that are installed, 'none'.")
@click.option("--master", help="Solvers of the master program; likewise. module:attribute names one of your own.")
@click.option("--method", help="Ways to minimise; likewise.")
@click.option("--measure", default="nDCG@10", show_default=True, help="The measure that is optimized.")
@click.option(
    "--map", "map_", type=click.Choice([*MAPS]), default="positional", show_default=True,
    help="The feature map: what an order makes of the scores.",
)  # fmt: skip
@click.option(
    "--bound", type=click.Choice([*BOUNDS]), default="nonconvex", show_default=True,
    help="Which upper bound of the measure's regret.",
)  # fmt: skip
@click.option("--lam", type=float, default=0.1, show_default=True, help="Weight of the regulariser.")
@click.option(
    "--problems", type=click.IntRange(1), default=24, show_default=True,
    help="About how many problems an argmax tape holds.",
)  # fmt: skip
@click.option(
    "--repeats", type=click.IntRange(1), default=3, show_default=True,
    help="Timed runs of a problem; their median counts.",
)  # fmt: skip
@click.option("--live/--no-live", default=True, show_default=True, help="Swap inside live training too.")
@click.option(
    "--time-limit", type=float, callback=_positive,
    help="Seconds of a solver for a tape [3] and for a problem [10]; two thirds of it for a live run, which is killed "
    "five seconds after twice that.",
)  # fmt: skip
@click.option(
    "--memory-limit", type=float, callback=_positive, default=4.0, show_default=True,
    help="Gigabytes that a solver may take.",
)  # fmt: skip
@click.option("--unjudged", type=float, help="The grade that negative labels stand for.")
@click.option("--output", type=OutputPath(), help="Where rows are written, one JSON object a line.")
@click.option("--resume", is_flag=True, help="Go on with --output; its rows stay, also those of limits.")
@report_option
@json_option
def swap(
    data: tuple[str, ...],
    ratings: bool,
    against: str | None,
    margin: float,
    test_file: str | None,
    argmax: str | None,
    master: str | None,
    method: str | None,
    measure: str,
    map_: str,
    bound: str,
    lam: float,
    time_limit: float | None,
    memory_limit: float,
    unjudged: float | None,
    output: str | None,
    resume: bool,
    report: str | None,
    json_: bool,
    **options: Any,
) -> None:
    """Swap solvers on the queries of DATA, by default on a sample that comes along; or on the problems in DATA, one
    file or several that end with .mps, .lp, .toml or .npz (a tape), without any learning.

    The problems that a training run meets are recorded and replayed through every solver; then training itself runs
    with one argmax, master or method in the place of the usual one. Each solver works in a process of its own: crashes,
    hangs and wrong answers are rows of the result. Exit code 1 says that an answer was refuted.
    """
    from formulations.forms.grouped_simplex import GroupedSimplexQP
    from formulations.forms.pattern_ranking import PatternRanking
    from formulations.forms.rank_two_assignment import RankTwoAssignment
    from formulations.solvers import named
    from formulations.solvers.solver import suits
    from rankopt.data import load_sample
    from rankopt.experiments.isolation.limits import Limits
    from rankopt.experiments.isolation.shipping import method_spec
    from rankopt.experiments.rows import Outcome
    from rankopt.experiments.solver_swap import ARGMAX, MASTERS, METHODS, SolverSwap
    from rankopt.measures.notation import parse
    from rankopt.measures.positional import Positional
    from rankopt.optimize import METHODS as KNOWN
    from rankopt.rankers import LargeMarginRanker

    if resume and output is None:
        raise click.UsageError("--resume goes on with the file that --output names; give it")
    if output is not None and Path(output).exists() and not resume:
        raise click.UsageError(f"{output} exists; remove it, choose another file, or add --resume to go on with it")
    sys.path.append(os.getcwd())  # where a solver of the caller's own may stand
    seconds = 3.0 if time_limit is None else time_limit
    limits = Limits(
        problem=time_limit or 10.0, tape=seconds, training=seconds * 2 / 3, memory=int(memory_limit * 2**30)
    )
    usual = {method_spec(one): one for one in METHODS}
    if against is not None:
        from rankopt.commands.swap_against import compare

        given = (data or None, test_file, method, unjudged, ratings or None)
        if any(part is not None for part in given):
            raise click.UsageError(
                "--against replays tapes; leave DATA, --ratings, --test, --method and --unjudged out"
            )
        rankings, masters = (None if one is None else _chosen(one, (), list) for one in (argmax, master))
        source = click.get_current_context().get_parameter_source("repeats")
        repeats = options["repeats"] if source is ParameterSource.COMMANDLINE else 5
        compare(against, rankings, masters, repeats, margin, limits, output, resume, report, json_)
        return
    what: Any
    stated = not ratings and are_problems(data)
    if ratings:
        from rankopt.commands.swap_ratings import masters_at

        if test_file is not None or argmax is not None or method is not None:
            raise click.UsageError("--ratings replays masters only; leave --test, --argmax and --method out")
        if len(data) > 1:
            raise click.UsageError("--ratings reads one file, or one folder; give one of them")
        what, argmax, method = masters_at(data[0] if data else None, options["problems"]), "none", "none"
    elif stated:
        if test_file is not None or method is not None:
            raise click.UsageError("a problem is not trained on; leave --test and --method out")
        what, method = tapes_at(data, argmax, master), "none"
    else:
        what = queries_at(data[0], unjudged=unjudged) if data else load_sample("les-miserables")
    features = what.n_features if data and not (ratings or stated) else None
    ranker = LargeMarginRanker(measure, map=cast("MapName", map_), bound=cast("BoundName", bound), lam=lam)
    inner = map_ == "positional" and isinstance(parse(measure), Positional)
    forms = forms_of(what, "argmax") if stated else {RankTwoAssignment if inner else PatternRanking}
    planes = forms_of(what, "master") if stated else {GroupedSimplexQP}
    usual_argmax = ARGMAX if stated else [one for one in ARGMAX if suits(named(str(one)), *forms)]
    experiment = SolverSwap(
        what,
        argmax=_chosen(argmax, usual_argmax, lambda: all_of(forms)),
        masters=_chosen(master, MASTERS, lambda: all_of(planes)),
        methods=[usual.get(name, name) for name in _chosen(method, usual, lambda: dict.fromkeys([*usual, *KNOWN]))],
        ranker=ranker,
        held_out=None if test_file is None else queries_at(test_file, unjudged=unjudged, n_features=features),
        limits=limits,
        **options,
    )
    rows = watched(experiment.rows(output, resume=resume))
    if output is not None:  # with what was there before
        from rankopt.experiments.rows import read_rows

        rows = read_rows(output)
    if report is not None:
        from rankopt.report.of_swap import page_of_swap

        write_report(report, page_of_swap(rows, as_given()))
    if json_:
        as_json({"rows": len(rows), "summary": summary(rows), "output": output, "report": report})
    else:
        show(rows)
        if output is not None:
            click.echo(f"wrote {output}")
    if any(row.status is Outcome.WRONG for row in rows):
        raise click.exceptions.Exit(1)


def _chosen(given: str | None, usual: Any, every: Any) -> tuple[Any, ...]:
    """The names given, the usual ones where none are, all that are installed for "all", none for "none"."""
    if given is None:
        return usual if isinstance(usual, tuple) else tuple(usual)  # of a table `SolverSwap` knows that it is that
    if given == "none":
        return ()
    return tuple(every()) if given == "all" else tuple(listed(given))
