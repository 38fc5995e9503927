"""Results as tables elsewhere: a pandas data frame, LaTeX with booktabs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rankopt.errors import RankoptError

__all__ = ["Column", "frame", "latex_table", "latex_text"]

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip


@dataclass(frozen=True)
class Column:
    """The head of a column; what stands below is mathematics (signed numbers), or LaTeX already."""

    text: str
    math: bool = False
    raw: bool = False


def frame(records: Sequence[Mapping[str, Any]], index: Sequence[Any] | None = None) -> Any:
    """A pandas data frame, a row a record. RankoptError where pandas is missing."""
    try:
        import pandas
    except ImportError as error:
        raise RankoptError("to_frame needs pandas, which is not installed; pip install pandas") from error
    return pandas.DataFrame(list(records), index=index)


def latex_table(head: Sequence[str | Column], rows: Sequence[Sequence[str]], note: str) -> str:
    """A `tabular` with the first column to the left and the others to the right; the note stands in a comment above.

    It needs \\usepackage{booktabs}.
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
    """The text with what LaTeX would read as commands written out."""
    return "".join(SPECIAL.get(sign, sign) for sign in text)
