"""`rankopt compile`: compile all kernels ahead of their first use."""

from __future__ import annotations

from time import perf_counter

import click

from rankopt.commands.input_output import as_json, json_option, waiting


@click.command("compile")
@json_option
def compile_kernels(json_: bool) -> None:
    """Compile all kernels and print the cache directory. Small problems run without compiled kernels."""
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
        click.echo(
            f"{len(kernels)} kernels compiled in {seconds:.0f} s, but no folder can be written to: set NUMBA_CACHE_DIR"
        )
    else:
        click.echo(f"{len(kernels)} kernels are ready in {cache} ({seconds:.0f} s).")
    if cache is None:
        raise click.exceptions.Exit(1)
