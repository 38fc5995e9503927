"""Slots with weights of their own: the loss is its definition over all matchings, and it is minimized to its gap."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from problems.slots import drawn_pairs, matchings, pair_matchings
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankopt.constraints import Admissible
from rankopt.data import Queries
from rankopt.errors import DataError, ModelError, OptionError
from rankopt.losses import BOUNDS, MarginLoss
from rankopt.losses.oracle_slots import EMPTY, assign_slots, pair_argmax
from rankopt.optimize import METHODS
from rankopt.rankers import LargeMarginRanker, MatchingRanker, load_model

COLUMNS = "these checks want one column of predictions, and there is one a slot"


@pytest.mark.every(5)
@pytest.mark.filterwarnings("ignore::rankopt.errors.NoProgressWarning")  # some checks fit pure noise
@parametrize_with_checks(
    [MatchingRanker()],
    expected_failed_checks=lambda _: {f"check_estimator_sparse_{kind}": COLUMNS for kind in ("array", "matrix")},
)
def test_scikit_learn_accepts_the_ranker(estimator, check):
    check(estimator)


def test_a_matching_of_too_few_documents_leaves_the_cheapest_slots_empty():
    profit = np.array([[1.0, 5.0, -3.0], [4.0, 6.0, -1.0]])
    order, value, bound = assign_slots(profit)
    assert order.tolist() == [1, 0, EMPTY]
    assert value == bound == 9.0


@pytest.fixture
def made():
    """Queries of 6 documents and 3 slots that want different features; the third slot has two documents or none."""
    rng = np.random.default_rng(0)
    wanted = np.array([[2.0, 0.0, 0.0, 1.0], [0.0, 2.0, 0.0, -1.0], [-2.0, 0.0, 2.0, 0.0]])
    n, queries = 6, 40
    features = rng.normal(size=(n * queries, 4))
    slot = np.zeros(n * queries, dtype=int)
    for low in range(0, n * queries, n):
        order = assign_slots(features[low : low + n] @ wanted.T + 0.3 * rng.normal(size=(n, 3)))[0]
        slot[low + order] = [1, 2, 3]
        spare = np.setdiff1d(np.arange(n), order)
        slot[low + spare[0]] = 3 if low % 4 == 0 else 0
    p = rng.permutation(n * queries)
    return features[p], slot[p], np.repeat(np.arange(queries), n)[p]


@pytest.mark.every(5)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bound", BOUNDS)
def test_the_gap_closes(bound, method, made):
    features, slot, qid = made
    ranker = MatchingRanker(bound=bound, method=method, lam=0.05).fit(features, slot, qid=qid)
    assert ranker.certificate_.kind == ("global" if bound == "convex" else "stationary")
    assert ranker.certificate_.relative_gap <= 1e-3
    assert ranker.coef_.shape == ranker.w0_.shape == (3, 4)
    if bound == "convex":
        best = MatchingRanker(lam=0.05, tol=1e-6).fit(features, slot, qid=qid).certificate_
        assert ranker.certificate_.bound <= best.primal <= ranker.certificate_.primal + best.gap


@pytest.mark.parametrize("bound", BOUNDS)
def test_slots_with_weights_of_their_own_beat_one_weight_vector(bound, made):
    features, slot, qid = made
    seen = qid < 25
    ranker = MatchingRanker(bound=bound, lam=0.01).fit(features[seen], slot[seen], qid=qid[seen])
    own = ranker.score(features[~seen], slot[~seen], qid=qid[~seen])
    # One weight vector: a ranking learned from "slot 1 before slot 2 before slot 3", its first three are the slots.
    grade = np.where(slot > 0, 4 - slot, 0)
    single = LargeMarginRanker("nDCG@3", lam=0.01).fit(features[seen], grade[seen], qid=qid[seen])
    shared = clone(ranker).fit(features[seen], slot[seen], qid=qid[seen])
    shared.coef_ = np.outer([1.0, 0.9, 0.8], single.coef_)
    assert own > shared.score(features[~seen], slot[~seen], qid=qid[~seen]) + 0.2


def test_sparse_features_learn_the_same(made):
    features, slot, qid = made
    features = np.where(np.abs(features) < 0.5, 0.0, features)
    dense = MatchingRanker(lam=0.05, tol=1e-6).fit(features, slot, qid=qid)
    sparse = MatchingRanker(lam=0.05, tol=1e-6).fit(csr_array(features), slot, qid=qid)
    assert_allclose(sparse.coef_, dense.coef_, atol=1e-3)
    assert_allclose(dense.predict(csr_array(features)), dense.predict(features), atol=1e-12)


def test_rank_is_the_matching_by_score_and_score_what_it_earns(made):
    features, slot, qid = made
    ranker = MatchingRanker(position_weight=[3.0, 1.0, 1.0], lam=0.05).fit(features, slot, qid=qid)
    scores = ranker.predict(features)
    assert_allclose(scores, features @ ranker.coef_.T)
    earned = []
    for query, rows in ranker.rank(features, qid).items():
        members = np.flatnonzero(qid == query)
        tallest = max((p * scores[members]).sum() for p in matchings(members.size))
        assert scores[rows, range(3)].sum() == pytest.approx(tallest)
        worth = np.array([3.0, 1.0, 1.0])
        hits = worth[slot[rows] == np.arange(1, 4)].sum()
        earned.append(hits / sum(worth[i] for i in range(3) if (slot[members] == i + 1).any()))
        assert_array_equal(ranker.rank(features, qid, k=2)[query], rows[:2])
    assert ranker.score(features, slot, qid=qid) == pytest.approx(np.mean(earned))
    assert ranker.rank(features[:2]).tolist().count(EMPTY) == 1
    named = Queries.from_arrays(features[:2], group=[2], documents=["a", "b"])
    assert set(ranker.rank(named).tolist()) == {"a", "b", None}
    weight = np.where(qid == 0, 5.0, 1.0)
    expected = np.average(earned, weights=[5.0 if q == 0 else 1.0 for q in ranker.rank(features, qid)])
    assert ranker.score(features, slot, qid=qid, sample_weight=weight) == pytest.approx(expected)


@pytest.mark.every(5)
@pytest.mark.parametrize("bound", BOUNDS)
def test_shuffled_rows_and_renamed_queries_give_the_same_model(bound, made):
    features, slot, qid = made
    features = features.copy()
    features[::9] = features[0]
    ranker = MatchingRanker(bound=bound, lam=0.05)
    expected = ranker.fit(features, slot, qid=qid).coef_
    for seed in range(3):
        p = np.random.default_rng(seed).permutation(slot.size)
        assert_array_equal(ranker.fit(features[p], slot[p], qid=(7 * qid[p]) % 41).coef_, expected)


@pytest.mark.every(5)
@pytest.mark.parametrize("argmax_solver", ["scipy", "ortools", "highs"])
def test_other_solvers_learn_the_same(argmax_solver, made):
    features, slot, qid = made
    expected = MatchingRanker(lam=0.5).fit(features, slot, qid=qid).certificate_
    found = MatchingRanker(lam=0.5, argmax_solver=argmax_solver).fit(features, slot, qid=qid).certificate_
    assert found.bound <= expected.primal
    assert expected.bound <= found.primal


def test_it_lives_in_pipelines_searches_and_files(made, tmp_path):
    from sklearn import config_context

    features, slot, qid = made
    frame = pd.DataFrame(features, columns=list("abcd"))
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            make_pipeline(StandardScaler().set_output(transform="pandas"), MatchingRanker(n_positions=3, tol=1e-2)),
            {"matchingranker__lam": [0.01, 10.0]}, cv=GroupKFold(3),
        )  # fmt: skip
        search.fit(frame, slot, qid=qid, groups=qid)
        assert search.best_params_ == {"matchingranker__lam": 0.01}
    ranker = search.best_estimator_[-1]
    ranker.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert_array_equal(loaded.coef_, ranker.coef_)
    scaled = search.best_estimator_[:-1].transform(frame)
    assert loaded.score(scaled, slot, qid=qid) == ranker.score(scaled, slot, qid=qid)
    reasons = loaded.explain(scaled.iloc[0], scaled.iloc[1], slot=2)
    assert reasons.total == pytest.approx(np.diff(loaded.predict(scaled)[[1, 0], 1])[0])
    loaded.position_weight_ = np.zeros(3)
    with pytest.raises(ModelError, match="position_weight_ has a value"):
        loaded._check_loaded()
    loaded.position_weight_ = np.ones(2)
    with pytest.raises(ModelError, match="coef_ is not an array of 2 × 4"):
        loaded._check_loaded()


def test_warm_starts_and_chosen_weights(made):
    features, slot, qid = made
    ranker = MatchingRanker(lam=0.05, warm_start=True).fit(features, slot, qid=qid)
    steps = ranker.n_iter_
    assert ranker.fit(features, slot, qid=qid).n_iter_ <= steps
    seen = qid < 25
    chosen = MatchingRanker(lam=1e-3).fit(
        features[seen], slot[seen], qid=qid[seen], eval_set=(features[~seen], slot[~seen]), eval_qid=qid[~seen]
    )
    assert chosen.best_score_ == pytest.approx(chosen.score(features[~seen], slot[~seen], qid=qid[~seen]))
    start = np.arange(12.0).reshape(3, 4)
    assert_array_equal(MatchingRanker(w0=start, lam=1e6, tol=1e-9).fit(features, slot, qid=qid).w0_, start)


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"n_positions": 0}, OptionError, "n_positions must be an integer >= 1 or None; got 0"),
        ({"n_positions": 2}, DataError, "the grade 3, which is not a slot: they count from 1 to 2"),
        (
            {"n_positions": 3, "position_weight": [1.0]},
            OptionError,
            "position_weight has 1 entries but n_positions = 3",
        ),
        ({"position_weight": [1.0, 0.0, 1.0]}, OptionError, "positive"),
        ({"bound": "loose"}, OptionError, "bound 'loose' is unknown; known are"),
        ({"argmax_solver": "active_set"}, OptionError, "cannot match; use 'auto' or one of"),
        ({"w0": np.zeros(4)}, OptionError, "3 × 4"),
        ({"w0": "ones"}, OptionError, "w0 = 'ones' is unknown"),
    ],
)
def test_fit_says_what_is_wrong(options, error, says, made):
    features, slot, qid = made
    with pytest.raises(error, match=says):
        MatchingRanker(**options).fit(features, slot, qid=qid)


def test_what_cannot_be_matched_is_refused(made):
    features, slot, qid = made
    with pytest.raises(DataError, match="none has documents that belong in different slots"):
        MatchingRanker(n_positions=3).fit(features, np.zeros(slot.size), qid=qid)
    with pytest.raises(DataError, match=r"grade \d\.5, which is not a slot"):
        MatchingRanker(n_positions=3).fit(features, slot / 2, qid=qid)
    ranker = MatchingRanker(lam=1.0).fit(features, slot, qid=qid)
    with pytest.raises(DataError, match="check y"):
        ranker.score(features, np.zeros(slot.size), qid=qid)
    with pytest.raises(DataError, match="no slot 4"):
        ranker.explain(features[0], features[1], slot=4)
    with pytest.raises(OptionError, match="constraints cannot be a int"):
        ranker.rank(features, qid, constraints=3)
    with pytest.raises(OptionError, match="slots are matched, not ranked"):
        ranker.sensitivity("site", [1], features, qid=qid, constraints=Admissible(3))
    with pytest.raises(OptionError, match="use score"):
        ranker.evaluate(features, slot, qid=qid)


# Pairs with features of their own, and constraints: value, bound and certificate over all matchings.


def losses_by_definition(scores, benefit, points, bound):
    """max_y [⟨y, s⟩ - ⟨y, b⟩] + max_y ⟨y, b⟩ - ⟨r, s⟩: r the best y, the one of highest score, or any y."""
    points = np.array(points).reshape(len(points), -1)
    score, earned = points @ scores.ravel(), points @ benefit.ravel()
    best = earned >= earned.max() - 1e-9
    reference = {"tie-aware": score[best].max(), "nonconvex": score.max()}.get(bound, score[best].min())
    return (score - earned).max() + earned.max() - reference


@pytest.mark.parametrize("degrees", [(1, 1), (2, 1)])
@pytest.mark.parametrize("bound", BOUNDS)
def test_the_loss_of_pairs_is_its_definition_over_all_matchings(bound, degrees):
    _, worth, query, left, right = drawn_pairs(1)
    benefit = np.where(worth > 0, worth, -1.0)
    offsets = np.searchsorted(query, np.arange(query[-1] + 2))
    argmax = pair_argmax(benefit, offsets, (left.tolist(), right.tolist()), degrees)
    scores = np.random.default_rng(2).normal(size=query.size)
    found = MarginLoss(argmax, bound).at(scores)
    for q in range(offsets.size - 1):
        own = slice(*offsets[q : q + 2])
        points = [*pair_matchings(left[own], right[own], degrees)]
        expected = losses_by_definition(scores[own], benefit[own], points, bound)
        if bound == "convex":  # the reference is one of the best matchings
            lowest = losses_by_definition(scores[own], benefit[own], points, "tie-aware")
            assert lowest - 1e-9 <= found.value[q] <= expected + 1e-9
        else:
            assert found.value[q] == pytest.approx(expected, abs=1e-9)
        assert found.value[q] <= found.bound[q] + 1e-12 <= found.value[q] + 1e-9


@pytest.fixture
def pairs():
    features, worth, query, left, right = drawn_pairs(0, queries=20)
    return features, worth, {"qid": query, "attributes": pd.DataFrame({"left": left, "right": right})}


@pytest.mark.parametrize("bound", BOUNDS)
def test_pairs_are_trained_to_the_gap_of_a_certificate_that_is_right(bound, pairs):
    features, worth, options = pairs
    query, (left, right) = options["qid"], options["attributes"].to_numpy().T
    if bound == "convex":  # one matching is best
        worth = worth * np.random.default_rng(1).uniform(1.0, 2.0, worth.size)
    ranker = MatchingRanker(pairs=("left", "right"), degrees=(2, 1), bound=bound, lam=0.05).fit(
        features, worth, **options
    )
    benefit = np.where(worth > 0, worth, -worth[worth > 0].mean())
    members = [query == q for q in np.unique(query)]
    points = [[*pair_matchings(left[own], right[own], (2, 1))] for own in members]
    best = np.array([max(y @ benefit[own] for y in ys) for own, ys in zip(members, points, strict=True)])

    def objective(w):
        scores = features @ w
        losses = [
            losses_by_definition(scores[own], benefit[own], ys, bound) for own, ys in zip(members, points, strict=True)
        ]
        return 0.025 * np.sum((w - ranker.w0_) ** 2) + np.mean(losses)

    certificate = ranker.certificate_
    assert certificate.relative_gap <= 1e-3
    assert certificate.primal == pytest.approx(objective(ranker.coef_), rel=1e-9)
    if bound == "convex":
        rng = np.random.default_rng(0)
        nearby = ranker.coef_ + 0.1 * rng.normal(size=(50, 3))
        assert min(map(objective, nearby)) >= certificate.bound
    scores, ranked = ranker.predict(features), ranker.rank(features, **options)
    assert_allclose(scores, features @ ranker.coef_)
    reached = []
    for q, own, ys in zip(np.unique(query), members, points, strict=True):
        chosen = np.isin(np.flatnonzero(own), ranked[q]).astype(float)
        assert scores[own] @ chosen == pytest.approx(max(y @ scores[own] for y in ys))
        assert (np.diff(scores[ranked[q]]) <= 0).all()
        reached.append(benefit[own] @ chosen)
    parts = [part / most for part, most in zip(reached, best, strict=True) if most > 0]
    assert ranker.score(features, worth, **options) == pytest.approx(np.mean(parts))
    table = ranker.bound_tightness(features, worth, **options)
    assert_allclose(sorted(table.regret), sorted(best - reached), atol=1e-9)
    assert all((table.bounds[name] >= table.regret - 1e-9).all() for name in BOUNDS)


def test_models_of_pairs_do_not_depend_on_the_order_of_rows_and_are_saved(pairs, tmp_path):
    features, worth, options = pairs
    ranker = MatchingRanker(pairs=("left", "right"), lam=0.1, w0="regression").fit(features, worth, **options)
    p = np.random.default_rng(0).permutation(worth.size)
    moved = {"qid": options["qid"][p], "attributes": options["attributes"].iloc[p]}
    assert_array_equal(clone(ranker).fit(features[p], worth[p], **moved).coef_, ranker.coef_)
    ranker.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.rank(features, **options)[3].tolist() == ranker.rank(features, **options)[3].tolist()
    assert loaded.explain(features[0], features[1]).total == pytest.approx(-np.diff(ranker.predict(features[:2]))[0])


@pytest.mark.parametrize("bound", BOUNDS)
def test_constrained_slots_are_matched_and_proved_over_the_admissible_matchings(bound):
    """At most one document of a site, no "c" in the third slot; a query that cannot fill three slots fills two."""
    rng = np.random.default_rng(5)
    n, queries, k = 5, 12, 3
    features, query = rng.normal(size=(n * queries, 4)), np.repeat(np.arange(queries), n)
    slot, site = rng.integers(0, 4, query.size), rng.choice(list("abcd"), query.size)
    rule = (
        Admissible(k, on_infeasible="truncate").at_most(1, by="site").at_most(0, documents={"site": "c"}, positions=[2])
    )
    options = {"qid": query, "attributes": {"site": site}}
    ranker = MatchingRanker(constraints=rule, bound=bound, lam=0.1).fit(features, slot, **options)
    worth = (slot[:, None] == [1, 2, 3]).astype(float)
    scores, ranked = ranker.predict(features), ranker.rank(features, **options)
    reached, losses = [], []
    for q in range(queries):
        own = query == q
        placed = [*matchings(n)] + [y * (np.arange(3) != empty) for y in matchings(n) for empty in range(3)]
        fits = [
            y
            for y in placed
            if all((y[site[own] == one].sum() <= 1) for one in "abcd") and not y[site[own] == "c", 2].any()
        ]
        most = max(y.sum() for y in fits)
        points = [y for y in fits if y.sum() == most]
        chosen = np.zeros((n, k))
        filled = np.flatnonzero(ranked[q] != EMPTY)
        chosen[ranked[q][filled] - n * q, filled] = 1.0
        assert any(np.array_equal(chosen, y) for y in points)
        assert (chosen * scores[own]).sum() == pytest.approx(max((y * scores[own]).sum() for y in points))
        best = max((y * worth[own]).sum() for y in points)
        if best > 0:
            reached.append((chosen * worth[own]).sum() / best)
        if best > min((y * worth[own]).sum() for y in points):
            losses.append(losses_by_definition(scores[own], worth[own], points, bound))
    assert ranker.score(features, slot, **options) == pytest.approx(np.mean(reached))
    assert ranker.certificate_.relative_gap <= 1e-3
    if bound != "convex":  # the convex reference is one of several best matchings
        value = np.mean(losses) + 0.05 * np.sum((ranker.coef_ - ranker.w0_) ** 2)
        assert ranker.certificate_.primal == pytest.approx(value, rel=1e-6)


def test_what_pairs_and_constraints_do_not_take_is_refused(pairs, made):
    features, worth, options = pairs
    for wrong, message in (
        ({"pairs": "left"}, "pairs must be two attributes"),
        ({"pairs": ("left", "right"), "degrees": (0, 1)}, "degrees must be two positive integers"),
        ({"degrees": (3, 1)}, "limits pairs; pass pairs"),
        ({"pairs": ("left", "right"), "n_positions": 2}, "are options of slots"),
        ({"pairs": ("left", "right"), "constraints": Admissible(2)}, "pairs take no constraints"),
        (
            {"constraints": Admissible(2).at_most(1, by="left").penalized("left", penalty=1.0)},
            "constraints of slots are hard",
        ),
        ({"constraints": Admissible(2), "n_positions": 3}, "constraints are of 2 positions, but there are 3 slots"),
    ):
        with pytest.raises(OptionError, match=message):
            MatchingRanker(**wrong).fit(features, worth, **options)
    ranker = MatchingRanker(pairs=("left", "right"), lam=1.0)
    with pytest.raises(DataError, match="pairs need the attribute 'left'"):
        ranker.fit(features, worth, qid=options["qid"])
    with pytest.raises(DataError, match="two rows of one pair"):
        ranker.fit(
            features, worth, qid=options["qid"], attributes={"left": 0 * options["qid"], "right": options["qid"]}
        )
    with pytest.raises(DataError, match="none is worth anything"):
        ranker.fit(features, 0.0 * worth, **options)
    features, slot, qid = made
    with pytest.raises(DataError, match=r"has no admissible ranking.*on_infeasible='truncate'\. At least"):
        MatchingRanker(constraints=Admissible(3).at_most(1, by="site")).fit(
            features, slot, qid=qid, attributes={"site": np.full(slot.size, "a")}
        )
