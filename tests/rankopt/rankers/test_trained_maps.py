"""Rankers of every map: their gap closes, whoever computes; saved, resumed, along a path; the names of the papers."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rankopt import Queries
from rankopt.constraints import Admissible
from rankopt.data import read_svmlight
from rankopt.errors import DataError, MeasureError, NoProgressWarning, OptionError
from rankopt.losses import BOUNDS, FEATURE_MAPS, get_feature_map
from rankopt.losses.oracle_relevance import PairwiseArgmax
from rankopt.measures import MeasureMix, parse
from rankopt.optimize.certificate import Stop
from rankopt.rankers import LargeMarginRanker, PairwiseRanker, load_model, svm
from rankopt.rankers.large_margin import PAPERS

MEASURES = ("AUC", "AP", "RR", "RR@2", "nDCG", "nDCG@3", "P@2", "ERR@3", "WTA", "R@2", "RBP(p=0.5)")
ALL = [(text, name) for text in MEASURES for name in FEATURE_MAPS if get_feature_map(name).supports(parse(text))]
MIX = "AP + 2 nDCG@3 + RR[first-relevant]"


def made(seed=0, queries=6, documents=9, grades=3):
    rng = np.random.default_rng(seed)
    features = np.round(rng.normal(size=(queries * documents, 3)), 1)
    worth = features @ [1.0, -1.0, 0.5] + rng.normal(size=len(features))
    relevance = np.digitize(worth, [0.3, 1.2][: grades - 1]).astype(float)
    return Queries.from_arrays(features, relevance, qid=np.repeat(np.arange(queries), documents))


def fitted(queries=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that an optimum is at w0 is no fault here
        return LargeMarginRanker(**{"lam": 0.1, **options}).fit(made() if queries is None else queries)


@pytest.mark.every(4)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize(("text", "name"), [*ALL, (MIX, "pairwise"), (f"({MIX})(slack='shared')", "positional")])
def test_the_gap_closes(text, name, bound):
    ranker = fitted(measure=text, feature_map=name, bound=bound)
    proved = ranker.certificate_
    assert proved.relative_gap <= ranker.tol
    assert (proved.kind == "global") == (bound == "convex")
    objective = ranker.objective(made())
    nearby = [ranker.coef_ + 0.05 * step for step in np.random.default_rng(0).normal(size=(20, 3))]
    above = [objective.regularizer(w) + objective.risk.at(w).value for w in nearby]
    if bound == "convex":
        assert min(above) >= proved.bound - 1e-12
    else:  # the majorant that touches there
        risk = objective.risk.majorant(ranker.coef_)
        assert min(objective.regularizer(w) + risk.at(w).value for w in nearby) >= proved.bound - 1e-12


@pytest.mark.every(5)
@pytest.mark.parametrize("queries", [1, 20])
@pytest.mark.parametrize(
    ("text", "name"), [("nDCG@10", "pairwise"), ("ERR@10", "positional"), ("AP + nDCG@10 + RR", "pairwise")]
)
def test_cut_measures_train_on_long_queries_of_five_grades(text, name, queries, workers):
    """200 documents of five grades have a lattice of 10^8 states; the cut leaves some thousands, small data or not."""
    rng = np.random.default_rng(4)
    features = rng.normal(size=(200 * queries, 3))
    relevance = np.clip(np.round(features[:, 0] + rng.normal(size=len(features)) + 2.0), 0.0, 4.0)
    data = Queries.from_arrays(features, relevance, qid=np.repeat(np.arange(queries), 200))
    options = {"measure": text, "feature_map": name, "lam": 1e-4, "max_iter": 5}
    serial, *others = (
        fitted(data, **options, engine=engine, n_jobs=jobs)
        for engine, jobs in (("serial", None), ("threads", 2), (workers, None))
    )
    assert serial.coef_[0] > np.abs(serial.coef_[1:]).max()
    assert np.isfinite(serial.certificate_.bound)
    for other in others:
        np.testing.assert_array_equal(other.coef_, serial.coef_)


def test_auc_over_pairs_is_ranksvm():
    ours = fitted(made(grades=2), measure="AUC", feature_map="pairwise", bound="convex", tol=1e-6)
    theirs = PairwiseRanker(lam=0.1, tol=1e-6).fit(made(grades=2))
    assert ours.certificate_.primal == pytest.approx(theirs.certificate_.primal, rel=1e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2)


@pytest.mark.parametrize("name", FEATURE_MAPS)
def test_a_model_keeps_its_map(name, tmp_path):
    ranker = fitted(measure="RR", feature_map=name)
    assert ranker.get_params()["feature_map"] == name
    ranker.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.get_params() == ranker.get_params()
    np.testing.assert_array_equal(again.predict(made().features), ranker.predict(made().features))
    assert ("map" in repr(again)) == (name != "positional")


def test_a_model_keeps_its_mix(tmp_path):
    mix = MeasureMix({"AP[pairwise]": 1, "nDCG@3": 2}, slack="shared")
    ranker = fitted(measure=mix)
    ranker.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.measure == mix
    assert again.score(made()) == ranker.score(made())


@pytest.mark.study
@pytest.mark.parametrize("text", ["AP", MIX])
def test_who_computes_does_not_matter(text, workers, monkeypatch):
    monkeypatch.setattr("rankopt.risk.risk.SHARD_ROWS", 20)
    queries = made(queries=8)
    weights = [
        fitted(queries, measure=text, feature_map="pairwise", engine=engine, n_jobs=jobs).coef_
        for engine, jobs in (("serial", None), ("threads", 2), (workers, None))
    ]
    np.testing.assert_array_equal(weights[0], weights[1])
    np.testing.assert_array_equal(weights[0], weights[2])


@pytest.mark.parametrize("text", ["AP", MIX])
def test_a_run_that_is_taken_up_again_ends_at_the_same_bits(text, tmp_path):
    queries, options = made(queries=12), {"feature_map": "pairwise", "bound": "nonconvex", "lam": 0.003, "tol": 1e-5}
    whole = fitted(queries, measure=text, **options)
    assert whole.n_iter_ > 3
    with pytest.warns(ConvergenceWarning):
        LargeMarginRanker(text, **options, max_iter=2, checkpoint=str(tmp_path)).fit(queries)
    resumed = fitted(queries, measure=text, **options, checkpoint=str(tmp_path))
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)
    with pytest.raises(OptionError, match="map"):
        LargeMarginRanker(text, **{**options, "feature_map": "positional"}, checkpoint=str(tmp_path)).fit(queries)


@pytest.mark.parametrize("bound", ["convex", "nonconvex"])
def test_a_path_proves_each_of_its_models(bound):
    ranker = LargeMarginRanker("RR", feature_map="first-relevant", bound=bound)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in ranker.path(made(), lams=[1.0, 0.1, 0.01]):
            assert model.certificate_.relative_gap <= model.tol


def test_the_natural_strength_is_in_units_of_the_slopes():
    queries = made()
    others = np.add.reduceat(queries.relevance == 0, queries.offsets[:-1])
    lams = {name: fitted(queries, measure="RR", feature_map=name, lam="scale").lam_ for name in FEATURE_MAPS}
    assert lams["positional"] == lams["pairwise"]
    assert lams["first-relevant"] == pytest.approx(lams["pairwise"] * np.mean(others**2.0))
    assert fitted(queries, measure="2 AP + RR", lam="scale").lam_ == pytest.approx(3 * lams["pairwise"])
    assert fitted(queries, measure="(2 AP + RR)(slack='shared')", lam="scale").lam_ == pytest.approx(
        2 * lams["pairwise"]
    )
    assert fitted(queries, measure="nDCG@3", lam="scale").lam_ == lams["pairwise"]


def test_slopes_f_times_as_large_have_the_same_optimum_at_weights_f_times_smaller():
    """The unit of λ: with as many others in every query, slopes divided by their number are the same problem."""
    rng = np.random.default_rng(1)
    features = rng.normal(size=(48, 3))
    relevance = np.tile([1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 6)
    features[:, 0] += relevance
    queries, w0 = Queries.from_arrays(features, relevance, group=[8] * 6), np.array([0.5, 0.1, -0.2])
    shared = fitted(queries, measure="1 RR[first-relevant]", w0=w0, lam=0.2, tol=1e-9)
    whole = fitted(queries, measure="RR", feature_map="first-relevant", w0=w0 / 6, lam=0.2 * 36, tol=1e-9)
    assert np.linalg.norm(shared.coef_ - w0) > 0.1
    np.testing.assert_allclose(6 * whole.coef_, shared.coef_, atol=1e-4)
    assert whole.certificate_.primal == pytest.approx(shared.certificate_.primal, rel=1e-7)


def test_tightness_speaks_of_every_part_of_a_mix():
    ranker = fitted(measure=MIX, feature_map="pairwise")
    found = ranker.bound_tightness(made())
    assert [*found.parts] == ["AP", "nDCG@3", "RR[first-relevant]"]
    ap, ndcg, rr = found.parts.values()
    assert (ap.feature_map, rr.feature_map) == ("pairwise", "first-relevant")
    np.testing.assert_allclose(found.regret, ap.regret + 2 * ndcg.regret + rr.regret, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.bound, ap.bound + 2 * ndcg.bound + rr.bound, rtol=0, atol=1e-12)
    assert (found.looseness >= -1e-12).all()
    shared = fitted(measure=f"({MIX})(slack='shared')", feature_map="pairwise")
    shared.coef_ = ranker.coef_
    largest = shared.bound_tightness(made())
    np.testing.assert_allclose(largest.bound, np.max([ap.bound, 2 * ndcg.bound, rr.bound], axis=0), atol=1e-12)
    assert (largest.looseness >= -1e-12).all()
    assert "map pairwise" in str(ap)
    assert len(ranker.bound_tightness(made(), measure="AP", feature_map="positional").parts) == 0


@pytest.mark.parametrize("name", PAPERS)
def test_names_of_the_papers(name):
    ranker = svm(name, lam=0.1)
    assert PAPERS[name].items() <= ranker.get_params().items()
    assert (ranker.bound, ranker.lam) == ("convex", 0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ranker.fit(made(grades=2)).certificate_.kind == "global"


def test_what_does_not_go_together_is_refused():
    with pytest.raises(OptionError, match="no ranker of the papers is called 'svm'"):
        svm("svm")
    with pytest.raises(OptionError, match=r"cannot bound the regret of AP.*'positional' or 'pairwise'"):
        LargeMarginRanker("AP", feature_map="first-relevant").fit(made())
    with pytest.raises(OptionError, match="feature_map='positional'"):
        LargeMarginRanker("AP", constraints=Admissible(3)).fit(made())
    with pytest.raises(OptionError, match="feature_map='positional'"):
        LargeMarginRanker("nDCG@3", feature_map="pairwise", constraints=Admissible(3)).fit(made())
    for text in ("nDCG@5[positional]", "nDCG@5 + P@3", "2 nDCG@5"):
        with pytest.raises(
            OptionError, match="under constraints, which take no mixes of measures, no weights and no maps"
        ):
            LargeMarginRanker(text, constraints=Admissible(3)).fit(made())
    with pytest.raises(OptionError, match="neither 'ideal' nor 'average'"):
        LargeMarginRanker("AP", feature_map="pairwise", bound="convex", target_ranking="first").fit(made())
    with pytest.raises(OptionError, match="AP has no discount"):
        LargeMarginRanker("AP", position_weights="discount").fit(made())
    with pytest.raises(OptionError, match=r"argmax_solver 'scipy' cannot rank"):
        LargeMarginRanker("AP", feature_map="pairwise", argmax_solver="scipy").fit(made())


@pytest.mark.parametrize("word", ["first", "ideal", "best"])
def test_a_reference_that_a_part_does_not_know_is_refused_with_the_part(word):
    for measure in ("AP[pairwise] + nDCG@5", "nDCG@5 + AP[pairwise]"):
        ranker = LargeMarginRanker(measure, bound="convex", target_ranking=word)
        part = "nDCG@5" if word == "ideal" or (word, measure[0]) == ("best", "n") else "AP"
        with pytest.raises(
            OptionError, match=rf"target_ranking '{word}' .* part {part} of .*; use 'average', which all"
        ):
            ranker.fit(made())


def test_every_part_of_a_mix_has_the_reference_that_is_asked_for():
    whole = fitted(measure="P@2[pairwise] + nDCG@5", bound="convex", target_ranking="average")
    usual = fitted(measure="P@2[pairwise] + nDCG@5", bound="convex")
    parts = [
        fitted(measure=measure, feature_map=name, bound="convex", target_ranking=word)
        for measure, name, word in (("P@2", "pairwise", "average"), ("nDCG@5", "positional", None))
    ]
    w = np.array([0.3, -1.0, 0.2])

    def risk(ranker):
        return ranker.objective(made()).risk.at(w).value

    assert risk(whole) == pytest.approx(sum(map(risk, parts)))
    assert risk(whole) != pytest.approx(risk(usual))


def test_grades_that_a_measure_does_not_tell_apart_are_named():
    with pytest.raises(DataError, match="grades, from 0 to 2, differ, but"):
        LargeMarginRanker("ERU(alpha=5, d=3)", feature_map="pairwise").fit(made())
    flat = made()
    with pytest.raises(DataError, match="pass queries with at least two different grades"):
        LargeMarginRanker("AP", feature_map="pairwise").fit(flat.replace(relevance=np.ones(flat.n_documents)))


@pytest.mark.parametrize(
    ("options", "cures"),
    [
        ({"measure": "RR", "feature_map": "first-relevant"}, "try a smaller lam"),
        ({"measure": "AP@5", "feature_map": "pairwise", "bound": "convex", "w0": "ridge"}, "lam or bound='nonconvex'"),
        ({"measure": "nDCG@3"}, "lam or position weights cut at the measure's k"),
        ({"measure": "nDCG@3 + AP[pairwise]"}, "lam or position weights cut at the measure's k"),
        ({"measure": "nDCG@3", "position_weights": "linear"}, "try a smaller lam"),
        ({"measure": "nDCG@3", "position_weights": "log@3"}, "try a smaller lam"),
        ({"measure": "nDCG", "bound": "tie-aware"}, "lam or bound='nonconvex'"),
    ],
)
def test_the_cures_of_an_optimum_at_the_start_are_those_that_are_left(options, cures):
    with pytest.warns(NoProgressWarning) as told:
        LargeMarginRanker(**{"lam": 1e6, **options}).fit(made())
    assert str(told[0].message).endswith(cures)


@pytest.mark.parametrize("name", ["dorm", "mrr"])
def test_zero_is_the_optimum_on_ohsumed_and_the_cure_is_the_one_that_helps(name, data_folder):
    train = read_svmlight(data_folder / "letor3-ohsumed" / "QueryLevelNorm" / "Fold1" / "train.txt.gz")
    with pytest.warns(NoProgressWarning) as told:
        convex = svm(name).fit(train)
    assert not convex.coef_.any()
    assert (convex.certificate_.kind, convex.certificate_.stop) == ("global", Stop.GAP)
    assert str(told[0].message).endswith("as w0 does: try bound='nonconvex'")
    with pytest.warns(NoProgressWarning):  # "a smaller lam" is not a cure
        assert not svm(name, lam=1e-6).fit(train).coef_.any()
    moved = svm(name, bound="nonconvex").fit(train)
    assert moved.score(train) > convex.score(train) + 0.2


def test_features_without_differences_have_no_better_lam():
    with pytest.warns(NoProgressWarning, match="try another loss or other features"):
        PairwiseRanker().fit(np.ones((4, 2)), [0, 1, 1, 0], qid=[1, 1, 2, 2])


def test_huge_weights_are_refused_by_name_and_large_ones_train():
    with pytest.raises(MeasureError, match=r"AP cannot weigh 1e\+200"):
        MeasureMix({"AP": 1e200, "RR": 1e200})
    for weight in (1e-100, 1e100):
        mix = MeasureMix({"AP": weight, "RR": weight})
        ranker = fitted(measure=mix, feature_map="pairwise", lam="scale")
        assert np.isfinite(ranker.coef_).all()


def test_an_unknown_map_in_brackets_is_refused_before_any_work():
    with pytest.raises(OptionError, match="map 'pairs' is unknown"):
        LargeMarginRanker("AP[pairs] + RR").fit(made())


def test_maps_of_ones_own_and_references_are_taken():
    usual = fitted(measure="P@2", feature_map="pairwise", bound="convex")
    own = fitted(measure="P@2", feature_map=PairwiseArgmax, bound="convex", target_ranking="ideal")
    np.testing.assert_array_equal(own.coef_, usual.coef_)
    mean = fitted(measure="P@2", feature_map="pairwise", bound="convex", target_ranking="average")
    assert mean.certificate_.primal != usual.certificate_.primal


def test_any_solver_of_lattices_finds_the_rankings():
    ours, theirs = (fitted(made(queries=2, documents=5), measure="AP", feature_map="pairwise", argmax_solver=solver,
    tol=1e-6)
                    for solver in ("exact", "highs"))  # fmt: skip
    assert theirs.certificate_.primal == pytest.approx(ours.certificate_.primal, rel=1e-5)
