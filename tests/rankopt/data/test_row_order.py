"""Whatever goes in or out is in the order of the caller's rows, and no value depends on that order.

The independent evaluator below works on the lists of a shuffled table and shares no code with the package.
"""

import io
import math
import warnings
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from rankopt import Admissible
from rankopt.cli import rankopt as main
from rankopt.data import Queries, concatenate, open_queries, read_table, save_queries
from rankopt.errors import DataError, MissingQueryIdsWarning, TiedDocumentsWarning
from rankopt.measures import compare, evaluate, write_qrels, write_run
from rankopt.rankers import LargeMarginRanker, MatchingRanker, RegressionRanker

FEATURES = ["f0", "f1", "f2"]


def table(rng, ties=True):
    """An event log: documents of several queries in one random order, some of equal features."""
    n = int(rng.integers(12, 40))
    qid = rng.choice([7, 3, 12, 5], n)
    features = rng.normal(size=(n, 3)).round(0 if ties else 8)
    frame = pd.DataFrame(features, columns=FEATURES)
    frame["query_id"], frame["docno"] = qid, [f"d{row}" for row in range(n)]
    frame["label"] = rng.integers(0, 4, n).astype(float)
    frame["site"] = rng.choice(["a", "b", "c"], n)
    return frame


def arrangements(frame, rng):
    """The same rows in other orders and kinds of frames."""
    polars, pyarrow = (pytest.importorskip(name) for name in ("polars", "pyarrow"))
    shuffled = frame.sample(frac=1, random_state=int(rng.integers(1 << 30)))
    doubled = pd.concat([frame, frame.assign(query_id=99)]).sample(frac=1, random_state=1)
    return {
        "as it is": frame,
        "shuffled": shuffled,
        "sorted by document": frame.sort_values("docno"),
        "sorted by grade": frame.sort_values("label", ascending=False),
        "filtered": doubled[doubled.query_id != 99],
        "polars": polars.DataFrame(shuffled.to_dict(orient="list")),
        "pyarrow": pyarrow.Table.from_pandas(shuffled, preserve_index=False),
    }


def column(frame, name):
    return list(frame.column(name).to_pylist() if hasattr(frame, "column_names") else frame[name].to_list())


def mean_ndcg(qid, relevance, scores, k=3):
    """nDCG@k, ties averaged, queries without relevant documents skipped."""
    found = []
    for query in set(qid):
        own = [(s, y) for q, y, s in zip(qid, relevance, scores, strict=True) if q == query]
        discount = [1 / math.log2(p + 2) if p < k else 0.0 for p in range(len(own))]
        best = sum(d * (2**y - 1) for d, y in zip(discount, sorted((y for _, y in own), reverse=True), strict=True))
        if best == 0:
            continue
        total, position = 0.0, 0
        for score in sorted({s for s, _ in own}, reverse=True):
            gains = [2**y - 1 for s, y in own if s == score]
            weights = discount[position : position + len(gains)]
            total += sum(weights) * sum(gains) / len(gains)
            position += len(gains)
        found.append(total / best)
    return sum(found) / len(found)


