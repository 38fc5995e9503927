"""What rescaling the slack is worth: accuracy, gap and time beside margin rescaling, of a convex bound and of ours.

    RANKOPT_DATA=folder python benchmarks/rescaled.py

MQ2008 (parts S1 to S3: one to train, the next for validation, the third for test, thrice; zscore per query), OHSUMED
(LETOR 3.0, the five folds as given), and the sample Les Misérables. λ from 1, .1, .01 by nDCG@10 on the validation
part, the first of equals; decay power(0.5), the nonconvex bound from least squares. p: paired randomisation test
against the nonconvex bound, and of the rescaled slack against the margin, over the test queries of all folds. At w₀:
fits that ended where they began. Open: the relative gap that is left, the largest of the folds. Seconds: of the
processor, of the fit at the λ chosen, the mean of the folds; at most 60 a fit.
"""

import os
import warnings
from pathlib import Path
from time import process_time

import numpy as np

from rankopt.data import load_sample, read_svmlight
from rankopt.data.normalisation import normalise
from rankopt.experimental import RescaledSlack
from rankopt.measures import evaluate
from rankopt.rankers import LargeMarginRanker, LossRanker

LAMS = (1.0, 0.1, 0.01)

RANKERS = {
    "rescaled slack": LossRanker(RescaledSlack, time_limit=60),
    "rescaled slack, start and centre least squares": LossRanker(RescaledSlack, w0="regression", time_limit=60),
    "margin, convex": LargeMarginRanker(bound="convex", position_weights="power(0.5)", w0="zeros", time_limit=60),
    "margin, convex, start and centre least squares": LargeMarginRanker(
        bound="convex", position_weights="power(0.5)", w0="regression", time_limit=60
    ),
    "margin, nonconvex": LargeMarginRanker(
        bound="nonconvex", position_weights="power(0.5)", w0="regression", time_limit=60
    ),
}


def folds(folder):
    """(train, validation, test) of each fold of each set."""
    mq = [normalise(read_svmlight(folder / "letor4-mq2008" / f"S{i}.txt.gz"), "zscore") for i in (1, 2, 3)]
    three = folder / "letor3-ohsumed" / "QueryLevelNorm"
    parts = ("train", "vali", "test")
    return {
        "MQ2008": [(mq[f], mq[(f + 1) % 3], mq[(f + 2) % 3]) for f in range(3)],
        "OHSUMED": [tuple(read_svmlight(three / f"Fold{f}" / f"{part}.txt.gz") for part in parts) for f in range(1, 6)],
        **{name: [thirds(load_sample(name))] for name in ("les-miserables",)},
    }


def thirds(sample):
    """(train, validation, test): every third query of the training part validates."""
    queries = sample.train
    last = np.arange(len(queries)) % 3 == 2
    return queries.select(np.flatnonzero(~last)), queries.select(np.flatnonzero(last)), sample.test


def chosen(ranker, train, validation):
    """The fit with the λ that is best on validation, and its seconds."""
    best = None
    for lam in LAMS:
        began = process_time()
        model = type(ranker)(**{**ranker.get_params(), "lam": lam}).fit(train)
        seconds = process_time() - began
        value = evaluate(validation, model.predict(validation), "nDCG@10").mean()
        if best is None or value > best[0]:
            best = (value, model, seconds)
    return best[1:]


def main():
    warnings.simplefilter("ignore")
    for name, cuts in folds(Path(os.environ["RANKOPT_DATA"])).items():
        heads = [name, "nDCG@10", "p, nonconvex", "p, margin", "λ", "at w = w₀", "open", "seconds"]
        print(f"\n| {' | '.join(heads)} |\n|" + "---|" * len(heads))
        rows = {}
        for label, ranker in RANKERS.items():
            values, lams, opened, seconds, still = [], [], [], [], 0
            for train, validation, test in cuts:
                model, took = chosen(ranker, train, validation)
                values.append(evaluate(test, model.predict(test), "nDCG@10").per_query())
                lams.append(model.lam_)
                opened.append(model.certificate_.relative_gap)
                seconds.append(took)
                still += model.certificate_.at_start
            rows[label] = (np.concatenate(values), lams, max(opened), np.mean(seconds), still)
        ours = rows["margin, nonconvex"][0]
        for label, (values, lams, opened, seconds, still) in rows.items():
            told = "" if values is ours else f"{randomised(values, ours):.3f}"
            beside = label.replace("rescaled slack", "margin, convex")
            told += " | " + ("" if beside == label else f"{randomised(values, rows[beside][0]):.3f}")
            used = ", ".join(f"{lam:g}" for lam in lams)
            mean = np.nanmean(values)
            print(f"| {label} | {mean:.4f} | {told} | {used} | {still} | {opened:.1e} | {seconds:.1f} |", flush=True)


def randomised(one, other, draws=10_000):
    """Two-sided p of the paired randomisation test: signs of the differences drawn anew."""
    apart = (one - other)[~np.isnan(one - other)]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (draws, apart.size))
    return (1 + np.sum(np.abs(signs @ apart) >= abs(apart.sum()) - 1e-12)) / (draws + 1)


if __name__ == "__main__":
    main()
