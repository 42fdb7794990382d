"""Estimates, intervals, ranks and stopping rules, computed by pure functions from the records of a run."""
