"""The page of rows: what was run, solvers on tapes, swapped training runs, integrality as sets grow.

What rows of experiments say in a few sentences: which solvers to use, which to leave, whether all of them agree.

A tape of problems replayed through solvers: who solved what, how fast, who agrees, and what went wrong.

Training with one part swapped at a time: what was reached, and how objective and bound came together.

Integrality as sets grow: what is proved of each statement, and how often and how far its relaxation is off.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rankopt.experiments.rows import Outcome, Row
from rankopt.experiments.summaries import (
    agreement,
    of_kind,
    pairwise_wins,
    performance_profile,
    shifted_geometric_means,
    solvers_of,
)
from rankopt.report.charts import heat_map, measure_curves, profile_drawing
from rankopt.report.convergence import convergence
from rankopt.report.html import Drawing, FormattedCell, Html, brief, figures, line_style, table
from rankopt.report.page import page, section

KINDS = {"argmax": "ranking", "master": "the master program"}
"""What the solvers of a tape do, as a reader has it."""

NAMED = 4
"""Solvers that are named; of more their number is told."""


def swap_finding(rows: Sequence[Row]) -> str:
    """What was found, and what to do; nothing of no rows."""
    told = [_fastest(of_kind(rows, kind), does) for kind, does in KINDS.items()]
    told += [_refuted(rows), _trained(of_kind(rows, "training")), _sets(of_kind(rows, "integrality"))]
    return " ".join(filter(None, told))


def _fastest(rows: Sequence[Row], does: str) -> str:
    """Who solved all problems in the least time (shifted geometric mean), and how far the next is."""
    if not rows:
        return ""
    problems = len({(row.tape, row.problem) for row in rows})
    solved = {solver: sum(row.solver == solver and row.solved for row in rows) for solver in solvers_of(rows)}
    whole = [solver for solver, count in solved.items() if count == problems]
    if not whole:
        best = max(solved, key=lambda solver: solved[solver])
        return f"For {does} no solver solved all {problems} problems; {best} solved most, {solved[best]}."
    means = shifted_geometric_means(rows)
    first, *others = sorted(whole, key=lambda solver: means[solver])
    told = f"For {does} use {first}: of {len(solved)} solvers {len(whole)} solved all {problems} problems"
    if not others:
        return f"{told.replace(f' {len(whole)} solved', ' it alone solved')}."
    return f"{told}, and it took {1e3 * means[first]:.3g} ms, the next, {others[0]}, {1e3 * means[others[0]]:.3g}."


def _refuted(rows: Sequence[Row]) -> str:
    wrong = [row.solver for row in rows if row.status is Outcome.WRONG]
    if not wrong:
        return ""
    who = list(dict.fromkeys(wrong))
    named = ", ".join(who) if len(who) <= NAMED else f"{len(who)} solvers"
    return f"Do not use {named}: {len(wrong)} {'answer was' if len(wrong) == 1 else 'answers were'} refuted."


def _trained(rows: Sequence[Row]) -> str:
    """Whether runs that train one thing end at one objective, as far as their proven gaps tell: value <= best + gap."""
    ended = [row for row in rows if row.value is not None and row.bound is not None]
    if not ended:
        return ""
    best: dict[tuple[str, str], float] = {}
    for row in ended:
        best[row.tape, row.problem] = min(row.value or 0.0, best.get((row.tape, row.problem), float("inf")))
    off = [row for row in ended if (row.bound or 0.0) > best[row.tape, row.problem] * (1 + 1e-12)]
    count = f"{len(ended)} of {len(rows)} training runs ended with a proven gap"
    if off:
        return (
            f"{count}, {off[0].solver} further from the best than its gap: under a nonconvex bound runs may end at "
            "several points, under a convex one that would be a fault."
        )
    return f"{count}, all within it of the best: the choice of a solver changes the time alone."


def _sets(rows: Sequence[Row]) -> str:
    """How many statements are whole, and what to do with the others."""
    if not rows:
        return ""
    count = {status: sum(row.status is status for row in rows) for status in Outcome}
    told = f"Of {len(rows)} statements {count[Outcome.PROVED]} are proved whole"
    if count[Outcome.PROVED] == len(rows):
        return f"{told}: any solver of linear programs gives rankings."
    return (
        f"{told}, {count[Outcome.REFUTED]} refuted, {len(rows) - count[Outcome.PROVED] - count[Outcome.REFUTED]} open: "
        "solve the others in whole numbers ('highs', 'cp_sat')."
    )


MOST_LINES = 200
"""Rows of a table of single problems; what is left out is said."""

MOST_CURVES = 12
"""Curves of a figure: the fastest solvers."""

NOT_TRIED = (Outcome.UNSUPPORTED, Outcome.MISSING, Outcome.GIVEN_UP)


def tape_section(kind: str, name: str, rows: Sequence[Row]) -> Html:
    """The section of one tape."""
    mean = shifted_geometric_means(rows)
    about = f"{kind}, {len({row.problem for row in rows})} problems"
    drawn = [*_profile(rows, mean, about), *_agreement(rows, about)]
    parts = [_solvers(rows, mean), figures(drawn), _wins(rows)]
    return section(f"Tape {name}", *parts, *_differing(rows), *_trouble(rows))


def _solvers(rows: Sequence[Row], mean: dict[str, float]) -> Html:
    problems = len({row.problem for row in rows})
    found: list[list[object]] = []
    for solver in solvers_of(rows):
        own = [row for row in rows if row.solver == solver]
        counts = Counter(row.status.words for row in own if row.status is not Outcome.SOLVED)
        solved = sum(row.solved for row in own)
        memory = max((row.memory for row in own if row.memory), default=None)
        found.append(
            [
                solver,
                next((row.version for row in own if row.version), ""),
                FormattedCell(solved / problems, f"{solved} of {problems}"),
                ", ".join(f"{count} {word}" for word, count in counts.items()),
                FormattedCell(math.nan, "-") if math.isnan(mean[solver]) else brief(mean[solver]),
                brief(max((row.gap for row in own if row.answered and row.gap is not None), default=None)),
                _fractional(own),
                None if memory is None else FormattedCell(memory, f"{memory / 2**20:.0f} MiB"),
            ]
        )
    found.sort(key=lambda row: math.inf if math.isnan(mean[str(row[0])]) else mean[str(row[0])])
    head = ["solver", "version", "solved", "else", "seconds", "largest gap", "fractional", "memory"]
    caption = (
        "Seconds: shifted geometric mean (shift 1 ms), what was not solved counting as ten times the longest time; "
        "- where nothing was solved. "
        "Gap: of the answers, relative to the scale of the problem. Fractional: answers not whole before rounding."
    )
    return table(head, found, caption)


def _fractional(rows: Sequence[Row]) -> int | None:
    """How many answers were not whole before rounding; None where wholeness is not asked for."""
    known = [row.integral for row in rows if row.integral is not None]
    return known.count(False) if known else None


def _profile(rows: Sequence[Row], mean: dict[str, float], about: str) -> list[Drawing]:
    curves = {solver: curve for solver, curve in performance_profile(rows).items() if len(curve[0])}
    if not curves:
        return []
    fastest = sorted(curves, key=lambda solver: mean[solver])
    said = about if len(curves) <= MOST_CURVES else f"{about}, the {MOST_CURVES} fastest of {len(curves)} solvers"
    return [profile_drawing({solver: curves[solver] for solver in fastest[:MOST_CURVES]}, said)]


def _agreement(rows: Sequence[Row], about: str) -> list[Drawing]:
    found = agreement(rows)
    answered = [place for place in range(len(found.solvers)) if found.compared[place].any()]
    if not answered:
        return []
    names = [found.solvers[place] for place in answered]
    says = f"{about}: percentage, of the problems that both answered, on which their values are one; ringed below 100."
    return [heat_map(names, found.shares[answered][:, answered], "agreement", says)]


def _wins(rows: Sequence[Row]) -> Html:
    solvers, wins = pairwise_wins([row for row in rows if row.status not in NOT_TRIED])
    lines = [[solver, *(int(count) for count in line)] for solver, line in zip(solvers, wins, strict=True)]
    return table(
        ["faster than", *solvers],
        lines,
        "Wins: problems that the row's solver solved and the column's did not, or later",
    )


def _differing(rows: Sequence[Row]) -> list[Html]:
    """Each answer that is not the others', once: beside one that solved the problem, where there is one."""
    told: dict[tuple[str, str], tuple[Row, Row]] = {}
    pairs = agreement(rows).differing
    for a, b in sorted(pairs, key=lambda pair: not any(row.solved for row in pair)):
        one, other = (b, a) if a.solved else (a, b)
        told.setdefault((one.problem, one.solver), (one, other))
    if not told:
        return []
    lines = [
        [a.problem, a.solver, a.value, a.status.words, b.solver, b.value, b.status.words] for a, b in told.values()
    ]
    head = ["problem", "solver", "value", "outcome", "other solver", "its value", "its outcome"]
    return [table(head, lines[:MOST_LINES], f"Where values differ ({_of(len(lines[:MOST_LINES]), len(lines))})")]


