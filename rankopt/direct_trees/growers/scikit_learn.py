"""Least squares by scikit-learn: the one tree of `HistGradientBoostingRegressor(max_iter=1)`, on at most 255 bins of
each feature, leaf by leaf where it helps most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankopt.direct_trees.growers.documents import Documents, Size
from rankopt.direct_trees.tree import Tree
from rankopt.errors import OptionError

__all__ = ["ScikitLearn"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ScikitLearn:
    """A `Grower`. Of the package only the splits are taken; leaves are means in the order of the documents."""

    documents: Documents
    size: Size

    @classmethod
    def of(cls, documents: Documents, size: Size) -> ScikitLearn:
        return cls(documents, size)

    def grow(self, target: Floats, scores: Floats) -> Tree | None:
        from sklearn import __version__
        from sklearn.ensemble import HistGradientBoostingRegressor

        regression = HistGradientBoostingRegressor(
            max_iter=1, learning_rate=1.0, max_leaf_nodes=self.size.leaves, min_samples_leaf=self.size.fewest,
            early_stopping=False, random_state=self.size.seed,
        )  # fmt: skip
        shares = self.documents.problem.shares
        if np.ptp(target) == 0:
            return None
        regression.fit(self.documents.learned, target, sample_weight=None if np.ptp(shares) == 0 else shares)
        try:
            nodes = regression._predictors[0][0].nodes
            leaf = nodes["is_leaf"] != 0
            feature = np.where(leaf, -1, nodes["feature_idx"].astype(np.int64))
            threshold = np.where(leaf, 0.0, nodes["num_threshold"])
            left, right = (nodes[side].astype(np.int64) for side in ("left", "right"))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise OptionError(
                f"trees = 'scikit-learn' cannot read the trees of scikit-learn {__version__} ({error}); "
                "use trees='lightgbm', or another scikit-learn"
            ) from error
        if leaf.size < 2:
            return None
        return Tree.fitted(feature, threshold, left, right, self.documents.features, target, shares)
