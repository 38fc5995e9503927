"""Arrays given in memory: other types, shapes, layouts and values, and sparse matrices that lie."""

from __future__ import annotations

import traceback

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from formulations.errors import FormulationError
from planted.attack import survive
from rankopt.errors import RankoptError
from rankopt.measures import evaluate
from rankopt.rankers import DirectRanker, LargeMarginRanker, LossRanker, PairwiseRanker, RegressionRanker

RANKERS = (
    lambda: RegressionRanker(1.0),
    lambda: LargeMarginRanker("nDCG@5", lam=1.0, max_iter=20),
    lambda: PairwiseRanker(lam=1.0, max_iter=20),
    lambda: LossRanker("pairwise", lam=1.0, max_iter=20),
    lambda: DirectRanker("nDCG@5", init="zeros", max_iter=2),
)


def bits(value):
    """What an array given by the caller holds, to see whether anybody writes to it."""
    return value.tobytes() if isinstance(value, np.ndarray) and value.dtype != object else None


def answered(error):
    """Whether this is an error of ours, or scikit-learn's own words for what is no table of numbers."""
    if isinstance(error, (RankoptError, FormulationError)):
        return True
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    return isinstance(error, (TypeError, ValueError)) and "sklearn" in last


N, D = 24, 3
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.7), 3)
Y = RNG.integers(0, 3, N).astype(float)
QID = np.repeat(np.arange(4), 6)

SAME = {
    "Fortran order": np.asfortranarray,
    "every second row": lambda a: np.repeat(a, 2, axis=0)[::2],
    "backwards twice": lambda a: a[::-1].copy()[::-1],
    "other byte order": lambda a: a.astype(a.dtype.newbyteorder()),
    "object": lambda a: a.astype(object),
    "list": lambda a: a.tolist(),
    "longdouble": lambda a: a.astype(np.longdouble),
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "subclass": lambda a: a.view(type("Subclass", (np.ndarray,), {})),
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
    "frame": lambda a: pd.DataFrame(a) if a.ndim == 2 else pd.Series(a, index=np.arange(len(a))[::-1]),
}
"""The same numbers, kept otherwise."""

SAME_SPARSE = {
    "csr": sp.csr_matrix,
    "csr array": sp.csr_array,
    "csc": sp.csc_matrix,
    "coo": sp.coo_matrix,
    "lil": sp.lil_matrix,
    "long indices": lambda a: long_indices(sp.csr_matrix(a)),
    "halves added": lambda a: halves(a),
    "unsorted": lambda a: unsorted(sp.csr_matrix(a)),
}
"""The same features as sparse matrices."""


def long_indices(table):
    table.indices, table.indptr = table.indices.astype(np.int64), table.indptr.astype(np.int64)
    return table


def halves(a):
    """Each entry stands twice, with half its value."""
    rows, columns = np.nonzero(a)
    parts = (np.r_[a[rows, columns] / 2, a[rows, columns] / 2], (np.r_[rows, rows], np.r_[columns, columns]))
    return sp.coo_matrix(parts, shape=a.shape)


def unsorted(table):
    for first, last in zip(table.indptr[:-1], table.indptr[1:], strict=True):
        table.indices[first:last] = table.indices[first:last][::-1]
        table.data[first:last] = table.data[first:last][::-1]
    table.has_sorted_indices = False
    return table


VALUES = [np.nan, np.inf, -np.inf, -1.0, 1e308, -1e308, 1e200, 1e155, 1e-160, 1e-320, -0.0, 2.0**63, 0.5, 31.0, 1e6]


def with_value(a, rng):
    """Some entries replaced by one of `VALUES`, or whole rows and columns."""
    a = np.array(a, dtype=float)
    value = VALUES[rng.integers(len(VALUES))]
    if a.ndim == 2 and rng.random() < 0.3:
        a[:, rng.integers(a.shape[1])] = value
    else:
        a.flat[rng.integers(a.size, size=int(rng.integers(1, 4)))] = value
    return a


