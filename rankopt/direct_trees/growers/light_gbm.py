"""Least squares by LightGBM: its trees on gradients of ours, whose features are put into bins once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankopt.boosting.growth import lightgbm
from rankopt.direct_trees.growers.documents import Size, TrainingDocuments
from rankopt.direct_trees.tree import Tree

Floats = NDArray[np.float64]

OF_DATA = {"verbosity": -1, "feature_pre_filter": False, "use_missing": False}


@dataclass(frozen=True, eq=False)
class LightGBM:
    """A `Grower`. Of the package only the splits are taken; leaves are means in the order of the documents."""

    documents: TrainingDocuments
    booster: Any

    @classmethod
    def of(cls, documents: TrainingDocuments, size: Size) -> LightGBM:
        package = lightgbm()
        data = package.Dataset(documents.learned, documents.problem.grades, params=OF_DATA).construct()
        settings = {
            "objective": "none", "metric": "None", "learning_rate": 1.0, "num_leaves": size.leaves,
            "min_data_in_leaf": size.fewest, "min_sum_hessian_in_leaf": 0.0, "seed": size.seed,
            "num_threads": size.threads, "deterministic": True, "force_col_wise": True, **OF_DATA,
        }  # fmt: skip
        bins = any(data.feature_num_bin(feature) for feature in range(documents.features.shape[1]))
        return cls(documents, package.Booster(settings, data) if bins else None)

    def grow(self, target: Floats, scores: Floats) -> Tree | None:
        if self.booster is None:
            return None
        shares, known = self.documents.problem.shares, self.booster.num_trees()
        self.booster.update(fobj=lambda scores, data: (-shares * target, shares))
        if self.booster.num_trees() == known:
            return None
        text = self.booster.model_to_string(start_iteration=known, num_iteration=1)
        fields = dict(line.split("=", 1) for line in text[text.index("Tree=") :].split("\n") if "=" in line)
        leaves = int(fields["num_leaves"])
        if leaves < 2:
            return None
        splits, ends = leaves - 1, np.zeros(leaves)

        def column(name: str, kind: type) -> NDArray[Any]:
            return np.append(np.array(fields[name].split(), dtype=kind), ends.astype(kind))

        children = [column(name, np.int64) for name in ("left_child", "right_child")]
        left, right = (np.where(child < 0, splits + ~child, child) for child in children)
        feature = np.append(column("split_feature", np.int64)[:splits], np.full(leaves, -1))
        return Tree.fitted(
            feature, column("threshold", np.float64), left, right, self.documents.features, target, shares
        )
