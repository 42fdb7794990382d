"""A flame graph of one implementation under load."""
