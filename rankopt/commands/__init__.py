"""The commands of `rankopt`, one a file; the table is in `rankopt.cli`."""
