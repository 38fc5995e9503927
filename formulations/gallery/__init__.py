"""Constructors: functions from data to a problem of `formulations.problems`; none of them solves what it states."""
