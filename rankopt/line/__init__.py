"""The measure along a line: where it jumps, and by how much, as the scores s + t a of every query move with t."""
