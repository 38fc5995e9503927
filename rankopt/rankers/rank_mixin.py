"""What a ranker shows: rankings by score, or the best admissible ones where there are constraints."""

from collections.abc import Hashable
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from rankopt.constraints.admissible import Admissible
from rankopt.data.given import Attributes, Ids, PlainRows, Sizes
from rankopt.data.queries import Queries
from rankopt.errors import DataError, OptionError
from rankopt.rankers.choices import AnyRows
from rankopt.rankers.deployment import Deployment
from rankopt.rankers.inputs import documents_of, read_queries

Floats = NDArray[np.float64]


class RankMixin:
    """`rank` of a ranker that scores documents, and how it comes to its rankings."""

    n_queries_: int
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    @overload
    def rank(
        self,
        X: PlainRows,
        qid: None = None,
        k: int | None = None,
        *,
        group: None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
    ) -> NDArray[Any]: ...

    @overload
    def rank(
        self,
        X: AnyRows,
        qid: Ids | None = None,
        k: int | None = None,
        *,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
    ) -> NDArray[Any] | dict[Hashable, NDArray[Any]]: ...

    def rank(
        self,
        X: AnyRows,
        qid: Ids | None = None,
        k: int | None = None,
        *,
        group: Sizes | None = None,
        attributes: Attributes | None = None,
        constraints: Admissible | None = None,
    ) -> NDArray[Any] | dict[Hashable, NDArray[Any]]:
        """The documents of each query, best first: row indices of X, or document ids where X is `Queries` with ids.

        One query gives an array, several a dict from query id to array. `k` cuts each to its first k. Documents of
        equal score stay in the order of the input. Under constraints (the ranker's own, if none are given) it is the
        admissible ranking with the largest Σ_i c_i s_π(i), c the decay of training where that is positive and strictly
        decreasing, else 1 / log2(i + 1); where rules only limit nested or disjoint sets of documents, as in Π(B, k),
        one greedy pass by score finds it [ORM, section 7.1].
        """
        check_is_fitted(self)
        if k is not None and k < 1:
            raise DataError(f"rank cannot list k = {k} documents; pass k >= 1, or None for all.")
        queries = read_queries(self, X, None, qid=qid, group=group, attributes=attributes, reset=False, labels=False)
        documents = documents_of(queries)
        shown = self._deployment(queries, constraints).orders(self._scores(queries.features))
        ranked = {
            query: documents[start:stop][order[:k]]
            for query, start, stop, order in zip(
                queries.query_ids, queries.offsets[:-1], queries.offsets[1:], shown, strict=True
            )
        }
        return ranked if len(ranked) > 1 else next(iter(ranked.values()))

    def _scores(self, features: Any) -> Floats:
        """The scores (N,) of documents with these features (N, d), as `read_features` gives them."""
        raise NotImplementedError(f"{type(self).__name__} cannot score because it has no `_scores`; write one.")

    def _admissible(self, given: Any = None) -> Admissible | None:
        """The constraints that hold: those given, else the ranker's own. Raises OptionError for another type."""
        chosen = getattr(self, "constraints", None) if given is None else given
        if not isinstance(chosen, Admissible | None):
            raise OptionError(
                f"constraints cannot be a {type(chosen).__name__}; state them as Admissible(k).at_most(...)"
            )
        return chosen

    def _deployment(self, queries: Queries, constraints: Any = None) -> Deployment:
        """How the documents of these queries are ranked, whatever their scores."""
        return Deployment.of(queries, self._admissible(constraints))
