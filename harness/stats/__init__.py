"""Estimates, intervals, ranks and stopping rules: pure functions of the records of a run."""
