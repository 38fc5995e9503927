"""Models and checkpoints as files of data only. Loading one never executes code."""
