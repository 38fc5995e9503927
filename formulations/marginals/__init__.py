"""Doubly stochastic matrices instead of rankings: exposure of groups, and lotteries over rankings."""
