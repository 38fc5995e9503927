"""Exact loss-augmented argmax of pattern rankings, by the structure of their lattice: behind the solver `exact`."""
