"""Command options: the columns of tables, the parameters of an estimator, and the groups in which help lists them."""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache, wraps
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from formulations.registry import load
from rankopt.errors import DataError, OptionError

if TYPE_CHECKING:
    from rankopt.constraints import Admissible
    from rankopt.data.queries import Queries
    from rankopt.ratings import Ratings


class OutputPath(click.Path):
    """A parameter type: a file (or folder) that can be written; else a usage error before the work begins.

    made: whether missing parent folders are created. dash: whether "-", standard output, is allowed; the output is then
    text.
    """

    def __init__(self, *, folder: bool = False, made: bool = False, dash: bool = False) -> None:
        super().__init__(file_okay=not folder, dir_okay=folder, allow_dash=dash)
        self.made = made

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        if not (path == "-" and self.allow_dash):
            try:
                reason = self._why_not_writable(os.fsdecode(path))
            except OSError as error:
                reason = f"{str(path)[:60]!r}: {error.strerror}; choose another path"
            if reason is not None:
                self.fail(reason, param, ctx)
        return path

    def _why_not_writable(self, path: str) -> str | None:
        """The reason why the path cannot be written; None if it can. OSError for names that the system refuses."""
        if not path:
            return "the name is empty; give a path"
        if self.allow_dash and path.endswith((".parquet", ".feather")):
            return f"{path!r}: the output is text; end the name in .csv, .tsv or .txt, and convert the file"
        target = Path(path)
        if not _present(target):
            target = target.parent
            while not _present(target) and self.made:
                target = target.parent
            if not _present(target):
                return f"{path!r}: there is no folder '{target}'; make it first, or choose another"
            if not target.is_dir():
                return f"{path!r}: '{target}' is a file, not a folder; choose another path"
        if not os.access(target, os.W_OK):
            return f"{path!r}: '{target}' cannot be written to; choose another path"
        return None


def _present(target: Path) -> bool:
    try:
        target.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


FILE, EXISTING = click.Path(exists=True, dir_okay=False), click.Path(exists=True)
"""Types of options: an existing file; an existing file or folder."""

json_option = click.option("--json", "json_", is_flag=True, help="Print one JSON object instead of text.")
report_option = click.option("--report", metavar="FILE", type=OutputPath(made=True), help="Also write an HTML report.")
unjudged_option = click.option("--unjudged-grade", "unjudged", type=float, help="Grade for negative labels.")


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
CURES = {"--w0": "--init", "--bandwidths": "--bandwidth", "--hold-out": "--test-per-user"}  # other names of options
EXCLUDED = ("C", "callbacks", "constraints", "verbose", "warm_start")  # parameters without an option

TRIED = ("lam", "position_weights")
"""Parameters whose option may be repeated: every value is fitted, and the best on `--validate` is saved."""

EXTRA = {
    "checkpoint": [
        click.Option(["--checkpoint"], type=OutputPath(folder=True, made=True),
                     help="Folder of the training state; `rankopt resume` continues from it."),
        click.Option(["--checkpoint-every", "every"], type=float, default=10.0,
                     help="Minimum number of seconds between two checkpoints."),
    ],
    "directions": [
        click.Option(["--powell"], is_flag=True, help="Also search along the sum of the steps of the last round."),
        click.Option(["--n-random-directions"], type=click.IntRange(0), default=0,
                     help="Also search along this number of random directions in every round."),
    ],
    "n_jobs": [
        click.Option(["--n-jobs"], type=int, help="Number of threads or workers; -1, the default, for all cores.")
    ],
}  # fmt: skip
"""Parameters that need options of another form."""