def check_doors(frame, ranker, w, tmp_path):
    """Every door that takes or returns rows, against the independent evaluator."""
    queries = read_table(frame)
    qid, grades, names = (column(frame, name) for name in ("query_id", "label", "docno"))
    X = pd.DataFrame({name: column(frame, name) for name in FEATURES})
    scores = X.to_numpy() @ w
    known = mean_ndcg(qid, grades, scores)
    assert queries.features.tolist() == X.to_numpy().tolist()
    assert queries.relevance.tolist() == grades
    assert (queries.qid.tolist(), list(queries.document_ids)) == (qid, names)
    assert queries.attributes["site"].tolist() == column(frame, "site")
    np.testing.assert_allclose(ranker.predict(queries), scores, atol=1e-12)
    fresh = read_table(frame).replace(relevance=np.array(grades))
    by_row = {"qid": qid}
    for value in (
        evaluate(queries, ranker.predict(queries), "nDCG@3").mean(),
        evaluate(fresh, scores, "nDCG@3").mean(),
        evaluate(grades, scores, "nDCG@3", qid=qid).mean(),
        ranker.score(queries),
        ranker.score(X, grades, qid=qid),
        ranker.score(queries, sample_weight=np.ones(len(qid))),
        evaluate(queries.grouped(), scores[queries.rows], "nDCG@3").mean(),
        evaluate(queries.select(range(len(queries))), scores[queries.rows], "nDCG@3").mean(),
    ):
        assert value == pytest.approx(known, abs=1e-12)
    again = compare(scores, -scores, relevance=grades, measure="nDCG@3", **by_row)
    assert again.mean_a == pytest.approx(known, abs=1e-12)
    assert again.mean_b == pytest.approx(mean_ndcg(qid, grades, -scores), abs=1e-12)
    for query, found in ranker.rank(queries).items():
        own = [(-s, name) for q, name, s in zip(qid, names, scores, strict=True) if q == query]
        assert [round(s, 9) for s, _ in sorted(own)] == [round(-scores[names.index(d)], 9) for d in found]
    store = tmp_path / f"store{len(list(tmp_path.iterdir()))}"
    save_queries(queries, store)
    stored = open_queries(store)
    assert evaluate(stored, scores, "nDCG@3").mean() == pytest.approx(known, abs=1e-12)
    np.testing.assert_allclose(ranker.predict(stored), scores, atol=1e-12)
    half = len(queries) // 2
    both = concatenate([queries.select(slice(half)), queries.select(slice(half, None))])
    assert evaluate(both, ranker.predict(both), "nDCG@3").mean() == pytest.approx(known, abs=1e-12)
    run, qrels = tmp_path / "x.run", tmp_path / "x.qrels"
    write_run(run, queries, scores)
    write_qrels(qrels, queries)
    judged = {(q, d): y for q, _, d, y in map(str.split, qrels.read_text().splitlines())}
    assert judged == {(str(q), d): f"{y:.0f}" for q, d, y in zip(qid, names, grades, strict=True)}
    for line in run.read_text().splitlines():
        query, _, name, *_ = line.split()
        assert str(qid[names.index(name)]) == query
    return queries, known


def check_tables(seeds, tmp_path):
    for seed in seeds:
        rng = np.random.default_rng([21, seed])
        frame, w = table(rng), rng.integers(-3, 4, 3).astype(float)  # whole: sums are exact, ties are ties
        ranker = RegressionRanker(measure="nDCG@3").fit(read_table(frame))
        if (frame.label > 0).groupby(frame.query_id).any().sum() < 2:
            continue
        ranker.coef_ = w
        values = []
        for arranged in arrangements(frame, rng).values():
            queries, known = check_doors(arranged, ranker, w, tmp_path)
            values.append(known)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # tables of chance may have nothing to learn
                made = LargeMarginRanker("nDCG@3", max_iter=4, normalize="zscore").fit(queries)
                assert made.coef_.tobytes() == bits_of(made, queries)
        assert np.ptp(values) < 1e-12


def bits_of(made, queries):
    """The bits of the model of a fit on arrays. Scores of a normalized model are those of each query alone."""
    X, y, qid = pd.DataFrame(queries.features, columns=FEATURES), queries.relevance, queries.qid
    same = LargeMarginRanker("nDCG@3", max_iter=4, normalize="zscore").fit(X, y, qid=qid)
    scores = made.predict(queries)
    np.testing.assert_array_equal(made.predict(X, qid=qid), scores)
    for query in set(qid.tolist()):
        own = qid == query
        np.testing.assert_allclose(made.predict(X[own], group=[int(own.sum())]), scores[own], atol=1e-12)
    return same.coef_.tobytes()


def test_every_door_is_aligned_with_the_rows_of_the_caller(tmp_path):
    check_tables(range(12), tmp_path)


@pytest.mark.study
def test_every_door_is_aligned_on_two_thousand_tables(tmp_path):
    check_tables(range(12, 300), tmp_path)  # seven arrangements each


def test_a_fit_has_the_same_bits_for_every_order_of_rows():
    rng = np.random.default_rng(3)
    frame = table(rng, ties=False)
    fits = [
        LargeMarginRanker("nDCG@3", normalize="zscore").fit(read_table(one))
        for one in arrangements(frame, rng).values()
    ]
    assert len({fit.coef_.tobytes() for fit in fits}) == 1


