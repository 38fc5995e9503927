"""Valid arguments of public callables, wrong ones, and objects with public methods, for `test_fuzz`."""

import inspect
import itertools
from fractions import Fraction
from functools import partial
from pathlib import Path

import cvxpy
import numpy as np
import pandas as pd
from scipy.sparse import coo_matrix, csr_array

import formulations.experimental
import rankopt.ascent
import rankopt.clicks
import rankopt.data
import rankopt.rankers
import rankopt.ratings
from formulations import Assignment, RankingSet, margin_dual, matching, ranking, solve

X = np.arange(24.0).reshape(8, 3) % 5.0
Y = np.array([2.0, 1.0, 0.0, 0.0, 1.0, 2.0, 0.0, 1.0])
QID = np.repeat([0, 1], 4)
OFFSETS = np.array([0, 4, 8])
PROFIT = np.array([[5.0, 4.0, 1.0, 3.0], [3.0, 3.0, 2.0, 1.0], [2.0, 4.0, 1.0, 2.0]])
DISCOUNT = np.array([1.0, 0.6, 0.5, 0.4])
USERS, ITEMS = np.repeat(np.arange(3), 13), np.tile(np.arange(13), 3)
STARS = np.arange(39.0) % 5 + 1


def recursive():
    nested = []
    nested.append(nested)
    return nested


def iterated():
    yield from (3.0, 2.0, 1.0)


class Broken:
    """An object whose text and comparisons are its own."""

    def __eq__(self, other):
        return NotImplemented

    __hash__ = None


WRONG = {
    "None": lambda: None,
    "object": object,
    "unhashable": Broken,
    "text": lambda: "text",
    "empty text": str,
    "spec": lambda: "highs(",
    "bytes": lambda: b"bytes",
    "file": lambda: "/no/such/file.txt",
    "null": lambda: "a\0b",
    "path": lambda: Path("no-such-folder/file.npz"),
    "dict": lambda: {"a": 1},
    "empty dict": dict,
    "ragged": lambda: [[1.0, 2.0], [3.0]],
    "recursive": recursive,
    "set": lambda: {1, 2},
    "tuple": lambda: (1, "a"),
    "generator": iterated,
    "function": lambda: lambda: None,
    "class": lambda: int,
    "problem class": lambda: Assignment,
    "module": lambda: np,
    "frame": lambda: pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}),
    "series": lambda: pd.Series([1.0, 2.0], index=["p", "q"]),
    "csr": lambda: csr_array(np.eye(3)),
    "coo": lambda: coo_matrix(np.eye(4)),
    "masked": lambda: np.ma.masked_array([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 0]),
    "masked table": lambda: np.ma.masked_array(PROFIT, PROFIT == 1.0),
    "0-d": lambda: np.array(1.0),
    "3-d": lambda: np.zeros((2, 2, 2)),
    "empty list": list,
    "empty table": lambda: np.zeros((0, 3)),
    "no columns": lambda: np.zeros((4, 0)),
    "short": lambda: [1.0, 2.0],
    "long": lambda: np.arange(11),
    "table": lambda: np.ones((3, 5)),
    "nan": lambda: np.nan,
    "nans": lambda: [1.0, np.nan, 2.0, 1.0],
    "inf": lambda: np.inf,
    "-inf": lambda: -np.inf,
    "infs": lambda: np.full((3, 4), np.inf),
    "huge": lambda: 1e308,
    "long integer": lambda: 10**400,
    "many": lambda: 10**12,
    "negative": lambda: -1,
    "negatives": lambda: np.array([-3, -1, 2, 0]),
    "zero": lambda: 0,
    "true": lambda: True,
    "half": lambda: 0.5,
    "complex": lambda: 1j,
    "complexes": lambda: np.array([1j, 2.0, 3.0, 4.0]),
    "fraction": lambda: Fraction(1, 3),
    "words": lambda: ["a", "b", "c", "d"],
    "objects": lambda: np.array([None, {}, "a", 1], dtype=object),
    "dates": lambda: np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
    "structure": lambda: np.zeros(4, dtype=[("a", float), ("b", int)]),
    "slice": lambda: slice(None),
    "ellipsis": lambda: ...,
    "exception": lambda: ValueError("passed"),
    "assignment": lambda: matching(PROFIT),
    "dual": lambda: margin_dual(np.eye(3), np.ones(3), lam=1.0),
    "solution": lambda: solve(matching(PROFIT)),
    "ranking set": lambda: RankingSet(4, 3),
    "queries": lambda: rankopt.Queries.from_arrays(X, Y, qid=QID),
    "ratings": lambda: rankopt.ratings.Ratings.from_arrays(USERS, ITEMS, STARS),
    "admissible": lambda: rankopt.Admissible(2),
}


