"""Solvers with planted faults, in modules that workers can import."""
