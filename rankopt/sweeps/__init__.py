"""A measure along a line of weights: an exact step function, and the sweeps that compute it."""
