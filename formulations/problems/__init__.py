"""Problem classes: frozen records of arrays; each computes value, feasibility and bound of a point from its data."""
