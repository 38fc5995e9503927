"""What the classes of a tape promise each other and do not check themselves, since their makers keep it: checked where
a file of others makes them. Raises TypeError or ValueError that says what does not fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse

from formulations.forms.rank_two_assignment import RankTwoAssignment
from formulations.notation.names import Block
from formulations.sets.constraint import Constraint

__all__ = ["check_parts"]


def check_parts(kind: type, parts: dict[str, Any]) -> None:
    """Check the parts from which an object of this class is about to be made."""
    check = CHECKS.get(kind.__name__)
    if check is not None:
        check(parts)
    for part in parts.values():
        if isinstance(part, str) and not part.isprintable():
            raise ValueError("its words hold what cannot be printed")


def _block(parts: dict[str, Any]) -> None:
    _hold(isinstance(parts["label"], str) and isinstance(parts["index"], tuple), "a block is a word and its index")
    flat = [part for one in parts["index"] for part in (one if isinstance(one, tuple) else (one,))]
    _hold(
        all(isinstance(part, str | int | float | None) for part in flat), "the labels of a block are words or numbers"
    )
    _hold(
        all(part >= 0 for part in parts["index"] if isinstance(part, int)) or parts.get("by_label"), "a block below 0"
    )


def _constraint(parts: dict[str, Any]) -> None:
    matrix, lower, upper = (parts[name] for name in ("matrix", "lower", "upper"))
    labels, forbids, says = parts.get("labels"), parts.get("forbids"), parts["says"]
    _hold(issparse(matrix) and bool(np.isfinite(matrix.data).all()), "the rows of a constraint are a sparse matrix")
    for limit in (lower, upper):
        fits = isinstance(limit, np.ndarray) and limit.dtype == np.float64 and limit.shape == matrix.shape[:1]
        _hold(fits and not np.isnan(limit).any(), "a constraint has one limit a row")
    told = isinstance(says, str) or (isinstance(says, tuple) and len(says) == lower.size)
    _hold(isinstance(parts["name"], str) and told, "a constraint has a name and what it says")
    _hold(labels is None or (isinstance(labels, tuple) and len(labels) == lower.size), "a label a row")
    if forbids is not None:
        fits = isinstance(forbids, np.ndarray) and forbids.dtype == np.bool_ and forbids.size == matrix.shape[1]
        _hold(fits, "forbidden cells are a mask of all cells")


def _ranking_set(parts: dict[str, Any]) -> None:
    cells = parts["documents"] * parts["positions"]
    constraints = parts.get("constraints", ())
    _hold(isinstance(constraints, tuple), "the constraints of a set are a list")
    for one in constraints:
        _hold(isinstance(one, Constraint) and one.matrix.shape[1] == cells, "a constraint is over the cells of its set")
        shape = (parts["positions"], parts["documents"])
        _hold(one.forbids is None or one.forbids.shape in (shape, (cells,)), "a mask has the shape of its set")


def _constrained_ranking(parts: dict[str, Any]) -> None:
    ranked = parts.get("ranked")
    if ranked is None:
        return
    _hold(isinstance(ranked, RankTwoAssignment), "without its set the problem is a ranking")
    same = np.shape(parts["profit"]) == (ranked.positions, ranked.documents)
    _hold(same and np.allclose(ranked.assignment().profit, parts["profit"]), "the ranking without the set is another")


def _linear_program(parts: dict[str, Any]) -> None:
    rows, columns = np.shape(parts["matrix"])
    _named(parts.get("variables"), columns)
    _named(parts.get("rows"), rows)


def _min_cost_flow(parts: dict[str, Any]) -> None:
    _named(parts.get("arcs"), np.size(parts["cost"]))
    _named(parts.get("nodes"), np.size(parts["supply"]))


def _grouped_simplex(parts: dict[str, Any]) -> None:
    gram, slopes = parts.get("known_gram"), parts["slopes"]
    if gram is not None:
        _hold(np.allclose(gram, slopes @ slopes.T), "the Gram matrix is that of other planes")


def _named(blocks: Any, size: int) -> None:
    if blocks:
        _hold(isinstance(blocks, tuple) and all(isinstance(one, Block) for one in blocks), "names are blocks")
        _hold(sum(block.size for block in blocks) == size, "there are more names than what they name, or fewer")


def _hold(true: Any, why: str) -> None:
    if not true:
        raise ValueError(why)


CHECKS = {
    "Block": _block,
    "ConstrainedRanking": _constrained_ranking,
    "Constraint": _constraint,
    "GroupedSimplexQP": _grouped_simplex,
    "LinearProgram": _linear_program,
    "MinCostFlow": _min_cost_flow,
    "RankingSet": _ranking_set,
}
"""By class; the others check themselves."""
