"""Tests of the benchmarks of the method: their pure parts."""
