"""Benchmarks of the method itself: simulated servers, real servers with a set difference, ranking at scale."""
