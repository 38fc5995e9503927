"""Measurements of rankopt and formulations: `python -m benchmarks` lists the suites."""
