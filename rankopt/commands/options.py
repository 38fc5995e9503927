"""Command options generated from the parameters of an estimator, and the table of rankers of `rankopt train`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import click
from click.core import ParameterSource

from formulations.registry import load
from rankopt.commands.input_output import OutputPath
from rankopt.errors import OptionError

RANKERS = {
    "margin": "LargeMarginRanker",
    "loss": "LossRanker",
    "pairwise": "PairwiseRanker",
    "smooth": "SmoothRanker",
    "direct": "DirectRanker",
    "direct-trees": "DirectBoostedRanker",
    "regression": "RegressionRanker",
    "boosted": "BoostedRanker",
}
"""Value of `--ranker` → estimator of `rankopt.rankers.MODEL_CLASSES`."""

CLI_NAMES = {"bandwidths": "bandwidth", "w0": "init"}  # parameters whose option has another name
EXCLUDED = ("C", "callbacks", "constraints", "verbose", "warm_start")  # parameters without an option

TRIED = ("lam", "position_weights")
"""Parameters whose option may be repeated: every value is fitted, and the best on `--validate` is saved."""

EXTRA = {
    "checkpoint": [
        click.Option(["--checkpoint"], type=OutputPath(folder=True, made=True),
                     help="Folder of the training state; `rankopt resume` continues from it."),
        click.Option(["--checkpoint-every", "every"], type=float, default=10.0, show_default=True,
                     help="Minimum number of seconds between two checkpoints."),
    ],
    "directions": [
        click.Option(["--powell"], is_flag=True, help="Also search along the sum of the steps of the last round."),
        click.Option(["--n-random-directions"], type=click.IntRange(0), default=0, show_default=True,
                     help="Also search along this number of random directions in every round."),
    ],
}  # fmt: skip
"""Parameters that need options of another form."""


class Value(click.ParamType[Any]):
    """A number if the text is one. Other text is checked by the estimator; "none" becomes None if that is allowed."""

    name = "value"

    def __init__(self, number: type[int] | type[float], none: bool) -> None:
        self.number, self.none = number, none

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "none" and self.none:
            return None
        try:
            return self.number(value)
        except ValueError:
            return value


def estimator_class(name: str) -> Any:
    """The class of `rankopt.rankers.MODEL_CLASSES` with this name."""
    from rankopt.rankers import MODEL_CLASSES

    return load(MODEL_CLASSES[name])


def parameters_of(estimator: str) -> dict[str, inspect.Parameter]:
    """The parameters of the estimator that have an option."""
    signature = inspect.signature(estimator_class(estimator).__init__)
    return {name: one for name, one in signature.parameters.items() if name not in ("self", *EXCLUDED)}


@cache
def options_of(estimator: str) -> dict[str, click.Option]:
    """Name → option of each parameter of the estimator."""
    texts = parameter_help("LargeMarginRanker") | parameter_help(estimator)
    options: list[click.Option] = []
    for name, parameter in parameters_of(estimator).items():
        options += EXTRA.get(name) or [_option(parameter, texts.get(name, ""), estimator in RANKERS.values())]
    return {str(option.name): option for option in options}


def _option(parameter: inspect.Parameter, text: str, repeatable: bool) -> click.Option:
    """The option of one parameter; its type follows the default value and the annotation."""
    default, annotation = parameter.default, str(parameter.annotation)
    name = f"--{CLI_NAMES.get(parameter.name, parameter.name.replace('_', '-'))}"
    if isinstance(default, bool):
        return click.Option([f"{name}/--no{name[1:]}", parameter.name], default=default, show_default=True, help=text)
    more: dict[str, Any] = {"type": str, "multiple": repeatable and parameter.name in TRIED}
    if annotation == "Seed":
        more["type"] = click.IntRange(0)
    elif "Sequence[float]" in annotation and isinstance(default, tuple):
        more = {"type": float, "multiple": True}
    elif "tuple[float, float]" in annotation:
        more = {"type": float, "nargs": 2}
    else:
        number = _number(default, annotation)
        if number is not None:
            choices = "Literal" in annotation or "Strength" in annotation
            more["type"] = Value(number, none="None" in annotation) if choices else number
    if default not in (None, inspect.Parameter.empty):
        shown = " ".join(map(str, default)) if isinstance(default, tuple) else default
        text = f"{text}  [default: {shown}]"
    return click.Option([name, parameter.name], help=text.strip(), **more)


def _number(default: Any, annotation: str) -> type[int] | type[float] | None:
    """The type of the numbers that a parameter may be, if it may be a number."""
    if "float" in annotation.replace("Sequence[float]", "") or "Strength" in annotation:
        return float
    return int if isinstance(default, int) or "int" in annotation.split() else None


def parameter_help(estimator: str) -> dict[str, str]:
    """The first sentence about each parameter in the docstring of the class."""
    texts: dict[str, list[str]] = {}
    text: list[str] = []
    for line in (inspect.getdoc(estimator_class(estimator)) or "").splitlines():
        entry = re.fullmatch(r"(\w+(?:, \w+)*) : (?:defaults? .*|(.*))", line)
        if entry is not None:
            text = [entry[2] or ""]
            texts |= dict.fromkeys(entry[1].split(", "), text)
        elif line.startswith("    "):
            text.append(line.strip())
        else:
            text = []
    found = {name: _first_sentence(" ".join(lines)) for name, lines in texts.items()}
    for name, sentence in found.items():
        other = re.match(r"As in `(\w+)`", sentence)
        if other is not None and other[1] != estimator:
            found[name] = parameter_help(other[1]).get(name, sentence)
    return found


def _first_sentence(text: str) -> str:
    """The text up to the first full stop that ends a sentence."""
    sentence = re.split(r"(?<![\d.])\. ", text.strip())[0].strip()
    first = sentence[:1].upper() if sentence[:1].isascii() else sentence[:1]
    return f"{first}{sentence[1:]}".removesuffix(".") + "."


class EstimatorCommand(click.Command):
    """A command whose options include the parameters of an estimator.

    estimator: its name in `rankopt.rankers`; None if `--ranker` chooses it. without: options that the command lacks.
    """

    def __init__(self, *args: Any, estimator: str | None = None, without: Sequence[str] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self.estimator, self.without = estimator, without

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[__name__] = chosen = _ranker_of(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            others = [
                name
                for name, estimator in RANKERS.items()
                if self.estimator is None and error.option_name in _names(options_of(estimator).values())
            ]
            if not others:
                raise
            names = " and ".join(others)
            raise click.UsageError(
                f"{error.option_name} is an option of --ranker {names}, not of {chosen}", ctx
            ) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. An error that begins with the name of a parameter begins with its option instead."""
        try:
            return super().invoke(ctx)
        except OptionError as error:
            message = re.sub(r"^\w*", "", str(error))
            option = options_of(self._estimator(ctx)).get(str(error).removesuffix(message))
            if option is None:
                raise
            raise OptionError(f"{option.opts[0]}{message}") from error

    def _estimator(self, ctx: click.Context) -> str:
        return self.estimator or RANKERS[ctx.meta.get(__name__, "margin")]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = super().get_params(ctx)
        names = {*self.without, *(one.name for one in own)}
        own[-1:-1] = [option for name, option in options_of(self._estimator(ctx)).items() if name not in names]
        return own  # --help is the last


def _names(options: Iterable[click.Option]) -> set[str]:
    return {name for option in options for name in (*option.opts, *option.secondary_opts)}


def _ranker_of(args: Sequence[str]) -> str:
    """The value of `--ranker`; "loss" if it is missing and `--loss` is there."""
    chosen = "loss" if any(word.partition("=")[0] == "--loss" for word in args) else "margin"
    for word, following in pairwise([*args, ""]):
        name, equals, value = word.partition("=")
        if name == "--ranker":
            chosen = value if equals else following
    return chosen if chosen in RANKERS else "margin"


def chosen_ranker(context: click.Context) -> str:
    """The value of `--ranker` of this call."""
    return str(context.meta[__name__])


def given_options(context: click.Context, estimator: str) -> dict[str, Any]:
    """The estimator's options on the command line, tuples as lists; without default values."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in context.params.items()
        if name in options_of(estimator) and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
