"""A folder of queries that grows part by part."""

from __future__ import annotations

from collections.abc import Hashable
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from rankopt.data.queries import Queries
from rankopt.data.stored_files import SUMS, WORDS, sums_of
from rankopt.data.stored_manifest import PLAIN
from rankopt.data.values import is_sparse
from rankopt.errors import DataError

__all__ = ["StoreWriter"]


class StoreWriter:
    """The files of a folder while queries are added; features are written at once, what is small is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.first: Queries | None = None
        self.documents, self.entries = 0, 0
        self.queries: dict[Hashable, None] = {}
        self.ids: list[Any] = []
        self.named = False
        self.small: dict[str, list[NDArray[Any]]] = {"offsets": [], "relevance": [], "row_order": []}
        self.columns: dict[str, list[NDArray[Any]]] = {}
        self.files: dict[str, IO[bytes]] = {}
        self.digests: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for file in self.files.values():
            file.close()

    def add(self, part: Queries) -> None:
        """Write the features of further queries and keep the rest."""
        first = self.first = self.first or part
        self._check(part, first)
        part.check_features()
        for query in part.query_ids:
            if query in self.queries:
                raise DataError(f"Query {query!r} is in two parts; rename one, or bring its documents together.")
            if not isinstance(query, str | int):
                raise DataError(f"Query id {query!r} cannot be stored because it is no number or word; rename it.")
            self.queries[query] = None
        if is_sparse(part.features):
            self._write("features", part.features.data)
            self._write("columns", part.features.indices.astype(np.int64))
            starts = part.features.indptr.astype(np.int64) + self.entries
            self._write("bounds", starts if part is first else starts[1:])
            self.entries += int(part.features.nnz)
        else:
            self._write("features", part.features)
        self.small["offsets"].append(part.offsets[1:] + self.documents)
        self.small["row_order"].append(np.argsort(np.argsort(part.row_order)) + self.documents)
        if part.relevance is not None:
            self.small["relevance"].append(part.relevance)
        for name, values in part.attributes.items():
            self.columns.setdefault(name, []).append(values)
        self.named = self.named or part.document_ids is not None
        self.ids += part.document_ids if part.document_ids is not None else [None] * part.n_documents
        self.documents += part.n_documents

    def finished(self) -> dict[str, Any]:
        """What the manifest says of the folder, once the small arrays are written."""
        if self.first is None:
            raise DataError("There are no queries to store; give one part at least.")
        self._save("offsets.npy", np.concatenate([[0], *self.small["offsets"]]))
        self._save("row_order.npy", np.concatenate(self.small["row_order"]))
        if self.small["relevance"]:
            self._save("relevance.npy", np.concatenate(self.small["relevance"]))
        wrong = next((name for name in self.ids if self.named and not isinstance(name, str | int | None)), None)
        if wrong is not None:
            raise DataError(f"Document id {wrong!r} cannot be stored because it is no number or word; rename it.")
        return {
            "documents": self.documents,
            "features": self.first.n_features,
            "dtype": self.first.features.dtype.str,
            "entries": self.entries if is_sparse(self.first.features) else None,
            "graded": bool(self.small["relevance"]),
            "query_ids": list(self.queries),
            "document_ids": self.ids if self.named else None,
            "feature_names": self.first.feature_names,
            "attributes": [(name, self._column(n, name)) for n, name in enumerate(self.columns)],
        }

    def _column(self, number: int, name: str) -> list[Any] | None:
        """Write an attribute to a file of its own, or return it as a list where it is no plain array."""
        values = np.concatenate(self.columns[name])
        if values.dtype.kind in WORDS and values.dtype.itemsize:
            (self.folder / "attributes").mkdir(exist_ok=True)
            self._save(f"attributes/{number}.npy", values)
            return None
        if values.dtype != object:
            raise DataError(f"Attribute {name!r} is of {values.dtype}, no numbers or words; it cannot be stored.")
        listed = [list(v) if isinstance(v, tuple | list | set | frozenset) else v for v in values.tolist()]
        flat = (entry for value in listed for entry in (value if isinstance(value, list) else [value]))
        wrong = next((entry for entry in flat if entry is not None and not isinstance(entry, PLAIN)), None)
        if wrong is not None:
            raise DataError(f"Attribute {name!r} holds {wrong!r}, which is no number or word; it cannot be stored.")
        return listed

    def write(self, name: str, content: bytes) -> None:
        """Write a file and keep its digest."""
        (self.folder / name).write_bytes(content)
        self.digests[name] = blake2b(content)

    def write_sums(self) -> None:
        """Write the digests of all that was written: the last thing to do."""
        (self.folder / SUMS).write_bytes(sums_of({name: known.hexdigest() for name, known in self.digests.items()}))

    def _save(self, name: str, values: NDArray[Any]) -> None:
        buffer = BytesIO()
        np.save(buffer, values, allow_pickle=False)
        self.write(name, buffer.getvalue())

    def _write(self, name: str, values: NDArray[Any]) -> None:
        """Write further numbers to a file that grows."""
        if name not in self.files:
            self.files[name] = open(self.folder / name, "wb")  # noqa: SIM115 (closed at the end)
            self.digests[name] = blake2b()
        plain = np.ascontiguousarray(values)
        plain.tofile(self.files[name])
        self.digests[name].update(plain.data)

    def _check(self, part: Queries, first: Queries) -> None:
        """Raise DataError where a part does not go with the first."""
        for what, own, other in (
            ("features", part.n_features, first.n_features),
            ("the type of its features", part.features.dtype, first.features.dtype),
            ("being sparse", is_sparse(part.features), is_sparse(first.features)),
            ("having grades", part.relevance is not None, first.relevance is not None),
            ("names of attributes", sorted(part.attributes), sorted(first.attributes)),
        ):
            if own != other:
                raise DataError(f"A part differs from the first in {what} ({own}, not {other}); make them alike.")
        if part.feature_names is not None and part.feature_names != first.feature_names:
            raise DataError("A part names its features differently from the first; bring them into one naming.")
