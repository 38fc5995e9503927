"""The page of `rankopt swap`: solvers on each trace, training runs with one part swapped, integrality studies."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from rankopt.experiments.rows import BenchmarkRow, Outcome
from rankopt.experiments.summaries import (
    agreement,
    of_kind,
    pairwise_wins,
    performance_profile,
    shifted_geometric_means,
    solvers_of,
)
from rankopt.report.charts import convergence, heat_map, measure_curves, profile_drawing
from rankopt.report.page import Drawing, FormattedCell, brief, line_style, render

MOST_LINES = 200  # largest number of rows of a table of problems; the caption has the full number
MOST_OPEN = 30  # largest number of rows of a table of instances that is unfolded at first
MOST_CURVES = 8  # largest number of curves of a figure: those of the fastest solvers
NOT_TRIED = (Outcome.UNSUPPORTED, Outcome.MISSING, Outcome.GIVEN_UP)
INSTANCE = ("instance", "size", "solver", "outcome", "value", "proven bound", "gap", "seconds")
CLAIM = ("claimed status", "claimed bound")
ROLES = ("argmax", "master", "method")
FACTS = ("objectives", "fractional", "overestimate_mean", "overestimate_max")
SHARES = {
    "fractional": "share of the random objectives whose relaxation has a fractional optimum",
    "overestimate_max": "largest overestimate of the integer optimum by the relaxation, as a share of it",
}


def page_of_swap(rows: Sequence[BenchmarkRow], made_by: str = "") -> str:
    """The page of these rows."""
    replayed = _group_rows((row for kind in KINDS for row in of_kind(rows, kind)), "kind", "trace")
    return render(
        "swap.html",
        title="Integrality as sets grow" if {row.kind for row in rows} == {"integrality"} else "Solvers swapped",
        run=_run(rows),
        versions=_versions(rows),
        traces=[_trace(kind, name, own) for (kind, name), own in replayed.items()],
        trained=[_training(own) for own in _group_rows(of_kind(rows, "training"), "trace", "problem").values()],
        integrality=_integrality(of_kind(rows, "integrality")),
        most_lines=MOST_LINES,
        most_open=MOST_OPEN,
        finding=swap_finding(rows),
        made_by=made_by,
    )


def _group_rows(rows: Iterable[BenchmarkRow], first: str, second: str) -> dict[tuple[str, str], list[BenchmarkRow]]:
    """The rows by two of their attributes, in order of first appearance."""
    groups: dict[tuple[str, str], list[BenchmarkRow]] = defaultdict(list)
    for row in rows:
        groups[getattr(row, first), getattr(row, second)].append(row)
    return dict(groups)


def _run(rows: Sequence[BenchmarkRow]) -> list[list[object]]:
    """The table of runs: kind, trace, problems, solvers, rows, seeds."""
    lines: list[list[object]] = []
    for (kind, trace), own in _group_rows(rows, "kind", "trace").items():
        seeds = ", ".join(sorted({str(row.seed) for row in own if row.seed is not None}))
        lines.append([kind, trace, len({row.problem for row in own}), len(solvers_of(own)), len(own), seeds])
    return lines


def _versions(rows: Sequence[BenchmarkRow]) -> list[list[object]]:
    """Machines, packages, their versions and the number of rows; one file may hold rows of several."""
    counts = Counter((name, version) for row in rows for name, version in row.versions.items())
    return [[name, version, count] for (name, version), count in sorted(counts.items())]


def _trace(kind: str, name: str, rows: Sequence[BenchmarkRow]) -> dict[str, Any]:
    """A trace replayed with solvers: problems solved, times, agreement and failures."""
    mean = shifted_geometric_means(rows)
    names = [*dict.fromkeys(row.problem for row in rows)]
    about = f"{kind}, {len(names)} problems"
    tried = [row for row in rows if row.status not in NOT_TRIED]
    claimed = any(row.reported_status or row.reported_bound is not None for row in tried)
    solvers, wins = pairwise_wins(tried)
    failed = [row for row in tried if not row.solved]
    skipped: dict[tuple[str, str], list[BenchmarkRow]] = defaultdict(list)
    for row in rows:
        if row.status in NOT_TRIED:
            skipped[row.solver, row.status.words].append(row)
    return {
        "name": name,
        "solvers": _solvers(rows, mean),
        "drawings": [*_profile(rows, mean, about), *_agreement(rows, about)],
        "faster_than": solvers,
        "wins": [[solver, *(int(count) for count in line)] for solver, line in zip(solvers, wins, strict=True)],
        "differing": _differing(rows),
        "failed": [[r.problem, r.shape_text, r.solver, r.verdict, brief(r.gap), r.message] for r in failed],
        "instances_head": [*INSTANCE[:-1], *(CLAIM if claimed else ()), INSTANCE[-1]],
        "instances": [_instance(row, claimed) for row in sorted(tried, key=lambda row: names.index(row.problem))],
        "skipped": [[*key, len(same), same[0].message] for key, same in skipped.items()],
    }


def _instance(row: BenchmarkRow, claimed: bool) -> list[object]:
    """The line of one solver on one problem, with the columns of `INSTANCE`, and those of `CLAIM` before the last."""
    claim = [(row.reported_status or "").lower().replace("_", " "), row.reported_bound] if claimed else []
    known = [row.problem, row.shape_text, row.solver, row.verdict, row.value, row.bound, brief(row.gap)]
    return [*known, *claim, brief(row.seconds)]


def _solvers(rows: Sequence[BenchmarkRow], mean: dict[str, float]) -> list[list[object]]:
    """A line for each solver: those that support all problems first, the fastest of them on top."""
    problems = len({row.problem for row in rows})
    partial = {row.solver for row in rows if row.status is Outcome.UNSUPPORTED}
    lines: list[list[object]] = []
    for solver in sorted(solvers_of(rows), key=lambda name: (math.isnan(mean[name]), name in partial, mean[name])):
        own = [row for row in rows if row.solver == solver]
        counts = Counter(row.verdict for row in own if row.status is not Outcome.SOLVED)
        solved = sum(row.solved for row in own)
        memory = max((row.memory for row in own if row.memory), default=None)
        integral = [row.integral for row in own if row.integral is not None]
        overheads = [row.overhead for row in own if row.overhead is not None]
        lines.append(
            [
                solver,
                next((row.version for row in own if row.version), ""),
                FormattedCell(solved / problems, f"{solved} of {problems}"),
                ", ".join(f"{count} {word}" for word, count in counts.items()),
                FormattedCell(math.nan, "-") if math.isnan(mean[solver]) else brief(mean[solver]),
                FormattedCell(median(overheads), f"x {median(overheads):.3g}") if overheads else None,
                brief(max((row.gap for row in own if row.answered and row.gap is not None), default=None)),
                integral.count(False) if integral else None,
                None if memory is None else FormattedCell(memory, f"{memory / 2**20:.0f} MiB"),
            ]
        )
    return lines


def _profile(rows: Sequence[BenchmarkRow], mean: dict[str, float], about: str) -> list[Drawing]:
    curves = {solver: curve for solver, curve in performance_profile(rows).items() if len(curve[0])}
    if len(curves) > MOST_CURVES:
        about += f", the {MOST_CURVES} fastest of {len(curves)} solvers"
    fastest = sorted(curves, key=lambda solver: (-curves[solver][1][-1], mean[solver]))[:MOST_CURVES]
    return [profile_drawing({solver: curves[solver] for solver in fastest}, about)] if curves else []


def _agreement(rows: Sequence[BenchmarkRow], about: str) -> list[Drawing]:
    found = agreement(rows)
    answered = [index for index in range(len(found.solvers)) if found.compared[index].any()]
    if not answered:
        return []
    names = [found.solvers[index] for index in answered]
    caption = f"{about}: percentage of equal values among the problems that both answered; framed in red below 100."
    return [heat_map(names, found.shares[answered][:, answered], "agreement", caption)]


def _differing(rows: Sequence[BenchmarkRow]) -> list[list[object]]:
    """Each answer that differs from another one, once, preferably next to the answer of a solver that solved it."""
    pairs: dict[tuple[str, str], tuple[BenchmarkRow, BenchmarkRow]] = {}
    for a, b in sorted(agreement(rows).differing, key=lambda pair: not any(row.solved for row in pair)):
        one, other = (b, a) if a.solved else (a, b)
        pairs.setdefault((one.problem, one.solver), (one, other))
    return [[a.problem, a.solver, a.value, a.verdict, b.solver, b.value, b.verdict] for a, b in pairs.values()]


def _training(rows: Sequence[BenchmarkRow]) -> dict[str, Any]:
    """Runs of one training problem with one part swapped: results and convergence of objective and bound."""
    names = sorted({name for row in rows for name in row.measures}, key=_by_cutoff)
    names = [name for name in names if _by_cutoff(name)[1] in (0, 1, 5, 10)]
    lines = [
        [
            row.role, row.solver, row.verdict, row.value, row.bound, brief(row.gap), row.iterations,
            brief(row.seconds), *(brief(row.measures.get(name)) for name in names),
            "" if row.status is Outcome.SOLVED else row.message,
        ]
        for row in rows
    ]  # fmt: skip
    drawings = []
    for role in ROLES:
        swapped = [row for row in rows if row.role == role]
        about = f"{role} swapped, held-out queries, equal curves drawn once"
        runs = convergence({row.solver: row.history for row in swapped if row.history}, f"{role} swapped")
        drawings.append([*runs, *measure_curves(_distinct(swapped), about)])
    return {"first": rows[0], "measures": names, "lines": lines, "drawings": drawings}


def _distinct(rows: Sequence[BenchmarkRow]) -> dict[str, Mapping[str, float | None]]:
    """The measures of learned rankers; rankers with equal measures are one entry."""
    same: dict[tuple[object, ...], list[BenchmarkRow]] = defaultdict(list)
    for row in rows:
        if row.measures:
            same[tuple(row.measures.items())].append(row)
    return {
        alike[0].solver + (f" and {len(alike) - 1} more" if len(alike) > 1 else ""): alike[0].measures
        for alike in same.values()
    }


def _by_cutoff(name: str) -> tuple[str, int]:
    """A sort key that puts nDCG@2 before nDCG@10."""
    measure, _, cutoff = name.partition("@")
    return measure, int(cutoff) if cutoff.isdigit() else 0


def _integrality(rows: Sequence[BenchmarkRow]) -> dict[str, Any]:
    """The verdict on each statement, and the rate and size of overestimates; empty without such rows."""
    if not rows:
        return {}
    sizes = list(dict.fromkeys(name for row in rows for name in row.sizes))
    lines = [
        [
            _statement(row), *(row.sizes.get(name) for name in sizes), row.status.words,
            row.facts.get("proof") or row.facts.get("witness") or row.message,
            *(brief(row.facts.get(name)) for name in FACTS), brief(row.seconds),
        ]
        for row in rows
    ]  # fmt: skip
    return {"sizes": sizes, "lines": lines, "drawings": [_fact(rows, *item) for item in SHARES.items()]}


def _fact(rows: Sequence[BenchmarkRow], fact: str, caption: str) -> Drawing:
    """A fact against the number of documents, the largest over all other sizes."""
    caption += "; against documents, the largest over all other sizes."
    with (drawing := Drawing(fact.replace("_max", " at most"), caption, "n, documents")) as axes:
        for index, statement in enumerate(dict.fromkeys(map(_statement, rows))):
            largest: dict[int, float] = {}
            for row in rows:
                value, n = row.facts.get(fact), row.sizes.get("n")
                if _statement(row) == statement and value is not None and n is not None:
                    largest[n] = max(value, largest.get(n, 0.0))
            x = sorted(largest)
            axes.plot(x, [largest[n] for n in x], marker="o", markersize=4, label=statement, **line_style(index))
        axes.set_ylim(bottom=-0.02)
    return drawing


def _statement(row: BenchmarkRow) -> str:
    return str(row.facts.get("statement", row.problem))


KINDS = ("argmax", "master")
NAMED = 4  # largest number of solvers that are listed by name


def swap_finding(rows: Sequence[BenchmarkRow]) -> str:
    """The finding and advice; "" without rows."""
    trained = of_kind(rows, "training")
    sentences = [_fastest(of_kind(rows, kind)) for kind in KINDS]
    sentences += [
        _refuted_text(rows),
        *(_fastest_training([row for row in trained if row.role == role]) for role in KINDS),
        _training_agreement(trained),
        _sets(of_kind(rows, "integrality")),
    ]
    return " ".join(filter(None, sentences))


def _fastest(rows: Sequence[BenchmarkRow]) -> str:
    """The two fastest of the solvers that solved all problems (shifted geometric mean). Others are not compared."""
    if not rows:
        return ""
    problems = len({(row.trace, row.problem) for row in rows})
    what = "quadratic programs" if rows[0].kind == "master" else "problems"
    if what == "problems" and all("documents" in row.sizes for row in rows):
        what = "rankings"
    solvers = solvers_of(rows)
    complete = [one for one in solvers if sum(row.solver == one and row.solved for row in rows) == problems]
    if not complete:
        return f"No solver solved all {problems} {what}, so their times are not compared."
    if len(complete) == 1:
        return f"Of {len(solvers)} solvers {complete[0]} alone solved all {problems} {what}."
    means = shifted_geometric_means([row for row in rows if row.solver in complete])
    first, second, *_ = sorted(complete, key=lambda solver: means[solver])
    count = f"All {len(solvers)} solvers" if complete == solvers else f"{len(complete)} of {len(solvers)} solvers"
    return (
        f"{count} solved all {problems} {what}. Mean time per problem: {first} {1e3 * means[first]:.3g} ms, the next, "
        f"{second}, {1e3 * means[second]:.3g} ms."
    )


def _fastest_training(rows: Sequence[BenchmarkRow]) -> str:
    """The two fastest solvers of one role in training, among the runs whose gap closed."""
    solved = [(row.seconds, row.solver) for row in rows if row.status is Outcome.SOLVED and row.seconds is not None]
    if len(solved) < 2 or len({(row.trace, row.problem) for row in rows}) > 1:
        return ""
    (seconds, first), (later, second), *_ = sorted(solved)
    return f"Training took {seconds:.3g} s with {first} as {rows[0].role} solver, {later:.3g} s with {second}."


def _refuted_text(rows: Sequence[BenchmarkRow]) -> str:
    wrong = [row.solver for row in rows if row.status is Outcome.WRONG]
    if not wrong:
        return ""
    refuted = list(dict.fromkeys(wrong))
    named = ", ".join(refuted) if len(refuted) <= NAMED else f"{len(refuted)} solvers"
    return f"Do not use {named}: {len(wrong)} {'answer was' if len(wrong) == 1 else 'answers were'} refuted."


def _training_agreement(rows: Sequence[BenchmarkRow]) -> str:
    """Whether the runs of one training problem agree within their proven gaps: value <= best + gap."""
    ended = [row for row in rows if row.status is Outcome.SOLVED and row.value is not None and row.bound is not None]
    if not ended:
        return ""
    best: dict[tuple[str, str], float] = {}
    for row in ended:
        best[row.trace, row.problem] = min(row.value or 0.0, best.get((row.trace, row.problem), float("inf")))
    off = [row for row in ended if (row.bound or 0.0) > best[row.trace, row.problem] * (1 + 1e-12)]
    count = f"{len(ended)} of {len(rows)} training runs closed their gap"
    if off:
        return (
            f"{count}, {off[0].solver} further from the best than its gap: under a nonconvex bound runs may end at "
            "several points, under a convex one that would be a fault."
        )
    return f"{count}, all within it of the best: the choice of a solver changes the time alone."


def _sets(rows: Sequence[BenchmarkRow]) -> str:
    """The number of integral statements, and advice for the others."""
    if not rows:
        return ""
    count = {status: sum(row.status is status for row in rows) for status in Outcome}
    proved = f"Of {len(rows)} statements {count[Outcome.PROVED]} are proved integral"
    if count[Outcome.PROVED] == len(rows):
        return f"{proved}: any solver of linear programs gives rankings."
    undecided = len(rows) - count[Outcome.PROVED] - count[Outcome.REFUTED]
    return f"{proved}, {count[Outcome.REFUTED]} refuted, {undecided} open: solve the others by 'highs' or 'cp_sat'."
