"""Attacks on tfb. Each module covers an actor in the threat model of SECURITY.md."""
