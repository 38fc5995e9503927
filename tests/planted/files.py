"""Mutated files through every reader: the same data or the same typed error each way, in bounded time and memory."""

import gzip
import hashlib
import json
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from formulations.errors import FormulationError
from formulations.io.toml_file import read_ranking_set
from planted import mutated
from rankopt.data import Queries, concatenate, read_attributes, read_svmlight, read_svmlight_blocks
from rankopt.data.svmlight import reader
from rankopt.data.svmlight.fast import parse_bytes
from rankopt.errors import DataError
from rankopt.evaluation.trec import read_qrels, read_run
from rankopt.experiments.isolation import hold_memory
from rankopt.ratings import Ratings, read_ratings
from rankopt.ratings import reading as ratings_reading
from rankopt.ratings.reading import Layout, read_items

MEMORY = 512 << 20
TOGETHER = 250
"""Tries that one process makes."""

SECONDS = 5.0
"""Of processor, for one call of a reader."""

WITHOUT_LINE = re.compile(
    "is empty|no line has a feature|all grades are negative|the header names|has no line for query|cannot be unpacked"
)


class Slow(Exception):
    """A call that took too long."""


def outcome(action, file, errors=(DataError,)):
    """What an action gives: a digest of data, or its error; anything else is a fault and goes up."""
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        return "data", digest(action())
    except errors as error:
        message = str(error)
        if str(file) not in message:
            raise AssertionError(f"an error that does not name the file: {message}") from error
        return type(error).__name__, message
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def digest(value):
    """The same for the same bits."""
    found = hashlib.blake2b()
    if isinstance(value, Queries):
        table = value.features
        if hasattr(table, "tocsr"):
            parts = [table.data, table.indices.astype(np.int64), table.indptr.astype(np.int64)]
        else:
            parts = [np.ascontiguousarray(table)]
        parts += [value.relevance, value.offsets, *value.attributes.values()]
        words = (table.shape, value.query_ids, value.document_ids, value.feature_names, list(value.attributes))
    elif isinstance(value, Ratings):
        parts, words = [value.bounds, value.columns, value.values], (value.users.tolist(), value.items.tolist())
    elif hasattr(value, "offsets"):
        parts = [value.offsets, *(getattr(value, name) for name in ("scores", "relevance") if hasattr(value, name))]
        words = (value.query_ids, value.document_ids)
    else:
        parts, words = [], repr(value)
    for part in parts:
        found.update(repr(part.tolist()).encode() if part.dtype == object else part.tobytes())
    found.update(repr(words).encode())
    return found.hexdigest()


def same(outcomes, what):
    first = outcomes[0][1]
    for way, found in outcomes:
        if found != first:
            raise AssertionError(f"{what}: {outcomes[0][0]} gives {first} but {way} gives {found}")
    if first[0] == "DataError" and not (", line " in first[1] or WITHOUT_LINE.search(first[1])):
        raise AssertionError(f"{what}: an error without a line: {first[1]}")
    return first[0]


def packings(text, file, chance):
    """Leave the text in the file, then the same in a gzip, so that a reader sees both."""
    for way, content in (("plain", text), ("gzip", gzip.compress(text, 1))):
        file.write_bytes(content)
        yield way
        if text.startswith(b"\x1f\x8b"):  # a gzip to every reader, damaged
            return
    damaged = mutated.packed(text, chance)
    file.write_bytes(damaged)
    yield "damaged"


def letor(chance, file):
    """Line by line, compiled, in blocks; plain, packed and damaged."""
    options = {
        "missing": chance.choice([None, None, -2.5]),
        "unjudged": chance.choice([None, 0, 1.5, "drop"]),
        "dtype": chance.choice([np.float64, np.float64, np.float32]),
        "sparse": chance.choice([True, True, False]),
        "n_features": chance.choice([None, None, 1, 3, 50]),
    }
    block = chance.choice([1, 30, 1000, 1 << 18]) if options["n_features"] else 1 << 40
    is_bomb = chance.random() < 0.01
    found = []
    content = mutated.bomb(chance) if is_bomb else mutated.mutated(mutated.LETOR, chance)

    if is_bomb:
        return of_bomb(file, content, block, {**options, "sparse": True, "n_features": 3})

    def blocks():
        return concatenate(list(read_svmlight_blocks(file, block=block, **options)))

    ways = [("line by line", np.inf, lambda: read_svmlight(file, **options)), ("blocks", np.inf, blocks)]
    ways += [("compiled", 0, ways[0][2]), ("compiled blocks", 0, blocks)]
    for packing in packings(content, file, chance):
        each = []
        for way, threshold, action in ways:
            reader.COMPILED_FROM = threshold
            each.append((f"{way}, {packing}", outcome(action, file)))
            reader.COMPILED_FROM = COMPILED_FROM
        if packing == "damaged":
            same(each, "letor")
        else:
            found += each
    return same(found, "letor")


def of_bomb(file, content, block, options):
    """Whole and in blocks: the same documents, counted."""
    file.write_bytes(content)

    def counted():
        return sum(part.n_documents for part in read_svmlight_blocks(file, block=max(block, 1 << 16), **options))

    whole = outcome(lambda: read_svmlight(file, **options).n_documents, file)
    return same([("whole", whole), ("blocks", outcome(counted, file))], "bomb")


