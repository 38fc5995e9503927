"""The page of `rankopt verify`: a set of rankings, whether its linear program is whole, and the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.integrality.evidence import WRITTEN_OUT, Proof, Undecided, Witness, shown
from formulations.integrality.statement import stated
from rankopt.report.charts import MOST_ENTRIES, matrix_picture, price_curves
from rankopt.report.html import Html, brief, element, figures, table
from rankopt.report.page import page, section

if TYPE_CHECKING:
    from formulations.solving.integrality_gap import IntegralityGap

NAMED = 6
"""Rows of a witness that the first sentence names."""

MORE = 3
"""An effort that is worth a second try."""

LEAD = (
    "A set of rankings is stated by rows over the cells, position × document. Where the linear program over these rows "
    "is whole, its optimum is a ranking. The evidence below is checked again from the matrix alone."
)


def page_of_set(
    name: str,
    problem: Any,
    says: str,
    found: Proof | Witness | Undecided,
    gap: IntegralityGap | None,
    made_by: str,
    swept: Sequence[Any] = (),
    told: Sequence[str] = (),
) -> str:
    """The page.

    Args:
        name: of the set; says: what is in it, as text; problem: what was asked about.
        found: the answer of `verify_integrality`, confirmed by `confirm`.
        gap: the answer of `integrality_gap` where the problem has an objective.
        made_by: the command.
        swept: curves of `price_of`, and a front of `pareto`.
        told: what would make the set or its optimum whole, a line each, as the command prints it.
    """
    alone = "set and objective" if isinstance(found, Proof) and found.kind == "prefix groups" else "the matrix"
    checked = [] if isinstance(found, Undecided) else [f"Checked again from {alone} alone: it holds."]
    parts = [
        section("The set", element("pre", says), *_picture(problem, found)),
        section("The answer", element("pre", found), *checked, *_submatrix(found)),
    ]
    if gap is not None:
        parts.append(section("This optimum", str(gap) + ".", _values(gap), *_fractional(gap)))
    if told:
        parts.append(section("What would make it whole", element("ul", *(element("li", one) for one in told))))
    if swept:
        parts.append(section("What the limits cost", *price_curves(swept)))
    return page(f"Is {name} whole?", LEAD, *parts, finding=_finding(found, gap, told), made_by=made_by)


def _finding(found: Proof | Witness | Undecided, gap: IntegralityGap | None, advised: Sequence[str]) -> str:
    """The verdict, what it means for this objective, and what to do."""
    if isinstance(found, Proof) and found.kind == "prefix groups":
        told = "Proved: this linear program has a whole optimum for its objective; of its matrix nothing is said. "
        return told + "Rank by 'exact', or any solver of flows: another optimal vertex may be fractional."
    if isinstance(found, Proof):
        told = "Proved: every vertex of the linear program is a ranking, for every objective. "
        return told + "Rank and train under this set with any solver of linear programs; nothing has to be rounded."
    told = "Undecided: neither a proof nor a witness was found. "
    if isinstance(found, Witness):
        rows = ", ".join(found.row_names) if len(found.rows) <= NAMED else f"{len(found.rows)} rows"
        told = (
            f"Refuted: the matrix is not totally unimodular ({rows} hold a submatrix of determinant "
            f"{shown(found.determinant)}), so some objectives may have a fractional optimum. "
        )
    if gap is not None:
        told += f"{gap}. "
    whole = "Solve in whole numbers ('highs', 'cp_sat')"
    return told + (
        (f"{whole}. {advised[0]}." if advised else f"{whole}.") if isinstance(found, Witness)
        else f"{whole} in the meantime, or look longer: --max-effort {MORE}."
    )  # fmt: skip


def _picture(problem: Any, found: object) -> list[object]:
    matrix = stated(problem).matrix
    if matrix.nnz > MOST_ENTRIES:
        return [f"Its matrix has {matrix.nnz} entries; up to {MOST_ENTRIES} are drawn."]
    part = (found.rows, found.columns) if isinstance(found, Witness) else ((), ())
    return [figures([matrix_picture(matrix, *part)])]


def _submatrix(found: object) -> list[Html]:
    """The witness, a row of the table a row of it."""
    if not isinstance(found, Witness) or len(found.rows) > WRITTEN_OUT:
        return []
    cells: list[list[object]] = [[name, *(0 for _ in found.columns)] for name in found.row_names]
    for i, j, value in found.entries:
        cells[i][j + 1] = int(value) if value == int(value) else shown(value)
    return [table(["row", *found.column_names], cells, f"The witness: determinant {shown(found.determinant)}")]


def _values(gap: IntegralityGap) -> Html:
    rows = [
        [name, solution.value, solution.bound, solution.solver, brief(solution.seconds)]
        for name, solution in (("real", gap.relaxed), ("whole", gap.whole))
    ]
    return table(
        ["variables", "value", "proven bound", "solver", "seconds"], rows, "The optimum with and without integers"
    )


def _fractional(gap: IntegralityGap) -> list[Html]:
    """The variables that are not whole in the relaxation's optimum."""
    x = np.asarray(gap.relaxed.x, dtype=np.float64)
    program: Any = gap.relaxed.problem
    places = np.flatnonzero(np.abs(x - np.round(x)) > 1e-6)
    if not places.size:
        return []
    rows = [[program.variable_name(int(place)), float(x[place])] for place in places]
    return [table(["variable", "value"], rows, "Variables that are not whole in the relaxation's optimum")]
