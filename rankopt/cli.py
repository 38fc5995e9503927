"""The command line `rankopt`: a table of commands in `rankopt.commands`, loaded on use."""

from __future__ import annotations

import sys

import click

from formulations.registry import load

COMMANDS = {
    "train": ("rankopt.commands.train:train", "Train a ranker on a LETOR / SVMlight file, to a proven gap."),
    "cofi": (
        "rankopt.commands.cofi:cofi",
        "Learn from ratings: factors of users and items, compared with item means and popularity.",
    ),
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
        "Prove or refute that the linear program of a set of rankings is integral.",
    ),
    "swap": ("rankopt.commands.swap:swap", "Swap solvers on the same problems: compare speed, agreement and failures."),
    "trace": ("rankopt.commands.trace:trace", "Show a trace of recorded problems; check its claims."),
    "demo": ("rankopt.commands.demo:demo", "Run a demonstration on bundled data, in under a minute."),
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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(
    cls=Table,
    epilog="Exit codes: 0 done, 1 a check failed, 2 wrong usage, 3 unusable data or file, 4 unusable model, "
    "5 unusable option or measure, 6 a solver or the workers failed, 130 interrupted.",
)
@click.version_option(package_name="rankopt")
def rankopt() -> None:
    """Learning to rank as optimization: exact argmax, certified bounds, any solver."""


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
        with raise_interruptions():
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
