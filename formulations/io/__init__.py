"""Readers of MPS, LP and TOML files."""
