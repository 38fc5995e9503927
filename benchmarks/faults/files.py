"""Mutated files through every reader: the same data or the same typed error each way, in bounded time and memory.

    python benchmarks/faults/files.py --tries 5000 --seed 0

Attacked: LETOR / SVMlight files (line by line, by compiled code, in blocks of any length), runs and qrels of TREC,
files of ratings and of films, tables of attributes (CSV), statements of sets (TOML), plain and as gzip, sound or
damaged. A try survives when

* every way through the reader, and the same text packed, gives the same bits or the same error, letter for letter
* an error is one of ours and names the file, and the line where a line is at fault
* no call takes more than 5 seconds of processor or more than 512 MB beyond what the process holds before it

Tries run in a process of their own, some at a time; one that dies is a try that did not survive. The last line is
`tries N, survived N`.
"""

import argparse
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import defaultdict
from pathlib import Path

from readers import READERS, SECONDS, Slow
from scipy.sparse import csr_array

from rankopt.data.svmlight import reader as reading
from rankopt.data.svmlight.fast import parse_bytes
from rankopt.experiments.isolation import hold_memory

MEMORY = 512 << 20
TOGETHER = 250
"""Tries that one process makes."""


def reader_of(number):
    names = [name for name, (weight, _) in READERS.items() for _ in range(weight)]
    return names[number % len(names)]


def work(seed, first, last):
    """Make some tries, each a line of JSON."""
    signal.signal(signal.SIGPROF, slow)
    parse_bytes(b"1 qid:1 1:1\n", 1, reading.Rules("x"), {})
    csr_array((1, 1))
    hold_memory(MEMORY)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(first, last):
            name, fault, kind = reader_of(number), None, None
            chance = random.Random(f"{seed} {number}")
            begin = time.process_time()
            try:
                kind = READERS[name][1](chance, Path(folder) / "x.txt")
            except (Exception, Slow):
                fault = traceback.format_exc(limit=-3)[-1500:]
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            row = {"try": number, "reader": name, "kind": kind, "fault": fault, "peak": peak}
            print(json.dumps({**row, "seconds": time.process_time() - begin}), flush=True)


def slow(*_):
    raise Slow(f"more than {SECONDS} seconds of processor")


def rows_of(tries, seed):
    """The rows of all tries; a process that dies loses the try it was at, and another goes on behind it."""
    number = 0
    while number < tries:
        call = [sys.executable, __file__, "--seed", seed, "--first", number, "--last", min(tries, number + TOGETHER)]
        run = subprocess.run([str(word) for word in call], capture_output=True, text=True, check=False)
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        yield from rows
        number += len(rows)
        if run.returncode:
            reader = reader_of(number)
            yield {
                "try": number,
                "reader": reader,
                "kind": None,
                "fault": run.stderr[-1500:] or "died",
                "peak": 0,
                "seconds": 0,
            }
            number += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--last", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.last is not None:
        work(given.seed, given.first, given.last)
        return
    table = defaultdict(list)
    for row in rows_of(given.tries, given.seed):
        table[row["reader"]].append(row)
        if row["fault"]:
            print(f"try {row['try']}, {row['reader']}: {row['fault']}\n")
    print("reader        tries   data  refused  faults  slowest s  most MB")
    for name, rows in table.items():
        kinds = [row["kind"] for row in rows]
        faults = sum(row["fault"] is not None for row in rows)
        data, slowest, most = kinds.count("data"), max(row["seconds"] for row in rows), max(row["peak"] for row in rows)
        counts = f"{len(rows):5}  {data:5}  {len(rows) - data - faults:7}  {faults:6}"
        print(f"{name:12}  {counts}  {slowest:9.2f}  {most:7}")
    survived = sum(row["fault"] is None for rows in table.values() for row in rows)
    print(f"tries {given.tries}, survived {survived}")


if __name__ == "__main__":
    main()
