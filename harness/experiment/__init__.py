"""Measurement: designs, the loop that executes their steps, load generators, warm-up and validity checks."""
