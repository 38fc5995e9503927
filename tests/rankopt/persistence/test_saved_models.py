"""A saved model comes back as it was; what is not data is not saved; a failed save leaves the old file whole."""

import hashlib
import io
import json
import os
import pickle
import subprocess
import sys
import zipfile
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from planted.attack import assert_survived
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


# A damaged or hostile model file is refused by a ModelError that says why, and nothing in it runs.


def test_a_file_that_is_cut_anywhere_is_refused(saved):
    content = saved.read_bytes()
    for length in range(0, len(content), 7):
        saved.write_bytes(content[:length])
        with pytest.raises(ModelError, match="damaged or not a saved model"):
            load_model(saved)


def test_a_flipped_bit_is_refused_or_harmless(saved):
    content, expected = saved.read_bytes(), load_model(saved).coef_
    loaded = 0
    for i in range(0, len(content), 5):
        saved.write_bytes(content[:i] + bytes([content[i] ^ 0x10]) + content[i + 1 :])
        try:
            model = load_model(saved)
        except ModelError:
            continue
        loaded += 1  # a bit of zip's own notes, such as a time stamp
        assert_array_equal(model.coef_, expected)
    assert loaded < len(content) / 10


def members_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, members, compression=zipfile.ZIP_STORED, sums=True):
    """Write a zip with the right digests: what someone who knows the format can make."""
    members = {name: content for name, content in members.items() if not (sums and name == "SHA256SUMS")}
    if sums:
        lines = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in members.items()]
        members["SHA256SUMS"] = "".join(lines).encode()
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"SHA256SUMS": b""}, "lists other members"),
        ({"SHA256SUMS": b"\xff"}, "not text"),
        ({"arrays/0.npy": b"other"}, "the sha256 of 'arrays/0.npy' differs"),
        ({"SHA256SUMS": None}, "no SHA256SUMS"),
    ],
)
def test_members_must_have_their_digests(saved, change, says):
    members = {name: content for name, content in {**members_of(saved), **change}.items() if content is not None}
    write(saved, members, sums=False)
    with pytest.raises(ModelError, match=says):
        load_model(saved)


@pytest.mark.parametrize(
    "name", ["../../evil.json", "/etc/evil.json", "a/../b.npy", "C:\\evil.json", ".hidden.json", "evil.pkl", "e\n.json"]
)
def test_names_that_lead_elsewhere_are_refused(saved, name):
    write(saved, {**members_of(saved), name: b"{}"})
    with pytest.raises(ModelError, match="a member is named"):
        load_model(saved)


def test_a_compressed_bomb_is_refused_unopened(saved):
    write(saved, {**members_of(saved), "arrays/1.npy": bytes(50_000_000)}, zipfile.ZIP_DEFLATED)
    assert saved.stat().st_size < 100_000
    with pytest.raises(ModelError, match="compressed or encrypted"):
        load_model(saved)


def test_sizes_that_the_file_does_not_have_are_refused(saved):
    content = bytearray(saved.read_bytes())
    start = content.rindex(b"PK\1\2")  # the entry of SHA256SUMS in the central directory
    content[start + 20 : start + 28] = (2**31).to_bytes(4, "little") * 2
    saved.write_bytes(content)
    with pytest.raises(ModelError, match="its members claim"):
        load_model(saved)


def test_two_members_of_one_name_are_refused(saved):
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("model.json", b"{}")
    with pytest.raises(ModelError, match="two members"):
        load_model(saved)


def test_a_table_of_contents_that_is_too_long_is_refused(saved):
    write(saved, {f"arrays/{i}.npy": b"" for i in range(20_000)})
    with pytest.raises(ModelError, match="central directory"):
        load_model(saved)


@pytest.mark.parametrize("content", [b"", b"PK", b"hello" * 100, pickle.dumps(os.getcwd), b"PK\5\6" + bytes(18)])
def test_files_of_another_kind_are_refused(saved, content):
    saved.write_bytes(content)
    with pytest.raises(ModelError, match="not a saved model"):
        load_model(saved)


def changed(**changes):
    return lambda manifest: {**manifest, **changes}


def fitted(**changes):
    return lambda manifest: {**manifest, "fitted": {**manifest["fitted"], **changes}}


def params(**changes):
    return lambda manifest: {**manifest, "params": {**manifest["params"], **changes}}


def stating(**fields):
    """Admissible rankings with one constraint of these fields."""
    spec = {"record": "record:ConstraintSpec", "fields": fields}
    return {"record": "record:Admissible", "fields": {"k": 2, "specs": {"tuple": [spec]}}}