def _trouble(rows: Sequence[Row]) -> list[Html]:
    """Each problem that a solver tried and did not solve; and how often it was not tried."""
    tried = [row for row in rows if not row.solved and row.status not in NOT_TRIED]
    lines = [[row.problem, row.extent, row.solver, row.status.words, brief(row.gap), row.message] for row in tried]
    parts = []
    if lines:
        head = ["problem", "extent", "solver", "outcome", "gap", "what it said"]
        caption = f"Tried and not solved ({_of(len(lines[:MOST_LINES]), len(lines))})"
        parts.append(table(head, lines[:MOST_LINES], caption))
    skipped: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.status in NOT_TRIED:
            skipped.setdefault((row.solver, row.status.words), []).append(row)
    if skipped:
        left = [[solver, word, len(same), same[0].message] for (solver, word), same in skipped.items()]
        parts.append(table(["solver", "outcome", "problems", "why, of the first"], left, "Not tried"))
    return parts


def _of(shown: int, all_: int) -> str:
    return f"all {all_}" if shown == all_ else f"the first {shown} of {all_}"


ROLES = ("argmax", "master", "method")


def training_section(rows: Sequence[Row]) -> Html:
    """The section of the runs that train one thing."""
    names = sorted({name for row in rows for name in row.measures}, key=_by_cutoff)
    shown = [name for name in names if _by_cutoff(name)[1] in (0, 1, 5, 10)]
    lines = [
        [
            row.role, row.solver, row.status.words, row.value, row.bound, brief(row.gap), row.iterations,
            brief(row.seconds), *(brief(row.measures.get(name)) for name in shown), row.message,
        ]
        for row in rows
    ]  # fmt: skip
    head = ["swapped", "solver", "outcome", "objective", "proven bound", "gap", "steps", "seconds", *shown, "message"]
    parts: list[Html] = [table(head, lines, f"{rows[0].problem}; {rows[0].extent}")]
    for role in ROLES:
        swapped = [row for row in rows if row.role == role]
        drawn = convergence({row.solver: row.history for row in swapped if row.history}, f"{role} swapped")
        curves = measure_curves(_distinct(swapped), f"{role} swapped, held-out queries, equal curves drawn once")
        parts.append(figures([*drawn, *curves]))
    return section(f"Run {rows[0].tape}", *parts)