NUMBER = itertools.count()


def write_files():
    """Files that `SPECIAL` names, in this folder."""
    linear().write("made.mps")
    rankopt.data.write_svmlight(queries(), "made.txt")
    rankopt.rankers.save_model(fit(small(rankopt.RegressionRanker)), "made.model")
    texts = {
        "made.toml": "documents = 4\npositions = 3\n",
        "made.qrels": "1 0 d1 1\n1 0 d2 0\n",
        "made.run": "1 Q0 d1 1 0.5 t\n",
        "made.csv": "user,item,rating\n1,2,3\n",
    }
    for name, text in texts.items():
        Path(name).write_text(text)


RANKERS = tuple(rankopt.rankers.RANKERS)


def sets():
    """A ranking set with a constraint named "few" of each sort that other arguments name."""
    return RankingSet(4, 3).at_most(1, documents=[0, 1], name="few")


def constrained():
    return formulations.constrained_ranking(PROFIT, sets())


def rank_two():
    return ranking([3.0, 1.0, 2.0, 0.0], [1.0, 0.0, 2.0, 1.0], discount=DISCOUNT, position_weights=DISCOUNT)


def linear():
    ones = csr_array(np.ones((1, 3)))
    zeros = np.zeros(3)
    return formulations.LinearProgram(np.array([1.0, 2.0, 3.0]), ones, np.zeros(1), np.ones(1), zeros, zeros + 1)


def queries():
    return rankopt.Queries.from_arrays(X, Y, qid=QID, attributes={"kind": list("abababab")})


def ratings_table():
    return rankopt.ratings.Ratings.from_arrays(USERS, ITEMS, STARS)


def clicks():
    return rankopt.clicks.simulate_clicks(queries(), [X[:, 0], X[:, 1]], sessions=50, positions=4)


def evaluation():
    return rankopt.evaluate(queries(), X[:, 0], "nDCG@10")