def test_weights_and_attributes_are_of_their_rows():
    rng = np.random.default_rng(4)
    frame = table(rng).sample(frac=1, random_state=2)
    X, y, qid = frame[FEATURES].to_numpy(), frame.label.to_numpy(), frame.query_id.to_numpy()
    ranker = RegressionRanker(measure="nDCG@3").fit(X, y, qid=qid)
    queries = Queries.from_arrays(X, y, qid=qid)
    values = dict(zip(queries.query_ids, evaluate(queries, ranker.predict(X), "nDCG@3")["nDCG@3"], strict=True))
    weighted = np.average([values[q] for q in values], weights=[1.0 + q for q in values])
    for data in ((X, y), (queries, None)):
        ways = {"qid": qid} if data[1] is not None else {}
        assert ranker.score(*data, sample_weight=1.0 + qid, **ways) == pytest.approx(weighted)
    with pytest.raises(DataError, match=r"sample_weight differs inside query \d+ \(row \d+\)"):
        ranker.score(queries, sample_weight=np.arange(1.0, len(qid) + 1))
    one = Admissible(3, on_infeasible="truncate").at_most(1, by="site")
    for query, rows in ranker.rank(X, qid, attributes={"site": frame.site.to_numpy()}, constraints=one).items():
        assert (qid[rows] == query).all()
        assert frame.site.iloc[rows].is_unique


def exchangeable_mean(measure, scores, grades, site, rules, k):
    """The measure of the best admissible list of k, a mean over all lists of the largest score: brute force."""
    n, discount = len(scores), [1 / math.log2(p + 2) for p in range(k)]
    best, lists = -math.inf, []
    for order in permutations(range(n), k):
        if not rules([site[j] for j in order]):
            continue
        value = sum(d * scores[j] for d, j in zip(discount, order, strict=True))
        if value > best + 1e-9:
            best, lists = value, []
        if value > best - 1e-9:
            lists.append(order)
    found = []
    for order in lists:
        rest = sorted(set(range(n)) - set(order), key=lambda j: -scores[j])
        made = np.zeros(n)
        made[[*order, *rest]] = np.arange(n, 0, -1)
        found.append(evaluate(grades, made, measure).mean())
    return float(np.mean(found))


@pytest.mark.parametrize("measure", ["nDCG@3", "P@2", "DCG@3", "AP@3"])
def test_ties_under_constraints_are_averaged_over_documents_that_they_do_not_distinguish(measure):
    """All documents of one site: brute force averages over the same lists as the score."""
    rng = np.random.default_rng(5)
    for _ in range(5):
        n, k = 6, 3
        X = rng.integers(0, 2, (n, 1)).astype(float)
        grades, site = rng.integers(0, 3, n).astype(float), np.array(["a"] * n)
        grades[0] = 2
        ranker = RegressionRanker(measure=measure).fit(X, grades, group=[n])
        ranker.coef_ = np.array([1.0])
        constraints = Admissible(k).at_least(1, documents={"site": "a"}, positions=range(k))
        known = exchangeable_mean(measure, X[:, 0], grades, site, lambda sites: "a" in sites, k)
        found = []
        for order in (np.arange(n), np.arange(n)[::-1], rng.permutation(n)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TiedDocumentsWarning)
                found.append(ranker.score(
                    X[order], grades[order], group=[n], attributes={"site": site[order]}, constraints=constraints
                ))  # fmt: skip
        assert np.ptp(found) < 1e-12
        assert found[0] == pytest.approx(known, abs=1e-12 if measure != "AP@3" else 0.1)


