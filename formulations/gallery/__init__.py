"""Constructors: functions from data to a problem of `formulations.problems`, without solving it."""
