"""The best of several rankers on the same queries, and the rankers that do not differ significantly from it.

The leader has the largest mean. Each other ranker is compared with it by the paired randomisation test of `comparison`.
The p values are adjusted by Holm's method; p >= 0.05 counts as a tie. The leader is selected on the same queries, so p
is biased in its favour, and ties are reported conservatively.
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
"""Significance level."""


@dataclass(frozen=True)
class Leader(CompactReprMixin):
    """The ranker with the largest mean of `measure` on `queries` queries, and tests of the others against it.

    means: means of all rankers, descending, ties in input order. p: adjusted p value of each other ranker against the
    leader, in that order; 1 if no test is possible.
    """

    measure: str
    queries: int
    means: Mapping[str, float]
    p: Mapping[str, float]

    @property
    def name(self) -> str:
        """The name of the leader."""
        return next(iter(self.means))

    @property
    def ties(self) -> tuple[str, ...]:
        """Rankers that do not differ significantly from the leader."""
        return tuple(name for name, p in self.p.items() if p >= LEVEL)

    @property
    def behind(self) -> tuple[str, ...]:
        """Rankers significantly worse than the leader."""
        return tuple(name for name, p in self.p.items() if p < LEVEL)

    def __str__(self) -> str:
        """The finding and a recommendation."""
        top = f"{self.name} ranks best here, {self.measure} {_short(self.means[self.name])} on {self.queries} queries"
        if not self.p:
            return f"{top}."
        if not self.ties:
            return (
                f"{top}, ahead of {self._listed(self.behind)} by a paired test ({self._at(self.behind, '<=')}): use it."
            )
        text = f"{top}, but {self._listed(self.ties)} cannot be distinguished from it by a paired test "
        text += f"({self._at(self.ties, '>=')}): choose among them by what they cost, or test on more queries."
        if self.behind:
            verb = "ranks" if len(self.behind) == 1 else "rank"
            text += f" {self._listed(self.behind)} {verb} worse ({self._at(self.behind, '<=')})."
        return text

    def _listed(self, names: Sequence[str]) -> str:
        """Names with their means: a .81, b .80 and c .79."""
        parts = [f"{name} ({_short(self.means[name])})" for name in names]
        return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))

    def _at(self, names: Sequence[str], sign: str) -> str:
        """For example p = .031, or p <= .031 for several."""
        p = (max if sign == "<=" else min)(self.p[name] for name in names)
        if p < 0.001:
            return "p < .001"
        return f"p {'=' if len(names) == 1 or p > 0.999 else sign} {_short(p)}"


def _short(share: float) -> str:
    """.812, and 1."""
    return f"{share:.3f}".removeprefix("0").removesuffix(".000")


def leader(found: Mapping[str, Evaluation], measure: str | Measure | None = None) -> Leader:
    """Find the leader among evaluations of the same queries by `measure`, optional if there is only one.

    Raises DataError if there are no evaluations, or if the queries differ.
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
