"""Constraint sets of rankings: kinds of constraints, the rows they compile to, their structure and their duals."""
