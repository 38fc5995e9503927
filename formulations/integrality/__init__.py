"""Integrality of vertices: total unimodularity proved, refuted or undecided, with evidence that can be checked.

Proofs:
    bipartite       two classes of rows, at most two entries per column (recognition.py)
    interval        an order of the rows with consecutive entries in each column (recognition.py)
    laminar         two laminar families of rows (recognition.py)
    network         a directed tree, each column a path in it (network.py)
    enumeration     signs for every set of rows (recognition.py)
    in parts        removals, and a proof for each remaining block, or each part of a 2-sum or 3-sum (decomposition.py)
    prefix groups   of a program with its objective: disjoint groups limited on prefixes, and an order of each
                    group's documents that the profits follow (prefix_limits.py)
Refutation: a square submatrix with a determinant other than -1, 0, 1, minimized (verify.py).
"""
