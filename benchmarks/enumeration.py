"""Sets of one to three words, hard and soft, and their curves, against going through all rankings.

    python benchmarks/enumeration.py --sets 2000 --seed 0

Of 3 to 6 documents and 2 to 5 positions. What each word says is written here a second time, as the units by which a
ranking breaks it, in plain Python. Asked of each set: which rankings it admits, the best value (profits of rank one,
random, whole with ties), what `broken` tells, that a proof which `check_evidence` confirms means a whole optimum of the
linear program, that an empty set is said to be empty; with one word soft at a price: the best value and what is broken
there; and of one that has a limit, each point of `sensitivity` against the set with that limit, stated anew.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise, permutations
from math import ceil, floor
from typing import Any

import numpy as np

from formulations import (
    InfeasibleError,
    Proof,
    RankingSet,
    check_evidence,
    constrained_ranking,
    sensitivity,
    solve,
    verify_integrality,
)

Order = Sequence[int]
Units = Callable[[Order], float]
NEAR = 1e-7


def held(order: Order, documents: set[int], positions: Sequence[int] | range | None = None) -> int:
    return sum(order[p] in documents for p in (range(len(order)) if positions is None else positions))


def late(order: Order, first: set[int], second: set[int]) -> int:
    """How many of the second stand before all of the first."""
    meets = [p for p, document in enumerate(order) if document in first]
    return held(order, second - first, range(min(meets, default=len(order))))


def drawn(word: str, n: int, k: int, rng: np.random.Generator) -> tuple[tuple[Any, dict[str, Any]], Units]:
    """What is said of one word, and whether a ranking breaks it, by how many units where one row says it."""
    some = set(rng.choice(n, size=rng.integers(1, n), replace=False).tolist())
    other = set(rng.choice(n, size=rng.integers(1, n), replace=False).tolist())
    where = sorted(rng.choice(k, size=rng.integers(1, k + 1), replace=False).tolist())
    count, place = int(rng.integers(0, len(where) + 1)), int(rng.integers(k))
    two = rng.choice(n, 2, replace=False).tolist()
    if word in ("at_most", "at_least", "exactly"):
        sign = {"at_most": (0, 1), "at_least": (1, 0), "exactly": (1, 1)}[word]

        def counted(o: Order) -> float:
            found = held(o, some, where)
            return max(sign[0] * (count - found), sign[1] * (found - count), 0)

        return ((count,), {"documents": sorted(some), "positions": where}), counted
    if word == "between":
        high = int(rng.integers(count, len(where) + 1))
        given = {"documents": sorted(some), "positions": where}
        return ((count, high), given), lambda o: max(count - held(o, some, where), held(o, some, where) - high, 0)
    if word == "forbid":
        return ((sorted(some), where), {}), lambda o: held(o, some, where)
    if word == "fix":
        return ((two[0], place), {}), lambda o: (o[place] != two[0]) + (two[0] in (*o[:place], *o[place + 1 :]))
    if word == "position_in":
        return ((sorted(some),), {"position": place}), lambda o: int(o[place] not in some)
    if word == "precedes":
        return ((sorted(some), sorted(other)), {}), lambda o: late(o, some, other)
    if word == "precedence_chain":
        line = rng.permutation(n)[: max(2, int(rng.integers(n)))].tolist()
        return ((line,), {}), lambda o: sum(late(o, {x}, {y}) for x, y in pairwise(line))
    if word == "min_distance":
        far = int(rng.integers(2, k + 1))
        return ((far,), {"documents": sorted(some)}), lambda o: sum(
            b - a < far for a, b in pairwise(p for p, document in enumerate(o) if document in some)
        )
    if word == "implies":
        return ((sorted(some), sorted(other)), {}), lambda o: 0 if held(o, other) else held(o, some - other)
    if word in ("at_most_share", "at_least_share"):
        tenths, most = int(rng.integers(1, 10)), word == "at_most_share"

        def shares(o: Order) -> float:
            counts = [(held(o, some, range(p)), tenths * p / 10) for p in range(1, k + 1)]
            return sum(max(found - ceil(said), 0) if most else max(floor(said) - found, 0) for found, said in counts)

        return ((), {"share": tenths / 10, "documents": sorted(some)}), shares
    cost = rng.integers(0, 5, (k, n))
    low, high = sorted(rng.integers(0, 4 * k, 2).tolist())

    def within(o: Order) -> float:
        total = int(cost[np.arange(k), list(o)].sum())
        return max(low - total, total - high, 0)

    return ((cost.reshape(1, -1).astype(float), low, high), {}), within


WORDS = ("at_most", "at_least", "exactly", "between", "forbid", "fix", "position_in", "precedes",
         "precedence_chain", "min_distance", "implies", "at_most_share", "at_least_share", "add_rows")  # fmt: skip
ONE_ROW = (
    "at_most",
    "at_least",
    "exactly",
    "between",
    "forbid",
    "fix",
    "position_in",
    "at_most_share",
    "at_least_share",
    "add_rows",
)
"""Words whose units are counted alike here and there, row by row, and so may be soft."""


def profits(n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    kind = rng.integers(3)
    if kind == 0:
        return np.outer(1 / np.log2(np.arange(k) + 2), rng.normal(size=n))
    return rng.normal(size=(k, n)) if kind == 1 else rng.integers(-2, 3, (k, n)).astype(float)


def main(count: int, seed: int) -> None:
    asked, wrong = Counter[str](), Counter[str]()

    def check(what: str, right: bool) -> None:
        asked[what] += 1
        wrong[what] += not right

    for number in range(count):
        rng = np.random.default_rng([seed, number])
        n = int(rng.integers(3, 7))
        k = int(rng.integers(2, min(n, 5) + 1))
        words = [WORDS[number % len(WORDS)], *rng.choice(WORDS, size=rng.integers(0, 3))]
        said, units, admissible = [], [], RankingSet(n, k)
        for at, word in enumerate(words):
            (values, given), broken = drawn(str(word), n, k, rng)
            admissible = getattr(admissible, str(word).removesuffix("_share"))(*values, **given, name=f"c{at}")
            said.append(str(word))
            units.append(broken)
        every = list(permutations(range(n), k))
        profit = profits(n, k, rng)
        worth = {o: float(profit[np.arange(k), list(o)].sum()) for o in every}
        may = [o for o in every if not any(broken(o) for broken in units)]
        check(said[0], all(admissible.is_feasible(o) == (o in set(may)) for o in every))
        one = rng.permutation(len(every))[0]
        names = {name.split("[")[0] for name in admissible.violations(every[one])}
        check("broken names the word", names == {f"c{at}" for at, broken in enumerate(units) if broken(every[one])})
        if not may:
            try:
                solve(constrained_ranking(profit, admissible))
                check("an empty set is told", False)
            except InfeasibleError:
                check("an empty set is told", True)
        else:
            best = max(worth[o] for o in may)
            problem = constrained_ranking(profit, admissible)
            found = solve(problem)
            check("best ranking", abs(found.value - best) <= NEAR and tuple(found.order.tolist()) in may)
            check("bound above it", found.bound >= best - 1e-9)
            proof = verify_integrality(problem)
            if isinstance(proof, Proof) and check_evidence(problem, proof):
                relaxed = solve(problem.linear_program(), "highs").value
                check("a proof means a whole optimum", abs(relaxed - best) <= 1e-6)
        soft = [at for at, word in enumerate(said) if word in ONE_ROW]
        if soft:
            at, price = soft[0], float(rng.choice([0.1, 0.5, 2.0, 50.0]))
            hard = [broken for number_, broken in enumerate(units) if number_ != at]
            left = [o for o in every if not any(broken(o) for broken in hard)]
            if left:
                found = solve(constrained_ranking(profit, admissible.penalized(f"c{at}", penalty=price)))
                check(
                    "soft: value less price",
                    abs(found.value - max(worth[o] - price * units[at](o) for o in left)) <= NEAR,
                )
                told = sum(found.broken.values())
                check("soft: what is broken", abs(told - units[at](tuple(found.order.tolist()))) <= NEAR)
        swept = [at for at, word in enumerate(said) if word in ("at_most", "at_least", "exactly")]
        if swept:
            sweep(admissible, f"c{swept[0]}", profit, k, check)
    width = max(map(len, asked))
    for what, times in sorted(asked.items(), key=lambda item: (item[0] not in WORDS, item[0])):
        print(f"{what:{width}s}  {times:6d} asked  {wrong[what]} wrong")
    print(f"{count} sets, {sum(asked.values())} questions, {sum(wrong.values())} wrong")


def sweep(admissible: RankingSet, name: str, profit: np.ndarray, k: int, check: Callable[[str, bool], None]) -> None:
    """Every point of the curve against the set with that limit, gone through; every line it proves above all points."""
    limit = next(c for c in admissible.constraints if c.name == name)
    start = [c for c in admissible.constraints if c.name != name]
    kind = [side for side, end in (("at most", limit.upper), ("at least", limit.lower)) if np.isfinite(end).all()]
    points: dict[int, float] = {}
    for at in range(k + 1):
        low, high = (
            np.array([float(at)]) if s in kind else e for s, e in (("at least", limit.lower), ("at most", limit.upper))
        )
        point = RankingSet(admissible.documents, k)
        one = point.add_rows(limit.matrix, low, high)
        one = type(one)(one.documents, k, (*start, *one.constraints))
        may = [o for o in permutations(range(one.documents), k) if one.is_feasible(o)]
        if may:
            points[at] = max(float(profit[np.arange(k), list(o)].sum()) for o in may)
    try:
        curve = sensitivity(admissible, name, range(k + 1), profit=profit)
    except InfeasibleError:
        check("sweeps, point by point", not points)
        return
    for at, value in zip(curve.limits.tolist(), curve.value.tolist(), strict=True):
        check("sweeps, point by point", (at not in points) if np.isnan(value) else abs(value - points[int(at)]) <= NEAR)
    above = curve.above(np.array(list(points), dtype=float))
    check("sweeps, lines above the curve", bool((above >= np.array(list(points.values())) - NEAR).all()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    main(given.sets, given.seed)
