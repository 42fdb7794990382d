"""`./tfb run --profiler`: one server under one load, sampled; its flame graph."""