@pytest.mark.parametrize("sorted_by", ["grade", "-grade", "feature", "chance"])
def test_a_score_under_a_quota_does_not_depend_on_the_order_of_rows(sorted_by):
    """Few distinct scores and a quota, as in fair ranking, where tables come sorted by grade."""
    rng = np.random.default_rng(6)
    n, m = 30, 4
    X = rng.integers(0, 3, (n * m, 2)).astype(float)
    grades, qid = rng.integers(0, 4, n * m).astype(float), np.repeat(np.arange(m), n)
    group = np.where(rng.random(n * m) < 0.4, "f", "m")
    rules = Admissible(10).at_least(share=0.4, documents={"group": "f"})
    key = {"grade": grades, "-grade": -grades, "feature": X[:, 0], "chance": rng.random(n * m)}[sorted_by]
    order = np.argsort(key, kind="stable")
    for measure in ("nDCG@10", "AP", "nDCG", "AUC", "RR"):
        ranker = RegressionRanker(measure=measure).fit(X, grades, qid=qid)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            values = [
                ranker.score(X[p], grades[p], qid=qid[p], attributes={"group": group[p]}, constraints=rules)
                for p in (np.arange(n * m), order)
            ]
        assert values[0] == pytest.approx(values[1], abs=1e-12)
        messages = [str(one.message) for one in caught if one.category is TiedDocumentsWarning]
        assert len(messages) == 2
        assert all("of 4 queries" in text and "standard error" in text for text in messages)


@pytest.mark.parametrize("rules", ["caps", "quota"])
def test_ties_that_constraints_distinguish_are_averaged_over_all_orders(rules):
    """Brute force: the best list of each order of the tied documents, scores broken by it; within 5 standard errors."""
    rng = np.random.default_rng(12)
    n, k, m = 5, 3, 8
    score, grades = rng.integers(0, 2, n * m).astype(float), rng.integers(0, 3, n * m).astype(float)
    grades[::n] = 2.0
    site, qid = np.tile(list("aaabb"), m), np.repeat(np.arange(m), n)
    limited = Admissible(k).at_most(2, by="site")
    if rules == "quota":
        limited = Admissible(k).at_least(1, documents={"site": "b"}, positions=range(2)).at_most(2, by="site")
    ranker = RegressionRanker(measure="nDCG@3").fit(score[:, None], grades, qid=qid)
    ranker.coef_ = np.array([1.0])
    known, weights = [], 1 / np.log2(np.arange(2, k + 2))
    lists = np.array([one for one in permutations(range(n), k) if sum(j < 3 for j in one) <= 2])
    for q in range(m):
        own, gains = score[q * n : (q + 1) * n], 2.0 ** grades[q * n : (q + 1) * n] - 1
        allowed = lists[(lists[:, :2] >= 3).any(axis=1)] if rules == "quota" else lists
        best = [
            allowed[((own + 1e-6 * np.array(order))[allowed] @ weights).argmax()] for order in permutations(range(n))
        ]
        known.append(np.mean(gains[np.array(best)] @ weights) / (np.sort(gains)[::-1][:k] @ weights))
    again = rng.permutation(n * m)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ranker.evaluate(score[:, None], grades, qid=qid, attributes={"site": site}, constraints=limited)
        shuffled = ranker.score(
            score[again, None], grades[again], qid=qid[again], attributes={"site": site[again]}, constraints=limited
        )
    errors = [float(str(one.message).split("standard error of ")[1].rstrip(".")) for one in caught]
    error = max(errors, default=0.0)  # none where exchanges within sites are all that differs
    assert error < 0.02
    assert abs(found.mean() - np.mean(known)) < 5 * error + 1e-9
    assert found.tied[0] >= 6
    assert shuffled == pytest.approx(found.mean(), abs=1e-12)


@pytest.mark.parametrize("gap", [1.0, 1e-9])
def test_a_limit_that_does_not_bind_costs_nothing(gap):
    """Many ties, near scores and one far away: the value is that without limits, and no document is out of order."""
    rng = np.random.default_rng(15)
    n, m = 10, 8
    X = rng.integers(1, 5, (m, n)) * gap
    grades = (2 * gap >= X).astype(float)
    X[:, 0], grades[:, 0] = 1e8, 0.0
    X[:, 1], grades[:, 1] = gap, 1.0
    rows, qid = X.reshape(-1, 1), np.repeat(range(m), n)
    ranker = RegressionRanker(measure="nDCG@4").fit(rows, grades.ravel(), qid=qid)
    ranker.coef_ = np.array([-1.0])
    ways = {"qid": qid, "attributes": {"seller": rng.integers(0, 4, n * m)}}
    free = ranker.evaluate(rows, grades.ravel(), constraints=Admissible(4), **ways)
    loose = ranker.evaluate(rows, grades.ravel(), constraints=Admissible(4).at_most(4, by="seller"), **ways)
    np.testing.assert_allclose(loose.values, free.values, atol=1e-12)
    assert loose.tied.tolist() == free.tied.tolist()


