"""Bounds of the whole problem, proved and checked again: singular values, planes and gaps recomputed."""
