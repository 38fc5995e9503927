"""The samples are real, small, the same in every run; no grade of a test query can be read off the training data."""

import os
import subprocess
import sys
import time
from importlib import import_module

import networkx as nx
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_digits
from sklearn.metrics import ndcg_score

from rankopt.data import SAMPLES, load_sample, normalize
from rankopt.data.samples.les_miserables import FEATURES, pair_features
from rankopt.errors import OptionError

DIGEST = """
import hashlib
from rankopt.data import load_sample
sample = load_sample("les-miserables")
parts = [part for queries in (sample.train, sample.test) for part in (queries.features.tobytes(),
         queries.relevance.tobytes(), repr(queries.document_ids).encode(), queries.attributes["community"].tobytes())]
print(hashlib.sha256(b"".join(parts)).hexdigest())
"""


@pytest.fixture(scope="module", params=sorted(SAMPLES))
def sample(request):
    return load_sample(request.param)


@pytest.fixture(scope="module")
def novel():
    return load_sample("les-miserables")


@pytest.fixture(scope="module")
def graph():
    return nx.les_miserables_graph()


def parts(queries):
    """Name and rows of each query."""
    return [
        (name, slice(start, stop))
        for name, start, stop in zip(queries.query_ids, queries.offsets, queries.offsets[1:], strict=False)
    ]


def mean_ndcg(queries, scores):
    return np.mean([ndcg_score([queries.relevance[rows]], [scores[rows]], k=10) for _, rows in parts(queries)])


def test_unknown_samples_are_refused():
    with pytest.raises(OptionError, match="'digits', 'les-miserables'"):
        load_sample("iris")


def test_every_sample_is_complete(sample):
    assert not set(sample.train.query_ids) & set(sample.test.query_ids)
    assert sample.train.feature_names == sample.test.feature_names
    assert sample.description
    for queries in (sample.train, sample.test):
        assert set(np.unique(queries.relevance)) == {0, 1, 2, 3, 4}
        assert queries.document_ids is not None
        assert queries.attributes
        for _, rows in parts(queries):
            assert len(set(queries.document_ids[rows])) == rows.stop - rows.start
            assert np.unique(queries.relevance[rows]).size >= 3


def test_learning_helps_and_is_not_trivial(sample):
    train, test = normalize(sample.train), normalize(sample.test)
    w = np.linalg.lstsq(train.features, train.relevance, rcond=None)[0]
    learned = mean_ndcg(test, test.features @ w)
    single = max(mean_ndcg(test, test.features[:, j]) for j in range(test.n_features))
    chance = mean_ndcg(test, np.zeros(test.n_documents))
    assert chance + 0.3 < learned < 0.95
    assert single < learned


def test_samples_are_quick(sample):
    name = "digits" if "region 0,0" in sample.train.feature_names else "les-miserables"
    module, function = SAMPLES[name].split(":")
    begin = time.process_time()
    getattr(import_module(module), function)()
    assert time.process_time() - begin < 3