@dataclass(frozen=True)
class Columns:
    """The columns of a table, by name; None for the usual names. features, drop: empty for the usual choice."""

    qid: str | None = None
    relevance: str | None = None
    document: str | None = None
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Columns:
        """The columns of a stored training. Raises ValueError for values that are no names."""
        values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in stored.items()}
        found = cls(**values)
        single, lists = (found.qid, found.relevance, found.document), (found.features, found.drop)
        if not (all(isinstance(one, str | None) for one in single) and all(isinstance(one, tuple) for one in lists)
                and all(isinstance(word, str) for one in lists for word in one)):  # fmt: skip
            raise ValueError("columns are no names")
        return found

    @property
    def named(self) -> dict[str, str]:
        """The columns of --qid, --relevance and --document, by role, where these were passed."""
        return {role: name for role in ("qid", "relevance", "document") if (name := getattr(self, role)) is not None}

    @property
    def options(self) -> list[str]:
        """The options that were passed."""
        return [f"--{one.name}" for one in fields(self) if getattr(self, one.name) not in (None, ())]

    def check_unused(self, reason: str) -> None:
        """Raise a usage error if an option was passed."""
        if self.options:
            raise click.UsageError(f"{self.options[0]} names a column of a table, but {reason}; leave it out")

    def listed(self, role: str, known: Sequence[str], table: str) -> list[str]:
        """The columns of `--features` or `--drop`. Raises DataError for an unknown one."""
        words = [word for text in getattr(self, role) for word in ([text] if text in known else text.split(","))]
        unknown = [word for word in words if word not in known]
        if unknown:
            raise DataError(f"--{role}: {table} has no column {unknown[0]!r}; it has {', '.join(known[:12])}")
        return words


