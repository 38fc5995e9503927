"""Collaborative ranking: scores F[u, j] = b_j + ⟨U_u, M_j⟩ learned from ratings, with certificates.

The users' block (all U_u for fixed M, b) and the items' (M and b for fixed U) are convex; they are solved in turn, each
to a proved gap, from one dual state: a number per rating and a number per user [paper 5]. The same state gives a
global bound, for factors of every width.
"""

from formulations.registry import lazy

PARTS = {
    "Factors": "rankopt.collaborative.problem:Factors",
    "GlobalBound": "rankopt.collaborative.global_bound:GlobalBound",
    "SingularValue": "rankopt.collaborative.singular_value:SingularValue",
    "VerifiedBound": "rankopt.collaborative.verification:VerifiedBound",
    "VerifiedFactors": "rankopt.collaborative.verification:VerifiedFactors",
    "verify_global_bound": "rankopt.collaborative.verification:verify_global_bound",
}
"""What users may name, `name: "module:object"`, loaded on use; `global_bound` and `largest_singular_value` stand in
files of their names."""

__all__ = ["PARTS", *PARTS]

__getattr__, __dir__ = lazy(__name__, PARTS)