@pytest.mark.study
def test_no_hash_of_a_string_changes_the_novel():
    runs = [
        subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert runs[0] == runs[1] != ""


def test_grades_count_shared_chapters(novel, graph):
    for queries in (novel.train, novel.test):
        for name, rows in parts(queries):
            chapters = [graph.get_edge_data(name, x, {"weight": 0})["weight"] for x in queries.document_ids[rows]]
            expected = [sum(number >= least for least in (1, 2, 3, 5)) for number in chapters]
            assert_array_equal(queries.relevance[rows], expected)


def test_training_knows_no_test_character(novel, graph):
    tested = set(novel.test.query_ids)
    assert not tested & set(novel.train.document_ids)
    known = graph.subgraph(set(graph) - tested)
    for name, rows in parts(novel.train):
        assert set(novel.train.document_ids[rows]) == set(known) - {name}
        degree = novel.train.features[rows, FEATURES.index("degree")]
        world = known.subgraph(set(known) - {name})
        assert_array_equal(degree, [world.degree(x) for x in novel.train.document_ids[rows]])
    for name, rows in parts(novel.test):
        assert set(novel.test.document_ids[rows]) == set(graph) - {name}


def column(queries, rows, name):
    return queries.features[rows, FEATURES.index(name)]


@pytest.mark.parametrize("query", range(0, 13, 4))
def test_features_are_those_of_networkx_without_the_own_edge(novel, graph, query):
    name, rows = parts(novel.test)[query]
    expected = {key: [] for key in ("degree", "strength", "common", "adar", "allocation", "closeness", "shared")}
    for x in novel.test.document_ids[rows]:
        world = graph.copy()
        if world.has_edge(name, x):
            world.remove_edge(name, x)
        common = list(nx.common_neighbors(world, name, x))
        expected["degree"].append(world.degree(x))
        expected["strength"].append(world.degree(x, weight="weight"))
        expected["common"].append(len(common))
        expected["adar"].append(next(nx.adamic_adar_index(world, [(name, x)]))[2])
        expected["allocation"].append(next(nx.resource_allocation_index(world, [(name, x)]))[2])
        linked = nx.has_path(world, name, x)
        expected["closeness"].append(1 / nx.shortest_path_length(world, name, x) if linked else 0)
        expected["shared"].append(sum(min(world[name][z]["weight"], world[x][z]["weight"]) for z in common))
    names = (
        "degree",
        "strength",
        "common neighbors",
        "Adamic-Adar",
        "resource allocation",
        "closeness",
        "shared weight",
    )
    made = [column(novel.test, rows, feature) for feature in names]
    for values, key in zip(
        made, ("degree", "strength", "common", "adar", "allocation", "closeness", "shared"), strict=True
    ):
        assert_allclose(values, expected[key], rtol=1e-12, err_msg=key)


def test_the_own_edge_of_a_pair_leaves_no_trace_in_its_features(graph):
    chapters, names = nx.to_numpy_array(graph, weight="weight"), list(graph)
    pairs = ["Valjean Javert", "Valjean Napoleon", "Javert Gavroche", "Cosette Marius", "Judge Brevet", "Marius Judge"]
    for v, x in [[names.index(name) for name in pair.split()] for pair in pairs]:
        seen = []
        for weight in (0, 1, 9):
            world = chapters.copy()
            world[v, x] = world[x, v] = weight
            row = dict(zip(FEATURES, pair_features(world, v)[x - (x > v)], strict=True))
            # What depends on all edges of v is the same number for all documents: take it out.
            acquaintances, strength = (world[v] > 0).sum(), world[v].sum()
            row["preferential attachment"] /= acquaintances
            row["community share"] *= strength
            if row["Jaccard"] > 0:
                row["Jaccard"] = row["common neighbors"] / row["Jaccard"] - acquaintances
            seen.append(list(row.values()))
        assert_allclose(seen, seen[:1] * 3, rtol=1e-9, atol=1e-12)


def test_communities_are_blocks_of_the_cast(novel):
    for queries in (novel.train, novel.test):
        leaders = dict(zip(queries.document_ids, queries.attributes["community"].tolist(), strict=True))
        for document, leader in zip(queries.document_ids, queries.attributes["community"].tolist(), strict=True):
            assert leaders[document] == leader
        assert 4 <= len(set(leaders.values())) < len(leaders) / 2
        assert all(leaders.get(leader, leader) == leader for leader in leaders.values())


def test_digits_share_no_image_and_grade_by_digit_and_distance():
    sample = load_sample("digits")
    images, labels = load_digits(return_X_y=True)
    used = [{*queries.query_ids, *queries.document_ids} for queries in (sample.train, sample.test)]
    assert not used[0] & used[1]
    for queries in (sample.train, sample.test):
        assert not set(queries.query_ids) & set(queries.document_ids)
        for query, rows in parts(queries):
            documents = np.array(queries.document_ids[rows])
            grades, same = queries.relevance[rows], labels[documents] == labels[query]
            assert_array_equal(grades >= 2, same)
            assert_array_equal(queries.attributes["digit"][rows], labels[documents])
            distance = np.linalg.norm(images[documents] - images[query], axis=1)
            for grade in (3, 4):
                assert distance[grades == grade].max() <= distance[grades == grade - 1].min() + 1e-9
            assert (distance[grades == 1] < np.median(distance[same]) + 1e-9).all()
            assert (distance[grades == 0] >= np.median(distance[same]) - 1e-9).all()
