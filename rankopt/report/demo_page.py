"""The page of `rankopt demo`: rankers compared, their gaps closing, and one problem through swapped solvers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankopt.report.charts import convergence, measure_curves
from rankopt.report.page import FormattedCell, brief, render

if TYPE_CHECKING:
    from rankopt.data.queries import Queries
    from rankopt.evaluation.evaluation import Evaluation
    from rankopt.optimize.certificate import History

MEASURE = "nDCG@10"  # the measure that decides which ranker is best
SHOWN = ("nDCG@1", "nDCG@5", "nDCG@10", "AP")


def page_of_demo(
    rankers: Mapping[str, Any], swapped: Mapping[tuple[str, str], Any], test: Queries, made_by: str
) -> str:
    """The page. rankers: fitted rankers by name; swapped: fitted rankers by argmax and master solver; test: the test
    queries; made_by: the command."""
    from rankopt.measures import evaluate

    notations = [*(f"nDCG@{k}" for k in range(1, 11)), "AP"]
    found = {name: evaluate(test, ranker.predict(test), notations) for name, ranker in rankers.items()}
    means = {name: {one: run.mean(one) for one in notations} for name, run in found.items()}
    best = min(ranker.certificate_.primal for ranker in swapped.values())
    runs = {f"{argmax}, {master}": _columns(ranker.history_) for (argmax, master), ranker in swapped.items()}
    # The objectives of the rankers are different functions, so each run has figures of its own.
    closing = {name: ranker for name, ranker in rankers.items() if name.startswith("large margin")}
    queries, pairs = f"{len(test)} test queries", "one problem through every pair of solvers"
    return render(
        "demo.html",
        queries=queries,
        shown=[*SHOWN],
        rankers=[
            [
                name,
                *(FormattedCell(means[name][one], f"{means[name][one]:.4f}") for one in SHOWN),
                *_proof_cells(ranker),
            ]
            for name, ranker in sorted(rankers.items(), key=lambda item: -means[item[0]][MEASURE])
        ],
        measures=measure_curves(means, queries),
        closing=[convergence({name: _columns(ranker.history_)}, name) for name, ranker in closing.items()],
        pairs=pairs,
        swapped=[_swap_cells(*pair, ranker) for pair, ranker in swapped.items()],
        agree=all(ranker.certificate_.bound <= best for ranker in swapped.values()),
        convergence=convergence(runs, pairs),
        finding=finding_of_demo(rankers, found),
        made_by=made_by,
    )


def finding_of_demo(rankers: Mapping[str, Any], found: Mapping[str, Evaluation]) -> str:
    """Which ranker is best on the test queries, which are not distinguishable from it, and the largest convex gap.
    found: evaluations that hold `MEASURE`, by ranker."""
    from rankopt.evaluation.comparison import leader

    gaps = [ranker.certificate_ for ranker in rankers.values() if hasattr(ranker, "certificate_")]
    worst = max((proved.relative_gap for proved in gaps if proved.kind == "global"), default=None)
    first = str(leader(found, MEASURE))
    if worst is None:
        return first
    return f"{first} Each convex objective is proven to be within {100 * worst:.2g}% of its optimum."


def _proof_cells(ranker: Any) -> list[object]:
    """λ, objective, proven bound and what the gap refers to."""
    if not hasattr(ranker, "certificate_"):
        return [None] * 4
    proved = ranker.certificate_
    target = "the optimum" if proved.kind == "global" else "the next step"
    return [brief(ranker.lam_), proved.primal, proved.bound, target]


def _swap_cells(argmax: str, master: str, ranker: Any) -> list[object]:
    proved, last = ranker.certificate_, ranker.history_[-1]
    seconds = [brief(value) for value in (last.seconds, last.seconds_argmax, last.seconds_master)]
    return [argmax, master, proved.primal, proved.bound, brief(proved.gap), last.step, *seconds]


def _columns(history: History) -> dict[str, list[float | None]]:
    return {name: getattr(history, name).tolist() for name in ("step", "round", "seconds", "primal", "bound")}