def column_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of the columns of tables; it receives them as `columns`."""

    @wraps(command)
    def called(*args: Any, **options: Any) -> None:
        columns = Columns(**{one.name: options.pop(one.name) for one in fields(Columns)})
        command(*args, columns=columns, **options)

    for names, more in (
        ("--drop", {"multiple": True, "help": "Columns of a table that are not read, likewise."}),
        ("--features", {"multiple": True, "help": "Columns of features, A,B,C; repeatable.  [default: other numeric]"}),
        ("--document", {"help": "Column of document ids.  [default: docid, doc_id, ...]"}),
        ("--relevance", {"help": "Column of grades, or none.  [default: relevance, label, ...]"}),
        ("--qid", {"help": "Column of query ids.  [default: qid, query_id, ...]"}),
    ):  # fmt: skip
        called = click.option(names, metavar="COLUMN", **more)(called)
    return called


QUOTA = re.compile(
    r"\s*(?P<count>\d+|\d+(?:\.\d+)?%)(?:(?<=%)(?P<rounding>up|down))?\s*:\s*(?P<attribute>[^=@:]*[^=@:\s])\s*(?:==?\s*(?P<value>[^@]*?))?\s*"
    r"(?:@\s*(?P<first>\d+)\s*)?"
)
"""COUNT:ATTRIBUTE or COUNT:ATTRIBUTE=VALUE, @P for the first P positions. COUNT: a number, N%, N%up or N%down."""


@dataclass(frozen=True)
class Quotas:
    """The options of constraints: lists of k documents, and texts of the form `QUOTA`."""

    k: int | None = None
    at_most: tuple[str, ...] = ()
    at_least: tuple[str, ...] = ()
    exactly: tuple[str, ...] = ()
    on_infeasible: Literal["error", "truncate"] = "error"

    def __bool__(self) -> bool:
        return bool(self.at_most or self.at_least or self.exactly)

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Quotas:
        """The options of a stored training. Raises ValueError for invalid ones."""
        values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in stored.items()}
        found = cls(**values)
        texts = (found.at_most, found.at_least, found.exactly)
        if not (all(isinstance(one, tuple) and all(isinstance(text, str) for text in one) for one in texts)
                and type(found.k) in (int, type(None)) and found.on_infeasible in ("error", "truncate")):  # fmt: skip
            raise ValueError("quotas are no texts")
        return found

    @property
    def labels(self) -> list[str]:
        """The attributes that the texts name."""
        found = map(QUOTA.fullmatch, (*self.at_most, *self.at_least, *self.exactly))
        return [one["attribute"] for one in found if one is not None]

    def say_shares(self) -> None:
        """Print the counts that shares become, on standard error."""
        from formulations.constraints.constraint import rounded_share

        for default, texts in (("down", self.at_least), ("up", self.at_most)):
            for text, found in ((text, QUOTA.fullmatch(text)) for text in texts):
                if self.k is None or found is None or not found["count"].endswith("%"):
                    continue
                last, share = min(self.k, int(found["first"] or self.k)), float(found["count"][:-1]) / 100
                rounding = found["rounding"] or default
                if 0.0 <= share <= 1.0:
                    counts = ", ".join(str(rounded_share(share, p, rounding)) for p in range(1, last + 1))
                    click.echo(f"{text}, rounded {rounding}: {counts} of the first 1 to {last}", err=True)

    def check_k(self, alone: bool) -> None:
        """Raise a usage error for quotas without the length of the list, and the reverse unless it may be alone."""
        if self and self.k is None:
            raise click.UsageError("quotas need --k, the number of documents per query; add --k K")
        if self.k is not None and not self and not alone:
            raise click.UsageError(
                "--k is the length of lists under quotas: add --at-most, --at-least or --exactly. To measure the first "
                f"{self.k} of all documents name a measure: --measure nDCG@{self.k}"
            )

    def admissible(self, queries: Queries | Ratings, trained: Admissible | None = None) -> Admissible | None:
        """The constraints over the attributes of these queries or items; without quotas those that a model was trained
        under."""
        from rankopt.constraints import Admissible

        if not self or self.k is None:
            if trained is None or self.on_infeasible == "error":
                return trained
            return replace(trained, on_infeasible="truncate")
        admissible = Admissible(self.k, on_infeasible=self.on_infeasible)
        for kind in ("at_most", "at_least", "exactly"):
            for text in getattr(self, kind):
                admissible = self._add(admissible, kind, text, queries, self.k)
        return admissible

    @staticmethod
    def _add(admissible: Admissible, kind: str, text: str, queries: Queries | Ratings, k: int) -> Admissible:
        option, found = f"--{kind.replace('_', '-')}", QUOTA.fullmatch(text)
        if found is None:
            raise click.UsageError(
                f"{option} {text!r}: write N:ATTRIBUTE or N:ATTRIBUTE=VALUE, N% for a share of every prefix (N%up or "
                "N%down: its rounding), and @P for the first P"
            )
        name, value, first, count = found["attribute"], found["value"], found["first"], found["count"]
        where: dict[str, Any] = (
            {"by": name} if value is None else {"documents": {name: _convert_value(queries, name, value)}}
        )
        if first is not None and not 1 <= int(first) <= k:
            raise click.UsageError(f"{option} {text!r}: @{first} is beyond --k {k}")
        if not count.endswith("%"):
            return admissible.add(kind, int(count), **where, positions=None if first is None else range(int(first)))
        if kind == "exactly":
            raise click.UsageError(f"{option} {text!r}: shares are limits; use --at-least or --at-most")
        lengths = None if first is None else range(1, int(first) + 1)
        where |= {} if found["rounding"] is None else {"rounding": found["rounding"]}
        return admissible.add(kind, share=float(count[:-1]) / 100, prefixes=lengths, **where)


def _convert_value(queries: Queries | Ratings, name: str, value: str) -> Any:
    """The value that the text means: of a column of True and False its truth, else of the type of the column."""
    from formulations.constraints.constraint import by_label

    values: Any = queries.attributes.get(name, [])
    labels: list[Any] = list(by_label(values, len(values)))
    kinds, words = {*map(type, labels)}, {str(one).lower(): one for one in labels}
    true, false = ("true", "yes", "1"), ("false", "no", "0")
    if words and words.keys() <= {"true", "false"} and value.lower() in true + false:
        truth = value.lower() in true
        return words.get(str(truth).lower(), type(labels[0])(truth))
    try:
        return int(value) if kinds == {int} else float(value) if kinds and kinds <= {int, float} else value
    except ValueError:
        raise click.UsageError(f"the attribute {name!r} holds numbers; got {value!r}; give a number") from None


def quota_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of constraints; it receives them as `quotas`."""

    @wraps(command)
    def called(*args: Any, **options: Any) -> None:
        quotas = Quotas(**{one.name: options.pop(one.name) for one in fields(Quotas)})
        quotas.say_shares()
        command(*args, quotas=quotas, **options)

    limits: dict[str, Any] = {"multiple": True, "metavar": "N:ATTR"}
    options: tuple[tuple[str, dict[str, Any]], ...] = (
        ("--on-infeasible", {"type": click.Choice(["error", "truncate"]), "default": "error",
                             "help": "For a query without an admissible ranking of k: fail, or shorten its ranking."}),
        ("--exactly", {**limits, "help": "1:kind=ad@1: the first one is an ad."}),
        ("--at-least", {**limits, "help": "3:gender=f: three of them. 40%:gender=f: in every prefix, rounded down "
                                 "(1 of 4; for --at-most up). 40%up:gender=f: rounded up."}),
        ("--at-most", {**limits, "help": "1:site: one per site. 2:kind=ad@5: 2 ads in the first 5 (of k)."}),
        ("--k", {"type": click.IntRange(1), "help": "Number of documents per query; required with quotas.  [all]"}),
    )  # fmt: skip
    for name, more in options:
        called = click.option(name, **more)(called)
    return called


