"""Every command that takes a model refuses data of another width, by an error that says both widths."""

import numpy as np
import pytest
from click.testing import CliRunner

from rankopt.cli import rankopt
from rankopt.data import Queries, store, write_svmlight
from rankopt.errors import DataError
from rankopt.rankers import RegressionRanker


def made(features):
    rng = np.random.default_rng(features)
    return Queries.from_arrays(rng.normal(size=(12, features)), rng.integers(0, 3, 12), group=[6, 6])


@pytest.mark.parametrize("width", [3, 7])
@pytest.mark.parametrize(
    "command",
    [
        ["predict", "{model}", "{data}", "--output", "{scores}"],
        ["rank", "{model}", "{data}", "--k", "2"],
        ["evaluate", "{data}", "--model", "{model}"],
    ],
)
def test_a_stored_folder_of_another_width_is_refused(tmp_path, command, width):
    names = {name: str(tmp_path / name) for name in ("model", "data", "scores")}
    RegressionRanker().fit(made(5)).save(names["model"])
    store(made(width), names["data"])
    run = CliRunner().invoke(rankopt, [word.format(**names) for word in command])
    assert isinstance(run.exception, DataError)
    assert f"{names['data']} has {width} features but 5 are wanted" in str(run.exception)
    assert not (tmp_path / "scores").exists()


def test_a_file_with_more_features_than_the_model_is_refused(tmp_path):
    model, data = str(tmp_path / "model"), str(tmp_path / "data.txt")
    RegressionRanker().fit(made(5)).save(model)
    write_svmlight(made(7), data)
    run = CliRunner().invoke(rankopt, ["predict", model, data, "--output", str(tmp_path / "scores")])
    assert isinstance(run.exception, DataError)
    assert "feature 6 but n_features says there are 5" in str(run.exception)
