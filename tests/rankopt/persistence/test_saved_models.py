"""A saved model comes back as it was; what is not data is not saved; a failed save leaves the old file whole."""

import io
import subprocess
import sys
import zipfile
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankopt.errors import ModelError
from rankopt.measures import parse
from rankopt.rankers import LargeMarginRanker, RegressionRanker, load_model, save_model


def same(one, other):
    """Whether two parameters or fitted attributes are equal, arrays by their entries and types."""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if is_dataclass(one) and type(one) is type(other):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    return type(one) is type(other) and one == other


@pytest.mark.parametrize(
    "ranker",
    [
        RegressionRanker(0.5, target="grade", measure=parse("nDCG(gain='linear')@5")),
        RegressionRanker(alpha=np.float64(0.1)),
        LargeMarginRanker(lam=0.1),
        LargeMarginRanker(lam=1.0, bound="nonconvex", w0=np.array([1.0, 0.0, -1.0]), position_weights="power(0.5)@10"),
    ],
    ids=["regression", "numpy option", "large margin", "nonconvex"],
)
def test_a_ranker_comes_back_as_it_was(ranker, queries, names, tmp_path):
    ranker.fit(queries).save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert type(loaded) is type(ranker)
    for key, value in ranker.get_params().items():
        assert same(value, loaded.get_params()[key]) or loaded.get_params()[key] == value
    for key in ranker._saved:
        assert hasattr(loaded, key) == hasattr(ranker, key)
        assert same(getattr(loaded, key, None), getattr(ranker, key, None)), key
    assert_array_equal(loaded.predict(queries), ranker.predict(queries))
    assert loaded.score(queries) == ranker.score(queries)
    assert loaded.feature_names_in_.tolist() == list(names)


def test_solvers_and_methods_with_options_come_back(queries, tmp_path):
    from formulations.solvers.exact import ExactArgmax
    from rankopt.optimize.bundle import Bundle

    exact = ExactArgmax(max_states=1000)
    ranker = LargeMarginRanker(lam=1.0, argmax_solver=exact, method=Bundle(keep_idle=7)).fit(queries)
    ranker.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.argmax_solver == ExactArgmax(max_states=1000)
    assert loaded.method == Bundle(keep_idle=7)


def test_what_concerns_one_run_is_not_saved(queries, tmp_path):
    ranker = LargeMarginRanker(lam=1.0, callbacks=[lambda step, state: None]).fit(queries)
    ranker.save(tmp_path / "model")
    assert load_model(tmp_path / "model").callbacks == LargeMarginRanker().callbacks


def test_the_same_model_gives_the_same_bytes(queries, tmp_path):
    for name in ("one", "two"):
        RegressionRanker(0.5).fit(queries).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    load_model(tmp_path / "one").save(tmp_path / "three")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()


def test_a_loaded_model_is_fitted_anew_like_any_other(queries, saved):
    loaded = load_model(saved)
    again = load_model(saved).fit(queries)
    assert_array_equal(loaded.coef_, again.coef_)


def test_a_pipeline_says_what_to_save_instead(queries, tmp_path):
    pipeline = make_pipeline(StandardScaler(), RegressionRanker()).fit(queries.features, queries.relevance)
    with pytest.raises(ModelError, match=r"its steps \(StandardScaler\) .* `save_model\(pipeline\[-1\], path\)`"):
        save_model(pipeline, tmp_path / "model")
    save_model(pipeline[-1], tmp_path / "model")
    search = GridSearchCV(RegressionRanker(), {"alpha": [1.0]}, cv=2).fit(queries.features, queries.relevance)
    with pytest.raises(ModelError, match="save its `best_estimator_`"):
        save_model(search, tmp_path / "model")


class OfTheUser(RegressionRanker):
    """A ranker that is not in the table."""


@pytest.mark.parametrize(
    ("ranker", "change", "says"),
    [
        (OfTheUser(), {}, "OfTheUser cannot be saved because its class is not one of .*RegressionRanker"),
        (LargeMarginRanker(), {"w0": object()}, "the parameter w0 of LargeMarginRanker cannot be saved"),
        (LargeMarginRanker(), {"w0": [0, (1, np.random.default_rng(0))]}, r"w0 of LargeMarginRanker\[1\]\[1\]"),
        (LargeMarginRanker(), {"w0": np.array([None])}, "an array of object"),
    ],
)
def test_what_is_not_data_is_not_saved(ranker, change, says, queries, tmp_path):
    ranker.fit(queries).set_params(**change)
    with pytest.raises(ModelError, match=says):
        ranker.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_values_that_contain_themselves_are_not_saved(queries, tmp_path):
    loop = []
    loop.append(loop)
    with pytest.raises(ModelError, match="nested deeper"):
        LargeMarginRanker().fit(queries).set_params(w0=loop).save(tmp_path / "model")


def test_an_unfitted_ranker_is_not_saved(tmp_path):
    with pytest.raises(NotFittedError):
        RegressionRanker().save(tmp_path / "model")


@pytest.mark.study
def test_a_full_disk_leaves_the_old_model_whole(queries, saved):
    before = saved.read_bytes()
    script = (
        "import resource, sys\n"
        "from rankopt.rankers import load_model\n"
        "model = load_model(sys.argv[1]); model.coef_ = model.coef_ + 1\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))\n"
        "model.save(sys.argv[1])\n"
    )
    run = subprocess.run([sys.executable, "-c", script, saved], capture_output=True, text=True, check=False)
    assert "OSError" in run.stderr
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_saving_replaces_the_file_that_a_link_names(queries, saved):
    link = saved.with_name("latest")
    link.symlink_to(saved)
    RegressionRanker(7.0).fit(queries).save(link)
    assert link.is_symlink()
    assert load_model(saved).alpha == 7.0


def test_a_folder_that_is_not_there_is_an_error_of_the_system(queries, tmp_path):
    with pytest.raises(FileNotFoundError):
        RegressionRanker().fit(queries).save(tmp_path / "none" / "model")
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "none")


def test_arrays_of_a_saved_model_are_plain_npy_files(saved):
    with zipfile.ZipFile(saved) as archive:
        coef = np.load(io.BytesIO(archive.read("arrays/0.npy")), allow_pickle=False)
    assert_array_equal(coef, load_model(saved).coef_)