def nested(depth):
    value = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (changed(version=2), "has version 2 and this rankopt reads 1; upgrade rankopt"),
        (changed(version="1"), "its version is '1'"),
        (changed(version=True), "its version is 'True'"),
        (changed(format="pickle"), "not a rankopt model"),
        (changed(params=[]), "lacks params"),
        (changed(**{"class": "os.system"}), "its class 'os.system' is not one of"),
        (changed(**{"class": ["RegressionRanker"]}), "its class"),
        (params(callbacks=1), "'callbacks' is no parameter of RegressionRanker"),
        (fitted(predict=1), "'predict' is no fitted attribute"),
        (fitted(__class__=1), "'__class__' is no fitted attribute"),
        (fitted(coef_=[1.0, 2.0, 3.0]), "coef_ is not an array of 3"),
        (fitted(coef_={"array": "arrays/7.npy"}), "is no value"),
        (fitted(n_features_in_=4), "coef_ is not an array of 4"),
        (fitted(n_features_in_="3"), "n_features_in_ is not an integer"),
        (fitted(n_queries_={"float": "inf"}), "n_queries_ is not an integer"),
        (fitted(feature_names_in_={"strings": ["a"]}), "does not name 3 features"),
        (fitted(feature_names_in_=None), "does not name 3 features"),
        (fitted(feature_names_in_={"array": "arrays/0.npy"}), "does not name 3 features"),
        (fitted(feature_names_in_={"strings": ["a", "b", 3]}), "is no value"),
        (fitted(columns_=["qid"]), "columns_ does not name"),
        (fitted(columns_={"dict": [["qid", 1]]}), "columns_ does not name"),
        (params(alpha={"float": "1e5"}), "is no value"),
        (params(alpha={"eval": "__import__('os').system('true')"}), "is no value"),
        (params(alpha={"tuple": [], "more": 1}), "is no value"),
        (params(alpha={"dict": [[1]]}), "not a list of pairs"),
        (params(alpha={"dict": [[[1], 2]]}), "no key"),
        (params(alpha=nested(100)), "nested deeper"),
        (params(measure={"measure": "__import__('os').getcwd()"}), "a measure cannot be read"),
        (params(measure={"measure": "nDCG@{[]: 1}"}), "a measure cannot be read"),
        (params(measure={"measure": "(" * 900}), "a measure cannot be read"),
        (params(measure={"measure": "(" * 100_000}), "100000 characters"),
        (params(alpha={"record": "os:system", "fields": {}}), "not one of the records"),
        (params(alpha={"record": "solver:none", "fields": {}}), "not one of the records"),
        (params(alpha={"record": "solver:exact", "fields": {"command": "rm"}}), "no field 'command'"),
        (params(alpha={"record": "record:Stop", "fields": {}}), "no record"),
        (params(alpha={"record": "record:Certificate", "fields": {}}), "cannot be built"),
        (params(alpha={"record": "record:Admissible", "fields": {"k": 0}}), "its fields .k must be a positive integer"),
        (params(alpha={"record": "record:Admissible", "fields": {"k": 2, "specs": ["x"]}}), "cannot be built"),
        (params(alpha=stating(kind="eval")), "cannot be built"),
        (params(alpha=stating(kind="forbid", documents=["x"])), "cannot be built"),
        (params(alpha=stating(kind="forbid", positions=[0.5])), "cannot be built"),
        (params(alpha=stating(kind="at_most", by="x", args={"tuple": [{"tuple": [{"tuple": [[], 1]}]}]})), "be built"),
        (params(alpha=stating(kind="at_most", args=5)), "cannot be built"),
        (params(alpha=stating(kind="at_most", options=5)), "cannot be built"),
        (params(alpha={"member": "record:Stop", "name": "__init__"}), "no member"),
        (params(measure=5), "a parameter has a value that cannot work .A measure cannot be 5"),
        (params(measure=["nDCG"]), "A measure cannot be"),
        (params(measure="nDCG@" + "1" * 5000), "the notation of a measure has 5005 characters"),
        (params(alpha=[0] * (1 << 20)), "more than 1048576 values"),
        (params(alpha={"record": "record:Certificate", "fields": {"kind": "global", "value": "a", "bound": 0.0, "stop":
            "max_iter steps were taken"}}), "cannot be built"),
        (params(alpha={"record": "record:Certificate", "fields": {"kind": "global", "value": 1.0, "bound": {"float":
            "nan"}, "stop": "max_iter steps were taken"}}), "cannot be built"),
        (params(alpha={"member": "solver:exact", "name": "room"}), "no member"),
    ],
)  # fmt: skip
def test_a_manifest_that_we_would_not_write_is_refused(saved, change, says):
    members = members_of(saved)
    manifest = change(json.loads(members["model.json"]))
    write(saved, {**members, "model.json": json.dumps(manifest).encode()})
    with pytest.raises(ModelError, match=says):
        load_model(saved)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"[]", b'"model"', b"\xff\xfe", b'{"format": 1, "format": 2}', b'{"version": NaN}', b"[" * 100_000,
        b'{"version": ' + b"9" * 10_000 + b"}",
    ],
)  # fmt: skip
def test_a_manifest_that_is_not_its_json_is_refused(saved, text):
    write(saved, {**members_of(saved), "model.json": text})
    with pytest.raises(ModelError, match=r"not its JSON|not a rankopt model"):
        load_model(saved)


