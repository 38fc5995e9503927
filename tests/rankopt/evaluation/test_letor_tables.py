"""The official LETOR 2.0 table: every feature of OHSUMED alone as a ranker, 25 × 21 published numbers."""

import csv

import numpy as np
import pytest

from rankopt.data import concatenate, read_svmlight
from rankopt.measures import evaluate

MEASURES = [f"{name}@{k}" for name in ("NDCG", "P") for k in range(1, 11)] + ["MAP"]


@pytest.fixture(scope="module")
def ohsumed(data_folder):
    return concatenate([read_svmlight(data_folder / f"letor2-ohsumed/S{part}.txt.gz") for part in range(1, 6)])


@pytest.fixture(scope="module")
def published(data_folder):
    with (data_folder / "reference-tables/letor2_ohsumed_single_features.csv").open() as table:
        return {(int(row["feature"]), row["measure"]): float(row["value"]) for row in csv.DictReader(table)}


@pytest.mark.parametrize("feature", range(1, 26))
def test_single_features_reproduce_to_four_decimals(feature, ohsumed, published):
    found = evaluate(ohsumed, np.asarray(ohsumed.features[:, feature - 1]), MEASURES, convention="letor2")
    assert len(found) == 106
    for measure in MEASURES:
        assert found.mean(measure) == pytest.approx(published[feature, measure], abs=5e-5)


def test_the_order_of_the_file_earns_nothing_where_ties_are_averaged(data_folder):
    parts = [data_folder / f"letor3-ohsumed/QueryLevelNorm/Fold{fold}/test.txt.gz" for fold in range(1, 6)]
    queries = concatenate([read_svmlight(part) for part in parts])
    constant = np.zeros(queries.n_documents)
    assert evaluate(queries, constant, "nDCG@10", convention="letor3").mean() > 0.39
    found = evaluate(queries, constant, "nDCG@10")
    assert found.mean() < 0.2
    assert found.tied.tolist() == [found.n_evaluated()] == [105]
