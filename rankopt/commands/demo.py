"""`rankopt demo`: training, comparison and solver swap on a bundled dataset."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from rankopt.commands.input_output import as_given, as_json, table, waiting, write_report
from rankopt.commands.options import Command, OutputPath, json_option, report_option

if TYPE_CHECKING:
    from rankopt.data.queries import Queries
    from rankopt.data.samples import Sample, SampleName
    from rankopt.rankers.large_margin import LargeMarginRanker

SAMPLES: dict[SampleName, str] = {
    "les-miserables": "Each character is a query, the others are its documents, graded 0 to 4 by shared chapters.",
    "digits": "Each query is a handwritten digit, its documents are images, graded 0 to 4 by likeness.",
}
ARGMAX = ("exact", "scipy", "ortools", "highs")
MASTERS = ("active_set", "qpsolvers:piqp", "cvxpy:CLARABEL")


@click.command(cls=Command)
@click.option("--output", default="rankopt-demo", type=OutputPath(folder=True, made=True), help="Folder of results.")
@report_option
@json_option
def demo(output: str, report: str | None, json_: bool) -> None:
    """Train on two bundled datasets, compare rankers, show the gap closing, and swap solvers.

    \b
    rankopt demo --report demo.html
    """
    from rankopt.data import load_sample
    from rankopt.report.demo_page import SHOWN, page_of_demo

    began = perf_counter()
    folder = Path(output)
    folder.mkdir(parents=True, exist_ok=True)
    samples = {name: load_sample(name) for name in SAMPLES}
    sample = samples["les-miserables"]
    echo = _silent if json_ else _print
    with waiting("training four rankers on each dataset ..."):
        trained, found, finding = _compare(samples, echo)
    rankers = trained["les-miserables"]
    _gap(rankers["large margin, convex"], echo)
    with waiting("training through every pair of argmax and master solver ..."):
        swapped = _train_all_pairs(sample.train, echo)
    written = _write_files(folder, rankers, sample.test)
    if report is not None:
        write_report(report, page_of_demo(trained, found, swapped, as_given()))
    echo("Written")
    for path, what in written.items():
        echo(f"  {path}  {what}", head=False)
    echo(f"\n{perf_counter() - began:.0f} seconds in all.", head=False)
    if json_:
        swaps = [
            {"argmax": argmax, "master": master, "objective": r.certificate_.primal, "bound": r.certificate_.bound}
            for (argmax, master), r in swapped.items()
        ]
        test = {
            sample: {name: {one: run.mean(one) for one in SHOWN} for name, run in own.items()}
            for sample, own in found.items()
        }
        seconds = perf_counter() - began
        as_json({"finding": finding, "test": test, "swap": swaps, "written": list(written), "seconds": seconds})


def _print(text: str, head: bool = True) -> None:
    click.secho(text, bold=head)


def _silent(text: str, head: bool = True) -> None:
    pass


def _compare(samples: Mapping[SampleName, Sample], echo: Any) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Two large-margin rankers and two baselines with default parameters on each sample: evaluations and finding.

    Features have another scale for each query, so they are normalized within it.
    """
    from rankopt.measures import evaluate
    from rankopt.rankers import LargeMarginRanker, PairwiseRanker, RegressionRanker
    from rankopt.report.demo_page import MEASURE, MEASURES, SHOWN, finding_of_demo

    rankers: dict[str, Any] = {}
    found: dict[str, Any] = {}
    for sample, data in samples.items():
        rankers[sample] = {
            "ridge": RegressionRanker(normalize="zscore"),
            "RankSVM": PairwiseRanker(normalize="zscore"),
            "large margin, convex": LargeMarginRanker(bound="convex", normalize="zscore"),
            "large margin, nonconvex": LargeMarginRanker(bound="nonconvex", normalize="zscore"),
        }
        own = found[sample] = {
            name: evaluate(data.test, ranker.fit(data.train).predict(data.test), MEASURES)
            for name, ranker in rankers[sample].items()
        }
        echo(f"{sample}: {len(data.train)} training and {len(data.test)} test queries")
        echo(f"{SAMPLES[sample]} Default parameters, features normalized within the query.", head=False)
        if echo is _print:
            rows = [
                [name, *(f"{own[name].mean(one):.4f}" for one in SHOWN), *_proof(rankers[sample][name])]
                for name in sorted(own, key=lambda name: -own[name].mean(MEASURE))
            ]
            table(["ranker", *SHOWN, "lam", "objective", "proven bound", "gap is to"], rows)
            click.echo()
    finding = finding_of_demo(rankers, found)
    echo(f"{finding}\n")
    return rankers, found, finding


