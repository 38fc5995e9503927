"""The page of `rankopt swap`: solvers on each trace, training runs with one part swapped, integrality studies."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
MOST_CURVES = 12  # largest number of curves of a figure: those of the fastest solvers
NOT_TRIED = (Outcome.UNSUPPORTED, Outcome.MISSING, Outcome.GIVEN_UP)
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
    """Packages, their versions and the number of rows; one file may hold rows of several versions."""
    counts = Counter((name, version) for row in rows for name, version in row.versions.items())
    return [[name, version, count] for (name, version), count in sorted(counts.items())]


def _trace(kind: str, name: str, rows: Sequence[BenchmarkRow]) -> dict[str, Any]:
    """A trace replayed with solvers: problems solved, times, agreement and failures."""
    mean = shifted_geometric_means(rows)
    about = f"{kind}, {len({row.problem for row in rows})} problems"
    solvers, wins = pairwise_wins([row for row in rows if row.status not in NOT_TRIED])
    failed = [row for row in rows if not row.solved and row.status not in NOT_TRIED]
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
        "claimed": [
            [r.problem, r.solver, r.verdict, r.value, r.bound, r.reported_bound]
            for r in rows
            if r.reported_bound is not None and r.answered and r.status is not Outcome.SOLVED
        ],
        "skipped": [[*key, len(same), same[0].message] for key, same in skipped.items()],
    }


def _solvers(rows: Sequence[BenchmarkRow], mean: dict[str, float]) -> list[list[object]]:
    """A line for each solver, the fastest first."""
    problems = len({row.problem for row in rows})
    lines: list[list[object]] = []
    for solver in sorted(solvers_of(rows), key=lambda name: math.inf if math.isnan(mean[name]) else mean[name]):
        own = [row for row in rows if row.solver == solver]
        counts = Counter(row.verdict for row in own if row.status is not Outcome.SOLVED)
        solved = sum(row.solved for row in own)
        memory = max((row.memory for row in own if row.memory), default=None)
        integral = [row.integral for row in own if row.integral is not None]
        lines.append(
            [
                solver,
                next((row.version for row in own if row.version), ""),
                FormattedCell(solved / problems, f"{solved} of {problems}"),
                ", ".join(f"{count} {word}" for word, count in counts.items()),
                FormattedCell(math.nan, "-") if math.isnan(mean[solver]) else brief(mean[solver]),
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
    fastest = sorted(curves, key=lambda solver: mean[solver])[:MOST_CURVES]
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
            brief(row.seconds), *(brief(row.measures.get(name)) for name in names), row.message,
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


KINDS = {"argmax": "ranking", "master": "the master program"}  # the task of the solvers of each kind of trace, in words
NAMED = 4  # largest number of solvers that are listed by name


def swap_finding(rows: Sequence[BenchmarkRow]) -> str:
    """The finding and advice; "" without rows."""
    sentences = [_fastest(of_kind(rows, kind), does) for kind, does in KINDS.items()]
    sentences += [
        _refuted_text(rows),
        _training_agreement(of_kind(rows, "training")),
        _sets(of_kind(rows, "integrality")),
    ]
    return " ".join(filter(None, sentences))


def _fastest(rows: Sequence[BenchmarkRow], does: str) -> str:
    """The fastest solver that solved all problems (shifted geometric mean), and the next one."""
    if not rows:
        return ""
    problems = len({(row.trace, row.problem) for row in rows})
    solved = {solver: sum(row.solver == solver and row.solved for row in rows) for solver in solvers_of(rows)}
    complete = [solver for solver, count in solved.items() if count == problems]
    if not complete:
        best = max(solved, key=lambda solver: solved[solver])
        return f"For {does} no solver solved all {problems} problems; {best} solved most, {solved[best]}."
    means = shifted_geometric_means(rows)
    first, *others = sorted(complete, key=lambda solver: means[solver])
    sentence = f"For {does} use {first}: of {len(solved)} solvers {len(complete)} solved all {problems} problems"
    if not others:
        return f"{sentence.replace(f' {len(complete)} solved', ' it alone solved')}."
    return f"{sentence}, and it took {1e3 * means[first]:.3g} ms, the next, {others[0]}, {1e3 * means[others[0]]:.3g}."


def _refuted_text(rows: Sequence[BenchmarkRow]) -> str:
    wrong = [row.solver for row in rows if row.status is Outcome.WRONG]
    if not wrong:
        return ""
    refuted = list(dict.fromkeys(wrong))
    named = ", ".join(refuted) if len(refuted) <= NAMED else f"{len(refuted)} solvers"
    return f"Do not use {named}: {len(wrong)} {'answer was' if len(wrong) == 1 else 'answers were'} refuted."


def _training_agreement(rows: Sequence[BenchmarkRow]) -> str:
    """Whether the runs of one training problem agree within their proven gaps: value <= best + gap."""
    ended = [row for row in rows if row.value is not None and row.bound is not None]
    if not ended:
        return ""
    best: dict[tuple[str, str], float] = {}
    for row in ended:
        best[row.trace, row.problem] = min(row.value or 0.0, best.get((row.trace, row.problem), float("inf")))
    off = [row for row in ended if (row.bound or 0.0) > best[row.trace, row.problem] * (1 + 1e-12)]
    count = f"{len(ended)} of {len(rows)} training runs ended with a proven gap"
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
    return (
        f"{proved}, {count[Outcome.REFUTED]} refuted, {undecided} open: "
        "solve the others as integer programs ('highs', 'cp_sat')."
    )
