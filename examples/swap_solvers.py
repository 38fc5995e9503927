"""The problems of a real training run, many solvers: each answer recomputed and judged, each time beside the others'.

python examples/swap_solvers.py
"""

from statistics import median

from rankopt.data import load_sample
from rankopt.experiments import Outcome, SolverSwap
from rankopt.rankers import LargeMarginRanker

ARGMAX = ("exact", "scipy", "ortools", "highs")
MASTERS = ("active_set", "qpsolvers:piqp")


def main() -> None:
    """Record a training run, replay its rankings and masters through every solver, and compare."""
    few = load_sample("les-miserables").train.select(range(12))
    ranker = LargeMarginRanker("nDCG@10", lam=0.1)
    swap = SolverSwap(
        few,
        argmax_solvers=ARGMAX,
        master_solvers=MASTERS,
        methods=("bundle",),
        ranker=ranker,
        problems=8,
        repeats=1,
        train=False,
    )
    rows = swap.run()
    for kind in ("argmax", "master"):
        problems = {row.problem for row in rows if row.kind == kind}
        print(f"\n{kind}: {len(problems)} problems that training met")
        print(f"{'solver':16}{'solved':>8}{'largest gap':>13}{'median ms':>11}")
        for solver in dict.fromkeys(row.solver for row in rows if row.kind == kind):
            own = [row for row in rows if row.kind == kind and row.solver == solver]
            seconds = [row.seconds for row in own if row.status is Outcome.SOLVED and row.seconds is not None]
            gaps = [row.gap for row in own if row.gap is not None]
            time = f"{1e3 * median(seconds):.2f}" if seconds else "-"
            gap = f"{max(gaps):.0e}" if gaps else "-"
            print(f"{solver:16}{len(seconds):>8}{gap:>13}{time:>11}")
    print("\ngap: proven by bounds that are computed here, relative to the scale of the problem")


if __name__ == "__main__":
    main()
