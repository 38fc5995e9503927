"""What rows of experiments say in a few sentences: which solvers to use, which to leave, whether all of them agree."""

from __future__ import annotations

from collections.abc import Sequence

from rankopt.experiments.rows import Outcome, Row
from rankopt.experiments.summaries import of_kind, shifted_geometric_means, solvers_of

__all__ = ["swap_finding"]

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
