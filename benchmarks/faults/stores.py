"""Stored folders damaged at random, thousands of them: none kills, hangs or fills the memory, and none lies.

Attacked is `rankopt.data.open_queries` (and `verify_queries`, and what trains on what was opened). A folder of dense
float64 or float32 or of sparse features is copied and damaged in one of thirteen ways: bits, bytes, ends and whole
files; FIFOs, devices and folders in the place of files; manifests and headers of arrays with hostile values; numbers
out of range, reversed and shifted. A third each has its checksums as they were written, is treated as too large to be
read on opening, or has checksums that were made anew after the damage.

A folder survives when it is refused by a DataError that names the file and the cure, or opens and holds, bit for bit,
what it held; one that is too large to be read may differ when `verify_queries` refuses it; without honest digests it
may hold something else that is sound, which is then scored, cut, pickled and trained on. Memory is limited to 1 GiB
above what is in use at the start, and each try to twenty seconds.

    PYTHONPATH=tests python benchmarks/faults/stores.py --tries 2000 --seed 0
"""

from __future__ import annotations

import argparse
import faulthandler
import resource
import tempfile
from time import perf_counter

from planted.damaged_stores import DAMAGE, nothing, run

EXTRA = 1 << 30
"""Bytes of address space that may be taken beyond those in use once everything is loaded."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tries", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        run(f"{folder}/warm", 12 * len(DAMAGE), given.seed + 1)  # kernels are loaded, threads have started
    with open("/proc/self/statm", encoding="ascii") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + EXTRA, used + EXTRA))
    began = perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        counts, faults = run(folder, given.tries, given.seed)
    for fault in faults:
        print(fault[:500])
    print(f"refused {counts['refused']}, opened {counts['opened']} (of {len(DAMAGE)} ways one is `{nothing.__name__}`)")
    print(f"{perf_counter() - began:.1f} s, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    print(f"tries {given.tries}, survived {given.tries - len(faults)}")


if __name__ == "__main__":
    main()
