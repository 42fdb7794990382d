"""A run: its stages, blocks and replicates, what it tells while it goes on, and the modes beside it."""
