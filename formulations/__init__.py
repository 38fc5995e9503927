"""Optimization problems over arrays: stated as data, solved by any solver, proved."""
