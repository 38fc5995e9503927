"""A training run as plain data, stored next to its checkpoints, so that `rankopt resume` can continue it."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from rankopt.commands import input_output
from rankopt.commands import options as common
from rankopt.errors import OptionError, SharedQueriesWarning, TrainingInterruptedWarning, WorseThanInitWarning
from rankopt.rankers import STRENGTHS

if TYPE_CHECKING:
    from rankopt.data.queries import Queries

NOTES = "models.sha256"
"""File next to `training.json`: the digests of files that this training may replace by its model."""


def destination(folder: Path, begun: str, given: str | None, yes: bool) -> str:
    """The path of the model of a training that is resumed from `folder`: `given`, or a file in the parent of `folder`.

    Asks before it replaces a file that the training neither wrote nor found at its start. Raises OptionError without a
    terminal.
    """
    parent = Path(os.path.abspath(folder)).parent
    chosen = Path(os.path.abspath(given)) if given is not None else parent / Path(begun).name
    if given is None and chosen != Path(begun):
        click.echo(
            f"the model is written to {chosen}: {begun} is not in the folder of {folder}, and --model names no file",
            err=True,
        )
    if yes or not os.path.lexists(chosen) or known(folder, chosen):
        return str(chosen)
    what = f"{chosen} (a link to {os.path.realpath(chosen)})" if chosen.is_symlink() else str(chosen)
    question = f"{what} exists, and this training did not write it. Replace it?"
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort:
        raise OptionError(f"{what} exists, and this training did not write it; give --model FILE, or --yes") from None
    return str(chosen)


def note(folder: Path, model: Path) -> None:
    """Record that the training of this folder may replace the current model file, if there is one."""
    from formulations.serialization import write_file

    digest = _digest(model)
    if digest is None or digest in _recorded_models(folder):
        return
    try:
        write_file(
            folder / NOTES, "".join(f"{line}\n" for line in [*_recorded_models(folder), digest]).encode(), links=False
        )
    except OSError as error:
        raise OptionError(f"--checkpoint {folder} cannot be written to ({error}); give another folder") from error


def known(folder: Path, model: Path) -> bool:
    """Whether the training of this folder may replace a file; False for a link."""
    return not model.is_symlink() and _digest(model) in _recorded_models(folder)


def _digest(file: Path) -> str | None:
    if not file.is_file():  # a pipe or a device may have no end
        return None
    try:
        with open(file, "rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError:
        return None


def _recorded_models(folder: Path) -> list[str]:
    try:
        with open(folder / NOTES, encoding="ascii") as opened:
            return opened.read(1 << 16).split()
    except (OSError, ValueError):
        return []


RESULTS = {
    "objective": ("primal", ".6f"),
    "bound": ("bound", ".6f"),
    "gap": ("gap", ".1e"),
    "relative_gap": ("relative_gap", ""),
    "gradient": ("gradient", ".1e"),
    "epsilon": ("epsilon", ".1e"),
}
"""Numbers of a certificate: name in the report → attribute, and format of the column (none: only in the JSON)."""

UNDER_QUOTAS = "margin"
"""The value of `--ranker` that is trained under quotas; the others ignore them in training."""

SIZES = {"rounds": "n_rounds_", "steps": "n_iter_"}
"""How much was computed: name in the report → attribute of the ranker."""


def results_of(ranker: Any) -> dict[str, Any]:
    """What a fitted ranker reports about its training."""
    proved, found = getattr(ranker, "certificate_", None), dict[str, Any]()
    if proved is not None:
        found = {name: getattr(proved, of) for name, (of, _) in RESULTS.items() if hasattr(proved, of)}
        if "gradient" in found or "epsilon" in found:  # instead of a bound
            found = {name: found[name] for name in ("objective", "gradient", "epsilon") if name in found}
        if "gradient" in found or proved.kind == "directions":
            found["measure"] = proved.measure if "gradient" in found else proved.value
        found |= {"kind": proved.kind, "stop": str(proved.stop), "at_start": proved.at_start}
    found |= {name: getattr(ranker, of) for name, of in SIZES.items() if hasattr(ranker, of)}
    if getattr(ranker, "penalty", None) == "l1":
        found["features"] = int(ranker.get_support().sum())
    if hasattr(getattr(ranker, "estimators_", None), "__len__"):
        found["models"] = len(ranker.estimators_)
    if hasattr(ranker, "estimator_weights_"):
        found["trees"] = int(ranker.estimator_weights_.size)
    if hasattr(ranker, "classes_"):
        found["grades"] = ranker.classes_.tolist()
    return found


def report_table(
    rows: Sequence[dict[str, Any]], chosen: dict[str, Any], measure: str, quotas: bool = False
) -> tuple[list[str], list[list[str]]]:
    """Head and lines of a table with one line per fit. quotas: whether validation is under quotas."""
    formats = {name: form for name, (_, form) in RESULTS.items()}
    formats |= {"lam": "g", "measure": ".4f", "seconds": ".1f"}
    columns = (*common.TRIED, "features", *RESULTS, "measure", "kind", "models", "trees", *SIZES, "seconds")
    names = [name for name in columns if name in chosen and name != "relative_gap"]
    head = [f"{measure} in training" if name == "measure" else name for name in names]

    def cell(row: dict[str, Any], name: str) -> str:
        chosen_by = f"{row['lam_option']} = " if name == "lam" and "lam_option" in row else ""
        return chosen_by + format(row[name], formats.get(name, ""))

    lines = [
        [
            *(cell(row, name) for name in names),
            "-" if row["validation"] is None else f"{row['validation']:.4f}",
            "chosen" if row is chosen and len(rows) > 1 else "",
        ]
        for row in rows
    ]
    return [*head, f"{measure} on validation{' under the quotas' if quotas else ''}", ""], lines


def advice_on(chosen: dict[str, Any], margin: bool, start: str) -> list[str]:
    """Advice on the chosen fit. margin: whether a bound of the regret was trained. start: the start, by name."""
    from rankopt.optimize.certificate import Stop

    advice, stop = [], chosen.get("stop")
    if chosen["below_start"]:
        advice.append(
            "The start --init ranks the training queries better: try a larger --lam"
            + (", or another --bound or --position-weights" if margin else "")
            + "; --validate may choose the start itself."
        )
    if chosen.get("at_start") and chosen["validation"] is not None:
        advice.append(f"The start ({start}) was best on --validate: training did not improve it. Try another --lam.")
    elif chosen.get("at_start") and stop == Stop.GAP:
        advice.append(
            "Nothing better than the start was found: try a smaller --lam"
            + (", --bound nonconvex, or --position-weights cut at the k of the measure." if margin else ".")
        )
    if stop not in (None, Stop.GAP, Stop.ANNEALED, Stop.DIRECTIONS):
        advice.append(f"Training ended because {stop}.")
    return advice


def _advice_on_scales(ranker: Any, queries: Queries) -> list[str]:
    """What --normalize auto did, and advice on one penalty of weights whose features have very different deviations
    within queries."""
    from rankopt.explanations.contributions import deviations_within
    from rankopt.rankers.inputs import normalized

    if ranker.normalize_ is not None:
        auto = f"Scales differ from query to query: --normalize auto is {ranker.normalize_}; see also --normalize none."
        return [auto] if ranker.normalize == "auto" else []
    if not isinstance(getattr(ranker, "lam", "scale"), float | None) or not hasattr(ranker, "coef_"):
        return []
    own = normalized(ranker, queries.grouped())
    deviation = deviations_within(own.features, own.offsets)
    deviation = deviation[deviation > 0.0]
    if not deviation.size or deviation.max() < SCALES * deviation.min():
        return []
    spread = f"{deviation.min():.2g} to {deviation.max():.2g}"
    return [f"The features are of very different scale (deviations {spread}): try --normalize zscore, or rank."]


SCALES = 1e3  # ratio of deviations within queries that one penalty of all weights does not suit

MANIFEST = "training.json"
OF_THE_RUN = ("max_iter", "time_limit", "engine", "n_jobs")  # options that may change when a training is resumed
LIMIT = 1 << 20  # largest size of the training file in bytes


@dataclass(frozen=True)
class Training:
    """A training run: files, ranker (a key of `RANKERS`), and the options of the ranker.

    lam, position_weights: the values to choose from; if empty, the option or the default of the ranker is used.
    every: seconds between checkpoints.
    """

    train_file: str
    model: str
    validate: str | None
    lam: tuple[float | str, ...]
    unjudged: float | None
    every: float
    options: dict[str, Any]
    position_weights: tuple[str, ...] = ()
    ranker: str = "margin"
    columns: common.Columns = field(default_factory=common.Columns)
    quotas: common.Quotas = field(default_factory=common.Quotas)

    @classmethod
    def from_folder(cls, folder: Path) -> Training:
        """The training whose checkpoints are in this folder."""
        from formulations.serialization import parse_json

        try:
            with open(folder / MANIFEST, "rb") as file:
                content = file.read(LIMIT + 1)
        except FileNotFoundError:
            message = f"{folder} holds no training; begin one by `rankopt train --checkpoint {folder}`"
            raise OptionError(message) from None
        except OSError as error:
            raise OptionError(f"{folder / MANIFEST} cannot be read ({error})") from error
        try:
            known = parse_json(content, MANIFEST, LIMIT)
            if not isinstance(known, dict):
                raise TypeError(f"it holds a {type(known).__name__}")
            tuples = {name: tuple(known.get(name, ())) for name in ("lam", "position_weights")}
            groups = {"columns": common.Columns.from_dict(known.get("columns", {})),
                      "quotas": common.Quotas.from_dict(known.get("quotas", {}))}  # fmt: skip
            training = cls(**{**known, **tuples, **groups})
            training._check()
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            message = f"{folder / MANIFEST} is not a file of `rankopt train` ({error}); begin anew in another folder"
            raise OptionError(message) from error
        return training

    def _check(self) -> None:
        for file in (self.train_file, self.model, self.train_file if self.validate is None else self.validate):
            if not isinstance(file, str) or "\0" in file or Path(file).name in ("", ".."):
                raise ValueError(f"{str(file)[:80]!r} is no file")
            os.fsencode(file)
        parameters = common.parameters_of(common.RANKERS[self.ranker]) if self.ranker in [*common.RANKERS] else {}
        if "checkpoint" not in parameters:
            raise ValueError(f"{str(self.ranker)[:80]!r} is not a ranker that can be resumed")
        if not self.lam:
            raise ValueError("lam is empty")
        numbers = [lam for lam in self.lam if not isinstance(lam, str) or lam not in STRENGTHS]
        for number in (*numbers, self.every, 0.0 if self.unjudged is None else self.unjudged):
            if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) < math.inf:
                raise ValueError(f"{str(number)[:80]!r} is no number")
        if not all(isinstance(weights, str) for weights in self.position_weights) or (
            self.position_weights and "position_weights" not in parameters
        ):
            raise ValueError("position_weights is not a list, or the ranker has no position weights")
        if not isinstance(self.options, dict) or "measure" not in self.options:
            raise ValueError("options name no measure")
        known = common.options_of(common.RANKERS[self.ranker])
        options = {*known} - {"lam", "checkpoint", "every"}
        for name, value in self.options.items():
            floats = isinstance(value, list) and all(isinstance(one, float) for one in value)
            listed = name in options and (
                (floats and known[name].multiple)
                or (isinstance(known[name].type, common.Collection) and isinstance(value, list | dict))
            )
            if name not in options or not (listed or isinstance(value, str | int | float | None)):
                raise ValueError(f"{name[:80]!r} = {str(value)[:80]!r} is no option of it")

    def with_options(self, **options: Any) -> Training:
        """The same training with the options that are not None replaced."""
        changed = {name: value for name, value in options.items() if value is not None}
        return replace(self, options={**self.options, **changed})

    def run(self, json_: bool, checkpoint: Path | None, page: str | None = None) -> None:
        """Fit a ranker for each λ with its own checkpoint, save the best and report. page: the HTML file of the report.

        Raises OptionError where another process has locked the checkpoint's folder.
        """
        folder = Path(self.model).parent
        if not (folder.is_dir() and os.access(folder, os.W_OK)):
            raise click.UsageError(f"--model {self.model}: the folder {folder} does not exist or cannot be written to")
        if checkpoint is None:
            self._run(json_, None, page)
            return
        from rankopt.rankers import Checkpoint

        with Checkpoint(str(checkpoint), self.every).claimed():
            self._keep(checkpoint)
            self._run(json_, checkpoint, page)

    def _run(self, json_: bool, checkpoint: Path | None, page: str | None) -> None:
        from rankopt.rankers.missing import takes_missing

        ranker = self._make_ranker()
        ranker._check_params()  # before anything is read
        labels, keep = self.quotas.labels, takes_missing(ranker, fitted=False)
        queries = input_output.queries_at(
            self.train_file, self.unjudged, columns=self.columns, labels=labels, keep_missing=keep
        )
        self._check_quotas(queries)
        validation = None
        if self.validate is not None:
            validation = input_output.queries_at(
                self.validate,
                self.unjudged,
                queries.n_features,
                self.columns,
                queries.feature_names,
                labels=labels,
                keep_missing=keep,
            )
        self._say_quotas(queries, validation)
        rows, best, interrupted = [], None, False
        fits = [*product(self.position_weights or (None,), self.lam or (None,))]
        for number, (position_weights, value) in enumerate(fits):
            subfolder = None if checkpoint is None else checkpoint / f"lam{number}"
            if subfolder is not None and subfolder.is_symlink():
                raise OptionError(f"{subfolder} is a link; a training stores its checkpoints in its own folders")
            if len(fits) > 1:
                shown = {"--lam": value, "--position-weights": position_weights}
                words = [f"{option} {one}" for option, one in shown.items() if one is not None]
                click.echo(f"fit {number + 1} of {len(fits)}: {' '.join(words)}", err=True)
            try:
                ranker, row, interrupted = self._fit(
                    queries, validation, value, position_weights, not json_, number == 0, subfolder
                )
            except KeyboardInterrupt:  # before the first step of this λ: earlier fits are saved
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
        best[0].columns_ = self.columns.named
        best[0].save(self.model)
        if checkpoint is not None:
            note(checkpoint, Path(self.model))
        report = report_table(rows, best[1], str(best[0].measure), bool(self.quotas))
        if page is not None:
            from rankopt.report.ranker_pages import page_of_training

            name = f"{type(best[0]).__name__} on {Path(self.train_file).name}"
            input_output.write_report(page, page_of_training(best[0], queries, *report, name, input_output.as_given()))
        if json_:
            input_output.as_json({"model": self.model, "chosen": best[1], "tried": rows, "interrupted": interrupted})
        else:
            input_output.table(*report)
            advice = advice_on(best[1], self.ranker == "margin", str(getattr(best[0], "_start", lambda: "--init")()))
            for line in advice + _advice_on_scales(best[0], queries):
                line = line.replace("eval_set", "--validate")
                click.echo(f"{'chosen fit: ' if len(rows) > 1 else ''}{line}")
            click.echo(f"wrote {self.model}")
        if interrupted:
            if checkpoint is not None:
                click.echo(f"to go on: rankopt resume {checkpoint}", err=True)
            raise KeyboardInterrupt

    def _check_quotas(self, queries: Queries) -> None:
        """Raise a usage error for a ranker without constraints, and for an attribute that the queries lack."""
        if self.quotas and "constraints" not in self._make_ranker()._get_param_names():
            rankers = {name: common.estimator_class(one) for name, one in common.RANKERS.items()}
            able = [name for name, one in rankers.items() if "constraints" in one._get_param_names()]
            raise click.UsageError(f"--ranker {self.ranker} takes no quotas; use one of {', '.join(able)}")
        for name in getattr(self.quotas.admissible(queries), "attributes", ()):
            if name not in queries.attributes:
                raise click.UsageError(f"quotas need a table with the column {name!r}; {self.train_file} has none")

    def _say_quotas(self, train: Queries, validation: Queries | None) -> None:
        """Print what the quotas apply to, and how many lists they shorten."""
        from rankopt.rankers.deployment import Deployment

        if not self.quotas:
            return
        read = [("training", train)] if self.ranker == UNDER_QUOTAS else []
        read += [] if validation is None else [("validation", validation)]
        if self.ranker != UNDER_QUOTAS:
            click.echo(
                f"--ranker {self.ranker} is trained without the quotas; they apply to --validate"
                f"{' (except early stopping)' if self.ranker == 'boosted' else ''} and `rank`. "
                f"--ranker {UNDER_QUOTAS} is trained under them.",
                err=True,
            )
        for name, queries in read:
            own = self.quotas.admissible(queries)
            input_output.check_attributes(queries, own)
            with common.cures_as_options():
                lengths = Deployment.from_queries(queries.grouped(), own).lengths()
            short = input_output.shortened(lengths, queries, self.quotas.k or 0)
            click.echo(f"{name}: {short}" if short else "", err=True, nl=bool(short))

    def _keep(self, folder: Path) -> None:
        """Store this training; OptionError where the folder belongs to another one."""
        from formulations.serialization import write_file

        begun = any(folder.glob("lam*/standing*.zip"))
        if begun and Training.from_folder(folder)._problem() != self._problem():
            raise OptionError(
                f"--checkpoint {folder} is of another training: `rankopt resume {folder}` continues that one; or choose"
                " another folder"
            )
        note(folder, Path(self.model))
        try:
            write_file(folder / MANIFEST, json.dumps(asdict(self), indent=1).encode(), links=False)
        except OSError as error:
            raise OptionError(f"--checkpoint {folder} cannot be written to ({error}); give another folder") from error

    def _problem(self) -> dict[str, Any]:
        """The settings that determine the model: all except limits and engine."""
        options = {name: value for name, value in self.options.items() if value is not None and name not in OF_THE_RUN}
        return {**asdict(self), "options": options, "model": None, "every": None}

    def _make_ranker(self, **more: Any) -> Any:
        options = {**self.options, **more}
        if self.ranker == "direct":
            from rankopt.rankers import RandomDirections

            powell, drawn = options.pop("powell", False), options.pop("n_random_directions", 0)
            more_directions = [*(["powell"] if powell else []), *([RandomDirections(drawn)] if drawn else [])]
            options["directions"] = ("coordinates", *more_directions)
        return common.estimator_class(common.RANKERS[self.ranker])(**options)

    def _fit(
        self, queries: Queries, validation: Queries | None, lam: float | str | None, position_weights: str | None,
        verbose: bool, first: bool, folder: Path | None,
    ) -> tuple[Any, dict[str, Any], bool]:  # fmt: skip
        """The ranker fitted with this λ and these position weights, its row of the report, and whether it was
        interrupted."""
        import warnings

        from rankopt.rankers import Checkpoint

        more: dict[str, Any] = {
            name: value for name, value in (("lam", lam), ("position_weights", position_weights)) if value is not None
        }
        ranker = self._make_ranker(**more)
        if "verbose" in ranker._get_param_names():
            ranker.verbose = int(verbose)
        if self.quotas:
            ranker.constraints = self.quotas.admissible(queries)
        if folder is not None:
            ranker.checkpoint = Checkpoint(str(folder), self.every)
        began = perf_counter()
        with warnings.catch_warnings(record=True) as caught, common.cures_as_options():
            warnings.simplefilter("always")  # the report states how each run stopped
            ranker.fit(queries, eval_set=validation)
        for one in caught:
            if first and issubclass(one.category, SharedQueriesWarning):
                click.echo(f"warning: {str(one.message).replace('eval_set', '--validate')}", err=True)
        interrupted = any(issubclass(one.category, TrainingInterruptedWarning) for one in caught)
        more |= {} if lam is None else {"lam": getattr(ranker, "lam_", lam)}
        more |= {"lam_option": lam} if isinstance(lam, str) else {}
        row = {
            **more,
            **results_of(ranker),
            "below_start": any(issubclass(one.category, WorseThanInitWarning) for one in caught),
            "seconds": perf_counter() - began,
            "validation": getattr(ranker, "best_score_", None),
        }
        return ranker, row, interrupted
