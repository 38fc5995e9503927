"""Which criterion to train [paper 4], and the smoothed measure.

In the tables of paper 4 documents are relevant or not (grade above 0), a third of the training queries is left out to
choose λ by the criterion that is trained, and queries without relevant documents are left out of the means.
p: paired randomization test over the test queries of all splits against the first row.
"""

from __future__ import annotations

import numpy as np

from benchmarks.cases import Run, case, least, ndcg, p_value, table, timed
from benchmarks.data import Split, folds, mq2008, ohsumed_fold, set_names, splits
from formulations.parallel import at_most
from rankopt.data import Queries
from rankopt.losses.smooth import SmoothedRegret
from rankopt.measures import evaluate
from rankopt.optimize.certificate import Stop
from rankopt.rankers import LargeMarginRanker, RegressionRanker, SmoothRanker
from rankopt.rankers.starts import unit_of
from rankopt.scorers.linear import Linear, linear_scores, parts_of

BOTH = ("MQ2008", "OHSUMED")
TESTS = ("AUC", "AP", "RR", "nDCG@10")
MIX = "AP + nDCG@10 + RR"
CRITERIA = (
    *((measure, "pairwise") for measure in ("AUC", "AP", "RR")), ("RR", "first-relevant"), ("nDCG@10", "pairwise"),
    ("nDCG", "pairwise"), (MIX, "pairwise"), (f"({MIX})(slack='shared')", "pairwise"),
    *((measure, "positional") for measure in ("AP", "RR", "nDCG@10", MIX)),
)  # fmt: skip


def binary_splits(name: str) -> list[Split]:
    def binary(queries: Queries) -> Queries:
        return queries.replace(relevance=(queries.relevance > 0).astype(float))

    return [Split(binary(split.train), binary(split.test)) for split in splits(name)]


@case()
def criteria(run: Run) -> None:
    """Test measures of every trained criterion, feature map and bound, λ chosen inside [paper 4, Figures 7 and 9]."""
    rows = [(m, f, bound) for bound in ("convex", "nonconvex") for m, f in CRITERIA]
    for name in set_names(run, BOTH):
        cut = binary_splits(name)
        print(f"\n{name}, relevant or not, {sum(len(split.test) for split in cut)} test queries")
        row = table("trained", "map", "bound", *TESTS, "λ", "at w0", "seconds")

        def fitted(measure: str, feature_map: str, bound: str, cut: list[Split] = cut) -> tuple[list, list, int]:
            values, lams, idle = [], [], 0
            for split in cut:
                if measure == "ridge":
                    own = RegressionRanker().fit(split.train)
                else:
                    inner = next(folds(split.train, 3))
                    own = LargeMarginRanker(measure, feature_map=feature_map, bound=bound, max_iter=300)
                    natural = own.objective(inner.train).lam
                    path = own.path(inner.train, lams=[size * natural for size in (10.0, 1.0, 0.1, 0.01)])
                    best = max(path.models, key=lambda model: model.score(inner.test)).lam_ / natural
                    lams.append(f"{best:g}")
                    own.lam = best * own.objective(split.train).lam
                    idle += own.fit(split.train).certificate_.at_start
                values.append(evaluate(split.test, own.predict(split.test.features), TESTS).values)
            found = np.concatenate(values, axis=1)
            return found[:, ~np.isnan(found).any(axis=0)].tolist(), lams, int(idle)

        first = None
        for key in [("ridge", "", ""), *run.size(rows, rows[:2])]:
            (values, lams, idle), seconds = run.results.timed(lambda key=key: fitted(*key), "criteria", name, *key)
            first = first or values
            marks = [p_value(own, other) for own, other in zip(values, first, strict=True)]
            cells = [f"{np.mean(own):.4f}" + (f" (p {p})" if p else "") for own, p in zip(values, marks, strict=True)]
            row(*key, *cells, ", ".join(lams), idle, f"{seconds:.0f}")


