"""What `rankopt train` says of its fits."""

from __future__ import annotations

from typing import Any

import click

from rankopt.commands.output import table

__all__ = ["report"]

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
