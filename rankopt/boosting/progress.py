"""Progress of boosting on a terminal, and nothing anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rankopt.boosting.growth import Told

__all__ = ["told"]


@contextmanager
def told(verbose: int, members: int, rounds: int, measure: str, where: str = "on eval_set") -> Iterator[Told]:
    """What shows each round in one line; nothing if verbose is 0 or standard error is no terminal. measure, where: what
    is watched, and on what."""
    if not verbose:
        yield lambda round, value: None
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda round, value: None
        return
    with Live(Text("training ..."), console=console, refresh_per_second=8, transient=True) as live:

        def show(round: int, value: float | None) -> None:
            found = "" if value is None else f": {measure} {value:.4f} {where}"
            live.update(Text(f"{members} models, round {round} of {rounds}{found}"))

        yield show
