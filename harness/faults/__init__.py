"""Faults that are really produced, and what the harness promises of each: ``python -m harness.faults``."""