def test_random_orders_belong_to_the_documents():
    """Two rankers of one order, and one set with its constraints in either order, have one value."""
    rng = np.random.default_rng(14)
    n, m = 12, 6
    X, grades, qid = (
        rng.integers(0, 3, (n * m, 1)).astype(float),
        rng.integers(0, 3, n * m).astype(float),
        np.repeat(range(m), n),
    )
    attributes = {"sex": rng.choice(["f", "m"], n * m), "town": rng.choice(["a", "b", "c"], n * m)}
    one, two = (RegressionRanker(measure="nDCG@4").fit(X, grades, qid=qid) for _ in range(2))
    one.coef_, two.coef_ = np.array([1.0]), np.array([7.3])
    rules = Admissible(4).at_most(2, by="town").at_least(share=0.4, documents={"sex": "f"})
    other = Admissible(4).at_least(share=0.4, documents={"sex": "f"}).at_most(2, by="town")
    ways = {"qid": qid, "attributes": attributes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TiedDocumentsWarning)
        found = [ranker.evaluate(X, grades, constraints=rules, **ways) for ranker in (one, two)]
        again = one.evaluate(X, grades, constraints=other, **ways)
    assert found[0].tied[0] == m
    assert found[0].values.tolist() == found[1].values.tolist()
    np.testing.assert_allclose(found[0].values, again.values, atol=1e-12)


def test_queries_whose_value_depends_on_ties_are_counted_with_and_without_a_length():
    rng = np.random.default_rng(13)
    X, grades, qid = (
        rng.integers(0, 3, (60, 1)).astype(float),
        rng.integers(0, 3, 60).astype(float),
        np.repeat(range(6), 10),
    )
    ranker = RegressionRanker(measure="nDCG@5").fit(X, grades, qid=qid)
    free, short = (ranker.evaluate(X, grades, qid=qid, constraints=one) for one in (None, Admissible(5)))
    assert free.tied.tolist() == short.tied.tolist() == [6]
    assert free.mean() == pytest.approx(short.mean(), abs=1e-12)


def test_regret_under_constraints_does_not_depend_on_the_order_of_rows():
    """Of tied documents the worst exchange counts, and the mean of all."""
    rng = np.random.default_rng(9)
    n, m = 8, 6
    X, grades = rng.integers(0, 2, (n * m, 1)).astype(float), rng.integers(0, 3, n * m).astype(float)
    qid, site = np.repeat(np.arange(m), n), np.tile(list("aaabbccd"), m)
    rules = Admissible(k=3).at_most(1, by="site")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chance has little to teach
        ranker = LargeMarginRanker("nDCG@3", bound="convex").fit(X, grades, qid=qid)
    tables = []
    for order in (np.arange(n * m), np.arange(n * m)[::-1], rng.permutation(n * m)):
        found = ranker.bound_tightness(
            X[order], grades[order], qid=qid[order], attributes={"site": site[order]}, constraints=rules
        )
        tables.append(found.to_frame().sort_values("query").select_dtypes(float).to_numpy())
        assert (found.expected <= found.regret + 1e-12).all()
        assert all((values >= found.regret - 1e-9).all() for values in found.bounds.values())
    np.testing.assert_allclose(tables[1], tables[0], atol=1e-12)
    np.testing.assert_allclose(tables[2], tables[0], atol=1e-12)


def test_series_are_read_by_row_whatever_their_index():
    frame = pd.DataFrame({"q": [1, 1, 2, 2], "f": [1.0, 2, 3, 4], "rel": [0, 1, 2, 0], "doc": list("ABCD")})
    for rows in (frame.iloc[[2, 0, 3, 1]], frame[frame.f > 1.5]):
        queries = Queries.from_arrays(rows[["f"]], rows.rel, qid=rows.q, documents=rows.doc)
        assert list(queries.document_ids) == rows.doc.tolist()
    ids = pd.Series(list("abcdef"), index=range(5, -1, -1))
    by_id = [
        evaluate([1, 0, 0, 0, 0, 0], np.ones(6), "RR", qid=[0] * 6, convention="trec", document_ids=one).mean()
        for one in (ids, ids.tolist())
    ]
    assert by_id[0] == by_id[1]


