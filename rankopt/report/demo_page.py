"""The page of `rankopt demo`: rankers compared, their gaps closing, and one problem through swapped solvers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rankopt.report.charts import convergence, measure_curves
from rankopt.report.page import FormattedCell, brief, render

if TYPE_CHECKING:
    from rankopt.evaluation.evaluation import Evaluation
    from rankopt.optimize.certificate import History

MEASURE = "nDCG@10"  # the measure of the finding
MEASURES = (*(f"nDCG@{k}" for k in range(1, 11)), "AP")  # what is drawn
SHOWN = ("nDCG@1", "nDCG@5", "nDCG@10", "AP")  # the columns of tables
OURS = "large margin, nonconvex"  # LargeMarginRanker as it comes: the finding compares it with the others


def page_of_demo(
    rankers: Mapping[str, Mapping[str, Any]],
    found: Mapping[str, Mapping[str, Evaluation]],
    swapped: Mapping[tuple[str, str], Any],
    made_by: str,
) -> str:
    """The page. rankers: fitted rankers by sample and name; found: their evaluations by `MEASURES` on test queries;
    swapped: fitted rankers by argmax and master solver; made_by: the command."""
    tables, curves = [], []
    for sample, runs in found.items():
        means = {name: {one: run.mean(one) for one in MEASURES} for name, run in runs.items()}
        about = f"{sample}, {len(runs[OURS].query_ids)} test queries"
        rows = [
            [
                name,
                *(FormattedCell(means[name][one], f"{means[name][one]:.4f}") for one in SHOWN),
                *_proof_cells(rankers[sample][name]),
            ]
            for name in sorted(means, key=lambda name: -means[name][MEASURE])
        ]
        tables.append((f"{about}; default parameters, features normalized within the query", rows))
        curves += measure_curves(means, about)
    best = min(ranker.certificate_.primal for ranker in swapped.values())
    pairs = {f"{argmax}, {master}": _columns(ranker.history_) for (argmax, master), ranker in swapped.items()}
    # The objectives of the rankers are different functions, so each run has figures of its own.
    sample, fitted = next(iter(rankers.items()))
    closing = {f"{name}, {sample}": ranker for name, ranker in fitted.items() if name.startswith("large margin")}
    return render(
        "demo.html",
        shown=[*SHOWN],
        tables=tables,
        measures=curves,
        closing=[convergence({name: _columns(ranker.history_)}, name) for name, ranker in closing.items()],
        swapped=[_swap_cells(*pair, ranker) for pair, ranker in swapped.items()],
        agree=all(ranker.certificate_.bound <= best for ranker in swapped.values()),
        convergence=convergence(pairs, "argmax solver, master solver"),
        finding=finding_of_demo(rankers, found),
        made_by=made_by,
    )


def finding_of_demo(rankers: Mapping[str, Mapping[str, Any]], found: Mapping[str, Mapping[str, Evaluation]]) -> str:
    """What `OURS` reaches on every sample next to the others, which differ from it by a paired test, and the largest
    convex gap. found: evaluations that hold `MEASURE`, by sample and ranker."""
    from rankopt.evaluation.comparison import LEVEL, compare, holm

    reached, differing = [], []
    for sample, runs in found.items():
        own, others = runs[OURS], [name for name in runs if not name.startswith("large margin")]
        p = holm([compare(own, runs[name], measure=MEASURE).p_randomization for name in others])
        means = ", ".join(f"{name} {runs[name].mean(MEASURE):.3f}" for name in others)
        reached.append(f"{own.mean(MEASURE):.3f} on {sample} ({means}; {own.n_evaluated(MEASURE)} queries)")
        for name, chance in zip(others, p, strict=True):
            if chance < LEVEL:
                word = "better" if runs[name].mean(MEASURE) > own.mean(MEASURE) else "worse"
                differing.append(f"{name} is {word} on {sample} (p = {chance:.2g})")
    text = f"LargeMarginRanker with its default bound reaches {MEASURE} {' and '.join(reached)}. By paired tests "
    text += f"{' and '.join(differing)}." if differing else "no difference is significant."
    gaps = [one.certificate_ for fitted in rankers.values() for one in fitted.values() if hasattr(one, "certificate_")]
    worst = max((proved.relative_gap for proved in gaps if proved.kind == "global"), default=None)
    if worst is not None:
        text += f" Convex objectives are proven to be within {100 * worst:.2g}% of the optimum."
    return text


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
