"""Which of several rankers is best on the same queries, and which cannot be told apart from it?

The leader has the largest mean. Each other is compared with it by the paired randomisation test of `comparison`; p
values of all of them are raised by Holm's step-down, and p >= 0.05 is no difference to speak of. (The leader was found
on the same queries, so that p flatters it: what is called a tie here is one all the more.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from formulations.display import CompactReprMixin
from rankopt.errors import DataError
from rankopt.evaluation.comparison import compare, holm
from rankopt.evaluation.evaluation import Evaluation
from rankopt.measures.measure import Measure

LEVEL = 0.05
"""Below this p a difference is told as one."""


@dataclass(frozen=True)
class Leader(CompactReprMixin):
    """The ranker with the largest mean of `measure` on `queries` queries, and how the others stand to it.

    means: of all, the largest first, of equals the first given. p: of each other against the leader, in that order, as
    adjusted; 1 where nothing can be tested.
    """

    measure: str
    queries: int
    means: Mapping[str, float]
    p: Mapping[str, float]

    @property
    def name(self) -> str:
        """Of the leader."""
        return next(iter(self.means))

    @property
    def ties(self) -> tuple[str, ...]:
        """Those that cannot be told apart from the leader."""
        return tuple(name for name, p in self.p.items() if p >= LEVEL)

    @property
    def behind(self) -> tuple[str, ...]:
        """Those that rank worse than the leader."""
        return tuple(name for name, p in self.p.items() if p < LEVEL)

    def __str__(self) -> str:
        """What was found and what to do."""
        top = f"{self.name} ranks best here, {self.measure} {_short(self.means[self.name])} on {self.queries} queries"
        if not self.p:
            return f"{top}."
        if not self.ties:
            return (
                f"{top}, ahead of {self._listed(self.behind)} by a paired test ({self._at(self.behind, '<=')}): use it."
            )
        told = f"{top}, but {self._listed(self.ties)} cannot be told apart from it by a paired test "
        told += f"({self._at(self.ties, '>=')}): choose among them by what they cost, or test on more queries."
        if self.behind:
            verb = "ranks" if len(self.behind) == 1 else "rank"
            told += f" {self._listed(self.behind)} {verb} worse ({self._at(self.behind, '<=')})."
        return told

    def _listed(self, names: Sequence[str]) -> str:
        """Names with their means: a .81, b .80 and c .79."""
        told = [f"{name} ({_short(self.means[name])})" for name in names]
        return " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))

    def _at(self, names: Sequence[str], sign: str) -> str:
        """p = .031, or p <= .031 of several."""
        p = (max if sign == "<=" else min)(self.p[name] for name in names)
        if p < 0.001:
            return "p < .001"
        return f"p {'=' if len(names) == 1 or p > 0.999 else sign} {_short(p)}"


def _short(share: float) -> str:
    """.812, and 1."""
    return f"{share:.3f}".removeprefix("0").removesuffix(".000")


def leader(found: Mapping[str, Evaluation], measure: str | Measure | None = None) -> Leader:
    """The leader among evaluations of the same queries by `measure`, which may be left out where they hold only one.

    Raises DataError where there is nothing to compare, or the queries differ.
    """
    if not found:
        raise DataError("no leader can be determined without evaluations; pass at least one.")
    means = {name: one.mean(measure) for name, one in found.items()}
    order = sorted(means, key=lambda name: -means[name])
    best, others = found[order[0]], order[1:]
    counted = best.n_evaluated(measure)
    if counted < 2 or not others:
        p = [1.0] * len(others)
    else:
        p = holm([compare(best, found[name], measure=measure).p_randomization for name in others]).tolist()
    shown = {name: means[name] for name in order}
    return Leader(best.get_name(measure), counted, shown, dict(zip(others, p, strict=True)))