def text_reader(kind, action, errors=(DataError,), gz=True):
    """A try of a reader that has one way: plain and gzip agree."""

    def attack(chance, file):
        text = mutated.mutated(kind, chance)
        found = []
        for packing in packings(text, file, chance):
            if packing == "plain" or gz:
                result = outcome(lambda: action(file), file, errors)
                found += [] if packing == "damaged" else [(packing, result)]
        return same(found, attack)

    return attack


def ratings(chance, file):
    """Many lines at once, line by line, in blocks of any length; plain, packed and damaged."""
    content, block = mutated.mutated(mutated.RATINGS, chance), chance.choice([1, 30, 1000])
    together, whole = Layout.numbers, ratings_reading.BLOCK
    ways = [("at once", together, whole), ("by line", lambda _: None, whole), ("in blocks", together, block)]
    found = []
    for packing in packings(content, file, chance):
        each = []
        for way, numbers, size in ways:
            Layout.numbers, ratings_reading.BLOCK = numbers, size
            each.append((f"{way}, {packing}", outcome(lambda: read_ratings(file), file)))
        if packing == "damaged":
            same(each, "ratings")
        else:
            found += each
    Layout.numbers, ratings_reading.BLOCK = together, whole
    return same(found, "ratings")


def items(chance, file):
    """The films of MovieLens, genres named beside them."""
    file.with_name("u.genre").write_bytes(b"Action|0\nDrama|1\n\n")
    return text_reader(mutated.ITEMS, read_items)(chance, file)


QUERIES = Queries.from_arrays(
    np.arange(3.0).reshape(3, 1), [0, 1, 2], qid=[10, 10, "q-7"], documents=["GX-1", "GX-2", "40626"]
)
COMPILED_FROM = reader.COMPILED_FROM
READERS = {
    "svmlight": (5, letor),
    "run": (1, text_reader(mutated.RUN, read_run)),
    "qrels": (1, text_reader(mutated.QRELS, lambda file: read_qrels(file, negative=0))),
    "ratings": (3, ratings),
    "items": (1, items),
    "attributes": (1, text_reader(mutated.TABLE, lambda file: read_attributes(file, QUERIES))),
    "statement": (1, text_reader(mutated.STATEMENT, read_ranking_set, (FormulationError,), gz=False)),
}
"""Name: how many tries of thirteen, and the attack."""


def reader_of(number: int) -> str:
    names = [name for name, (weight, _) in READERS.items() for _ in range(weight)]
    return names[number % len(names)]


def work(seed: int, first: int, last: int) -> None:
    """Make some tries, each a line of JSON."""

    def slow(*_: object) -> None:
        raise Slow(f"more than {SECONDS} seconds of processor")

    signal.signal(signal.SIGPROF, slow)
    parse_bytes(b"1 qid:1 1:1\n", 1, reader.Rules("x"), {})
    csr_array((1, 1))
    hold_memory(MEMORY)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, last):
            name, fault, kind = reader_of(number), None, None
            chance, began = random.Random(f"{seed} {number}"), time.process_time()
            try:
                kind = READERS[name][1](chance, Path(folder) / "x.txt")
            except (Exception, Slow):
                fault = traceback.format_exc(limit=-3)[-1500:]
            peak, spent = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10, time.process_time() - began
            row = {"try": number, "reader": name, "kind": kind, "fault": fault, "peak": peak, "seconds": spent}
            print(json.dumps(row), flush=True)


def all_rows(tries: int, seed: int) -> Iterator[dict]:
    """The rows of all tries; a process that dies loses the try it was at, and another goes on after it."""
    code = "import sys; sys.path.insert(0, sys.argv[1]); from planted.files import work; work(*map(int, sys.argv[2:]))"
    call, number = [sys.executable, "-c", code, str(Path(__file__).parents[1]), str(seed)], 0
    while number < tries:
        part = [str(number), str(min(tries, number + TOGETHER))]
        done = subprocess.run([*call, *part], capture_output=True, text=True, check=False)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        yield from rows
        number += len(rows)
        if done.returncode:
            died = {"kind": None, "fault": done.stderr[-1500:] or "died", "peak": 0, "seconds": 0}
            yield {"try": number, "reader": reader_of(number), **died}
            number += 1


def attack(tries: int, seed: int) -> bool:
    """Whether any try does not survive."""
    found = defaultdict(list)
    for one in all_rows(tries, seed):
        found[one["reader"]].append(one)
        if one["fault"]:
            print(f"try {one['try']}, {one['reader']}: {one['fault']}\n")
    print("| reader | tries | data | refused | faults | slowest s | most MB |\n|---|---|---|---|---|---|---|")
    for name, rows in found.items():
        data, faults = (sum(map(bool, kinds)) for kinds in ([one["kind"] == "data" for one in rows],
                                                            [one["fault"] for one in rows]))  # fmt: skip
        slowest, most = max(one["seconds"] for one in rows), max(one["peak"] for one in rows)
        counts = f"{len(rows)} | {data} | {len(rows) - data - faults} | {faults}"
        print(f"| {name} | {counts} | {slowest:.2f} | {most} |")
    survived = sum(not one["fault"] for rows in found.values() for one in rows)
    print(f"tries {tries}, survived {survived}")
    return survived != tries
