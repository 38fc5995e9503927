"""`rankopt convert`: store files of any size as a folder that later commands map into memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rankopt.commands import options as common
from rankopt.commands.input_output import as_json, queries_at, waiting

if TYPE_CHECKING:
    from rankopt.data.queries import Queries


@click.command(cls=common.Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=common.EXISTING)
@common.column_options
@click.option("--output", type=common.OutputPath(folder=True), help="The folder to write; it must not exist yet.")
@click.option("--qrels", type=common.OutputPath(), help="Instead of a folder, write the grades of FILE as TREC qrels.")
@click.option("--float32", is_flag=True, help="Store features in single precision: half the size, sums stay double.")
@click.option("--sparse", is_flag=True, help="Store features as a sparse matrix: only the values in the files.")
@click.option("--n-features", type=click.IntRange(1), help="Features of LETOR files [those of the first block].")
@common.unjudged_option
@click.option("--verify", is_flag=True, help="Write nothing: compare the stored folders FILE with their checksums.")
@common.json_option
def convert(
    files: tuple[str, ...],
    output: str | None,
    qrels: str | None,
    float32: bool,
    sparse: bool,
    n_features: int | None,
    unjudged: float | None,
    verify: bool,
    json_: bool,
    columns: common.Columns,
) -> None:
    """Store LETOR / SVMlight FILEs or tables (parquet, CSV), one after the other, as a folder of queries.

    \b
    rankopt convert part1.parquet part2.parquet --output stored

    Files are read block by block, so they may be larger than memory; `train`, `predict`, `rank` and `evaluate` take the
    folder where they take a file, and map its features into memory instead of reading them.

    With --qrels, the grades are written for `rankopt evaluate --qrels` and trec_eval: query 0 document grade.

    With --verify, FILEs are such folders, and every byte is compared with the stored digests. Opening a folder compares
    them too, except for features of more than 64 MiB.
    """
    if verify or qrels is not None:
        others: dict[str, Any] = {"--output": output, "--n-features": n_features, "--float32": float32 or None}
        others |= {"--sparse": sparse or None}
        if verify:
            others |= {"--unjudged-grade": unjudged, "--qrels": qrels, **dict.fromkeys(columns.options, True)}
        excluded = [name for name, value in others.items() if value is not None]
        if excluded:
            reason = "--verify writes nothing" if verify else "--qrels writes no folder"
            raise click.UsageError(f"{reason}; leave out {', '.join(excluded)}")
        _verify(files, json_) if qrels is None else _write_qrels(files, qrels, unjudged, columns, json_)
        return
    if output is None:
        raise click.UsageError("Missing option '--output': the folder to write")
    folder = next((file for file in files if Path(file).is_dir()), None)
    if folder is not None:
        raise click.UsageError(f"File '{folder}' is a directory; --verify checks a stored one")
    from rankopt.data.stored_folder import open_queries, save_queries
    from rankopt.data.svmlight.reader import read_svmlight_blocks
    from rankopt.data.tables import is_table

    def parts() -> Iterator[Queries]:
        width, names = n_features, None
        for file in files:
            if is_table(file):
                part = queries_at(file, unjudged, columns=columns, features=names, keep_missing=True)
                names = part.feature_names
                yield _table(part, float32, sparse)
                continue
            columns.check_unused(f"{file} is no table (parquet, CSV, Feather)")
            for part in read_svmlight_blocks(
                file,
                missing=math.nan,
                unjudged=unjudged,
                dtype="float32" if float32 else "float64",
                sparse=sparse,
                n_features=width,
            ):
                width = part.n_features
                yield part

    with waiting(f"storing {', '.join(files)}"):
        save_queries(parts(), output)
    queries = open_queries(output)
    if json_:
        as_json({"folder": output, "queries": len(queries), "documents": queries.n_documents})
    else:
        click.echo(f"wrote {output}: {queries}")


def _table(queries: Queries, float32: bool, sparse: bool) -> Queries:
    """The queries of a table, with features of that type."""
    from scipy.sparse import csr_array

    features = queries.features.astype("float32") if float32 else queries.features
    return queries.replace(features=csr_array(features) if sparse else features) if float32 or sparse else queries


def _write_qrels(
    files: tuple[str, ...], path: str, unjudged: float | None, columns: common.Columns, json_: bool
) -> None:
    from rankopt.commands.rank import ids_cure
    from rankopt.data.queries import concatenate
    from rankopt.errors import DataError
    from rankopt.evaluation.trec import write_qrels

    parts = []
    for file in files:
        parts.append(queries_at(file, unjudged, columns=columns, keep_missing=True))
        if parts[-1].document_ids is None:
            raise DataError(f"qrels name documents, but these have no ids: {ids_cure(file, parts[-1])}")
    queries = concatenate(parts) if len(parts) > 1 else parts[0]
    write_qrels(path, queries)
    if json_:
        as_json({"qrels": path, "queries": len(queries), "documents": queries.n_documents})
    else:
        click.echo(f"wrote {path}: {len(queries)} queries, {queries.n_documents} documents")


def _verify(folders: tuple[str, ...], json_: bool) -> None:
    from rankopt.data.stored_folder import verify_queries

    found = {}
    for folder in folders:
        with waiting(f"reading {folder}"):
            found[folder] = verify_queries(folder)
        if not json_:
            click.echo(f"{folder}: {len(found[folder])} files are as they were written")
    if json_:
        as_json({"verified": found})