@case()
def strength(run: Run) -> None:
    """Mean slack, ‖w‖ and training nDCG@10 of the convex bounds along λ, first split [paper 4, Figures 4 to 6]."""
    sizes = run.size((1e3, 1e2, 10.0, 1.0, 0.1, 0.01, 1e-3), (10.0, 1.0))
    for name in set_names(run, BOTH):
        queries = binary_splits(name)[0].train
        print(f"\n{name}, λ in units of the natural one; ! where the gap was not closed")
        row = table("trained", "map", *(f"λ = {size:g}" for size in sizes))
        for measure, feature_map in run.size(CRITERIA, CRITERIA[:2]):
            own = LargeMarginRanker(measure, feature_map=feature_map, bound="convex", max_iter=300)
            natural, cells = own.objective(queries).lam, []
            for model in own.path(queries, lams=[size * natural for size in sizes]).models:
                length = float(np.linalg.norm(model.coef_))
                slack = model.certificate_.primal - model.lam_ / 2 * length**2
                value = evaluate(queries, model.predict(queries.features), "nDCG@10").mean()
                mark = "" if model.certificate_.stop is Stop.GAP else "!"
                cells.append(f"{slack:.3f}{mark}, {length:.2g}, {value:.3f}")
            row(measure, feature_map, *cells)


@case()
def start(run: Run) -> None:
    """RR over the first relevant document from the ridge with margins of 1, or of 1 / f; before and after training."""
    row = table("data", "margins of w0", "λ / natural", "‖w - w₀‖ / ‖w₀‖", "RR, training", "RR, test")
    options = {"feature_map": "first-relevant"}
    for name in set_names(run, ("digits", "Les Miserables", *BOTH)):
        cut = [(split, LargeMarginRanker("RR", **options).objective(split.train)) for split in binary_splits(name)]
        for inward in (False, True):
            for size in run.size((0.1, 0.5, 1.0, 10.0), (1.0,)):
                rows = []
                for split, own in cut:
                    w0 = own.w0 / np.sqrt(unit_of(own.risk.shards)) if inward else own.w0
                    w = LargeMarginRanker("RR", **options, w0=w0, lam=size * own.lam).fit(split.train).coef_
                    rows.append([
                        np.linalg.norm(w - w0) / np.linalg.norm(w0),
                        *(np.nanmean(evaluate(part, part.features @ v, "RR").values)
                          for part in (split.train, split.test) for v in (w0, w)),
                    ])  # fmt: skip
                moved, *before_after = np.mean(rows, axis=0)
                cells = (f"{a:.3f} to {b:.3f}" for a, b in zip(before_after[::2], before_after[1::2], strict=True))
                row(name, "1 / f" if inward else "1", f"{size:g}", f"{moved:.2g}", *cells)


# The smoothed measure.

LONG = (4.0, 2.0, 1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125)
MARGIN = "LargeMarginRanker()"


def faint(queries: Queries, **options: object) -> SmoothRanker:
    """All bandwidths, a hundredth of the natural λ."""
    own = SmoothRanker(bandwidths=LONG, **options)
    return own.set_params(lam=0.01 * own.objective(queries).lam)


LEARNERS = {
    "ridge, the start": lambda train: RegressionRanker(),
    MARGIN: lambda train: LargeMarginRanker(),
    "SmoothRanker()": lambda train: SmoothRanker(),
    "bandwidths=4 ... 1/32": lambda train: SmoothRanker(bandwidths=LONG),
    "bandwidths=4 ... 1/32, lam=0.01 scale": faint,
    'bandwidths=4 ... 1/32, lam=0.01 scale, method="CG"': lambda train: faint(train, method="CG"),
}


def values(queries: Queries, w: np.ndarray) -> np.ndarray:
    return ndcg(queries, linear_scores(queries.features, w))


@case()
def smooth(run: Run) -> None:
    """SmoothRanker: training and test nDCG@10, p against LargeMarginRanker(), seconds by its."""
    for name in set_names(run, BOTH):
        row, rows, cut = table(name, "training", "test", "p", "time"), {}, splits(name)
        for label, make in LEARNERS.items():
            fits = [timed(lambda make=make, cut=cut: [make(split.train).fit(split.train) for split in cut])
                    for _ in range(run.size(4, 1))]  # fmt: skip
            models, seconds = fits[0][0], min(time for _, time in fits)
            train = np.mean([values(s.train, m.coef_).mean() for m, s in zip(models, cut, strict=True)])
            test = np.concatenate([values(s.test, m.coef_) for m, s in zip(models, cut, strict=True)])
            rows[label] = train, test, seconds
        for label, (train, test, seconds) in rows.items():
            p = p_value(test, rows[MARGIN][1])
            row(label, f"{train:.4f}", f"{test.mean():.4f}", p, f"{seconds / rows[MARGIN][2]:.2f}")