def test_the_order_of_ties_of_rank_is_documented_and_not_that_of_the_rows():
    rng = np.random.default_rng(7)
    n = 40
    X, grades = rng.integers(0, 2, (n, 3)).astype(float), rng.integers(0, 3, n).astype(float)
    names = [f"d{row}" for row in rng.permutation(n)]
    site = rng.choice(["a", "b", "c"], n)
    ranker = RegressionRanker().fit(X, grades, group=[n])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matching = MatchingRanker(3).fit(X, (grades > 1) * np.arange(n) % 4, group=[n])
    matching.coef_ = rng.integers(0, 2, (3, 3)).astype(float)
    free, ruled, matched, unnamed = [], [], [], []
    for order in (np.arange(n), np.arange(n)[::-1], rng.permutation(n)):
        queries = Queries.from_arrays(
            X[order], group=[n], documents=[names[row] for row in order], attributes={"site": site[order]}
        )
        free.append(ranker.rank(queries).tolist())
        ruled.append(ranker.rank(queries, constraints=Admissible(6).at_most(2, by="site")).tolist())
        matched.append(matching.rank(queries).tolist())
        unnamed.append(X[order][ranker.rank(X[order])].tolist())
    assert free[0] == free[1] == free[2]
    assert ruled[0] == ruled[1] == ruled[2]
    assert matched[0] == matched[1] == matched[2]
    assert unnamed[0] == unnamed[1] == unnamed[2]
    by_name = {name: float(score) for name, score in zip(names, ranker.predict(X), strict=True)}
    assert free[0] == sorted(sorted(names, reverse=True), key=lambda name: -by_name[name])


def test_many_rows_without_queries_warn():
    y, scores = np.arange(400) % 3, np.arange(400.0)
    with pytest.warns(MissingQueryIdsWarning, match="all 400 rows"):
        evaluate(y, scores, "nDCG@10")
    with pytest.warns(MissingQueryIdsWarning, match="400 numbers"):
        compare(scores, scores[::-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(y, scores, "nDCG@10", group=[400])
        evaluate(y, scores, "nDCG@10", qid=np.arange(400) // 20)
        compare(scores, -scores, relevance=y, qid=np.arange(400) // 20, measure="nDCG@10")
        evaluate(y[:300], scores[:300], "nDCG@10")
    for wrong in ({"qid": [1], "group": [400]}, {"qid": [1]}, {"group": [3]}):
        with pytest.raises(DataError):
            evaluate(y, scores, "nDCG@10", **wrong)
    with pytest.raises(DataError, match="relevance"):
        compare(scores, scores, qid=np.arange(400))


def test_commands_read_and_write_rows_in_the_order_of_the_file(tmp_path):
    rng = np.random.default_rng(8)
    frame = table(rng, ties=False).sample(frac=1, random_state=3)
    file, model = str(tmp_path / "x.csv"), str(tmp_path / "m")
    frame.to_csv(file, index=False)
    run = CliRunner()
    ran = run.invoke(main, ["train", file, "--ranker", "regression", "--model", model])
    assert ran.exit_code == 0, ran.output
    ran = run.invoke(main, ["predict", model, file, "--output", "-"])
    assert ran.exit_code == 0, ran.output
    scores = pd.read_csv(io.StringIO(ran.stdout), header=None)[0].to_numpy()
    known = mean_ndcg(frame.query_id.tolist(), frame.label.tolist(), scores.tolist())
    (tmp_path / "scores").write_text(ran.stdout)
    for source in (["--model", model], ["--scores", str(tmp_path / "scores")]):
        ran = run.invoke(main, ["evaluate", file, *source, "--measure", "nDCG@3", "--json"])
        assert ran.exit_code == 0, ran.output
        assert f"{known:.6f}"[:7] in ran.output
