"""Solve problems, singly or in batches, with certified values and bounds; integrality gap and sensitivity."""
