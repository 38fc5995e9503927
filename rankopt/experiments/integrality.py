"""The integrality study: which statements are proved, refuted or fractional, and how far relaxations overestimate.

Statements grow in n documents, k positions and the number of blocks.

Two questions are separate. Whether the linear program is integral for every objective is a property of the statement:
proved, refuted by a witness, or undecided. The rate and size of fractional optima depend on the objective too. Profits
of rank one (position weight × score), of rank two (minus discount × gain, the loss-augmented argmax), of full rank, and
of few values (many ties) are drawn with the seed; each is solved with and without integrality constraints.

A statement is a function of n documents, k positions and blocks. It returns None for invalid sizes (such as fewer
blocks than positions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formulations.arrays import Floats
from formulations.constraints.ranking_set import RankingSet
from formulations.display import plural
from formulations.errors import CertificateError, FormulationError, InfeasibleError
from formulations.gallery.assignments import marginal_ranking
from formulations.integrality.checker import check_evidence
from formulations.integrality.evidence import Proof, Witness
from formulations.integrality.verify import verify_integrality
from formulations.marginals.exposure import ExposureBounds
from formulations.problems.linear_program import LinearProgram
from formulations.solving.integrality import integrality_gap
from rankopt.experiments.isolation import Limits, memory_peak, start_peak
from rankopt.experiments.rows import BenchmarkRow, Outcome, versions
from rankopt.experiments.supervisor import RowFile, missing_rows

Statement = Callable[[int, int, int], RankingSet | LinearProgram | None]


def blocks_once(n: int, k: int, blocks: int) -> RankingSet | None:
    """Π(B, k): at most one document of each block in all k positions [ORM, Definition 5]."""
    return None if blocks < k else RankingSet(n, k).at_most(1, by=_labels(n, blocks), name="block")


def nested_quotas(n: int, k: int, blocks: int) -> RankingSet | None:
    """Sites within topics, over all positions: at most one document per site, two per topic of two sites."""
    sites = _labels(n, 2 * blocks)
    if 2 * blocks > n or 2 * blocks < k:
        return None
    return RankingSet(n, k).at_most(1, by=sites, name="site").at_most(2, by=sites // 2, name="topic")


def prefix_quotas(n: int, k: int, blocks: int) -> RankingSet | None:
    """Disjoint groups with quotas on prefixes: even share ± 1 of each group in the first p positions, 2 <= p < k."""
    if k < 3:
        return None
    groups, stated = _labels(n, blocks), RankingSet(n, k)
    for p in range(2, k):
        share = p // blocks
        stated = stated.at_most(min(p, share + 1), by=groups, positions=range(p), name=f"top {p}")
        if share > 1:
            stated = stated.at_least(share - 1, by=groups, positions=range(p), name=f"floor {p}")
    return stated


def overlapping_groups(n: int, k: int, blocks: int) -> RankingSet | None:
    """Overlapping groups in a ring: at most one document of each."""
    if blocks < 3 or n < 2 * blocks:
        return None
    stated, ring = RankingSet(n, k), np.arange(n) % (2 * blocks)
    for group in range(blocks):
        held = (ring // 2 == group) | (ring == 2 * ((group + 1) % blocks))
        stated = stated.at_most(1, documents=held & (np.arange(n) < 2 * blocks), name=f"group {group}")
    return stated


def scattered_quotas(n: int, k: int, blocks: int) -> RankingSet | None:
    """Disjoint groups with quotas on every second position: position sets that are not prefixes."""
    if k < 4:
        return None
    stated, groups = RankingSet(n, k), _labels(n, blocks)
    for first in range(2):
        half = range(first, k, 2)
        stated = stated.at_most(-(-len(half) // blocks), by=groups, positions=half, name=f"every other {first}")
    return stated


def precedence(n: int, k: int, blocks: int) -> RankingSet | None:
    """Chains of documents: the second of a block is preceded by the first."""
    if n < 2 * blocks:
        return None
    stated = RankingSet(n, k)
    for block in range(blocks):
        stated = stated.precedes(block, blocks + block, name=f"before {block}")
    return stated


def exposure(n: int, k: int, blocks: int) -> LinearProgram | None:
    """The mean exposure of each block within two fifths of the even share (Singh and Joachims, 2018), for one ranking
    instead of a lottery."""
    if blocks < 2 or k < 2:
        return None
    even = float((1.0 / np.log2(np.arange(2.0, k + 2))).sum()) / n
    fair = ExposureBounds(_labels(n, blocks).tolist(), 0.6 * even, 1.4 * even)
    return marginal_ranking(np.zeros((k, n)), constraints=fair)


def _labels(n: int, blocks: int) -> NDArray[np.int64]:
    return np.arange(n) % blocks


STATEMENTS: dict[str, Statement] = {
    "Π(B, k)": blocks_once,
    "nested quotas": nested_quotas,
    "quotas on prefixes": prefix_quotas,
    "quotas on every other position": scattered_quotas,
    "overlapping groups": overlapping_groups,
    "precedence": precedence,
    "exposure": exposure,
}
"""The default statements of the study."""


def rank_one(k: int, n: int, rng: np.random.Generator) -> Floats:
    """Scores weighted by position."""
    return np.asarray(np.outer(np.arange(1.0, k + 1) ** -0.5, rng.random(n)))


def rank_two(k: int, n: int, rng: np.random.Generator) -> Floats:
    """What the loss-augmented argmax maximizes, made positive by a constant a position, which changes no optimum."""
    discount, gain = 1.0 / np.log2(np.arange(2.0, k + 2)), rng.integers(0, 3, n)
    return rank_one(k, n, rng) - np.outer(discount, gain) + 3.0


OBJECTIVES: dict[str, Callable[[int, int, np.random.Generator], Floats]] = {
    "rank one": rank_one,
    "rank two": rank_two,
    "full rank": lambda k, n, rng: rng.random((k, n)),
    "few values": lambda k, n, rng: np.asarray(rng.choice([1.0, 2.0, 4.0], (k, n))),  # many ties
}


@dataclass(frozen=True, eq=False)
class IntegralityStudy:
    """Integrality of every statement at every size, in separate processes with a time limit.

    statements: name → function of (n, k, blocks) that returns a set of rankings, a linear program over its cells, or
        None for invalid sizes. Custom functions must be importable.
    objectives: number of random objectives of each kind.
    """

    statements: Mapping[str, Statement] = field(default_factory=lambda: dict(STATEMENTS))
    documents: tuple[int, ...] = (6, 10)
    positions: tuple[int, ...] = (3, 4)
    blocks: tuple[int, ...] = (2, 3, 4)
    objectives: int = 10
    limits: Limits = field(default_factory=Limits)
    seed: int = 0

    def run(self, output: str | PathLike[str] | None = None, *, resume: bool = False) -> list[BenchmarkRow]:
        """All rows, also written line by line to `output`; `resume` continues that file."""
        return list(self.rows(output, resume=resume))

    def rows(self, output: str | PathLike[str] | None = None, *, resume: bool = False) -> Iterator[BenchmarkRow]:
        """The rows as they are computed, by statement, small sizes first."""
        file = RowFile(output, resume)
        for name, statement in self.statements.items():
            sizes = [(n, k, b) for n in self.documents for k in self.positions for b in self.blocks if b <= n and k < n]
            sizes = [size for size in sizes if statement(*size) is not None]
            blanks = [self._blank(name, *size) for size in sizes]
            job = Study(name, statement, tuple(sizes), tuple(blanks), self.objectives, self.seed)
            yield from missing_rows(file, job, blanks, self.limits, self.limits.problem)

    def _blank(self, name: str, n: int, k: int, blocks: int) -> BenchmarkRow:
        return BenchmarkRow(
            kind="integrality", solver="verify_integrality", status=Outcome.GIVEN_UP,
            problem=f"{name} n={n} k={k} blocks={blocks}", trace=f"integrality:{self.objectives}-{self.seed}",
            sizes={"n": n, "k": k, "blocks": blocks}, facts={"statement": name}, versions=versions(), seed=self.seed,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Study:
    """The job of a worker: one statement at its sizes."""

    name: str
    statement: Statement
    sizes: tuple[tuple[int, int, int], ...]
    blanks: tuple[BenchmarkRow, ...]
    objectives: int
    seed: int

    def open(self) -> Iterator[str]:
        return iter(())

    def warm(self) -> None:
        """Nothing to load or compile."""

    def row(self, item: int, partial: Callable[[dict[str, Any]], None]) -> BenchmarkRow:
        start_peak()
        stated, blank = self.statement(*self.sizes[item]), self.blanks[item]
        assert stated is not None
        program: LinearProgram = stated if isinstance(stated, LinearProgram) else stated.program
        rows, columns = program.matrix.shape
        blank = replace(blank, shape_text=f"{plural(rows, 'row')} × {plural(columns, 'variable')}")
        began = perf_counter()
        try:
            if isinstance(stated, RankingSet):
                stated.check_nonempty()
            answer = verify_integrality(program, seed=self.seed)
            seconds = perf_counter() - began
            facts: dict[str, Any] = {"statement": self.name}
            if isinstance(answer, Proof):
                status, facts["proof"] = Outcome.PROVED, answer.kind
            elif isinstance(answer, Witness):
                status = Outcome.REFUTED
                facts |= {"witness": str(answer).splitlines()[0], "vertex": answer.vertex is not None}
            else:
                status = Outcome.UNDECIDED
            confirmed = None
            if status is not Outcome.UNDECIDED:
                confirmed = bool(check_evidence(program, answer))  # raises where the evidence is false
            row = replace(blank, status=status, seconds=seconds, repeats=1, facts=facts, certified=confirmed)
            partial({"seconds": seconds, "facts": facts})
            facts |= self._sample_objectives(program, *self.sizes[item][:2])
        except InfeasibleError as error:
            return replace(blank, status=Outcome.FAILED, message=f"the set is empty: {error}")
        except CertificateError as error:
            return replace(blank, status=Outcome.WRONG, certified=False, message=str(error))
        except FormulationError as error:
            return replace(blank, status=Outcome.FAILED, message=str(error))
        return replace(row, facts=facts, memory=memory_peak())

    def _sample_objectives(self, program: LinearProgram, n: int, k: int) -> dict[str, Any]:
        """Rate and size of the relaxation's overestimates, over all objectives and for each kind."""
        rng = np.random.default_rng(self.seed)
        kinds = {
            name: [self._overestimate(program, draw(k, n, rng)) for _ in range(self.objectives)]
            for name, draw in OBJECTIVES.items()
        }
        every = [share for shares in kinds.values() for share in shares]
        return {**_summary(every), "kinds": {name: _summary(shares) for name, shares in kinds.items()}}

    def _overestimate(self, program: LinearProgram, profit: Floats) -> float | None:
        """(relaxation - integer optimum) / integer optimum; None without an integral point."""
        objective = np.zeros(program.objective.size)
        cells: Any = program.variables[0]
        objective[: cells.size] = [profit[i, j] for i, j in cells.index] if cells.labeled else profit.ravel()
        try:
            gap = integrality_gap(replace(program, objective=objective))
        except InfeasibleError:
            return None
        return 0.0 if gap.integral else gap.absolute / abs(gap.integer.value)


def _summary(shares: list[float | None]) -> dict[str, Any]:
    known = [share for share in shares if share is not None]
    return {
        "objectives": len(shares),
        "no_integral_point": len(shares) - len(known),
        "fractional": sum(share is None or share > 0.0 for share in shares) / max(len(shares), 1),
        "overestimate_mean": float(np.mean(known)) if known else None,
        "overestimate_max": float(np.max(known)) if known else None,
    }
