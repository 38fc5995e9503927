"""Validation of LightGBM's model text: text that is not trees of these features never reaches LightGBM.

LightGBM's own reader trusts sizes and indices; a damaged text could make it read beyond its arrays. So the text is
parsed here first: a header, then trees of splits by numbers or by sets of categories, every array as long as its tree
requires, every feature one of the model's, every child a later split or a leaf, each reached once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Bools, Floats, Ints
from rankopt.errors import ModelError, OptionError
from rankopt.persistence.onnx import Nodes

HEADER = (
    "version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx", "feature_names",
    "feature_infos", "tree_sizes",
)  # fmt: skip
SPLITS = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child")
OF_SPLITS = (*SPLITS, "internal_value", "internal_weight", "internal_count")
OF_LEAVES = ("leaf_value", "leaf_weight", "leaf_count")
OF_CATEGORIES = ("cat_boundaries", "cat_threshold")
"""Where the set of each split by category begins and ends in 32-bit words, and the words: bit c is category c."""

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
INTEGER = re.compile(r"-?\d{1,10}")
LARGEST = 1e300
END = "end of trees"
DECISIONS = frozenset(map(str, range(12)))  # odd: by category; the rest says where a missing value goes


def text_of(booster: Any, rounds: int) -> str:
    """The trees of the first rounds as text, without the settings that they were grown by."""
    text: str = booster.model_to_string(num_iteration=rounds)
    return re.sub(r"monotone_constraints=.*\n", "", text[: text.index(END)]) + END + "\n"


def joined(init: str, text: str) -> str:
    """The trees of `init`, if it is not empty, and then those of `text`, as one text."""
    if not init:
        return text
    head, *_ = text.split("\n\n")
    trees = [
        tree
        for one in (init, text)
        for tree in re.findall(r"^Tree=\d+\n(.*?\n)(?=Tree=|end of trees)", one, re.M | re.S)
    ]
    trees = [f"Tree={number}\n{tree}" for number, tree in enumerate(trees)]
    sizes = "tree_sizes=" + " ".join(str(len(tree)) for tree in trees)
    return re.sub("tree_sizes=.*", sizes, head) + "\n\n" + "".join(trees) + END + "\n"


def check_text(text: str, features: int) -> int:
    """The number of trees; ModelError unless this is what `text_of` writes, of a model of so many features."""
    blocks = text.split("\n\n")
    first, *lines = blocks[0].split("\n")
    header = _fields(lines)
    sizes = header.get("tree_sizes", "").split()
    if first != "tree" or tuple(header) != HEADER or header["max_feature_idx"] != str(features - 1):
        raise ModelError(f"a text of trees has no header of a model of {features} features.")
    wanted = {"version": "v4", "num_class": "1", "num_tree_per_iteration": "1", "label_index": "0"}
    named = [header[name].split(" ") for name in ("feature_names", "feature_infos")]
    if any(header[name] != value for name, value in wanted.items()) or any(len(one) != features for one in named):
        raise ModelError("a text of trees is of another kind of model, or version, or does not name its features.")
    trees = [block.strip("\n") for block in blocks[1:]]
    trees = [block for block in trees if block]
    if not trees or trees.pop() != END or len(trees) != len(sizes):
        raise ModelError("a text of trees has another number of trees than its header states, or no end mark.")
    start = text.index("\n\n") + 2
    for number, (block, size) in enumerate(zip(trees, sizes, strict=True)):
        start = text.index("Tree=", start)
        following = text.find("Tree=", start + 1)
        length = (text.index(END, start) if following < 0 else following) - start
        if size != str(length):
            raise ModelError(f"tree {number} has another length than its header states.")
        _check_tree(block, number, features)
        start += 1
    return len(trees)


def _check_tree(block: str, number: int, features: int) -> None:
    first, *lines = block.split("\n")
    tree = _fields(lines)
    leaves = int(tree["num_leaves"]) if INTEGER.fullmatch(tree.get("num_leaves", "")) else 0
    known = {"num_leaves", "shrinkage", "num_cat", "is_linear", *OF_SPLITS, *OF_LEAVES, *OF_CATEGORIES}
    if first != f"Tree={number}" or leaves < 1 or set(tree) - known:
        raise ModelError(f"tree {number} is not as LightGBM writes it.")
    if tree.get("is_linear") != "0":
        raise ModelError(f"tree {number} has linear leaves, which no model of ours has.")
    numbers = {name: tree.get(name, "").split() for name in (*OF_SPLITS, *OF_LEAVES)}
    for name, values in numbers.items():
        length = leaves - 1 if name in OF_SPLITS else leaves
        absent = leaves == 1 and not values and name != "leaf_value"
        if not absent and (len(values) != length or not all(map(_is_number, values))):
            raise ModelError(f"{name} of tree {number} is not {length} finite numbers.")
    if not _is_number(tree.get("shrinkage", "")):
        raise ModelError(f"shrinkage of tree {number} is no number.")
    if leaves > 1:
        _check_shape(number, leaves, features, numbers)
    _check_categories(number, tree, numbers)


def _check_categories(number: int, tree: dict[str, str], numbers: dict[str, list[str]]) -> None:
    """Each split by category names one of the sets, which are cut from the words in turn."""
    bounds, words = ([*map(_to_integer, tree.get(name, "").split())] for name in OF_CATEGORIES)
    count = _to_integer(tree.get("num_cat", ""))
    cut = bounds[:1] == [0] and bounds[-1] == len(words) and bounds == sorted(set(bounds)) if count else not bounds
    if count < 0 or len(bounds) != count + (count > 0) or not cut or not all(0 <= word < 2**32 for word in words):
        raise ModelError(f"tree {number} has no sets of categories.")
    pairs = zip(numbers["decision_type"], numbers["threshold"], strict=True)
    if any(int(decision) % 2 and not 0 <= _to_integer(at) < count for decision, at in pairs):
        raise ModelError(f"tree {number} splits by a set of categories that it does not have.")


def _to_integer(word: str) -> int:
    """The integer that is written, -1 for anything else."""
    return int(word) if INTEGER.fullmatch(word) else -1


def _check_shape(number: int, leaves: int, features: int, numbers: dict[str, list[str]]) -> None:
    """Splits are numbered from 0, leaves are ~0, ~1, ...; each but the first split hangs on one earlier split."""
    if not set(numbers["decision_type"]) <= DECISIONS:
        raise ModelError(f"tree {number} has a kind of split that no model of ours has.")
    names = ("split_feature", "left_child", "right_child")
    if not all(INTEGER.fullmatch(value) for name in names for value in numbers[name]):
        raise ModelError(f"tree {number} has children or features that are not integers.")
    feature, left, right = (np.array(numbers[name], dtype=np.int64) for name in names)
    children = np.concatenate([left, right])
    parent = np.tile(np.arange(leaves - 1), 2)
    wanted = np.sort(np.concatenate([np.arange(1, leaves - 1), ~np.arange(leaves)]))
    if not np.array_equal(np.sort(children), wanted) or (children[children > 0] <= parent[children > 0]).any():
        raise ModelError(f"the splits of tree {number} are no tree.")
    if ((feature < 0) | (feature >= features)).any():
        raise ModelError(f"tree {number} splits by a feature that the model does not have.")


def nodes_of(texts: Sequence[NDArray[np.uint8]], features: int) -> Nodes:
    """The trees of checked texts as one table of nodes, their leaves divided by how many texts there are."""
    parts: list[tuple[Ints, Floats, Ints, Ints, Bools]] = []
    for text in texts:
        for block in text.tobytes().decode("ascii").split("\n\n")[1:]:
            if block.strip("\n").startswith("Tree="):
                parts.append(_nodes(_fields(block.strip("\n").split("\n")[1:]), len(texts)))
    if not parts:  # no tree was grown: one leaf of 0
        none = np.zeros(1, np.int64)
        parts = [(np.full(1, -1), np.zeros(1), none, none, none > 0)]
    roots = np.concatenate([[0], np.cumsum([part[0].size for part in parts])[:-1]]).astype(np.int64)
    feature, number, nan_left = (np.concatenate([part[column] for part in parts]) for column in (0, 1, 4))
    root_of = np.repeat(roots, [part[0].size for part in parts])
    left, right = (np.where(feature >= 0, np.concatenate([part[k] for part in parts]) + root_of, 0) for k in (2, 3))
    return Nodes(feature, number, left, right, roots, features, nan_left)


def _nodes(tree: dict[str, str], members: int) -> tuple[Ints, Floats, Ints, Ints, Bools]:
    """Feature, threshold or value, left, right, and whether NaN goes left, of a tree's nodes: splits, then leaves."""
    values = np.array(tree["leaf_value"].split(), dtype=np.float64) / members
    splits, none = int(tree["num_leaves"]) - 1, np.zeros(values.size, np.int64)
    if not splits:
        return np.full(1, -1), values, none, none, none > 0
    decisions = np.array(tree["decision_type"].split(), dtype=np.int64)
    if (decisions % 2).any():
        raise OptionError("trees that split by category cannot be written as ONNX; one-hot encode the categories")
    if (decisions // 4 == 1).any():
        raise OptionError("trees that take 0 for missing cannot be written as ONNX; grow them without zero_as_missing")
    feature, left, right = (
        np.array(tree[name].split(), dtype=np.int64) for name in ("split_feature", "left_child", "right_child")
    )
    left, right = (np.where(child < 0, splits + ~child, child) for child in (left, right))
    thresholds = np.array(tree["threshold"].split(), dtype=np.float64)
    # Where a feature lacked no value in training, LightGBM takes NaN for 0.
    nan_left = np.where(decisions // 4 == 2, decisions // 2 % 2 == 1, thresholds >= 0)
    number, nan_left = np.concatenate([thresholds, values]), np.append(nan_left, none > 0)
    return np.append(feature, np.full(values.size, -1)), number, np.append(left, none), np.append(right, none), nan_left


def _is_number(word: str) -> bool:
    """Whether it is one as LightGBM writes it, and sums of it stay finite."""
    return NUMBER.fullmatch(word) is not None and abs(float(word)) < LARGEST


def _fields(lines: list[str]) -> dict[str, str]:
    """name=value of each line; ModelError where a line is none, or a name comes twice."""
    pairs = [line.partition("=") for line in lines if line]
    fields = {name: value for name, _, value in pairs}
    if len(fields) != len(pairs) or not all(equals for _, equals, _ in pairs):
        raise ModelError("a line of a text of trees is not name=value, or repeats a name.")
    return fields
