"""Recomputation of a solution's claims from the problem's data: in doubles, and in rational numbers."""
