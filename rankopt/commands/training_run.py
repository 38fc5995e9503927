"""A training run as data: what `rankopt train` was told, so that `rankopt resume` can take it up again."""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from rankopt.commands.output import as_json
from rankopt.commands.reading import queries_at
from rankopt.commands.training_model import note
from rankopt.commands.training_rankers import RANKERS
from rankopt.commands.training_report import report
from rankopt.errors import BelowStart, Interrupted, OptionError
from rankopt.rankers import STRENGTHS

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

__all__ = ["Training"]

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
