"""Collaborative ranking: scores F[u, j] = b_j + ⟨U_u, M_j⟩ learned from what users said of items, with proofs.

The users' block (all U_u for fixed M, b) and the items' (M and b for fixed U) are convex; they are solved in turn, each
to a gap that is proved, from one dual state: a number a rating and a number a user [paper 5].
"""
