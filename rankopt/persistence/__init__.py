"""Models and checkpoints as files of data only: nothing in them is ever run."""