attributes_option = click.option(
    "--attributes",
    type=FILE,
    help="CSV: qid, docid (or as --qid, --document name them) and one column each.",
)


def rating_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of the columns of ratings."""
    for role in ("rating", "item", "user"):
        text = f"Column of {role}s in a file with a header.  [default: {role}, ...]"
        command = click.option(f"--{role}", metavar="COLUMN", help=text)(command)
    return command


def as_options(message: str) -> str:
    """The message with the cures of Python as command-line options."""
    role = "qid|relevance|document|user|item|rating"
    for python, option in (
        (r"or name the columns that are attributes: attributes=\[\.\.\.\]", "or drop it: --drop COLUMN"),
        (", or relevance=None if the table has no grades", ""),
        (
            "(read with missing=0.0, or )?read with missing=np.nan and fit .*BoostedRanker.",
            "train with --missing indicator or --ranker boosted",
        ),
        (
            r"Fit (with missing='indicator', or fit )?a BoostedRanker, which takes NaN\. Or impute it.*",
            "Train with --missing indicator, or with --ranker boosted, which takes NaN.",
        ),
        (r"pass document_ids=", "name their column: --document COLUMN"),
        (rf"\b({role})='(\.\.\.|its name)'", r"--\1 COLUMN"),
        (rf"\b({role})='([^']*)'", r"--\1 \2"),
        (rf"\b({role})=(?=[, .;]|$)", r"--\1"),
        ("impute it, or leave the document out", "fill it in, or drop the row, or the column: --drop COLUMN"),
        (
            r", as in frame\.fillna\(0\) or by SimpleImputer",
            " in the file, as pandas does by frame.fillna(frame.median(numeric_only=True))",
        ),
        (r"features=\[\.\.\.\]", "--features A,B,C"),
        (r"frame\.drop\(columns=\.\.\.\)", "--drop COLUMN"),
        (r"frame\.drop\(columns=\['(.*?)'\]\)", lambda found: "--drop " + found[1].replace("', '", ",")),
        (r"on_infeasible='truncate'", "--on-infeasible truncate"),
        (
            r"State constraints of (\d+) positions \(.*?\), or lower k",
            r"State quotas for --k \1 (--at-least 0:ATTR=VALUE is no limit), or lower --k",
        ),
        (r"\. Or make it soft: \.penalized\(.*?, penalty=\.\.\.\)", ""),
    ):
        message = re.sub(python, option, message)
    return message


@contextmanager
def cures_as_options() -> Iterator[None]:
    """Errors about columns and constraints name options as the cure."""
    try:
        yield
    except (DataError, OptionError) as error:
        raise type(error)(as_options(str(error))) from error


class Value(click.ParamType[Any]):
    """A number if the text is one. Other text is checked by the estimator; "none" becomes None if that is allowed."""

    name = "value"

    def __init__(self, number: type[int] | type[float] | type[str], none: bool) -> None:
        self.number, self.none = number, none

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "none" and self.none:
            return None
        if param is not None and getattr(param, "multiple", False) and "," in value:
            each = " ".join(f"{param.opts[0]} {one}" for one in value.split(","))
            self.fail(f"{value!r} is not one value; repeat the option: {each}", param, ctx)
        try:
            return self.number(value)
        except ValueError:
            return value


class Collection(click.ParamType[Any]):
    """A list, tuple or mapping of numbers and None, as Python or JSON writes it."""

    name = "value"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            found = ast.literal_eval(re.sub(r"\bnull\b", "None", value))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            found = None
        if not isinstance(found, list | tuple | dict):
            self.fail(f"{value!r} is no list or mapping; write (0, None), [1, 0, -1] or {{'name': ...}}", param, ctx)
        return _as_lists(found)


def _as_lists(value: Any) -> Any:
    """The value with lists for tuples, as a stored training has it."""
    if isinstance(value, dict):
        return {name: _as_lists(one) for name, one in value.items()}
    return [*map(_as_lists, value)] if isinstance(value, list | tuple) else value


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
    texts = documented("LargeMarginRanker") | documented(estimator)
    options: list[click.Option] = []
    for name, parameter in parameters_of(estimator).items():
        options += EXTRA.get(name) or [_option(parameter, texts.get(name, ("", ""))[1], estimator in RANKERS.values())]
    return {str(option.name): option for option in options}


def _option(parameter: inspect.Parameter, text: str, repeatable: bool) -> click.Option:
    """The option of one parameter; its type follows the default value and the annotation."""
    default, annotation = parameter.default, str(parameter.annotation).replace("types.", "")
    name = f"--{CLI_NAMES.get(parameter.name, parameter.name.replace('_', '-'))}"
    if isinstance(default, bool):
        return click.Option([f"{name}/--no{name[1:]}", parameter.name], default=default, help=text)
    more: dict[str, Any] = {"type": str, "multiple": repeatable and parameter.name in TRIED}
    if annotation == "Seed":
        more["type"] = click.IntRange(0)
    elif "Sequence[float]" in annotation and isinstance(default, tuple):
        more = {"type": float, "multiple": True}
    elif annotation == "Normalize":
        more["type"] = Value(str, none=True)
    elif parameter.name in ("coef_bounds", "monotone_constraints"):
        more["type"] = Collection()
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


@cache
def documented(estimator: str) -> dict[str, tuple[str, str]]:
    """The group of each parameter in the docstring of the class, and the first sentence about it."""
    group, text = "Model", list[str]()
    found: dict[str, tuple[str, list[str]]] = {}
    for line in (inspect.getdoc(estimator_class(estimator)) or "").splitlines():
        heading = re.fullmatch(r"\*\*(.+)\*\*", line)
        entry = re.fullmatch(r"(\w+(?:, \w+)*) : (?:defaults? .*|(.*))", line)
        if entry is not None:
            text = [entry[2] or ""]
            found |= dict.fromkeys(entry[1].split(", "), (group, text))
        elif line.startswith("    "):
            text.append(line.strip())
        else:
            text = []
        if heading is not None:
            group = heading[1] if heading[1] in GROUPS else "Model"
    sentences = {name: (own, _first_sentence(" ".join(lines))) for name, (own, lines) in found.items()}
    for name, (own, sentence) in sentences.items():
        other = re.match(r"As in `(\w+)`", sentence)
        if other is not None and other[1] != estimator:
            sentences[name] = own, documented(other[1]).get(name, ("", sentence))[1]
    return sentences


def _first_sentence(text: str) -> str:
    """The text up to the first full stop that ends a sentence, without references."""
    text = re.sub(r" ?\[(ORM|paper|φ)[^\]]*\]", "", text)
    sentence = re.split(r"(?<![\d.])\. ", text.strip())[0].strip()
    first = sentence[:1].upper() if sentence[:1].isascii() else sentence[:1]
    return f"{first}{sentence[1:]}".removesuffix(".") + "."


GROUPS = {
    "Data": "qid relevance document features drop user item rating validate unjudged attributes test_file items_file "
    "ratings_file test_per_user train_per_user users qrels scores baseline n_features sparse float32",
    "Model": "model ranker measure map_ bound lam convention k at_most at_least exactly never on_infeasible "
    "popularity reg sweeps",
    "Solver": "argmax_solvers master_solvers methods effort seed tolerance powell n_random_directions",
    "Run": "",
}
"""Group of the help → options of the commands; those of estimators are in the group of the docstring, others in Run."""


HELP = {"help_option_names": ["-h", "--help"], "show_default": True}


class Command(click.Command):
    """A command whose help lists the options by groups."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **{"context_settings": HELP, **more})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words. An option of one value that occurs twice is an error, where click would take the last."""
        words = [word.partition("=")[0] for word in args]
        for option in self.get_params(ctx):
            single = isinstance(option, click.Option) and not (option.multiple or option.is_flag or option.count)
            if single and sum(words.count(name) for name in option.opts) > 1:
                raise click.UsageError(f"{option.opts[0]} occurs twice and takes one value; leave one out", ctx)
        return super().parse_args(ctx, args)

    def groups(self, ctx: click.Context) -> dict[str, str]:
        """Name of an option → its group, Run if it is missing."""
        return {name: group for group, names in GROUPS.items() for name in names.split()}

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups, lines = self.groups(ctx), {group: list[tuple[str, str]]() for group in GROUPS}
        for option in self.get_params(ctx):
            line = option.get_help_record(ctx)
            if line is not None:
                usual = "Data" if isinstance(option, click.Argument) else "Run"
                lines[groups.get(str(option.name), usual)].append(line)
        for group, own in lines.items():
            if own:
                with formatter.section(group):
                    formatter.write_dl(own)


class EstimatorCommand(Command):
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
            cure = CURES.get(error.option_name)
            if cure is not None and cure in _names(self.get_params(ctx)):
                raise click.UsageError(f"No such option {error.option_name!r}. Did you mean {cure!r}?", ctx) from None
            others = [
                name
                for name, estimator in RANKERS.items()
                if self.estimator is None and error.option_name in _names(options_of(estimator).values())
            ]
            if not others:
                raise
            names = " and ".join(others)
            raise click.UsageError(f"{error.option_name} is an option of --ranker {names}, not {chosen}", ctx) from None

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

    def groups(self, ctx: click.Context) -> dict[str, str]:
        own = {name: group for name, (group, _) in documented(self._estimator(ctx)).items()}
        return own | super().groups(ctx)

    def _estimator(self, ctx: click.Context) -> str:
        return self.estimator or RANKERS[ctx.meta.get(__name__, "margin")]

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = super().get_params(ctx)
        names = {*self.without, *(one.name for one in own)}
        own[-1:-1] = [option for name, option in options_of(self._estimator(ctx)).items() if name not in names]
        return own  # --help is the last


def _names(options: Iterable[click.Parameter]) -> set[str]:
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