GOOD = {
    "profit": lambda: PROFIT, "P": lambda: np.full((3, 3), 1 / 3), "admissible": sets, "groups": lambda: [0, 0, 1, 1],
    "scores": lambda: [3.0, 1.0, 2.0, 0.0], "gain": lambda: [1.0, 0.0, 2.0, 1.0], "discount": lambda: DISCOUNT,
    "position_weights": lambda: DISCOUNT, "relevance": lambda: [1.0, 0.0, 0.0, 1.0], "lam": lambda: 1.0,
    "planes": lambda: np.ones((2, 2)), "heights": lambda: np.ones(2), "subgradients": lambda: np.eye(3),
    "intercepts": lambda: np.ones(3), "problem": constrained, "constraint": lambda: "few", "limits": lambda: [0, 1, 2],
    "solution": lambda: solve(constrained()), "batch": lambda: ranking(X[:, 0], Y, discount=DISCOUNT,
    position_weights=DISCOUNT, offsets=OFFSETS), "solver": lambda: "auto", "spec": lambda: "highs", "merit": lambda:
    [1.0, 2.0, 1.0, 2.0], "penalty": lambda: 1.0, "evidence": lambda: formulations.verify_integrality(sets()),
    "function": lambda: (lambda problem: np.arange(3)), "accepts": lambda: Assignment, "queries": queries,
    "judged": queries, "measures": lambda: "nDCG@10", "measure": lambda: "nDCG@10", "run_a": evaluation,
    "run_b": evaluation, "k": lambda: 2, "documents": lambda: [0, 1], "positions": lambda: [0], "X": lambda: X,
    "y": lambda: Y, "qid": lambda: QID, "x": lambda: np.arange(3), "features": lambda: X, "offsets": lambda: OFFSETS,
    "users": lambda: USERS, "items": lambda: ITEMS, "values": lambda: STARS, "ratings": ratings_table,
    "split": lambda: rankopt.ratings.weak_split(ratings_table(), 2), "text": lambda: "AP@5",
    "parts": lambda: [queries()], "runs": lambda: {"a": evaluation(), "b": evaluation()}, "p_values": lambda: [0.1],
    "matrix": lambda: csr_array(np.ones((1, 3))), "objective": lambda: np.ones(3), "row_lower": lambda: np.zeros(1),
    "row_upper": lambda: np.ones(1), "lower": lambda: np.zeros(3), "upper": lambda: np.ones(3),
    "hessian": lambda: csr_array(np.eye(3)), "linear": lambda: np.ones(3), "seconds": lambda: 5.0,
    "given": lambda: X[:, 0], "name": lambda: "few", "cutoff": lambda: 2, "reference": lambda: np.arange(4),
    "document": lambda: 0, "position": lambda: 1, "first": lambda: 0, "second": lambda: 1, "limit": lambda: 1,
    "indices": lambda: [0], "attribute": lambda: "kind", "value": lambda: "a", "label": lambda: "a",
    "path": lambda: f"made{next(NUMBER)}",
    "folder": lambda: f"made{next(NUMBER)}", "source": lambda: pd.DataFrame({"qid": QID,
    "grade": Y, "f": Y}), "shares": lambda: [0.5], "share": lambda: 0.5, "rng": lambda: 0, "size": lambda: 3,
    "row": lambda: 0, "spec_": lambda: "power(0.5)", "user": lambda: 1, "item": lambda: 1, "ranker": None,
    "model": None, "kinds": lambda: ["a", "b"], "worth": lambda: np.ones((2, 3)), "count": lambda: 2, "log": clicks,
    "propensities": lambda: rankopt.clicks.PositionBias.from_power(1.0), "gains": lambda: Y,
}  # fmt: skip
"""Valid arguments by the name of the parameter."""

