"""A measure at k of learnt rankers, for every k, as the papers draw it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping

from rankopt.report.figures import Drawing, line_style, shortened

__all__ = ["measure_curves"]

AT = re.compile(r"(.*)@(\d+)")


def measure_curves(reached: Mapping[str, Mapping[str, float | None]], about: str) -> list[Drawing]:
    """One drawing for each measure that was taken at several cutoffs; `reached[ranker]["nDCG@10"]` is a mean."""
    curves: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for ranker, measures in reached.items():
        for name, value in measures.items():
            parts = AT.fullmatch(name)
            if parts and value is not None:
                curves[parts[1]][ranker][int(parts[2])] = value
    drawings = []
    for measure, rankers in curves.items():
        if max(map(len, rankers.values())) < 2:
            continue
        drawing = Drawing(f"{measure}@k", f"{about}: mean {measure}@k against k.")
        with drawing as axes:
            for place, (ranker, at) in enumerate(rankers.items()):
                cutoffs = sorted(at)
                means = [at[k] for k in cutoffs]
                axes.plot(cutoffs, means, marker="o", markersize=4, label=ranker, **line_style(place))
            axes.set_xlabel("k")
            axes.set_ylabel(shortened(f"{measure}@k"))
            axes.set_xticks(sorted({k for at in rankers.values() for k in at}))
        drawings.append(drawing)
    return drawings
