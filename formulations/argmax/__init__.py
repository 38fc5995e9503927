"""Exact loss-augmented argmax by structure: compiled kernels behind the solver `exact`."""