SPECIAL = {
    ("matching", "allowed"): lambda: PROFIT > 1,
    ("verify_integrality", "problem"): sets,
    ("check_evidence", "problem"): sets,
    ("proof_of", "problem"): sets,
    ("weak_split", "n"): lambda: 2,
    **{("clicks.PositionBias", name): lambda: [1.0, 0.5] for name in ("propensities", "trust", "low", "high")},
    ("ClickLog.from_frame", "frame"): lambda: pd.DataFrame(
        {
            "qid": QID,
            "docid": range(8),
            "position": [1, 2, 3, 4] * 2,
            "click": [1, 0] * 4,
            "f": Y,
            "g": list("abababab"),
        }
    ),
    ("ClickLog.from_arrays", "query"): lambda: QID,
    ("ClickLog.from_arrays", "document"): lambda: range(8),
    ("ClickLog.from_arrays", "position"): lambda: [1, 2, 3, 4] * 2,
    ("ClickLog.from_arrays", "click"): lambda: [1, 0] * 4,
    ("ClickLog.from_arrays", "attributes"): lambda: {"site": ["s"] * 8},
    ("ClickLog.from_frame", "attributes"): lambda: ["g"],
    **{("clicks.ClickLog", name): lambda: np.ones(1, dtype=int) for name in ("rows", "positions", "shown", "clicked")},
    ("clicks.ClickLog", "sessions"): lambda: np.ones(2, dtype=int),
    ("simulate_clicks", "ranker"): lambda: X[:, 0],
    ("evaluate_policy", "ranker"): lambda: X[:, 0],
    ("evaluate_policy", "measure"): lambda: "DCG@10",
    ("ClickLog().select", "indices"): lambda: [0],
    ("ranking", "offsets"): lambda: [0, 4],
    ("pairwise_ranking", "offsets"): lambda: [0, 4],
    ("relevance_ranking", "offsets"): lambda: [0, 4],
    ("first_relevant_ranking", "offsets"): lambda: [0, 4],
    ("relevance_ranking", "loss"): lambda: "AP",
    ("RankingSet", "documents"): lambda: 4,
    ("RankingSet", "positions"): lambda: 3,
    ("load_sample", "name"): lambda: "les-miserables",
    ("load_ratings_sample", "name"): lambda: "films",
    ("get_loss", "spec"): lambda: "squared",
    ("get_bound", "spec"): lambda: "convex",
    ("get_feature_map", "spec"): lambda: "positional",
    ("get_method", "spec"): lambda: "bundle",
    ("get_engine", "spec"): lambda: "serial",
    ("parse_position_weights", "spec"): lambda: "power(0.5)",
    ("evaluate", "scores"): lambda: X[:, 0],
    ("QueryNormalizer", "method"): lambda: "zscore",
    ("evaluate_ratings", "predict"): lambda: rankopt.ratings.ItemMeanBaseline().fit(ratings_table()),
    ("solve_slack_rescaled", "problem"): lambda: formulations.experimental.slack_rescaled_ranking(
        [3.0, 1.0, 2.0], [1.0, 0.0, 2.0], discount=DISCOUNT[:3], position_weights=DISCOUNT[:3]
    ),
    ("default_solvers", "problem"): linear,
    ("save", "page"): lambda: "<p>",
    ("user_block_dual", "items"): lambda: np.ones((2, 2)),
    ("user_block_dual", "offsets"): lambda: np.ones(2),
    ("diverse_retrieval", "groups"): lambda: [0, None, 1, 2],
    ("item_block_dual", "user"): lambda: [0, 1],
    ("item_block_dual", "users"): lambda: np.ones((2, 2)),
    ("item_block_dual", "prior"): lambda: np.ones(2),
    ("item_block_dual", "lam_offsets"): lambda: 1.0,
    ("LatticePath", "profit"): lambda: np.ones((2, 3, 2)),
    ("TableLoss", "cell"): lambda: lambda worse, better, a, b: np.ones(1),
    ("StepwiseLoss", "step"): lambda: lambda value, gains, ranks: gains,
    ("MinCostFlow", "tail"): lambda: np.array([0]),
    ("MinCostFlow", "head"): lambda: np.array([1]),
    ("MinCostFlow", "capacity"): lambda: np.array([2]),
    ("MinCostFlow", "cost"): lambda: np.array([1.0]),
    ("MinCostFlow", "supply"): lambda: np.array([1, -1]),
    ("GroupSequence", "worth"): lambda: np.ones((2, 3)),
    ("RankingDistribution", "orders"): lambda: np.array([[0, 1]]),
    ("RankingDistribution", "probabilities"): lambda: np.ones(1),
    ("RankingDistribution", "documents"): lambda: 2,
    ("from_cvxpy", "variable"): lambda: cvxpy.Variable((2, 3)),
    ("from_cvxpy", "constraints"): list,
    ("from_arrays", "rating"): lambda: STARS,
    ("from_csr", "table"): lambda: csr_array(np.ones((2, 3))),
    ("from_frame", "frame"): lambda: pd.DataFrame({"user": USERS, "item": ITEMS, "rating": STARS}),
    ("Split", "train"): ratings_table,
    ("Split", "test"): ratings_table,
    ("Split", "protocol"): lambda: "mine",
    ("given_split", "train"): ratings_table,
    ("given_split", "test"): ratings_table,
    ("Sample", "train"): queries,
    ("Sample", "test"): queries,
    ("write_run", "given"): lambda: X[:, 0],
    ("with_backend", "backend"): lambda: "clarabel",
    ("recommend", "users"): lambda: [0, 1],
    **{
        (f"{kind}().{word}", "y"): partial(np.ones, size)
        for kind, size in {
            "ConstrainedRanking": 3,
            "Assignment": 4,
            "RankTwoAssignment": 4,
            "LinearProgram": 1,
            "GroupedSimplexQP": 3,
            "RelevanceRanking": 9,
        }.items()
        for word in ("bound", "bound_float64", "active_dual")
    },
    **{
        (f"{kind}().{word}", "x"): lambda: np.arange(4)
        for kind in ("RankTwoAssignment", "RelevanceRanking")
        for word in ("value", "value_lower_bound", "recover_dual", "violations", "repair")
    },
    ("from_indices", "rating"): lambda: STARS,
    ("MeasureMix", "parts"): lambda: {"AP": 1, "RR": 2},
    ("OrTools.with_backend", "name"): lambda: "flow",
    ("Cvxpy.with_backend", "backend"): lambda: "CLARABEL",
    ("read_program", "path"): lambda: "made.mps",
    ("read_solver", "path"): lambda: "made.toml",
    ("read_ranking_set", "path"): lambda: "made.toml",
    ("read_qrels", "path"): lambda: "made.qrels",
    ("read_run", "path"): lambda: "made.run",
    ("read_ratings", "path"): lambda: "made.csv",
    ("load_model", "path"): lambda: "made.model",
    ("write", "path"): lambda: "made.lp",
    ("Queries.from_arrays", "qid"): lambda: QID,
    ("read_svmlight", "path"): lambda: "made.txt",
    ("read_table", "relevance"): lambda: "grade",
    ("Ratings.from_arrays", "user"): lambda: USERS,
    ("Ratings.from_arrays", "item"): lambda: ITEMS,
    ("Ratings.from_indices", "rows"): lambda: USERS.astype(np.int32),
    ("Ratings.from_indices", "columns"): lambda: ITEMS.astype(np.int32),
    ("Ratings.from_indices", "users"): lambda: np.arange(3),
    ("Ratings.from_indices", "items"): lambda: np.arange(13),
    ("strong_split", "users"): lambda: 1,
    ("strong_split", "n"): lambda: 2,
    ("strong_split", "least"): lambda: 1,
    ("svm", "name"): lambda: "ndcg",
    ("save_model", "model"): lambda: fit(small(rankopt.RegressionRanker)),
    ("save_onnx", "ranker"): lambda: fit(small(rankopt.RegressionRanker)),
    ("to_onnx", "ranker"): lambda: fit(small(rankopt.RegressionRanker)),
    ("SolverSwap", "data"): queries,
    ("changes", "before"): list,
    ("changes", "after"): list,
    ("report.write", "rows"): list,
    ("report.write", "path"): lambda: "made.html",
    ("RankingSet().add", "kind"): lambda: "at_most",
    ("RankingSet().add_rows", "matrix"): lambda: np.ones((1, 12)),
    ("at_most", "count"): lambda: 1,
    ("at_least", "count"): lambda: 1,
    ("is_feasible", "order"): lambda: [0, 2, 1],
    ("violations", "order"): lambda: [0, 2, 1],
    ("min_distance", "distance"): lambda: 2,
    ("step", "alpha"): lambda: np.ones(3) / 3,
    ("Admissible().add", "kind"): lambda: "at_most",
    ("Admissible().penalized", "constraint"): lambda: "kind",
    ("Admissible().sensitivity", "constraint"): lambda: "kind",
    ("Admissible().sensitivity", "scores"): lambda: X[:, 0],
    ("for_query", "n"): lambda: 4,
    ("repair", "n"): lambda: 4,
    ("to_ranking_set", "n"): lambda: 4,
    ("Admissible().repair", "attributes"): lambda: {"kind": list("abab")},
    ("for_query", "attributes"): lambda: {"kind": list("abab")},
    ("to_ranking_set", "attributes"): lambda: {"kind": list("abab")},
    ("validate", "attributes"): lambda: {"kind": list("abab")},
    ("to_input_order", "values"): lambda: Y,
    ("Evaluation().for_queries", "query_ids"): lambda: [1, 0],
    ("Evaluation().select", "measures"): lambda: ["nDCG@10"],
    ("Ratings().select", "mask"): lambda: STARS > 2,
    ("select_users", "index"): lambda: [0],
    ("plot_line", "direction"): lambda: 0,
    **{(word, "qid"): lambda: QID for word in ("bound_tightness", "score", "path", "fit", "rank", "predict")},
    **{(word, "y"): lambda: Y for word in ("bound_tightness", "score", "path", "fit")},
    **{("explain", name): lambda: X[0] for name in ("x", "y")},
    **{(f"CofiRanker().{word}", "X"): ratings_table for word in ("fit", "fold_in", "predict", "score", "verify")},
    **{(f"CofiRanker().{word}", "y"): lambda: None for word in ("fit", "fold_in", "score")},
    **{("sensitivity", "constraints"): lambda: rankopt.Admissible(2).at_most(1, by="kind")},
    **{(f"{kind}().sensitivity", "X"): queries for kind in RANKERS},
    **{(f"{kind}().sensitivity", "constraint"): lambda: "kind" for kind in RANKERS},
    **{(f"{kind}().sensitivity", "limits"): lambda: [1, 2] for kind in RANKERS},
    **{("DirectRanker().verify", "only"): lambda: 1},
    ("fold_in", "X"): lambda: np.column_stack([USERS, ITEMS]),
    ("fold_in", "y"): lambda: STARS,
    ("GroupedSimplexQP", "slopes"): lambda: np.eye(3),
    ("GroupedSimplexQP", "values"): lambda: np.ones(3),
    ("GroupedSimplexQP", "group"): lambda: np.zeros(3, dtype=np.int64),
    ("GroupedSimplexQP", "capacity"): lambda: np.ones(1),
}
"""Valid arguments of one callable: (end of its name, parameter)."""


