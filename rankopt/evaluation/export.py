"""Plots, pandas data frames and LaTeX tables (booktabs) of evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.arrays import Floats
from formulations.display import Axes, axes_for


def dots_of_means(
    measures: Sequence[str], runs: Mapping[str, tuple[Floats, Floats]], xlabel: str, axes: Axes | None = None
) -> Axes:
    """Plot means as dots and intervals as bars, measures down and runs side by side. runs: name -> means (M,),
    intervals (M, 2)."""

    axes = axes_for(axes)
    rows = np.arange(len(measures), dtype=np.float64)
    for number, (name, (means, intervals)) in enumerate(runs.items()):
        y = rows + (number - (len(runs) - 1) / 2) * 0.6 / max(len(runs), 1)
        reach = np.abs(intervals.T - means)
        axes.errorbar(means, y, xerr=np.nan_to_num(reach), fmt="o", markersize=4, capsize=2, label=name)
    axes.set(yticks=rows, yticklabels=list(measures), xlabel=xlabel)
    axes.invert_yaxis()
    if len(runs) > 1:  # above the axes, where it hides no interval
        axes.legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return axes


def bars_of_differences(
    differences: Floats, mean: float, interval: tuple[float, float], measure: str, axes: Axes | None = None
) -> Axes:
    """Plot sorted differences as bars, their mean as a line and its interval as a band."""

    axes = axes_for(axes)
    axes.bar(np.arange(1, len(differences) + 1), np.sort(differences)[::-1], width=1.0, color="C0", alpha=0.6)
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.axhspan(*interval, color="C1", alpha=0.25, linewidth=0)
    axes.axhline(mean, color="C1", label=f"mean {mean:+.4f}")
    axes.set(xlabel="queries", ylabel=f"difference in {measure}")
    axes.legend(frameon=False)
    return axes


SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """The head of a column. math: its cells are set in math mode. raw: its cells are LaTeX."""

    text: str
    math: bool = False
    raw: bool = False


def latex_table(head: Sequence[str | Column], rows: Sequence[Sequence[str]], note: str) -> str:
    """A `tabular` with a left-aligned first column and right-aligned others, the note as a comment above.

    Requires \\usepackage{booktabs}.
    """
    columns = [one if isinstance(one, Column) else Column(one) for one in head]

    def cell(text: str, column: Column) -> str:
        return text if column.raw else f"${text}$" if column.math else latex_text(text)

    lines = [" & ".join(latex_text(column.text) for column in columns), *[
        " & ".join(cell(text, column) for text, column in zip(row, columns, strict=True)) for row in rows
    ]]  # fmt: skip
    body = [f"{line} \\\\" for line in lines]
    comment = " ".join(note.split())
    begin = f"\\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}"
    parts = [f"% {comment}", begin, "\\toprule", body[0], "\\midrule", *body[1:], "\\bottomrule", "\\end{tabular}", ""]
    return "\n".join(parts)


def latex_text(text: str) -> str:
    """Escape LaTeX special characters."""
    return "".join(SPECIAL.get(sign, sign) for sign in text)
