"""Solvers in processes of their own, with limits of time and memory: one that dies takes nothing along."""
