"""What `rankopt train --ranker` can train: a table, and which options of the command each of its rankers takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

__all__ = ["RANKERS", "Kind", "check_taken", "given_options"]

RUN = ("lam", "tol", "max_iter", "time_limit", "engine", "n_jobs", "checkpoint", "every")
"""Options of rankers that are trained step by step."""

PLANES = (*RUN, "w0", "loss", "penalty", "master", "method")
"""Options of rankers that are trained to a proven gap."""

PROVED = {"objective": "primal", "bound": "bound", "gap": "gap", "relative_gap": "relative_gap"}
"""What such a ranker proves: what the report calls it, and the certificate."""


class Kind(NamedTuple):
    """A ranker of `rankopt.rankers` by its name there, and the options that it takes.

    told: which numbers of its certificate are reported, what the report calls them and what the certificate does; a
    ranker without such is fitted once. lam: λ where none is given.
    """

    ranker: str
    takes: tuple[str, ...]
    told: Mapping[str, str] | None = None
    lam: float | str = "scale"


RANKERS = {
    "margin": Kind("LargeMarginRanker", (*PLANES, "map", "bound", "decay", "argmax"), PROVED),
    "pairwise": Kind("PairwiseRanker", tuple(name for name in PLANES if name != "loss"), PROVED, 1e-2),
    "smooth": Kind(
        "SmoothRanker", (*RUN, "w0", "sigmas"), {"objective": "primal", "gradient": "gradient", "measure": "measure"}
    ),
    "direct": Kind("DirectRanker", ("tol", "max_iter", "time_limit", "engine", "n_jobs")),
    "direct-trees": Kind("DirectBoostedRanker", ("time_limit", "engine", "n_jobs")),
    "regression": Kind("RegressionRanker", ()),
    "boosted": Kind("BoostedRanker", ("map", "bound", "decay", "n_jobs")),
    "mcrank": Kind("McRanker", ("expected",)),
}
"""Every ranker of the command, by what it is called there."""

ALWAYS = ("train_file", "model", "validate", "measure", "normalize", "unjudged", "json_", "ranker")
"""Options that every ranker takes, or that are about files and output."""


def check_taken(context: click.Context, name: str) -> None:
    """A usage error for an option of the command line that the ranker of this name does not take."""
    for option in context.command.params:
        if option.name in ALWAYS or option.name in RANKERS[name].takes:
            continue
        if context.get_parameter_source(str(option.name)) is ParameterSource.COMMANDLINE:
            others = " and ".join(other for other, kind in RANKERS.items() if option.name in kind.takes)
            raise click.UsageError(f"{option.opts[0]} is an option of --ranker {others}, not of {name}")


def given_options(context: click.Context, name: str) -> dict[str, Any]:
    """The options of the ranker that stand on the command line; where none does, the ranker keeps its own default."""
    taken = ("measure", "normalize", *RANKERS[name].takes)
    return {
        option: value
        for option, value in context.params.items()
        if option in taken and context.get_parameter_source(option) is ParameterSource.COMMANDLINE
    }
