"""Every night: train on today's data, judge today's model against yesterday's, promote it or not.

    python examples/nightly.py [TRAIN JUDGED FOLDER]

TRAIN and JUDGED are LETOR / SVMlight files, or folders that `rankopt convert` made, by default a sample. FOLDER
keeps `model.rankopt` (what is served), `tonight.rankopt` and the checkpoint: killed and started again, it goes on to
the same bits, or begins anew if the data are others by then. Exit codes: 0 promoted, 3 yesterday's model stays,
anything else is an error.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

from rankopt.data import load_sample, open_queries, read_svmlight
from rankopt.errors import OptionError
from rankopt.measures import compare, evaluate
from rankopt.rankers import Checkpoint, LargeMarginRanker, load_model, save_model

MEASURE, MARGIN = "nDCG@10", 0.01
"""Tonight's model is promoted unless it may be worse by more than this."""


def read(path):
    return open_queries(path) if Path(path).is_dir() else read_svmlight(path, unjudged=0)


def judged_better(judged, tonight, yesterday):
    """Whether the lower end of the 95% interval of the difference, paired over queries, is above -MARGIN."""
    runs = [evaluate(judged, ranker.predict(judged), MEASURE) for ranker in (tonight, yesterday)]
    comparison = compare(*runs)
    print(comparison)
    return comparison.interval[0] > -MARGIN


def main(train, judged, folder):
    served, made, kept = folder / "model.rankopt", folder / "tonight.rankopt", folder / "checkpoint"
    ranker = LargeMarginRanker(MEASURE, normalize="zscore", checkpoint=Checkpoint(kept))
    try:
        ranker.fit(train)
    except OptionError as error:
        if not kept.exists():
            raise
        print(f"beginning anew: {error}")  # a night that was killed left its checkpoint, of other data
        shutil.rmtree(kept)
        ranker.fit(train)
    save_model(ranker, made)
    shutil.rmtree(kept)
    print(f"trained on {len(train)} queries: {ranker.certificate_}")
    if served.exists() and not judged_better(judged, ranker, load_model(served)):
        print("yesterday's model stays")
        return 3
    os.replace(made, served)  # at once: whoever reads finds one or the other, whole
    print(f"promoted: {served.name}")
    return 0


if __name__ == "__main__":
    if len(sys.argv) == 4:
        sys.exit(main(read(sys.argv[1]), read(sys.argv[2]), Path(sys.argv[3])))
    if len(sys.argv) > 1:
        sys.exit(f"usage: {sys.argv[0]} TRAIN JUDGED FOLDER, or nothing for the sample")
    sample = load_sample("les-miserables")
    with tempfile.TemporaryDirectory() as folder:
        for night, train in enumerate((sample.train.select(range(10)), sample.train), 1):
            print(f"Night {night}:")
            print(f"exit code {main(train, sample.test, Path(folder))}")
