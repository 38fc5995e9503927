"""What would make a refuted set whole: random sets of rankings, the advice they get, each piece confirmed again.

python benchmarks/advice.py --sets 500

Sets of 4 to 7 documents and 2 to 5 positions under 1 to 4 constraints: quotas on groups and labels, over all positions
or prefixes, floors, precedence, distances. Those that are refuted by a witness ask for advice. Each piece is confirmed
from its matrix alone, and then attacked: the simplex method looks for a fractional vertex under random objectives.
"""

import argparse
from collections import Counter
from time import process_time

import numpy as np
from scipy.optimize import LinearConstraint, linprog

from formulations import InfeasibleError, RankingSet, Witness, check_evidence, suggest_changes, verify_integrality

OBJECTIVES = 10


def drawn(rng):
    """A random set."""
    n = int(rng.integers(4, 8))
    k = int(rng.integers(2, min(n, 5) + 1))
    stated = RankingSet(n, k)
    for number in range(int(rng.integers(1, 5))):
        name, documents, labels = f"c{number}", np.flatnonzero(rng.random(n) < 0.5), rng.integers(0, 3, n).tolist()
        positions = range(int(rng.integers(1, k + 1))) if rng.random() < 0.6 else None
        word = int(rng.integers(6))
        if word < 2:
            count = int(rng.integers(1, 3))
            stated = stated.at_most(count, documents=documents, positions=positions, name=name)
        elif word == 2:
            stated = stated.at_least(1, documents=documents, positions=positions, name=name)
        elif word == 3:
            stated = stated.at_most(1, by=labels, positions=positions, name=name)
        elif word == 4:
            stated = stated.precedes(*rng.permutation(n)[:2].tolist(), name=name)
        else:
            stated = stated.min_distance(2, by=labels, name=name)
    return stated


def fractional(admissible, rng):
    """Whether the simplex method meets a fractional vertex."""
    program = admissible.program
    rows = LinearConstraint(program.matrix, program.row_lower, program.row_upper)
    matrix = np.vstack([rows.A.toarray(), -rows.A.toarray()])
    sides = np.concatenate([rows.ub, -rows.lb])
    there = np.isfinite(sides)
    for _ in range(OBJECTIVES):
        cost = rng.integers(-3, 4, program.objective.size)
        found = linprog(cost, A_ub=matrix[there], b_ub=sides[there], bounds=(0, 1), method="highs-ds")
        if found.status == 0 and np.abs(found.x - np.round(found.x)).max() > 1e-6:
            return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=500, help="refuted sets")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    refuted = advised = single = mild = pieces = wrong = 0
    sizes, kinds, seconds = Counter(), Counter(), 0.0
    while refuted < asked.sets:
        admissible = drawn(rng)
        try:
            answer = verify_integrality(admissible)
        except InfeasibleError:
            continue
        if not isinstance(answer, Witness):
            continue
        refuted += 1
        began = process_time()
        found = suggest_changes(admissible, answer)
        seconds += process_time() - began
        advised += bool(found)
        sizes[len(found[0].changes) if found else 0] += 1
        single += bool(found) and len(found[0].changes) == 1
        mild += any("left out" not in one.changes.values() for one in found)
        for one in found:
            pieces += 1
            kinds.update(one.changes.values())
            check_evidence(one.admissible, one.proof)
            wrong += fractional(one.admissible, rng)
    print(f"{refuted} refuted sets: {advised} get advice ({advised / refuted:.1%}), {pieces} pieces, {wrong} wrong")
    print(f"by one change: {single} ({single / refuted:.1%}); with nothing left out: {mild} ({mild / refuted:.1%})")
    print("constraints changed:", ", ".join(f"{size}: {count}" for size, count in sorted(sizes.items())))
    print("changes said:", ", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
    print(f"processor time a set: {1e3 * seconds / refuted:.0f} ms")


if __name__ == "__main__":
    main()
