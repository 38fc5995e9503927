"""`rankopt doctor`: installed versions, and whether the solvers work together. `rankopt compile`: compile kernels."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import click

from rankopt.commands.input_output import as_json, table, waiting
from rankopt.commands.options import Command, json_option

PACKAGES = (
    "rankopt", "numpy", "scipy", "cvxpy", "ortools", "highspy", "networkx", "scikit-learn", "numba", "qpsolvers",
    "clarabel", "osqp", "scs", "daqp", "piqp", "click", "rich", "matplotlib", "pyarrow",
)  # fmt: skip
OPTIONAL = (
    "pandas", "polars", "lightgbm", "xgboost", "torch", "onnx", "onnxruntime", "distributed", "linopy",
    "pulp", "ir-measures",
)  # fmt: skip


@click.command(cls=Command)
@json_option
def doctor(json_: bool) -> None:
    """Show versions, and solve small problems with every installed solver in one process.

    \b
    rankopt doctor
    """
    from formulations.solvers import installed_version

    versions = {"python": sys.version.split()[0]} | {name: installed_version(name) for name in (*PACKAGES, *OPTIONAL)}
    rows = _try_solvers()
    healthy = all(row["works"] for row in rows) and all(versions[name] for name in PACKAGES)
    if json_:
        as_json({"versions": versions, "solvers": rows, "healthy": healthy})
    else:
        absent = dict.fromkeys(OPTIONAL, "not installed (optional)")
        table(["package", "version"], [[name, own or absent.get(name, "missing")] for name, own in versions.items()])
        click.echo()
        table(
            ["solver", "problem", "works", "gap", "ms", "message"],
            [
                [
                    row["solver"], row["problem"], "yes" if row["works"] else "NO", "-" if row["gap"] is None
                    else f"{row['gap']:.0e}", f"{1e3 * row['seconds']:.1f}", row["message"][:60],
                ]
                for row in rows
            ],
        )  # fmt: skip
        click.echo("\nAll solvers load together and agree." if healthy else "\nSomething is broken: see NO above.")
    if not healthy:
        raise click.exceptions.Exit(1)


def _try_solvers() -> list[dict[str, Any]]:
    """One row per solver and problem: an assignment and a margin dual with known optima."""
    from formulations.gallery.masters import margin_dual
    from formulations.gallery.rankings import ranking
    from formulations.solvers import compatible_solvers
    from formulations.solving.solve import solve

    problems = {
        "ranking": (ranking([0.5, 0.2, 0.1], [3.0, 0.0, 1.0], discount=[1.0, 0.6], position_weights=[2.0, 1.0]), -0.1),
        "margin dual": (margin_dual([[1.0], [-1.0]], [1.0, 0.0], lam=1.0), 0.625),
    }
    rows = []
    for name, (problem, optimum) in problems.items():
        for spec in compatible_solvers(problem):
            began = perf_counter()
            try:
                solution = solve(problem, spec)
                works = abs(solution.value - optimum) <= 1e-3
                row = {"works": works, "gap": solution.gap, "message": solution.message}
            except Exception as error:  # any failure is a row of the result
                row = {"works": False, "gap": None, "message": f"{type(error).__name__}: {error}"}
            rows.append({"solver": spec, "problem": name, **row, "seconds": perf_counter() - began})
    return rows


@click.command("compile", cls=Command)
@json_option
def compile_kernels(json_: bool) -> None:
    """Compile all kernels and print the cache directory.

    \b
    rankopt compile

    Small problems run without compiled kernels.
    """
    from formulations.compiled import folder, kernels_of

    began = perf_counter()
    with waiting("compiling all kernels: a minute, once ..."):
        kernels = kernels_of("formulations", "rankopt")
        for kernel in kernels:
            kernel.ready()
    cache, seconds = folder(), perf_counter() - began
    if json_:
        as_json({"kernels": len(kernels), "folder": None if cache is None else str(cache), "seconds": seconds})
    elif cache is None:
        click.echo(f"{len(kernels)} kernels compiled in {seconds:.0f} s; no folder is writable: set NUMBA_CACHE_DIR")
    else:
        click.echo(f"{len(kernels)} kernels are ready in {cache} ({seconds:.0f} s).")
    if cache is None:
        raise click.exceptions.Exit(1)
