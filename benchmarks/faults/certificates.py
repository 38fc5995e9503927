"""Attacks the certificates of training: tiny problems whose optimum is found apart, by writing out every ranking.

    PYTHONPATH=tests python benchmarks/faults/certificates.py --tries 3000 --seed 0

Try i is case i of the table method × master × bound × set × start of the regulariser (`problems.enumerated`), with
queries of at most four documents, ties and copies among them, features of other units, λ from 1e-5 to 1e2. The
objective and its references are checked from the data; bound <= optimum <= primal must hold for the convex problem, or
for the majorant that touches J at w; so must what the certificate gives as the reason of its stop. Not survived is what
is wrong, a fit lost to an error, and a stop for want of progress at an open gap where the master is ours, or none. Rows
by method and master: tries, wrong, lost, stalled, and trainings that a foreign master ended early.
"""

import argparse
import sys
from collections import Counter

from problems.enumerated import Tiny, case_of, check


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--tries", type=int, default=1000)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    rows, survived = {}, 0
    for number in range(given.tries):
        case = case_of(number)
        tiny = Tiny.drawn(number, given.seed)
        try:
            wrong, told, _ = check(tiny)
        except Exception as error:
            wrong, told = f"{type(error).__name__}: {error}", ""
        stalled = told.startswith("stalled")
        ours = case[1] == "auto" or case[0] == "block_frank_wolfe"
        fault = bool(wrong) or told.startswith("lost") or (stalled and ours)
        survived += not fault
        if fault or stalled or told.startswith("the optimum"):
            print(f"{number} {case}: {wrong or told}"[:300], flush=True)
        for key in (("method", case[0]), ("master", case[1])):
            counted = rows.setdefault(key, Counter())
            counted["tries"] += 1
            counted["wrong"] += bool(wrong)
            counted["lost"] += told.startswith("lost")
            counted["stalled"] += stalled
            counted["ended early"] += told.startswith("the master")
    for (kind, name), counted in sorted(rows.items()):
        print(f"{kind:8}{name:24}" + ", ".join(f"{name} {count}" for name, count in counted.items()))
    print(f"tries {given.tries}, survived {survived}")
    return survived != given.tries


if __name__ == "__main__":
    sys.exit(main())