def test_a_manifest_is_refused_by_its_size_before_it_is_read(saved, monkeypatch):
    write(saved, {**members_of(saved), "model.json": b"[" + b"0," * (20 << 20) + b"0]"})
    monkeypatch.setattr(json, "loads", None)
    with pytest.raises(ModelError, match=r"model\.json has 41943043 bytes, more than 16777216"):
        load_model(saved)


def test_names_that_could_not_be_read_back_are_not_saved(queries, tmp_path):
    ranker = RegressionRanker().fit(queries)
    ranker.feature_names_in_ = np.array(["x" * (6 << 20)] * 3, dtype=object)
    with pytest.raises(ModelError, match="give features shorter names"):
        ranker.save(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("missing", ["coef_", "n_features_in_", "n_queries_"])
def test_a_model_without_its_weights_is_refused(saved, missing):
    members = members_of(saved)
    manifest = json.loads(members["model.json"])
    del manifest["fitted"][missing]
    write(saved, {**members, "model.json": json.dumps(manifest).encode()})
    with pytest.raises(ModelError, match=f"{missing} is missing"):
        load_model(saved)


def npy(array, **options):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, **options)
    return buffer.getvalue()


def npy_with_header(header, data=b""):
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


PICKLED = npy(np.array([os.getcwd], dtype=object), allow_pickle=True)
WITHIN = "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (PICKLED, "its type is object"),
        (npy(np.array(["a"])), "its type is"),
        (npy(np.zeros(3, dtype=[("a", "f8")])), "its type is"),
        (npy(np.zeros(3, dtype="M8[s]")), "its type is"),
        (npy(np.asfortranarray(np.ones((2, 2)))), "fortran_order True"),
        (npy(np.zeros(3), version=(2, 0)), "not version 1.0"),
        (npy(np.zeros(3))[:-1], "does not fill"),
        (npy(np.zeros(3)) + b"\0", "does not fill"),
        (npy_with_header(WITHIN % "(1000000000000,)"), "does not fill"),
        (npy_with_header(WITHIN % "(-3,)", bytes(24)), "its shape"),
        (npy_with_header(WITHIN % "(9223372036854775807, 0)"), "not a plain npy"),
        (npy_with_header(WITHIN % ("(" + "1, " * 20_000 + ")")), "not a plain npy"),
        (npy_with_header(WITHIN % f"({'9' * 3000},)"), "not a plain npy"),
        (npy_with_header(WITHIN % "(0, 10000000000000000000000)"), "not a plain npy"),
        (npy_with_header(WITHIN % "(1000000000, 0)"), "coef_ is not an array of 3"),
        (npy_with_header("__import__('os').getcwd()"), "not a plain npy"),
        (npy_with_header("[" * 3000), "not a plain npy"),
        (npy(np.zeros(4)), "coef_ is not an array of 3"),
        (npy(np.zeros(3, dtype=np.float32)), "coef_ is not an array of 3 float64"),
        (npy(np.array([1.0, np.nan, 0.0])), "not finite"),
        (b"", "not a plain npy"),
    ],
)
def test_arrays_that_we_would_not_write_are_refused(saved, content, says):
    members = members_of(saved)
    assert json.loads(members["model.json"])["fitted"]["coef_"] == {"array": "arrays/0.npy"}
    write(saved, {**members, "arrays/0.npy": content})
    with pytest.raises(ModelError, match=says):
        load_model(saved)


# Mutated models and killed runs, some tries of each.


@pytest.mark.study
@pytest.mark.parametrize(("name", "tries"), [("models", 300), ("recovery", 8)])
def test_files_that_are_changed_and_runs_that_are_killed(name, tries):
    assert_survived(name, tries, seed=11)


def test_serving_loads_no_solver_package(queries, tmp_path):
    """A server that loads a model, predicts and ranks needs NumPy, SciPy, scikit-learn and numba alone."""
    LargeMarginRanker("nDCG@10", normalize="zscore").fit(queries).save(tmp_path / "model")
    script = (
        "import sys, numpy as np\n"
        "from rankopt import load_model\n"
        "ranker = load_model(sys.argv[1])\n"
        "documents = np.random.default_rng(0).normal(size=(100, ranker.n_features_in_))\n"
        "assert ranker.predict(documents).shape == (100,)\n"
        "assert len(ranker.rank(documents, k=10)) == 10\n"
        "print(*{name.split('.')[0] for name in sys.modules})\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(tmp_path / "model")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    solvers = {"cvxpy", "ortools", "highspy", "qpsolvers", "daqp", "piqp", "osqp", "clarabel", "scs"}
    assert (solvers | {"networkx", "matplotlib", "lightgbm", "click", "jinja2"}).isdisjoint(run.stdout.split())