def _distinct(rows: Sequence[Row]) -> dict[str, Mapping[str, float | None]]:
    """What learnt rankers reach, those that reach the same taken together."""
    same: dict[tuple[object, ...], list[Row]] = {}
    for row in rows:
        if row.measures:
            same.setdefault(tuple(row.measures.items()), []).append(row)
    return {
        alike[0].solver + (f" and {len(alike) - 1} more" if len(alike) > 1 else ""): alike[0].measures
        for alike in same.values()
    }


def _by_cutoff(name: str) -> tuple[str, int]:
    """nDCG@2 before nDCG@10."""
    measure, _, cutoff = name.partition("@")
    return measure, int(cutoff) if cutoff.isdigit() else 0


FACTS = ("objectives", "fractional", "overestimate_mean", "overestimate_max")
SHARES = {
    "fractional": "share of the random objectives whose relaxation has a fractional optimum",
    "overestimate_max": "largest overestimate of the whole optimum by the relaxation, as a share of it",
}


def integrality_section(rows: Sequence[Row]) -> list[Html]:
    """The section, where there are such rows."""
    if not rows:
        return []
    sizes = list(dict.fromkeys(name for row in rows for name in row.sizes))
    lines = [
        [
            _statement(row), *(row.sizes.get(name) for name in sizes), row.status.words,
            row.facts.get("proof") or row.facts.get("witness") or row.message,
            *(brief(row.facts.get(name)) for name in FACTS), brief(row.seconds),
        ]
        for row in rows
    ]  # fmt: skip
    head = ["statement", *sizes, "answer", "because", "objectives", "fractional", "mean off", "at most off", "seconds"]
    caption = "Fractional and off: over random objectives, shares; off is the relaxation above the whole optimum."
    drawn = [_drawing(rows, fact, says) for fact, says in SHARES.items()]
    return [section("Integrality", table(head, lines, caption), figures(drawn))]


