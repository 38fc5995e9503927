"""How time and memory of training grow with queries, documents and features; peak memory beside that of the features.

    python benchmarks/growth.py

Each line is the quicker of two processes of its own that generate data, fit a ranker with a fixed number of steps, and
report seconds and peak memory of `fit` (resident, above what a process held with the data not yet made). The ratio is
to the line with half as much. The last line reads the features from a file mapped into
memory, with a hard limit on the memory of its own that the process may take: 0.3 of the size of the features.
"""

import json
import resource
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np

BLOCK = 4096
STEPS = 10
REPEATS = 2
CELLS = [
    ("queries", (750, 120, 136)), ("queries", (1500, 120, 136)), ("queries", (3000, 120, 136)),
    ("queries", (6000, 120, 136)), ("queries", (12000, 120, 136)),
    ("documents", (3000, 60, 136)), ("documents", (3000, 120, 136)), ("documents", (3000, 240, 136)),
    ("features", (3000, 120, 68)), ("features", (3000, 120, 136)), ("features", (3000, 120, 272)),
]  # fmt: skip


def held(field):
    """Bytes that this process holds (VmRSS) or held at most (VmHWM)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not tell its memory in /proc")


def fill(table, grades, seed=0):
    """Features and grades, made block by block so that making them needs no memory of its own."""
    random = np.random.default_rng(seed)
    w = random.standard_normal(table.shape[1]) / np.sqrt(table.shape[1])
    for start in range(0, len(table), BLOCK):
        block = random.standard_normal((min(BLOCK, len(table) - start), table.shape[1]))
        table[start : start + BLOCK] = block
        latent = block @ w + 0.8 * random.standard_normal(len(block))
        grades[start : start + BLOCK] = np.digitize(latent, [0.6, 1.2, 1.8, 2.4])


def cell(queries, documents, features, kind, folder):
    """Seconds and bytes of one fit; with a folder the features come from a file mapped into memory."""
    from rankopt.rankers import LargeMarginRanker

    warnings.simplefilter("ignore")
    ranker = LargeMarginRanker(
        "nDCG@10", position_weights="power(0.5)@10", w0="regression", lam=0.1, max_iter=STEPS, tol=0.0
    )
    random = np.random.default_rng(1)
    ranker.fit(random.standard_normal((40, 3)), random.integers(0, 3, 40), group=[20, 20])  # code is loaded now
    before = held("VmRSS")
    rows = queries * documents
    if folder:
        table = np.memmap(Path(folder) / "features", dtype=kind, mode="r", shape=(rows, features))
        grades = np.load(Path(folder) / "grades.npy")
        limit = held("VmData") + int(0.3 * table.nbytes)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    else:
        table, grades = np.empty((rows, features), dtype=kind), np.empty(rows)
        fill(table, grades)
    began = perf_counter()
    ranker.fit(table, grades, group=np.full(queries, documents))
    seconds = perf_counter() - began
    return {"seconds": seconds, "bytes": held("VmHWM") - before, "features": rows * features * np.dtype(kind).itemsize}


def asked(size, kind="f8", folder=""):
    """The quickest of REPEATS processes."""
    call = [sys.executable, __file__, *map(str, size), kind, folder]
    runs = [subprocess.run(call, capture_output=True, text=True, check=True) for _ in range(REPEATS)]
    return min((json.loads(run.stdout) for run in runs), key=lambda found: found["seconds"])


def main():
    print(f"{STEPS} steps, nDCG@10, power(0.5)@10, float64 unless said.\n")
    print("| | queries | documents | features | seconds | × | memory / features | memory × |\n" + "|---" * 8 + "|")
    last, before = None, None
    for grows, size in CELLS:
        found = asked(size)
        if grows == last:
            ratios = f"{found['seconds'] / before['seconds']:.2f}", f"{found['bytes'] / before['bytes']:.2f}"
        else:
            ratios = "", ""
        line = [grows, *map(str, size), f"{found['seconds']:.2f}", ratios[0]]
        print("| " + " | ".join([*line, f"{found['bytes'] / found['features']:.2f}", ratios[1]]) + " |", flush=True)
        last, before = grows, found
    size = (6000, 120, 136)
    found = asked(size, "f4")
    print(
        "| float32 | " + " | ".join(map(str, size)) + f" | {found['seconds']:.2f} | | "
        f"{found['bytes'] / found['features']:.2f} | |",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        rows = size[0] * size[1]
        table = np.memmap(Path(folder) / "features", dtype="f8", mode="w+", shape=(rows, size[2]))
        grades = np.empty(rows)
        fill(table, grades)
        table.flush()
        np.save(Path(folder) / "grades.npy", grades)
        del table
        found = asked(size, "f8", folder)
        print(
            "| mapped file | " + " | ".join(map(str, size)) + f" | {found['seconds']:.2f} | | "
            f"{found['bytes'] / found['features']:.2f} | |"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(cell(*map(int, sys.argv[1:4]), *sys.argv[4:])))
    else:
        main()
