"""The page of `rankopt verify`: a set of rankings, whether its linear program is integral, and the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from formulations.integrality.evidence import WRITTEN_OUT, Proof, Undecided, Witness, shown
from formulations.integrality.statement import stated
from rankopt.report.charts import limit_curve
from rankopt.report.page import LIGHT, Drawing, brief, render

if TYPE_CHECKING:
    from formulations.solving.integrality import IntegralityGap
    from formulations.solving.sensitivity import SensitivityCurve

MOST_ENTRIES = 4000  # largest number of entries of a matrix that is drawn: each is a shape on the page
NAMED = 6  # largest number of rows of a witness that the first sentence names
MORE = 3  # the effort of a second attempt


def page_of_set(
    name: str, problem: Any, text: str, found: Proof | Witness | Undecided, of_objective: Proof | None,
    gap: IntegralityGap | None, made_by: str, swept: Sequence[SensitivityCurve] = (), advice: Sequence[str] = (),
) -> str:  # fmt: skip
    """The page.

    name: of the set; text: the set as text; problem: the verified problem; made_by: the command.
    found: the answer of `verify_integrality` on the set, confirmed by `check_evidence`; of_objective: a proof for this
    objective alone.
    gap: the answer of `integrality_gap` where the problem has an objective.
    swept: curves of `sensitivity`.
    advice: lines of advice on making the set or its optimum integral.
    """
    matrix = stated(problem).matrix
    part = (found.rows, found.columns) if isinstance(found, Witness) else ((), ())
    return render(
        "set.html",
        name=name,
        text=text,
        entries=int(matrix.nnz),
        most_entries=MOST_ENTRIES,
        matrix=[matrix_picture(matrix, *part)] if matrix.nnz <= MOST_ENTRIES else [],
        answer=str(found),
        checked=not isinstance(found, Undecided),
        of_objective="" if of_objective is None else str(of_objective),
        witness=_submatrix(found) if isinstance(found, Witness) and len(found.rows) <= WRITTEN_OUT else {},
        gap=gap,
        optima=[] if gap is None else [_optimum("real", gap.relaxed), _optimum("integer", gap.integer)],
        fractional=[] if gap is None else _fractional(gap),
        advice=advice,
        swept=[_curve(one) for one in swept],
        finding=_finding(found, of_objective, gap, advice),
        made_by=made_by,
    )


def _finding(
    found: Proof | Witness | Undecided, of_objective: Proof | None, gap: IntegralityGap | None, advised: Sequence[str]
) -> str:
    """The verdict, its meaning for this objective, and advice."""
    if isinstance(found, Proof):
        verdict = "Proved: every vertex of the linear program is a ranking, for every objective. "
        return verdict + "Rank and train under this set with any solver of linear programs; nothing has to be rounded."
    verdict = "Undecided: neither a proof nor a witness was found. "
    cure = "Solve as an integer program ('highs', 'cp_sat')"
    if isinstance(found, Witness):
        rows = ", ".join(found.row_names) if len(found.rows) <= NAMED else f"{len(found.rows)} rows"
        verdict = (
            f"Refuted: the matrix is not totally unimodular ({rows} hold a submatrix of determinant "
            f"{shown(found.determinant)}), so some objectives may have a fractional optimum. "
        )
        kept = [one for one in advised if "Leave out" not in one]  # what drops a constraint is only listed below
        cure += f". {kept[0]}" if kept else ""
    else:
        cure += f" in the meantime, or look longer: --max-effort {MORE}"
    if gap is not None and gap.integral:
        cure = f"Use this optimum. For other objectives {cure[:1].lower()}{cure[1:]}"
    if of_objective is not None:
        verdict += "For this objective the linear program is proved to have an integral optimum. "
        cure = "Rank by 'exact', or any solver of flows: another optimal vertex may be fractional"
    return f"{verdict}{'' if gap is None else f'{gap}. '}{cure}."


def matrix_picture(matrix: csr_array, rows: Sequence[int] = (), columns: Sequence[int] = ()) -> Drawing:
    """The entries of a matrix; those in these rows and columns are red."""
    high, wide = matrix.shape
    i, j = matrix.tocoo().coords
    inside = np.isin(i, rows) & np.isin(j, columns)
    caption = "A square is a nonzero entry: rows are constraints, columns variables."
    if len(rows):
        caption += " Red: the entries of the witness."
    height = float(np.clip(6.4 * high / wide, 1.6, 4.0))
    side = 275.0 / max(wide, 2.0 * high)  # points; the axes are about 425 points wide
    with (drawing := Drawing("the matrix", caption, f"{wide} variables", f"{high} rows", height)) as axes:
        for chosen, color in ((~inside, LIGHT["s1"]), (inside, LIGHT["s8"])):
            if chosen.any():
                axes.scatter(j[chosen], i[chosen], s=side**2, marker="s", color=color, linewidth=0)
        axes.set(xlim=(-1, wide), ylim=(high, -1), xticks=[], yticks=[])
        axes.grid(False)
    return drawing


def _submatrix(found: Witness) -> dict[str, Any]:
    """The witness: a line of the table is a row of the submatrix."""
    lines: list[list[object]] = [[name, *(0 for _ in found.columns)] for name in found.row_names]
    for i, j, value in found.entries:
        lines[i][j + 1] = int(value) if value == int(value) else shown(value)
    return {"columns": [*found.column_names], "lines": lines, "determinant": shown(found.determinant)}


def _optimum(variables: str, solution: Any) -> list[object]:
    claimed = "" if solution.reported_bound is None else solution.reported_bound
    return [
        variables, solution.value, solution.verdict, solution.bound, claimed, solution.solver, brief(solution.seconds)
    ]  # fmt: skip


def _fractional(gap: IntegralityGap) -> list[list[object]]:
    x = np.asarray(gap.relaxed.x, dtype=np.float64)
    program: Any = gap.relaxed.problem
    return [[program.variable_name(int(j)), float(x[j])] for j in np.flatnonzero(np.abs(x - np.round(x)) > 1e-6)]


def _curve(curve: SensitivityCurve) -> dict[str, Any]:
    rows: list[list[object]] = []
    numbers = np.column_stack([curve.limits, curve.value, curve.bound, curve.relaxed, curve.price + 0.0])
    for (limit, *values), empty, integral in zip(numbers.tolist(), curve.empty, curve.integral, strict=True):
        known = [None if np.isnan(one) else one for one in values]  # a share has no dual value
        rows.append([limit, "no ranking", "", "", "", ""] if empty else [limit, *known, "yes" if integral else "no"])
    head = ["limit", "value", "proven bound", "linear program", "LP price", "LP integral"]
    caption = f"Cost of each limit: {curve.name}"
    return {"drawings": [limit_curve(curve)], "head": head, "rows": rows, "caption": caption}