@case()
def bandwidths(run: Run) -> None:
    """SmoothRanker on validation queries: w at the end of each bandwidth, by λ; schedules. No test query is seen."""
    schedules = {
        "SmoothRanker()": {}, "max_iter=20": {"max_iter": 20}, "max_iter=80": {"max_iter": 80},
        "bandwidths=[4, 2, 1, 1/2, 1/4]": {"bandwidths": LONG[:5]}, "bandwidths=[1/2]": {"bandwidths": LONG[3:4]},
        'method="CG"': {"method": "CG"},
    }  # fmt: skip
    for name in set_names(run, BOTH):
        if name == "MQ2008":
            parts = mq2008()
            pairs = [(one, other) for one in parts for other in parts if one is not other]
        elif name == "OHSUMED":
            pairs = [tuple(ohsumed_fold(fold, "train", "vali")) for fold in range(1, 6)]
        else:
            pairs = [(inner.train, inner.test) for inner in folds(splits(name)[0].train, 2)]
        row = table(f"{name}, validation (training)", *(f"σ = {sigma:g}" for sigma in LONG))
        for factor in run.size((10.0, 3.0, 1.0, 0.3, 0.1, 0.01), (1.0,)):
            ends = []
            for train, validation in pairs:
                reached: dict[float, np.ndarray] = {}
                record = [lambda step, at, reached=reached: reached.update({step.sigma: at.w})]
                own = SmoothRanker(bandwidths=LONG, callbacks=record)
                own.set_params(lam=factor * own.objective(train).lam).fit(train)
                last, line = own.w0_, []
                for sigma in LONG:
                    last = reached.get(sigma, last)
                    line.append((values(validation, last).mean(), values(train, last).mean()))
                ends.append(line)
            row(f"λ = {factor:g} scale", *(f"{one:.4f} ({other:.4f})" for one, other in np.mean(ends, axis=0)))
        own = {"ridge": RegressionRanker, MARGIN: LargeMarginRanker}
        own |= {said: lambda options=options: SmoothRanker(**options) for said, options in schedules.items()}
        judged = {
            said: np.mean([values(v, make().fit(t).coef_).mean() for t, v in pairs]) for said, make in own.items()
        }
        print("\n" + "; ".join(f"`{said}` {value:.4f}" for said, value in judged.items()))


@case()
def smooth_step(run: Run) -> None:
    """Nanoseconds a document of one value and gradient of the smoothed measure, compiled and by NumPy; one thread."""
    rng, offsets = np.random.default_rng(0), np.arange(run.size(400, 20) + 1) * 120
    total, rounds = offsets[-1], run.size(9, 2)
    relevance, scores = rng.integers(0, 5, total).astype(float), rng.normal(size=total)
    linear, w, numbers = (
        Linear(rng.normal(size=(total, 136)), np.arange(total)),
        rng.normal(size=136),
        rng.random(10 * total),
    )
    jobs = {
        "two products with 136 features": lambda: (
            linear.scores(w, 0, total), linear.pull((scores,), parts_of(offsets))
        ),
        "np.exp of 10 numbers": lambda: np.exp(-numbers),
    }  # fmt: skip
    for measure in ("nDCG@10", "nDCG@5"):
        for small, how in ((False, "compiled"), (True, "NumPy")):
            loss = SmoothedRegret(relevance, offsets, measure, small=small)
            for sigma in (4.0, 0.25, 0.03125):
                jobs[f"{measure}, σ = {sigma:g}, {how}"] = lambda loss=loss, s=sigma: loss.gradient(scores, s)
    row = table("one step, a document", "ns")
    with at_most(1):
        for job in jobs.values():
            job()
        for name, seconds in zip(jobs, least(rounds, *jobs.values()), strict=True):
            row(name, f"{1e9 * seconds / total:.0f}")
