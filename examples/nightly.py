"""Every night: train, compare the new model with the deployed one, promote it or not, and serve it.

    python examples/nightly.py [TRAIN TEST FOLDER]

TRAIN and TEST are LETOR / SVMlight files, or folders made by `rankopt convert`; the default is two nights on a bundled
sample. FOLDER holds `model.rankopt` (deployed), `new.rankopt` and a checkpoint, from which an interrupted training
resumes. Exit codes: 0 promoted, 3 the deployed model stays.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from rankopt import LargeMarginRanker, compare, evaluate, load_model, load_sample, read_svmlight
from rankopt.data import open_queries
from rankopt.errors import OptionError
from rankopt.rankers import Checkpoint

MEASURE, MARGIN = "nDCG@10", 0.01
"""A new model is promoted unless the 95% interval of its difference allows a loss of more than MARGIN."""


def read(path):
    return open_queries(path) if Path(path).is_dir() else read_svmlight(path, unjudged=0)


def main(train, test, folder):
    deployed, new, checkpoint = folder / "model.rankopt", folder / "new.rankopt", folder / "checkpoint"
    ranker = LargeMarginRanker(MEASURE, normalize="zscore", checkpoint=Checkpoint(checkpoint))
    try:
        ranker.fit(train)
    except OptionError:  # the checkpoint of an earlier night, with other data
        shutil.rmtree(checkpoint)
        ranker.fit(train)
    shutil.rmtree(checkpoint)
    ranker.save(new)
    print(f"trained on {len(train)} queries: {ranker.certificate_}")
    if deployed.exists():
        comparison = compare(*(evaluate(test, load_model(file).predict(test), MEASURE) for file in (new, deployed)))
        print(comparison)
        if comparison.interval[0] < -MARGIN:
            return 3
    os.replace(new, deployed)  # atomic: a reader finds the old model or the new one
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 4:
        sys.exit(main(read(sys.argv[1]), read(sys.argv[2]), Path(sys.argv[3])))
    sample = load_sample("les-miserables")
    with tempfile.TemporaryDirectory() as folder:
        for train in (sample.train.select(range(10)), sample.train):
            print(f"exit code {main(train, sample.test, Path(folder))}\n")
        served = load_model(Path(folder) / "model.rankopt")  # what a server does
        print("The deployed model ranks first:", ", ".join(served.rank(sample.test.select([0]), k=3)))