def other_kind(a, rng):
    """An array of another kind: what is no number, no real number, or another one."""
    a = np.asarray(a)
    kinds = (
        lambda: a.astype(complex) + 1j,
        lambda: a.astype(str),
        lambda: np.full(a.shape, "x"),
        lambda: np.full(a.shape, None),
        lambda: a > 0,
        lambda: a.astype(np.float16),
        lambda: a.astype(np.int8),
        lambda: a.astype(np.int64).astype("M8[D]"),
        lambda: a.astype(np.int64).astype("m8[s]"),
        lambda: np.ma.masked_array(a, rng.random(a.shape) < 0.2),
        lambda: np.zeros(a.shape, dtype=[("x", float)]),
        lambda: np.array([b"1"] * a.size).reshape(a.shape),
        lambda: np.vectorize(lambda x: 10**400, otypes=[object])(a),
        lambda: np.vectorize(lambda x: [x], otypes=[object])(a),
        lambda: np.full(a.shape, 2**64 - 1, dtype=np.uint64),
        lambda: pd.array([pd.NA, *a.ravel().tolist()[1:]], dtype="Float64"),
        lambda: object(),
        lambda: None,
        lambda: "0123",
        lambda: {0: 1.0},
        lambda: 5,
        lambda: (x for x in a.ravel().tolist()),
    )
    return kinds[rng.integers(len(kinds))]()


def other_shape(a, rng):
    """Too long, too short, empty, of another number of dimensions."""
    a = np.asarray(a)
    shapes = (
        lambda: a[:-1],
        lambda: np.concatenate([a, a]),
        lambda: a[:0],
        lambda: a[:1],
        lambda: a.T,
        lambda: a[None],
        lambda: a[..., None],
        lambda: a.ravel(),
        lambda: np.array(1.0),
        lambda: a.reshape(-1, a.shape[-1])[:, :0],
        lambda: np.broadcast_to(a[:1], (N, *a.shape[1:])),
        lambda: np.lib.stride_tricks.as_strided(np.zeros(1), (N, D) if a.ndim == 2 else (N,), (0, 0)[: a.ndim]),
    )
    return shapes[rng.integers(len(shapes))]()


def lying(a, rng):
    """A CSR matrix whose parts do not fit together."""
    table = sp.csr_matrix(X)
    table.indices, table.indptr, table.data = table.indices.copy(), table.indptr.copy(), table.data.copy()
    place = int(rng.integers(table.nnz))
    lies = (
        lambda: table.indices.__setitem__(place, D + int(rng.integers(5))),
        lambda: table.indices.__setitem__(place, -1 - int(rng.integers(5))),
        lambda: table.indices.__setitem__(place, 2**31 - 1),
        lambda: table.indptr.__setitem__(int(rng.integers(1, N)), 2**31 - 1),
        lambda: table.indptr.__setitem__(int(rng.integers(1, N)), -1),
        lambda: table.indptr.__setitem__(0, 1),
        lambda: table.indptr.__setitem__(N, table.nnz + 1000),
        lambda: table.indptr.__setitem__(slice(None), table.indptr[::-1].copy()),
        lambda: setattr(table, "indptr", table.indptr[:-1]),
        lambda: setattr(table, "indices", table.indices[:-1]),
        lambda: setattr(table, "data", table.data[:-1]),
        lambda: setattr(table, "data", table.data.astype(complex)),
        lambda: setattr(table, "data", np.full(table.nnz, np.nan)),
        lambda: setattr(table, "indices", table.indices.astype(float)),
        lambda: setattr(table, "indices", table.indices[None]),
        lambda: setattr(table, "_shape", (N, 10**12)),
        lambda: setattr(table, "_shape", (N + 1, D)),
        lambda: setattr(table, "_shape", (N, 1)),
    )
    lies[rng.integers(len(lies))]()
    return table


IDS = [
    lambda rng: np.zeros(N, dtype=int),
    lambda rng: np.arange(N),
    lambda rng: rng.permutation(QID),
    lambda rng: np.where(QID == 0, np.nan, QID),
    lambda rng: [None] * N,
    lambda rng: [[0]] * N,
    lambda rng: [float("nan")] * N,
    lambda rng: ["a", 1, 2.5, None, (1, 2), b"x"] * 4,
    lambda rng: QID.astype(complex),
    lambda rng: pd.Categorical(QID),
    lambda rng: np.ma.masked_array(QID, QID == 2),
    lambda rng: QID[:-1],
    lambda rng: QID[:, None],
    lambda rng: 7,
    lambda rng: "query",
]
"""What is given as ids of queries."""

