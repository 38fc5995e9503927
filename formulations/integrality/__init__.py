"""Is every vertex whole? Total unimodularity proved, refuted or left open, with evidence that can be checked."""
