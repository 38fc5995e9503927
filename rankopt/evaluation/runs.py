"""Comparison of several runs on the same queries: means with intervals, and paired tests against the first.

Each other run is compared with the first by every measure; the p values of all tests are adjusted together by Holm's
method. If runs lack queries, a mean covers the queries of its run, and a test those that both have.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.arrays import check_type, each
from formulations.display import Axes, CompactReprMixin, data_frame
from rankopt.errors import DataError
from rankopt.evaluation.comparison import LEVEL, TEST_NAMES, Comparison, Test, compare, holm
from rankopt.evaluation.evaluation import Evaluation, IntervalBy
from rankopt.evaluation.export import Column, dots_of_means, latex_table, latex_text
from rankopt.measures.measure import Measure
from rankopt.measures.notation import parse


@dataclass(frozen=True, eq=False, repr=False)
class RunComparison(CompactReprMixin):
    """Runs by name and their comparisons with the first, the baseline.

    runs          name -> `Evaluation`, of the compared measures
    intervals     (name, measure) -> interval of the mean at level `confidence`, by "t" or "bootstrap"
    comparisons   (name, measure) -> `Comparison` with the baseline; p_holm: its adjusted p
    """

    runs: Mapping[str, Evaluation]
    intervals: Mapping[tuple[str, str], tuple[float, float]]
    comparisons: Mapping[tuple[str, str], Comparison]
    p_holm: Mapping[tuple[str, str], float]
    test: Test
    interval_method: IntervalBy
    confidence: float

    @property
    def baseline(self) -> str:
        return next(iter(self.runs))

    @property
    def measures(self) -> tuple[str, ...]:
        return tuple(map(repr, self.runs[self.baseline].measures))

    @property
    def note(self) -> str:
        """Convention, intervals and tests, in words."""
        by = "the bootstrap" if self.interval_method == "bootstrap" else "Student's t"
        text = f"convention {self.runs[self.baseline].convention.name}; {self.confidence:.0%} intervals by {by}"
        if not self.comparisons:
            return text
        return (
            f"{text}, of differences paired; p against {self.baseline} by {TEST_NAMES[self.test]}, two-sided, "
            f"raised by Holm for {len(self.comparisons)} test{'s' if len(self.comparisons) > 1 else ''}"
        )

    def rows(self) -> list[dict[str, Any]]:
        """One record per measure and run; entries that the baseline lacks are None."""
        found = []
        for measure in self.measures:
            for name, run in self.runs.items():
                low, high = self.intervals[name, measure]
                own = self.comparisons.get((name, measure))
                row = {"measure": measure, "run": name, "queries": run.n_evaluated(measure), "mean": run.mean(measure)}
                row["undefined"] = int(np.count_nonzero(~run.defined[run._row(measure)]))
                row |= {"low": low, "high": high, "difference": None, "difference_low": None, "difference_high": None}
                row |= {"paired_queries": None, "p": None, "p_holm": None}
                if own is not None:
                    row |= {"difference": own.difference, "paired_queries": own.queries, "p": own.p}
                    row |= dict(zip(("difference_low", "difference_high"), own.interval, strict=True))
                    row["p_holm"] = self.p_holm[name, measure]
                found.append(row)
        return found

    def as_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {
            "baseline": self.baseline, "convention": self.runs[self.baseline].convention.name, "test": self.test,
            "interval": self.interval_method, "confidence": self.confidence, "tests": len(self.comparisons),
            "rows": self.rows(),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """A pandas data frame, one row per measure and run."""
        return data_frame(self.rows())

    def to_latex(self, digits: int = 4) -> str:
        """A LaTeX table (booktabs), runs down and measures across: the best mean of a measure in bold, a dagger if
        the adjusted p against the baseline is below 0.05."""
        best = {one: max(round(run.mean(one), digits) for run in self.runs.values()) for one in self.measures}
        rows = []
        for name, run in self.runs.items():
            row = [latex_text(name)]
            for measure in self.measures:
                text = f"{run.mean(measure):.{digits}f}"
                text = rf"\textbf{{{text}}}" if round(run.mean(measure), digits) == best[measure] else text
                row.append(text + (r"$^\dagger$" if self.p_holm.get((name, measure), 1.0) < LEVEL else ""))
            rows.append(row)
        head = [Column("run", raw=True), *(Column(measure, raw=True) for measure in self.measures)]
        return latex_table(head, rows, f"{self.note}; dagger: p < {LEVEL:g}")

    def plot(self, axes: Axes | None = None) -> Axes:
        """Plot the means with their intervals, runs side by side."""
        drawn = {}
        for name, run in self.runs.items():
            means = np.array([run.mean(measure) for measure in self.measures])
            drawn[name] = (means, np.array([self.intervals[name, measure] for measure in self.measures]))
        by = "bootstrap" if self.interval_method == "bootstrap" else "t"
        return dots_of_means(self.measures, drawn, f"mean, {self.confidence:.0%} {by} interval", axes)

    def __str__(self) -> str:
        width = max(len("measure"), *map(len, self.measures))
        name_width = max(len("run"), *map(len, self.runs))
        inside = f"{self.confidence:.0%} interval"
        head = f"{'measure':{width}}  {'run':{name_width}}  queries    mean  {inside:>18}"
        if self.comparisons:
            head += f"  difference  {inside:>18}       p    Holm"
        lines, first = [head], {*self.runs[self.baseline].query_ids}
        apart = {name for name, run in self.runs.items() if {*run.query_ids} != first}
        for row in self.rows():
            low, high = row["low"], row["high"]
            spread = "-" if np.isnan(low) else f"[{low:.4f}, {high:.4f}]"
            count = f"{row['queries']}{'*' if row['run'] in apart else ''}"
            line = f"{row['measure']:{width}}  {row['run']:{name_width}}  {count:>7}  {row['mean']:6.4f}"
            line += f"  {spread:>18}"
            if row["difference"] is not None:
                low, high = row["difference_low"], row["difference_high"]
                line += f"  {row['difference']:+10.4f}  [{low:+.4f}, {high:+.4f}]"
                line += f"  {row['p']:6.4f}  {row['p_holm']:6.4f}"
            lines.append(line.rstrip())
        notes = dict.fromkeys(note for run in self.runs.values() for note in run.notes)
        other = "* mean over other queries than those of the first run: only the differences, over shared ones, compare"
        marked = [other] if apart else []
        return "\n".join([*lines, *marked, self.note, *notes])


def compare_runs(
    runs: Mapping[str, Evaluation],
    measures: str | Measure | Iterable[str | Measure] | None = None,
    *,
    test: Test = "randomization",
    interval: IntervalBy = "t",
    confidence: float = 0.95,
    resamples: int = 10_000,
    random_state: int = 0,
) -> RunComparison:
    """Compare evaluations by name with the first of them; measures: those to compare, by default all.

    Raises DataError if there are none, conventions differ, or two runs share fewer than two queries.
    """
    check_type("runs", runs, Mapping, error=DataError, cure="Pass {name: evaluation}.")
    for name, run in runs.items():
        check_type(f"run {name!r}", run, Evaluation, error=DataError, cure="Pass what `evaluate` returns.")
    if not runs:
        raise DataError("There are no runs to compare; pass evaluations by name.")
    first, *others = runs
    listed = (
        [measures]
        if isinstance(measures, str | Measure)
        else list(runs[first].measures if measures is None else each("measures", measures, DataError))
    )
    wanted = [parse(measure) for measure in listed]
    intervals = {
        (name, repr(m)): run.interval(
            m, by=interval, confidence=confidence, resamples=resamples, random_state=random_state
        )
        for name, run in runs.items()
        for m in wanted
    }
    comparisons = {}
    for other in others:
        theirs = set(runs[other].query_ids)
        common = [query for query in runs[first].query_ids if query in theirs]
        if len(common) < 2:
            raise DataError(
                f"{other} and {first} have {len(common)} queries in common, and a test needs two; see their ids."
            )
        a, b = runs[other].for_queries(common), runs[first].for_queries(common)
        for m in wanted:
            comparisons[other, repr(m)] = compare(
                a, b, measure=m, test=test, interval=interval, confidence=confidence, resamples=resamples,
                random_state=random_state,
            )  # fmt: skip
    raised = holm([one.p for one in comparisons.values()]).tolist() if comparisons else []
    restricted = {name: run.select(wanted) for name, run in runs.items()}
    return RunComparison(
        restricted, intervals, comparisons, dict(zip(comparisons, raised, strict=True)), test, interval, confidence
    )