GROUPS = [[6, 6, 6], [6, 6, 6, 6.5], [30, -6], [24, 0], [], [6] * 5, [np.nan] * 4, 24, "24", [2**63, 1], [True] * 24]
"""What is given as sizes of queries."""


def changed(rng):
    """Arrays for a fit, whether they hold the numbers they held, and what was done."""
    given, done = {"X": X.copy(), "y": Y.copy(), "qid": QID.copy()}, []
    if rng.random() < 0.3:
        name = list(SAME)[rng.integers(len(SAME))]
        which = "Xy"[rng.integers(2)]
        given[which] = SAME[name](given[which])
        return given, True, [f"{which}: {name}"]
    if rng.random() < 0.15:
        name = list(SAME_SPARSE)[rng.integers(len(SAME_SPARSE))]
        return {**given, "X": SAME_SPARSE[name](X)}, True, [f"X: {name}"]
    for _ in range(int(rng.integers(1, 4))):
        which = ("X", "X", "y", "qid", "group", "weight")[rng.integers(6)]
        if which == "qid":
            given["qid"], what = IDS[place := rng.integers(len(IDS))](rng), f"ids {place}"
        elif which == "group":
            given.pop("qid", None)
            given["group"], what = GROUPS[place := rng.integers(len(GROUPS))], f"sizes {place}"
        else:
            old = {"X": X, "y": Y, "weight": np.ones(4)}[which]
            way = (with_value, other_kind, other_shape, lying)[rng.integers(4 if which == "X" else 3)]
            given["query_weight" if which == "weight" else which] = way(old, rng)
            what = way.__name__
        done.append(f"{which}: {what}")
    return given, False, done


def attempt(rng, expected):
    """One try; raises where it is not survived."""
    number = int(rng.integers(len(RANKERS)))
    given, same, done = changed(rng)
    before = {name: bits(value) for name, value in given.items()}
    ranker = RANKERS[number]()
    try:
        ranker.fit(**given)
    except Exception as error:
        if not answered(error):
            raise
        assert not same, "numbers in another layout are refused"
        assert not [name for name in vars(ranker) if name.endswith("_")], "half a model is left"
        try:
            ranker.predict(X)
        except NotFittedError:
            return
        raise AssertionError(f"a ranker that was not fitted predicts: {done}") from None
    assert {name: bits(value) for name, value in given.items()} == before, "an array of the caller was written to"
    assert np.isfinite(ranker.coef_).all(), f"coefficients that are not finite: {done}"
    if same:
        expects = expected[sp.issparse(given["X"]), number]
        assert ranker.coef_.tobytes() == expects, f"another layout, other coefficients: {done}"
    asked = (with_value, with_value, other_kind, lying)[rng.integers(4)](X, rng)
    try:
        assert np.isfinite(ranker.predict(asked)).all(), "scores that are not finite"
    except Exception as error:
        if not answered(error):
            raise
    truth = with_value(Y, rng) if rng.random() < 0.5 else other_kind(Y, rng)
    try:
        value = evaluate(truth, ranker.predict(X), "nDCG@5", offsets=np.arange(0, N + 1, 6))
        assert not (np.abs(value["nDCG@5"] - 0.5) > 0.5 + 1e-12).any(), "a measure beyond its range"
    except (RankoptError, FormulationError):
        pass


def attack(tries: int, seed: int) -> bool:
    """Whether any try does not survive."""
    expected = {
        (sparse, number): make().fit(sp.csr_matrix(X) if sparse else X.copy(), Y.copy(), qid=QID.copy()).coef_.tobytes()
        for sparse in (False, True)
        for number, make in enumerate(RANKERS)
    }
    rng = np.random.default_rng(seed)
    return survive(tries, lambda number: attempt(rng, expected), seconds=20)
