"""The page of `rankopt demo`: rankers compared, their gaps closing, and one problem through swapped solvers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankopt.report.charts import measure_curves
from rankopt.report.convergence import convergence
from rankopt.report.html import FormattedCell, brief, figures, table
from rankopt.report.page import page, section

if TYPE_CHECKING:
    from rankopt.data.queries import Queries
    from rankopt.evaluation.evaluation import Evaluation
    from rankopt.optimize.certificate import History

CUTOFFS = range(1, 11)
MEASURE = "nDCG@10"
"""What the winner is named by."""

LEAD = (
    "Each character of Les Misérables is a query, the others are its documents, graded 0 to 4 by the chapters they "
    "share. Every objective below stands beside a proven lower bound; a click on the head of a column sorts a table."
)


def page_of_demo(
    rankers: Mapping[str, Any], swapped: Mapping[tuple[str, str], Any], test: Queries, made_by: str
) -> str:
    """The page.

    Args:
        rankers: fitted rankers by name; swapped: fitted rankers by argmax and master solver.
        test: the test queries; made_by: the command.
    """
    from rankopt.measures import evaluate

    notations = [*(f"nDCG@{k}" for k in CUTOFFS), "AP"]
    found = {name: evaluate(test, ranker.predict(test), notations) for name, ranker in rankers.items()}
    return page(
        "Who appears with whom?",
        LEAD,
        section("Rankers on the test queries", *_compared(rankers, found)),
        section("The gap closing", *_closing(rankers)),
        section("Solvers swapped", *_swapped(swapped)),
        finding=finding_of_demo(rankers, found),
        made_by=made_by,
    )


def finding_of_demo(rankers: Mapping[str, Any], found: Mapping[str, Evaluation]) -> str:
    """Who ranks best on the test queries, who cannot be told apart from that, and how near to optimal training came.

    found: evaluations that hold `MEASURE`, by ranker.
    """
    from rankopt.evaluation.leader import leader

    gaps = [ranker.certificate_ for ranker in rankers.values() if hasattr(ranker, "certificate_")]
    worst = max((proved.relative_gap for proved in gaps if proved.kind == "global"), default=None)
    told = str(leader(found, MEASURE))
    if worst is not None:
        told += f" Each convex objective is proven to be within {100 * worst:.2g}% of its optimum."
    return told


def _compared(rankers: Mapping[str, Any], found: Mapping[str, Evaluation]) -> list[object]:
    notations = [repr(measure) for measure in next(iter(found.values())).measures]
    means = {name: {notation: one.mean(notation) for notation in notations} for name, one in found.items()}
    shown = ["nDCG@1", "nDCG@5", "nDCG@10", "AP"]
    rows = [
        [name, *(FormattedCell(means[name][one], f"{means[name][one]:.4f}") for one in shown), *_proved(rankers[name])]
        for name in sorted(rankers, key=lambda name: -means[name][MEASURE])
    ]
    head = ["ranker", *shown, "λ", "objective", "proven bound", "gap is to"]
    about = f"{len(next(iter(found.values())))} test queries"
    caption = f"{about}, every ranker as it comes, features normalised within the query"
    return [table(head, rows, caption), figures(measure_curves(means, about))]


def _proved(ranker: Any) -> list[object]:
    if not hasattr(ranker, "certificate_"):
        return [None] * 4
    proved = ranker.certificate_
    target = "the optimum" if proved.kind == "global" else "the next step"
    return [brief(ranker.lam_), proved.primal, proved.bound, target]


def _closing(rankers: Mapping[str, Any]) -> list[object]:
    """Each run by itself: their objectives are not the same function, so a bound says nothing of another run."""
    runs = {name: ranker for name, ranker in rankers.items() if name.startswith("large margin")}
    drawn = [figures(convergence({name: _columns(ranker.history_)}, name)) for name, ranker in runs.items()]
    said = (
        "For the convex bound the optimum lies between the lines. Under the nonconvex bound each round of the "
        "concave-convex procedure has a convex problem, and a bound, of its own; the last gap is what one more step "
        "could still gain."
    )
    return [said, *drawn]


def _swapped(swapped: Mapping[tuple[str, str], Any]) -> list[object]:
    rows = []
    for (argmax, master), ranker in swapped.items():
        proved, last = ranker.certificate_, ranker.history_[-1]
        seconds = [brief(value) for value in (last.seconds, last.seconds_argmax, last.seconds_master)]
        rows.append([argmax, master, proved.primal, proved.bound, brief(proved.gap), last.step, *seconds])
    head = ["argmax", "master", "objective", "proven bound", "gap", "steps", "seconds", "in argmax", "in master"]
    best = min(ranker.certificate_.primal for ranker in swapped.values())
    agree = all(ranker.certificate_.bound <= best for ranker in swapped.values())
    said = "All agree: every proven bound is below every objective." if agree else "They do not agree."
    runs = {f"{argmax}, {master}": _columns(ranker.history_) for (argmax, master), ranker in swapped.items()}
    about = "one problem through every pair of solvers"
    return [said, table(head, rows, f"{about}: argmax, master"), figures(convergence(runs, about))]


def _columns(history: History) -> dict[str, list[float | None]]:
    return {name: getattr(history, name).tolist() for name in ("step", "round", "seconds", "primal", "bound")}
