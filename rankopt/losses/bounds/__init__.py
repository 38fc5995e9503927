"""Upper bounds of the regret, each one function of an `Argmax`: which reference is subtracted."""
