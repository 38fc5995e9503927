"""The matrix of a set, entry by entry, and in it the square part that refutes total unimodularity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from rankopt.report.figures import Drawing
from rankopt.report.palette import LIGHT

__all__ = ["MOST_ENTRIES", "matrix_picture"]

MOST_ENTRIES = 4000
"""Entries up to which a matrix is drawn: each is a shape on the page."""


def matrix_picture(matrix: csr_array, rows: Sequence[int] = (), columns: Sequence[int] = ()) -> Drawing:
    """rows, columns: of the part that is picked out."""
    high, wide = matrix.shape
    entries = matrix.tocoo()
    i, j = entries.coords
    inside = np.isin(i, rows) & np.isin(j, columns)
    says = "A square is an entry that is not 0: rows are constraints, columns variables."
    if len(rows):
        says += " Red: the entries of the witness."
    drawing = Drawing("the matrix", says, height=float(np.clip(5.2 * high / wide, 1.6, 4.0)))
    side = 220.0 / max(wide, 2.0 * high)  # points; the axes are about 340 points wide
    with drawing as axes:
        for chosen, colour in ((~inside, LIGHT["s1"]), (inside, LIGHT["s8"])):
            if chosen.any():
                axes.scatter(j[chosen], i[chosen], s=side**2, marker="s", color=colour, linewidth=0)
        axes.set_xlim(-1, wide)
        axes.set_ylim(high, -1)
        axes.set_xlabel(f"{wide} variables")
        axes.set_ylabel(f"{high} rows")
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(False)
    return drawing
