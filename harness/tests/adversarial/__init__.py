"""Attacks on tfb, with a module for each actor of the threat model in SECURITY.md."""
