"""The margin dual by active sets: compiled kernels behind the solvers `active_set` and `block_ascent`."""
