"""Export a ranker's scores as an ONNX graph in double precision, for serving without Python.

    scores = X w                             linear rankers
    scores = factor * sum of leaves of x     boosted trees

>>> from rankopt.data import load_sample
>>> from rankopt.rankers import RegressionRanker
>>> ranker = RegressionRanker(normalize="zscore").fit(load_sample("les-miserables").train)
>>> to_onnx(ranker).graph.input[0].name                       # doctest: +SKIP
'documents'
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats, as_path
from rankopt.errors import OptionError
from rankopt.options import load_package

OPSET, TREES = 18, 5  # versions of ONNX's operators and of its tree operators: the first with double precision
WITHIN = ("zscore", "minmax", "sum")  # values of `normalize` that a graph can compute


@dataclass(frozen=True, eq=False)
class Linear:
    """coef: (d,). With indicators of missing values (d + p,), the weights of those of the `marked` features (p,) last;
    means: (d,) of the features, for queries without a value."""

    coef: Floats
    marked: NDArray[np.int64] | None = None
    means: Floats | None = None

    @property
    def features(self) -> int:
        return self.coef.size if self.means is None else self.means.size


@dataclass(frozen=True, eq=False)
class Nodes:
    """Trees as arrays. Node i is a split if feature_i >= 0: left_i where x[feature_i] <= number_i, else right_i.

    nan_left_i: whether NaN goes left, by default nowhere. Otherwise feature_i = -1, and node i is a leaf of value
    number_i. roots: the first node of each tree.
    """

    feature: NDArray[np.int64]
    number: Floats
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    roots: NDArray[np.int64]
    features: int
    nan_left: NDArray[np.bool_] | None = None


def to_onnx(ranker: Any) -> Any:
    """The `onnx.ModelProto` with input "documents" (n, d), float64, and output "scores" (n,), float64.

    With `normalize` ("zscore", "minmax" or "sum") or `missing="indicator"` one call takes all documents of one query;
    the graph normalizes them and replaces NaN.

    Raises OptionError for a ranker that is neither linear nor of boosted trees, for slot rankers, for "rank", for trees
    with `normalize` (rounding could change a branch), and where the package onnx is missing. Raises NotFittedError.
    """
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(ranker)
    describe = getattr(ranker, "_as_graph", None)
    if describe is None:
        raise OptionError(
            f"{type(ranker).__name__} cannot be written as ONNX because its scores are neither linear nor of boosted "
            "trees; serve it by load_model(FILE).predict"
        )
    scored, normalize = describe(), getattr(ranker, "normalize_", None)
    if isinstance(scored, Linear) and scored.coef.ndim != 1:
        raise OptionError(
            f"{type(ranker).__name__} cannot be written as ONNX because it has weights for each slot and not one score "
            "a document; serve it by load_model(FILE).predict"
        )
    if normalize is not None and (normalize not in WITHIN or isinstance(scored, Nodes)):
        raise OptionError(
            f"normalize = {normalize!r} of {type(ranker).__name__} cannot be written as ONNX; train on features that "
            "QueryNormalizer has normalized, normalize them so before they are served, and leave normalize out"
        )
    return _Graph(scored.features).written(scored, normalize)


def save_onnx(ranker: Any, path: str | Path) -> None:
    """Write the result of `to_onnx` to this file."""
    Path(as_path(path, OptionError)).write_bytes(to_onnx(ranker).SerializeToString())


class _Graph:
    """Builder of an ONNX graph: nodes and constants in the order in which they are added."""

    def __init__(self, features: int) -> None:
        self.onnx, self.features = load_package("onnx", "onnx"), features
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def written(self, scored: Linear | Nodes, normalize: str | None) -> Any:
        helper, double = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        documents, nan = "documents", None
        if isinstance(scored, Linear) and scored.means is not None:
            nan = self.add("IsNaN", [documents])
        documents = documents if normalize is None else self.within(documents, normalize, nan)
        if isinstance(scored, Linear) and nan is not None:
            documents = self.without_missing(documents, scored, nan)
        column = self.product(documents, scored.coef) if isinstance(scored, Linear) else self.trees(documents, scored)
        self.add("Squeeze", [column, self.constant(np.array([1]))], output="scores")
        graph = helper.make_graph(
            self.nodes,
            "rankopt",
            [helper.make_tensor_value_info("documents", double, ["n", self.features])],
            [helper.make_tensor_value_info("scores", double, ["n"])],
            self.constants,
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", TREES)]
        model = helper.make_model(graph, producer_name="rankopt", opset_imports=opsets, ir_version=10)
        self.onnx.checker.check_model(model)
        return model

    def add(self, kind: str, inputs: list[str], output: str | None = None, **options: Any) -> str:
        output = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], **options))
        return output

    def constant(self, values: NDArray[Any]) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(values), name))
        return name

    def product(self, documents: str, coef: Floats) -> str:
        return self.add("MatMul", [documents, self.constant(coef[:, None])])

    def total(self, values: str, nan: str | None) -> str:
        """Sums of columns, without what is missing."""
        present = values if nan is None else self.add("Where", [nan, self.constant(np.array(0.0)), values])
        return self.add("ReduceSum", [present, self.constant(np.array([0]))])

    def mean(self, values: str, nan: str | None) -> str:
        """Means of columns, without what is missing; NaN if nothing is present."""
        if nan is None:
            return self.add("ReduceMean", [values, self.constant(np.array([0]))])
        present = self.add("Cast", [self.add("Not", [nan])], to=self.onnx.TensorProto.DOUBLE)
        return self.add("Div", [self.total(values, nan), self.total(present, None)])

    def within(self, documents: str, method: str, nan: str | None = None) -> str:
        """(documents - shift) / scale; the scale of a constant feature is infinite."""
        down, low, high = self.constant(np.array([0])), documents, documents
        if nan is not None:
            low, high = (self.add("Where", [nan, self.constant(np.array(end)), documents]) for end in (np.inf, -np.inf))
        low, high = self.add("ReduceMin", [low, down]), self.add("ReduceMax", [high, down])
        if method == "sum":
            shifted, scale = documents, self.total(self.add("Abs", [documents]), nan)
        elif method == "minmax":
            shifted, scale = self.add("Sub", [documents, low]), self.add("Sub", [high, low])
        else:
            shifted = self.add("Sub", [documents, self.mean(documents, nan)])
            scale = self.deviation(shifted, nan)
        endless = self.constant(np.array([[np.inf]]))
        return self.add("Div", [shifted, self.add("Where", [self.add("Equal", [low, high]), endless, scale])])

    def deviation(self, shifted: str, nan: str | None) -> str:
        """Standard deviations, by way of the largest deviation so that no square over- or underflows."""
        zero, sizes = self.constant(np.array(0.0)), self.add("Abs", [shifted])
        sizes = sizes if nan is None else self.add("Where", [nan, zero, sizes])
        largest = self.add("ReduceMax", [sizes, self.constant(np.array([0]))])
        unit = self.add("Where", [self.add("Equal", [largest, zero]), self.constant(np.array(1.0)), largest])
        part = self.add("Div", [sizes, unit])
        return self.add("Mul", [largest, self.add("Sqrt", [self.mean(self.add("Mul", [part, part]), nan)])])

    def without_missing(self, documents: str, scored: Linear, nan: str) -> str:
        """The documents with means for NaN, and the indicators."""
        found = self.mean(documents, nan)
        means = self.add("Where", [self.add("IsNaN", [found]), self.constant(np.asarray(scored.means)[None, :]), found])
        marks = self.add("Gather", [nan, self.constant(np.asarray(scored.marked))], axis=1)
        marks = self.add("Cast", [marks], to=self.onnx.TensorProto.DOUBLE)
        return self.add("Concat", [self.add("Where", [nan, means, documents]), marks], axis=1)

    def trees(self, documents: str, trees: Nodes) -> str:
        """One node for all trees. Splits and leaves are numbered separately; a single leaf is a split to it twice."""
        split = trees.feature >= 0
        index = np.where(split, np.cumsum(split) - 1, np.cumsum(~split) - 1)
        feature, number = trees.feature[split].tolist(), trees.number[split].tolist()
        sides = [
            (index[child].tolist(), (~split[child]).astype(int).tolist())
            for child in (trees.left[split], trees.right[split])
        ]
        nan_left = (np.zeros_like(split) if trees.nan_left is None else trees.nan_left)[split].astype(int).tolist()
        roots = []
        for root in trees.roots.tolist():
            if not split[root]:
                feature, number, nan_left = [*feature, 0], [*number, 0.0], [*nan_left, 0]
                sides = [([*to, int(index[root])], [*ends, 1]) for to, ends in sides]
            roots.append(int(index[root]) if split[root] else len(feature) - 1)
        leaves = trees.number[~split]
        tensor = self.onnx.numpy_helper.from_array
        return self.add(
            "TreeEnsemble", [documents], domain="ai.onnx.ml", n_targets=1, aggregate_function=1, post_transform=0,
            tree_roots=roots, nodes_featureids=feature, nodes_splits=tensor(np.array(number), "splits"),
            nodes_modes=tensor(np.zeros(len(feature), np.uint8), "modes"), nodes_truenodeids=sides[0][0],
            nodes_trueleafs=sides[0][1], nodes_falsenodeids=sides[1][0], nodes_falseleafs=sides[1][1],
            nodes_missing_value_tracks_true=nan_left, leaf_targetids=[0] * leaves.size,
            leaf_weights=tensor(leaves, "leaves"),
        )  # fmt: skip