def _proof(ranker: Any) -> list[str]:
    if not hasattr(ranker, "certificate_"):
        return ["-", "-", "-", "-"]
    proved = ranker.certificate_
    target = "the optimum" if proved.kind == "global" else "the next step"
    return [f"{ranker.lam_:.3g}", f"{proved.primal:.5f}", f"{proved.bound:.5f}", target]


def _gap(ranker: LargeMarginRanker, echo: Any) -> None:
    """Print the best objective and the proven bound by step."""
    history = ranker.history_
    echo("The gap closing (les-miserables, convex bound): the optimum is proven to lie between the two")
    if echo is not _print:
        return
    steps = sorted({1, 2, 5, 10, 20, 50, 100, 200, 500, len(history)})
    rows = [history[i - 1] for i in steps if i <= len(history)]
    table(
        ["step", "proven bound", "objective", "gap"],
        [[row.step, f"{row.bound:.5f}", f"{row.primal:.5f}", f"{row.primal - row.bound:.5f}"] for row in rows],
    )
    click.echo()


def _train_all_pairs(train: Queries, echo: Any) -> dict[tuple[str, str], LargeMarginRanker]:
    """Train with every pair of argmax and master solver; all must reach the same objective."""
    from rankopt.rankers import LargeMarginRanker

    few = train.select(range(8))
    cells: dict[tuple[str, str], LargeMarginRanker] = {}
    for argmax in ARGMAX:
        for master in MASTERS:
            ranker = LargeMarginRanker(
                "nDCG@5", bound="convex", position_weights="linear", lam=1.0, argmax_solver=argmax, master_solver=master
            )
            cells[argmax, master] = ranker.fit(few)
    best = min(ranker.certificate_.primal for ranker in cells.values())
    agree = all(ranker.certificate_.bound <= best for ranker in cells.values())
    echo(f"Solvers swapped on {len(few)} queries: argmax by rows, master by columns, objective ± gap")
    if echo is _print:
        rows = []
        for argmax in ARGMAX:
            found = [cells[argmax, master].certificate_ for master in MASTERS]
            rows.append([argmax, *(f"{proved.primal:.5f} ± {proved.gap:.5f}" for proved in found)])
        table(["", *MASTERS], rows)
        click.echo("All agree: every proven bound is below every objective.\n" if agree else "They do not agree.\n")
    if not agree:
        raise click.exceptions.Exit(1)
    return cells


def _write_files(folder: Path, rankers: dict[str, Any], test: Queries) -> dict[Path, str]:
    """Save the models, a picture of the gap and the test queries with their ranking."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    written = {}
    for axis, bound in zip(axes, ("convex", "nonconvex"), strict=True):
        ranker = rankers[f"large margin, {bound}"]
        ranker.history_.plot(axis)
        axis.set_title(f"{bound} bound, λ = {ranker.lam_:g}")
        path = folder / f"{bound}.rankopt"
        ranker.save(path)
        written[path] = f"the {bound} model, for `rankopt predict` and `load_model`"
    figure.savefig(folder / "gap.png", dpi=150)
    plt.close(figure)
    written[folder / "gap.png"] = "objective and proven bound, step by step"
    ranked = rankers["large margin, nonconvex"].rank(test, k=10)
    lines = [f"{query}: {', '.join(map(str, documents))}" for query, documents in ranked.items()]
    (folder / "rankings.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    written[folder / "rankings.txt"] = "the ten characters ranked first for each test character"
    return written
