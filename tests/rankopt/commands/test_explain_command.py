"""`rankopt explain`: its numbers are those of the ranker, as text, JSON and page; slots, other measures."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from rankopt import Admissible, LargeMarginRanker, PairwiseRanker, Queries
from rankopt.cli import rankopt
from rankopt.data import read_attributes, read_svmlight, write_svmlight
from rankopt.errors import DataError, OptionError
from rankopt.rankers import MatchingRanker


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 3))
    grades = rng.integers(0, 3, 60)
    queries = Queries.from_arrays(
        features, grades, qid=np.repeat(np.arange(1, 11), 6), documents=[f"d{i}" for i in range(60)]
    )
    write_svmlight(queries, folder / "t.txt")
    lines = [f"{1 + i // 6},d{i},{'abc'[i % 3]}\n" for i in range(60)]
    (folder / "a.csv").write_text("qid,docid,site\n" + "".join(lines), encoding="utf-8")
    read = read_svmlight(folder / "t.txt")
    LargeMarginRanker("nDCG@3", lam=0.1, normalize="zscore").fit(read).save(folder / "plain")
    limits = Admissible(3).at_most(1, by="site")
    limited = LargeMarginRanker("nDCG@3", lam=0.1, constraints=limits)
    limited.fit(read_attributes(folder / "a.csv", read)).save(folder / "limited")
    PairwiseRanker("AP").fit(read).save(folder / "pairs")
    MatchingRanker(n_positions=2, lam=0.1, bound="nonconvex").fit(read).save(folder / "slots")
    return folder


def run(folder, *arguments):
    paths = [str(folder / one) if (folder / one).is_file() or one == "page.html" else one for one in arguments]
    done = CliRunner().invoke(rankopt, ["explain", *paths])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done


def test_json_holds_the_rankers_own_numbers(folder):
    from rankopt.rankers import load_model

    told = json.loads(run(folder, "plain", "t.txt", "--queries", "3", "--json").output)
    queries, ranker = read_svmlight(folder / "t.txt"), load_model(folder / "plain")
    found = ranker.bound_tightness(queries)
    assert told["queries"] == len(found)
    assert told["means"]["regret"] == pytest.approx(found.regret.mean())
    assert [str(row["query"]) for row in told["worst"]] == [str(found.query[row]) for row in found.worst(3)]
    assert [row["regret"] for row in told["worst"]] == found.regret[found.worst(3)].tolist()
    assert sum(one["share"] for one in told["weights"]["scores"]) == pytest.approx(1.0)
    assert {one["feature"] for one in told["weights"]["scores"]} == {"feature 1", "feature 2", "feature 3"}


def test_text_and_page_are_written(folder):
    done = run(folder, "plain", "t.txt", "--report", "page.html")
    assert done.exit_code == 0
    assert "mean of all" in done.output
    assert "What moves the scores" in done.output
    assert "Why these rankings?" in (folder / "page.html").read_text(encoding="utf-8")


def test_constraints_need_their_attributes(folder):
    assert "mean of all" in run(folder, "limited", "t.txt", "--attributes", "a.csv").output
    missing = CliRunner().invoke(rankopt, ["explain", str(folder / "limited"), str(folder / "t.txt")])
    assert missing.exit_code == 2
    assert "give --attributes FILE" in missing.output


def test_measures_without_bounds_name_the_option(folder):
    with pytest.raises(OptionError, match="give --measure nDCG@10"):
        run(folder, "pairs", "t.txt", "--measure", "MeanNDCG")
    assert "trained no bound" in run(folder, "pairs", "t.txt", "--measure", "nDCG@3").output
    assert "trained no bound" in run(folder, "pairs", "t.txt").output  # AP


def test_slots_have_weights_each(folder):
    done = run(folder, "slots", "t.txt", "--report", "page.html")
    assert "What moves the slot 2" in done.output


def test_data_without_anything_to_order_are_refused(folder, tmp_path):
    (tmp_path / "flat.txt").write_text("1 qid:1 1:2\n1 qid:1 1:3\n", encoding="utf-8")
    with pytest.raises(DataError, match="none has documents that nDCG@3 distinguishes"):
        CliRunner().invoke(
            rankopt, ["explain", str(folder / "plain"), str(tmp_path / "flat.txt")], catch_exceptions=False
        )