def valid(name, parameter):
    """A function that makes a valid argument, or None."""
    special = [(end, one) for end, one in SPECIAL if one == parameter and f".{name}".endswith(f".{end}")]
    return SPECIAL[max(special, key=lambda key: len(key[0]))] if special else GOOD.get(parameter)


def is_special(name, parameter):
    return valid(name, parameter) is not GOOD.get(parameter)


LEAST = {"max_iter": 2, "n_estimators": 1, "min_child_samples": 1, "n_bags": 1, "factors": 2, "engine": "serial"}


def small(kind, **options):
    """A ranker that trains in milliseconds."""
    known = inspect.signature(kind).parameters
    least = {name: value for name, value in LEAST.items() if name in known}
    return kind(**{**least, **options})


def fit(ranker):
    if type(ranker).__name__ == "CofiRanker":
        return ranker.fit(np.column_stack([USERS, ITEMS]), STARS)
    return ranker.fit(X, Y, qid=QID)


def rankers():
    return [getattr(rankopt.rankers, name) for name in RANKERS]


def instances():
    """Objects whose public methods are called, by name."""
    made = {
        "RankingSet": sets(),
        "ConstrainedRanking": constrained(),
        "Assignment": matching(PROFIT),
        "RankTwoAssignment": rank_two(),
        "LinearProgram": linear(),
        "GroupedSimplexQP": margin_dual(np.eye(3), np.ones(3), lam=1.0),
        "RelevanceRanking": formulations.pairwise_ranking([3.0, 1.0, 2.0, 0.0], [1.0, 0.0, 0.0, 1.0]),
        "Solution": solve(constrained()),
        "RankingDistribution": formulations.birkhoff_decomposition(np.full((3, 3), 1 / 3)),
        "SensitivityCurve": formulations.sensitivity(constrained(), "few", [0, 1, 2]),
        "SolutionCertificate": formulations.certify(constrained(), solve(constrained())),
        "BatchSolution": formulations.solve_batch(GOOD["batch"]()),
        "Admissible": rankopt.Admissible(2).at_most(1, by="kind"),
        "Queries": queries(),
        "ClickLog": clicks(),
        "QueryNormalizer": rankopt.data.QueryNormalizer().fit(X),
        "Evaluation": evaluation(),
        "Ratings": ratings_table(),
        "ItemMeanBaseline": rankopt.ratings.ItemMeanBaseline().fit(ratings_table()),
    }
    for kind in rankers():
        made[kind.__name__] = fit(small(kind))
    return made