def _drawing(rows: Sequence[Row], fact: str, says: str) -> Drawing:
    """A fact against the number of documents, the largest over all other sizes."""
    drawing = Drawing(fact.replace("_max", " at most"), f"{says}; against documents, the largest over all other sizes.")
    with drawing as axes:
        for place, statement in enumerate(dict.fromkeys(map(_statement, rows))):
            largest: dict[int, float] = {}
            for row in rows:
                value = row.facts.get(fact)
                if _statement(row) == statement and value is not None and "n" in row.sizes:
                    n = row.sizes["n"]
                    largest[n] = max(value, largest.get(n, 0.0))
            x = sorted(largest)
            axes.plot(x, [largest[n] for n in x], marker="o", markersize=4, label=statement, **line_style(place))
        axes.set_ylim(bottom=-0.02)
        axes.set_xlabel("n, documents")
    return drawing


def _statement(row: Row) -> str:
    return str(row.facts.get("statement", row.problem))


TITLES = {False: "Solvers swapped", True: "Integrality as sets grow"}
"""Of a page of swapped solvers, and of one with nothing but an integrality study."""

LEAD = (
    "Values, feasibility and bounds are recomputed from the problems' data; what a solver says of itself is not "
    "believed. Seconds are of the machine that ran it. A click on the head of a column sorts a table."
)


def page_of_swap(rows: Sequence[Row], made_by: str = "") -> str:
    """The page of these rows."""
    parts = [section("What was run", _run(rows), _versions(rows))]
    for kind in ("argmax", "master"):
        of_this = of_kind(rows, kind)
        parts += [tape_section(kind, name, [r for r in of_this if r.tape == name]) for name in _tapes(of_this)]
    trained = of_kind(rows, "training")
    for name in _tapes(trained):
        runs = [row for row in trained if row.tape == name]
        problems = dict.fromkeys(row.problem for row in runs)
        parts += [training_section([row for row in runs if row.problem == problem]) for problem in problems]
    parts += integrality_section(of_kind(rows, "integrality"))
    only_sets = {row.kind for row in rows} == {"integrality"}
    return page(TITLES[only_sets], LEAD, *parts, finding=swap_finding(rows), made_by=made_by)


def _tapes(rows: Iterable[Row]) -> list[str]:
    """The tapes in order of first appearance."""
    return list(dict.fromkeys(row.tape for row in rows))


def _run(rows: Sequence[Row]) -> Html:
    found = []
    for kind, tape in dict.fromkeys((row.kind, row.tape) for row in rows):
        these = [row for row in rows if (row.kind, row.tape) == (kind, tape)]
        seeds = ", ".join(sorted({str(row.seed) for row in these if row.seed is not None}))
        problems = len({row.problem for row in these})
        found.append([kind, tape, problems, len(solvers_of(these)), len(these), seeds])
    return table(["kind", "tape", "problems", "solvers", "rows", "seed"], found, "Tapes: fingerprints of what was run")


def _versions(rows: Sequence[Row]) -> Html:
    """Packages and their versions; several where rows of several runs stand in one file."""
    counts = Counter((name, version) for row in rows for name, version in row.versions.items())
    found = [[name, version, count] for (name, version), count in sorted(counts.items())]
    return table(["package", "version", "rows"], found, "Versions") if found else Html("")
