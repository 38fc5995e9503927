"""The page of `rankopt train`: the fits, the certificate, the progress of training, and the weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rankopt.explanations.contributions import Weights
from rankopt.rankers.within_query import normalised
from rankopt.report.charts import weights_drawing
from rankopt.report.html import Drawing, element, figures, table
from rankopt.report.page import page, section

if TYPE_CHECKING:
    from rankopt.data.queries import Queries


def page_of_training(
    ranker: Any, queries: Queries, head: Sequence[str], rows: Sequence[Sequence[str]], name: str, made_by: str = ""
) -> str:
    """The page. head, rows: the table of fits, of which `ranker` was chosen; queries: the training data."""
    judged, certificate = getattr(ranker, "eval_score_", None), getattr(ranker, "certificate_", None)
    finding = f"{ranker.measure} on validation is {judged:.4f}." if judged is not None else (
        f"{ranker.measure} on other queries is not known: measure it by rankopt evaluate, or train with --validate."
    )  # fmt: skip
    parts = [section("Fits", table(head, rows))]
    if certificate is not None:
        parts.append(section("The certificate", element("pre", str(certificate))))
    history = getattr(ranker, "history_", ())
    if len(history) and hasattr(history, "plot"):
        drawing = Drawing("progress of training", f"What training reached, step by step: {name}.")
        with drawing as axes:
            history.plot(axes)
        parts.append(section("Progress", figures([drawing])))
    if getattr(ranker, "coef_", None) is not None and ranker.coef_.ndim == 1:
        names = [str(one) for one in getattr(ranker, "feature_names_in_", [f"x{j}" for j in range(ranker.coef_.size)])]
        weights = Weights.on(names, ranker.coef_, normalised(ranker, queries))
        parts.append(section("The weights", figures([weights_drawing(weights, "scores")]), weights.finding))
    return page("A trained ranker", f"{name}: {len(queries)} queries.", *parts, finding=finding, made_by=made_by)
