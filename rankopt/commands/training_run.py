"""A training run as data: what `rankopt train` was told, so that `rankopt resume` can take it up again.

What `rankopt train --ranker` can train: a table, and which options of the command each of its rankers takes.

Where a training writes its model, and what it may replace there.

What `rankopt train` says of its fits.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from click.core import ParameterSource

from rankopt.commands.input_output import as_json, queries_at, table
from rankopt.errors import BelowStart, Interrupted, OptionError
from rankopt.rankers import STRENGTHS

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

RUN = ("lam", "tol", "max_iter", "time_limit", "engine", "n_jobs", "checkpoint", "every")
"""Options of rankers that are trained step by step."""

PLANES = (*RUN, "w0", "loss", "penalty", "master", "method")
"""Options of rankers that are trained to a proven gap."""

PROVED = {"objective": "primal", "bound": "bound", "gap": "gap", "relative_gap": "relative_gap"}
"""What such a ranker proves: what the report calls it, and the certificate."""


class Kind(NamedTuple):
    """A ranker of `rankopt.rankers.MODEL_CLASSES` by its name there, and the options that it takes.

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
    "direct-trees": Kind("DirectBoostedRanker", ("time_limit", "n_jobs")),
    "regression": Kind("RegressionRanker", ()),
    "boosted": Kind("BoostedRanker", ("map", "bound", "decay", "n_jobs")),
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


NOTES = "models.sha256"
"""A file beside `training.json`: the digests of files that this training may replace by its model."""


def destination(folder: Path, begun: str, given: str | None, yes: bool) -> str:
    """Where a training that is resumed from `folder` writes its model: where it is `given`, else where it was begun if
    that is beside the folder, else beside it under the same name.

    Asks before it replaces what the training neither wrote nor was begun with; a usage error where nobody can answer.
    """
    beside = Path(os.path.abspath(folder)).parent
    chosen = Path(os.path.abspath(given)) if given is not None else beside / Path(begun).name
    if given is None and chosen != Path(begun):
        click.echo(
            f"the model is written to {chosen}: {begun} is not beside {folder}, and --model names no file", err=True
        )
    if yes or not os.path.lexists(chosen) or known(folder, chosen):
        return str(chosen)
    what = f"{chosen} (a link to {os.path.realpath(chosen)})" if chosen.is_symlink() else str(chosen)
    question = f"{what} is there, and this training did not write it. Replace it?"
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort:
        raise OptionError(f"{what} is there, and this training did not write it; say --model FILE, or --yes") from None
    return str(chosen)


def note(folder: Path, model: Path) -> None:
    """Write down that the training of this folder may replace the file that is the model now, if there is one."""
    from rankopt.persistence.archive import write_whole

    digest = _digest(model)
    if digest is None or digest in _noted(folder):
        return
    try:
        write_whole(folder / NOTES, "".join(f"{line}\n" for line in [*_noted(folder), digest]).encode(), links=False)
    except OSError as error:
        raise OptionError(f"--checkpoint {folder} cannot be written to ({error}); give another folder") from error


def known(folder: Path, model: Path) -> bool:
    """Whether a file is one that the training of this folder may replace; a link never is."""
    return not model.is_symlink() and _digest(model) in _noted(folder)


