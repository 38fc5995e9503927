"""The measure along lines through the weights of a linear ranker: drawn, and what is proved of them checked."""
# mypy: allow-subclassing-any

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankopt.data.given import Ids, Sizes, Values
from rankopt.errors import OptionError
from rankopt.optimize.line_search import LineSearch, Point
from rankopt.rankers.choices import AnyRows, Weights
from rankopt.rankers.inputs import read_queries
from rankopt.rankers.weights import query_weights

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rankopt.ascent.certificate import DirectionCertificate
    from rankopt.ascent.verification import Verified
    from rankopt.data.queries import Queries

__all__ = ["LineSearchMixin"]

Floats = NDArray[np.float64]


class LineSearchMixin:
    """`plot_line` and `verify` of a ranker with `coef_`, a `certificate_` of directions, and a measure."""

    coef_: Floats
    certificate_: DirectionCertificate
    measure: Any
    point: Point
    window: float
    n_queries_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    _learned_from: tuple[Queries, Floats]

    def plot_line(
        self,
        direction: int | str | Any,
        X: AnyRows | None = None,
        y: Values | None = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        query_weight: Weights | None = None,
        point: Point | None = None,
        axes: Axes | None = None,
    ) -> Axes:
        """t -> M(coef_ + t v) as the step function that it is, with where the ranker stands (t = 0) and the interval
        that a line search would choose [paper 3, Figure 1].

        direction: the number or the name of a feature, or v itself (d,). X, y, qid, group, query_weight: as in `fit`;
        none are the training queries, which the ranker remembers where it was fitted and a saved one does not. point:
        as in `DirectRanker`; its own unless given. Returns the axes of matplotlib.
        """
        check_is_fitted(self, "coef_")
        queries, weights = self._asked(X, y, qid, group, query_weight)
        search = LineSearch.of(self.measure, queries, weights)
        names = list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)]))
        if isinstance(direction, str):
            if direction not in names:
                raise OptionError(f"direction = {direction!r} is no feature; give its number, or one of the names")
            direction = names.index(direction)
        about = f"weight of {names[direction]}" if isinstance(direction, int | np.integer) else "t"
        from rankopt.line.drawing import draw_line

        own: Point = self.point if point is None else point
        at = float(self.coef_[direction]) if isinstance(direction, int | np.integer) else 0.0
        line = search.along(self.coef_, direction, own, self.window)
        return draw_line(search.steps(self.coef_, direction), line, at, str(self.measure), about, axes)

    def verify(
        self,
        X: AnyRows | None = None,
        y: Values | None = None,
        *,
        qid: Ids | None = None,
        group: Sizes | None = None,
        query_weight: Weights | None = None,
        only: int | None = None,
        seed: int = 0,
    ) -> Verified:
        """Whether `certificate_` is true of `coef_` on the training queries, by enumeration that shares nothing with
        the sweeps: all crossings of all pairs, the measure between each two (`rankopt.ascent.verify_directions`).

        Data as in `plot_line`. only: so many directions of the list, drawn with this seed: it takes O(n³) for a query
        of n documents and a direction. The answer is true where the certificate holds.
        """
        check_is_fitted(self, "coef_")
        from rankopt.ascent.verification import verify_directions

        queries, weights = self._asked(X, y, qid, group, query_weight)
        return verify_directions(self.certificate_, self.coef_, queries, self.measure, weights, only, seed)

    def _asked(self, X: Any, y: Any, qid: Any, group: Any, query_weight: Any) -> tuple[Queries, Floats]:
        """The queries that are given, else those of `fit`, with their weights."""
        if X is None:
            if not hasattr(self, "_learned_from"):
                raise OptionError(
                    "the training queries are not remembered in a model that was loaded; give X, y and qid"
                )
            return self._learned_from
        queries = read_queries(self, X, y, qid=qid, group=group, attributes=None, reset=False)
        return queries, query_weights(queries, query_weight)
