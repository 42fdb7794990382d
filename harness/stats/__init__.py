"""Estimates, intervals, ranks and stopping rules, which pure functions compute from a run's records."""