def _digest(file: Path) -> str | None:
    if not file.is_file():  # a pipe or a device may have no end
        return None
    try:
        with open(file, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return None


def _noted(folder: Path) -> list[str]:
    try:
        with open(folder / NOTES, encoding="ascii") as opened:
            return opened.read(1 << 16).split()
    except (OSError, ValueError):
        return []


FORMATS = {"objective": ".6f", "bound": ".6f", "gap": ".1e", "gradient": ".1e", "measure": ".4f"}
"""How numbers of a certificate are printed, and which: others are in the JSON alone."""


def report(rows: list[dict[str, Any]], chosen: dict[str, Any], measure: str, margin: bool) -> None:
    """Print a line for each fit, which was chosen, and what may be done. margin: whether a bound was trained."""
    from rankopt.optimize.certificate import Stop

    more = [name for name in ("decay", "features") if name in chosen]
    told = [name for name in FORMATS if name in chosen]
    heads = {"measure": f"{measure} in training"}
    table(
        ["lam", *more, *(heads.get(name, name) for name in told), "kind", "steps", "seconds",
         f"{measure} on validation", ""],
        [
            [
                f"{row['lam']:g}",
                *(str(row[name]) for name in more),
                *(format(row[name], FORMATS[name]) for name in told),
                row["kind"],
                row["steps"],
                f"{row['seconds']:.1f}",
                "-" if row["validation"] is None else f"{row['validation']:.4f}",
                "chosen" if row is chosen and len(rows) > 1 else "",
            ]
            for row in rows
        ],
    )  # fmt: skip
    if chosen["below_start"]:
        click.echo(
            "The start w0 ranks the training queries better: try a larger --lam"
            + (", or another --bound or --decay" if margin else "")
            + "; --validate may choose w0 itself."
        )
    if chosen["at_start"] and chosen["stop"] == Stop.GAP:
        click.echo(
            "Nothing better than w0 was found: try a smaller --lam"
            + (", --bound nonconvex, or a --decay cut at the measure's k." if margin else ".")
        )
    if chosen["stop"] not in (Stop.GAP, Stop.ANNEALED):
        click.echo(f"Training ended because {chosen['stop']}.")


MANIFEST = "training.json"
OF_THE_RUN = ("max_iter", "time_limit", "engine", "n_jobs")
"""Options that may be others when a training goes on."""

OPTIONS = (
    "measure", "map", "bound", "loss", "decay", "normalize", "w0", "argmax", "master", "method", "penalty", "tol",
    "sigmas", *OF_THE_RUN,
)  # fmt: skip
"""Options of a ranker that the command has: what else a file names is not ours."""

MARGIN = ("map", "bound", "decay", "argmax")
"""Options that are of the bounds of a measure's regret alone."""

LIMIT = 1 << 20
"""Bytes that the file of a training may have."""


@dataclass(frozen=True)
class Training:
    """Files, the values of λ to choose from, and options of the ranker. every: seconds between two checkpoints. decay:
    those to choose from, where there are several. ranker: of `training_rankers.RANKERS`."""

    train_file: str
    model: str
    validate: str | None
    lam: tuple[float | str, ...]
    unjudged: float | None
    every: float
    options: dict[str, Any]
    decay: tuple[str, ...] = ()
    ranker: str = "margin"

    @classmethod
    def kept(cls, folder: Path) -> Training:
        """The training that keeps its checkpoints in this folder."""
        try:
            with open(folder / MANIFEST, "rb") as file:
                content = file.read(LIMIT + 1)
        except FileNotFoundError:
            told = f"{folder} holds no training; begin one by `rankopt train --checkpoint {folder}`"
            raise OptionError(told) from None
        except OSError as error:
            raise OptionError(f"{folder / MANIFEST} cannot be read ({error})") from error
        try:
            if len(content) > LIMIT:
                raise ValueError(f"it has more than {LIMIT} bytes")
            known = json.loads(content)
            training = cls(**{**known, "lam": tuple(known["lam"]), "decay": tuple(known.get("decay", ()))})
            training._check()
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            told = f"{folder / MANIFEST} is not what `rankopt train` writes ({error}); begin anew in another folder"
            raise OptionError(told) from error
        return training

    def _check(self) -> None:
        """Raise ValueError where a value is none that a training has."""
        for file in (self.train_file, self.model, self.train_file if self.validate is None else self.validate):
            if not isinstance(file, str) or "\0" in file or Path(file).name in ("", ".."):
                raise ValueError(f"{str(file)[:80]!r} is no file")
            os.fsencode(file)
        if not self.lam:
            raise ValueError("lam is empty")
        numbers = [lam for lam in self.lam if not isinstance(lam, str) or lam not in STRENGTHS]
        for number in (*numbers, self.every, 0.0 if self.unjudged is None else self.unjudged):
            if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < math.inf:
                raise ValueError(f"{str(number)[:80]!r} is no number")
        if not isinstance(self.options, dict) or "measure" not in self.options:
            raise ValueError("options name no measure")
        if self.ranker not in RANKERS or RANKERS[self.ranker].told is None:
            raise ValueError(f"{str(self.ranker)[:80]!r} is no ranker that is taken up again")
        ours = {"measure", "normalize"} | {*OPTIONS} & {*RANKERS[self.ranker].takes}
        ours -= set() if self.options.get("loss") is None else {*MARGIN}
        if not all(isinstance(decay, str) for decay in self.decay) or (self.decay and "decay" not in ours):
            raise ValueError("decay is no list of decays, or of a ranker that has none")
        for name, value in self.options.items():
            listed = name == "sigmas" and isinstance(value, list) and all(isinstance(one, float) for one in value)
            if name not in ours or not (listed or isinstance(value, str | int | float | None)):
                raise ValueError(f"{name[:80]!r} = {str(value)[:80]!r} is no option of it")

    def with_options(self, **options: Any) -> Training:
        """The same with other options, where they are given."""
        given = {name: value for name, value in options.items() if value is not None}
        return replace(self, options={**self.options, **given})

    def run(self, json_: bool, checkpoint: Path | None) -> None:
        """Fit a ranker for each λ, each by itself and with a checkpoint of its own, save the best and report.

        Raises OptionError where another process has the checkpoint's folder now.
        """
        folder = Path(self.model).parent
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise click.UsageError(f"--model {self.model}: the folder {folder} does not exist or cannot be written to")
        if checkpoint is None:
            self._run(json_, None)
            return
        from rankopt.rankers import Checkpoint

        with Checkpoint(str(checkpoint), self.every).claimed():
            self._keep(checkpoint)
            self._run(json_, checkpoint)

    def _run(self, json_: bool, checkpoint: Path | None) -> None:
        queries = queries_at(self.train_file, unjudged=self.unjudged)
        validation = None
        if self.validate is not None:
            validation = queries_at(self.validate, unjudged=self.unjudged, n_features=queries.n_features)
        rows, best, interrupted = [], None, False
        for number, (decay, value) in enumerate(product(self.decay or (None,), self.lam)):
            kept = None if checkpoint is None else checkpoint / f"lam{number}"
            if kept is not None and kept.is_symlink():
                raise OptionError(f"{kept} is a link; a training keeps its checkpoints in folders of its own")
            try:
                ranker, row, interrupted = self._fitted(queries, validation, value, decay, not json_, kept)
            except KeyboardInterrupt:  # before this λ had a step: those before it are kept
                if best is None:
                    raise
                interrupted = True
                break
            rows.append(row)
            if best is None or (row["validation"] or 0.0) > (best[1]["validation"] or 0.0):
                best = (ranker, row)
            if interrupted:
                break
        assert best is not None
        best[0].save(self.model)
        if checkpoint is not None:
            note(checkpoint, Path(self.model))
        if json_:
            as_json({"model": self.model, "chosen": best[1], "tried": rows, "interrupted": interrupted})
        else:
            margin = self.ranker == "margin" and self.options.get("loss") is None
            report(rows, best[1], str(self.options["measure"]), margin)
            click.echo(f"wrote {self.model}")
        if interrupted:
            if checkpoint is not None:
                click.echo(f"to go on: rankopt resume {checkpoint}", err=True)
            raise KeyboardInterrupt

    def _keep(self, folder: Path) -> None:
        """Write down what this training is; OptionError where the folder is of another."""
        from rankopt.persistence.archive import write_whole

        begun = any(folder.glob("lam*/standing*.zip"))
        if begun and Training.kept(folder)._problem() != self._problem():
            raise OptionError(
                f"--checkpoint {folder} is of another training: `rankopt resume {folder}` goes on with that, or choose "
                "another folder"
            )
        note(folder, Path(self.model))
        try:
            write_whole(folder / MANIFEST, json.dumps(asdict(self), indent=1).encode(), links=False)
        except OSError as error:
            raise OptionError(f"--checkpoint {folder} cannot be written to ({error}); give another folder") from error

    def _problem(self) -> dict[str, Any]:
        """What leads to the model: all but limits and who computes."""
        given = {name: value for name, value in self.options.items() if value is not None}
        options = {name: value for name, value in given.items() if name not in OF_THE_RUN}
        return {**asdict(self), "options": options, "model": None, "every": None}

    def _fitted(
        self,
        queries: Queries,
        validation: Queries | None,
        lam: float | str,
        decay: str | None,
        talk: bool,
        kept: Path | None,
    ) -> tuple[Any, dict[str, Any], bool]:
        """The ranker fitted with this λ and this decay, its line of the report, and whether it was interrupted."""
        import warnings

        import rankopt.rankers

        options: dict[str, Any] = {name: value for name, value in self.options.items() if value is not None}
        options |= {"lam": lam, "verbose": int(talk)} | ({} if decay is None else {"decay": decay})
        options["checkpoint"] = None if kept is None else rankopt.rankers.Checkpoint(str(kept), self.every)
        kind = RANKERS[self.ranker]
        made = getattr(rankopt.rankers, "LossRanker" if "loss" in options else kind.ranker)
        ranker: Any = made(**options)
        began, interrupted = perf_counter(), False
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")  # the report says how each run stopped
            try:
                ranker.fit(queries, eval_set=validation)
            except Interrupted:
                interrupted = True
        proved = ranker.certificate_
        row = {
            "lam": getattr(ranker, "lam_", lam),
            **({} if decay is None else {"decay": decay}),
            **({"features": int(ranker.get_support().sum())} if options.get("penalty") == "l1" else {}),
            "kind": proved.kind,
            **{name: getattr(proved, told_as) for name, told_as in (kind.told or {}).items()},
            "stop": str(proved.stop),
            "at_start": proved.at_start,
            "below_start": any(issubclass(one.category, BelowStart) for one in told),
            "steps": ranker.n_iter_,
            "seconds": perf_counter() - began,
            "validation": getattr(ranker, "eval_score_", None),
        }
        return ranker, row, interrupted
