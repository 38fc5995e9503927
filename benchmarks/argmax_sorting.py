"""How much of a training step, and of the argmax in it, is sorting: all that keeping sorted orders could save.

    python benchmarks/argmax_sorting.py

Generated data in the shape of MSLR-WEB30K as in `risk.py`, nDCG@10 with power(0.5)@10, the convex bound, w in the
middle and at the end of a run (at w = 0 nothing is sorted). The documents of each gain are sorted by the argmax's own
kernel, all queries at once; beside it the whole argmax and the whole step, one thread each, the least of seven rounds
by turns.
"""

import warnings

import numba as nb
import numpy as np
from risk import DOCUMENTS, along_a_run, generated, least

from formulations import ranking, solve_batch
from formulations.argmax.layout import Layout
from formulations.argmax.order_ideals import sort_chain
from formulations.parallel import at_most
from rankopt.data import Queries
from rankopt.losses.position_weights import parse_position_weights
from rankopt.measures.notation import parse
from rankopt.rankers import LargeMarginRanker

MEASURE, DECAY = "nDCG@10", "power(0.5)@10"


@nb.njit
def sort_all(scores, offsets, by_gain, chain_start, first_chain, stop):
    """The chains of all queries by falling score, as `merge_range` begins."""
    height, other = np.empty(DOCUMENTS), np.empty(DOCUMENTS)
    document, spare = np.empty(DOCUMENTS, np.int32), np.empty(DOCUMENTS, np.int32)
    for q in range(offsets.size - 1):
        own = scores[offsets[q] : offsets[q + 1]]
        for g in range(first_chain[q], first_chain[q + 1]):
            members = by_gain[chain_start[g] : chain_start[g + 1]]
            sort_chain(own, members, stop[q] + 1, height, document, other, spare)


def main():
    warnings.simplefilter("ignore")
    table, grades = generated(6000)
    queries = Queries.from_arrays(table, grades, group=np.full(grades.size // DOCUMENTS, DOCUMENTS))
    ranker = LargeMarginRanker(MEASURE, position_weights=DECAY, bound="convex", w0="zeros", lam=1e-3)
    risk = ranker.objective(queries).risk
    measure, decay = parse(MEASURE), parse_position_weights(DECAY)
    gain = measure.gain(queries.relevance, queries.offsets)
    print("| w | step (ms) | argmax (ms) | sorting (ms) | % of the argmax | % of the step |\n" + "|---" * 6 + "|")
    for point, w in zip(("middle", "end"), along_a_run(ranker, queries)[1:], strict=True):
        batch = ranking(
            table @ w, gain, offsets=queries.offsets, discount=measure.discount,
            position_weights=lambda n: decay.weights(n, measure),
        )  # fmt: skip
        layout = Layout.from_arrays(batch.gain, batch.discount, batch.position_weights, batch.offsets)
        chains = layout.by_gain, layout.chain_start, layout.first_chain, layout.stop
        with at_most(1):
            step, argmax, sorting = least(
                lambda w=w: risk.at(w),
                lambda batch=batch: solve_batch(batch),
                lambda batch=batch, chains=chains: sort_all(batch.scores, batch.offsets, *chains),
            )
        shown = " | ".join(f"{1e3 * seconds:.1f}" for seconds in (step, argmax, sorting))
        print(f"| {point} | {shown} | {100 * sorting / argmax:.0f} | {100 * sorting / step:.0f} |")


if __name__ == "__main__":
    main()
