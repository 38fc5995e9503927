"""Limits on prefixes over disjoint groups. Four tables:

whole   random sets (up to 12 documents, 8 positions, each kind of profit for which the theorem holds): the flow of
        positions through groups beside the linear program and the integer program, and how many are proved
time    n documents, k positions, five groups, limits at three prefixes or at every one, profits of rank one: `solve`
        by the flow and by the linear program, values and bounds included; least processor time of several
        alternating rounds. "in training" is `solve_sets`, which writes no profits out
decays  loss-augmented queries (grades 0 to 4, DCG discount at 10) under such limits: what the linear program
        overestimates where the decay is no multiple of the discount
training  a fit under shares of genres (MovieLens 100k), the argmax by "auto" and by the linear program: processor
        seconds, J and its gap

python benchmarks/prefix_groups.py whole --count 10000
python benchmarks/prefix_groups.py time
python benchmarks/prefix_groups.py decays
RANKOPT_DATA=folder python benchmarks/prefix_groups.py training --count 100
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from functools import partial
from time import process_time
from typing import Any

import numpy as np

from formulations import InfeasibleError, RankingSet, check_evidence, constrained_ranking, solve
from formulations.argmax.group_limits import prefix_argmax
from formulations.bridges.narrowing import sequences_of
from formulations.constraints.structure import PrefixNetwork, falls_in_groups
from formulations.integrality.prefix_limits import PrefixRows, prefix_proof
from formulations.integrality.statement import stated
from formulations.solving.constrained_batch import SetBatch, solve_sets
from formulations.testing.instances import drawn

WAY = "exact via prefix groups"


def partly(rows: PrefixRows) -> bool:
    """Whether some limit is on fewer than all positions."""
    return bool(rows.singles) or bool(((rows.lower_row >= 0) | (rows.upper_row >= 0))[:, :-1].any())


def whole(first: int, count: int) -> None:
    """Every way must agree to rounding; a line a kind of profit."""
    sets, proved, worst = Counter[str](), Counter[str](), dict[str, float]()
    for seed in range(first, first + count):
        kind, profit, admissible = drawn(seed, most=12)
        try:
            problem = constrained_ranking(profit, admissible)
        except InfeasibleError:
            continue
        network = PrefixNetwork.from_rows(problem.admissible.compiled)
        if isinstance(network, str) or not partly(network.rows):
            continue
        if not falls_in_groups(profit, network.rows.group):  # groups that no row names are one, and its gains differ
            continue
        form, back = sequences_of(problem, network)
        group, passing = prefix_argmax(form)
        ours = problem.solution(*back(group, passing.ravel()))
        relaxed = solve(problem.linear_program(), "highs").value
        best = solve(problem.linear_program(integer=True), "highs").value
        off = max(abs(ours.value - best), abs(relaxed - best), ours.gap) / max(1.0, problem.scale)
        assert off < 1e-6, (seed, ours.value, relaxed, best, ours.gap)
        proof = prefix_proof(stated(problem))
        if proof is not None:
            check_evidence(problem, proof)
        for name in (kind, "all"):
            sets[name] += 1
            proved[name] += proof is not None
            worst[name] = max(worst.get(name, 0.0), off)
    print("| profits | sets | proved of the very numbers | farthest apart |\n|---|---|---|---|")
    for name, number in sorted(sets.items(), key=lambda item: item[0] == "all"):
        print(f"| {name} | {number} | {proved[name]} | {worst[name]:.1e} |", flush=True)


def query(seed: int, n: int, k: int, everywhere: bool) -> tuple[RankingSet, Any, Any]:
    """A set of five groups, at most three tenths of the first p from each, and of group 0 one in the first three."""
    random = np.random.default_rng(seed)
    group = random.integers(0, 5, n)
    admissible = RankingSet(n, k)
    for p in range(1, k + 1) if everywhere else (k // 4, k // 2, k):
        admissible = admissible.at_most(int(np.ceil(0.3 * p)), by=group, positions=range(p), name=f"first {p}")
    admissible = admissible.at_least(1, documents=group == 0, positions=range(3), name="floor")
    return admissible, 1 / np.log2(np.arange(k) + 2), random.normal(size=n) - (group == 0)


def least(warm: int, rounds: int, *works: Callable[[], Any]) -> list[float]:
    """The least processor seconds of each, turn by turn, after as many calls as have its kernel compiled."""
    found = [np.inf] * len(works)
    for work in works:
        for _ in range(warm):
            work()
    for _ in range(rounds):
        for place, work in enumerate(works):
            began = process_time()
            work()
            found[place] = min(found[place], process_time() - began)
    return found


def time(rounds: int) -> None:
    print("| n | k | limits at | flow, ms | in training, ms | linear program, ms | / flow | / in training |")
    print("|---|---|---|---|---|---|---|---|")
    for n, k, everywhere in ((200, 10, False), (1000, 10, True), (1000, 20, False), (1000, 20, True), (1000, 50, True)):
        admissible, decay, scores = query(0, n, k, everywhere)
        problem = constrained_ranking(np.outer(decay, scores), admissible)
        gain = np.zeros(n)
        one = SetBatch([admissible], scores, gain, decay, decay, np.array([0, n]), np.array([0, k]))
        few = rounds if k < 50 else 2
        flow, training = least(
            40, 5 * rounds, partial(solve, problem, directed_rounding=False), partial(solve_sets, one)
        )
        (program,) = least(1, few, partial(solve, problem, "highs", directed_rounding=False))
        assert solve(problem).solver == WAY
        where = "every prefix" if everywhere else "three prefixes"
        cells = [f"{1e3 * seconds:.3g}" for seconds in (flow, training, program)]
        print(
            f"| {n} | {k} | {where} | {' | '.join(cells)} | {program / flow:.0f} | {program / training:.0f} |",
            flush=True,
        )


def decays(count: int) -> None:
    print("| decay | queries | fractional | largest gap, of the best value |\n|---|---|---|---|")
    i = np.arange(1.0, 11.0)
    discount = 1 / np.log2(i + 1)
    for name, decay in (("discount", discount), ("linear", 11.0 - i), ("power .5", i**-0.5), ("power 1", 1 / i)):
        broken, most = 0, 0.0
        for seed in range(count):
            random = np.random.default_rng(seed)
            n = 25
            group, gain = random.integers(0, 3, n), 2.0 ** random.integers(0, 5, n) - 1.0
            scores = gain / 8 + random.normal(size=n)
            one = RankingSet(n, 10).at_most(2, documents=group == 0, positions=range(5), name="ceiling")
            one = one.at_least(2, documents=group == 1, positions=range(4), name="floor")
            problem = constrained_ranking(np.outer(decay, scores) - np.outer(discount, gain / 31), one)
            relaxed, best = solve(problem.linear_program(), "highs").value, solve(problem).value
            gap = (relaxed - best) / max(1.0, abs(best))
            broken, most = broken + (gap > 1e-8), max(most, gap)
        print(f"| {name} | {count} | {broken} | {most if most > 1e-8 else 0:.2%} |", flush=True)


def training(count: int) -> None:
    """The same fit by the flow and by the linear program; MovieLens 100k, `count` queries."""
    import os
    from pathlib import Path

    from diversity import movielens

    from rankopt.constraints import Admissible
    from rankopt.data import Queries
    from rankopt.rankers import LargeMarginRanker

    train = movielens(Path(os.environ["RANKOPT_DATA"]) / "ml-100k")[0][0]
    rows = int(train.offsets[: count + 1][-1])
    qid = np.repeat(np.arange(count), np.diff(train.offsets[: count + 1]))
    train = Queries.from_arrays(
        train.features[:rows], train.relevance[:rows], qid=qid, attributes={"genre": train.attributes["genre"][:rows]}
    )
    shown = Admissible(10, on_infeasible="truncate").at_most(share=0.4, by="genre")
    print("| decay | solver | seconds | J | gap |\n|---|---|---|---|---|")
    for decay in ("discount", "linear"):
        for solver in ("auto", "highs"):
            ranker = LargeMarginRanker(
                "nDCG@10", position_weights=decay, constraints=shown, argmax_solver=solver, engine="serial"
            )
            began = process_time()
            ranker.fit(train)
            spent, proved = process_time() - began, ranker.certificate_
            print(
                f"| {decay} | {solver} | {spent:.1f} | {proved.primal:.6f} | {proved.primal - proved.bound:.1e} |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("whole", "time", "decays", "training"))
    parser.add_argument("--count", type=int, default=1000, help="sets or queries")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rounds", type=int, default=10)
    given = parser.parse_args()
    if given.table == "whole":
        whole(given.first, given.count)
    elif given.table == "time":
        time(given.rounds)
    elif given.table == "training":
        training(given.count)
    else:
        decays(given.count)


if __name__ == "__main__":
    main()
