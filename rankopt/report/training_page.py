"""The page of `rankopt train`: the fits, the certificate, the progress of training, and the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rankopt.explanations.contributions import Weights
from rankopt.rankers.inputs import normalised
from rankopt.report.explain_page import weights_drawing
from rankopt.report.page import Drawing, render

if TYPE_CHECKING:
    from rankopt.data.queries import Queries


def page_of_training(
    ranker: Any, queries: Queries, head: Sequence[str], rows: Sequence[Sequence[str]], name: str, made_by: str = ""
) -> str:
    """The page. head, rows: the table of fits, of which `ranker` was chosen; queries: the training data."""
    judged, certificate = getattr(ranker, "best_score_", None), getattr(ranker, "certificate_", None)
    finding = f"{ranker.measure} on validation is {judged:.4f}." if judged is not None else (
        f"{ranker.measure} on other queries is not known: measure it by rankopt evaluate, or train with --validate."
    )  # fmt: skip
    progress, history = [], getattr(ranker, "history_", ())
    if len(history) and hasattr(history, "plot"):
        with (drawing := Drawing("progress of training", f"What training reached, step by step: {name}.")) as axes:
            history.plot(axes)
        progress.append(drawing)
    weights = None
    if getattr(ranker, "coef_", None) is not None and ranker.coef_.ndim == 1:
        names = [str(one) for one in getattr(ranker, "feature_names_in_", [f"x{j}" for j in range(ranker.coef_.size)])]
        weights = Weights.on(names, ranker.coef_, normalised(ranker, queries))
    return render(
        "training.html",
        name=name,
        queries=len(queries),
        head=head,
        rows=rows,
        certificate="" if certificate is None else str(certificate),
        progress=progress,
        weights=[] if weights is None else [weights_drawing(weights, "scores")],
        weights_finding="" if weights is None else weights.finding,
        finding=finding,
        made_by=made_by,
    )
