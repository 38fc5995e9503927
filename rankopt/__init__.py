"""Learning to rank as optimization."""
