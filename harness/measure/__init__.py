"""One cell measured: warm-up, sweep, windows, gates; the load generators."""
