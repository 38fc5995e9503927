"""Is every vertex whole? Total unimodularity proved, refuted or left open, with evidence that can be checked.

proved by    evidence                                                          file
bipartite    two classes of rows, at most two entries a column                 bipartite.py
interval     an order of the rows with consecutive entries in each column      interval.py
laminar      two laminar families of rows                                      laminar.py
network      a directed tree, each column a path in it                         network.py
enumeration  signs for every set of rows                                       ghouila_houri.py
in parts     what may be left out, and a proof for each block that remains     series_parallel.py, two_sum.py

and, of a program with its objective, whole though its matrix need not be:
prefix       disjoint groups limited on prefixes, an order of each group's     prefix_groups.py
groups       documents that suits the profits

refuted by   a square submatrix of determinant other than -1, 0, 1, shrunk     witness.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formulations.registry import member

if TYPE_CHECKING:
    from formulations.integrality.checker import check_evidence as check_evidence
    from formulations.integrality.evidence import Proof as Proof
    from formulations.integrality.evidence import Undecided as Undecided
    from formulations.integrality.evidence import Witness as Witness
    from formulations.integrality.proofs import proof_of as proof_of
    from formulations.integrality.verify import verify_integrality as verify_integrality

WORDS = {
    "Proof": "formulations.integrality.evidence:Proof",
    "Undecided": "formulations.integrality.evidence:Undecided",
    "Witness": "formulations.integrality.evidence:Witness",
    "check_evidence": "formulations.integrality.checker:check_evidence",
    "proof_of": "formulations.integrality.proofs:proof_of",
    "verify_integrality": "formulations.integrality.verify:verify_integrality",
}

__all__ = list(WORDS)


def __getattr__(name: str) -> Any:
    return member(__name__, name, WORDS)
