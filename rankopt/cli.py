"""The command line `rankopt`: a table of commands in `rankopt.commands`, loaded on use."""

from __future__ import annotations

import sys
import warnings
from difflib import get_close_matches
from typing import Any

import click

from formulations.registry import load

COMMANDS = {
    "train": ("rankopt.commands.train:train", "Train a ranker on a table or a LETOR file, to a proven gap."),
    "cofi": (
        "rankopt.commands.cofi:cofi",
        "Learn from ratings: factors of users and items, compared with item means and popularity.",
    ),
    "recommend": ("rankopt.commands.cofi:recommend", "List the best items for users, by a model of `rankopt cofi`."),
    "convert": (
        "rankopt.commands.convert:convert",
        "Convert files of any size to a folder that is mapped into memory.",
    ),
    "resume": ("rankopt.commands.train:resume", "Continue a training from its checkpoints."),
    "predict": ("rankopt.commands.rank:predict", "Score documents: one score a line, in the order of the file."),
    "rank": ("rankopt.commands.rank:rank", "Rank documents, under quotas if wanted: the best admissible ranking."),
    "evaluate": ("rankopt.commands.evaluate:evaluate", "Measure rankings; compare several with a paired test."),
    "explain": (
        "rankopt.commands.explain:explain",
        "Why a model ranks as it does: regret and bounds, weights of features.",
    ),
    "verify": (
        "rankopt.commands.verify:verify",
        "Prove or refute that a linear program (of a set of rankings, MPS, LP) is integral.",
    ),
    "swap": ("rankopt.commands.swap:swap", "Swap solvers on the same problems: compare speed, agreement and failures."),
    "trace": ("rankopt.commands.trace:trace", "Show a trace of recorded problems; check its claims."),
    "demo": ("rankopt.commands.demo:demo", "Run a demonstration on bundled data, in about half a minute."),
    "compile": ("rankopt.commands.doctor:compile_kernels", "Compile all kernels and print the cache directory."),
    "doctor": ("rankopt.commands.doctor:doctor", "Show versions, and whether every solver loads and solves."),
}
"""Command -> ("module:function", help text)."""


class Table(click.Group):
    """A click group that loads a command when it runs or shows its help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = load(COMMANDS[cmd_name][0])
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in COMMANDS and not ctx.resilient_parsing:
            close = get_close_matches(args[0], [*COMMANDS, "--help", "--version"], n=1)
            cure = f"Did you mean {close[0]!r}?" if close else "`rankopt --help` lists all."
            ctx.fail(f"No such command {args[0][:40]!r}. {cure}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(
    cls=Table,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 1 a check failed, 2 wrong usage, 3 unusable data or file, 4 unusable model, "
    "5 unusable option or measure, 6 a solver or the workers failed, 130 interrupted.",
)
@click.version_option(package_name="rankopt")
def rankopt() -> None:
    """Learning to rank as optimization: exact argmax, certified bounds, any solver.

    \b
    rankopt train train.parquet --model model.rankopt --relevance click_grade
    """


def main() -> None:
    """Run the command line; errors of rankopt become one line on standard error and an exit code."""
    from formulations.errors import (
        FormulationError,
        InfeasibleError,
        InvalidProblemError,
        UnknownSolverError,
        UnsupportedProblemError,
    )
    from rankopt.errors import DataError, EngineError, ModelError, RankoptError
    from rankopt.fitting import raise_interruptions

    try:
        with raise_interruptions(), warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = rankopt.main(standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except BrokenPipeError:  # the reader closed the pipe, as `| head` does
        sys.stderr.close()
        code = 0
    except (RankoptError, FormulationError, OSError) as error:
        click.echo(f"{type(error).__name__}: {error}", err=True)
        code = 3 if isinstance(error, DataError | OSError) else 4 if isinstance(error, ModelError) else 5
        if isinstance(error, InvalidProblemError | InfeasibleError):
            code = 3
        elif isinstance(error, EngineError | FormulationError) and not isinstance(
            error, UnknownSolverError | UnsupportedProblemError
        ):
            code = 6
    sys.exit(code if isinstance(code, int) else 0)


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Print a warning as errors are printed: in one line, with options as the cure."""
    from rankopt.commands.options import as_options

    click.echo(f"{category.__name__}: {as_options(str(message))}", err=True)
