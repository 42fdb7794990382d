"""Attacks on tfb: one module for each actor in SECURITY.md's threat model."""
