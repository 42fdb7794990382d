"""This machine: its one door to other programs, its facts, its tools, what may be installed."""
