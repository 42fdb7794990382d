"""Attacks on tfb: one module for each actor of the threat model in SECURITY.md."""
