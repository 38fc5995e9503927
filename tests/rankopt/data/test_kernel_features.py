"""Kernels as features: inner products are the kernel's, a linear ranker on them is the ranker with the kernel."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems.training import made
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import laplacian_kernel, pairwise_kernels, polynomial_kernel, rbf_kernel
from sklearn.utils.estimator_checks import parametrize_with_checks

from formulations import margin_dual, solve
from formulations.solvers import named
from rankopt.data import KernelFeatures
from rankopt.data.canonical_order import Arrangement
from rankopt.errors import DataError, OptionError
from rankopt.losses import MarginLoss, PositionalArgmax, bound_named, parse_decay
from rankopt.measures import parse
from rankopt.rankers import LargeMarginRanker

RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(40, 3)), 1)
X = np.vstack([X, X[:7]])
NEW = RNG.normal(size=(11, 3))


@parametrize_with_checks([KernelFeatures(), KernelFeatures("poly", landmarks=5)])
def test_scikit_learn_accepts_the_transformer(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("kernel", "options", "reference"),
    [
        ("rbf", {"gamma": 0.7}, partial(rbf_kernel, gamma=0.7)),
        ("rbf", {}, rbf_kernel),
        ("poly", {"degree": 2, "gamma": 1.0, "coef0": 1.0}, partial(polynomial_kernel, degree=2, gamma=1.0)),
        ("laplacian", {"gamma": 0.3}, partial(laplacian_kernel, gamma=0.3)),
        ("linear", {}, lambda x, z: x @ z.T),
        ("cosine", {}, partial(pairwise_kernels, metric="cosine")),
        (lambda x, z: np.minimum(x[:, None] + 9, z[None] + 9).sum(axis=2), {}, None),
    ],
    ids=["rbf", "rbf of 1/d", "poly", "laplacian", "linear", "cosine", "a function"],
)
def test_all_rows_as_landmarks_give_the_inner_products_of_the_kernel(kernel, options, reference):
    features = KernelFeatures(kernel, **options).fit(X)
    reference = reference or kernel
    rows, new = features.transform(X), features.transform(NEW)
    size = np.abs(reference(X, X)).max()
    assert_allclose(rows @ rows.T, reference(X, X), atol=1e-11 * size)
    assert_allclose(new @ rows.T, reference(NEW, X), atol=1e-9 * size)
    assert (np.diag(reference(NEW, NEW)) - (new**2).sum(axis=1)).min() > -1e-9 * size
    assert rows.shape[1] == features.components_.shape[1] <= 40  # the rows that are there twice count once
    assert list(features.get_feature_names_out())[:1] == ["kernelfeatures0"]


def test_a_linear_kernel_needs_as_many_features_as_the_rows_span():
    assert KernelFeatures("linear").fit_transform(X).shape == (47, 3)
    assert KernelFeatures("poly", degree=2).fit_transform(X).shape == (
        47,
        10,
    )  # monomials in 3 variables
    assert_array_equal(KernelFeatures("linear").fit_transform(np.zeros((4, 2))), np.zeros((4, 1)))


@pytest.mark.parametrize("landmarks", [1, 5, 20])
def test_fewer_landmarks_lie_below_the_kernel_and_touch_it_at_the_landmarks(landmarks):
    features = KernelFeatures(gamma=0.5, landmarks=landmarks).fit(X)
    rows, kernel = features.transform(X), rbf_kernel(X, gamma=0.5)
    assert features.landmarks_.shape == (landmarks, 3)
    assert np.linalg.eigvalsh(kernel - rows @ rows.T)[0] > -1e-12
    at = features.transform(features.landmarks_)
    assert_allclose(at @ at.T, rbf_kernel(features.landmarks_, gamma=0.5), atol=1e-13)
    there = rbf_kernel(X, features.landmarks_, gamma=0.5)
    by_hand = there @ np.linalg.solve(rbf_kernel(features.landmarks_, gamma=0.5), there.T)
    assert_allclose(rows @ rows.T, by_hand, atol=1e-9)


def test_the_draw_follows_content_and_seed_alone():
    order = RNG.permutation(len(X))
    one = KernelFeatures(landmarks=9).fit(X)
    for rows in (X[order], np.vstack([X[order], X, X[:1]]), csr_array(X[order])):
        other = KernelFeatures(landmarks=9).fit(rows)
        drawn = other.landmarks_.toarray() if hasattr(other.landmarks_, "toarray") else other.landmarks_
        assert_array_equal(drawn, one.landmarks_)
        assert_allclose(other.transform(NEW), one.transform(NEW), atol=1e-12)
    assert not np.array_equal(KernelFeatures(landmarks=9, random_state=1).fit(X).landmarks_, one.landmarks_)


def planes(rows, heights, lam, slopes, gram=None):
    """The dual over these planes: its value, α, and w - w₀ in the space of the slopes."""
    solution = solve(margin_dual(slopes, heights, lam=lam, gram=gram), "active_set")
    return solution.value, solution.x, solution.dual["step"]


def test_planes_dual_and_scores_are_those_of_the_kernel():
    kernel = rbf_kernel(X[:40], gamma=0.6)
    features = KernelFeatures(gamma=0.6).fit(X).transform(X[:40])
    rows, heights, lam = RNG.normal(size=(12, 40)), RNG.uniform(0.5, 1, size=12), 0.3
    root = np.linalg.cholesky(kernel)  # features of the same kernel, found another way
    value, alpha, _ = planes(rows, heights, lam, rows @ root, gram=rows @ kernel @ rows.T)
    ours, weights, step = planes(rows, heights, lam, rows @ features)
    assert_allclose(ours, value, rtol=1e-10)
    assert_allclose(weights, alpha, atol=1e-8)
    assert_allclose(features @ step, -kernel @ (rows.T @ alpha) / lam, atol=1e-8)
    assert_allclose(rows @ features @ (rows @ features).T, rows @ kernel @ rows.T, atol=1e-10)


def test_a_linear_ranker_on_the_features_is_the_ranker_with_the_kernel():
    """Cutting planes in the dual, by kernel and coefficients of documents alone, end at the same objective and scores,
    as far as both gaps leave room: J is λ-strongly convex."""
    table, grades, qid = made(queries=8, documents=6)
    lam, kernel = 0.02, rbf_kernel(table, gamma=0.5)
    offsets = np.arange(0, table.shape[0] + 1, 6)
    useful = np.maximum.reduceat(grades, offsets[:-1]) > np.minimum.reduceat(grades, offsets[:-1])
    assert useful.all()

    def risk(scores):
        found = loss.at(scores)
        return found.value.mean(), found.height.mean(), (found.placed - found.reference) / useful.size

    features = KernelFeatures(gamma=0.5).fit_transform(table)
    ranker = LargeMarginRanker("nDCG@5", bound="convex", lam=lam, tol=1e-6).fit(features, grades, qid=qid)
    arranged = Arrangement(table, np.arange(len(table)), offsets, np.ones(8) / 8, grades, tuple(range(8)), {})
    argmax = PositionalArgmax.of(arranged, parse("nDCG@5"), parse_decay("power(0.5)"), named("exact"))
    loss = MarginLoss.build(argmax, bound_named("convex"))
    root, rows, heights, coefficients, best = np.linalg.cholesky(kernel), [], [], np.zeros(len(table)), np.inf
    for _ in range(200):
        scores = kernel @ coefficients
        value, height, slope = risk(scores)
        best = min(best, value + lam / 2 * coefficients @ scores)
        rows.append(slope)
        heights.append(height)
        stack = np.array(rows)
        bound, alpha, _ = planes(stack, np.array(heights), lam, stack @ root, gram=stack @ kernel @ stack.T)
        coefficients = -(stack.T @ alpha) / lam
        if best - bound < 1e-7:
            break
    proved = ranker.certificate_
    assert best - bound < 1e-7
    assert proved.bound <= best + 1e-12
    assert bound <= proved.primal + 1e-12
    room = np.sqrt(2 / lam) * (np.sqrt(best - bound) + np.sqrt(proved.gap))
    assert np.abs(ranker.predict(features) - kernel @ coefficients).max() <= room
    assert room < 0.1 * np.ptp(kernel @ coefficients)


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({"kernel": "sigmoid", "gamma": 2.0, "coef0": -1.0}, DataError, "no inner product on these rows"),
        ({"kernel": "quadratic"}, OptionError, "kernel cannot be 'quadratic'.*rbf"),
        ({"kernel": lambda x, z: x @ x.T}, DataError, "takes two tables"),
        ({"kernel": lambda x, z: np.full((len(x), len(z)), np.nan)}, DataError, "not finite"),
        ({"landmarks": 0}, OptionError, "landmarks = 0 is no number"),
        ({"landmarks": 2.5}, OptionError, "landmarks = 2.5 is no number"),
    ],
)
def test_what_cannot_work_is_said(options, error, told):
    with pytest.raises(error, match=told):
        KernelFeatures(**options).fit(X).transform(NEW)


def test_too_many_landmarks_are_refused_before_memory_is():
    many = np.arange(16_385.0)[:, None]
    with pytest.raises(OptionError, match=r"16385 landmarks are too many: .* 2 GB; pass landmarks=1000"):
        KernelFeatures().fit(many)
    assert KernelFeatures(landmarks=3).fit(many).landmarks_.shape == (3, 1)


@pytest.mark.parametrize("sparse", [False, True])
def test_last_digits_draw_no_other_landmarks(sparse):
    """They are those of the machine that worked a table out. Rows that differ in nothing else stay two rows."""
    table = np.random.default_rng(1).normal(size=(200, 4)) * [1.0, 1e-3, 50.0, 0.0]
    nudged = table * (1.0 + np.random.default_rng(2).choice([-2e-16, 0.0, 2e-16], size=table.shape))
    assert (nudged != table).any(axis=1).sum() > 100
    read = csr_array if sparse else np.asarray
    one, other = (KernelFeatures(landmarks=20).fit(read(rows)).landmarks_ for rows in (table, nudged))
    one, other = (rows.toarray() if sparse else rows for rows in (one, other))
    assert_allclose(one, other, rtol=1e-14)
    both = np.vstack([table[:5], table[:5] * (1.0 + 4e-16)])
    assert KernelFeatures().fit(read(both)).landmarks_.shape[0] == np.unique(both, axis=0).shape[0] > 5


def test_a_largest_number_just_below_a_power_of_two_draws_as_that_does():
    table = np.random.default_rng(3).uniform(size=(200, 4))
    table[0] = 1.0
    below = np.where(table == 1.0, 1.0 - 2.0**-53, table)
    one, other = (KernelFeatures(landmarks=20).fit(rows).landmarks_ for rows in (table, below))
    assert_allclose(one, other, rtol=1e-15)
